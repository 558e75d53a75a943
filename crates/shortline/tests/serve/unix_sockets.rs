//! Addresses in the file system: `[[listen]] address = "unix:/PATH"`, for another server on this machine.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;

use crate::admin::status;
use crate::client::{Response, get, parse, read_to_end};
use crate::process::{PATIENCE, Server, Site, pattern, wait_for};
use crate::routes::application;
use crate::sites::{refused, start, write};

fn path(site: &Site) -> PathBuf {
    site.beside("shortline.sock")
}

/// A server at an address by TCP and at one in the file system with these keys.
fn config(keys: &str, more: &str) -> String {
    format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"unix:FOLDER/shortline.sock\"\n{keys}\
         [admin]\naddress = \"127.0.0.1:0\"\n[site]\nroot = \"FOLDER/site\"\n{more}"
    )
}

fn serve(site: &Site, keys: &str, more: &str) -> Server {
    let mut server = start(site, &config(keys, more));
    server.line_with("shortline.sock (http)");
    server
}

/// What comes back over a connection of its own. `None`: nobody listens.
fn exchange(path: &Path, request: &[u8]) -> Option<Response> {
    let mut stream = UnixStream::connect(path).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // The server may close before it has read everything.
    let _ = stream.write_all(request);
    let answer = read_to_end(&mut stream);
    (!answer.is_empty()).then(|| parse(&answer))
}

