//! The MySQL relay before a real MariaDB, over real sockets: the driver `mysql_async`, the `mariadb`
//! program, and packets by hand. Without MariaDB the tests are skipped, and say so.
#![allow(clippy::unwrap_used)]

mod caching_sha2;
mod faults;
mod gated;
mod ledger;
mod locks;
mod login;
mod memory;
mod passing;
mod pool;
mod pool_found;
mod pool_prepared;
mod pool_prepared_play;
mod pool_prepared_raw;
mod pool_state;
mod raw;
mod replicas;
mod security;
mod server;
mod units;
