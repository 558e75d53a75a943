//! Several backends that can answer the same requests: which one gets the next.
//!
//! The backend with the fewest requests under way gets it; backends with equally few take turns. A
//! backend whose last requests failed is passed over for a while (passive check). One whose health
//! check fails is not asked until the check succeeds again (active check, if a path for it is
//! given).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::header::{self, HeaderValue};
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, Request};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::address::UpstreamAddress;
use super::error::with_sources;
use super::options::UpstreamOptions;
use super::pool::{Backend, BackendSnapshot, Standing};
use super::tls::Connector;
use super::upload::RequestBody;
use shortline_base::throttle::Throttle;
use shortline_tls::TlsError;

/// How often idle connections are checked.
const KEEP_EVERY: Duration = Duration::from_secs(1);

/// Several backends; see the module's text.
pub struct Upstream {
    /// The limits.
    pub options: Arc<UpstreamOptions>,
    backends: Vec<Arc<Backend>>,
    turn: AtomicUsize,
    buffered_bytes: Arc<AtomicUsize>,
    failures: Mutex<Throttle>,
}

impl Upstream {
    /// Opens the backends of `options`. Must be called inside a runtime: a task there looks after
    /// their connections and their health until the upstream is dropped.
    ///
    /// # Errors
    /// [`TlsError`] if a backend has TLS and its authorities cannot be read.
    pub fn open(options: UpstreamOptions) -> Result<Arc<Self>, TlsError> {
        let upstream = Self::new(options)?;
        tokio::spawn(keep(Arc::downgrade(&upstream)));
        Ok(upstream)
    }

    fn new(options: UpstreamOptions) -> Result<Arc<Self>, TlsError> {
        let options = Arc::new(options);
        let has_tls = |address| matches!(address, &UpstreamAddress::Tls { .. });
        let tls = options.backends.iter().any(has_tls);
        let tls = tls.then(|| Connector::new(options.authorities.as_deref()));
        let tls = tls.transpose()?;
        let backends = options.backends.iter().cloned();
        Ok(Arc::new(Self {
            backends: backends
                .map(|address| Backend::new(address, tls.clone(), &options))
                .collect(),
            options,
            turn: AtomicUsize::new(0),
            buffered_bytes: Arc::default(),
            failures: Mutex::default(),
        }))
    }

    /// The backend for the next try. None of `tried` is taken.
    pub fn pick(&self, tried: &[Arc<Backend>]) -> Option<&Arc<Backend>> {
        let count = self.backends.len();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        (0..count)
            .map(|at| &self.backends[turn.wrapping_add(at) % count])
            .filter(|backend| !tried.iter().any(|known| Arc::ptr_eq(known, backend)))
            .map(|backend| ((backend.standing(), backend.outstanding()), backend))
            .filter(|((standing, _), _)| *standing < Standing::Down)
            .min_by_key(|(rank, _)| *rank)
            .map(|(_, backend)| backend)
    }

    /// Bytes of all responses that wait for clients.
    pub fn buffered_bytes(&self) -> &Arc<AtomicUsize> {
        &self.buffered_bytes
    }

    /// Whether another line about a failed request may be logged. If so, how many were left out
    /// since the last one.
    pub fn may_log_failure(&self) -> Option<u64> {
        self.failures.lock().allow(Instant::now())
    }

    /// Logs a response that was reset at the client because its backend did not send all of it.
    pub fn log_broken_off(&self, backend: &UpstreamAddress, reason: &str) {
        if let Some(untold) = self.may_log_failure() {
            let backend = backend.to_string();
            tracing::warn!(backend, reason, untold, "a response broke off");
        }
    }

    /// The state of its backends now.
    pub fn snapshot(&self) -> Vec<BackendSnapshot> {
        self.backends
            .iter()
            .map(|backend| backend.snapshot())
            .collect()
    }
}

