//! A site of PHP programs, run by the system's PHP-FPM.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::admin::status;
use crate::client::{Response, connect, exchange, get, parse, read_one, read_to_end, request};
use crate::process::{PROGRAM, Server, Site, pattern, wait_for};
use crate::tls;

/// Of one client's requests some are too many for one process.
const PROCESSES: usize = 3;

/// PHP-FPM with the programs of `tests/serve/php`; killed when the test lets go of it.
pub struct Fpm {
    /// Its programs.
    pub site: Site,
    master: Child,
}

impl Fpm {
    /// `None`, with a line that says so, if there is no PHP-FPM.
    pub fn start() -> Option<Self> {
        let Some(program) = program() else {
            eprintln!("skipped: no php-fpm; scripts/setup installs it");
            return None;
        };
        let site = Site::new();
        copy(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/php"),
            &site.root(),
        );
        std::fs::create_dir(site.beside("sessions")).unwrap();
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(site.beside("sessions"), open).unwrap();
        let folder = site.beside("");
        let user = match rustix::process::geteuid().is_root() {
            true => "user = root\ngroup = root\n",
            false => "",
        };
        let text = format!(
            "[global]\nerror_log = {0}/fpm.log\ndaemonize = no\n[www]\n{user}listen = {0}/php.sock\npm = static\n\
             pm.max_children = {PROCESSES}\nping.path = /ping\nphp_admin_flag[log_errors] = on\n\
             php_admin_value[session.save_path] = {0}/sessions\nphp_admin_value[upload_max_filesize] = 64M\n\
             php_admin_value[post_max_size] = 64M\n",
            folder.display()
        );
        let configuration = site.beside("fpm.conf");
        std::fs::write(&configuration, text).unwrap();
        let master = Command::new(program)
            .args([
                "--no-php-ini",
                "--allow-to-run-as-root",
                "--nodaemonize",
                "--fpm-config",
            ])
            .arg(configuration)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let fpm = Self { site, master };
        wait_for("php-fpm", || UnixStream::connect(fpm.socket()).ok());
        Some(fpm)
    }

    fn socket(&self) -> PathBuf {
        self.site.beside("php.sock")
    }

    /// A server of the site, with more keys of the route and of its table.
    fn serve(&self, route: &str, fastcgi: &str) -> Server {
        self.serve_with("", route, fastcgi)
    }

    /// The same, with more keys before them.
    pub fn serve_with(&self, before: &str, route: &str, fastcgi: &str) -> Server {
        let text = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n{before}\n[site]\nroot = \"{}\"\n\
             [[route]]\npath = \"/\"\nupstream = [\"fastcgi://{}\"]\n{route}\n[route.fastcgi]\n{fastcgi}\n",
            self.site.root().display(),
            self.socket().display()
        );
        let file = self.site.beside("shortline.toml");
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(PROGRAM);
        command.arg("serve").arg("--config").arg(file);
        Server::spawn(&mut command)
    }
}

impl Drop for Fpm {
    fn drop(&mut self) {
        // It ends its processes, which a kill would leave. Already gone is fine.
        let master = Pid::from_child(&self.master);
        let _ = kill_process(master, Signal::TERM);
        let _ = self.master.wait();
    }
}

fn program() -> Option<PathBuf> {
    let folders = ["/usr/sbin", "/usr/local/sbin", "/usr/bin"];
    let names = folders
        .iter()
        .flat_map(std::fs::read_dir)
        .flatten()
        .flatten();
    let mut found: Vec<PathBuf> = names
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("php-fpm"))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found.pop()
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            std::fs::create_dir_all(&copied).unwrap();
            copy(&path, &copied);
        } else {
            std::fs::copy(path, copied).unwrap();
        }
    }
}

fn text(response: &Response) -> String {
    let body = match response.field("transfer-encoding") {
        Some(_) => unchunked(&response.body),
        None => response.body.clone(),
    };
    String::from_utf8(body).unwrap()
}

