//! The generator's closed loop against small servers on 127.0.0.1: who asks when, and over
//! whose connections. The only times asserted are those that users wait by themselves.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "tests/generator.rs uses the rest")]
mod server;

use std::collections::HashMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::time::Duration;

use server::{Counts, Kind, serve};
use shortline_load::workload::SurgePreset;
use shortline_load::{LoadOptions, Protocol, RequestRecord, Target, Work, run};

/// Users of SURGE's small site for some seconds.
fn users(count: u64) -> Work {
    let count = NonZeroU64::new(count).unwrap();
    Work::Users(Arc::new(SurgePreset::ALL[1].users(count, 1)))
}

fn options(port: u16, count: u64) -> LoadOptions {
    let target: Target = format!("http://127.0.0.1:{port}").parse().unwrap();
    LoadOptions::new(target, users(count))
}

/// So many users for six seconds. The server answers with 5 bytes whatever the file's size, so
/// users are judged by what they ask for and when.
async fn run_users(
    kind: Kind,
    count: u64,
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

/// The second run's connections are kept, so it is not the first over again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_runs_join_by_user_and_request() {
    let (one, _) = run_users(Kind::Http1, 40, |_| {}).await;
    let (other, _) = run_users(Kind::Http1, 40, |options| {
        options.requests_per_connection = NonZeroU32::new(1_000);
    })
    .await;
    let paths: HashMap<_, _> = other
        .iter()
        .map(|record| (record.turn.unwrap(), &record.path))
        .collect();
    assert_eq!(paths.len(), other.len(), "a number was given twice");
    let both = one
        .iter()
        .filter_map(|record| Some((record, *paths.get(&record.turn.unwrap())?)));
    let both: Vec<_> = both.collect();
    assert!(both.len() > 50, "{}", both.len());
    assert!(both.iter().all(|(record, path)| record.path == **path));
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
