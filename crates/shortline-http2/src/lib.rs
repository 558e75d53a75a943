//! The server's side of HTTP/2 (RFC 9113): frames, header blocks, streams and windows, without I/O.
//!
//! [`Server`] gets the bytes that were read and says what is to be written. It gives each request with
//! a [`Body`] and an [`Answer`]. Data is sent when the caller hands it over: this room has no order of
//! its own, so the order is the scheduler's, frame by frame. What is handed over is in the output, of
//! which there is little at a time ([`Answer::room`]).
//!
//! Departures: no push (RFC 9113 8.4), no priorities (5.3, they are the scheduler's), no extended `CONNECT` (RFC 8441).
//!
//! What a client may make others pay is bounded: streams ([`Limits`]), fields, the frames of a header block,
//! resets without an answer, faults, what waits to be read (a window of 64 KB for the connection), and what waits to be
//! written.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod connection;
mod error;
mod frame;
mod handles;
mod hpack;
mod output;
mod request;
mod streams;

pub use connection::{Limits, Room};
pub use error::{ConnectionError, Reason, StreamOver};
pub use handles::{Answer, Body, Request, Server};
