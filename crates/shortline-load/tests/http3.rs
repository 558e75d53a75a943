//! The generator over HTTP/3 against a small server on 127.0.0.1: how connections are used, and what failures are called.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h3::server::{RequestResolver, RequestStream};
use http::{Response, StatusCode};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, ServerConfig};
use rustls_pki_types::PrivateKeyDer;
use shortline_load::trace::Request;
use shortline_load::{
    Failure, LoadError, LoadOptions, Protocol, RequestRecord, Target, Trust, run,
};

/// Far longer than anything here takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the server has seen.
#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    requests: AtomicUsize,
}

/// A server: `/N` has N bytes, `/short` fewer than it should, `/closes` ends the connection.
fn serve() -> (SocketAddr, Arc<Counts>, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = QuicServerConfig::try_from(tls).unwrap();
    let config = ServerConfig::with_crypto(Arc::new(crypto));
    let endpoint = Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap();
    let address = endpoint.local_addr().unwrap();
    let counts = Arc::<Counts>::default();
    let seen = Arc::clone(&counts);
    tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            let seen = Arc::clone(&seen);
            tokio::spawn(async move {
                // A client that does not trust it goes.
                let Ok(quic) = incoming.await else { return };
                seen.connections.fetch_add(1, Ordering::Relaxed);
                let connection = h3_quinn::Connection::new(quic.clone());
                let mut connection = h3::server::Connection::new(connection).await.unwrap();
                while let Ok(Some(resolver)) = connection.accept().await {
                    seen.requests.fetch_add(1, Ordering::Relaxed);
                    let quic = quic.clone();
                    tokio::spawn(async move {
                        // A client may go at any time.
                        let _ = answer(resolver, &quic).await;
                    });
                }
            });
        }
    });
    (address, counts, made.cert.pem())
}

async fn answer(
    resolver: RequestResolver<h3_quinn::Connection, Bytes>,
    quic: &quinn::Connection,
) -> Result<(), h3::error::StreamError> {
    let (request, mut stream): (_, RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>) =
        resolver.resolve_request().await?;
    let path = request.uri().path().trim_start_matches('/').to_owned();
    if path == "closes" {
        quic.close(0x100u32.into(), b"");
        return Ok(());
    }
    let bytes = match &*path {
        "short" => Some(1),
        path => path.parse().ok(),
    };
    let mut response = Response::new(());
    if bytes.is_none() {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    stream.send_response(response).await?;
    stream.send_data(vec![0; bytes.unwrap_or(0)].into()).await?;
    stream.finish().await
}

fn requests(paths: &[&str]) -> Vec<Request> {
    let request = |(index, path): (usize, &&str)| Request {
        at_ns: index as u64 * 5_000_000,
        path: (*path).to_owned(),
        bytes: path[1..].parse().unwrap_or(10),
    };
    paths.iter().enumerate().map(request).collect()
}

async fn run_with(
    paths: &[&str],
    change: impl FnOnce(&mut LoadOptions),
) -> (Vec<RequestRecord>, Arc<Counts>) {
    let (address, counts, _) = serve();
    let target: Target = format!("https://{address}").parse().unwrap();
    let mut options = LoadOptions {
        drain: PATIENCE,
        protocol: Protocol::Http3,
        trust: Some(Trust::Anyone),
        ..LoadOptions::new(target, requests(paths))
    };
    change(&mut options);
    (run(options).await.unwrap().records, counts)
}

fn failures(records: &[RequestRecord]) -> Vec<Option<Failure>> {
    records.iter().map(|record| record.failure).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_may_have_a_connection() {
    let (records, counts) = run_with(&["/0", "/1", "/5000", "/300000"], |options| {
        options.requests_per_connection = Some(NonZeroU32::MIN);
    })
    .await;
    assert_eq!(failures(&records), [None; 4], "{records:?}");
    assert_eq!(counts.connections.load(Ordering::Relaxed), 4);
    assert_eq!(counts.requests.load(Ordering::Relaxed), 4);
    for record in &records {
        assert_eq!((record.received, record.tries), (record.size, 1));
        let (connect, first) = (record.connect_s.unwrap(), record.first_byte_s.unwrap());
        assert!(record.lag_s <= connect && connect <= first && first <= record.response_time_s);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_share_connections() {
    let (records, counts) = run_with(&["/100"; 12], |options| {
        options.connections = NonZeroUsize::new(2).unwrap();
    })
    .await;
    assert_eq!(failures(&records), [None; 12], "{records:?}");
    assert_eq!(counts.connections.load(Ordering::Relaxed), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_have_their_names() {
    let (records, counts) = run_with(&["/nothing", "/short", "/closes"], |options| {
        options.requests_per_connection = Some(NonZeroU32::MIN);
    })
    .await;
    let expected = [Failure::Status(404), Failure::Short, Failure::Reset];
    assert_eq!(failures(&records), expected.map(Some));
    // What a closed connection had not answered is asked for once more.
    assert_eq!(counts.requests.load(Ordering::Relaxed), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_trusted_or_not() {
    let (address, _, pem) = serve();
    let (_, _, other) = serve();
    let file = tempfile::NamedTempFile::new().unwrap();
    for (pem, expected) in [(pem, None), (other, Some(Failure::Tls))] {
        std::fs::write(file.path(), pem).unwrap();
        let options = LoadOptions {
            protocol: Protocol::Http3,
            trust: Some(Trust::Ca(file.path().to_owned())),
            ..LoadOptions::new(
                format!("https://{address}").parse().unwrap(),
                requests(&["/1"]),
            )
        };
        let report = run(options).await.unwrap();
        assert_eq!(failures(&report.records), [expected]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_is_none_without_tls() {
    let options = LoadOptions {
        protocol: Protocol::Http3,
        ..LoadOptions::new("http://127.0.0.1:1".parse().unwrap(), requests(&["/1"]))
    };
    let error = run(options).await.unwrap_err();
    assert!(matches!(error, LoadError::Plain), "{error}");
}
