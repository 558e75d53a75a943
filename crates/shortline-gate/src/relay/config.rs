//! The settings of a relay, for all protocols.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use shortline_sched::Network;

use super::tls::{ClientTls, UpstreamTls};
use super::{Limits, Registry, Upstream};
use crate::classify::{Classify, Client, Terms, TermsOf};

/// The settings of a relay.
#[derive(Clone)]
pub struct RelayConfig {
    /// The backend.
    pub upstream: Upstream,
    /// TLS towards the backend.
    pub upstream_tls: UpstreamTls,
    /// TLS towards clients. `None` offers none.
    pub client_tls: Option<ClientTls>,
    /// The limits of clients.
    pub limits: Limits,
    /// Classifies statements.
    pub classify: Classify,
    /// Proxies in these networks announce the client's address ([`super::proxy`]).
    pub proxies: Arc<[Network]>,
    /// Whether each connection to the backend begins with the client's address (mysql, without a pool).
    pub announces_clients: bool,
    /// Says how sessions are served.
    pub terms_of: TermsOf,
    /// The open connections.
    pub registry: Arc<Registry>,
}

impl RelayConfig {
    /// A relay to `upstream` with all defaults.
    pub fn new(upstream: Upstream, classify: Classify) -> Self {
        Self {
            upstream,
            upstream_tls: UpstreamTls::Disable,
            client_tls: None,
            limits: Limits::default(),
            classify,
            proxies: Arc::from([]),
            announces_clients: false,
            terms_of: Arc::new(|_| Terms::default()),
            registry: Arc::default(),
        }
    }

    /// How long this client may keep a transaction open without work.
    pub fn idle_transaction_time_max(&self, client: &Client<'_>) -> Option<Duration> {
        match (self.terms_of)(client).idle_transaction_time_max {
            None => self.limits.idle_transaction_time_max,
            said => said.filter(|time_max| !time_max.is_zero()),
        }
    }
}

impl fmt::Debug for RelayConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RelayConfig")
            .field("upstream", &self.upstream)
            .field("upstream_tls", &self.upstream_tls)
            .field("client_tls", &self.client_tls)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
