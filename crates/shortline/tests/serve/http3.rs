//! HTTP/3 over real sockets, with other people's client ([`client`]).

mod browser;
mod client;
mod hostile;
mod life;
mod order;
mod relay;

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use http::{Request, StatusCode};

use crate::admin::status;
use crate::client::read_head;
use crate::process::{Server, Site, pattern, shortline, wait_for};
use crate::tls;
use client::{Client, start};

const LARGE_BYTES: usize = 1_000_000;

const MODES: [&[&str]; 4] = [
    &["--link-mode", "off"],
    &["--uplink-loopback"],
    &["--uplink-loopback", "--link-mode", "slots"],
    &["--uplink-loopback", "--uplink", "200mbit"],
];

#[tokio::test(flavor = "multi_thread")]
async fn files_come_whole_in_every_link_mode() {
    let site = Site::new();
    for flags in MODES {
        let server = start(&site, flags);
        let client = Client::connect(&site, server.address()).await;
        let small = client.get("/hello.txt").await;
        assert_eq!(
            (small.status, &small.body[..]),
            (StatusCode::OK, &b"hello\n"[..])
        );
        assert_eq!(small.headers["content-length"], "6");
        assert!(small.headers.contains_key("date"));
        let large = client.get("/large.bin").await;
        assert!(large.body == pattern(LARGE_BYTES), "{flags:?}");
        assert_eq!(client.get("/nothing").await.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_conditions_and_methods_are_those_of_other_versions() {
    let site = Site::new();
    let server = start(&site, &[]);
    let client = Client::connect(&site, server.address()).await;
    let with = |name: &str, value: &str| {
        let request = Request::get("https://localhost/large.bin").header(name, value);
        request.body(()).unwrap()
    };
    let part = client
        .ask(with("range", "bytes=1000-1999"), &[])
        .await
        .unwrap();
    assert_eq!(part.status, StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.body, pattern(LARGE_BYTES)[1000..2000]);
    let etag = part.headers["etag"].to_str().unwrap();
    let same = client.ask(with("if-none-match", etag), &[]).await.unwrap();
    assert_eq!(
        (same.status, same.body.len()),
        (StatusCode::NOT_MODIFIED, 0)
    );
    let head = Request::head("https://localhost/large.bin")
        .body(())
        .unwrap();
    let head = client.ask(head, &[]).await.unwrap();
    assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
    assert_eq!(head.headers["content-length"], "1000000");
    let post = Request::post("https://localhost/hello.txt")
        .body(())
        .unwrap();
    let post = client.ask(post, &[Bytes::from_static(b"x")]).await.unwrap();
    assert_eq!(post.status, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_streams_share_a_connection() {
    let site = Site::new();
    for flags in MODES {
        let server = start(&site, flags);
        let client = Client::connect(&site, server.address()).await;
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..100 {
            let client = client.clone();
            tasks.spawn(async move {
                if number % 20 == 0 {
                    let large = client.get("/large.bin").await;
                    assert!(large.body == pattern(LARGE_BYTES));
                } else {
                    assert_eq!(client.get("/hello.txt").await.body, b"hello\n");
                }
            });
        }
        tasks.join_all().await;
        assert_eq!(status(&server)["server"]["connections"]["open"], 1);
    }
}

/// aioquic shares no code with the server.
#[test]
fn a_client_of_another_library_gets_what_it_asks_for() {
    let python =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/aioquic/bin/python");
    if !python.exists() {
        println!("skipped: no aioquic; scripts/setup installs it");
        return;
    }
    let site = Site::new();
    for flags in [&["--uplink-loopback"][..], &["--link-mode", "off"]] {
        let server = start(&site, flags);
        let ended = Command::new(&python)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/http3/fetch.py"))
            .arg(server.address().port().to_string())
            .args([site.beside("site.crt"), site.root()])
            .args(["/large.bin", "/hello.txt"])
            .status()
            .unwrap();
        assert!(ended.success(), "{flags:?}");
    }
}

const TRAILERS: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
    3\r\nabc\r\n0\r\nx-sum: 6\r\n\r\n";

/// A backend that tells how a request came: its head, and how many bytes of its body were those of [`pattern`].
fn backend() -> SocketAddr {
    use std::io::{Read, Write};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                while let Some(head) = read_head(&mut stream) {
                    let length = head
                        .lines()
                        .find_map(|line| line.strip_prefix("content-length: "));
                    let length: usize = length.map_or(0, |length| length.parse().unwrap());
                    let mut body = vec![0; length];
                    if stream.read_exact(&mut body).is_err() {
                        return;
                    }
                    if head.starts_with("GET /app/trailers") {
                        let _ = stream.write_all(TRAILERS);
                        continue;
                    }
                    let told = format!("{head}{}", body == pattern(length));
                    let answer = format!(
                        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{told}",
                        told.len()
                    );
                    let _ = stream.write_all(answer.as_bytes());
                }
            });
        }
    });
    address
}

