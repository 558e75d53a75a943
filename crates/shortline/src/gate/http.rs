//! What takes the requests of `shortline gate http`, at all its addresses: the web server, with a
//! gate before the backends.

use std::future::Future;
use std::sync::Arc;

use rustls::sign::CertifiedKey;
use shortline_gate::Gate;
use shortline_gate::classify::Classifier;
use shortline_gate::http::{HttpConfig, HttpError, HttpRelay};
use shortline_link::LinkConfig;
use shortline_web::Limits;
use shortline_web::proxy::UpstreamAddress;
use shortline_web::proxy::upstream::UpstreamOptions;
use tokio::net::TcpListener;

use super::settings::Settings;
use super::status::Connections;
use crate::serve::tls::{self, Certificate};
use shortline_command::CommandError;

/// What takes the requests.
pub struct HttpFront {
    relay: Arc<HttpRelay>,
    certificate: Option<Arc<Certificate>>,
}

impl HttpFront {
    /// Not listening yet. Call inside a runtime.
    ///
    /// # Errors
    /// [`CommandError`]: a backend's address or a certificate that cannot be had.
    pub fn new(
        settings: &Settings,
        classifier: &Classifier,
        gate: &Gate,
    ) -> Result<Self, CommandError> {
        let certificate = load_certificate(settings)?.map(Certificate::new);
        let tls = certificate.as_ref().map(Certificate::server_config);
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

    /// Counts its clients' connections from now on.
    pub fn connections(&self) -> impl Fn() -> Connections + Send + Sync + 'static {
        let relay = Arc::clone(&self.relay);
        move || (&relay.snapshot()).into()
    }

    /// Takes what comes to `sockets` until `ending`.
    ///
    /// # Errors
    /// A socket or thread cannot be had.
    pub fn run<F: Future<Output = ()>>(
        &self,
        sockets: Vec<TcpListener>,
        ending: F,
    ) -> impl Future<Output = Result<(), HttpError>> + use<F> {
        let relay = Arc::clone(&self.relay);
        async move { relay.run(sockets, ending).await }
    }

    /// Reads the certificate again, for a new handshake to get it once [`Self::exchange`] is told.
    ///
    /// # Errors
    /// [`CommandError`]: what is wrong with it.
    pub fn read_certificate(
        &self,
        settings: &Settings,
    ) -> Result<Option<CertifiedKey>, CommandError> {
        load_certificate(settings)
    }

    /// New handshakes get `key` from now on.
    pub fn exchange(&self, key: Option<CertifiedKey>) {
        if let (Some(certificate), Some(key)) = (&self.certificate, key) {
            certificate.replace(key);
        }
    }
}

/// One backend or several, apart by commas.
fn http_upstream(settings: &Settings) -> Result<UpstreamOptions, CommandError> {
    let addresses = settings.upstream.split(',').map(str::trim);
    let backends = addresses.map(str::parse::<UpstreamAddress>);
    Ok(UpstreamOptions {
        backends: backends
            .collect::<Result<_, _>>()
            .map_err(CommandError::usage)?,
        authorities: settings.upstream_ca.clone(),
        connect_time_max: settings.limits.connect_time_max,
        ..UpstreamOptions::default()
    })
}

fn load_certificate(settings: &Settings) -> Result<Option<CertifiedKey>, CommandError> {
    let files = settings.client_tls.as_ref();
    let key = files.map(|files| tls::load(&files.cert, &files.key));
    key.transpose().map_err(CommandError::failure)
}
