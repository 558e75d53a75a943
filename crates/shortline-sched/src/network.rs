//! A network of addresses, as configurations write it: `10.0.1.0/24`, `2001:db8::/32`, or one
//! address.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// All addresses that share their first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    length_bits: u8,
}

/// A text that is not a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no network: write it like 10.0.1.0/24, 2001:db8::/32 or 10.0.1.7")]
pub struct NetworkError(String);

impl Network {
    /// Whether the network contains an address. IPv4 addresses mapped into IPv6 count as IPv4.
    pub fn has(&self, address: IpAddr) -> bool {
        beginning(address, self.length_bits) == Some(self.first)
    }
}

/// An address with all bits after the first `length_bits` set to 0; `None` if it has fewer bits.
fn beginning(address: IpAddr, length_bits: u8) -> Option<IpAddr> {
    match address.to_canonical() {
        IpAddr::V4(ip) => {
            let rest = 32_u8.checked_sub(length_bits)?;
            let mask = u32::MAX.checked_shl(rest.into()).unwrap_or(0);
            Some(IpAddr::V4((u32::from(ip) & mask).into()))
        }
        IpAddr::V6(ip) => {
            let rest = 128_u8.checked_sub(length_bits)?;
            let mask = u128::MAX.checked_shl(rest.into()).unwrap_or(0);
            Some(IpAddr::V6((u128::from(ip) & mask).into()))
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let refused = || NetworkError(text.escape_debug().to_string());
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| refused())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => bits,
            Some(length) => length.parse().map_err(|_| refused())?,
        };
        // A mapped address becomes IPv4, as `has` compares.
        let (address, length_bits) = match (address, address.to_canonical()) {
            (IpAddr::V6(_), IpAddr::V4(mapped)) if length >= 96 => (mapped.into(), length - 96),
            (address, _) => (address, length),
        };
        // `10.0.1.7/24` is more likely a mistake than a network.
        match beginning(address, length_bits) {
            Some(first) if first == address => Ok(Self { first, length_bits }),
            _ => Err(refused()),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.length_bits)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_network_has_its_addresses_and_no_others() {
        for (network, inside, outside) in [
            ("10.0.1.0/24", "10.0.1.255", "10.0.2.0"),
            ("10.0.1.7", "10.0.1.7", "10.0.1.8"),
            ("10.0.1.0/24", "::ffff:10.0.1.3", "::ffff:10.0.2.3"),
            ("::ffff:10.0.1.0/120", "10.0.1.3", "10.0.2.3"),
            ("fd00::/8", "fd12::1", "fe80::1"),
            ("0.0.0.0/0", "192.0.2.1", "::1"),
            ("::1", "::1", "127.0.0.1"),
        ] {
            let network: Network = network.parse().unwrap();
            assert!(network.has(inside.parse().unwrap()), "{network} {inside}");
            assert!(
                !network.has(outside.parse().unwrap()),
                "{network} {outside}"
            );
        }
    }

    #[test]
    fn what_is_no_network_is_told() {
        for text in [
            "",
            "10.0.1.0/33",
            "10.0.1.7/24",
            "db.example",
            "10.0.1.0/",
            "::/129",
        ] {
            let error = text.parse::<Network>().unwrap_err().to_string();
            assert!(
                error.contains("10.0.1.0/24") && error.contains(text),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_network_reads_back_and_has_its_first_address(ip: u32, length_bits in 0..=32_u8) {
            let first = beginning(IpAddr::V4(ip.into()), length_bits).unwrap();
            let network = Network { first, length_bits };
            prop_assert_eq!(network.to_string().parse(), Ok(network));
            prop_assert!(network.has(IpAddr::V4(ip.into())));
        }

        #[test]
        fn any_text_is_read(text: String) {
            let _ = text.parse::<Network>();
        }
    }
}
