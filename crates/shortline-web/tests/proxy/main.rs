//! The reverse proxy over real sockets: between clients that send exactly what a test says and
//! backends that do the same, and in front of nginx.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod backend;
mod bodies;
mod choosing;
mod client;
mod exchanges;
mod faults;
mod front;
mod http2;
mod http2_backends;
mod nginx;
mod smuggling;
mod tunnels;
