//! What the uplink's own device has sent and holds back: the truth that corrects the pacer.
//!
//! Two sources, tried in this order:
//! - the device's root qdisc over netlink ([`RootQdisc`]): bytes sent and the backlog that waits.
//!   Reading needs no privilege.
//! - `/sys/class/net/DEVICE/statistics/tx_bytes`, for devices without a qdisc: no backlog.
//!
//! Both count the packet with its 14 bytes of Ethernet header, as a RATE of ours does.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::FileExt;

use nix::ifaddrs::getifaddrs;
use shortline_base::netlink::RootQdisc;
use thiserror::Error;

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
    Qdisc(RootQdisc),
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
        if let Ok(mut qdisc) = RootQdisc::open(index)
            && read_qdisc(&mut qdisc).is_ok()
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
            Counters::Qdisc(qdisc) => read_qdisc(qdisc),
            Counters::Statistics(file) => read_statistics(file),
        }
    }
}

fn read_qdisc(qdisc: &mut RootQdisc) -> io::Result<Reading> {
    let counters = qdisc.read()?;
    let counters =
        counters.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no qdisc that counts"))?;
    Ok(Reading {
        enqueued_bytes: counters.sent_bytes + counters.backlog_bytes,
        backlog_bytes: counters.backlog_bytes,
    })
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
