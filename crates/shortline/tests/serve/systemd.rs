//! Socket activation and readiness, as systemd does them.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::client::get;
use crate::process::{PATIENCE, PROGRAM, Server, Site};

/// Makes standard input descriptor 3 and says so, as sd_listen_fds(3) has it.
const ACTIVATE: &str = "exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\"";

#[test]
fn a_socket_handed_over_is_served() {
    let site = Site::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut command = Command::new("sh");
    command
        .args(["-c", ACTIVATE, PROGRAM, "serve"])
        .arg(site.root())
        .stdin(Stdio::from(OwnedFd::from(listener)));
    let server = Server::spawn(&mut command);
    drop(command);
    assert_eq!(server.address(), address);
    assert_eq!(get(address, "/hello.txt").body, b"hello\n");
}

#[test]
fn systemd_hears_of_the_start_and_the_end() {
    let site = Site::new();
    let path = site.beside("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = Command::new(PROGRAM);
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .arg(site.root())
        .env("NOTIFY_SOCKET", &path);
    let mut server = Server::spawn(&mut command);
    let told = || {
        let mut bytes = [0; 256];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    assert!(told().contains("READY=1"));
    server.signal(Signal::TERM);
    assert!(told().contains("STOPPING=1"));
    assert!(server.wait().success());
}
