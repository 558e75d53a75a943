//! The rows of `versus`: what each server is asked where nothing is scarce, by whom, and what we must reach.

pub mod results;

use shortline_sched::Policy;
use shortline_testbed::server::{OursMode, Server, Speech};

/// Shortline with its defaults.
pub const OURS: Server = Server::Ours(OursMode::Auto(Policy::Srpt));

/// The servers with files, beside ours.
const FILE_SERVERS: [Server; 3] = [Server::Nginx, Server::H2o, Server::Caddy];
/// The proxies beside ours.
const PROXIES: [Server; 5] = [
    Server::Haproxy,
    Server::Nginx,
    Server::H2o,
    Server::Caddy,
    Server::Envoy,
];

/// What is asked, over which protocol, and by whom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Its name in results.
    pub name: &'static str,
    /// The size of the file.
    pub body_bytes: usize,
    /// TLS and HTTP/2.
    pub speech: Speech,
    /// Whether the file is a backend's.
    pub is_proxied: bool,
    /// Whether each request has a connection of its own.
    pub connects: bool,
    /// Our work per processor second over that of the best of the others, at least.
    pub target: f64,
}

/// What an experiment of this kind runs.
#[derive(Clone, Debug)]
pub struct Versus {
    /// Its rows, in turn.
    pub rows: Vec<Row>,
}

/// Every row.
pub const ROWS: [Row; 16] = [
    files("1 KB", 1_000, 1.15),
    files("10 KB", 10_000, 1.1),
    files("100 KB", 100_000, 1.05),
    files("1 MB", 1_000_000, 1.05),
    // Not kept in memory by ours.
    files("10 MB", 10_000_000, 1.05),
    over_tls(files("TLS, 1 KB", 1_000, 1.2)),
    over_tls(files("TLS, 1 MB", 1_000_000, 1.4)),
    over_tls(files("TLS, 10 MB", 10_000_000, 1.4)),
    connecting(over_tls(files("TLS, new connections", 1_000, 1.6))),
    over_http2(files("HTTP/2, 1 KB", 1_000, 1.5)),
    over_http2(over_tls(files("HTTP/2 over TLS, 10 KB", 10_000, 1.05))),
    proxied(files("proxy, 1 KB", 1_000, 1.1)),
    proxied(files("proxy, 10 KB", 10_000, 1.1)),
    proxied(files("proxy, 1 MB", 1_000_000, 1.1)),
    proxied(over_tls(files("proxy behind TLS, 1 KB", 1_000, 1.1))),
    connecting(files("new connections, 1 KB", 1_000, 1.05)),
];

const fn files(name: &'static str, body_bytes: usize, target: f64) -> Row {
    Row {
        name,
        body_bytes,
        speech: Speech {
            tls: false,
            http2: false,
            http3: false,
        },
        is_proxied: false,
        connects: false,
        target,
    }
}

const fn over_tls(mut row: Row) -> Row {
    row.speech.tls = true;
    row
}

const fn over_http2(mut row: Row) -> Row {
    row.speech.http2 = true;
    row
}

const fn proxied(mut row: Row) -> Row {
    row.is_proxied = true;
    row
}

const fn connecting(mut row: Row) -> Row {
    row.connects = true;
    row
}

impl Row {
    /// The row of that name.
    pub fn named(name: &str) -> Option<Self> {
        ROWS.into_iter().find(|row| row.name == name)
    }

    /// Ours, and who else can do it.
    pub fn servers(&self) -> Vec<Server> {
        let others: &[Server] = if self.is_proxied {
            &PROXIES
        } else {
            &FILE_SERVERS
        };
        [OURS].into_iter().chain(others.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_row_is_found_by_its_name() {
        for row in ROWS {
            assert_eq!(Row::named(row.name).unwrap(), row);
        }
        assert_eq!(Row::named("2 KB"), None);
    }

    #[test]
    fn only_proxies_stand_beside_a_proxy() {
        let proxy = Row::named("proxy, 1 KB").unwrap().servers();
        assert!(proxy.contains(&Server::Haproxy) && proxy[0] == OURS);
        let files = Row::named("1 MB").unwrap().servers();
        assert!(!files.contains(&Server::Haproxy) && files.contains(&Server::H2o));
    }
}
