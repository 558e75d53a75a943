//! The generator against small servers on 127.0.0.1: what is sent, how connections are used,
//! and what each kind of failure is called. No test asserts how long anything takes beyond
//! what the request itself asks for.
#![allow(clippy::unwrap_used)]

mod server;

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::PrivateKeyDer;
use server::{Counts, Kind, requests, serve};
use shortline_load::trace::Request;
use shortline_load::{
    Failure, LoadError, LoadOptions, Protocol, RequestRecord, Target, Trust, run,
};
use tokio_rustls::TlsAcceptor;

/// Far longer than anything here takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);
/// Anything still running after this is known to hang; all else has ended long before.
const CUT_OFF: Duration = Duration::from_secs(2);

fn options(scheme: &str, port: u16, requests: Vec<Request>) -> LoadOptions {
    let target: Target = format!("{scheme}://127.0.0.1:{port}").parse().unwrap();
    LoadOptions {
        drain: PATIENCE,
        ..LoadOptions::new(target, requests)
    }
}

/// Runs against a server of this kind, with options changed as wanted.
async fn run_with(
    kind: Kind,
    requests: Vec<Request>,
    change: impl FnOnce(&mut LoadOptions),
) -> (Vec<RequestRecord>, Counts) {
    let scheme = match kind {
        Kind::Http1 | Kind::Http2 { .. } => "http",
        Kind::Http1Tls(_) | Kind::Http2Tls(_) => "https",
    };
    let protocol = match kind {
        Kind::Http1 | Kind::Http1Tls(_) => Protocol::Http1,
        Kind::Http2 { .. } | Kind::Http2Tls(_) => Protocol::Http2,
    };
    let (address, counts) = serve(kind).await;
    let mut options = options(scheme, address.port(), requests);
    options.protocol = protocol;
    change(&mut options);
    let report = run(options).await.unwrap();
    assert!(!report.interrupted);
    (report.records, counts)
}

const HTTP2: Kind = Kind::Http2 { streams_max: 100 };

fn failures(records: &[RequestRecord]) -> Vec<Option<Failure>> {
    records.iter().map(|record| record.failure).collect()
}

