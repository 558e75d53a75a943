//! `--capacity calibrate` in front of an application that does four requests at once well, and
//! less the more there are beyond: all of its clients at once are far beyond.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::application::{application, gate, ok};
use crate::client::{connect, read_one};
use crate::process::wait_for;
use crate::relayed::status;

const CLIENTS: usize = 32;
/// What a request takes alone: so long that the application, and not a busy machine, is what limits.
const ALONE: Duration = Duration::from_millis(20);
const SERVERS: f64 = 4.0;
/// By how much each request beyond these slows all.
const FALL: f64 = 0.3;
/// Trials that differ by less count as the same, and of the same the smallest capacity is the best.
const NOISE: f64 = 0.02;

/// Shares what the application does among `inside`, until it has done one request's work.
fn work(inside: &AtomicUsize) {
    inside.fetch_add(1, Ordering::SeqCst);
    let mut left = ALONE.as_secs_f64();
    let mut now = Instant::now();
    while left > 0.0 {
        std::thread::sleep(ALONE / 4);
        let requests = inside.load(Ordering::SeqCst) as f64;
        let beyond = (requests - SERVERS).max(0.0);
        let rate = requests.min(SERVERS) / requests / (1.0 + FALL * beyond);
        left -= now.elapsed().as_secs_f64() * rate;
        now = Instant::now();
    }
    inside.fetch_sub(1, Ordering::SeqCst);
}

#[test]
fn the_search_ends_and_tells_the_flag() {
    let inside = AtomicUsize::new(0);
    let upstream = application(move |_| {
        work(&inside);
        ok("done")
    });
    let folder = tempfile::tempdir().unwrap();
    let estimates = folder.path().join("estimates.json");
    let flags = [
        "--capacity",
        "calibrate",
        "--trial-time",
        "500ms",
        "--estimates",
        estimates.to_str().unwrap(),
    ];
    let mut server = gate(upstream, &flags);
    let over = Arc::new(AtomicBool::new(false));
    let address = server.address();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let over = Arc::clone(&over);
            std::thread::spawn(move || {
                let mut stream = connect(address);
                while !over.load(Ordering::Relaxed) {
                    stream
                        .write_all(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
                        .unwrap();
                    assert_eq!(read_one(&mut stream).status, 200);
                }
            })
        })
        .collect();
    let admin = server.admin.unwrap();
    let state = || status(admin)["admission"]["capacity_state"].clone();
    assert_eq!(state()["mode"], "calibrate");
    let mut trials = 0;
    while state()["stage"] != "over" {
        trials = wait_for("the next trial", || {
            let state = state();
            let more = state["trials"].as_u64()?;
            (more > trials || state["stage"] == "over").then_some(more)
        });
    }
    // Of two that ended between two looks, the last is told.
    server.line_with("calibrate: trial ");
    let told = server.line_with("calibrated: --capacity ");
    let told = told.split_whitespace().last().unwrap().to_owned();

    let state = state();
    // Where the knee is found is tried in virtual time, with the search itself: here the machine decides.
    let work_rate = |which: &str| state[which]["work_rate"].as_f64().unwrap();
    assert!(
        work_rate("best") >= work_rate("last") * (1.0 - NOISE),
        "{state}"
    );
    assert!(state["trials"].as_u64().unwrap() >= 2, "{state}");
    // A search of more than a minute has kept what it knew by then before.
    wait_for("what was found to be kept", || {
        let kept = std::fs::read_to_string(&estimates).ok()?;
        let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
        (kept["kept"]["capacity_ns"] == state["best"]["capacity_ns"]).then_some(())
    });
    over.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().unwrap();
    }

    // What was told is what the next one is told.
    let next = gate(upstream, &["--capacity", &told]);
    assert_eq!(status(next.admin.unwrap())["settings"]["capacity"], told);
}