fn with_route(site: &Site, more: &str) -> String {
    let file = site.beside("shortline.toml");
    let text = format!(
        "[[route]]\npath = \"/app\"\nupstream = [\"{}\"]\n{more}",
        backend()
    );
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_reaches_a_backend() {
    let site = Site::new();
    let config = with_route(&site, "");
    for uplink in [&["--uplink-loopback"][..], &["--link-mode", "off"]] {
        let server = start(&site, &[&["--config", &config], uplink].concat());
        let client = Client::connect(&site, server.address()).await;
        let body = pattern(3_000_000);
        let pieces: Vec<Bytes> = body.chunks(10_000).map(Bytes::copy_from_slice).collect();
        let request = Request::post("https://localhost/app?x=1")
            .header("content-length", body.len())
            .header("cookie", "a=b")
            .header("cookie", "c=d")
            .body(())
            .unwrap();
        let told = client.ask(request, &pieces).await.unwrap();
        let told = String::from_utf8(told.body).unwrap();
        assert!(told.starts_with("POST /app?x=1 HTTP/1.1\r\n"), "{told}");
        assert!(told.contains("cookie: a=b; c=d\r\n"), "{told}");
        assert!(told.contains("x-forwarded-proto: https\r\n"), "{told}");
        assert!(told.ends_with("\r\n\r\ntrue"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trailers_of_a_backend_pass() {
    let site = Site::new();
    let config = with_route(&site, "");
    let server = start(&site, &["--config", &config]);
    let client = Client::connect(&site, server.address()).await;
    let request = Request::get("https://localhost/app/trailers").header("te", "trailers");
    let answer = client.ask(request.body(()).unwrap(), &[]).await.unwrap();
    assert_eq!(answer.body, b"abc");
    assert_eq!(answer.trailers.unwrap()["x-sum"], "6");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_expects_it_is_told_to_go_on() {
    let site = Site::new();
    let config = with_route(&site, "");
    let server = start(&site, &["--config", &config]);
    let client = Client::connect(&site, server.address()).await;
    let request = Request::post("https://localhost/app")
        .header("content-length", 3)
        .header("expect", "100-continue")
        .body(())
        .unwrap();
    let mut stream = client.begin(request).await;
    assert_eq!(
        stream.recv_response().await.unwrap().status(),
        StatusCode::CONTINUE
    );
    stream.send_data(Bytes::from(pattern(3))).await.unwrap();
    stream.finish().await.unwrap();
    let told = client::rest(&mut stream).await.unwrap();
    assert!(told.body.ends_with(b"true"));
}

/// A backend that takes a short body for whole would take what follows for another request.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_another_length_than_its_head_says_is_refused() {
    let site = Site::new();
    let config = with_route(&site, "");
    let server = start(&site, &["--config", &config]);
    let client = Client::connect(&site, server.address()).await;
    for (said, body) in [("5", "four"), ("3", "four"), ("x", "four"), ("1", "")] {
        let request = Request::post("https://localhost/app")
            .header("content-length", said)
            .body(())
            .unwrap();
        let answer = client
            .ask(request, &[Bytes::from_static(body.as_bytes())])
            .await;
        if let Ok(answer) = answer {
            assert!(answer.status.is_client_error(), "{said}: {answer:?}");
        }
    }
    let whole = Request::post("https://localhost/app").header("content-length", 4);
    let body = Bytes::from(pattern(4));
    let answer = client.ask(whole.body(()).unwrap(), &[body]).await.unwrap();
    assert!(answer.body.ends_with(b"true"), "the connection goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_compression_and_the_log_are_those_of_other_versions() {
    let site = Site::new().with("text.css", "a { color: red }\n".repeat(500));
    let log = site.beside("access.log");
    let rules = "[[site.rule]]\npath = \"/old\"\nredirect = \"/new\"\n\
                 [[site.rule]]\npath = \"/kept-out\"\ndeny = [\"127.0.0.0/8\"]\n";
    let file = site.beside("shortline.toml");
    std::fs::write(&file, rules).unwrap();
    let flags = [
        "--config",
        file.to_str().unwrap(),
        "--access-log",
        log.to_str().unwrap(),
    ];
    let server = start(&site, &flags);
    let client = Client::connect(&site, server.address()).await;
    let moved = client.get("/old").await;
    assert!(moved.status.is_redirection());
    assert!(
        moved.headers["location"]
            .to_str()
            .unwrap()
            .ends_with("/new")
    );
    assert_eq!(client.get("/kept-out").await.status, StatusCode::FORBIDDEN);
    let request = Request::get("https://localhost/text.css").header("accept-encoding", "gzip");
    let small = client.ask(request.body(()).unwrap(), &[]).await.unwrap();
    assert_eq!(small.headers["content-encoding"], "gzip");
    tokio::task::block_in_place(|| {
        wait_for("the log", || {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            let has_line = |line: &str| text.contains(line);
            (has_line("\"GET /old HTTP/3.0\" 30") && has_line("\"GET /text.css HTTP/3.0\" 200"))
                .then_some(())
        });
    });
    let told = status(&server);
    let by_class = &told["server"]["responses"]["by_status_class"];
    assert_eq!(by_class, &serde_json::json!([0, 1, 1, 1, 0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_tcp_are_told_of_it() {
    let site = Site::new();
    let server = start(&site, &[]);
    let told = |server: &Server| {
        let config = tls::client_config(&site, rustls::ALL_VERSIONS, "http/1.1");
        tls::get_over(server.address(), config, "/hello.txt")
    };
    let port = server.address().port();
    let field = format!("h3=\":{port}\"; ma=86400");
    assert_eq!(told(&server).field("alt-svc"), Some(&field[..]));
    let client = Client::connect(&site, server.address()).await;
    assert!(
        !client
            .get("/hello.txt")
            .await
            .headers
            .contains_key("alt-svc")
    );
    let without = tls::start(&site, &[]);
    assert_eq!(told(&without).field("alt-svc"), None);
}

/// QUIC's handshake asks nobody for a certificate, so nobody gets in by it where one is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_site_for_clients_with_a_certificate_answers_over_tcp_alone() {
    let site = Site::new();
    let (cert, key) = tls::write_certificate(&site);
    let authority = crate::certified::Authority::new("one");
    std::fs::write(site.beside("one.pem"), &authority.pem).unwrap();
    let root = site.root().display().to_string();
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls-cert = \"{}\"\ntls-key = \"{}\"\nhttp3 = true\n\
         [[site]]\nnames = [\"localhost\"]\nroot = \"{root}\"\n\
         [[site]]\nnames = [\"secret.example\"]\nroot = \"{root}\"\nclient-ca = \"{}\"\n",
        cert.display(),
        key.display(),
        site.beside("one.pem").display()
    );
    let server = life::spawn(&site, &text);
    let client = Client::connect(&site, server.address()).await;
    assert_eq!(client.get("/hello.txt").await.status, StatusCode::OK);
    let secret = Request::get("https://secret.example/hello.txt")
        .body(())
        .unwrap();
    let refused = client.ask(secret, &[]).await.unwrap();
    assert_eq!(refused.status, StatusCode::MISDIRECTED_REQUEST);
}

#[test]
fn what_cannot_be_is_refused_in_a_line() {
    let site = Site::new();
    let (cert, key) = tls::write_certificate(&site);
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let certificate = ["--tls-cert", cert, "--tls-key", key];
    for (flags, expected) in [
        (vec!["--http3"], "--http3: no address speaks TLS"),
        (
            [&certificate[..], &["--http3", "--link-mode", "bands"]].concat(),
            "leave out http3 or link-mode bands",
        ),
    ] {
        let ended = shortline(&site.root(), &[&["serve"], &flags[..]].concat());
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
    let (file, root) = (
        site.beside("shortline.toml"),
        site.root().display().to_string(),
    );
    for (lines, expected) in [
        ("http3 = true", "http3: needs TLS"),
        (
            "http3 = true\nproxy-from = [\"10.0.0.0/8\"]\ntls-cert = \"a\"\ntls-key = \"b\"",
            "leave out http3 or proxy-from",
        ),
    ] {
        std::fs::write(
            &file,
            format!("[[listen]]\naddress = \"127.0.0.1:0\"\n{lines}\n[site]\nroot = \"{root}\"\n"),
        )
        .unwrap();
        let ended = shortline(&site.root(), &["serve", "--config", file.to_str().unwrap()]);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}
