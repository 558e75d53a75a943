//! TLS of the lab's own clients.

use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use shortline_tls::{TlsError, Trust, client_config};
use tokio_rustls::TlsConnector;

/// A client that trusts the certificates in the file and offers `protocol` (an ALPN name). Each of its
/// connections is a new session.
///
/// # Errors
/// If the file has no certificate.
pub fn connector(certificate: &Path, protocol: &str) -> Result<TlsConnector, TlsError> {
    let trust = Trust::File(certificate.to_owned());
    let mut config = client_config(&trust, &[protocol.as_bytes()])?;
    config.resumption = Resumption::disabled();
    Ok(TlsConnector::from(Arc::new(config)))
}
