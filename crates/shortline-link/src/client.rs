//! Who a client is to the order: whoever asks from one address.
//!
//! An IPv4 client is its address. An IPv6 client is the /64 that its address is in: a host can have all
//! 2^64 addresses of that (RFC 4291, 2.5.4; RFC 8981 changes them daily). IPv4 addresses mapped into IPv6
//! are IPv4 addresses. Users behind one address can be told apart by others, and are clients then.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;

use shortline_sched::Client;

/// What of an IPv6 address tells clients apart.
const NETWORK: u128 = !0 << 64;

/// The client behind an address, of weight one.
pub fn client_at(address: IpAddr) -> Client {
    let name = match address.to_canonical() {
        IpAddr::V4(address) => Ipv6Addr::to_bits(address.to_ipv6_mapped()),
        IpAddr::V6(address) => address.to_bits() & NETWORK,
    };
    Client {
        name,
        weight: NonZeroU32::MIN,
    }
}

/// The user of that number behind an address. The first, 0, is [`client_at`].
pub fn user_at(address: IpAddr, number: u16) -> Client {
    let client = client_at(address);
    // Bits that neither an IPv4 address nor a network of 64 bits has.
    Client {
        name: client.name | u128::from(number) << 48,
        ..client
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn are_one(one: &str, other: &str) -> bool {
        client_at(one.parse().unwrap()) == client_at(other.parse().unwrap())
    }

    #[test]
    fn an_address_is_a_client_and_so_is_a_network_of_64_bits() {
        assert!(are_one("192.0.2.1", "192.0.2.1"));
        assert!(are_one("192.0.2.1", "::ffff:192.0.2.1"));
        assert!(!are_one("192.0.2.1", "192.0.2.2"));
        assert!(are_one("2001:db8::1", "2001:db8::f00:2"));
        assert!(!are_one("2001:db8::1", "2001:db8:0:1::1"));
        assert!(!are_one("::1", "127.0.0.1"));
    }

    #[test]
    fn users_behind_addresses_differ() {
        let mut names = std::collections::BTreeSet::new();
        for address in ["192.0.2.1", "192.0.2.2", "2001:db8::1", "::", "0.0.0.0"] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(user_at(address, 0), client_at(address));
            assert!((0..1024).all(|number| names.insert(user_at(address, number).name)));
        }
    }
}
