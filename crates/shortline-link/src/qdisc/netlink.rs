//! Requests to the kernel's traffic control and its answers: one at a time, blocking, each with an
//! acknowledgement (rtnetlink(7)).

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::TcMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// The kernel fills at most 32 KiB of a dump at a time.
const REPLY_BYTES_MAX: usize = 64 * 1024;
/// Replies of one dump: far more than any device has classes.
const REPLIES_MAX: usize = 1024;

/// A connection to the kernel's traffic control.
pub struct Channel {
    socket: Socket,
    sequence: u32,
}

impl Channel {
    /// Opens one.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Asks for a change and waits until it is made.
    pub fn change(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.send(message, NLM_F_REQUEST | NLM_F_ACK | flags)?;
        self.receive(|_| ())
    }

    /// Asks for everything of a kind. What this library cannot read is left out.
    pub fn dump(&mut self, message: RouteNetlinkMessage) -> io::Result<Vec<TcMessage>> {
        let mut told = Vec::new();
        self.send(message, NLM_F_REQUEST | NLM_F_DUMP)?;
        self.receive(|message| {
            if let RouteNetlinkMessage::NewQueueDiscipline(message)
            | RouteNetlinkMessage::NewTrafficClass(message)
            | RouteNetlinkMessage::NewTrafficFilter(message) = message
            {
                told.push(message);
            }
        })?;
        Ok(told)
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut packet = NetlinkMessage::from(message);
        packet.header.flags = flags;
        packet.header.sequence_number = self.sequence;
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map(|_| ())
    }

    /// Takes replies until the acknowledgement or the end of the dump.
    fn receive(&mut self, mut take: impl FnMut(RouteNetlinkMessage)) -> io::Result<()> {
        let mut buffer = vec![0; REPLY_BYTES_MAX];
        for _ in 0..REPLIES_MAX {
            let length = self.socket.recv(&mut &mut buffer[..], 0)?;
            let mut rest = &buffer[..length];
            while let Ok(packet) = NetlinkBuffer::new_checked(rest) {
                let whole = (packet.length() as usize)
                    .next_multiple_of(4)
                    .min(rest.len());
                let (message, others) = rest.split_at(whole);
                rest = others;
                match NetlinkMessage::<RouteNetlinkMessage>::deserialize(message) {
                    Ok(message) if message.header.sequence_number != self.sequence => {}
                    Ok(message) => match message.payload {
                        NetlinkPayload::InnerMessage(inner) => take(inner),
                        NetlinkPayload::Done(_) => return Ok(()),
                        NetlinkPayload::Error(error) => {
                            return match error.code {
                                None => Ok(()),
                                Some(code) => {
                                    Err(io::Error::from_raw_os_error(code.get().wrapping_neg()))
                                }
                            };
                        }
                        _ => {}
                    },
                    // A qdisc whose options the library does not understand.
                    Err(_) => {}
                }
            }
        }
        Err(io::Error::other("the kernel's answer has no end"))
    }
}
