//! `[[route]]` of the configuration: which requests go to which application servers.
//!
//! Only the file has routes: a flag for each of their keys would say nothing of which route it is
//! for.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::str::FromStr;
use std::time::Duration;

use http::uri::PathAndQuery;
use serde::{Deserialize, Deserializer, de};
use shortline_sched::units::{Size, Span};
use shortline_web::proxy::UpstreamAddress;
use shortline_web::proxy::routes::{Route, Routes};
use shortline_web::proxy::upstream::{Upstream, UpstreamOptions};

/// hyper's parser needs this much.
const HEAD_BYTES_MIN: u64 = 8 << 10;

/// A route as the file has it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouteKeys {
    path: RoutePath,
    #[serde(deserialize_with = "backends")]
    upstream: Vec<UpstreamAddress>,
    connect_time_max: Option<Time>,
    first_byte_time_max: Option<Time>,
    idle_time_max: Option<Time>,
    upload_time_max: Option<Time>,
    tunnel_idle_time_max: Option<Time>,
    connections_max: Option<NonZeroUsize>,
    idle_connections_max: Option<usize>,
    idle_connection_time_max: Option<Time>,
    request_size_max: Option<Size>,
    response_head_size_max: Option<HeadSize>,
    response_fields_max: Option<NonZeroUsize>,
    buffer_size_max: Option<Size>,
    buffers_size_max: Option<Size>,
    failures_max: Option<NonZeroU32>,
    down_time: Option<Time>,
    health_path: Option<HealthPath>,
    health_every: Option<Time>,
    trust_forwarded: Option<bool>,
}

/// A route as it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteSettings {
    path: String,
    upstream: UpstreamOptions,
}

/// The routes of a file.
///
/// # Errors
/// Names a path that is given twice.
pub fn resolve(routes: Vec<RouteKeys>) -> Result<Vec<RouteSettings>, String> {
    let mut resolved: Vec<RouteSettings> = Vec::new();
    for keys in routes {
        let path = keys.path.0.clone();
        if resolved.iter().any(|known| known.path == path) {
            return Err(format!(
                "route {path}: is there twice: give each path once, with all its backends"
            ));
        }
        let upstream = keys.options();
        resolved.push(RouteSettings { path, upstream });
    }
    Ok(resolved)
}

/// The routes at work; call inside a runtime.
pub fn open(routes: &[RouteSettings]) -> Routes {
    let open = |route: &RouteSettings| Route {
        path: route.path.clone(),
        upstream: Upstream::open(route.upstream.clone()),
        admission: None,
    };
    Routes::new(routes.iter().map(open).collect())
}

impl RouteKeys {
    fn options(self) -> UpstreamOptions {
        let defaults = UpstreamOptions::default();
        let time = |given: Option<Time>, default| given.map_or(default, |time| time.0);
        let bytes = |given: Option<Size>, default| {
            given.map_or(default, |size| {
                usize::try_from(size.bytes()).unwrap_or(usize::MAX)
            })
        };
        let count = |given: Option<NonZeroUsize>, default| given.map_or(default, NonZeroUsize::get);
        UpstreamOptions {
            backends: self.upstream,
            connect_time_max: time(self.connect_time_max, defaults.connect_time_max),
            first_byte_time_max: time(self.first_byte_time_max, defaults.first_byte_time_max),
            idle_time_max: time(self.idle_time_max, defaults.idle_time_max),
            upload_time_max: time(self.upload_time_max, defaults.upload_time_max),
            tunnel_idle_time_max: time(self.tunnel_idle_time_max, defaults.tunnel_idle_time_max),
            connections_max: count(self.connections_max, defaults.connections_max),
            idle_connections_max: self
                .idle_connections_max
                .unwrap_or(defaults.idle_connections_max),
            idle_connection_time_max: time(
                self.idle_connection_time_max,
                defaults.idle_connection_time_max,
            ),
            request_bytes_max: self
                .request_size_max
                .map_or(defaults.request_bytes_max, Size::bytes),
            response_head_bytes_max: bytes(
                self.response_head_size_max.map(|size| size.0),
                defaults.response_head_bytes_max,
            ),
            response_fields_max: count(self.response_fields_max, defaults.response_fields_max),
            buffer_bytes_max: bytes(self.buffer_size_max, defaults.buffer_bytes_max),
            buffers_bytes_max: bytes(self.buffers_size_max, defaults.buffers_bytes_max),
            failures_max: self
                .failures_max
                .map_or(defaults.failures_max, NonZeroU32::get),
            down_time: time(self.down_time, defaults.down_time),
            health_path: self.health_path.map(|path| path.0),
            health_every: time(self.health_every, defaults.health_every),
            trust_forwarded: self.trust_forwarded.unwrap_or(defaults.trust_forwarded),
        }
    }
}

/// A value of the file that is refused.
#[derive(Debug, thiserror::Error)]
enum ValueError {
    #[error("`{0}` is no path: give one that starts with a slash and has no ? or #, such as /api")]
    Path(String),
    #[error("`{0}` is no path with or without a query: give one such as /health")]
    HealthPath(String),
    #[error("must be more than 0, such as 5s")]
    NoTime,
    #[error("{0} is out of range: must be 8KiB or more")]
    HeadSize(Size),
    #[error("no backend: give one at least, such as upstream = [\"127.0.0.1:9000\"]")]
    NoBackend,
}

#[derive(Clone, Debug, PartialEq)]
struct RoutePath(String);

impl FromStr for RoutePath {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let plain = text
            .parse::<PathAndQuery>()
            .is_ok_and(|path| path.path() == text);
        if text.starts_with('/') && plain {
            Ok(Self(text.to_owned()))
        } else {
            Err(ValueError::Path(text.to_owned()))
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct HealthPath(PathAndQuery);

impl FromStr for HealthPath {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text.parse() {
            Ok(path) if text.starts_with('/') => Ok(Self(path)),
            _ => Err(ValueError::HealthPath(text.to_owned())),
        }
    }
}

/// A time above 0.
#[derive(Clone, Debug, PartialEq)]
struct Time(Duration);

impl TryFrom<Span> for Time {
    type Error = ValueError;

    fn try_from(span: Span) -> Result<Self, ValueError> {
        match span.duration() {
            Duration::ZERO => Err(ValueError::NoTime),
            time => Ok(Self(time)),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct HeadSize(Size);

impl TryFrom<Size> for HeadSize {
    type Error = ValueError;

    fn try_from(size: Size) -> Result<Self, ValueError> {
        if size.bytes() < HEAD_BYTES_MIN {
            return Err(ValueError::HeadSize(size));
        }
        Ok(Self(size))
    }
}

fn backends<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<UpstreamAddress>, D::Error> {
    let texts = Vec::<String>::deserialize(source)?;
    if texts.is_empty() {
        return Err(de::Error::custom(ValueError::NoBackend));
    }
    texts.iter().map(|text| parsed(text)).collect()
}

fn parsed<T: FromStr<Err: fmt::Display>, E: de::Error>(text: &str) -> Result<T, E> {
    text.parse().map_err(E::custom)
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

macro_rules! checked {
    ($type:ident, $from:ident) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
                Self::try_from($from::deserialize(source)?).map_err(de::Error::custom)
            }
        }
    };
}

from_text!(RoutePath);
from_text!(HealthPath);
checked!(Time, Span);
checked!(HeadSize, Size);
