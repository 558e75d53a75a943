//! Keys of `[site]` and `[[site]]` that only the file has.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use http::HeaderValue;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use shortline_daemon::keys::some_from_text;
use shortline_daemon::log_line::LineFormat;
use shortline_sched::units::{Size, Span};
use shortline_web::SiteLimits;
use shortline_web::compress::Compress;

use super::super::options::SiteKeys;

/// The sites of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum SiteTables {
    /// `[site]`, or none: flags lie over it.
    One(Box<SiteKeys>),
    /// `[[site]]`, once for each.
    Several(Vec<SiteKeys>),
}

impl Default for SiteTables {
    fn default() -> Self {
        Self::One(Box::default())
    }
}

impl<'de> Deserialize<'de> for SiteTables {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Tables)
    }
}

/// Takes a table or an array of tables. Unlike an untagged enum it keeps the place of an error.
struct Tables;

impl<'de> Visitor<'de> for Tables {
    type Value = SiteTables;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table [site], or several [[site]]")
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<SiteTables, A::Error> {
        SiteKeys::deserialize(MapAccessDeserializer::new(table))
            .map(|keys| SiteTables::One(Box::new(keys)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, tables: A) -> Result<SiteTables, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(tables)).map(SiteTables::Several)
    }
}

/// What plain HTTP gets from a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlainHttp {
    /// The same by HTTPS.
    Redirect,
    /// What HTTPS gets.
    Serve,
}

/// Certificates that the server gets by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Itself {
    /// For each name of the site.
    Auto,
    /// For each name that a client asks for.
    OnDemand,
}

/// Another word.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}`: write \"auto\" or \"on-demand\" for certificates by themselves, or give tls-cert and tls-key instead"
)]
pub struct ItselfError(String);

impl FromStr for Itself {
    type Err = ItselfError;

    fn from_str(text: &str) -> Result<Self, ItselfError> {
        match text {
            "auto" => Ok(Self::Auto),
            "on-demand" => Ok(Self::OnDemand),
            _ => Err(ItselfError(text.escape_debug().to_string())),
        }
    }
}

/// What is compressed on the fly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressWhat(pub Compress);

/// A text that says nothing about that.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not what can be compressed: want files, all (responses of backends, too) or off")]
pub struct CompressWhatError(String);

impl FromStr for CompressWhat {
    type Err = CompressWhatError;

    fn from_str(text: &str) -> Result<Self, CompressWhatError> {
        match text {
            "files" => Ok(Self(Compress::FILES)),
            "all" => Ok(Self(Compress::ALL)),
            "off" => Ok(Self(Compress::NONE)),
            _ => Err(CompressWhatError(text.escape_debug().to_string())),
        }
    }
}

/// `[site.log]`: an access log of its own, in place of that of `[log]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SiteLogKeys {
    /// The file; `-` is standard output, and `off` no log.
    pub access: PathBuf,
    /// What a line has. `None`: what `[log]` says.
    #[serde(default, deserialize_with = "some_from_text")]
    pub format: Option<LineFormat>,
}

/// `[site.limits]`: those that are known once a request has named the site.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SiteLimitKeys {
    request_size_max: Option<Size>,
    requests_max: Option<NonZeroUsize>,
    request_time_max: Option<Span>,
}

impl SiteLimitKeys {
    /// The limits.
    pub fn resolve(&self) -> SiteLimits {
        SiteLimits {
            request_bytes_max: self.request_size_max.map(Size::bytes),
            requests_max: self.requests_max.map(NonZeroUsize::get),
            request_time_max: self.request_time_max.map(Span::duration),
        }
    }
}

/// The value of `Strict-Transport-Security` (RFC 6797, 6.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportSecurity(pub HeaderValue);

/// A text that is no such value.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is no Strict-Transport-Security: write it like max-age=31536000 or max-age=31536000; includeSubDomains"
)]
pub struct TransportSecurityError(String);

impl FromStr for TransportSecurity {
    type Err = TransportSecurityError;

    fn from_str(text: &str) -> Result<Self, TransportSecurityError> {
        let mut directives = text.split(';').map(str::trim);
        let is_age = |directive: &str| {
            let seconds = directive.strip_prefix("max-age=");
            seconds.is_some_and(|seconds| seconds.parse::<u32>().is_ok())
        };
        let is_other = |directive: &str| ["includeSubDomains", "preload"].contains(&directive);
        let is_sound = directives.next().is_some_and(is_age) && directives.all(is_other);
        match HeaderValue::from_str(text) {
            Ok(value) if is_sound => Ok(Self(value)),
            _ => Err(TransportSecurityError(text.escape_debug().to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transport_security_begins_with_an_age() {
        for text in ["max-age=0", "max-age=31536000; includeSubDomains; preload"] {
            assert!(text.parse::<TransportSecurity>().is_ok(), "{text}");
        }
        for text in [
            "",
            "true",
            "365d",
            "max-age=",
            "includeSubDomains",
            "max-age=1; x",
            "max-age=1\r\n",
        ] {
            assert!(text.parse::<TransportSecurity>().is_err(), "{text}");
        }
    }
}
