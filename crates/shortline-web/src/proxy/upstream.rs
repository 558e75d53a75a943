//! Several backends that can answer the same requests. `choice` says which one gets the next, `condition`
//! which of them work.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::header::{self, HeaderValue};
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, Request};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::address::UpstreamAddress;
use super::choice::{Turns, Wish, choose};
use super::error::with_sources;
use super::options::{BackendOptions, UpstreamOptions};
use super::pool::{Backend, BackendSnapshot};
use super::resolve::keep_resolved;
use super::retries::Retries;
use super::tls::Connector;
use super::upload::RequestBody;
use crate::piped::Piped;
use shortline_base::clock::now_ns;
use shortline_base::throttle::Throttle;
use shortline_tls::TlsError;

/// How often idle connections are checked.
const KEEP_EVERY: Duration = Duration::from_secs(1);

/// Several backends; see the module's text.
pub struct Upstream {
    /// The limits.
    pub options: Arc<UpstreamOptions>,
    tls: Option<Connector>,
    backends: RwLock<Vec<Arc<Backend>>>,
    turns: Mutex<Turns>,
    retries: Mutex<Retries>,
    buffered_bytes: Arc<AtomicUsize>,
    pipes: Arc<AtomicUsize>,
    failures: Mutex<Throttle>,
    /// Services that were not looked up yet, and who waits for that.
    unknown_services: AtomicUsize,
    looked_up: Notify,
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
        upstream.look_up_services();
        Ok(upstream)
    }

    fn new(options: UpstreamOptions) -> Result<Arc<Self>, TlsError> {
        let options = Arc::new(options);
        let tls = options.addresses().any(UpstreamAddress::has_tls);
        let tls = tls.then(|| Connector::new(options.authorities.as_deref()));
        let tls = tls.transpose()?;
        let backends = options.backends.iter().filter(|own| !own.is_service());
        let backends = backends.cloned();
        let backends = backends.map(|own| Backend::new(own, None, tls.clone(), &options));
        let services = options.backends.iter().filter(|own| own.is_service());
        let services = services.count();
        Ok(Arc::new(Self {
            backends: RwLock::new(backends.collect()),
            options,
            tls,
            turns: Mutex::default(),
            retries: Mutex::default(),
            buffered_bytes: Arc::default(),
            pipes: Arc::default(),
            failures: Mutex::default(),
            unknown_services: AtomicUsize::new(services),
            looked_up: Notify::new(),
        }))
    }

    /// The backend for the next try of a request. None of `tried` is taken.
    pub fn pick(&self, tried: &[Arc<Backend>], wish: Wish, now_ns: u64) -> Option<Arc<Backend>> {
        let backends = self.backends.read();
        let was_tried = |backend| tried.iter().any(|known| Arc::ptr_eq(known, backend));
        let candidates = backends.iter();
        let candidates = candidates.map(|backend| backend.candidate(was_tried(backend), now_ns));
        let candidates: Vec<_> = candidates.collect();
        let chosen = choose(&candidates, wish, &mut self.turns.lock());
        chosen.map(|at| Arc::clone(&backends[at]))
    }

    /// Counts a request.
    pub fn has_request(&self, now_ns: u64) {
        self.retries.lock().request(now_ns);
    }

    /// Counts that a request is tried at another backend, if that is allowed.
    pub fn may_retry(&self) -> bool {
        let limit = self.options.retries;
        self.retries.lock().may_retry(now_ns(), limit)
    }

    /// Bytes of all responses that wait for clients.
    pub fn buffered_bytes(&self) -> &Arc<AtomicUsize> {
        &self.buffered_bytes
    }

    /// A pipe for a response, as large as its buffer may be. There are as many as there may be full buffers. `None`: they are all taken.
    pub fn pipe(&self) -> Option<Arc<Piped>> {
        let bytes = self.options.buffer_bytes_max.max(1);
        Piped::new(bytes, &self.pipes, self.options.buffers_bytes_max / bytes)
    }

    /// Whether another line about a failed request may be logged. If so, how many were left out
    /// since the last one.
    pub fn may_log_failure(&self) -> Option<u64> {
        self.failures.lock().allow(Instant::now())
    }

    /// Logs a response that was reset at the client because its backend did not send all of it.
    pub fn log_broken_off(&self, backend: &str, reason: &str) {
        if let Some(untold) = self.may_log_failure() {
            tracing::warn!(backend, reason, untold, "a response broke off");
        }
    }

    /// Makes the addresses of a host backends of their own. Those that stay are kept. Must be called
    /// inside a runtime.
    pub fn set_addresses(&self, own: &BackendOptions, addresses: &[IpAddr]) {
        let is_new = |known: &[Arc<Backend>], at: IpAddr| {
            !known.iter().any(|one| one.is(own) && one.at() == Some(at))
        };
        let mut backends = self.backends.write();
        let new = addresses.iter().filter(|at| is_new(&backends, **at));
        let new: Vec<_> = new
            .map(|at| Backend::new(own.clone(), Some(*at), self.tls.clone(), &self.options))
            .collect();
        let stays =
            |one: &Arc<Backend>| !one.is(own) || one.at().is_some_and(|at| addresses.contains(&at));
        backends.retain(stays);
        new.iter().for_each(|backend| self.check(backend));
        backends.extend(new);
    }

    /// Makes servers of a service backends, and those alone. Those that stay are kept. Must be called inside a runtime.
    pub fn set_servers(&self, own: &BackendOptions, servers: Vec<BackendOptions>) {
        let UpstreamAddress::Service(service) = &own.address else {
            return;
        };
        let mut backends = self.backends.write();
        let is_known = |server: &BackendOptions| backends.iter().any(|one| one.is(server));
        let new: Vec<_> = servers.iter().filter(|server| !is_known(server)).collect();
        let new: Vec<_> = new
            .into_iter()
            .map(|server| Backend::new(server.clone(), None, self.tls.clone(), &self.options))
            .collect();
        backends.retain(|one| !one.is_of(service) || servers.iter().any(|server| one.is(server)));
        new.iter().for_each(|backend| self.check(backend));
        backends.extend(new);
    }

    /// Notes that a service was looked up for the first time, successfully or not.
    pub fn has_looked_up(&self) {
        let less = |left: usize| left.checked_sub(1);
        let order = Ordering::Relaxed;
        let _ = self.unknown_services.fetch_update(order, order, less);
        self.looked_up.notify_waiters();
    }

    /// Waits until there is a backend, or all services were looked up once.
    pub async fn knows_backends(&self) {
        while self.unknown_services.load(Ordering::Relaxed) > 0 {
            let mut looked_up = pin!(self.looked_up.notified());
            looked_up.as_mut().enable();
            let is_unknown = self.unknown_services.load(Ordering::Relaxed) > 0;
            if !is_unknown || !self.backends.read().is_empty() {
                return;
            }
            if timeout(self.options.connect_time_max, looked_up)
                .await
                .is_err()
            {
                return;
            }
        }
    }

    /// Begins the health check of a backend, if there is one.
    fn check(&self, backend: &Arc<Backend>) {
        if let Some(path) = &self.options.health_path {
            let every = self.options.health_every;
            tokio::spawn(probe(Arc::downgrade(backend), path.clone(), every));
        }
    }

    /// The state of its backends now.
    pub fn snapshot(&self) -> Vec<BackendSnapshot> {
        let backends = self.backends.read();
        backends.iter().map(|backend| backend.snapshot()).collect()
    }
}

