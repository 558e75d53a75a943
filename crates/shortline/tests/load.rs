//! `shortline load` as a program: exit codes, what goes where, and an interrupt.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Far longer than anything here takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);

use flate2::Compression;
use flate2::write::GzEncoder;

/// Answers every connection's first request with the file below the folder.
fn file_server(root: PathBuf) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, root) = (stream.unwrap(), root.clone());
            std::thread::spawn(move || {
                let mut head = [0; 1024];
                let count = stream.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..count]).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default();
                let body = std::fs::read(root.join(path.trim_start_matches('/'))).unwrap();
                let length = body.len();
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(&body);
            });
        }
    });
    address
}

/// Answers every connection's first request with five bytes, `/hang` never.
fn server() -> SocketAddr {
    server_that_tells().0
}

/// The same; says when a request is answered or hangs.
fn server_that_tells() -> (SocketAddr, Receiver<()>) {
    let (tell, told) = channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut hanging = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 1024];
            let count = stream.read(&mut head).unwrap_or(0);
            if head[..count].starts_with(b"GET /hang") {
                hanging.push(stream);
            } else {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
            }
            // Most tests do not listen.
            let _ = tell.send(());
        }
    });
    (address, told)
}

struct Trace(tempfile::TempDir);

impl Trace {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("trace.csv"), text).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, address: SocketAddr) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shortline"));
        command
            .args(["load", "--target", &format!("http://{address}"), "--trace"])
            .arg(self.file("trace.csv"));
        command
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn assert_error(output: &Output, code: i32, part: &str) {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(
        error.starts_with("shortline: ") && error.contains(part),
        "{error}"
    );
}

/// A busy machine makes a run void, which is no failure.
fn assert_ran(output: &Output) {
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 3)), "{}", text(&output.stderr));
}

#[test]
fn a_run_prints_its_summary_and_writes_its_records() {
    let trace = Trace::new("seconds,path,bytes\n0,/a,5\n0.01,/b,5\n");
    let mut command = trace.command(server());
    let output = command
        .arg("--out")
        .arg(trace.file("r.csv"))
        .output()
        .unwrap();
    let summary = text(&output.stdout);
    assert_ran(&output);
    assert!(
        summary.starts_with("requests       2   finished 2   failed 0\n"),
        "{summary}"
    );
    let records = std::fs::read_to_string(trace.file("r.csv")).unwrap();
    let lines: Vec<&str> = records.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[1].starts_with("0.000000,/a,5,5,1,1,") && lines[1].ends_with(','));
}

#[test]
fn a_trace_without_a_good_line_is_refused_with_its_first_and_exit_code_1() {
    let trace = Trace::new("0,a,5\n0,b,5\n");
    let output = trace.command(server()).output().unwrap();
    assert_error(&output, 1, "trace.csv: line 1: path `a`: want `/...`");
}

#[test]
fn a_bad_line_of_a_trace_is_counted_and_the_rest_is_asked_for() {
    let trace = Trace::new("0,/a,5\n0,a,5\n0,/b,5\n");
    let output = trace.command(server()).output().unwrap();
    assert_ran(&output);
    let told = text(&output.stderr);
    let first = "trace.csv: 1 line could not be read; the first: line 2: path `a`: want `/...`";
    assert!(told.contains(first), "{told}");
    let summary = text(&output.stdout);
    assert!(summary.starts_with("requests       2 "), "{summary}");
}

#[test]
fn a_packed_trace_comes_from_standard_input_and_records_go_to_standard_output() {
    let target = format!("http://{}", server());
    let trace = tempfile::tempfile().unwrap();
    let mut packed = GzEncoder::new(trace, Compression::default());
    packed.write_all(b"0,/a,5\n0,/b,5\n").unwrap();
    let mut trace = packed.finish().unwrap();
    trace.rewind().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_shortline"));
    command.args(["load", "--target", &target, "--trace", "-", "--out", "-"]);
    let output = command.stdin(trace).output().unwrap();
    assert_ran(&output);
    let records = text(&output.stdout);
    assert!(records.starts_with("at,path,size,"), "{records}");
    assert_eq!(records.lines().count(), 3, "{records}");
    let summary = text(&output.stderr);
    assert!(summary.contains("requests       2 "), "{summary}");
}