/// The body of chunks; a body that breaks off panics.
fn unchunked(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = chunks.windows(2).position(|pair| pair == b"\r\n").unwrap();
        let length = std::str::from_utf8(&chunks[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return body;
        }
        body.extend_from_slice(&chunks[end + 2..end + 2 + length]);
        chunks = &chunks[end + 2 + length + 2..];
    }
}

/// What a program knows of a request, by `/server`.
fn variables(response: &Response) -> serde_json::Value {
    serde_json::from_str(&text(response)).unwrap()
}

fn post(server: &Server, target: &str, kind: &str, body: &[u8]) -> Response {
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    parse(&exchange(
        server.address(),
        [head.as_bytes(), body].concat(),
    ))
}

const FORM: &str = "application/x-www-form-urlencoded";

/// A digest by a program that is everywhere.
fn sha1(bytes: &[u8]) -> String {
    let mut program = Command::new("sha1sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    program.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = program.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap()[..40].to_owned()
}

#[test]
fn programs_files_and_pretty_addresses_of_a_site() {
    let Some(fpm) = Fpm::start() else { return };
    let server = fpm.serve("", "");
    let at = |target: &str| {
        let response = get(server.address(), target);
        (response.status, text(&response))
    };
    assert_eq!(at("/"), (200, "<h1>home</h1>\n".to_owned()));
    assert_eq!(
        at("/index.php").0,
        404,
        "the program itself knows no such page"
    );
    assert_eq!(
        at("/hello/w%C3%B6rld?page=7"),
        (200, "hello wörld, page 7\n".to_owned())
    );
    assert_eq!(
        at("/style.css"),
        (200, "body { color: canvastext }\n".to_owned())
    );
    assert_eq!(at("/admin/").1, "admin of /admin/index.php at the top\n");
    assert_eq!(
        at("/admin/index.php/a/b").1,
        "admin of /admin/index.php at /a/b\n"
    );
    let slash = get(server.address(), "/admin?x=1");
    assert_eq!(
        (slash.status, slash.field("location")),
        (301, Some("/admin/?x=1"))
    );
    assert_eq!(at("/none"), (404, "no such page here\n".to_owned()));

    // What was uploaded is never run, whatever is written behind it, and no program's text is shown.
    assert_eq!(
        at("/uploads/photo.jpg").1,
        "<?php echo 'an uploaded picture was run';\n"
    );
    for trick in [
        "/uploads/photo.jpg/x.php",
        "/uploads/photo.jpg/index.php",
        "/uploads/photo.jpg/",
    ] {
        assert_eq!(
            at(trick),
            (404, "no such page here\n".to_owned()),
            "{trick}"
        );
    }
    assert_eq!(at("/uploads/photo.jpg%00.php").0, 400);

    let head = request(server.address(), "HEAD", "/hello/you", "");
    assert_eq!((head.status, head.body.len()), (200, 0));
    let moved = get(server.address(), "/moved");
    assert_eq!(
        (moved.status, moved.field("location")),
        (302, Some("/hello/there"))
    );
    // All of a page is there with its head, so its length is known.
    let page = get(server.address(), "/hello/you");
    assert_eq!(page.content_length(), page.body.len());
}

#[test]
fn forms_uploads_and_sessions_work() {
    let Some(fpm) = Fpm::start() else { return };
    let server = fpm.serve("", "");
    assert_eq!(
        text(&post(&server, "/form", FORM, b"name=Ann+B")),
        "you are Ann B\n"
    );

    let file = pattern(5_000_000);
    let parts = [
        b"--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n\r\n",
        &file[..],
        b"\r\n--xyz--\r\n",
    ];
    let told = post(
        &server,
        "/upload",
        "multipart/form-data; boundary=xyz",
        &parts.concat(),
    );
    assert_eq!(text(&told), format!("a.bin 5000000 {}\n", sha1(&file)));

    let entered = post(&server, "/login", FORM, b"name=Ann");
    assert_eq!(
        (entered.status, entered.field("location")),
        (303, Some("/account"))
    );
    let cookies: Vec<&str> = entered
        .head
        .lines()
        .filter_map(|line| line.strip_prefix("set-cookie: "))
        .map(|cookie| cookie.split(';').next().unwrap())
        .collect();
    assert_eq!(cookies.len(), 2, "{}", entered.head);
    let account = |fields: &str| text(&request(server.address(), "GET", "/account", fields));
    let cookie = format!("Cookie: {}\r\n", cookies.join("; "));
    assert_eq!(account(&cookie), "account of Ann, dark\n");
    assert_eq!(account(""), "account of nobody, light\n");
}

#[test]
fn a_body_of_unknown_length_is_held_until_its_length_is_known() {
    let Some(fpm) = Fpm::start() else { return };
    let server = fpm.serve("", "held-size-max = \"100KB\"");
    let put = |bytes: usize| {
        let body = pattern(bytes);
        let mut sent = b"PUT /body HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for piece in body.chunks(7000) {
            sent.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            sent.extend_from_slice(&[piece, b"\r\n"].concat());
        }
        sent.extend_from_slice(b"0\r\n\r\n");
        let response = parse(&exchange(server.address(), sent));
        (response.status, text(&response))
    };
    let told = format!("PUT 90000 {} of 90000\n", sha1(&pattern(90_000)));
    assert_eq!(put(90_000), (200, told));
    assert_eq!(put(120_000).0, 411);
    assert_eq!(put(0), (200, format!("PUT 0 {} of \n", sha1(b""))));
}

