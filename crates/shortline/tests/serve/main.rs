//! `shortline serve` as its users run it: the program itself, real sockets, real signals.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod admin;
mod announced;
mod bad_requests;
mod bandwidth;
mod browser;
mod cache_folder;
mod certificates;
mod certified;
mod client;
mod client_certificates;
mod command_line;
mod compression;
mod damaged_files;
mod external_account;
mod failures;
mod fastcgi;
mod forward_auth;
mod frame;
mod gated_routes;
mod grpc;
mod guards;
mod handover;
mod hostile;
mod http1;
mod http2;
#[cfg(feature = "http3")]
mod http3;
mod malformed;
mod mirror;
mod nginx;
mod ocsp;
mod on_demand;
mod order;
mod packages;
mod page;
mod pebble;
mod php;
mod pictures;
mod piped;
mod process;
mod responder;
mod response_cache;
mod root;
mod routes;
mod rules;
mod seeing;
mod send_proxy;
mod servers;
mod service;
mod services;
mod signals;
mod site_keys;
mod sites;
#[cfg(feature = "otel")]
mod spans;
mod systemd;
mod tls;
mod unix_sockets;
