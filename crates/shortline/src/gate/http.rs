//! Serves the requests of `shortline gate http` at all its addresses: the web server, with a gate
//! before the backends.

use std::future::Future;
use std::sync::Arc;

use rustls::sign::CertifiedKey;
use shortline_gate::Gate;
use shortline_gate::classify::Classifier;
use shortline_gate::http::{HttpConfig, HttpError, HttpRelay};
use shortline_link::LinkConfig;
use shortline_tls::Certificate;
use shortline_web::Limits;
use shortline_web::proxy::{BackendOptions, UpstreamAddress, UpstreamOptions};
use shortline_web::server::ALPN;
use tokio::net::TcpListener;

use super::settings::Settings;
use super::status::Connections;
use shortline_command::CommandError;

/// Serves the requests.
pub struct HttpFront {
    relay: Arc<HttpRelay>,
    certificate: Option<Arc<Certificate>>,
}

impl HttpFront {
    /// A web server that does not listen yet. Must be called inside a runtime.
    ///
    /// # Errors
    /// [`CommandError`]: a backend's address or a certificate cannot be used.
    pub fn new(
        settings: &Settings,
        classifier: &Classifier,
        gate: &Gate,
        certificate: Option<CertifiedKey>,
    ) -> Result<Self, CommandError> {
        let certificate = certificate.map(Certificate::new);
        let tls = certificate.as_ref().map(|shown| shown.server_config(ALPN));
        let limits = &settings.limits;
        let config = HttpConfig {
            upstream: http_upstream(settings)?,
            classifier: classifier.clone(),
            limits: Limits {
                connections_max: limits.connections_max,
                ..Limits::default()
            },
            link: LinkConfig::default(),
            tls: tls.transpose().map_err(CommandError::failure)?,
            access_log: None,
            drain_time_max: limits.drain_time_max,
        };
        let relay = HttpRelay::new(config, gate.clone()).map_err(CommandError::failure)?;
        Ok(Self {
            relay: Arc::new(relay),
            certificate,
        })
    }

    /// Returns a function that counts the clients' connections.
    pub fn connections(&self) -> impl Fn() -> Connections + Send + Sync + 'static {
        let relay = Arc::clone(&self.relay);
        move || (&relay.snapshot()).into()
    }

    /// Serves the connections to `sockets` until `ending`.
    ///
    /// # Errors
    /// A socket or thread cannot be created.
    pub fn run<F: Future<Output = ()>>(
        &self,
        sockets: Vec<TcpListener>,
        ending: F,
    ) -> impl Future<Output = Result<(), HttpError>> + use<F> {
        let relay = Arc::clone(&self.relay);
        async move { relay.run(sockets, ending).await }
    }

    /// Uses `key` for new handshakes.
    pub fn exchange(&self, key: CertifiedKey) {
        if let Some(certificate) = &self.certificate {
            certificate.replace(key);
        }
    }
}

/// One backend, or several separated by commas.
fn http_upstream(settings: &Settings) -> Result<UpstreamOptions, CommandError> {
    let addresses = settings.upstream.split(',').map(str::trim);
    let backends = addresses.map(str::parse::<BackendOptions>);
    let backends: Vec<BackendOptions> = backends
        .collect::<Result<_, _>>()
        .map_err(CommandError::usage)?;
    let mut addresses = backends.iter().map(|backend| &backend.address);
    if let Some(backend) = addresses.find(|backend| backend.speaks_fastcgi()) {
        return Err(CommandError::usage(format!(
            "upstream {backend}: FastCGI needs the folder of its programs: give it a [[route]] of `shortline serve`, \
             which may have a gate"
        )));
    }
    let mut addresses = backends.iter().map(|backend| &backend.address);
    if let Some(service) = addresses.find(|one| matches!(one, UpstreamAddress::Service(_))) {
        return Err(CommandError::usage(format!(
            "upstream {service}: a service that is looked up needs a [[route]] of `shortline serve`, which may have a gate"
        )));
    }
    Ok(UpstreamOptions {
        backends,
        authorities: settings.upstream_ca.clone(),
        connect_time_max: settings.limits.connect_time_max,
        ..UpstreamOptions::default()
    })
}
