//! What ties a request to a backend: a key that is hashed, or a cookie that names the backend.
//!
//! The cookie is set with the response of the backend that has answered, unless the request had it already. It
//! is the backend's own name or a digest of its address; a client that makes one up can only choose a backend.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::choice::{Wish, name_of};
use super::options::UpstreamOptions;
use crate::clients::cookie_value;

/// What a key is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyOf {
    /// The client's address: IPv4, or the network of 64 bits of IPv6.
    Client,
    /// A field. Of several, the first.
    Header(HeaderName),
    /// A cookie.
    Cookie(String),
}

/// A cookie that keeps a client at its backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StickyCookie(pub String);

/// What a request with these fields asks for. Its client is looked at only if it matters.
pub fn wish(
    options: &UpstreamOptions,
    headers: &HeaderMap,
    client: impl FnOnce() -> IpAddr,
) -> Wish {
    let sticky = options.sticky_cookie.as_ref();
    let key = match &options.hash_by {
        None => None,
        Some(KeyOf::Client) => Some(name_of(network(client()))),
        Some(KeyOf::Header(name)) => headers.get(name).map(|value| name_of(value.as_bytes())),
        Some(KeyOf::Cookie(name)) => cookie_value(headers, name).map(name_of),
    };
    Wish {
        backend: sticky
            .and_then(|cookie| cookie_value(headers, &cookie.0))
            .map(name_of),
        key,
    }
}

/// The cookie to set after an answer of the backend with this id, if the request did not name it.
pub fn cookie(
    options: &UpstreamOptions,
    wish: Wish,
    id: &str,
    secure: bool,
) -> Option<HeaderValue> {
    let StickyCookie(name) = options.sticky_cookie.as_ref()?;
    if wish.backend == Some(name_of(id.as_bytes())) {
        return None;
    }
    let secure = if secure { "; Secure" } else { "" };
    let cookie = format!("{name}={id}; Path=/; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::try_from(cookie).ok()
}

/// What all addresses of one client have in common.
fn network(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits() >> 64 << 64,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn headers(cookie: &'static str) -> HeaderMap {
        let cookie = (http::header::COOKIE, HeaderValue::from_static(cookie));
        let user = (
            HeaderName::from_static("x-user"),
            HeaderValue::from_static("ann"),
        );
        HeaderMap::from_iter([cookie, user])
    }

    fn key(by: KeyOf, cookie: &'static str, client: &str) -> Option<u64> {
        let options = UpstreamOptions {
            hash_by: Some(by),
            ..UpstreamOptions::default()
        };
        wish(&options, &headers(cookie), || client.parse().unwrap()).key
    }

    #[test]
    fn a_key_is_what_it_is_made_of() {
        let client = |address| key(KeyOf::Client, "a=1", address);
        assert_eq!(client("2001:db8::1"), client("2001:db8::2"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
        let cookie = |cookie| key(KeyOf::Cookie("a".to_owned()), cookie, "::1");
        assert_eq!(cookie("b=2; a=1"), cookie("a=1"));
        assert_ne!(cookie("a=2"), cookie("a=1"));
        assert_eq!(cookie("b=1"), None);
        let header = |name| key(KeyOf::Header(HeaderName::from_static(name)), "a=1", "::1");
        assert!(header("x-user").is_some() && header("x-other").is_none());
    }

    #[test]
    fn a_cookie_is_set_unless_the_request_has_it() {
        let options = UpstreamOptions {
            sticky_cookie: Some(StickyCookie("route".to_owned())),
            ..UpstreamOptions::default()
        };
        let asked = |cookie| wish(&options, &headers(cookie), || unreachable!());
        let set = |cookie_field, secure| cookie(&options, asked(cookie_field), "blue", secure);
        assert_eq!(set("route=blue", false), None);
        assert_eq!(
            set("route=green", false).unwrap(),
            "route=blue; Path=/; HttpOnly; SameSite=Lax"
        );
        let secure = set("other=blue", true).unwrap();
        assert!(secure.to_str().unwrap().ends_with("; Secure"));
        assert_eq!(
            cookie(&UpstreamOptions::default(), Wish::default(), "blue", false),
            None
        );
    }
}