/// Closes connections idle for too long and runs health checks, until the upstream is gone.
async fn keep(upstream: Weak<Upstream>) {
    let mut ticks = tokio::time::interval(KEEP_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    if let Some(known) = upstream.upgrade() {
        let backends = known.backends.read();
        backends.iter().for_each(|backend| known.check(backend));
        if let Some(every) = known.options.resolve_every {
            tokio::spawn(keep_resolved(Weak::clone(&upstream), every));
        }
    }
    loop {
        ticks.tick().await;
        let Some(upstream) = upstream.upgrade() else {
            return;
        };
        let backends = upstream.backends.read();
        backends.iter().for_each(|backend| backend.close_idle());
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
        let health = timeout(every, health(&backend, &path)).await;
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
    let mut request = Box::new(Request::new(RequestBody::none()));
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
    use super::super::condition::HealthOptions;
    use super::*;

    fn upstream(count: u16) -> Arc<Upstream> {
        let address = |port| UpstreamAddress::Tcp {
            host: "127.0.0.1".to_owned(),
            port,
        };
        Upstream::new(UpstreamOptions {
            backends: (1..=count).map(|port| address(port).into()).collect(),
            health: HealthOptions {
                failures_max: 1,
                ..HealthOptions::default()
            },
            ..UpstreamOptions::default()
        })
        .unwrap()
    }

    fn picked(upstream: &Upstream) -> usize {
        let backend = upstream.pick(&[], Wish::default(), now_ns()).unwrap();
        let is_it = |known: &Arc<Backend>| Arc::ptr_eq(known, &backend);
        upstream.backends.read().iter().position(is_it).unwrap()
    }

    #[test]
    fn the_fewest_outstanding_then_turns() {
        let upstream = upstream(3);
        assert_eq!(
            [picked(&upstream), picked(&upstream), picked(&upstream)],
            [0, 1, 2]
        );
        let backends = upstream.backends.read().clone();
        let _first = backends[0].begin();
        let second = backends[1].begin();
        assert_eq!([picked(&upstream), picked(&upstream)], [2, 2]);
        drop(second);
        let _third = backends[2].begin();
        assert_eq!(picked(&upstream), 1);
    }

    #[test]
    fn a_doubtful_backend_is_asked_last_and_a_down_one_never() {
        let upstream = upstream(2);
        let backends = upstream.backends.read().clone();
        backends[0].failed();
        assert_eq!([picked(&upstream), picked(&upstream)], [1, 1]);
        backends[1].probed(Err("away".to_owned()));
        assert_eq!(picked(&upstream), 0);
        let tried = [Arc::clone(&backends[0])];
        assert!(upstream.pick(&tried, Wish::default(), now_ns()).is_none());
        backends[0].succeeded();
        backends[1].probed(Ok(()));
        let mut both = [picked(&upstream), picked(&upstream)];
        both.sort_unstable();
        assert_eq!(both, [0, 1]);
    }
}
