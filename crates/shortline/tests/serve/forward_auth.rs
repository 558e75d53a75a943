//! `forward-auth`: another server decides who may ask.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

use crate::admin::status;
use crate::client::{connect, get, parse, read_head, read_to_end, request};
use crate::nginx::{Nginx, free};
use crate::process::{Server, Site, shortline};
use crate::routes::application;

/// A server that lets in whoever has a cookie, and sends others to log in.
fn decider(address: SocketAddr) -> Option<Nginx> {
    let block = format!(
        "server {{ listen {address};
           location /check {{
             add_header X-Question '$request_method $http_x_forwarded_method $http_x_forwarded_uri $http_x_forwarded_for' always;
             add_header X-User bob always;
             add_header Set-Cookie login=begun always;
             add_header Set-Cookie 'session_0=renewed; Path=/; HttpOnly' always;
             if ($cookie_session = good) {{ return 204; }}
             if ($http_authorization = 'Bearer good') {{ return 200; }}
             if ($http_x_api_key = good) {{ return 200; }}
             return 302 https://login.example/;
           }}
         }}"
    );
    Nginx::start(address, "$http_x_forwarded_uri", &block)
}

fn config(site: &Site, auth: &str) -> String {
    let file = site.beside("shortline.toml");
    let text = format!(
        "[[site.rule]]\npath = \"/folder/*\"\nforward-auth = {{ {auth} }}\n\
         [[site.rule]]\npath = \"/app*\"\nerror-page = {{ 504 = \"too slow\\n\" }}\n\
         forward-auth = {{ {auth}, copy-headers = [\"X-User\"] }}\n\
         [[route]]\npath = \"/app\"\nupstream = [\"{}\"]\n",
        application()
    );
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn who_is_let_in_is_named_and_others_get_the_servers_answer() {
    let address = free();
    let Some(nginx) = decider(address) else {
        return;
    };
    let site = Site::new();
    let config = config(&site, &format!("url = \"http://{address}/check\""));
    let server = Server::start(&site, &["--config", &config]);
    let at = server.address();
    for target in ["/app/secret?x=1", "/folder/page.html"] {
        let answer = request(
            at,
            "POST",
            target,
            "Content-Length: 0\r\nX-Forwarded-Uri: /\r\n",
        );
        assert_eq!(answer.status, 302, "{answer:?}");
        assert_eq!(answer.field("location"), Some("https://login.example/"));
        assert_eq!(answer.fields("set-cookie")[0], "login=begun");
        let asked = format!("GET POST {target} 127.0.0.1");
        assert_eq!(answer.field("x-question"), Some(&*asked));
        assert!(answer.body.starts_with(b"<html>"));
        let head = request(at, "HEAD", target, "");
        assert_eq!((head.status, head.body.len()), (302, 0));
        assert_eq!(head.content_length(), answer.body.len());
    }
    assert_eq!(get(at, "/hello.txt").status, 200, "it is for no other path");

    for credentials in ["Cookie: session=good\r\n", "Authorization: Bearer good\r\n"] {
        let fields =
            format!("{credentials}X-User: admin\r\nx_user: admin\r\nConnection: X-User\r\n");
        let told = request(at, "GET", "/app/secret", &fields);
        let told = (told.status, String::from_utf8(told.body).unwrap());
        assert_eq!(told.0, 200);
        let users: Vec<&str> = told
            .1
            .lines()
            .filter(|line| line.contains("user"))
            .collect();
        assert_eq!(users, ["x-user: bob"], "{}", told.1);
        assert!(!told.1.contains("admin"), "{}", told.1);
        let page = request(at, "GET", "/folder/page.html", credentials);
        assert_eq!((page.status, &page.body[..]), (200, &b"<p>page\n"[..]));
        assert_eq!(page.field("set-cookie"), None);
    }
    // It gets no other field unless that is chosen.
    assert_eq!(
        request(at, "GET", "/app", "X-Api-Key: good\r\n").status,
        302
    );
    // Two servers might read it differently.
    let before = nginx.logged().len();
    let twofold = request(
        at,
        "GET",
        "/app/..%2ffolder/page.html",
        "Cookie: session=good\r\n",
    );
    assert_eq!(twofold.status, 400);
    assert_eq!(nginx.logged().len(), before);
    let backends = status(&server)["server"]["backends"].clone();
    let addresses: Vec<_> = backends
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["address"].clone())
        .collect();
    assert!(
        addresses.contains(&address.to_string().into()),
        "{addresses:?}"
    );
}

#[test]
fn the_cookies_that_a_client_gets_are_chosen_and_no_other_client_gets_them() {
    let address = free();
    let Some(_nginx) = decider(address) else {
        return;
    };
    let site = Site::new();
    let file = site.beside("shortline.toml");
    let text = format!(
        "[[site.rule]]\nforward-auth = {{ url = \"http://{address}/check\", copy-cookies = [\"session*\"] }}\n\
         [[route]]\npath = \"/app\"\nupstream = [\"{}\"]\ncache = {{}}\n",
        setting_cookies()
    );
    std::fs::write(&file, text).unwrap();
    let server = Server::start(&site, &["--config", file.to_str().unwrap()]);
    let at = server.address();
    let renewed = "session_0=renewed; Path=/; HttpOnly";
    for target in ["/folder/page.html", "/nothing"] {
        let answer = request(at, "GET", target, "Cookie: session=good\r\n");
        assert_eq!(answer.fields("set-cookie"), [renewed], "{target}");
    }
    let answer = request(at, "GET", "/app/own", "Cookie: session=good\r\n");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.fields("set-cookie"), ["own=1", renewed]);
    // A response that is kept has nobody's.
    for hit in [false, true] {
        let answer = request(at, "GET", "/app/kept", "Cookie: session=good\r\n");
        assert_eq!(answer.fields("set-cookie"), [renewed]);
        let state = answer.field("cache-status").unwrap_or_default();
        assert_eq!(state.contains("hit"), hit, "{answer:?}");
    }
    // Whoever is not let in gets the whole answer.
    let refused = get(at, "/hello.txt");
    assert_eq!(refused.status, 302);
    assert_eq!(refused.fields("set-cookie"), ["login=begun", renewed]);
}