#[test]
fn a_client_that_asks_first_is_told_to_go_on() {
    let Some(fpm) = Fpm::start() else { return };
    let server = fpm.serve("", "");
    let mut stream = connect(server.address());
    let head = "POST /body HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let told = b"HTTP/1.1 100 Continue\r\n\r\n";
    let mut first = vec![0; told.len()];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(first, told);
    stream.write_all(b"abc").unwrap();
    let response = parse(&read_to_end(&mut stream));
    assert_eq!(text(&response), format!("POST 3 {} of 3\n", sha1(b"abc")));
}

#[test]
fn a_long_download_comes_whole_and_a_short_one_does_not_look_so() {
    let Some(fpm) = Fpm::start() else { return };
    let server = fpm.serve("buffer-size-max = \"64KiB\"", "");
    let mut stream = connect(server.address());
    stream
        .write_all(b"GET /download/20000000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    // While nobody reads it, others are served.
    stream.peek(&mut [0]).unwrap();
    assert_eq!(
        text(&get(server.address(), "/hello/you")),
        "hello you, page 1\n"
    );
    let response = parse(&read_to_end(&mut stream));
    let body = unchunked(&response.body);
    assert_eq!(body.len(), 20_000_000);
    assert!(body.chunks(16).all(|piece| piece == b"0123456789abcdef"));

    assert_eq!(get(server.address(), "/short").status, 502);
    assert_eq!(
        text(&get(server.address(), "/hello/you")),
        "hello you, page 1\n"
    );
}

#[test]
fn programs_know_the_client_and_nothing_that_it_only_claims() {
    let Some(fpm) = Fpm::start() else { return };
    let server = fpm.serve_with(
        "[clients]\ntrusted-proxies = [\"127.0.0.1\"]\n[[site.rule]]\npath = \"/old/*\"\n\
         rewrite = \"/index.php?page={rest}\"\n",
        "",
        "variables = { APP_ENV = \"test\", SERVER_NAME = \"ours\" }",
    );
    let fields = "X-Forwarded-For: 192.0.2.7\r\nProxy: evil\r\nX_Forwarded_For: 10.0.0.9\r\nUser-Agent: me\r\n";
    let told = variables(&request(
        server.address(),
        "GET",
        "/server/a%20b?x=1",
        fields,
    ));
    let root = fpm.site.root().canonicalize().unwrap();
    for (name, value) in [
        ("REMOTE_ADDR", "192.0.2.7"),
        ("REQUEST_URI", "/server/a%20b?x=1"),
        ("QUERY_STRING", "x=1"),
        ("SCRIPT_NAME", "/index.php"),
        ("SCRIPT_FILENAME", root.join("index.php").to_str().unwrap()),
        ("DOCUMENT_ROOT", root.to_str().unwrap()),
        ("SERVER_PORT", &server.address().port().to_string()),
        ("HTTP_USER_AGENT", "me"),
        ("APP_ENV", "test"),
        ("SERVER_NAME", "ours"),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
    ] {
        assert_eq!(told[name], value, "{name}");
    }
    for name in ["HTTP_PROXY", "HTTPS", "REMOTE_PORT", "PATH_INFO"] {
        assert!(told[name].is_null(), "{name}: {}", told[name]);
    }
    // The program sees the address that the client sent, and the query that the rule made.
    let old = get(server.address(), "/old/about");
    assert_eq!(
        (old.status, text(&old)),
        (404, "no such page here\n".to_owned())
    );
}

#[test]
fn a_program_behind_tls_is_told_so() {
    let Some(fpm) = Fpm::start() else { return };
    let (cert, key) = tls::write_certificate(&fpm.site);
    let file = fpm.site.beside("shortline.toml");
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls-cert = \"{}\"\ntls-key = \"{}\"\n[site]\nroot = \"{}\"\n\
         [[route]]\npath = \"/\"\nupstream = [\"fastcgi://{}\"]\n",
        cert.display(),
        key.display(),
        fpm.site.root().display(),
        fpm.socket().display()
    );
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(PROGRAM);
    let server = Server::spawn(command.arg("serve").arg("--config").arg(file));
    let client = tls::client_config(&fpm.site, rustls::ALL_VERSIONS, "http/1.1");
    let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
    let connection = rustls::ClientConnection::new(client, name).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, connect(server.address()));
    stream
        .write_all(b"GET /server HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let told = variables(&parse(&read_to_end(&mut stream)));
    assert_eq!(
        (&told["HTTPS"], &told["REQUEST_SCHEME"]),
        (&"on".into(), &"https".into())
    );
    assert_eq!(told["REMOTE_ADDR"], "127.0.0.1");
    assert!(told["REMOTE_PORT"].is_string());
}

