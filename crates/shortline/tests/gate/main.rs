//! `shortline gate` as its users run it: the program itself, real sockets, real signals, a real
//! PostgreSQL behind it, a real browser in front of its page.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod addresses;
mod admin;
mod application;
#[path = "../serve/bad_requests.rs"]
mod bad_requests;
#[path = "../serve/browser.rs"]
mod browser;
mod calibrate;
#[path = "../serve/client.rs"]
#[allow(dead_code)]
mod client;
mod command_line;
mod console;
mod first_contact;
#[path = "../serve/frame.rs"]
mod frame;
mod gate;
mod handover;
mod http;
mod import;
mod kinds;
mod page;
mod postgres;
#[path = "../serve/process.rs"]
#[allow(dead_code)]
mod process;
mod relayed;
mod servers;
mod sight;
