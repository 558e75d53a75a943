//! The server's certificate in a world. All of its bytes but the key's are the same each time, and so is its length: a run must not
//! depend on it.

use std::sync::OnceLock;

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The server's TLS.
pub fn tls() -> ServerConfig {
    static MADE: OnceLock<(CertificateDer<'static>, PrivateKeyDer<'static>)> = OnceLock::new();
    let (certificate, key) = MADE.get_or_init(make);
    ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .expect("ring has them")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.clone_key())
        .expect("they belong together")
}

fn make() -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    // Its signatures have one length.
    let key = KeyPair::generate_for(&PKCS_ED25519).expect("there is a source of random numbers");
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("it is a name");
    params.serial_number = Some(SerialNumber::from(1));
    let certificate = params.self_signed(&key).expect("its parameters are sound");
    let key = key.serialize_der().try_into().expect("it is a key");
    (certificate.der().clone(), key)
}
