//! The system's nginx as the backend.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use shortline_web::proxy::{HttpVersion, UpstreamAddress};
use tempfile::TempDir;

use crate::client::{connect, exchange, get, post, read_head, read_one, wait_for};
use crate::front::Front;

struct Nginx {
    child: Child,
    folder: TempDir,
    address: SocketAddr,
    /// Its TLS address, with a certificate for localhost (`cert.pem`).
    tls_address: SocketAddr,
}

impl Nginx {
    /// `None`, with a line that says so, if there is no nginx.
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let address = crate::client::refusing();
        let tls_address = crate::client::refusing();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(root.join("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(root.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        let configuration = format!(
            "daemon off; master_process off; pid {0}/pid; error_log {0}/error.log;
             events {{ worker_connections 64; }}
             http {{
               access_log off;
               client_body_temp_path {0}/body; proxy_temp_path {0}/proxy;
               fastcgi_temp_path {0}/fastcgi; uwsgi_temp_path {0}/uwsgi; scgi_temp_path {0}/scgi;
               server {{
                 listen {address};
                 listen {tls_address} ssl http2;
                 ssl_certificate {0}/cert.pem; ssl_certificate_key {0}/key.pem;
                 location /tls {{
                   return 200 \"$ssl_server_name $ssl_alpn_protocol $server_protocol\";
                 }}
                 root {0}/site;
                 location /who {{
                   return 200 \"$http_x_forwarded_for $host $connection_requests\";
                 }}
                 location /post {{ client_max_body_size 1k; proxy_pass http://{address}/who; }}
                 location /gzip {{
                   gzip on; gzip_min_length 1; gzip_types *; gzip_http_version 1.1;
                   alias {0}/site/;
                 }}
               }}
             }}",
            root.display()
        );
        std::fs::create_dir(root.join("site")).unwrap();
        std::fs::write(root.join("nginx.conf"), configuration).unwrap();
        let started = Command::new("nginx")
            .arg("-p")
            .arg(root)
            .arg("-c")
            .arg(root.join("nginx.conf"))
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = started else {
            eprintln!("skipped: no nginx; scripts/setup installs it");
            return None;
        };
        wait_for("nginx", || TcpStream::connect(address).ok());
        Some(Self {
            child,
            folder,
            address,
            tls_address,
        })
    }

    fn over_tls(&self, host: &str, authorities: Option<&str>, http: HttpVersion) -> Front {
        Front::with(&[], |options| {
            options.backends = vec![
                UpstreamAddress::Tls {
                    host: host.to_owned(),
                    port: self.tls_address.port(),
                }
                .into(),
            ];
            options.authorities = authorities.map(|name| self.folder.path().join(name));
            options.http = http;
        })
    }

    fn write(&self, name: &str, content: &[u8]) {
        std::fs::write(self.folder.path().join("site").join(name), content).unwrap();
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It may already have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn nginx_answers_through_the_proxy_as_it_does_itself() {
    let Some(nginx) = Nginx::start() else { return };
    let content: Vec<u8> = (0..3_000_000)
        .map(|at: usize| (at * 7 + at / 251) as u8)
        .collect();
    nginx.write("large.bin", &content);
    nginx.write("page.html", &b"<p>hello</p>\n".repeat(1000));
    let front = Front::start(&[nginx.address]);

    assert!(get(front.address, "/large.bin", "").body == content);
    let range = get(front.address, "/large.bin", "Range: bytes=10-19\r\n");
    assert_eq!((range.status, &range.body[..]), (206, &content[10..20]));
    let tag = range.field("etag").unwrap();
    let same = get(
        front.address,
        "/large.bin",
        &format!("If-None-Match: {tag}\r\n"),
    );
    assert_eq!(same.status, 304);
    assert_eq!(get(front.address, "/missing", "").status, 404);
    let head = "HEAD /large.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let told = exchange(front.address, head);
    assert_eq!(told.field("content-length"), Some("3000000"));

    let zipped = get(
        front.address,
        "/gzip/page.html",
        "Accept-Encoding: gzip\r\n",
    );
    assert_eq!(zipped.field("content-encoding"), Some("gzip"));
    assert_eq!(zipped.field("transfer-encoding"), Some("chunked"));
}

#[test]
fn nginx_keeps_connections_and_learns_of_the_client() {
    let Some(nginx) = Nginx::start() else { return };
    let front = Front::start(&[nginx.address]);
    let mut client = connect(front.address);
    for asked in 1..=10 {
        client
            .write_all(b"GET /who HTTP/1.1\r\nHost: shop.example:81\r\n\r\n")
            .unwrap();
        let text = read_one(&mut client).text();
        assert_eq!(text, format!("127.0.0.1 shop.example {asked}"));
        front.wait_until_idle();
    }
}

#[test]
fn nginx_takes_bodies_and_refuses_them() {
    let Some(nginx) = Nginx::start() else { return };
    let front = Front::start(&[nginx.address]);
    assert_eq!(post(front.address, "/post", &"x".repeat(1000)).status, 200);
    assert_eq!(post(front.address, "/post", &"x".repeat(2000)).status, 413);

    let mut client = connect(front.address);
    client
        .write_all(
            b"POST /post HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n",
        )
        .unwrap();
    assert!(read_head(&mut client).starts_with("HTTP/1.1 100 "));
    client.write_all(b"body").unwrap();
    assert_eq!(read_one(&mut client).status, 200);
}

#[test]
fn nginx_behind_tls_is_told_its_name_and_its_connections_are_kept() {
    let Some(nginx) = Nginx::start() else { return };
    let content = b"0123456789".repeat(100_000);
    nginx.write("large.bin", &content);
    for (http, expected) in [
        (HttpVersion::Auto, "localhost h2 HTTP/2.0"),
        (HttpVersion::Two, "localhost h2 HTTP/2.0"),
        (HttpVersion::One, "localhost http/1.1 HTTP/1.1"),
    ] {
        let front = nginx.over_tls("localhost", Some("cert.pem"), http);
        for _ in 0..3 {
            let told = get(front.address, "/tls", "").body;
            assert_eq!(String::from_utf8_lossy(&told), expected);
            front.wait_until_idle();
        }
        assert!(get(front.address, "/large.bin", "").body == content);
        front.wait_until_idle();
        let sent = post(front.address, "/large.bin", "x");
        assert_eq!(sent.status, 405, "nginx's own answer");
        assert_eq!(front.backend().connections_total, 1);
        assert!(front.backend().address.starts_with("https://localhost:"));
        // HTTP/2 has no upgrades.
        let told = get(
            front.address,
            "/tls",
            "Connection: upgrade\r\nUpgrade: websocket\r\n",
        )
        .body;
        let expected = match http {
            HttpVersion::Two => "localhost h2 HTTP/2.0",
            _ => "localhost http/1.1 HTTP/1.1",
        };
        assert_eq!(String::from_utf8_lossy(&told), expected);
    }
}

#[test]
fn a_certificate_that_is_not_the_backends_is_a_bad_gateway() {
    let Some(nginx) = Nginx::start() else { return };
    // A different name; an unknown authority.
    for front in [
        nginx.over_tls("127.0.0.1", Some("cert.pem"), HttpVersion::Auto),
        nginx.over_tls("localhost", None, HttpVersion::Auto),
    ] {
        assert_eq!(get(front.address, "/tls", "").status, 502);
        assert_eq!(front.backend().connections_total, 0);
    }
    // TLS to a port without TLS.
    let front = Front::with(&[], |options| {
        options.backends = vec![
            UpstreamAddress::Tls {
                host: "localhost".to_owned(),
                port: nginx.address.port(),
            }
            .into(),
        ];
        options.authorities = Some(nginx.folder.path().join("cert.pem"));
    });
    assert_eq!(get(front.address, "/tls", "").status, 502);
}
