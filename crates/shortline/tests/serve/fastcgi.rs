//! FastCGI backends that do what PHP-FPM does not, and configurations that are refused.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;

use crate::client::{Response, connect, exchange, get, parse, read_to_end, request};
use crate::process::{PROGRAM, Server, Site, pattern, shortline};

const END: u8 = 3;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[1, kind, 0, 1, high, low, 0, 0], content].concat()
}

fn output(text: &str) -> Vec<u8> {
    record(STDOUT, text.as_bytes())
}

fn end(status: u8) -> Vec<u8> {
    record(END, &[0, 0, 0, 0, status, 0, 0, 0])
}

/// The next record, unless the connection ends: its type and content.
fn read_record(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 8];
    stream.read_exact(&mut head).ok()?;
    let mut content = vec![0; u16::from_be_bytes([head[4], head[5]]).into()];
    stream.read_exact(&mut content).ok()?;
    Some((head[1], content))
}

/// The body of a request, read to its end.
fn read_request(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        match read_record(stream)? {
            (STDIN, content) if content.is_empty() => return Some(body),
            (STDIN, content) => body.extend_from_slice(&content),
            _ => {}
        }
    }
}

/// A backend that does the same with each connection.
fn backend(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

/// A backend that reads a request and answers it so.
fn answers(answer: Vec<u8>) -> SocketAddr {
    backend(move |mut stream| {
        if read_request(&mut stream).is_some() {
            // Whoever asked may have gone.
            let _ = stream.write_all(&answer);
        }
    })
}

fn serve(site: &Site, backend: SocketAddr, keys: &str) -> Server {
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[site]\nroot = \"{}\"\n[[route]]\npath = \"/\"\n\
         upstream = [\"fastcgi://{backend}\"]\nfailures-max = 1000\n{keys}\n",
        site.root().display()
    );
    let file = site.beside("shortline.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(PROGRAM);
    Server::spawn(command.arg("serve").arg("--config").arg(file))
}

/// A site with a program that only has to be there.
fn site() -> Site {
    Site::new().with("index.php", "<?php")
}

/// What a client gets if the backend answers so.
fn asked(answer: Vec<u8>) -> Response {
    let site = site();
    let server = serve(&site, answers(answer), "");
    get(server.address(), "/x")
}

#[test]
fn what_is_no_response_is_502_and_an_overload_503() {
    for (answer, status) in [
        (vec![], 502),
        (output("A: b\r\n\r\n")[..10].to_vec(), 502),
        ([output("<p>no head\n\n"), end(0)].concat(), 502),
        ([output("Status: 100\n\n"), end(0)].concat(), 502),
        (end(0), 502),
        ([output("A: b\n"), end(0)].concat(), 502),
        (end(2), 503),
        (end(1), 503),
        (end(3), 502),
        (record(STDIN, b"x"), 502),
        ([1, STDOUT, 0, 2, 0, 0, 0, 0].to_vec(), 502),
        (b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), 502),
        ([output("Content-Length: 2\n\nabc"), end(0)].concat(), 502),
        // A head of more than 64 KiB.
        (
            [output("A: "), output(&"x".repeat(60_000)).repeat(2)].concat(),
            502,
        ),
        ([output("A: b\n\nabc"), end(0)].concat(), 200),
    ] {
        let text = answer.escape_ascii().to_string();
        let response = asked(answer);
        assert_eq!(response.status, status, "{}", &text[..text.len().min(200)]);
        assert_eq!(response.field("retry-after").is_some(), status == 503);
    }
}

#[test]
fn a_response_that_breaks_off_does_not_look_whole() {
    let large = output(&"x".repeat(60_000)).repeat(10);
    for end in [vec![], vec![2; 8], end(2)] {
        let response = asked([output("A: b\n\n"), large.clone(), end].concat());
        assert_eq!(response.status, 200);
        assert!(!response.body.ends_with(b"\r\n0\r\n\r\n"));
    }
    let response = asked([output("A: b\n\n"), large, end(0)].concat());
    assert!(response.body.ends_with(b"\r\n0\r\n\r\n"));
}

#[test]
fn a_silent_program_is_504_and_its_connection_is_closed() {
    let site = site();
    let (closed, is_closed) = std::sync::mpsc::channel();
    let backend = backend(move |mut stream| {
        read_request(&mut stream).unwrap();
        let end = stream.read(&mut [0]);
        closed.send(end.unwrap_or(0)).unwrap();
    });
    let server = serve(&site, backend, "first-byte-time-max = \"100ms\"");
    assert_eq!(get(server.address(), "/x").status, 504);
    assert_eq!(is_closed.recv_timeout(crate::process::PATIENCE).unwrap(), 0);
}

