//! `[route.cache]`: responses of an application that are kept, and those that are not.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use crate::admin::status;
use crate::client::{Response, exchange, get, parse, request};
use crate::guards::{add_user, basic};
use crate::process::{PATIENCE, PROGRAM, Server, Site, wait_for};

/// An application that says in each response which of its requests it answers, and what it was told of the client.
pub struct Application {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    /// What it says from now on.
    says: Arc<Mutex<Says>>,
    /// The heads that came.
    heads: Receiver<String>,
    /// Lets `/held` go.
    release: Sender<()>,
}

#[derive(Clone)]
struct Says {
    status: &'static str,
    fields: String,
}

impl Application {
    /// Says these fields in each response.
    pub fn start(fields: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let says = Arc::new(Mutex::new(Says {
            status: "200 OK",
            fields: fields.to_owned(),
        }));
        let (sender, heads) = channel();
        let (release, released) = channel();
        let released = Arc::new(Mutex::new(released));
        let (counted, said) = (Arc::clone(&asked), Arc::clone(&says));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (counted, said) = (Arc::clone(&counted), Arc::clone(&said));
                let (sender, released) = (sender.clone(), Arc::clone(&released));
                std::thread::spawn(move || serve(stream, &counted, &said, &sender, &released));
            }
        });
        Self {
            address,
            asked,
            says,
            heads,
            release,
        }
    }

    /// How often it was asked.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// What it says from now on.
    pub fn says(&self, status: &'static str, fields: &str) {
        *self.says.lock().unwrap() = Says {
            status,
            fields: fields.to_owned(),
        };
    }

    fn last_head(&self) -> String {
        let first = self.heads.recv_timeout(PATIENCE).unwrap();
        self.heads.try_iter().last().unwrap_or(first)
    }
}

fn serve(
    mut stream: TcpStream,
    asked: &AtomicUsize,
    says: &Mutex<Says>,
    heads: &Sender<String>,
    released: &Mutex<Receiver<()>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read_exact(&mut byte).is_err() {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let number = asked.fetch_add(1, Ordering::SeqCst) + 1;
    // The test may be over.
    let _ = heads.send(head.clone());
    if head.contains(" /held") {
        let _ = released.lock().unwrap().recv_timeout(PATIENCE);
    }
    let cookie = head.lines().find_map(|line| line.strip_prefix("cookie: "));
    let body = format!("number {number} for {}", cookie.unwrap_or("all"));
    let Says { status, fields } = says.lock().unwrap().clone();
    let body = if status.starts_with("304") {
        String::new()
    } else if let Some((_, count)) = head.split_once(" /times/") {
        let count = count.split(' ').next().unwrap().parse().unwrap();
        body.repeat(count)
    } else {
        body
    };
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
    );
}

