//! What the uplink's own device has sent and holds back: the truth that corrects the pacer.
//!
//! Two sources, tried in this order:
//! - the device's root qdisc over netlink (rtnetlink(7), `RTM_GETQDISC`, `TCA_STATS2`): bytes
//!   sent and the backlog that waits. Reading needs no privilege.
//! - `/sys/class/net/DEVICE/statistics/tx_bytes`, for devices without a qdisc: no backlog.
//!
//! Both count the packet with its 14 bytes of Ethernet header, as a RATE of ours does.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::FileExt;

use netlink_packet_core::{NLM_F_ACK, NLM_F_ECHO, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcStats2};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::ifaddrs::getifaddrs;
use thiserror::Error;

/// Replies of one request fit easily; more is not a reply to us.
const REPLY_BYTES_MAX: usize = 32 * 1024;

/// What the device said at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Bytes handed to the device's queue since it exists: sent plus waiting.
    pub enqueued_bytes: u64,
    /// Bytes that wait in the kernel's queue.
    pub backlog_bytes: u64,
}

/// Why a device cannot be read.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// No such interface in this network namespace.
    #[error("uplink device '{0}' does not exist: `ip link` lists the names")]
    Missing(String),
    /// The interface is there but its counters are not.
    #[error("uplink device '{name}' has no counters: {source}")]
    Unreadable {
        /// The interface's name.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// An interface whose counters are read.
pub struct Device {
    name: String,
    counters: Counters,
}

enum Counters {
    Qdisc(QdiscCounters),
    Statistics(File),
}

impl Device {
    /// Opens the counters of the interface called `name`.
    pub fn open(name: &str) -> Result<Self, DeviceError> {
        let index = nix::net::if_::if_nametoindex(name)
            .map_err(|_| DeviceError::Missing(name.to_owned()))?;
        let unreadable = |source| DeviceError::Unreadable {
            name: name.to_owned(),
            source,
        };
        if let Ok(mut qdisc) = QdiscCounters::open(index)
            && qdisc.read().is_ok()
        {
            return Ok(Self {
                name: name.to_owned(),
                counters: Counters::Qdisc(qdisc),
            });
        }
        let path = format!("/sys/class/net/{name}/statistics/tx_bytes");
        let mut device = Self {
            name: name.to_owned(),
            counters: Counters::Statistics(File::open(path).map_err(unreadable)?),
        };
        device.read().map_err(unreadable)?;
        Ok(device)
    }

    /// The interface that owns `address`, if one does.
    pub fn name_of(address: IpAddr) -> Option<String> {
        let address = address.to_canonical();
        getifaddrs().ok()?.find_map(|interface| {
            let storage = interface.address?;
            let own = storage
                .as_sockaddr_in()
                .map(|v4| IpAddr::V4(v4.ip()))
                .or_else(|| storage.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))?;
            (own == address).then_some(interface.interface_name)
        })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The counters now: one or two system calls.
    pub fn read(&mut self) -> io::Result<Reading> {
        match &mut self.counters {
            Counters::Qdisc(qdisc) => qdisc.read(),
            Counters::Statistics(file) => read_statistics(file),
        }
    }
}

fn read_statistics(file: &File) -> io::Result<Reading> {
    let mut text = [0u8; 24];
    let length = file.read_at(&mut text, 0)?;
    let enqueued_bytes = std::str::from_utf8(&text[..length])
        .ok()
        .and_then(|digits| digits.trim().parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "tx_bytes is not a number"))?;
    Ok(Reading {
        enqueued_bytes,
        backlog_bytes: 0,
    })
}

struct QdiscCounters {
    socket: Socket,
    request: Vec<u8>,
    reply: Vec<u8>,
}

impl QdiscCounters {
    fn open(interface_index: u32) -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        socket.set_non_blocking(true)?;
        let mut message = TcMessage::with_index(interface_index as i32);
        message.header.parent = TcHandle::ROOT;
        let mut packet = NetlinkMessage::from(RouteNetlinkMessage::GetQueueDiscipline(message));
        // The acknowledgement makes sure that there is an answer even for a device without a
        // qdisc; older kernels answer only to the one who asks for an echo.
        packet.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_ECHO;
        packet.finalize();
        let mut request = vec![0; packet.buffer_len()];
        packet.serialize(&mut request);
        Ok(Self {
            socket,
            request,
            reply: vec![0; REPLY_BYTES_MAX],
        })
    }

    /// rtnetlink handles a request inside `send`, so that its answer waits when that returns.
    fn read(&mut self) -> io::Result<Reading> {
        self.socket.send(&self.request, 0)?;
        let mut reading = None;
        loop {
            let length = match self.socket.recv(&mut &mut self.reply[..], 0) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            reading = reading.or(parse_reply(&self.reply[..length]));
        }
        reading.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no qdisc"))
    }
}

fn parse_reply(mut bytes: &[u8]) -> Option<Reading> {
    while let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes) {
        let length = message.header.length as usize;
        if let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewQueueDiscipline(qdisc)) =
            message.payload
        {
            return reading_of(&qdisc.attributes);
        }
        if length == 0 || length >= bytes.len() {
            return None;
        }
        bytes = &bytes[length..];
    }
    None
}

fn reading_of(attributes: &[TcAttribute]) -> Option<Reading> {
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
    let backlog_bytes = stats.iter().find_map(|stat| match stat {
        TcStats2::Queue(queue) => Some(u64::from(queue.backlog)),
        _ => None,
    })?;
    Some(Reading {
        enqueued_bytes: sent_bytes + backlog_bytes,
        backlog_bytes,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn loopback_is_found_by_its_address_and_counts() {
        let name = Device::name_of("127.0.0.1".parse().unwrap()).unwrap();
        let mut device = Device::open(&name).unwrap();
        let before = device.read().unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .send_to(&[0; 1000], socket.local_addr().unwrap())
            .unwrap();
        let after = device.read().unwrap();
        assert!(after.enqueued_bytes >= before.enqueued_bytes + 1000);
    }

    #[test]
    fn a_missing_device_is_named() {
        let error = Device::open("no-such-dev").err().unwrap().to_string();
        assert!(error.contains("no-such-dev") && error.contains("ip link"));
    }
}
