//! The servers of a route and how one of them is chosen, as the file has them: a server is its address, or a
//! table with the address and more.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use shortline_daemon::keys::any_number;
use shortline_web::proxy::{BackendOptions, KeyOf, UpstreamAddress};
use shortline_web::proxy_header::Version;

use super::values::parsed;

/// The largest weight.
const WEIGHT_MAX: u32 = 1000;
/// The longest name that the cookie has for a server.
const ID_BYTES_MAX: usize = 64;

/// The servers, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstreams(pub Vec<BackendOptions>);

/// What a request's key is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct HashBy(pub KeyOf);

/// The name of a cookie.
#[derive(Clone, Debug, PartialEq)]
pub struct CookieName(pub String);

/// A part of something, from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Share(pub f64);

/// A server as the file has it.
struct Entry(BackendOptions);

/// A server with more than its address.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Table {
    url: Address,
    weight: Option<u32>,
    backup: Option<bool>,
    connections_max: Option<NonZeroUsize>,
    id: Option<String>,
    send_proxy: Option<ProxyVersion>,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq)]
pub struct Address(pub UpstreamAddress);

/// A version of the PROXY protocol.
struct ProxyVersion(Version);

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        parsed(&String::deserialize(source)?).map(Self)
    }
}

impl<'de> Deserialize<'de> for ProxyVersion {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        parsed(&String::deserialize(source)?).map(Self)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = Entry;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(
            "an address such as \"127.0.0.1:9000\", or { url = \"127.0.0.1:9000\", weight = 2 }",
        )
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Entry, E> {
        parsed(text).map(Entry)
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Entry, M::Error> {
        let table = Table::deserialize(MapAccessDeserializer::new(map))?;
        table.server().map(Entry).map_err(de::Error::custom)
    }
}

impl Table {
    fn server(self) -> Result<BackendOptions, UpstreamError> {
        let given = BackendOptions::from(self.url.0);
        let weight = self.weight.unwrap_or(given.weight);
        if weight > WEIGHT_MAX {
            return Err(UpstreamError::Weight(weight));
        }
        if let Some(id) = self
            .id
            .as_ref()
            .filter(|id| id.len() > ID_BYTES_MAX || !is_token(id))
        {
            return Err(UpstreamError::Id(id.clone()));
        }
        Ok(BackendOptions {
            weight,
            backup: self.backup.unwrap_or(given.backup),
            connections_max: self.connections_max.map(NonZeroUsize::get),
            id: self.id,
            send_proxy: self.send_proxy.map(|version| version.0),
            ..given
        })
    }
}

impl<'de> Deserialize<'de> for Upstreams {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let servers: Vec<Entry> = any_number(source)?;
        Self::new(servers.into_iter().map(|entry| entry.0).collect()).map_err(de::Error::custom)
    }
}

impl Upstreams {
    fn new(servers: Vec<BackendOptions>) -> Result<Self, UpstreamError> {
        if servers.is_empty() {
            return Err(UpstreamError::None);
        }
        if servers.iter().all(|server| server.weight == 0) {
            return Err(UpstreamError::NoWeight);
        }
        for (at, server) in servers.iter().enumerate() {
            let taken = |other: &BackendOptions| other.id.is_some() && other.id == server.id;
            if let (Some(id), true) = (&server.id, servers[..at].iter().any(taken)) {
                return Err(UpstreamError::IdTwice(id.clone()));
            }
        }
        Ok(Self(servers))
    }
}

impl FromStr for HashBy {
    type Err = UpstreamError;

    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        let wrong = || UpstreamError::HashBy(text.to_owned());
        Ok(Self(match text.split_once(':') {
            None if text == "client" => KeyOf::Client,
            Some(("header", name)) => KeyOf::Header(name.parse().map_err(|_| wrong())?),
            Some(("cookie", name)) if is_token(name) => KeyOf::Cookie(name.to_owned()),
            _ => return Err(wrong()),
        }))
    }
}

impl FromStr for CookieName {
    type Err = UpstreamError;

    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        match is_token(text) {
            true => Ok(Self(text.to_owned())),
            false => Err(UpstreamError::Cookie(text.to_owned())),
        }
    }
}

/// Whether a text may be a cookie's name (RFC 6265 4.1.1, RFC 9110 5.6.2).
fn is_token(text: &str) -> bool {
    let of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(of_token)
}

macro_rules! from_text {
    ($type:ident) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
                parsed(&String::deserialize(source)?)
            }
        }
    };
}

