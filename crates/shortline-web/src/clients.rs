//! Who the client of a request is: an address, or the one that a trusted proxy names.
//!
//! A proxy appends the address that its request came from to `X-Forwarded-For` or `Forwarded` (RFC
//! 7239), behind what it was told itself. So the list is read from its end. The client is the last
//! address that is not a trusted proxy. Everything before it is only a claim. Any other field is
//! read like `X-Forwarded-For`. The field of a peer that is not trusted is ignored.
//!
//! Many users behind one address (an office, a carrier's NAT) are one client, unless they are told
//! apart. Then they are as many clients as there are users, up to a limit. But anybody can pretend
//! to be many users, and would get as many shares. So the limit is one unless the operator raises
//! it.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU16, NonZeroU32};
use std::str::FromStr;
use std::sync::LazyLock;

use http::{HeaderMap, HeaderName, header};
use shortline_link::user_at;
use shortline_sched::{Client, Network};

/// How many proxies of a list are read.
const PROXIES_MAX: usize = 32;
/// Hashes users with a random key, so that nobody can choose which user they count as.
static USERS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// How clients are told apart, and what they weigh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clients {
    /// Proxies whose field is believed.
    pub proxies: Vec<Network>,
    /// The field in which proxies name the client.
    pub header: HeaderName,
    /// Weights of the clients in a network. The first network that matches counts; the default is
    /// one.
    pub weights: Vec<(Network, NonZeroU32)>,
    /// The most clients that the users behind one address may be.
    pub users_per_address: NonZeroU16,
    /// The cookie that tells users apart. Without it their TLS sessions do.
    pub user_cookie: Option<String>,
}

/// The client of a request: an address, and which of the users behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asks {
    /// The address.
    pub address: IpAddr,
    user: u16,
}

impl Default for Clients {
    fn default() -> Self {
        Self {
            proxies: Vec::new(),
            header: HeaderName::from_static("x-forwarded-for"),
            weights: Vec::new(),
            users_per_address: NonZeroU16::MIN,
            user_cookie: None,
        }
    }
}

impl Clients {
    /// The client of a request from `peer`, in the TLS session with this number.
    pub fn asks(&self, peer: IpAddr, session: Option<u64>, headers: &HeaderMap) -> Asks {
        Asks {
            address: self.address(peer, headers),
            user: self.user(session, headers),
        }
    }

    /// The client that asks.
    pub fn client(&self, asks: Asks) -> Client {
        let weight = self
            .weights
            .iter()
            .find(|(network, _)| network.has(asks.address));
        Client {
            weight: weight.map_or(NonZeroU32::MIN, |(_, weight)| *weight),
            ..user_at(asks.address, asks.user)
        }
    }

    /// The number of a user. Users that cannot be told apart have the first.
    fn user(&self, session: Option<u64>, headers: &HeaderMap) -> u16 {
        let users = u64::from(self.users_per_address.get());
        if users == 1 {
            return 0;
        }
        let cookie = self.user_cookie.as_deref();
        let told = cookie
            .and_then(|name| cookie_value(headers, name))
            .map(|value| USERS.hash_one(value));
        let told = told.or_else(|| session.map(|session| USERS.hash_one(session)));
        told.map_or(0, |told| (told % users) as u16)
    }

    fn address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.trusts(peer) {
            return peer;
        }
        let mut asks = peer;
        for named in self.named(headers).take(PROXIES_MAX) {
            // Nothing is known beyond an element that is hidden or not an address.
            let Some(address) = named else {
                return asks;
            };
            asks = address;
            if !self.trusts(address) {
                return asks;
            }
        }
        asks
    }

    /// Whether what this address says of a request is believed.
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.proxies.iter().any(|network| network.has(address))
    }

    /// The addresses that the field names, the last first.
    fn named<'a>(&self, headers: &'a HeaderMap) -> impl Iterator<Item = Option<IpAddr>> + 'a {
        let forwarded = self.header == header::FORWARDED;
        let values = headers.get_all(&self.header).iter().rev();
        let elements = values.flat_map(|value| value.as_bytes().rsplit(|&byte| byte == b','));
        elements.map(move |element| {
            let element = std::str::from_utf8(element).ok()?.trim();
            node(if forwarded {
                asked_for(element)?
            } else {
                element
            })
        })
    }
}

/// The value of the cookie called `name` (RFC 6265, 5.4). The first one counts; an empty value is
/// none.
pub fn cookie_value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a [u8]> {
    let fields = headers.get_all(header::COOKIE).iter();
    let mut pairs = fields.flat_map(|field| field.as_bytes().split(|&byte| byte == b';'));
    pairs.find_map(|pair| {
        let value = pair.trim_ascii().strip_prefix(name.as_bytes())?;
        value.strip_prefix(b"=").filter(|value| !value.is_empty())
    })
}

/// The value of `for=` in an element of `Forwarded`.
fn asked_for(element: &str) -> Option<&str> {
    element.split(';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("for")
            .then(|| value.trim())
    })
}

