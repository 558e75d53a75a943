//! What `shortline serve` serves at its admin endpoint: `/metrics` and `/status`.

use serde::Serialize;
use shortline_link::LinkSnapshot;
use shortline_web::server::ServerSnapshot;

use super::metrics;
use super::routes::GateStatus;
use shortline_daemon::admin::{Page, Pages};

/// Everything the endpoint shows.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The program's version.
    pub version: &'static str,
    /// Time since the start.
    pub uptime_seconds: f64,
    /// The uplink.
    pub link: LinkSnapshot,
    /// The server.
    pub server: ServerSnapshot,
    /// The gates before routes.
    pub gates: Vec<GateStatus>,
    /// Access log lines lost.
    pub access_log_dropped_total: u64,
}

/// Gives the current state.
pub struct StatusPages(pub Box<dyn Fn() -> Status + Send + Sync>);

impl Pages for StatusPages {
    const PATHS: &'static str = "/metrics, /status or /healthz";

    fn page(&self, path: &str) -> Option<Page> {
        match path {
            "/metrics" => Some(Page::metrics(metrics::render(&self.0()))),
            "/status" => Some(Page::json(&self.0())),
            _ => None,
        }
    }
}
