//! Compression on the fly, of files and of a backend's responses.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::admin::status;
use crate::client::{Response, connect, get, read_head, request};
use crate::process::{Server, Site, wait_for};
use crate::sites::{refused, start};

fn text() -> String {
    (0..2000)
        .map(|line| format!("line {line} of a text\n"))
        .collect()
}

fn decoded(coding: &str, body: &[u8]) -> String {
    let mut text = String::new();
    match coding {
        "zstd" => zstd::stream::read::Decoder::new(body)
            .unwrap()
            .read_to_string(&mut text),
        "br" => brotli::Decompressor::new(body, 4096).read_to_string(&mut text),
        "gzip" => flate2::read::GzDecoder::new(body).read_to_string(&mut text),
        other => panic!("`{other}`"),
    }
    .unwrap();
    text
}

/// The body of a response that may be in chunks.
fn body(response: &Response) -> Vec<u8> {
    if response.field("transfer-encoding").is_none() {
        return response.body.clone();
    }
    let (mut body, mut left) = (Vec::new(), &response.body[..]);
    loop {
        let end = left.windows(2).position(|two| two == b"\r\n").unwrap();
        let size = std::str::from_utf8(&left[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&left[end + 2..end + 2 + size]);
        left = &left[end + 2 + size + 2..];
    }
}

fn asked(address: SocketAddr, target: &str, codings: &str) -> Response {
    request(
        address,
        "GET",
        target,
        &format!("Accept-Encoding: {codings}\r\n"),
    )
}

/// The response once it is compressed. On a busy machine the first may leave as the file is.
fn compressed(address: SocketAddr, target: &str, codings: &str) -> Response {
    wait_for("a compressed response", || {
        let response = asked(address, target, codings);
        assert_eq!(response.status, 200);
        response
            .field("content-encoding")
            .is_some()
            .then_some(response)
    })
}

/// A backend that answers each request with the fields and body that its path names.
fn backend() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                while let Some(head) = read_head(&mut stream) {
                    let fields = match head.split(' ').nth(1).unwrap() {
                        "/app/packed" => "Content-Type: text/plain\r\nContent-Encoding: x-own\r\n",
                        "/app/kept" => {
                            "Content-Type: text/plain\r\nCache-Control: no-transform\r\n"
                        }
                        "/app/picture" => "Content-Type: image/png\r\n",
                        _ => "Content-Type: text/plain\r\nETag: \"a\"\r\nAccept-Ranges: bytes\r\n",
                    };
                    let head = format!(
                        "HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n",
                        text().len()
                    );
                    // Whoever asked may have gone.
                    let _ = stream.write_all((head + &text()).as_bytes());
                }
            });
        }
    });
    address
}

fn serve(site: &Site, backend: SocketAddr, keys: &str, rules: &str) -> Server {
    let file = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[site]\nroot = \"FOLDER/site\"\n{keys}\
         [[route]]\npath = \"/app\"\nupstream = [\"{backend}\"]\n{rules}"
    );
    start(site, &file)
}

#[test]
fn a_file_is_sent_in_the_coding_that_the_client_wants() {
    let site = Site::new().with("text.txt", text());
    let server = Server::start(&site, &[]);
    for coding in ["zstd", "br", "gzip"] {
        let response = compressed(server.address(), "/text.txt", coding);
        assert_eq!(response.field("content-encoding"), Some(coding));
        assert_eq!(response.field("vary"), Some("accept-encoding"));
        assert_eq!(response.content_length(), response.body.len());
        assert!(response.body.len() < text().len() / 2);
        assert_eq!(decoded(coding, &response.body), text());
        let etag = response.field("etag").unwrap();
        let known = format!("Accept-Encoding: {coding}\r\nIf-None-Match: {etag}\r\n");
        let again = request(server.address(), "GET", "/text.txt", &known);
        assert_eq!(again.status, 304);
    }
    let plain = asked(server.address(), "/text.txt", "identity");
    assert_eq!(plain.body, text().into_bytes());
    let off = Server::start(&site, &["--compress", "off"]);
    let plain = asked(off.address(), "/text.txt", "gzip");
    assert_eq!(plain.field("content-encoding"), None);
    assert_eq!(plain.body, text().into_bytes());
}

#[test]
fn what_compression_gains_is_counted_by_coding() {
    let (site, backend) = (Site::new().with("text.txt", text()), backend());
    let keys = "compress = \"all\"\n";
    let server = serve(&site, backend, keys, "[admin]\naddress = \"127.0.0.1:0\"\n");
    let made = compressed(server.address(), "/text.txt", "br").body.len();
    let passed = body(&compressed(server.address(), "/app", "zstd")).len();
    // A response may be sent before its encoder is asked again.
    wait_for("the counts", || {
        let counts = status(&server)["server"]["compressed"].clone();
        let of = |coding: &str, what: &str| {
            let mut counts = counts.as_array().unwrap().iter();
            let one = counts
                .find(|one| one["coding"] == coding && one["what"] == what)
                .unwrap();
            (
                one["in_total"].as_u64().unwrap() as usize,
                one["out_total"].as_u64().unwrap() as usize,
            )
        };
        assert_eq!((of("gzip", "files"), of("zstd", "files")), ((0, 0), (0, 0)));
        let both = (of("br", "files"), of("zstd", "backends"));
        (both == ((text().len(), made), (text().len(), passed))).then_some(())
    });
    let metrics = get(server.admin.unwrap(), "/metrics").body;
    let metrics = String::from_utf8(metrics).unwrap();
    let counted =
        format!("shortline_compressed_bytes_out_total{{coding=\"br\",what=\"files\"}} {made}");
    assert!(metrics.contains(&counted), "{metrics}");
}