/// An address with or without a port, brackets and quotes, since proxies write all of these.
fn node(text: &str) -> Option<IpAddr> {
    let text = text.trim_matches('"');
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let address = IpAddr::from_str(bare.unwrap_or(text))
        .or_else(|_| text.parse().map(|address: SocketAddr| address.ip()));
    Some(address.ok()?.to_canonical())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    const PROXY: &str = "10.0.0.7";

    fn asks(peer: &str, header: &str, values: &[&str]) -> String {
        let clients = Clients {
            proxies: vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()],
            header: header.parse().unwrap(),
            ..Clients::default()
        };
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(
                header.parse::<HeaderName>().unwrap(),
                value.parse().unwrap(),
            );
        }
        clients.address(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn a_trusted_proxy_says_who_asks() {
        for (values, client) in [
            (&["192.0.2.1"][..], "192.0.2.1"),
            (&["192.0.2.1:4711"], "192.0.2.1"),
            (&["2001:db8::1"], "2001:db8::1"),
            (&["[2001:db8::1]:4711"], "2001:db8::1"),
            (&["::ffff:192.0.2.1"], "192.0.2.1"),
            // The last address that is not a trusted proxy counts. The ones before it are claims.
            (&["203.0.113.9, 192.0.2.1, 10.0.0.8"], "192.0.2.1"),
            (&["203.0.113.9", "192.0.2.1", "10.0.0.8"], "192.0.2.1"),
            (&["10.1.1.1, fd00::1"], "10.1.1.1"),
            (&["192.0.2.1, unknown"], PROXY),
            (&["192.0.2.1, nonsense, 10.0.0.8"], "10.0.0.8"),
            (&[""], PROXY),
            (&[], PROXY),
        ] {
            assert_eq!(asks(PROXY, "x-forwarded-for", values), client, "{values:?}");
        }
    }

    #[test]
    fn forwarded_is_read_as_rfc_7239_writes_it() {
        for (value, client) in [
            ("for=192.0.2.43", "192.0.2.43"),
            ("For=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17"),
            ("for=192.0.2.60;proto=http;by=203.0.113.43", "192.0.2.60"),
            ("for=192.0.2.43, proto=https ; for=10.0.0.9", "192.0.2.43"),
            ("for=_hidden", PROXY),
            ("proto=http", PROXY),
        ] {
            assert_eq!(asks(PROXY, "forwarded", &[value]), client, "{value}");
        }
    }

    #[test]
    fn whoever_is_not_trusted_speaks_for_nobody() {
        let forged = asks("192.0.2.66", "x-forwarded-for", &["198.51.100.1"]);
        assert_eq!(forged, "192.0.2.66");
    }

    #[test]
    fn a_client_weighs_what_the_first_network_says() {
        let weights = [("10.0.0.0/24", 5), ("10.0.0.0/8", 2)];
        let clients = Clients {
            weights: weights
                .map(|(network, weight)| {
                    (network.parse().unwrap(), NonZeroU32::new(weight).unwrap())
                })
                .to_vec(),
            ..Clients::default()
        };
        let weight = |address: &str| {
            let asks = clients.asks(address.parse().unwrap(), None, &HeaderMap::new());
            clients.client(asks).weight.get()
        };
        assert_eq!(
            (weight("10.0.0.1"), weight("10.9.0.1"), weight("192.0.2.1")),
            (5, 2, 1)
        );
    }

    fn names(clients: &Clients, sessions: &[Option<u64>], cookies: &[&str]) -> usize {
        let mut names = std::collections::BTreeSet::new();
        for session in sessions {
            for cookie in cookies {
                let mut headers = HeaderMap::new();
                headers.insert(header::COOKIE, cookie.parse().unwrap());
                let asks = clients.asks(PROXY.parse().unwrap(), *session, &headers);
                names.insert(clients.client(asks).name);
            }
        }
        names.len()
    }

    #[test]
    fn users_behind_an_address_are_told_apart_by_cookie_or_session_up_to_a_limit() {
        let sessions: Vec<_> = (0..1000).map(Some).collect();
        let cookies: Vec<String> = (0..1000).map(|user| format!("a=1; sid={user}")).collect();
        let cookies: Vec<&str> = cookies.iter().map(String::as_str).collect();
        let mut clients = Clients {
            user_cookie: Some("sid".into()),
            ..Clients::default()
        };
        assert_eq!(names(&clients, &sessions, &["sid=1"]), 1);
        assert_eq!(names(&clients, &[None], &cookies), 1);
        clients.users_per_address = NonZeroU16::new(8).unwrap();
        assert_eq!(names(&clients, &[None], &cookies), 8);
        assert_eq!(names(&clients, &sessions, &["other=1"]), 8);
        // The cookie counts if there is one.
        assert_eq!(names(&clients, &sessions, &["b=2;sid=7"]), 1);
        // These tell nobody apart.
        for cookie in ["sid=", "xsid=1", "sidx=1", "sid"] {
            assert_eq!(names(&clients, &[None], &[cookie, "a=1"]), 1, "{cookie}");
        }
    }

    proptest! {
        #[test]
        fn any_field_names_somebody(value in prop::collection::vec(any::<u8>(), 0..200)) {
            let Ok(value) = HeaderValue::from_bytes(&value) else {
                return Ok(());
            };
            let mut headers = HeaderMap::new();
            for header in ["x-forwarded-for", "forwarded"] {
                headers.insert(header, value.clone());
                let clients = Clients {
                    proxies: vec!["0.0.0.0/0".parse().unwrap()],
                    header: header.parse().unwrap(),
                    ..Clients::default()
                };
                clients.asks(PROXY.parse().unwrap(), None, &headers);
            }
        }
    }
}