fn all_ok(records: &[RequestRecord]) -> bool {
    records.iter().all(RequestRecord::ok)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_has_a_connection_and_a_record() {
    let wanted = requests(&["/0", "/1", "/5000", "/300000"], 5);
    let (records, counts) = run_with(Kind::Http1, wanted.clone(), |_| {}).await;
    assert!(all_ok(&records), "{records:?}");
    assert_eq!(
        (counts.connections(), counts.requests(), counts.closes()),
        (4, 4, 4)
    );
    for (record, request) in records.iter().zip(&wanted) {
        assert_eq!((&record.path, record.size), (&request.path, request.bytes));
        assert_eq!((record.received, record.tries), (request.bytes, 1));
        assert_eq!(record.at_s, request.at_ns as f64 / 1e9);
        let (connect, first) = (record.connect_s.unwrap(), record.first_byte_s.unwrap());
        assert!(record.lag_s <= connect && connect <= first && first <= record.response_time_s);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn speed_and_length_shape_the_schedule() {
    let wanted = requests(&["/1", "/2", "/3", "/4"], 200);
    let (records, counts) = run_with(Kind::Http1, wanted, |options| {
        options.speed = 10.0;
        options.length = Some(Duration::from_millis(50));
    })
    .await;
    let starts: Vec<f64> = records.iter().map(|record| record.at_s).collect();
    assert_eq!(starts, [0.0, 0.02, 0.04]);
    assert_eq!(counts.requests(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_connection_is_taken_until_its_uses_are_up() {
    // One at a time: each begins when the one before has ended.
    let (records, counts) = run_with(Kind::Http1, requests(&["/10"; 7], 40), |options| {
        options.requests_per_connection = NonZeroU32::new(3);
        options.in_flight_max = NonZeroUsize::new(1);
    })
    .await;
    assert!(all_ok(&records), "{records:?}");
    // Uses 3 + 3 + 1; the third use of each says close.
    assert_eq!(
        (counts.connections(), counts.requests(), counts.closes()),
        (3, 7, 2)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_connection_that_the_server_closed_is_no_failure() {
    // `/7` is answered and the connection then closed without notice.
    let (records, counts) = run_with(Kind::Http1, requests(&["/7", "/8"], 100), |options| {
        options.requests_per_connection = NonZeroU32::new(5);
    })
    .await;
    assert!(all_ok(&records), "{records:?}");
    assert_eq!((counts.connections(), counts.requests()), (2, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_failure_is_called_by_its_name() {
    let paths = ["/missing", "/cut", "/gone", "/garbage", "/9999", "/5"];
    let mut wanted = requests(&paths, 5);
    // The trace expects one byte more than the server gives.
    wanted[5].bytes = 6;
    let (records, _) = run_with(Kind::Http1, wanted, |_| {}).await;
    assert_eq!(
        failures(&records),
        [
            Some(Failure::Status(404)),
            Some(Failure::Short),
            Some(Failure::Reset),
            Some(Failure::Protocol),
            None,
            Some(Failure::Short),
        ]
    );
    assert_eq!((records[0].received, records[1].received), (3, 9));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_connection_is_a_failed_connect() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let report = run(options("http", port, requests(&["/1"; 3], 1)))
        .await
        .unwrap();
    assert_eq!(failures(&report.records), [Some(Failure::Connect); 3]);
    assert_eq!(report.records[0].connect_s, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patience_ends_each_try() {
    let (records, counts) = run_with(Kind::Http1, requests(&["/stall"], 0), |options| {
        options.abort_after = Some(CUT_OFF);
        options.retries = 2;
    })
    .await;
    assert_eq!(failures(&records), [Some(Failure::Timeout)]);
    assert_eq!((records[0].tries, counts.connections()), (3, 3));
    assert_eq!(records[0].received, 5);
    // The time of all three tries counts.
    assert!(
        records[0].response_time_s >= 3.0 * CUT_OFF.as_secs_f64(),
        "{records:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_can_succeed_and_counts_from_the_first_start() {
    let (records, _) = run_with(Kind::Http1, requests(&["/silent-once"], 0), |options| {
        options.abort_after = Some(CUT_OFF);
        options.retries = 1;
    })
    .await;
    assert_eq!(failures(&records), [None]);
    assert_eq!(records[0].tries, 2);
    assert!(
        records[0].response_time_s >= CUT_OFF.as_secs_f64(),
        "{records:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_outstanding_after_the_drain_is_unfinished() {
    for (kind, seen) in [(Kind::Http1, 5), (HTTP2, 0)] {
        let paths = if seen == 0 {
            ["/silent", "/10"]
        } else {
            ["/stall", "/10"]
        };
        let (records, _) = run_with(kind, requests(&paths, 5), |options| {
            options.drain = CUT_OFF;
        })
        .await;
        assert_eq!(failures(&records), [Some(Failure::Unfinished), None]);
        assert_eq!(records[0].received, seen);
        assert!(records[0].response_time_s >= CUT_OFF.as_secs_f64());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_over_the_limit_starts_late_and_is_not_dropped() {
    let (records, _) = run_with(Kind::Http1, requests(&["/stall", "/10"], 1), |options| {
        options.in_flight_max = NonZeroUsize::new(1);
        options.abort_after = Some(CUT_OFF);
    })
    .await;
    assert_eq!(failures(&records), [Some(Failure::Timeout), None]);
    assert!(
        records[1].lag_s >= 0.9 * CUT_OFF.as_secs_f64(),
        "{records:?}"
    );
}

/// One worker for both sides: a late start is late because there is work to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_late_generator_opens_no_connection_because_it_is_late() {
    let (records, counts) = run_with(Kind::Http1, requests(&["/10"; 4000], 0), |options| {
        options.requests_per_connection = NonZeroU32::new(1000);
    })
    .await;
    assert!(all_ok(&records), "{:?}", failures(&records));
    assert!(counts.connections() <= 400, "{}", counts.connections());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_late_start_waits_for_no_answer() {
    let (address, counts) = serve(Kind::Http1).await;
    let wanted = requests(&["/silent"; 300], 0);
    let running = tokio::spawn(run(LoadOptions {
        requests_per_connection: NonZeroU32::new(1000),
        ..options("http", address.port(), wanted)
    }));
    let all_sent = async {
        while counts.requests() < 300 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let patience = Duration::from_secs(60);
    tokio::time::timeout(patience, all_sent).await.unwrap();
    assert_eq!(counts.connections(), 300);
    running.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_lays_streams_over_its_connections() {
    let (records, counts) = run_with(HTTP2, requests(&["/2000"; 12], 10), |options| {
        options.connections = NonZeroUsize::new(3).unwrap();
    })
    .await;
    assert!(all_ok(&records), "{records:?}");
    assert_eq!((counts.connections(), counts.requests()), (3, 12));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_opens_another_connection_when_all_are_full() {
    let mut paths = vec!["/1"];
    paths.extend(["/slow-10"; 5]);
    let wanted = requests(&paths, 20);
    let (records, counts) = run_with(Kind::Http2 { streams_max: 2 }, wanted, |options| {
        options.connections = NonZeroUsize::MIN;
    })
    .await;
    assert!(all_ok(&records), "{records:?}");
    assert!(counts.connections() >= 2, "{}", counts.connections());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_connections_end_after_their_uses() {
    let (records, counts) = run_with(HTTP2, requests(&["/100"; 10], 20), |options| {
        options.connections = NonZeroUsize::MIN;
        options.requests_per_connection = NonZeroU32::new(5);
    })
    .await;
    assert!(all_ok(&records), "{records:?}");
    assert_eq!((counts.connections(), counts.requests()), (2, 10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_failures_have_names_and_large_bodies_pass_the_windows() {
    let mut wanted = requests(&["/reset", "/missing", "/20000000", "/40"], 20);
    wanted[3].bytes = 41;
    let (records, _) = run_with(HTTP2, wanted, |options| {
        options.connections = NonZeroUsize::MIN;
    })
    .await;
    assert_eq!(
        failures(&records),
        [
            Some(Failure::Reset),
            Some(Failure::Status(404)),
            None,
            Some(Failure::Short)
        ]
    );
    assert_eq!(records[2].received, 20_000_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_aborts_the_stream_and_not_its_neighbours() {
    let (records, counts) = run_with(HTTP2, requests(&["/silent", "/slow-10"], 10), |options| {
        options.connections = NonZeroUsize::MIN;
        options.abort_after = Some(CUT_OFF);
    })
    .await;
    assert_eq!(failures(&records), [Some(Failure::Timeout), None]);
    assert_eq!(counts.connections(), 1);
}

/// A certificate for 127.0.0.1 and a server that shows it.
fn tls(protocol: &[u8]) -> (TlsAcceptor, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    (TlsAcceptor::from(Arc::new(config)), made.cert.pem())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_trusts_the_given_certificate_or_anyone() {
    for http2 in [false, true] {
        let (acceptor, pem) = tls(if http2 { b"h2" } else { b"http/1.1" });
        let kind = if http2 {
            Kind::Http2Tls(acceptor)
        } else {
            Kind::Http1Tls(acceptor)
        };
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), pem).unwrap();
        for trust in [Trust::Ca(file.path().to_owned()), Trust::Anyone] {
            let wanted = requests(&["/1", "/50000"], 5);
            let (records, _) = run_with(kind.clone(), wanted, |options| {
                options.trust = Some(trust);
            })
            .await;
            assert!(all_ok(&records), "{records:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_without_trust_or_the_wanted_protocol_fails() {
    let (acceptor, _) = tls(b"http/1.1");
    let (_, other) = tls(b"http/1.1");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), other).unwrap();
    let kind = Kind::Http1Tls(acceptor);
    let (records, _) = run_with(kind.clone(), requests(&["/1"], 0), |options| {
        options.trust = Some(Trust::Ca(file.path().to_owned()));
    })
    .await;
    assert_eq!(failures(&records), [Some(Failure::Tls)]);
    let (records, _) = run_with(kind, requests(&["/1"], 0), |options| {
        options.trust = Some(Trust::Anyone);
        options.protocol = Protocol::Http2;
    })
    .await;
    assert_eq!(failures(&records), [Some(Failure::Tls)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn options_that_cannot_be_are_errors_that_say_what_can() {
    let one = || requests(&["/1"], 0);
    let error = run(options("https", 1, one())).await.unwrap_err();
    assert!(matches!(error, LoadError::Untrusted(_)), "{error}");

    let speed = LoadOptions {
        speed: f64::NAN,
        ..options("http", 1, one())
    };
    let error = run(speed).await.unwrap_err().to_string();
    assert_eq!(error, "speed NaN: want a finite number above 0");

    let mut unsendable = one();
    unsendable[0].path = "/a b\n".into();
    let error = run(options("http", 1, unsendable))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("path `/a b\\n`: want `/...`"), "{error}");

    let many = LoadOptions {
        in_flight_max: NonZeroUsize::new(usize::MAX / 2),
        ..options("http", 1, one())
    };
    let error = run(many).await.unwrap_err();
    assert!(matches!(error, LoadError::Descriptors { .. }), "{error}");

    let file = tempfile::NamedTempFile::new().unwrap();
    let no_certificate = LoadOptions {
        trust: Some(Trust::Ca(file.path().to_owned())),
        ..options("https", 1, one())
    };
    let error = run(no_certificate).await.unwrap_err().to_string();
    assert!(
        error.ends_with("no PEM section `-----BEGIN CERTIFICATE-----` in it"),
        "{error}"
    );
}
