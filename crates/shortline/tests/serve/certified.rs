//! Authorities for certificates of clients, and clients that show them.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer,
    KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, NamedGroup, StreamOwned,
    SupportedProtocolVersion,
};
use shortline_tls::AnyCertificate;

use crate::client::{Response, connect, parse, read_to_end};

/// An authority for certificates of clients.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate.
    pub pem: String,
}

/// A client's certificate and its key.
pub struct Shown {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    pub fn client(&self, name: &str, serial: u64) -> Shown {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::OrganizationName, "Example, Ltd");
        params.distinguished_name.push(DnType::CommonName, name);
        params.serial_number = Some(SerialNumber::from(serial));
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        Shown {
            certificate: params.signed_by(&key, &self.issuer).unwrap().der().clone(),
            key: key.serialize_der().try_into().unwrap(),
        }
    }

    /// A list that ends in that year.
    pub fn revokes(&self, serials: &[u64], until: i32) -> String {
        let revoked = serials.iter().map(|serial| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(until, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).unwrap().pem().unwrap()
    }
}

/// A client that believes each server, and offers whatever session it has to whichever name.
#[derive(Clone)]
pub struct Client(Arc<ClientConfig>);

impl Client {
    pub fn new(shown: Option<&Shown>, versions: &[&'static SupportedProtocolVersion]) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate::default()));
        let mut config = match shown {
            None => builder.with_no_client_auth(),
            Some(shown) => builder
                .with_client_auth_cert(vec![shown.certificate.clone()], shown.key.clone_key())
                .unwrap(),
        };
        config.resumption = Resumption::store(Arc::new(Sessions::default()));
        Self(Arc::new(config))
    }

    pub fn any(shown: &Shown) -> Self {
        Self::new(Some(shown), rustls::ALL_VERSIONS)
    }

    pub fn nobody() -> Self {
        Self::new(None, rustls::ALL_VERSIONS)
    }

    /// How it speaks HTTP/2.
    pub fn with_http_2(&self) -> Arc<ClientConfig> {
        let mut config = self.0.as_ref().clone();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(config)
    }

    /// Asks for `name` in the handshake and `host` in the request. `Err`: the server ended the connection.
    pub fn ask(
        &self,
        at: SocketAddr,
        (name, host): (&str, &str),
    ) -> Result<(Response, HandshakeKind), String> {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let connection = ClientConnection::new(Arc::clone(&self.0), name).unwrap();
        let mut stream = StreamOwned::new(connection, connect(at));
        let forged = "X-Client-Cert-Subject: CN=forged\r\nx_client_cert_fingerprint: 1\r\n";
        let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\n{forged}Connection: close\r\n\r\n");
        let sent = stream.write_all(text.as_bytes());
        sent.map_err(|error| error.to_string())?;
        let mut first = [0; 1];
        stream
            .read_exact(&mut first)
            .map_err(|error| error.to_string())?;
        let rest = read_to_end(&mut stream);
        let kind = stream.conn.handshake_kind().unwrap();
        Ok((parse(&[&first[..], &rest].concat()), kind))
    }

    pub fn status(&self, at: SocketAddr, names: (&str, &str)) -> Option<u16> {
        self.ask(at, names)
            .ok()
            .map(|(response, _)| response.status)
    }
}

/// Sessions for whichever name.
#[derive(Debug, Default)]
struct Sessions {
    one_two: Mutex<Option<Tls12ClientSessionValue>>,
    one_three: Mutex<Vec<Tls13ClientSessionValue>>,
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        *self.one_two.lock() = Some(value);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.one_two.lock().clone()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.one_three.lock().push(value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.one_three.lock().pop()
    }
}
