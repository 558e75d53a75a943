//! The clients whose tags count.
//!
//! A tag is a client's own claim. A client that puts the tag of a short request on a long one goes
//! first each time. So tags count only from clients that the configuration names, by the network
//! they connect from or by the database user they have logged in as. By default nobody's tags
//! count.

use std::fmt;
use std::str::FromStr;

use shortline_sched::Network;

use super::Client;

/// Clients whose tags count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trusted {
    /// All clients.
    Any,
    /// Clients that connect from a network.
    Network(Network),
    /// Clients that are logged in as a database user.
    User(Box<str>),
}

/// A text that does not name clients.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no clients: give a network such as 10.0.1.0/24, an address, user:NAME, or any"
)]
pub struct TrustedError(String);

impl Trusted {
    /// Whether this client is one of them.
    pub fn has(&self, client: &Client<'_>) -> bool {
        match self {
            Self::Any => true,
            Self::Network(network) => client.address.is_some_and(|address| network.has(address)),
            Self::User(name) => client.user == Some(name),
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
        text.parse().map(Self::Network).map_err(|_| refused())
    }
}

impl fmt::Display for Trusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Network(network) => network.fmt(f),
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
    fn a_network_has_its_clients_and_no_others() {
        let trusted: Trusted = "10.0.1.0/24".parse().unwrap();
        assert!(trusted.has(&from("10.0.1.255")) && !trusted.has(&from("10.0.2.0")));
        assert!(!trusted.has(&Client::default()));
        assert_eq!(trusted.to_string().parse(), Ok(trusted));
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
        fn any_text_is_read(text: String) {
            let _ = text.parse::<Trusted>();
        }
    }
}
