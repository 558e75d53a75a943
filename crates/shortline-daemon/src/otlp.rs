//! Where spans are exported to, and which: options that each build understands. What exports them is in `spans`, behind the
//! cargo feature `otel`; a build without it refuses an address.

use std::str::FromStr;

use http::Uri;
use shortline_web::trace_context::Sampling;

/// The path of traces (OTLP 1.x, OTLP/HTTP).
const TRACES: &str = "/v1/traces";
const MILLIONTHS: f64 = 1e6;

/// A collector's address: `http://host:port`, and a path if it is another than `/v1/traces`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector(String);

/// A text that is no address of a collector, or a build that has no use for one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollectorError {
    /// This build exports nothing.
    #[error("this program exports no traces: build it with `cargo build --features otel`")]
    NotBuilt,
    /// TLS.
    #[error(
        "`{0}`: is sent without TLS: give http:// and the address of a collector on this machine or network"
    )]
    Tls(String),
    /// Something else.
    #[error("`{0}` is no address of a collector: write it like http://127.0.0.1:4318")]
    Other(String),
}

impl FromStr for Collector {
    type Err = CollectorError;

    fn from_str(text: &str) -> Result<Self, CollectorError> {
        if !cfg!(feature = "otel") {
            return Err(CollectorError::NotBuilt);
        }
        Self::read(text)
    }
}

impl Collector {
    fn read(text: &str) -> Result<Self, CollectorError> {
        let shown = || text.escape_debug().to_string();
        let uri: Uri = text.parse().map_err(|_| CollectorError::Other(shown()))?;
        match (uri.scheme_str(), uri.host()) {
            (Some("http"), Some(_)) if uri.query().is_none() => {}
            (Some("https"), _) => return Err(CollectorError::Tls(shown())),
            _ => return Err(CollectorError::Other(shown())),
        }
        Ok(Self(match uri.path() {
            "/" | "" => format!("{}{TRACES}", text.trim_end_matches('/')),
            _ => text.to_owned(),
        }))
    }

    /// Where traces are sent.
    pub fn endpoint(&self) -> &str {
        &self.0
    }
}

/// The part of all traces that is recorded, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(pub Sampling);

/// A text that is no part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no part of all traces: write a number from 0 to 1, such as 0.01")]
pub struct ShareError(String);

impl FromStr for Share {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Self, ShareError> {
        match text.parse::<f64>() {
            Ok(share) if (0.0..=1.0).contains(&share) => {
                Ok(Self(Sampling((share * MILLIONTHS).round() as u32)))
            }
            _ => Err(ShareError(text.escape_debug().to_string())),
        }
    }
}

impl Default for Share {
    fn default() -> Self {
        Self(Sampling(10_000))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_address_may_have_a_path() {
        let read = |text: &str| Collector::read(text).map(|read| read.0);
        let usual = Ok("http://127.0.0.1:4318/v1/traces".to_owned());
        assert_eq!(read("http://127.0.0.1:4318"), usual);
        assert_eq!(read("http://127.0.0.1:4318/"), usual);
        assert_eq!(read("http://a/b"), Ok("http://a/b".to_owned()));
        assert!(matches!(read("https://a"), Err(CollectorError::Tls(_))));
        for other in ["a:4318", "", "grpc://a", "http://a/?b", "\u{1b}"] {
            assert!(
                matches!(read(other), Err(CollectorError::Other(_))),
                "{other}"
            );
        }
    }

    #[test]
    fn a_part_is_between_none_and_all() {
        assert_eq!("0.25".parse(), Ok(Share(Sampling(250_000))));
        assert_eq!("1".parse(), Ok(Share(Sampling(1_000_000))));
        for wrong in ["1.1", "-1", "NaN", "10%", ""] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
    }
}
