//! `shortline gain` as a program: logs as they are found, and what it says of them.
#![allow(clippy::unwrap_used)]

mod databases;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn gain(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_shortline"))
        .arg("gain")
        .args(words)
        .output()
        .unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// The first result of a `gain --json` that complains of nothing.
fn json(words: &[&str]) -> serde_json::Value {
    let output = gain(words);
    let (told, error) = (text(output.stdout), text(output.stderr));
    assert_eq!(
        (output.status.code(), error.as_str()),
        (Some(0), ""),
        "{told}"
    );
    let all: serde_json::Value = serde_json::from_str(&told).unwrap();
    all["results"][0].clone()
}

/// A download of 100 seconds of a link of 800 kbit/s, a page a second meanwhile, and an hour with nothing but pages.
fn log() -> String {
    let mut log = String::new();
    let mut add = |hour: u32, second: u32, bytes: u64| {
        let (minute, second) = (second / 60, second % 60);
        writeln!(
            log,
            "192.0.2.7 - - [21/Nov/2026:{hour:02}:{minute:02}:{second:02} +0000] \"GET /a HTTP/1.1\" 200 {bytes} \"-\" \"curl/8\""
        )
        .unwrap();
    };
    add(10, 0, 10_000_000);
    (1..100).for_each(|second| add(10, second, 1_000));
    (0..60).for_each(|minute| add(11, minute * 60, 1_000));
    log
}

fn write(folder: &Path, name: &str, content: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn it_says_what_visitors_would_have_gained() {
    let folder = tempfile::tempdir().unwrap();
    let log = write(folder.path(), "access.log", log().as_bytes());
    let page = folder.path().join("gain.html");
    let words = [
        "--uplink",
        "800kbit",
        "--html",
        page.to_str().unwrap(),
        &log,
    ];
    let output = gain(&words);
    let (told, error) = (text(output.stdout), text(output.stderr));
    assert_eq!(
        (output.status.code(), error.as_str()),
        (Some(0), ""),
        "{told}"
    );
    assert!(told.contains("160 responses, 10.2 MB"), "{told}");
    // A page takes 15.5 ms of the link; under fair sharing twice that.
    let worth = "Worth it: while the link is full, responses to 10 KB come in 15.5 ms in the mean, instead of 30.9 ms with fair";
    assert!(told.contains(worth), "{told}");
    assert!(
        told.contains(
            "Those 1 to 10 MB take as long as with fair sharing: 106 s instead of 106 s."
        ),
        "{told}"
    );
    assert!(told.contains("in 1 of 2 hours"), "{told}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains("<h1>Responses to 10 KB take 15.5 ms instead of 30.9 ms</h1>")
            && page.contains("Mean response time in the busiest hour: Shortline ")
            && page.contains("<svg")
            && !page.contains("href=")
            && !page.contains("src="),
        "{page}"
    );
}

#[test]
fn it_says_where_there_is_nothing_to_gain() {
    let folder = tempfile::tempdir().unwrap();
    let log = write(folder.path(), "access.log", log().as_bytes());
    let page = folder.path().join("gain.html");
    let words = ["--uplink", "1gbit", "--html", page.to_str().unwrap(), &log];
    let told = text(gain(&words).stdout);
    assert!(
        told.contains("Nothing to gain: in no hour was the link full"),
        "{told}"
    );
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<title>Nothing to gain"), "{page}");
}

#[test]
fn rotated_packed_and_torn_logs_count_as_far_as_they_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let log = log();
    let (first, second) = log.split_at(log.len() / 2);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(first.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let packed = write(folder.path(), "access.log.1.gz", &gzip);
    let cut = write(folder.path(), "cut.gz", &gzip[..gzip.len() - 8]);
    let garbage = write(
        folder.path(),
        "garbage.log",
        &[b"\xff\x00\x80 no log\n".as_slice(), second.as_bytes()].concat(),
    );
    let result = json(&["--json", &garbage, &packed, &cut]);
    let notes = result["notes"].to_string();
    // The line that was cut in two is read in neither half.
    assert!(
        notes.contains("garbage.log: 2 lines could not be read"),
        "{notes}"
    );
    assert!(notes.contains("cut.gz: gzip is cut short"), "{notes}");
    assert!(result["responses"].as_u64().unwrap() >= 159, "{result}");
    assert_eq!(result["rate_from"], "busiest-hour");
}

#[test]
fn clients_are_never_named() {
    let folder = tempfile::tempdir().unwrap();
    let torn = "192.0.2.77 - - [21/Nov/2026:10:00:00 +0000] \"GET\n192.0.2.77\n192.0.2.77 [never] \"GET\" 1 2\n";
    let log = write(
        folder.path(),
        "access.log",
        [torn, &log(), torn].concat().as_bytes(),
    );
    let page = folder.path().join("gain.html");
    for option in [&["--html", page.to_str().unwrap()][..], &["--json"]] {
        let output = gain(&[option, &[&*log]].concat());
        let told = text(output.stdout);
        assert!(told.contains("6 lines could not be read"), "{told}");
        assert!(!told.contains("192.0.2"), "{told}");
    }
    assert!(!std::fs::read_to_string(page).unwrap().contains("192.0.2"));
}

#[test]
fn standard_input_is_a_log_too() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_shortline"))
        .args(["gain", "-", "--uplink", "800kbit"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(log().as_bytes())
        .unwrap();
    let told = text(child.wait_with_output().unwrap().stdout);
    assert!(told.starts_with("standard input: 160 responses"), "{told}");
}

#[test]
fn what_cannot_be_answered_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let empty = write(folder.path(), "empty.log", b"");
    let told = |words: &[&str]| {
        let output = gain(words);
        (output.status.code(), text(output.stderr))
    };
    let (code, error) = told(&[&empty]);
    assert_eq!((code, error.lines().count()), (Some(1), 1), "{error}");
    assert!(
        error.starts_with("shortline: no log has a GET answered 200: want logs in Common"),
        "{error}"
    );
    let (code, error) = told(&["nowhere.log"]);
    assert_eq!(
        (code, error.as_str()),
        (
            Some(1),
            "shortline: nowhere.log: No such file or directory (os error 2)\n"
        )
    );
    let (code, error) = told(&["--json", "--html", "-", &empty]);
    assert_eq!((code, error.lines().count()), (Some(2), 1), "{error}");
}

/// A download of two seconds of 2 Mbit/s, and pages behind it.
fn busy_second() -> String {
    let mut log = String::new();
    for bytes in [500_000].into_iter().chain([1_000; 30]) {
        let line =
            format!("192.0.2.7 - - [21/Nov/2026:10:00:00 +0000] \"GET /a HTTP/1.1\" 200 {bytes}\n");
        log.push_str(&line);
    }
    log
}

#[test]
fn the_busiest_minute_is_replayed_for_real() {
    let folder = tempfile::tempdir().unwrap();
    let log = write(folder.path(), "access.log", busy_second().as_bytes());
    let files = folder.path().join("files");
    std::fs::create_dir(&files).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_shortline"))
        .args(["gain", "--uplink", "2mbit", "--live", "1s", "--json", &log])
        .env("TMPDIR", &files)
        .output()
        .unwrap();
    let (told, error) = (text(output.stdout), text(output.stderr));
    assert_eq!(
        (output.status.code(), error.as_str()),
        (Some(0), ""),
        "{told}"
    );
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let live = &told["results"][0]["live"];
    assert_eq!(live["responses"], 31, "{live}");
    let [fifo, _, shortline] = [0, 1, 2].map(|server| {
        let page = &live["classes"][0];
        let mean = |what: &str| page[what][server]["mean_s"].as_f64().unwrap();
        (mean("predicted"), mean("replayed"))
    });
    // Behind the download pages wait two seconds. When they really come is no matter of this test: a neighbour may be busy.
    assert!(fifo.0 > 1.0 && shortline.0 < 0.1, "{live}");
    assert!(fifo.1 > 0.0 && shortline.1 > 0.0, "{live}");
    // Its files are gone.
    assert_eq!(std::fs::read_dir(files).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_replayed_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let log = write(folder.path(), "access.log", busy_second().as_bytes());
    for (uplink, live, told) in [
        (
            "100gbit",
            "60s",
            "--live replays links of 100 kbit/s to 1.00 Gbit/s, not of 100 Gbit/s",
        ),
        ("2mbit", "1h", "want a time of 1 s to 300 s, such as 60s"),
        ("2mbit", "soon", "want a time of 1 s to 300 s, such as 60s"),
    ] {
        let output = gain(&["--uplink", uplink, "--live", live, &log]);
        let error = text(output.stderr);
        assert_eq!(
            (output.status.code(), error.lines().count()),
            (Some(2), 1),
            "{error}"
        );
        assert!(error.contains(told), "{error}");
    }
}

/// Lookups, four at a time, in the order in which they end.
fn statements(count: u32) -> String {
    let line = |number: u32| {
        let (minute, second) = (number / 60 % 60, number % 60);
        let value = number.wrapping_mul(0x9e37_79b9);
        format!(
            "2026-11-26 10:{minute:02}:{second:02}.{:03} CET [7] LOG:  duration: 4000 ms  statement: SELECT a FROM t WHERE b = {value}\n",
            number % 1000
        )
    };
    (0..count).map(line).collect()
}

#[test]
fn a_databases_log_counts_as_far_as_it_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(statements(3_000).as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let cut = write(folder.path(), "cut.gz", &gzip[..gzip.len() - 9]);
    let slow = "# Query_time: 1.5  Lock_time: 0\nSET timestamp=1795683600;\nSELECT 7;\n";
    let later = statements(50);
    // Binary garbage, a line that was cut, another format, and times that run backwards.
    let mixed = [
        &b"\xff\x00\x80 no log\n"[..],
        later.as_bytes(),
        &later.as_bytes()[30..],
        slow.as_bytes(),
    ]
    .concat();
    let mixed = write(folder.path(), "mixed.log", &mixed);
    let result = json(&["--json", "--processors", "2", &mixed, &cut]);
    let notes = result["notes"].to_string();
    assert!(
        notes.contains("mixed.log: 1 line could not be read; the first: line 1"),
        "{notes}"
    );
    assert!(notes.contains("cut.gz: gzip is cut short"), "{notes}");
    let count = result["statements"].as_u64().unwrap();
    assert!((100 + 1_000..3_101).contains(&count), "{result}");
    // In the hour of CET that is an hour earlier in UTC.
    assert_eq!(result["busiest_unix_s"], 1_795_683_600);
    assert!(result["full_s"].as_f64().unwrap() > 1_000.0, "{result}");
}

#[test]
fn what_does_not_go_together_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let site = write(folder.path(), "access.log", log().as_bytes());
    let database = write(folder.path(), "postgres.log", statements(9).as_bytes());
    let rows = write(
        folder.path(),
        "rows.csv",
        b"query,calls,mean_exec_time\nSELECT 1,2,3\n",
    );
    for (words, want) in [
        (vec![&*site, &*database], "is a web server's log, "),
        (vec![&*rows, &*rows], "several tables of pg_stat_statements"),
        (
            vec!["--processors", "2", &*site],
            "--processors is for a database's log",
        ),
        (
            vec!["--uplink", "1mbit", &*database],
            "--uplink is for a web server's log",
        ),
        (
            vec!["--live", "60s", &*rows],
            "--live is for a web server's log",
        ),
    ] {
        let output = gain(&words);
        let error = text(output.stderr);
        assert_eq!(
            (output.status.code(), error.lines().count()),
            (Some(2), 1),
            "{error}"
        );
        assert!(error.contains(want), "{error}");
    }
}