/// A server before an application, whose route's cache has these keys.
pub fn start(site: &Site, application: &Application, keys: &str) -> Server {
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\n\
         upstream = [\"{}\"]\n[route.cache]\n{keys}\n",
        application.address
    );
    let file = site.beside("shortline.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(PROGRAM);
    Server::spawn(command.arg("serve").arg("--config").arg(file))
}

pub fn text(response: &Response) -> &str {
    std::str::from_utf8(&response.body).unwrap()
}

pub const FRESH: &str = "Cache-Control: max-age=600\r\n";

#[test]
fn no_client_sees_what_is_meant_for_another() {
    let site = Site::new();
    let application = Application::start(FRESH);
    let server = start(&site, &application, "default-time = \"10min\"");
    let at = server.address();
    let ask = |target: &str, fields: &str| text(&request(at, "GET", target, fields)).to_owned();
    // Each of these is answered by the application anew, whatever was kept before and after.
    let mut answers = Vec::new();
    let mut anew = |target: &str, client: &str| {
        let before = application.asked();
        answers.push(ask(target, client));
        assert_eq!(application.asked(), before + 1, "{target} {client}");
    };
    anew("/cookie", "Cookie: user=ann\r\n");
    anew("/cookie", "Cookie: user=bob\r\n");
    anew("/cookie", "");
    anew("/cookie", "Cookie: user=ann\r\n");
    for fields in [
        "Authorization: Basic YTpi\r\n",
        "Authorization: Bearer x\r\n",
        "Cache-Control: no-store\r\n",
        "Range: bytes=0-1\r\n",
        "X-Original-URL: /admin\r\n",
    ] {
        anew("/fields", fields);
        anew("/fields", fields);
    }
    // And a body may be what the response is about.
    let body = "GET /body HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx";
    for _ in 0..2 {
        parse(&exchange(at, body));
    }
    let plain = ask("/body", "");
    assert!(plain.starts_with("number"), "{plain}");
    for answered in [
        "Set-Cookie: user=ann\r\nCache-Control: public, max-age=600\r\n",
        "Cache-Control: private, max-age=600\r\n",
        "Cache-Control: Private\r\nCache-Control: max-age=600\r\n",
        "Cache-Control: no-store\r\n",
        "Cache-Control: no-cache\r\n",
        "Cache-Control: max-age=600\r\nVary: *\r\n",
        "Expires: 0\r\n",
        "Pragma: no-cache\r\n",
    ] {
        application.says("200 OK", answered);
        let target = format!("/{}", application.asked());
        let before = application.asked();
        ask(&target, "");
        ask(&target, "");
        assert_eq!(application.asked(), before + 2, "{answered}");
    }
}

#[test]
fn what_is_kept_is_behind_the_password_of_its_rule() {
    let site = Site::new();
    let application = Application::start("Cache-Control: public, max-age=600\r\n");
    let users = add_user(&site, "ann", "secret");
    let rule = format!(
        "[[site.rule]]\npath = \"/secret/*\"\nbasic-auth = {{ users = \"{}\" }}\n",
        users.display()
    );
    let server = start(&site, &application, &rule);
    let ask = |target: &str, fields: &str| request(server.address(), "GET", target, fields);
    let open = ask("/open", "");
    assert_eq!(ask("/open", "").body, open.body, "it is kept");
    for _ in 0..2 {
        assert_eq!(ask("/secret/x", &basic("ann:secret")).status, 200);
        for fields in ["", &basic("ann:wrong")] {
            let before = application.asked();
            let response = ask("/secret/x", fields);
            assert_eq!(
                (response.status, response.field("cache-status")),
                (401, None)
            );
            assert_eq!(application.asked(), before);
        }
    }
}

#[test]
fn a_fresh_response_is_answered_from_memory() {
    let site = Site::new();
    let application = Application::start(
        "Cache-Control: max-age=600\r\nLink: <a>\r\nLink: <b>\r\nETag: \"1\"\r\n",
    );
    let server = start(&site, &application, "");
    let at = server.address();
    let first = get(at, "/a?x=1");
    assert_eq!(
        (text(&first), first.field("cache-status")),
        ("number 1 for all", Some("Shortline; fwd=uri-miss"))
    );
    wait_for("the response to be kept", || {
        (status(&server)["caches"][0]["responses"] == 1).then_some(())
    });
    let second = get(at, "/a?x=1");
    assert_eq!(text(&second), "number 1 for all");
    assert!(
        second
            .field("cache-status")
            .unwrap()
            .starts_with("Shortline; hit; ttl=")
    );
    assert!(second.field("age").unwrap().parse::<u64>().unwrap() < 600);
    assert_eq!(second.head.matches("link: ").count(), 2);
    assert_eq!(second.content_length(), 16);

    let head = request(at, "HEAD", "/a?x=1", "");
    assert_eq!((head.content_length(), head.body.len()), (16, 0));
    let same = request(at, "GET", "/a?x=1", "If-None-Match: \"1\"\r\n");
    assert_eq!((same.status, same.body.len()), (304, 0));
    // What a client wants newer is as new as it is.
    let reload = request(
        at,
        "GET",
        "/a?x=1",
        "Cache-Control: no-cache\r\nPragma: no-cache\r\n",
    );
    assert_eq!(text(&reload), "number 1 for all");
    assert_eq!(application.asked(), 1);
    for other in ["/a?x=2", "/a", "/A?x=1"] {
        assert_ne!(text(&get(at, other)), "number 1 for all", "{other}");
    }
    let caches = &status(&server)["caches"][0];
    assert_eq!(
        (&caches["hits_total"], &caches["misses_total"]),
        (&4.into(), &4.into()),
        "{caches}"
    );
    let metrics = get(server.admin.unwrap(), "/metrics").body;
    let metrics = String::from_utf8(metrics).unwrap();
    assert!(
        metrics.contains("shortline_cache_hits_total{route=\"/\"} 4"),
        "{metrics}"
    );
}

#[test]
fn responses_vary_by_the_fields_that_they_name() {
    let site = Site::new();
    let fields = "Cache-Control: max-age=600\r\nVary: Accept-Language, X-User\r\n";
    let application = Application::start(fields);
    let server = start(&site, &application, "");
    let ask = |fields: &str| text(&request(server.address(), "GET", "/", fields)).to_owned();
    let of = [
        "",
        "Accept-Language: de\r\n",
        "Accept-Language: en\r\n",
        "X-User: ann\r\n",
        "X-User: ann\r\nX-User: bob\r\n",
    ];
    let first = of.map(ask);
    wait_for("the responses to be kept", || {
        (status(&server)["caches"][0]["responses"] == of.len()).then_some(())
    });
    assert_eq!(of.map(ask), first);
    assert_eq!(application.asked(), of.len());
}

#[test]
fn what_is_public_is_for_clients_with_cookies_too() {
    let site = Site::new();
    let application = Application::start("Cache-Control: public, max-age=600\r\n");
    let server = start(&site, &application, "");
    get(server.address(), "/");
    wait_for("the response to be kept", || {
        (status(&server)["caches"][0]["responses"] == 1).then_some(())
    });
    let told = request(server.address(), "GET", "/", "Cookie: user=ann\r\n");
    assert_eq!(text(&told), "number 1 for all");
}

#[test]
fn many_who_want_the_same_wait_for_one_fetch() {
    let site = Site::new();
    let application = Application::start(FRESH);
    let server = start(&site, &application, "wait-time-max = \"30s\"");
    let at = server.address();
    let asking: Vec<_> = (0..8)
        .map(|_| std::thread::spawn(move || text(&get(at, "/held")).to_owned()))
        .collect();
    wait_for("all to be there", || {
        (status(&server)["server"]["connections"]["response"] == 8).then_some(())
    });
    application.release.send(()).unwrap();
    for asked in asking {
        assert_eq!(asked.join().unwrap(), "number 1 for all");
    }
    assert_eq!(application.asked(), 1);
}

#[test]
fn who_has_waited_long_enough_asks_alone() {
    let site = Site::new();
    let application = Application::start(FRESH);
    let server = start(&site, &application, "wait-time-max = \"100ms\"");
    let at = server.address();
    let asking: Vec<_> = (0..2)
        .map(|_| std::thread::spawn(move || get(at, "/held").status))
        .collect();
    wait_for("both to be asked for", || {
        (application.asked() == 2).then_some(())
    });
    application.release.send(()).unwrap();
    application.release.send(()).unwrap();
    for asked in asking {
        assert_eq!(asked.join().unwrap(), 200);
    }
}

/// A response that is stale as soon as it has come.
const STALE: &str = "Cache-Control: max-age=10\r\nAge: 9\r\nETag: \"1\"\r\n";

fn kept_and_stale(server: &Server) {
    assert_eq!(text(&get(server.address(), "/")), "number 1 for all");
    wait_for("the response to be kept", || {
        (status(server)["caches"][0]["responses"] == 1).then_some(())
    });
    std::thread::sleep(std::time::Duration::from_millis(1100));
}

#[test]
fn a_stale_response_is_asked_for_and_used_again_if_it_holds() {
    let site = Site::new();
    let application = Application::start(STALE);
    let server = start(&site, &application, "");
    kept_and_stale(&server);
    application.says(
        "304 Not Modified",
        "Cache-Control: max-age=600\r\nETag: \"1\"\r\nX-New: yes\r\n",
    );
    let again = get(server.address(), "/");
    assert_eq!(text(&again), "number 1 for all");
    assert_eq!(
        again.field("cache-status"),
        Some("Shortline; fwd=stale; fwd-status=304")
    );
    assert!(
        application
            .last_head()
            .contains("\r\nif-none-match: \"1\"\r\n")
    );
    let hit = get(server.address(), "/");
    assert_eq!(
        (text(&hit), hit.field("x-new")),
        ("number 1 for all", Some("yes"))
    );
    assert_eq!(application.asked(), 2);
}

#[test]
fn a_stale_response_stands_in_for_a_backend_that_fails() {
    let site = Site::new();
    let application = Application::start(STALE);
    let server = start(&site, &application, "stale-if-error = \"10min\"");
    kept_and_stale(&server);
    application.says("503 Service Unavailable", "");
    let stale = get(server.address(), "/");
    assert_eq!((stale.status, text(&stale)), (200, "number 1 for all"));
    assert!(
        stale
            .field("cache-status")
            .unwrap()
            .starts_with("Shortline; hit; ttl=-")
    );
    application.says("200 OK", FRESH);
    assert_eq!(text(&get(server.address(), "/")), "number 3 for all");
}

#[test]
fn a_stale_response_is_given_while_another_is_fetched() {
    let site = Site::new();
    let application = Application::start(STALE);
    let server = start(&site, &application, "stale-while-revalidate = \"10min\"");
    kept_and_stale(&server);
    application.says("200 OK", FRESH);
    assert_eq!(text(&get(server.address(), "/")), "number 1 for all");
    wait_for("the new one", || {
        (text(&get(server.address(), "/")) == "number 2 for all").then_some(())
    });
    assert_eq!(application.asked(), 2);
}

/// Asks the admin address to forget what is kept of a URL.
pub fn purge(server: &Server, url: &str) -> (u16, String) {
    let admin = server.admin.unwrap();
    let request = format!(
        "POST /purge HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{url}",
        url.len()
    );
    let response = parse(&exchange(admin, request));
    (response.status, text(&response).trim().to_owned())
}

#[test]
fn what_is_purged_is_fetched_anew() {
    let site = Site::new();
    let application = Application::start(FRESH);
    let server = start(&site, &application, "");
    let at = server.address();
    let targets = ["/blog/a", "/blog/b", "/shop"];
    let first = targets.map(|target| text(&get(at, target)).to_owned());
    wait_for("the responses to be kept", || {
        (status(&server)["caches"][0]["responses"] == 3).then_some(())
    });
    let purge = |url: &str| purge(&server, url);
    assert_eq!(
        purge(&format!("http://{at}/blog/*")),
        (200, "purged 2".to_owned())
    );
    let second = targets.map(|target| text(&get(at, target)).to_owned());
    assert!(
        second[0] != first[0] && second[1] != first[1] && second[2] == first[2],
        "{second:?}"
    );
    assert_eq!(
        purge(&format!("http://{at}/shop")),
        (200, "purged 1".to_owned())
    );
    assert_eq!(purge("/shop").0, 400);
}
