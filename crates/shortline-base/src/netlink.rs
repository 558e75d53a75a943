//! Questions to the kernel and its answers (netlink(7)), and the counters of a device's root qdisc
//! (rtnetlink(7), `RTM_GETQDISC`, `TCA_STATS2`).
//!
//! Questions go one at a time and never wait. rtnetlink and sock_diag work inside `send`, so the
//! answer is there when that returns, and a dump goes on inside `recv`. A missing answer is an
//! error, so no thread that orders responses ever sleeps here. Messages that belong to an earlier
//! question are skipped.

use std::io;

use netlink_packet_core::{
    DecodeError, NLM_F_ACK, NLM_F_DUMP, NLM_F_ECHO, NLM_F_REQUEST, NetlinkBuffer,
    NetlinkDeserializable, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcStats2};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// The kernel fills at most 32 KiB of a dump at a time.
const REPLY_BYTES_MAX: usize = 64 * 1024;
/// The most replies to one question: a dump of a million sockets has no more.
const REPLIES_MAX: usize = 16 * 1024;

/// A connection to a part of the kernel.
#[derive(Debug)]
pub struct Channel {
    socket: Socket,
    sequence: u32,
    request: Vec<u8>,
    reply: Vec<u8>,
}

/// The kind of answer that a question wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A change, with these flags beside the usual ones. The answer is its acknowledgement.
    Change(u16),
    /// One thing.
    One,
    /// Everything of a kind.
    All,
}

impl Want {
    fn flags(self) -> u16 {
        let flags = match self {
            Self::Change(flags) => NLM_F_ACK | flags,
            // The acknowledgement makes sure of an answer even where the thing does not exist.
            // Older kernels answer only a request for an echo.
            Self::One => NLM_F_ACK | NLM_F_ECHO,
            Self::All => NLM_F_DUMP,
        };
        NLM_F_REQUEST | flags
    }
}

impl Channel {
    /// Opens a connection to the part that speaks `protocol`, in the thread's namespace.
    ///
    /// # Errors
    /// If the kernel has no such part.
    pub fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        socket.set_non_blocking(true)?;
        Ok(Self {
            socket,
            sequence: 0,
            request: Vec::new(),
            reply: vec![0; REPLY_BYTES_MAX],
        })
    }

    /// Asks, and passes each message of the answer to `take`. A message that the library cannot
    /// read is passed as an error, which `take` may skip.
    ///
    /// # Errors
    /// The kernel's error, an answer without end, and errors from `take`.
    pub fn ask<I>(
        &mut self,
        message: I,
        want: Want,
        mut take: impl FnMut(Result<I, DecodeError>) -> io::Result<()>,
    ) -> io::Result<()>
    where
        I: NetlinkSerializable + NetlinkDeserializable,
        NetlinkPayload<I>: From<I>,
    {
        self.send(message, want)?;
        for _ in 0..REPLIES_MAX {
            let length = self.socket.recv(&mut &mut self.reply[..], 0)?;
            let mut rest = &self.reply[..length];
            while let Ok(packet) = NetlinkBuffer::new_checked(rest) {
                // Messages are laid out on multiples of 4.
                let whole = (packet.length() as usize).next_multiple_of(4);
                let (message, others) = rest.split_at(whole.min(rest.len()));
                rest = others;
                if packet.sequence_number() != self.sequence {
                    continue;
                }
                match NetlinkMessage::<I>::deserialize(message).map(|message| message.payload) {
                    Ok(NetlinkPayload::InnerMessage(inner)) => take(Ok(inner))?,
                    Ok(NetlinkPayload::Done(_)) => return Ok(()),
                    Ok(NetlinkPayload::Error(error)) if error.code.is_none() => return Ok(()),
                    Ok(NetlinkPayload::Error(error)) => return Err(error.to_io()),
                    Ok(_) => {}
                    Err(error) => take(Err(error))?,
                }
            }
        }
        Err(io::Error::other("the kernel's answer has no end"))
    }

    fn send<I>(&mut self, message: I, want: Want) -> io::Result<()>
    where
        I: NetlinkSerializable,
        NetlinkPayload<I>: From<I>,
    {
        self.sequence = self.sequence.wrapping_add(1);
        let mut packet = NetlinkMessage::from(message);
        packet.header.flags = want.flags();
        packet.header.sequence_number = self.sequence;
        packet.finalize();
        self.request.resize(packet.buffer_len(), 0);
        packet.serialize(&mut self.request);
        self.socket.send(&self.request, 0).map(drop)
    }
}

/// What a qdisc counts, including all below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QdiscCounters {
    /// Packets that wait.
    pub backlog_packets: u64,
    /// Their bytes.
    pub backlog_bytes: u64,
    /// Packets dropped since the qdisc was made.
    pub drops: u64,
    /// Bytes that have left it.
    pub sent_bytes: u64,
}

/// The qdisc at the root of a device. Reading needs no privilege.
#[derive(Debug)]
pub struct RootQdisc {
    channel: Channel,
    index: u32,
}

impl RootQdisc {
    /// The root qdisc of the interface with this index.
    ///
    /// # Errors
    /// If the kernel has no rtnetlink.
    pub fn open(index: u32) -> io::Result<Self> {
        let channel = Channel::open(NETLINK_ROUTE)?;
        Ok(Self { channel, index })
    }

    /// Its counters now; `None` if the device has no qdisc that counts.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn read(&mut self) -> io::Result<Option<QdiscCounters>> {
        // The kernel takes an interface's index for a positive int.
        let mut message = TcMessage::with_index(self.index as i32);
        message.header.parent = TcHandle::ROOT;
        let mut counters = None;
        let question = RouteNetlinkMessage::GetQueueDiscipline(message);
        let answered = self.channel.ask(question, Want::One, |told| {
            if let Ok(RouteNetlinkMessage::NewQueueDiscipline(qdisc)) = told {
                counters = counters_of(&qdisc.attributes);
            }
            Ok(())
        });
        match answered {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            answered => answered.map(|()| counters),
        }
    }
}

fn counters_of(attributes: &[TcAttribute]) -> Option<QdiscCounters> {
    let counts_nothing =
        |attribute: &TcAttribute| matches!(attribute, TcAttribute::Kind(kind) if kind == "noqueue");
    if attributes.iter().any(counts_nothing) {
        return None;
    }
    let stats = attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Stats2(stats) => Some(stats),
        _ => None,
    })?;
    let sent_bytes = stats.iter().find_map(|stat| match stat {
        TcStats2::Basic(basic) => Some(basic.bytes),
        _ => None,
    })?;
    stats.iter().find_map(|stat| match stat {
        TcStats2::Queue(queue) => Some(QdiscCounters {
            backlog_packets: u64::from(queue.qlen),
            backlog_bytes: u64::from(queue.backlog),
            drops: u64::from(queue.drops),
            sent_bytes,
        }),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_device_without_a_qdisc_counts_nothing() {
        // The loopback device is always the first.
        let mut qdisc = RootQdisc::open(1).unwrap();
        for _ in 0..3 {
            assert_eq!(qdisc.read().unwrap(), None);
        }
    }

    #[test]
    fn a_device_that_is_not_there_is_an_error_that_says_so() {
        let mut qdisc = RootQdisc::open(i32::MAX as u32).unwrap();
        let error = qdisc.read().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        // The channel can be asked again.
        assert_eq!(qdisc.read().unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