/// A backend that sets cookies, one of them by a name of the other server's, unless it is asked for what may be kept.
fn setting_cookies() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                while let Some(head) = read_head(&mut stream) {
                    let fields = match head.contains("/app/kept") {
                        true => "Cache-Control: public, max-age=3600\r\n",
                        false => "Set-Cookie: own=1\r\nSet-Cookie: session_0=old\r\n",
                    };
                    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n{fields}\r\na");
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn the_fields_that_the_server_gets_are_chosen() {
    let address = free();
    let Some(_nginx) = decider(address) else {
        return;
    };
    let site = Site::new();
    let auth = format!("url = \"http://{address}/check\", send-headers = [\"x-api-key\"]");
    let config = config(&site, &auth);
    let server = Server::start(&site, &["--config", &config]);
    let asked = |fields| request(server.address(), "GET", "/app", fields).status;
    assert_eq!(asked("X-Api-Key: good\r\n"), 200);
    assert_eq!(asked("Cookie: session=good\r\n"), 302);
}

#[test]
fn a_body_waits_for_the_answer_and_then_gets_to_the_backend() {
    let address = free();
    let Some(_nginx) = decider(address) else {
        return;
    };
    let site = Site::new();
    let config = config(&site, &format!("url = \"http://{address}/check\""));
    let server = Server::start(&site, &["--config", &config]);
    let mut stream = connect(server.address());
    stream
        .write_all(
            b"POST /app HTTP/1.1\r\nHost: a\r\nCookie: session=good\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody",
        )
        .unwrap();
    let told = parse(&read_to_end(&mut stream)).body;
    let told = String::from_utf8(told).unwrap();
    assert!(
        told.starts_with("POST /app HTTP/1.1\r\n") && told.contains("content-length: 4\r\n"),
        "{told}"
    );
}

/// A server that does this with each connection, once a request has come.
fn failing(does: impl Fn(&mut std::net::TcpStream) + Send + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let does = does.clone();
            std::thread::spawn(move || {
                if read_head(&mut stream).is_some() {
                    does(&mut stream);
                }
            });
        }
    });
    address
}

#[test]
fn without_an_answer_nobody_gets_in() {
    let silent = failing(|stream| {
        // Until the other side gives up.
        let _ = stream.read(&mut [0]);
    });
    let half = failing(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
        let _ = stream.read(&mut [0]);
    });
    let closing = failing(|_| {});
    let short = failing(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    });
    let large = failing(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n");
        let _ = stream.write_all(&[b'a'; 2000]);
    });
    let other = failing(|stream| {
        let _ = stream.write_all(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        );
    });
    for (address, expected) in [
        (silent, 504),
        (half, 504),
        (closing, 502),
        (short, 502),
        (large, 502),
        (other, 502),
        (free(), 502),
    ] {
        let site = Site::new();
        let auth =
            format!("url = \"http://{address}/\", time-max = \"1s\", answer-size-max = \"1KiB\"");
        let config = config(&site, &auth);
        let mut server = Server::start(&site, &["--config", &config]);
        let answer = get(server.address(), "/app");
        assert_eq!(answer.status, expected, "{address}");
        if expected == 504 {
            assert_eq!(answer.body, b"too slow\n");
        }
        let line = server.line_with("a request failed");
        assert!(line.contains("forward-auth"), "{line}");
        assert_eq!(get(server.address(), "/folder/page.html").status, expected);
        let backends = status(&server)["server"]["backends"].clone();
        for backend in backends.as_array().unwrap() {
            let is_auth = backend["address"] == address.to_string();
            assert!(is_auth || backend["requests_total"] == 0, "{backend}");
        }
    }
}

#[test]
fn what_decides_about_nothing_is_refused() {
    let site = Site::new();
    for (text, expected) in [
        (
            "forward-auth = { url = \"auth\" }",
            "`auth` is no URL of a server: write it like http://127.0.0.1:4180",
        ),
        ("forward-auth = {}", "`url` is missing"),
        (
            "forward-auth = { url = \"http://a/\", copy-headers = [\"x-user\"] }",
            "forward-auth.copy-headers: the site has no route",
        ),
        (
            "forward-auth = { url = \"http://a/\", ca = \"a.pem\" }",
            "forward-auth.ca: is for a server with TLS",
        ),
        (
            "forward-auth = { url = \"http://a/\", time-max = \"0s\" }",
            "forward-auth.time-max: must be more than 0",
        ),
        (
            "forward-auth = { url = \"http://a/\", send-headers = [\"upgrade\"] }",
            "`upgrade` is of the connection",
        ),
        (
            "forward-auth = { url = \"http://a/\", copy-cookies = [\"a b\"] }",
            "`a b` is no name of a cookie",
        ),
        (
            "forward-auth = { url = \"http://a/\" }\nrespond = \"a\"",
            "forward-auth: the rule answers by itself",
        ),
    ] {
        let file = site.beside("a.toml");
        std::fs::write(
            &file,
            format!("[site]\nroot = \".\"\n[[site.rule]]\npath = \"/a\"\n{text}\n"),
        )
        .unwrap();
        let ended = shortline(&site.root(), &["serve", "--config", file.to_str().unwrap()]);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert_eq!(ended.stderr.trim().lines().count(), 1, "{}", ended.stderr);
    }
}
