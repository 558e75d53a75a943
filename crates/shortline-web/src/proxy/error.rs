//! Why a proxied request has no response from a backend, and what the client gets instead.

use std::error::Error;
use std::io;

use http::header::RETRY_AFTER;
use http::{Method, StatusCode};

use shortline_sched::admission::Refusal;

use super::fastcgi::FastCgiError;
use super::head::Ambiguous;
use super::response::BodyError;
use crate::files::Plan;

/// When a client may try again. Nothing better is known.
const RETRY_AFTER_S: u64 = 1;

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The request can be read in two ways, and a backend might read it the other way.
    #[error(transparent)]
    Ambiguous(#[from] Ambiguous),
    /// The gate refused.
    #[error("not admitted")]
    Refused(#[from] Refusal),
    /// As far as is known, no backend is up.
    #[error("no backend is up")]
    NoneUp,
    /// All of the backend's connections are in use, or as many as this client may have.
    #[error("all connections to {backend} that this client may have are in use")]
    Busy {
        /// Its address.
        backend: String,
    },
    /// The backend does not accept a connection.
    #[error("cannot connect to {backend}: {source}")]
    Connect {
        /// Its address.
        backend: String,
        /// The system's error.
        source: io::Error,
    },
    /// The backend did not answer in time.
    #[error("no answer from {backend} in time")]
    Late {
        /// Its address.
        backend: String,
    },
    /// The backend closed its connection, or sent something that is not a response.
    #[error("broken exchange with the backend: {0}")]
    Broken(#[source] BodyError),
    /// The backend has refused the request, and has not processed it (RFC 9113 8.7).
    #[error("{backend} has refused the request")]
    StreamRefused {
        /// Its address.
        backend: String,
    },
    /// The backend switched protocols unasked.
    #[error("the backend switched protocols unasked")]
    UpgradeUnasked,
    /// The request's body ended the exchange.
    #[error(transparent)]
    Upload(#[from] UploadError),
}

impl ProxyError {
    /// The status of the response to the client.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Ambiguous(_) => StatusCode::BAD_REQUEST,
            Self::Refused(_) | Self::NoneUp | Self::Busy { .. } | Self::StreamRefused { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Broken(error) if is_overload(error) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Connect { .. } | Self::Broken(_) | Self::UpgradeUnasked => {
                StatusCode::BAD_GATEWAY
            }
            Self::Late { .. } => StatusCode::GATEWAY_TIMEOUT,
            Self::Upload(UploadError::TooLarge { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Upload(UploadError::Stalled) => StatusCode::REQUEST_TIMEOUT,
            Self::Upload(UploadError::Unmeasured { .. }) => StatusCode::LENGTH_REQUIRED,
            Self::Upload(UploadError::Abandoned | UploadError::Client(_)) => {
                StatusCode::BAD_REQUEST
            }
        }
    }

    /// The response.
    pub fn plan(&self, method: &Method) -> Plan {
        let mut plan = Plan::text(self.status(), method);
        if self.status() == StatusCode::SERVICE_UNAVAILABLE {
            plan.headers
                .change()
                .insert(RETRY_AFTER, RETRY_AFTER_S.into());
        }
        plan
    }
}

/// Whether a backend that is there has too much to do.
fn is_overload(error: &BodyError) -> bool {
    let error = error.downcast_ref::<FastCgiError>();
    error.is_some_and(FastCgiError::is_overload)
}

/// Why a request's body did not reach the backend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UploadError {
    /// It is larger than the route allows.
    #[error("the request's body has more than {bytes_max} bytes, the most allowed")]
    TooLarge {
        /// The most bytes allowed.
        bytes_max: u64,
    },
    /// The backend must know its length before, and it is too long to be held until that is known.
    #[error(
        "the request's body has no Content-Length, which the backend needs, and more than {bytes_max} bytes or many others are held"
    )]
    Unmeasured {
        /// The most bytes held of one.
        bytes_max: usize,
    },
    /// The client stopped sending.
    #[error("the client stopped in the middle of the request's body")]
    Stalled,
    /// The response ended first.
    #[error("the response was over before the request's body")]
    Abandoned,
    /// What the client sent is not a valid body.
    #[error("the request's body is broken: {0}")]
    Client(String),
}

/// An error with its sources, as far as its own text does not name them.
pub(super) fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(behind) = source {
        let said = behind.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = behind.source();
    }
    text
}
