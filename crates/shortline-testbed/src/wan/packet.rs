//! What the relay must know of an IPv4 packet (RFC 791): its addresses, and its flow, within which
//! packets keep their order.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// A range of addresses, as `10.92.3.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Its first address.
    pub first: Ipv4Addr,
    /// How many bits all have in common, 1 to 32.
    pub prefix_bits: u8,
}

impl Network {
    /// Whether `address` is one of its own.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        let differing = u32::from(self.first) ^ u32::from(address);
        differing.leading_zeros() >= u32::from(self.prefix_bits)
    }
}

/// The head of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The source.
    pub source: Ipv4Addr,
    /// The destination.
    pub destination: Ipv4Addr,
    /// A number that is the same for all packets of one direction of a connection.
    pub flow: u64,
}

impl Head {
    /// The head of `packet`. `None` if it is not IPv4.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        const FRAGMENT: u16 = 0x1fff;
        const TCP: u8 = 6;
        const UDP: u8 = 17;
        let fixed = packet.first_chunk::<20>()?;
        if fixed[0] >> 4 != 4 {
            return None;
        }
        let head_bytes = usize::from(fixed[0] & 0xf) * 4;
        let address =
            |at: usize| Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]);
        let later_fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & FRAGMENT != 0;
        let has_ports = matches!(fixed[9], TCP | UDP) && !later_fragment;
        let ports = packet.get(head_bytes..head_bytes + 4).filter(|_| has_ports);
        let mut hasher = DefaultHasher::new();
        (&fixed[9], &fixed[12..20], ports).hash(&mut hasher);
        Some(Self {
            source: address(12),
            destination: address(16),
            flow: hasher.finish(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn packet(source_port: u8) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x45;
        packet[9] = 6;
        packet[12..16].copy_from_slice(&[10, 91, 0, 1]);
        packet[16..20].copy_from_slice(&[10, 92, 3, 1]);
        packet[21] = source_port;
        packet
    }

    #[test]
    fn addresses_and_flows_are_told_apart() {
        let head = Head::parse(&packet(80)).unwrap();
        assert_eq!(head.source, Ipv4Addr::new(10, 91, 0, 1));
        assert_eq!(head.destination, Ipv4Addr::new(10, 92, 3, 1));
        let mut later = packet(80);
        later.extend([7; 100]);
        assert_eq!(Head::parse(&later).unwrap().flow, head.flow);
        assert_ne!(Head::parse(&packet(81)).unwrap().flow, head.flow);
    }

    #[test]
    fn what_is_no_ipv4_has_no_head() {
        assert_eq!(Head::parse(&[]), None);
        assert_eq!(Head::parse(&[0x45; 19]), None);
        assert_eq!(Head::parse(&[0x60; 40]), None);
        // A packet whose ports are cut off is still relayed.
        assert!(Head::parse(&packet(1)[..20]).is_some());
    }

    #[test]
    fn a_network_has_the_addresses_of_its_prefix() {
        let network = Network {
            first: Ipv4Addr::new(10, 92, 3, 0),
            prefix_bits: 24,
        };
        assert!(network.contains(Ipv4Addr::new(10, 92, 3, 255)));
        assert!(!network.contains(Ipv4Addr::new(10, 92, 2, 255)));
    }
}
