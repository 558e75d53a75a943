//! A question put to the kernel over netlink (netlink(7)) again and again: built once, and answered
//! into the same buffer.

use std::io;

use netlink_packet_core::{NetlinkDeserializable, NetlinkMessage, NetlinkSerializable};
use netlink_sys::{Socket, SocketAddr};

/// Room for a part of an answer; the kernel sends half of that at most.
const REPLY_BYTES: usize = 64 * 1024;

/// A question and the socket it is asked on.
pub struct Query {
    socket: Socket,
    request: Vec<u8>,
    reply: Vec<u8>,
}

impl Query {
    /// The question `message` to the part of the kernel that speaks `protocol`.
    ///
    /// # Errors
    /// If the kernel has no such part.
    pub fn open<I: NetlinkSerializable>(
        protocol: isize,
        mut message: NetlinkMessage<I>,
    ) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        message.finalize();
        let mut request = vec![0; message.buffer_len()];
        message.serialize(&mut request);
        Ok(Self {
            socket,
            request,
            reply: vec![0; REPLY_BYTES],
        })
    }

    /// Asks, and tells `take` each message of the answer until it says that this was the last.
    ///
    /// # Errors
    /// What cannot be sent, received or read, and what `take` finds.
    pub fn ask<I: NetlinkDeserializable>(
        &mut self,
        mut take: impl FnMut(&NetlinkMessage<I>) -> io::Result<bool>,
    ) -> io::Result<()> {
        self.socket.send(&self.request, 0)?;
        loop {
            let length = self.socket.recv(&mut &mut self.reply[..], 0)?;
            let mut bytes = &self.reply[..length];
            while !bytes.is_empty() {
                let message = NetlinkMessage::deserialize(bytes);
                let message = message.map_err(|error| io::Error::other(error.to_string()))?;
                if take(&message)? {
                    return Ok(());
                }
                // Messages are laid out on multiples of 4.
                let length = (message.header.length as usize).next_multiple_of(4);
                bytes = bytes.get(length.max(4)..).unwrap_or_default();
            }
        }
    }
}
