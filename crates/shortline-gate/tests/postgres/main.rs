//! The PostgreSQL relay over real sockets, in front of a real PostgreSQL in a folder of its own.
//!
//! Where PostgreSQL is missing every test says so in a line and does nothing.
#![allow(clippy::unwrap_used)]

mod admission;
mod cancel;
mod cluster;
mod faults;
mod ledger;
mod locks;
mod memory;
mod pool;
mod pool_raw;
mod pool_state;
mod raw;
mod relay;
mod replicas;
mod replication;
mod secure;
mod sessions;
mod shares;
mod tenants;
mod terms;
