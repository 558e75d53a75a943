//! What the commands that serve until they are told to end have in common, whatever they serve.
//!
//! | part | what it does |
//! |---|---|
//! | [`process`] | signals, systemd, the log of the process, the limit of open files, the runtime |
//! | `file` | reads a configuration file; errors name file, line and key |
//! | [`keys`], [`given`] | an option is a flag and a key; flags lie over the file, the file over the default |
//! | [`sockets`] | listening sockets: bound here, or handed over by systemd |
//! | [`admin`] | the endpoint that tells how the server does: pages and Prometheus text |
//! | [`access_log`], [`log_line`] | a line for each response, written by a thread of its own; what the line has |
//! | [`otlp`], `spans` | where spans of requests are exported to, and what exports them (feature `otel`) |
//! | [`warnings`] | the last warnings and errors of the log |
//! | [`estimates`] | what a gate has learnt, kept in a file over a restart |
#![forbid(unsafe_code)]

pub mod access_log;
pub mod admin;
pub mod estimates;
pub mod file;
pub mod given;
pub mod keys;
pub mod log_line;
pub mod otlp;
pub mod process;
pub mod sockets;
#[cfg(feature = "otel")]
pub mod spans;
pub mod warnings;
