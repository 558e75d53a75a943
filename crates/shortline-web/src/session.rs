//! TLS sessions: the handshake, and how clients are told apart by it.
//!
//! A session is named by a random number. Its client's tickets carry the number, sealed against
//! change but not against reading. So connections that resume the session (RFC 8446, 2.2) have the
//! same number. A client that resumes nothing gets a new one each time. For TLS 1.2, rustls does
//! not say what a resumed session carried, so its sessions have no name.
//!
//! A client that must show a certificate is told apart by that only where its site asks for one ([`ClientAuth`]).

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;

use rustls::server::{Acceptor, ClientHello};
use rustls::{ProtocolVersion, ServerConfig, ServerConnection};
use shortline_tls::{Certified, ClientAuth};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

/// A connection whose handshake is done.
pub struct Begun<S> {
    /// What is said on it.
    pub stream: TlsStream<S>,
    /// With TLS 1.3, the number of its session.
    pub session: Option<u64>,
    /// Who the client is, if it was asked for a certificate.
    pub certified: Option<Certified>,
}

/// Performs the handshake with a client. `answer` is told what the client's hello says, and tells whether the client needs
/// a certificate, and what is waited for before the handshake goes on.
///
/// # Errors
/// What the client sent is not a handshake, its certificate is not accepted, or the client has gone.
pub async fn accept<S: AsyncRead + AsyncWrite + Unpin, T: Future<Output = ()>>(
    socket: S,
    config: Arc<ServerConfig>,
    answer: impl FnOnce(&ClientHello<'_>) -> (Option<Arc<ClientAuth>>, T),
) -> io::Result<Begun<S>> {
    let hello = LazyConfigAcceptor::new(Acceptor::default(), socket).await?;
    let (auth, turn) = answer(&hello.client_hello());
    turn.await;
    let config = match &auth {
        Some(auth) => auth.server_config(&config).map_err(io::Error::other)?,
        None => config,
    };
    let mut session = None;
    let stream = hello.into_stream_with(config, |tls| session = name(tls));
    let stream = stream.await?;
    let certified = auth.map(|auth| auth.certified(stream.get_ref().1));
    let certified = certified.transpose().map_err(io::Error::other)?;
    Ok(Begun {
        stream,
        session,
        certified,
    })
}

/// The session's number. Must be called after the client's first message and before any ticket.
fn name(tls: &mut ServerConnection) -> Option<u64> {
    if tls.protocol_version() != Some(ProtocolVersion::TLSv1_3) {
        return None;
    }
    let resumed = tls
        .received_resumption_data()
        .and_then(|name| name.try_into().ok());
    let drawn = || RandomState::new().hash_one(());
    let name = resumed.map_or_else(drawn, u64::from_be_bytes);
    tls.set_resumption_data(&name.to_be_bytes());
    Some(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rustls::pki_types::ServerName;
    use rustls::version::{TLS12, TLS13};
    use rustls::{ClientConfig, RootCertStore};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_rustls::TlsConnector;

    use super::*;

    /// The server's name for the session of one connection.
    async fn session(server: &Arc<ServerConfig>, client: &TlsConnector) -> Option<u64> {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let name = ServerName::try_from("localhost").unwrap();
        let asks = async {
            let mut stream = client.connect(name, theirs).await.unwrap();
            // The tickets come with the first bytes.
            stream.read_exact(&mut [0; 4]).await.unwrap();
        };
        let answers = async {
            let begun = accept(ours, Arc::clone(server), |_| (None, async {})).await;
            let Begun {
                mut stream,
                session,
                ..
            } = begun.unwrap();
            stream.write_all(b"here").await.unwrap();
            stream.flush().await.unwrap();
            session
        };
        tokio::join!(asks, answers).1
    }

    #[tokio::test]
    async fn connections_that_resume_a_session_have_its_number_and_others_do_not() {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = made.signing_key.serialize_der().try_into().unwrap();
        let chain = vec![made.cert.der().clone()];
        let server = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, key);
        let server = Arc::new(server.unwrap());
        let client = |version| {
            let mut roots = RootCertStore::empty();
            roots.add(made.cert.der().clone()).unwrap();
            let config = ClientConfig::builder_with_protocol_versions(&[version])
                .with_root_certificates(roots)
                .with_no_client_auth();
            TlsConnector::from(Arc::new(config))
        };
        let (one, other) = (client(&TLS13), client(&TLS13));
        let first = session(&server, &one).await;
        assert!(first.is_some());
        for _ in 0..4 {
            assert_eq!(session(&server, &one).await, first);
        }
        assert_ne!(session(&server, &other).await, first);
        assert_eq!(session(&server, &client(&TLS12)).await, None);
    }
}
