//! What every relay is told, whatever protocol it is for.

use std::fmt;
use std::sync::Arc;

use shortline_sched::Network;

use super::tls::{ClientTls, UpstreamTls};
use super::{Limits, Registry, Upstream};
use crate::classify::Classify;

/// How a relay works.
#[derive(Clone)]
pub struct RelayConfig {
    /// The backend.
    pub upstream: Upstream,
    /// TLS towards it.
    pub upstream_tls: UpstreamTls,
    /// TLS towards clients; without it they are told, or see, that there is none.
    pub client_tls: Option<ClientTls>,
    /// What clients may do.
    pub limits: Limits,
    /// The types of statements.
    pub classify: Classify,
    /// Proxies of these networks say who the client is ([`super::proxy`]).
    pub proxies: Arc<[Network]>,
    /// The open connections; a clone sees them from outside.
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
            registry: Arc::default(),
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