/// Closes connections idle for too long and runs health checks, until the upstream is gone.
async fn keep(upstream: Weak<Upstream>) {
    let mut ticks = tokio::time::interval(KEEP_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    if let Some(upstream) = upstream.upgrade()
        && let Some(path) = &upstream.options.health_path
    {
        for backend in &upstream.backends {
            let every = upstream.options.health_every;
            tokio::spawn(probe(Arc::downgrade(backend), path.clone(), every));
        }
    }
    loop {
        ticks.tick().await;
        let Some(upstream) = upstream.upgrade() else {
            return;
        };
        upstream.backends.iter().for_each(|backend| {
            backend.close_idle();
        });
    }
}

/// Runs the health checks of a backend until it is gone.
async fn probe(backend: Weak<Backend>, path: PathAndQuery, every: Duration) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(backend) = backend.upgrade() else {
            return;
        };
        let health = tokio::time::timeout(every, health(&backend, &path)).await;
        let late = |_| Err(format!("no answer within {} s", every.as_secs_f64()));
        backend.probed(health.unwrap_or_else(late));
    }
}

/// The health of a backend: an error says what is wrong.
async fn health(backend: &Backend, path: &PathAndQuery) -> Result<(), String> {
    let connected = backend.connect_to_probe().await;
    let mut lease = connected.map_err(|error| with_sources(&error))?;
    let host = backend.address().to_string();
    let host = host
        .rsplit_once("://")
        .map_or(&*host, |(_, authority)| authority);
    let host = HeaderValue::try_from(host);
    let host = host.unwrap_or(HeaderValue::from_static("localhost"));
    let mut request = Request::new(RequestBody::none());
    *request.uri_mut() = Uri::from(path.clone());
    *request.headers_mut() = HeaderMap::from_iter([
        (header::HOST, host),
        (header::CONNECTION, HeaderValue::from_static("close")),
    ]);
    match lease.send(request).await {
        Ok(response) if response.status().is_success() || response.status().is_redirection() => {
            Ok(())
        }
        Ok(response) => Err(format!("it answers {}", response.status())),
        Err(unanswered) => Err(with_sources(&*unanswered.error)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn upstream(count: u16) -> Arc<Upstream> {
        let address = |port| UpstreamAddress::Tcp {
            host: "127.0.0.1".to_owned(),
            port,
        };
        Upstream::new(UpstreamOptions {
            backends: (1..=count).map(address).collect(),
            failures_max: 1,
            ..UpstreamOptions::default()
        })
        .unwrap()
    }

    fn picked(upstream: &Upstream) -> usize {
        let backend = upstream.pick(&[]).unwrap();
        let is_it = |known: &Arc<Backend>| Arc::ptr_eq(known, backend);
        upstream.backends.iter().position(is_it).unwrap()
    }

    #[test]
    fn the_fewest_outstanding_then_turns() {
        let upstream = upstream(3);
        assert_eq!(
            [picked(&upstream), picked(&upstream), picked(&upstream)],
            [0, 1, 2]
        );
        let _first = upstream.backends[0].begin();
        let second = upstream.backends[1].begin();
        assert_eq!([picked(&upstream), picked(&upstream)], [2, 2]);
        drop(second);
        let _third = upstream.backends[2].begin();
        assert_eq!(picked(&upstream), 1);
    }

    #[test]
    fn a_doubtful_backend_is_asked_last_and_a_down_one_never() {
        let upstream = upstream(2);
        upstream.backends[0].failed();
        assert_eq!([picked(&upstream), picked(&upstream)], [1, 1]);
        upstream.backends[1].probed(Err("away".to_owned()));
        assert_eq!(picked(&upstream), 0);
        let tried = [Arc::clone(&upstream.backends[0])];
        assert!(upstream.pick(&tried).is_none());
        upstream.backends[0].succeeded();
        upstream.backends[1].probed(Ok(()));
        let mut both = [picked(&upstream), picked(&upstream)];
        both.sort_unstable();
        assert_eq!(both, [0, 1]);
    }
}
