//! A service of gRPC, by gRPC's own library (`calls.py`).

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A service of gRPC. It ends with the test.
pub struct Service {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

/// The service and its client.
pub fn script() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/serve/calls.py")
}

/// A Python that has gRPC. `None`, with a line that says so, if there is none.
pub fn python() -> Option<&'static str> {
    let has_grpc = |python: &&str| {
        let tried = Command::new(python)
            .args(["-c", "import grpc"])
            .stderr(Stdio::null())
            .status();
        tried.is_ok_and(|status| status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has_grpc);
    if found.is_none() {
        eprintln!("skipped: no Python with gRPC; scripts/setup installs it");
    }
    found
}

impl Service {
    /// One at a free port.
    pub fn start(python: &str) -> Self {
        let mut child = Command::new(python)
            .arg(script())
            .arg("server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut port)
            .unwrap();
        let address = format!("127.0.0.1:{}", port.trim()).parse().unwrap();
        Self { child, address }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
