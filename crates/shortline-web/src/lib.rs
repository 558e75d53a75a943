//! HTTP/1.1 and HTTP/2 over TCP and TLS, HTTP/3 over QUIC: static files, and a reverse proxy.
//!
//! The path of a request: [`server`] accepts a connection and enters it in the `watch` registry.
//! `connection` finds out which protocol it speaks. [`http1`] or `http2` (on `shortline_http2`) reads a
//! request; [`http3`] (on h3 and quinn) has ports of its own. `place` finds which of the [`sites`] it is for, and which of its
//! [`rules`]. `respond` asks the site's [`files`] for the response and the link when it may start. `outgoing` reads and hands over
//! one quantum per grant. `account` counts and logs it. Requests below a route of the [`proxy`] go to an application server
//! instead; its response leaves the same way.
//!
//! This crate knows HTTP and files. The link decides the order in which responses leave.
#![forbid(unsafe_code)]

mod account;
pub mod chunked;
mod clients;
pub mod comparison;
pub mod compress;
mod connection;
mod context;
mod disk;
pub mod files;
pub mod http1;
mod http2;
#[cfg(feature = "http3")]
pub mod http3;
#[cfg(not(feature = "http3"))]
#[path = "no_http3.rs"]
pub mod http3;
mod identity;
mod ledger;
mod limits;
mod log;
pub mod message;
mod outgoing;
pub mod pace;
mod piped;
mod place;
mod plaintext;
pub mod programs;
pub mod proxy;
pub mod proxy_header;
pub mod request;
mod respond;
pub mod response_cache;
pub mod rules;
pub mod server;
mod session;
mod shared_fields;
pub mod sites;
mod socket;
pub mod trace_context;
mod unwanted;
mod watch;
mod write_through;

pub use clients::Clients;
pub use context::Settings;
pub use identity::Span;
pub use ledger::{NamedTimes, RESPONSE_SECONDS, ResponseCounts, ResponseTimes};
pub use limits::{Limits, SiteLimits};
pub use log::{AccessLog, AccessLogs, AccessRecord, BackendRecord, FieldValues, Fields};