#[test]
fn a_backends_response_is_compressed_where_the_site_says_so() {
    let (site, backend) = (Site::new(), backend());
    let server = serve(&site, backend, "compress = \"all\"\n", "");
    for coding in ["zstd", "br", "gzip"] {
        let response = asked(server.address(), "/app/x", coding);
        assert_eq!(response.field("content-encoding"), Some(coding));
        assert_eq!(response.field("content-length"), None);
        assert_eq!(response.field("accept-ranges"), None);
        assert_eq!(response.field("etag"), Some("W/\"a\""));
        assert_eq!(response.field("vary"), Some("accept-encoding"));
        assert_eq!(decoded(coding, &body(&response)), text());
    }
    let plain = asked(server.address(), "/app/x", "identity");
    assert_eq!(plain.field("etag"), Some("\"a\""));
    assert_eq!(plain.field("vary"), Some("accept-encoding"));
    assert_eq!(plain.body, text().into_bytes());
    for (target, coding) in [
        ("/app/packed", Some("x-own")),
        ("/app/kept", None),
        ("/app/picture", None),
    ] {
        let response = asked(server.address(), target, "gzip");
        assert_eq!(response.field("content-encoding"), coding, "{target}");
        assert_eq!(response.body, text().into_bytes(), "{target}");
    }
    // By default it stays as it is: what it says may be a secret beside what the client has sent.
    let server = serve(&site, backend, "", "");
    let response = asked(server.address(), "/app/x", "gzip");
    assert_eq!(response.field("content-encoding"), None);
    assert_eq!(response.field("vary"), None);
}

#[test]
fn a_rule_turns_it_on_or_off() {
    let site = Site::new().with("text.txt", text()).with("b.txt", text());
    let server = serve(
        &site,
        backend(),
        "",
        "[[site.rule]]\npath = \"/text.txt\"\ncompress = false\n\
         [[site.rule]]\npath = \"/b.txt\"\ncache-control = \"no-transform\"\n\
         [[site.rule]]\npath = \"/app/*\"\ncompress = true\n",
    );
    for target in ["/text.txt", "/b.txt"] {
        let response = asked(server.address(), target, "gzip");
        assert_eq!(response.field("content-encoding"), None, "{target}");
    }
    let response = asked(server.address(), "/app/x", "gzip");
    assert_eq!(response.field("content-encoding"), Some("gzip"));
    let error = refused(
        &site,
        "[site]\nroot = \"FOLDER/site\"\n[[site.rule]]\npath = \"/a\"\ncompress = true\ncache-control = \"no-transform\"\n",
    );
    assert!(
        error.contains("site.rule 1: compress: the rule sets"),
        "{error}"
    );
    let error = refused(
        &site,
        "[site]\nroot = \"FOLDER/site\"\ncompress = \"yes\"\n",
    );
    assert!(
        error.contains("`yes` is not what can be compressed"),
        "{error}"
    );
}

/// A backend that sends an event when the test says so.
fn events() -> (SocketAddr, Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, next): (_, Receiver<()>) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_head(&mut stream).unwrap();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        while next.recv().is_ok() {
            stream.write_all(b"9\r\ndata: 1\n\n\r\n").unwrap();
        }
    });
    (address, sender)
}

#[test]
fn an_event_reaches_its_client_at_once() {
    let (site, (backend, send)) = (Site::new(), events());
    let server = serve(&site, backend, "compress = \"all\"\n", "");
    let mut stream = connect(server.address());
    stream
        .write_all(b"GET /app/x HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
        .unwrap();
    send.send(()).unwrap();
    let head = read_head(&mut stream).unwrap().to_ascii_lowercase();
    assert!(head.contains("content-encoding: gzip"), "{head}");
    let mut decoder = flate2::read::GzDecoder::new(Chunks { stream, left: 0 });
    for _ in 0..3 {
        let mut event = [0; 9];
        decoder.read_exact(&mut event).unwrap();
        assert_eq!(&event, b"data: 1\n\n");
        // The next one is sent when this one has come.
        send.send(()).unwrap();
    }
}

/// Reads a chunked body.
struct Chunks<R> {
    stream: R,
    left: usize,
}

impl<R: Read> Read for Chunks<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            let mut line = Vec::new();
            while !line.ends_with(b"\r\n") || line == b"\r\n" {
                if line == b"\r\n" {
                    line.clear();
                }
                let mut byte = [0];
                self.stream.read_exact(&mut byte)?;
                line.push(byte[0]);
            }
            let size = std::str::from_utf8(&line).unwrap().trim();
            self.left = usize::from_str_radix(size, 16).unwrap();
        }
        let most = into.len().min(self.left);
        let read = self.stream.read(&mut into[..most])?;
        self.left -= read;
        Ok(read)
    }
}