#[test]
fn what_programs_complain_about_is_in_the_log_in_one_line() {
    let Some(fpm) = Fpm::start() else { return };
    let mut server = fpm.serve("", "");
    assert_eq!(text(&get(server.address(), "/complain/this")), "ok\n");
    let line = server.line_with("a program says");
    assert!(line.contains("first line\\nsecond line of this"), "{line}");
    assert!(line.contains("/index.php"), "{line}");
}

#[test]
fn connections_are_closed_after_a_request_or_kept_if_that_is_wanted() {
    let Some(fpm) = Fpm::start() else { return };
    for (keys, connections) in [("", 5), ("idle-connections-max = 1", 1)] {
        let server = fpm.serve(keys, "");
        let mut stream = connect(server.address());
        for _ in 0..5 {
            stream
                .write_all(b"GET /hello/you HTTP/1.1\r\nHost: a\r\n\r\n")
                .unwrap();
            assert_eq!(read_one(&mut stream).body, b"hello you, page 1\n");
            // A connection is kept or closed once its request has ended, which is after its response.
            wait_for("the request's end", || {
                let backend = &status(&server)["server"]["backends"][0];
                (backend["outstanding"] == 0).then_some(())
            });
        }
        let backend = &status(&server)["server"]["backends"][0];
        assert_eq!(
            backend["connections_total"], connections,
            "{keys}: {backend}"
        );
    }
}

#[test]
fn a_health_check_and_a_gate_work_as_for_other_servers() {
    let Some(fpm) = Fpm::start() else { return };
    let server = fpm.serve(
        "health-path = \"/ping\"\nhealth-every = \"100ms\"\n[route.gate]",
        "",
    );
    assert_eq!(
        text(&get(server.address(), "/hello/you")),
        "hello you, page 1\n"
    );
    wait_for("the gate's count", || {
        let gate = &status(&server)["gates"][0];
        (gate["admission"]["totals"]["completed"] == 1).then_some(())
    });
    let backend = &status(&server)["server"]["backends"][0];
    assert_eq!(backend["up"], true, "{backend}");
}
