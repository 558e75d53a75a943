//! TPC-W's online bookstore, with which 002 (4.3, 4.4) drives its databases.
//!
//! - [`application`] is an ordinary web application: fourteen pages over a pool of plain PostgreSQL
//!   or MariaDB connections. It knows nothing of gates. To run it through one, its database address
//!   is the gate's.
//! - [`population`] fills the tables by the specification's rules, from a seed.
//! - [`browser`] emulates the visitors, in closed and in open loops, and records each interaction.
//! - [`bed`] runs a private database server that does not outlive the process that started it.
//!
//! The specification is TPC Benchmark W (Web Commerce) 1.8, February 2002, of the Transaction
//! Processing Performance Council; "clause" means its clauses. As in 002, what affects only the
//! price is not implemented: secure pages, payment gateways, room for 180 days of orders.
#![forbid(unsafe_code)]

pub mod application;
pub mod bed;
pub mod browser;
mod images;
pub mod interaction;
mod interactions;
mod locks;
mod page;
pub mod population;
mod request;
mod schema;
mod store;
mod words;

pub use interaction::Interaction;
pub use locks::Locking;
pub use store::{Database, Kind, Statements, StoreError};
