//! What the access log gets to know of every response.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName};
use shortline_tls::ClientIdentity;

use crate::identity::Span;

/// One response, finished or not. Bytes are as the client or the backend sent them.
#[derive(Clone, Debug)]
pub struct AccessRecord {
    /// The client.
    pub peer: IpAddr,
    /// The user that the request names with `Authorization: Basic` (RFC 7617). Nobody has checked it here.
    pub user: Option<Vec<u8>>,
    /// The host that the request names, without a port.
    pub host: Option<String>,
    /// The site that answers.
    pub site: Option<String>,
    /// The request's method.
    pub method: String,
    /// The request's target as received, path and query.
    pub target: String,
    /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2.0`.
    pub version: &'static str,
    /// The version of TLS, such as `TLSv1.3`. `None` without TLS.
    pub tls: Option<&'static str>,
    /// Who asks, by the certificate that the site wanted.
    pub certificate: Option<Arc<ClientIdentity>>,
    /// The request's id.
    pub request_id: String,
    /// The id of the trace that it belongs to.
    pub trace_id: Option<String>,
    /// Our part of the trace, if it is recorded.
    pub span: Option<Span>,
    /// The response's status.
    pub status: u16,
    /// Body bytes handed to the connection.
    pub body_bytes: u64,
    /// The values of the fields that the log keeps, in its order.
    pub fields: FieldValues,
    /// From the complete request to the first grant.
    pub wait: Duration,
    /// The part of it that the response waited in the uplink's queue, once it was decided.
    pub queue: Duration,
    /// From the first grant until the last byte was handed over or the response was given up.
    pub send: Duration,
    /// The backend that answered, or the last one asked.
    pub backend: Option<BackendRecord>,
    /// When the request was complete.
    pub time: SystemTime,
    /// Whether the whole response was handed over.
    pub complete: bool,
}

/// The backend's part in a response.
#[derive(Clone, Debug)]
pub struct BackendRecord {
    /// Its address. `None`: none was asked.
    pub address: Option<String>,
    /// From the complete request until a gate admitted or refused it, if one was asked.
    pub admission: Option<Duration>,
    /// How long the connection took to make. `None`: a kept one was used.
    pub connect: Option<Duration>,
    /// From turning to it until the head of its response, or until it was given up.
    pub head: Option<Duration>,
    /// From turning to it until the last byte of its response. `None`: that never came, or the client left before.
    pub whole: Option<Duration>,
}

/// Header fields that a log keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Of the request.
    pub request: Vec<HeaderName>,
    /// Of the response.
    pub response: Vec<HeaderName>,
}

impl Fields {
    /// No fields.
    pub const NONE: Self = Self {
        request: Vec::new(),
        response: Vec::new(),
    };
}

/// Their values, in the same order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldValues {
    /// Of the request.
    pub request: Vec<Option<Vec<u8>>>,
    /// Of the response.
    pub response: Vec<Option<Vec<u8>>>,
}

/// Receives a record of every response. It must not block: responses wait for it.
pub trait AccessLog: Send + Sync {
    /// The fields that it keeps; none, unless it says otherwise.
    fn fields(&self) -> &Fields {
        static NONE: Fields = Fields::NONE;
        &NONE
    }

    /// Called when a response has ended.
    fn log(&self, record: AccessRecord);
}

/// The logs of a server: its own, and those of sites that have another or none.
#[derive(Clone, Default)]
pub struct AccessLogs {
    /// The server's own.
    pub main: Option<Arc<dyn AccessLog>>,
    /// By the site's label. `None`: nobody hears of its responses.
    pub by_site: HashMap<String, Option<Arc<dyn AccessLog>>>,
}

impl AccessLogs {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.main.is_none() && self.by_site.is_empty()
    }

    /// That of a site, by its label.
    pub fn of(&self, site: impl FnOnce() -> Option<String>) -> Option<&Arc<dyn AccessLog>> {
        let own = match self.by_site.is_empty() {
            true => None,
            false => site().and_then(|site| self.by_site.get(&site)),
        };
        own.unwrap_or(&self.main).as_ref()
    }
}

impl From<Option<Arc<dyn AccessLog>>> for AccessLogs {
    fn from(main: Option<Arc<dyn AccessLog>>) -> Self {
        Self {
            main,
            by_site: HashMap::new(),
        }
    }
}

/// The values of `names`. Several of one name become a list.
pub(crate) fn values_of(names: &[HeaderName], headers: &HeaderMap) -> Vec<Option<Vec<u8>>> {
    let value_of = |name: &HeaderName| {
        let mut values = headers.get_all(name).iter();
        let mut joined = values.next()?.as_bytes().to_vec();
        for value in values {
            joined.extend_from_slice(b", ");
            joined.extend_from_slice(value.as_bytes());
        }
        Some(joined)
    };
    names.iter().map(value_of).collect()
}