#[test]
fn a_client_that_goes_takes_its_request_with_it() {
    let site = site();
    let (told, is_told) = std::sync::mpsc::channel();
    let backend = backend(move |mut stream| {
        read_request(&mut stream).unwrap();
        told.send(1).unwrap();
        let end = stream.read(&mut [0]);
        told.send(end.unwrap_or(0)).unwrap();
    });
    let server = serve(&site, backend, "");
    let mut stream = connect(server.address());
    stream
        .write_all(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let next = || is_told.recv_timeout(crate::process::PATIENCE).unwrap();
    assert_eq!(next(), 1);
    drop(stream);
    assert_eq!(next(), 0);
}

#[test]
fn a_program_may_answer_before_it_has_read_the_body() {
    let site = site();
    let large = output(&"x".repeat(60_000)).repeat(20);
    let backend = backend(move |mut stream| {
        read_record(&mut stream).unwrap();
        // Longer than what sockets hold: the body waits for a reader that waits for its own.
        let _ = stream.write_all(&[output("A: b\n\n"), large.clone()].concat());
        let body = read_request(&mut stream).map_or(0, |body| body.len());
        let _ = stream.write_all(&[output(&format!(" {body}")), end(0)].concat());
    });
    let server = serve(&site, backend, "");
    let body = pattern(8_000_000);
    let head = format!(
        "POST /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = connect(server.address());
    let mut reading = stream.try_clone().unwrap();
    let reader = std::thread::spawn(move || read_to_end(&mut reading));
    stream
        .write_all(&[head.as_bytes(), &body].concat())
        .unwrap();
    let response = parse(&reader.join().unwrap());
    let tail = response.body.escape_ascii().to_string();
    assert!(
        tail.ends_with(" 8000000\\r\\n0\\r\\n\\r\\n"),
        "{}",
        &tail[tail.len() - 60..]
    );
}

#[test]
fn complaints_without_end_do_not_fill_the_log_or_hold_the_response() {
    let site = site();
    let complaint = record(STDERR, &[b'!'; 60_000]).repeat(20);
    let answer = [complaint.clone(), output("A: b\n\nok"), complaint, end(0)].concat();
    let mut server = serve(&site, answers(answer), "");
    // In chunks, or with a length if all of it came at once.
    let body = get(server.address(), "/x").body;
    assert!(
        body.windows(2).any(|pair| pair == b"ok"),
        "{}",
        body.escape_ascii()
    );
    let line = server.line_with("a program says");
    assert!(line.len() < 4000, "{} bytes", line.len());
}

#[test]
fn a_slow_upload_ends_with_408() {
    let site = site();
    let server = serve(&site, answers(end(0)), "upload-time-max = \"100ms\"");
    let request =
        b"POST /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 10\r\n\r\nabc";
    assert_eq!(parse(&exchange(server.address(), request)).status, 408);
}

#[test]
fn a_site_tries_the_files_and_programs_of_its_rule() {
    let site = site().with("app.php", "<?php").with("page.html", "page");
    let answer = [output("A: b\n\nprogram"), end(0)].concat();
    let keys = "[[site.rule]]\ntry-files = [\"{path}\", \"/app.php\"]\n";
    let server = serve(&site, answers(answer), keys);
    let at = |method, target| {
        String::from_utf8(request(server.address(), method, target, "").body).unwrap()
    };
    assert_eq!(at("GET", "/page.html"), "page");
    for target in ["/app.php", "/index.php", "/none", "/none.php"] {
        assert_eq!(at("GET", target), "program", "{target}");
    }
}

#[test]
fn contradictions_are_refused_with_a_remedy() {
    let site = Site::new();
    for (file, told) in [
        (
            "[[route]]\npath = \"/\"\nupstream = [\"fastcgi://a:1\"]\n",
            "route /: upstream: FastCGI runs the programs of a folder, and none is named: add root",
        ),
        (
            "[site]\nroot = \"FOLDER\"\n[[route]]\npath = \"/\"\nupstream = [\"fastcgi://a:1\", \"b:1\"]\n",
            "some servers speak FastCGI and some HTTP",
        ),
        (
            "[[route]]\npath = \"/\"\nupstream = [\"b:1\"]\n[route.fastcgi]\nindex = \"a.php\"\n",
            "no server speaks FastCGI",
        ),
        (
            "[[route]]\npath = \"/\"\nupstream = [\"fastcgi://a:1\"]\n[route.fastcgi]\nroot = \"/etc\"\n",
            "/etc is a folder of the system",
        ),
        (
            "[[route]]\npath = \"/\"\nupstream = [\"fastcgi:/run/php.sock\"]\n",
            "fastcgi:///run/php.sock",
        ),
    ] {
        let path = site.beside("a.toml");
        std::fs::write(&path, file.replace("FOLDER", site.root().to_str().unwrap())).unwrap();
        let ended = shortline(&site.root(), &["serve", "--config", path.to_str().unwrap()]);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(told), "{}", ended.stderr);
    }
}