from_text!(HashBy);
from_text!(CookieName);

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let share = f64::deserialize(source)?;
        match (0.0..=1.0).contains(&share) {
            true => Ok(Self(share)),
            false => Err(de::Error::custom(UpstreamError::Share(share))),
        }
    }
}

/// A server, or a way to choose one, that is refused.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// No servers.
    #[error("no backend: give one at least, such as upstream = [\"127.0.0.1:9000\"]")]
    None,
    /// No server would get requests.
    #[error("weight: 0 for all servers: give one at least a weight from 1 to {WEIGHT_MAX}")]
    NoWeight,
    /// Too large a weight.
    #[error("weight: {0} is out of range: must be from 0 to {WEIGHT_MAX}")]
    Weight(u32),
    /// Not a value of a cookie.
    #[error("id: `{0}`: must be 1 to {ID_BYTES_MAX} letters, digits or -._~, such as blue")]
    Id(String),
    /// Two servers with one id.
    #[error("id: `{0}` appears twice: give each server its own")]
    IdTwice(String),
    /// Not a key.
    #[error("`{0}` is nothing to hash: give \"client\", \"header:NAME\" or \"cookie:NAME\"")]
    HashBy(String),
    /// Not a cookie's name.
    #[error("`{0}` is no name of a cookie: give letters, digits and -._~, such as route")]
    Cookie(String),
    /// Not a part.
    #[error("{0} is out of range: must be from 0.0 to 1.0, such as 0.2")]
    Share(f64),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use shortline_daemon::file::{Keys, parse};

    use super::*;

    #[derive(Deserialize)]
    struct File {
        upstream: Upstreams,
    }

    impl Keys for File {}

    fn read(text: &str) -> Result<Vec<BackendOptions>, String> {
        let text = format!("upstream = {text}");
        let file = parse::<File>(Path::new("a.toml"), text);
        let file = file.map_err(|error| error.to_string());
        file.map(|(file, _)| file.upstream.0)
    }

    #[test]
    fn servers_are_addresses_or_tables() {
        let servers = read(
            r#"["a:1", { url = "http://b:2", weight = 2, backup = true, connections-max = 7, id = "b", send-proxy = "v1" }]"#,
        );
        let servers = servers.unwrap();
        assert_eq!(servers[0], "a:1".parse().unwrap());
        let expected = BackendOptions {
            weight: 2,
            backup: true,
            connections_max: Some(7),
            id: Some("b".to_owned()),
            send_proxy: Some(Version::One),
            .."b:2".parse().unwrap()
        };
        assert_eq!(servers[1], expected);
    }

    #[test]
    fn what_is_no_server_is_refused_with_a_remedy() {
        for (text, expected) in [
            (r#"[]"#, "give one at least"),
            (r#"[7]"#, "must be an address such as"),
            (r#"[{ weight = 1 }]"#, "`url` is missing"),
            (r#"[{ url = "a" }]"#, "write a:9000"),
            (r#"[{ url = "a:1", wieght = 1 }]"#, "unknown field `wieght`"),
            (
                r#"[{ url = "a:1", weight = 1001 }]"#,
                "weight: 1001 is out of range: must be from 0 to 1000",
            ),
            (
                r#"[{ url = "a:1", weight = 0 }]"#,
                "weight: 0 for all servers",
            ),
            (r#"[{ url = "a:1", id = "a;b" }]"#, "id: `a;b`"),
            (
                r#"[{ url = "a:1", send-proxy = true }]"#,
                "must be a text in quotes",
            ),
            (
                r#"[{ url = "a:1", send-proxy = "2" }]"#,
                "`2` is no version of the PROXY protocol: give \"v1\"",
            ),
            (
                r#"[{ url = "a:1", id = "a" }, { url = "b:1", id = "a" }]"#,
                "id: `a` appears twice",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn keys_are_read() {
        let read = |text: &str| {
            text.parse::<HashBy>()
                .map(|by| by.0)
                .map_err(|error| error.to_string())
        };
        assert_eq!(read("client"), Ok(KeyOf::Client));
        assert_eq!(
            read("header:X-User"),
            Ok(KeyOf::Header("x-user".parse().unwrap()))
        );
        assert_eq!(
            read("cookie:session"),
            Ok(KeyOf::Cookie("session".to_owned()))
        );
        for text in [
            "",
            "url",
            "header:",
            "header:a b",
            "cookie:",
            "cookie:a=b",
            "client:x",
        ] {
            assert!(read(text).unwrap_err().contains("header:NAME"), "{text}");
        }
        assert!("a;b".parse::<CookieName>().is_err() && "route".parse::<CookieName>().is_ok());
    }
}