fn ask(path: &Path, target: &str, fields: &str) -> Option<Response> {
    let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n");
    exchange(path, request.as_bytes())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn files_and_routes_are_served_to_this_machine() {
    let site = Site::new();
    let route = format!(
        "[[route]]\npath = \"/app\"\nupstream = [\"{}\"]\n",
        application()
    );
    let server = serve(
        &site,
        "",
        &format!("[log]\naccess = \"FOLDER/log\"\n{route}"),
    );
    let path = path(&site);
    assert_eq!(mode(&path), 0o660);
    for _ in 0..2 {
        assert_eq!(ask(&path, "/hello.txt", "").unwrap().body, b"hello\n");
        // Sent by the kernel from its own copy, as by TCP.
        assert_eq!(
            ask(&path, "/large.bin", "").unwrap().body,
            pattern(1_000_000)
        );
    }
    let told = String::from_utf8(ask(&path, "/app", "").unwrap().body).unwrap();
    assert!(
        told.contains("\r\nx-forwarded-for: 127.0.0.1\r\n"),
        "{told}"
    );
    assert_eq!(get(server.address(), "/hello.txt").status, 200);
    wait_for("the lines of the log", || {
        let log = fs::read_to_string(site.beside("log")).unwrap();
        (log.lines()
            .filter(|line| line.starts_with("127.0.0.1 "))
            .count()
            == 6)
            .then_some(())
    });
    let listens = status(&server)["listen"].to_string();
    assert!(
        listens.contains(&format!("unix:{} (http)", path.display())),
        "{listens}"
    );
}

#[test]
fn the_proxy_there_says_who_the_client_is() {
    let site = Site::new();
    let route = format!(
        "[[route]]\npath = \"/app\"\nupstream = [\"{}\"]\n",
        application()
    );
    let trusts = format!(
        "[clients]\ntrusted-proxies = [\"127.0.0.1\"]\n[log]\naccess = \"FOLDER/log\"\n{route}"
    );
    let server = serve(&site, "", &trusts);
    let path = path(&site);
    assert_eq!(
        ask(&path, "/hello.txt", "X-Forwarded-For: 192.0.2.7\r\n")
            .unwrap()
            .status,
        200
    );
    wait_for("the line of the log", || {
        fs::read_to_string(site.beside("log"))
            .unwrap()
            .starts_with("192.0.2.7 ")
            .then_some(())
    });
    drop(server);

    let _server = serve(&site, "proxy-from = [\"127.0.0.1\"]\n", &route);
    let request = "GET /app HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let announced = format!("PROXY TCP4 192.0.2.7 198.51.100.1 5000 443\r\n{request}");
    let told = exchange(&path, announced.as_bytes()).unwrap().body;
    let told = String::from_utf8(told).unwrap();
    assert!(
        told.contains("\r\nx-forwarded-for: 192.0.2.7\r\n"),
        "{told}"
    );
    assert!(
        exchange(&path, request.as_bytes()).is_none(),
        "it announces nobody"
    );
}

#[test]
fn it_takes_no_turns_on_the_uplink_unless_it_is_told_to() {
    let site = Site::new();
    for (loopback, waits) in [("false", false), ("true", true)] {
        let uplink = format!("[uplink]\nrate = \"200mbit\"\nloopback = {loopback}\n");
        let server = serve(&site, "", &uplink);
        assert_eq!(
            ask(&path(&site), "/large.bin", "").unwrap().body,
            pattern(1_000_000)
        );
        let grants = status(&server)["link"]["grants_total"].as_u64().unwrap();
        assert_eq!(grants > 1, waits, "{grants} grants");
    }
}

#[test]
fn what_a_dead_process_left_is_replaced_and_what_lives_is_not() {
    let site = Site::new();
    let server = serve(&site, "", "");
    let told = refused(&site, &config("", ""));
    assert!(
        told.contains("cannot listen on unix:") && told.contains("in use"),
        "{told}"
    );
    assert_eq!(ask(&path(&site), "/hello.txt", "").unwrap().status, 200);
    // Killed, it leaves its file.
    drop(server);
    assert!(path(&site).exists());
    let mut server = serve(&site, "mode = \"0600\"\n", "");
    assert_eq!(mode(&path(&site)), 0o600);
    assert_eq!(ask(&path(&site), "/hello.txt", "").unwrap().status, 200);
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    assert!(!path(&site).exists(), "it takes its file along");
    fs::write(path(&site), "somebody's").unwrap();
    let told = refused(&site, &config("", ""));
    assert!(told.contains("no socket"), "{told}");
    assert_eq!(fs::read_to_string(path(&site)).unwrap(), "somebody's");
}

#[test]
fn a_reload_opens_changes_and_closes_it() {
    let site = Site::new();
    let mut server = serve(&site, "", "");
    let path = path(&site);
    write(&site, &config("mode = \"0666\"\n", ""));
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    assert_eq!(mode(&path), 0o666);
    assert_eq!(ask(&path, "/hello.txt", "").unwrap().status, 200);
    write(
        &site,
        &config("", "").replace("shortline.sock", "other.sock"),
    );
    server.signal(Signal::HUP);
    server.line_with("listening on unix:");
    server.line_with("listening no more on unix:");
    assert_eq!(
        ask(&site.beside("other.sock"), "/hello.txt", "")
            .unwrap()
            .status,
        200
    );
    assert!(!path.exists());
}

#[test]
fn the_admin_endpoint_may_be_there_too() {
    let site = Site::new();
    let at = |name: &str| {
        config("", "").replace(
            "[admin]\naddress = \"127.0.0.1:0\"",
            &format!("[admin]\naddress = \"unix:FOLDER/{name}\""),
        )
    };
    let mut server = serve(&site, "", "");
    write(&site, &at("admin.sock"));
    server.signal(Signal::HUP);
    server.line_with("admin on unix:");
    server.line_with("reloaded");
    let (first, second) = (site.beside("admin.sock"), site.beside("other.sock"));
    assert_eq!(mode(&first), 0o660);
    // No page of a browser gets there, so any name does.
    let told = ask(&first, "/status", "").unwrap();
    assert_eq!(told.status, 200);
    let told: serde_json::Value = serde_json::from_slice(&told.body).unwrap();
    assert!(told["version"].is_string(), "{told}");
    let purge =
        b"POST /purge HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(exchange(&first, purge).unwrap().body, b"purged 0\n");
    write(&site, &at("other.sock"));
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    assert!(!first.exists(), "it takes its file along");
    assert_eq!(ask(&second, "/healthz", "").unwrap().status, 200);
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    assert!(!second.exists());

    let handover = site.beside("handover").display().to_string();
    let both = at("admin.sock") + &format!("[handover]\npath = \"unix:{handover}\"\n");
    let mut before = start(&site, &both);
    before.line_with("shortline.sock (http)");
    let mut after = start(&site, &both);
    assert!(before.wait().success());
    assert_eq!(ask(&first, "/healthz", "").unwrap().status, 200);
    after.signal(Signal::TERM);
    assert!(after.wait().success());
    assert!(!first.exists());
}

#[test]
fn a_new_process_takes_it_over_without_a_lost_request() {
    let site = Site::new();
    let handover = format!(
        "[handover]\npath = \"unix:{}\"\n",
        site.beside("handover").display()
    );
    let mut server = serve(&site, "", &handover);
    let (is_over, path) = (Arc::new(AtomicBool::new(false)), path(&site));
    let (ends, asked) = (Arc::clone(&is_over), path.clone());
    let visitor = std::thread::spawn(move || {
        let mut answered = 0;
        while !ends.load(Ordering::Relaxed) {
            assert_eq!(ask(&asked, "/hello.txt", "").unwrap().body, b"hello\n");
            answered += 1;
        }
        answered
    });
    for _ in 0..3 {
        let next = serve(&site, "", &handover);
        assert!(server.wait().success());
        server = next;
        assert_eq!(ask(&path, "/hello.txt", "").unwrap().status, 200);
    }
    is_over.store(true, Ordering::Relaxed);
    assert!(visitor.join().unwrap() > 0);
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    assert!(!path.exists());
}

#[test]
fn it_is_written_as_nginx_and_caddy_write_it() {
    let site = Site::new();
    let caddy = config("", "").replace("unix:FOLDER/", "unix/FOLDER/");
    let mut server = start(&site, &caddy);
    server.line_with("shortline.sock (http)");
    assert_eq!(ask(&path(&site), "/hello.txt", "").unwrap().status, 200);
    for (listen, told) in [
        ("address = \"unix:shortline.sock\"", "unix:/PATH"),
        ("address = \"unix//run/a.sock|0660\"", "unix:/PATH"),
        (
            "address = \"127.0.0.1:0\"\nmode = \"0660\"",
            "mode: is for a socket in the file system",
        ),
        (
            "address = \"unix:/tmp/a\"\nmode = \"rw\"",
            "`rw` is no mode of a file",
        ),
    ] {
        let said = refused(
            &site,
            &format!("[[listen]]\n{listen}\n[site]\nroot = \"FOLDER/site\"\n"),
        );
        assert!(said.contains(told), "{listen}: {said}");
    }
}

/// nginx in front of the server, as long as this is held.
struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        // Already gone is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn nginx_passes_its_clients_on() {
    let site = Site::new();
    let is_there = Command::new("nginx")
        .arg("-v")
        .stderr(Stdio::null())
        .status()
        .is_ok();
    if !is_there {
        eprintln!("skipped: nginx is not installed (apt-get install nginx-light)");
        return;
    }
    let trusts = "[clients]\ntrusted-proxies = [\"127.0.0.1\"]\n[log]\naccess = \"FOLDER/log\"\n";
    let _server = serve(&site, "mode = \"0666\"\n", trusts);
    // Its workers may be another user, who must get to the socket.
    fs::set_permissions(site.beside(""), fs::Permissions::from_mode(0o755)).unwrap();
    let folder = site.beside("").display().to_string();
    let config = format!(
        "daemon off; master_process off; pid {folder}pid; error_log {folder}error.log;\n\
         events {{}}\nhttp {{\naccess_log off; client_body_temp_path {folder}t1; proxy_temp_path {folder}t2;\n\
         fastcgi_temp_path {folder}t3; uwsgi_temp_path {folder}t4; scgi_temp_path {folder}t5;\n\
         server {{ listen unix:{folder}front.sock; location / {{\n\
         proxy_set_header X-Forwarded-For 192.0.2.7; proxy_pass http://unix:{}; }} }}\n}}\n",
        path(&site).display()
    );
    fs::write(site.beside("nginx.conf"), config).unwrap();
    let mut command = Command::new("nginx");
    let command = command
        .arg("-c")
        .arg(site.beside("nginx.conf"))
        .arg("-p")
        .arg(site.beside(""));
    let _nginx = Nginx(command.spawn().unwrap());
    let front = site.beside("front.sock");
    let answer = wait_for("nginx", || ask(&front, "/large.bin", ""));
    assert_eq!((answer.status, answer.body), (200, pattern(1_000_000)));
    wait_for("the line of the log", || {
        fs::read_to_string(site.beside("log"))
            .unwrap()
            .starts_with("192.0.2.7 ")
            .then_some(())
    });
}