#[test]
fn a_closed_pipe_behind_a_run_is_no_error() {
    for out in [&["--out", "-"][..], &[]] {
        let trace = Trace::new("0,/a,5\n");
        let (nobody, closed) = std::io::pipe().unwrap();
        drop(nobody);
        let mut command = trace.command(server());
        let output = command.args(out).stdout(closed).output().unwrap();
        assert_ran(&output);
        let told = text(&output.stderr);
        assert!(!told.contains("pipe") && !told.contains("panic"), "{told}");
    }
}

#[test]
fn a_run_that_is_void_exits_3() {
    // The second request starts when the first was given up. On a busy machine the first is late, too.
    let trace = Trace::new("0,/hang,5\n0,/a,5\n");
    let mut command = trace.command(server());
    let flags = ["--in-flight-max", "1", "--abort-after", "500ms"];
    let output = command.args(flags).output().unwrap();
    let why = "of 2 requests started more than 5 ms late";
    assert_error(&output, 3, why);
    let summary = text(&output.stdout);
    let is_void = |late: u8| summary.contains(&format!("VOID           {late} of 2"));
    assert!(is_void(1) || is_void(2), "{summary}");
}

#[test]
fn a_run_in_which_nothing_finishes_fails() {
    let trace = Trace::new("0,/a,6\n");
    let output = trace.command(server()).output().unwrap();
    assert_error(&output, 1, "none of 1 requests finished");
    assert!(text(&output.stdout).contains("failed 1: short 1"));
}

#[test]
fn an_interrupt_ends_the_run_and_voids_it() {
    let trace = Trace::new("0,/a,5\n0,/hang,5\n3600,/a,5\n");
    let (address, told) = server_that_tells();
    let mut command = trace.command(address);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..2 {
        told.recv_timeout(PATIENCE).unwrap();
    }
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(
        told.any(|line| line.unwrap().contains("  done 1  ")),
        "the progress does not say that the answer was read"
    );
    let signal = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(signal.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let summary = text(&output.stdout);
    assert!(
        summary.contains("requests       2   finished 1   failed 1: unfinished 1"),
        "{summary}"
    );
    assert!(summary.contains("VOID           interrupted"), "{summary}");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
}

fn load(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shortline"));
    command.arg("load").args(arguments).output().unwrap()
}

#[test]
fn a_site_is_written_and_asked_for_in_both_loops() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let output = load(&["--surge", "surge-003", "--write-site", root]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(said.starts_with("surge-003: 1000 files, 137"), "{said}");

    let target = format!("http://{}", file_server(folder.path().to_owned()));
    let users = ["--users", "20", "--seconds", "4"];
    let open = [
        "--open",
        "--schedule",
        "1s@0.2,1s@1.2",
        "--uplink",
        "10mbit",
    ];
    let open = [&open[..], &["--seconds", "2"]].concat();
    for how in [&users[..], &open] {
        let output = load(&[&["--target", &target, "--surge", "surge-003"], how].concat());
        let said = text(&output.stdout);
        assert_ran(&output);
        assert!(said.contains("failed 0\n"), "{said}");
        assert!(said.contains("incomplete     0.00 % of all"), "{said}");
    }
}

#[test]
fn bad_usage_is_told_in_one_line() {
    let target = ["--target", "http://127.0.0.1:1"];
    for (arguments, part) in [
        (&["--surge"][..], "surge-003 without a load: want --users N"),
        (
            &[][..],
            "no workload: want --trace FILE, --surge or --twin NAME",
        ),
        (
            &["--twin", "nasal"][..],
            "site `nasal`: want world-cup, nasa",
        ),
        (
            &["--twin", "nasa", "--uplink", "1mbit", "--schedule", "w1,w2"][..],
            "schedule `w1,w2`: load `w1,w2` is not from 0 to 100",
        ),
    ] {
        let output = load(&[&target[..], arguments].concat());
        assert_error(&output, 2, part);
    }
}
