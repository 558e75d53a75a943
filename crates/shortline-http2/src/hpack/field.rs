//! A field of a request as the table of a connection keeps it: parsed, so that a field that comes
//! again is parsed once.

use std::sync::LazyLock;

use bytes::Bytes;
use http::Method;
use http::header::{HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};

/// A field of a request.
#[derive(Clone, Debug)]
pub enum Field {
    /// `:method`
    Method(Method),
    /// `:scheme`
    Scheme(Scheme),
    /// `:authority`
    Authority(Authority),
    /// `:path`
    Path(PathAndQuery),
    /// One that is not a pseudo-header field.
    Regular(HeaderName, HeaderValue),
    /// A field that makes its request malformed (RFC 9113 8.1.1): not of a request, or not a value of its field. What
    /// comes later may name it.
    Malformed(Name),
}

/// A field's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// `:method`
    Method,
    /// `:scheme`
    Scheme,
    /// `:authority`
    Authority,
    /// `:path`
    Path,
    /// One that is not a pseudo-header field.
    Regular(HeaderName),
    /// No name of a request's field.
    Other(Bytes),
}

impl Name {
    /// What these bytes name. Capitals are refused (RFC 9113 8.2.1).
    pub fn new(bytes: &[u8]) -> Self {
        match bytes {
            b":method" => Self::Method,
            b":scheme" => Self::Scheme,
            b":authority" => Self::Authority,
            b":path" => Self::Path,
            other => match HeaderName::from_lowercase(other) {
                Ok(name) => Self::Regular(name),
                Err(_) => Self::Other(Bytes::copy_from_slice(other)),
            },
        }
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Method | Self::Scheme => 7,
            Self::Authority => 10,
            Self::Path => 5,
            Self::Regular(name) => name.as_str().len(),
            Self::Other(bytes) => bytes.len(),
        }
    }
}

impl Field {
    /// The field of this name with this value.
    pub fn new(name: Name, value: &[u8]) -> Self {
        let bytes = || Bytes::copy_from_slice(value);
        let parsed = match &name {
            Name::Method => Method::from_bytes(value).ok().map(Self::Method),
            Name::Scheme => Scheme::try_from(value).ok().map(Self::Scheme),
            Name::Authority => Authority::from_maybe_shared(bytes())
                .ok()
                .map(Self::Authority),
            Name::Path if value.is_empty() => None,
            Name::Path => PathAndQuery::from_maybe_shared(bytes())
                .ok()
                .map(Self::Path),
            Name::Regular(name) => HeaderValue::from_maybe_shared(bytes())
                .ok()
                .map(|value| Self::Regular(name.clone(), value)),
            Name::Other(_) => None,
        };
        parsed.unwrap_or(Self::Malformed(name))
    }

    /// Its name.
    pub fn name(&self) -> Name {
        match self {
            Self::Method(_) => Name::Method,
            Self::Scheme(_) => Name::Scheme,
            Self::Authority(_) => Name::Authority,
            Self::Path(_) => Name::Path,
            Self::Regular(name, _) => Name::Regular(name.clone()),
            Self::Malformed(name) => name.clone(),
        }
    }
}

/// An entry of the static table: a field, and the bytes of its name and value.
pub struct Fixed {
    pub field: Field,
    pub bytes: usize,
}

/// The static table (RFC 7541 Appendix A), from index 1 on.
pub static FIXED: LazyLock<Vec<Fixed>> = LazyLock::new(|| {
    let fixed = |(name, value): &(&str, &str)| Fixed {
        field: Field::new(Name::new(name.as_bytes()), value.as_bytes()),
        bytes: name.len() + value.len(),
    };
    FIXED_TEXT.iter().map(fixed).collect()
});

#[rustfmt::skip]
const FIXED_TEXT: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"),
    (":path", "/index.html"), (":scheme", "http"), (":scheme", "https"), (":status", "200"),
    (":status", "204"), (":status", "206"), (":status", "304"), (":status", "400"),
    (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""),
    ("accept", ""), ("access-control-allow-origin", ""), ("age", ""), ("allow", ""),
    ("authorization", ""), ("cache-control", ""), ("content-disposition", ""),
    ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""),
    ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
    ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""),
    ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""),
    ("via", ""), ("www-authenticate", ""),
];
