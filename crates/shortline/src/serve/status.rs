//! What `shortline serve` serves at its admin endpoint: the live page at `/`, `/status`, `/history` and `/metrics`.

use http::StatusCode;
use serde::Serialize;
use shortline_link::LinkSnapshot;
use shortline_web::comparison::Figures;
use shortline_web::server::ServerSnapshot;

use super::certificates::CertificatesStatus;
use super::routes::{CacheStatus, GateStatus, MirrorStatus};
use super::{metrics, page};
use crate::history::History;
use shortline_daemon::admin::{Asker, Later, Page, Pages};

/// Everything the endpoint shows.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The program's version.
    pub version: &'static str,
    /// Time since the start.
    pub uptime_seconds: f64,
    /// Where connections are accepted.
    pub listen: Vec<String>,
    /// The uplink.
    pub link: LinkSnapshot,
    /// The server.
    pub server: ServerSnapshot,
    /// What fair sharing among clients would have given.
    pub comparison: Option<Figures>,
    /// The caches of routes.
    pub caches: Vec<CacheStatus>,
    /// The copies of routes' requests.
    pub mirrors: Vec<MirrorStatus>,
    /// The gates before routes.
    pub gates: Vec<GateStatus>,
    /// The certificates that are served.
    pub certificates: CertificatesStatus,
    /// Access log lines lost.
    pub access_log_dropped_total: u64,
    /// The last warnings and errors of the log, the newest last.
    pub warnings: Vec<String>,
}

/// A moment of the last minutes.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Time since the start, in seconds.
    at_seconds: f64,
    /// The rate that grants followed.
    rate_bps: Option<u64>,
    /// Bytes on the wire so far.
    wire_bytes: u64,
    /// Responses that waited for a grant.
    waiting: usize,
    /// Responses so far.
    responses: u64,
    /// By size: how many were compared so far, and the sums of their times, as they were and as fair sharing would have had
    /// them.
    compared: Vec<(u64, f64, f64)>,
    /// By site: how many responses so far, and the sum of their times.
    sites: Vec<(String, u64, f64)>,
}

impl Status {
    /// What is kept of it.
    pub fn sample(&self) -> Sample {
        let responses = &self.server.responses;
        let compared = self.comparison.iter().flat_map(|figures| &figures.by_size);
        let sites = responses.by_site.iter();
        Sample {
            at_seconds: self.uptime_seconds,
            rate_bps: self.link.rate_bps,
            wire_bytes: self.link.wire_bytes_total,
            waiting: self.link.jobs_waiting,
            responses: responses.by_status_class.iter().sum(),
            compared: compared
                .map(|both| (both.ours.count, both.ours.seconds, both.fair.seconds))
                .collect(),
            sites: sites
                .map(|site| (site.name.clone(), site.times.count, site.times.seconds))
                .collect(),
        }
    }
}

/// Gives the current state, and the last minutes.
pub struct StatusPages {
    /// The current state.
    pub status: Box<dyn Fn() -> Status + Send + Sync>,
    /// The last minutes.
    pub history: History<Sample>,
    /// Forgets what is kept of a URL, and says how many responses that were.
    pub purge: Box<dyn Fn(&str) -> usize + Send + Sync>,
}

impl Pages for StatusPages {
    const PATHS: &'static str = "/, /status, /history, /metrics or /healthz";

    fn page(&self, path: &str) -> Option<Page> {
        let status = &self.status;
        match path {
            "/" => Some(Page::html(page::html())),
            "/status" => Some(Page::json(&status())),
            "/history" => {
                let mut samples = self.history.samples();
                samples.push(status().sample());
                Some(Page::json(&samples))
            }
            "/metrics" => Some(Page::metrics(metrics::render(&status()))),
            _ => None,
        }
    }

    /// `/purge`, with a URL on each line.
    fn post(&self, path: &str, body: String, _asker: Asker) -> Option<Later> {
        if path != "/purge" {
            return None;
        }
        let urls = body.lines().map(str::trim).filter(|url| !url.is_empty());
        let is_url = |url: &str| url.starts_with("http://") || url.starts_with("https://");
        let page = match urls.clone().find(|url| !is_url(url)) {
            Some(other) => Page::line(
                StatusCode::BAD_REQUEST,
                format!(
                    "`{}` is no URL: send one a line, such as https://example.org/blog/*",
                    other.escape_debug()
                ),
            ),
            None => {
                let purged: usize = urls.map(|url| (self.purge)(url)).sum();
                Page::line(StatusCode::OK, format!("purged {purged}"))
            }
        };
        Some(Box::pin(std::future::ready(page)))
    }
}
