//! Values of a route that are read from text.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use http::uri::PathAndQuery;
use serde::{Deserialize, Deserializer, de};
use shortline_sched::units::{Size, Span};
use shortline_web::proxy::HttpVersion;

/// What backends send is as long as others accept it, and more.
const HEAD_BYTES_MIN: u64 = 8 << 10;

/// A path prefix.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutePath(pub String);

impl FromStr for RoutePath {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let plain = text
            .parse::<PathAndQuery>()
            .is_ok_and(|path| path.path() == text);
        if text.contains('*') {
            return Err(ValueError::Wildcard(
                text.to_owned(),
                below(text).to_owned(),
            ));
        }
        if text.starts_with('/') && plain {
            Ok(Self(text.to_owned()))
        } else {
            Err(ValueError::Path(text.to_owned()))
        }
    }
}

/// The path before a wildcard, without its slash.
fn below(text: &str) -> &str {
    let before = text.split('*').next().unwrap_or_default();
    match before.trim_end_matches('/') {
        "" => "/",
        path => path,
    }
}

/// A path with or without a query.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthPath(pub PathAndQuery);

impl FromStr for HealthPath {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text.parse() {
            Ok(path) if text.starts_with('/') => Ok(Self(path)),
            _ => Err(ValueError::HealthPath(text.to_owned())),
        }
    }
}

/// The version of HTTP that backends are spoken to in.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpKey(pub HttpVersion);

impl FromStr for HttpKey {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        Ok(Self(match text {
            "1" => HttpVersion::One,
            "2" => HttpVersion::Two,
            "auto" => HttpVersion::Auto,
            _ => return Err(ValueError::Http(text.to_owned())),
        }))
    }
}

/// Where a name server is: an address, at port 53 unless it says another.
#[derive(Clone, Debug, PartialEq)]
pub struct NameServer(pub SocketAddr);

impl FromStr for NameServer {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let alone = || text.parse().map(|ip: IpAddr| SocketAddr::new(ip, 53));
        let address = text.parse().or_else(|_| alone());
        address
            .map(Self)
            .map_err(|_| ValueError::NameServer(text.escape_debug().to_string()))
    }
}

/// A time above 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Time(pub Duration);

impl TryFrom<Span> for Time {
    type Error = ValueError;

    fn try_from(span: Span) -> Result<Self, ValueError> {
        match span.duration() {
            Duration::ZERO => Err(ValueError::NoTime),
            time => Ok(Self(time)),
        }
    }
}

/// The size of a head.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadSize(pub Size);

impl TryFrom<Size> for HeadSize {
    type Error = ValueError;

    fn try_from(size: Size) -> Result<Self, ValueError> {
        if size.bytes() < HEAD_BYTES_MIN {
            return Err(ValueError::HeadSize(size));
        }
        Ok(Self(size))
    }
}

/// Reads a value that is a text.
///
/// # Errors
/// What is wrong with it.
pub fn parsed<T: FromStr<Err: fmt::Display>, E: de::Error>(text: &str) -> Result<T, E> {
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
from_text!(HttpKey);
checked!(Time, Span);
checked!(HeadSize, Size);

/// A value of the file that is refused.
#[derive(Debug, thiserror::Error)]
pub enum ValueError {
    /// Not a route's path.
    #[error(
        "`{0}` is not a path: give one that starts with a slash and has no ? or #, such as /api"
    )]
    Path(String),
    /// A path with a wildcard.
    #[error(
        "`{0}`: a route is for its path and all below it, and a * would stand for itself: write {1}"
    )]
    Wildcard(String, String),
    /// Not a path to request.
    #[error("`{0}` is not a path with or without a query: give one such as /health")]
    HealthPath(String),
    /// Not a version of HTTP.
    #[error("`{0}` is no version of HTTP: give \"1\", \"2\" or \"auto\"")]
    Http(String),
    /// Not an address.
    #[error("`{0}` is no address of a name server: give one such as 10.0.0.2 or 10.0.0.2:5353")]
    NameServer(String),
    /// A time of 0.
    #[error("must be more than 0, such as 5s")]
    NoTime,
    /// Too little for a head.
    #[error("{0} is out of range: must be 8KiB or more")]
    HeadSize(Size),
}
