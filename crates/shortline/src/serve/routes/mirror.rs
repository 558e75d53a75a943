//! `mirror` of a route: a server that gets copies of its requests, as its address or a table with the address and more.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use shortline_daemon::file::spot::KeyError;
use shortline_sched::units::Size;
use shortline_web::proxy::mirror::MirrorOptions;
use shortline_web::proxy::{UpstreamAddress, UpstreamOptions};

use super::upstreams::{Address, Share};
use super::values::{Time, parsed};

const BODY_BYTES_MAX: usize = 64 << 10;
const IN_FLIGHT_MAX: usize = 64;
const TIME_MAX: Duration = Duration::from_secs(10);

/// Where copies go, and how many.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorKeys(Table);

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Table {
    url: Address,
    ca: Option<PathBuf>,
    share: Option<Share>,
    body_size_max: Option<Size>,
    in_flight_max: Option<NonZeroUsize>,
    time_max: Option<Time>,
}

impl MirrorKeys {
    /// The options.
    ///
    /// # Errors
    /// A server that cannot be, or a key that is of no use.
    pub fn resolve(&self) -> Result<MirrorOptions, KeyError> {
        let table = &self.0;
        let address = &table.url.0;
        if address.speaks_fastcgi() {
            return Err(KeyError::new(
                "mirror",
                format!(
                    "{address} speaks FastCGI, and copies are of HTTP: give http:// or leave it out"
                ),
            ));
        }
        if let UpstreamAddress::Service(_) = address {
            return Err(KeyError::new(
                "mirror",
                format!("{address}: copies go to one server: give its host:port"),
            ));
        }
        if table.ca.is_some() && !address.has_tls() {
            return Err(KeyError::new(
                "mirror.ca",
                "is for a server with TLS: give https://host:port, or leave it out",
            ));
        }
        let time_max = table.time_max.as_ref().map_or(TIME_MAX, |time| time.0);
        let in_flight_max = table.in_flight_max.map_or(IN_FLIGHT_MAX, NonZeroUsize::get);
        Ok(MirrorOptions {
            upstream: UpstreamOptions {
                backends: vec![address.clone().into()],
                authorities: table.ca.clone(),
                connect_time_max: time_max,
                first_byte_time_max: time_max,
                idle_time_max: time_max,
                // So that one client alone may have all that are under way.
                connections_max: in_flight_max.saturating_mul(2),
                ..UpstreamOptions::default()
            },
            share: table.share.as_ref().map_or(1.0, |share| share.0),
            body_bytes_max: table.body_size_max.map_or(BODY_BYTES_MAX, |size| {
                usize::try_from(size.bytes()).unwrap_or(usize::MAX)
            }),
            in_flight_max,
            time_max,
        })
    }
}

impl<'de> Deserialize<'de> for MirrorKeys {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(TextOrTable)
    }
}

struct TextOrTable;

impl<'de> Visitor<'de> for TextOrTable {
    type Value = MirrorKeys;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(
            "an address such as \"127.0.0.1:9001\", or { url = \"127.0.0.1:9001\", share = 0.1 }",
        )
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<MirrorKeys, E> {
        Ok(MirrorKeys(Table {
            url: parsed(text).map(Address)?,
            ca: None,
            share: None,
            body_size_max: None,
            in_flight_max: None,
            time_max: None,
        }))
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<MirrorKeys, M::Error> {
        Table::deserialize(MapAccessDeserializer::new(map)).map(MirrorKeys)
    }
}
