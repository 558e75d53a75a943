//! Whose tags count.
//!
//! A tag is what a client says of itself: whoever writes the tag of a short request behind a long one
//! goes first each time. So tags count from those clients only that the configuration names, by the
//! network that they connect from or by the database user that they have logged in as, and by default
//! from nobody.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::Client;

/// Clients whose tags count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trusted {
    /// All.
    Any,
    /// Those that connect from a network, given by its first address and the length of what all its
    /// addresses have in common, in bits.
    Network(IpAddr, u8),
    /// Those of a database user.
    User(Box<str>),
}

/// A text that names no clients.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no clients: give a network such as 10.0.1.0/24, an address, user:NAME, or any"
)]
pub struct TrustedError(String);

impl Trusted {
    /// Whether these are among the clients.
    pub fn has(&self, client: &Client<'_>) -> bool {
        match self {
            Self::Any => true,
            Self::Network(network, length) => client
                .address
                .is_some_and(|address| beginning(address, *length) == Some(*network)),
            Self::User(name) => client.user == Some(name),
        }
    }
}

/// The first bits of an address, the others 0; `None` if it has no more of them.
fn beginning(address: IpAddr, length: u8) -> Option<IpAddr> {
    match address.to_canonical() {
        IpAddr::V4(ip) => {
            let rest = 32_u8.checked_sub(length)?;
            let mask = u32::MAX.checked_shl(rest.into()).unwrap_or(0);
            Some(IpAddr::V4((u32::from(ip) & mask).into()))
        }
        IpAddr::V6(ip) => {
            let rest = 128_u8.checked_sub(length)?;
            let mask = u128::MAX.checked_shl(rest.into()).unwrap_or(0);
            Some(IpAddr::V6((u128::from(ip) & mask).into()))
        }
    }
}

impl FromStr for Trusted {
    type Err = TrustedError;

    fn from_str(text: &str) -> Result<Self, TrustedError> {
        let refused = || TrustedError(text.escape_debug().to_string());
        if text == "any" {
            return Ok(Self::Any);
        }
        if let Some(name) = text.strip_prefix("user:") {
            return match name {
                "" => Err(refused()),
                name => Ok(Self::User(name.into())),
            };
        }
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
        // Mapped addresses are those of IPv4, which is how clients' are looked at.
        let (address, length) = match (address, address.to_canonical()) {
            (IpAddr::V6(_), IpAddr::V4(mapped)) if length >= 96 => (mapped.into(), length - 96),
            (address, _) => (address, length),
        };
        // `10.0.1.7/24` is more likely a mistake than a network.
        match beginning(address, length) {
            Some(first) if first == address => Ok(Self::Network(address, length)),
            _ => Err(refused()),
        }
    }
}

impl fmt::Display for Trusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Network(address, length) => write!(f, "{address}/{length}"),
            Self::User(name) => write!(f, "user:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn from(address: &str) -> Client<'static> {
        Client {
            address: Some(address.parse().unwrap()),
            user: Some("shop"),
            ..Client::default()
        }
    }

    #[test]
    fn a_network_has_its_addresses_and_no_others() {
        for (trusted, inside, outside) in [
            ("10.0.1.0/24", "10.0.1.255", "10.0.2.0"),
            ("10.0.1.7", "10.0.1.7", "10.0.1.8"),
            ("10.0.1.0/24", "::ffff:10.0.1.3", "::ffff:10.0.2.3"),
            ("::ffff:10.0.1.0/120", "10.0.1.3", "10.0.2.3"),
            ("fd00::/8", "fd12::1", "fe80::1"),
            ("0.0.0.0/0", "192.0.2.1", "::1"),
            ("::1", "::1", "127.0.0.1"),
        ] {
            let trusted: Trusted = trusted.parse().unwrap();
            assert!(trusted.has(&from(inside)), "{trusted} {inside}");
            assert!(!trusted.has(&from(outside)), "{trusted} {outside}");
            assert!(!trusted.has(&Client::default()), "{trusted}");
        }
    }

    #[test]
    fn a_user_is_known_by_the_whole_name() {
        let shop: Trusted = "user:shop".parse().unwrap();
        assert!(shop.has(&from("192.0.2.1")));
        let workshop: Trusted = "user:workshop".parse().unwrap();
        assert!(!workshop.has(&from("192.0.2.1")) && !workshop.has(&Client::default()));
        assert!("any".parse::<Trusted>().unwrap().has(&Client::default()));
    }

    #[test]
    fn what_names_nobody_is_told() {
        for text in [
            "",
            "user:",
            "10.0.1.0/33",
            "10.0.1.7/24",
            "db.example",
            "10.0.1.0/",
            "::/129",
        ] {
            let error = text.parse::<Trusted>().unwrap_err().to_string();
            assert!(
                error.contains("10.0.1.0/24") && error.contains(text),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_network_reads_back_and_has_its_first_address(ip: u32, length in 0..=32_u8) {
            let first = beginning(IpAddr::V4(ip.into()), length).unwrap();
            let trusted = Trusted::Network(first, length);
            prop_assert_eq!(trusted.to_string().parse(), Ok(trusted.clone()));
            let client = Client { address: Some(IpAddr::V4(ip.into())), ..Client::default() };
            prop_assert!(trusted.has(&client));
        }

        #[test]
        fn any_text_is_read(text: String) {
            let _ = text.parse::<Trusted>();
        }
    }
}
