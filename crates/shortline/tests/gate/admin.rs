//! The admin endpoint: what it has, and what it refuses.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Command;

use crate::client::{get, parse, read_to_end, request};
use crate::gate;
use crate::process::{PROGRAM, Server, wait_for};
use crate::relayed::status;

/// A gate whose backend nobody asks for.
pub fn gate(flags: &[&str]) -> Server {
    gate::gate("postgres", "127.0.0.1:1", flags)
}

#[test]
fn it_may_be_a_socket_in_the_file_system_and_obeys_who_connects_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("admin.sock");
    let mut command = Command::new(PROGRAM);
    command
        .args(["gate", "postgres", "--listen", "127.0.0.1:0"])
        .args(["--upstream", "127.0.0.1:1"])
        .args(["--admin", &format!("unix:{}", path.display())]);
    let _server = Server::spawn(&mut command);
    let mut stream = wait_for("the admin", || UnixStream::connect(&path).ok());
    let say = "POST /command HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nConnection: close\r\n\r\nSHOW VERSION";
    stream.write_all(say.as_bytes()).unwrap();
    let answer = parse(&read_to_end(&mut stream));
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!(answer.status, 200, "{body}");
}

#[test]
fn status_tells_what_was_asked_for() {
    let server = gate(&[
        "--capacity",
        "400ms",
        "--policy",
        "fifo",
        "--queue-max",
        "7",
    ]);
    let settings = status(server.admin.unwrap())["settings"].clone();
    assert_eq!(settings["kind"], "postgres");
    assert_eq!(settings["policy"], "fifo");
    assert_eq!(settings["capacity"], "400ms");
    assert_eq!(settings["queue_max"], 7);
    assert_eq!(settings["upstream"], "127.0.0.1:1");
}

#[test]
fn each_path_has_its_kind_of_answer() {
    let server = gate(&[]);
    let admin = server.admin.unwrap();
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/status", "application/json"),
        ("/history", "application/json"),
        ("/metrics", "text/plain; version=0.0.4; charset=utf-8"),
        ("/healthz", "text/plain; charset=utf-8"),
    ] {
        let got = get(admin, path);
        assert_eq!(got.status, 200, "{path}");
        assert_eq!(got.field("content-type"), Some(kind), "{path}");
        let policy = got.field("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
    }
    assert_eq!(get(admin, "/nothing").status, 404);
    let posted = request(admin, "POST", "/status", "Content-Length: 0\r\n");
    assert_eq!(posted.status, 405);
    let metrics = String::from_utf8(get(admin, "/metrics").body).unwrap();
    assert!(
        metrics.contains("shortline_gate_info{kind=\"postgres\",policy=\"sjf\"} 1\n"),
        "{metrics}"
    );
    let line_is_sound = |line: &str| {
        let value = line.rsplit_once(' ').map(|(_, value)| value.parse::<f64>());
        line.starts_with("# ") || matches!(value, Some(Ok(_)))
    };
    assert!(metrics.lines().all(line_is_sound), "{metrics}");
}
