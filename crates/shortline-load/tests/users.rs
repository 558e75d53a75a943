//! The generator's closed loop against small servers on 127.0.0.1: who asks when, and over
//! whose connections. The only times asserted are those that users wait by themselves.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "tests/generator.rs uses the rest")]
mod server;

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use server::{Counts, Kind, serve};
use shortline_load::workload::{SurgePreset, UserModel};
use shortline_load::{LoadOptions, Protocol, RequestRecord, Target, Work, run};

/// Users of SURGE's small site for some seconds.
fn users(count: usize) -> Work {
    let model = UserModel::new(SurgePreset::ALL[1].site(), 1);
    Work::Users {
        count: NonZeroUsize::new(count).unwrap(),
        model: Arc::new(model),
    }
}

fn options(port: u16, count: usize) -> LoadOptions {
    let target: Target = format!("http://127.0.0.1:{port}").parse().unwrap();
    LoadOptions::new(target, users(count))
}

/// So many users for six seconds. The server answers with 5 bytes whatever the file's size, so
/// users are judged by what they ask for and when.
async fn run_users(
    kind: Kind,
    count: usize,
    change: impl FnOnce(&mut LoadOptions),
) -> (Vec<RequestRecord>, Counts) {
    let (address, counts) = serve(kind).await;
    let mut options = options(address.port(), count);
    options.length = Some(Duration::from_secs(6));
    options.drain = Duration::from_secs(60);
    change(&mut options);
    (run(options).await.unwrap().records, counts)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_ask_again_after_they_were_answered() {
    let (records, counts) = run_users(Kind::Http1, 40, |_| {}).await;
    // Each asks for 0.4 files a second, so 106 come in the mean.
    assert!(records.len() > 60, "{}", records.len());
    assert_eq!(counts.requests(), records.len());
    assert_eq!(counts.connections(), records.len());
    assert!(records.is_sorted_by(|a, b| a.at_s <= b.at_s));
    assert!(records.iter().all(|record| record.at_s < 6.0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_users_kept_connection_is_its_own() {
    let (records, counts) = run_users(Kind::Http1, 20, |options| {
        options.requests_per_connection = NonZeroU32::new(1_000);
    })
    .await;
    // Three quarters of the users come within six seconds.
    let came = 8..=20;
    assert!(records.len() > 30, "{}", records.len());
    assert!(
        came.contains(&counts.connections()),
        "{}",
        counts.connections()
    );
    let (records, counts) = run_users(Kind::Http2 { streams_max: 100 }, 20, |options| {
        options.protocol = Protocol::Http2;
    })
    .await;
    assert_eq!(counts.requests(), records.len());
    assert!(
        came.contains(&counts.connections()),
        "{}",
        counts.connections()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_need_an_end() {
    let error = run(options(1, 1)).await.unwrap_err();
    assert_eq!(error.to_string(), "users ask for ever: want a length");
}
