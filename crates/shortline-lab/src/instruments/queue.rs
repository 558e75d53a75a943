//! The uplink's queue: what waits in the device's root qdisc and what it has dropped, with all
//! below it (rtnetlink(7), `RTM_GETQDISC`, `TCA_STATS2`).

use std::io;

use netlink_packet_core::{NLM_F_ACK, NLM_F_ECHO, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcStats2};
use netlink_sys::protocols::NETLINK_ROUTE;

use super::query::Query;

/// A qdisc now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Packets that wait.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets dropped since the qdisc was made.
    pub drops: u64,
    /// Bytes that have left it.
    pub sent_bytes: u64,
}

/// The qdisc of one device.
pub struct Queue(Query);

impl Queue {
    /// Opens the root qdisc of `device`.
    ///
    /// # Errors
    /// If there is no such device in this thread's namespace.
    pub fn open(device: &str) -> io::Result<Self> {
        let index = nix::net::if_::if_nametoindex(device)?;
        let mut message = TcMessage::with_index(index as i32);
        message.header.parent = TcHandle::ROOT;
        let request = RouteNetlinkMessage::GetQueueDiscipline(message);
        let mut message = NetlinkMessage::from(request);
        // With the acknowledgement there is an answer even without a qdisc; older kernels answer
        // only to the one who asks for an echo.
        message.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_ECHO;
        Query::open(NETLINK_ROUTE, message).map(Self)
    }

    /// The queue now; nothing in it if the device has no qdisc.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn read(&mut self) -> io::Result<QueueState> {
        let mut state = QueueState::default();
        self.0
            .ask(|message: &NetlinkMessage<RouteNetlinkMessage>| {
                if let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewQueueDiscipline(
                    qdisc,
                )) = &message.payload
                {
                    state = state_of(&qdisc.attributes).unwrap_or_default();
                }
                // Without a code it is the acknowledgement; with one, this device has no qdisc.
                Ok(matches!(message.payload, NetlinkPayload::Error(_)))
            })?;
        Ok(state)
    }
}

fn state_of(attributes: &[TcAttribute]) -> Option<QueueState> {
    let stats = attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Stats2(stats) => Some(stats),
        _ => None,
    })?;
    let sent_bytes = stats.iter().find_map(|stat| match stat {
        TcStats2::Basic(basic) => Some(basic.bytes),
        _ => None,
    });
    stats.iter().find_map(|stat| match stat {
        TcStats2::Queue(queue) => Some(QueueState {
            packets: u64::from(queue.qlen),
            bytes: u64::from(queue.backlog),
            drops: u64::from(queue.drops),
            sent_bytes: sent_bytes.unwrap_or(0),
        }),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_device_without_a_qdisc_has_an_empty_queue() {
        let mut queue = Queue::open("lo").unwrap();
        for _ in 0..3 {
            assert_eq!(queue.read().unwrap(), QueueState::default());
        }
        assert!(Queue::open("no-such-dev").is_err());
    }
}
