//! Rules about who may ask and how often, and pages for those who may not.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;

use crate::client::{Response, get, request};
use crate::process::{Server, Site, wait_for};
use crate::routes::application;
use crate::sites::{refused, start};

/// Serves the folder of the test, and an application at `/app`, with these keys and rules.
fn serve(site: &Site, keys: &str, rules: &str) -> Server {
    let backend = application();
    let file = format!(
        "[log]\naccess = \"FOLDER/access.log\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [site]\nroot = \"FOLDER/site\"\n{keys}\
         [[route]]\npath = \"/app\"\nupstream = [\"{backend}\"]\n{rules}"
    );
    start(site, &file)
}

fn text(response: &Response) -> String {
    String::from_utf8(response.body.clone()).unwrap()
}

/// Adds a user to the file of users.
pub fn add_user(site: &Site, name: &str, password: &str) -> PathBuf {
    let file = site.beside("users");
    let hash = bcrypt::hash(password, 4).unwrap();
    let before = std::fs::read_to_string(&file).unwrap_or_default();
    std::fs::write(&file, format!("{before}{name}:{hash}\n")).unwrap();
    file
}

/// `user:password` as a request has it.
pub fn basic(credentials: &str) -> String {
    use std::fmt::Write;
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = "Authorization: Basic ".to_owned();
    for three in credentials.as_bytes().chunks(3) {
        let bits = three
            .iter()
            .fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            let letter = if place <= three.len() {
                char::from(letter)
            } else {
                '='
            };
            write!(text, "{letter}").unwrap();
        }
    }
    text + "\r\n"
}

#[test]
fn a_page_stands_for_an_error_and_the_status_stays() {
    let site = Site::new().with("sorry.html", "<p>sorry\n");
    // Nobody listens there.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = free.local_addr().unwrap();
    drop(free);
    let server = serve(
        &site,
        "error-page = { 404 = \"/sorry.html\", 5xx = \"come back later\\n\", 405 = \"/nowhere.html\" }\n",
        &format!(
            "[[route]]\npath = \"/down\"\nupstream = [\"{nobody}\"]\n\
             [[site.rule]]\npath = \"/secret/*\"\ndeny = [\"0.0.0.0/0\"]\nerror-page = {{ 403 = \"not for you\\n\" }}\n\
             [[site.rule]]\npath = \"/gone\"\nrespond = \"as it is\\n\"\nstatus = 404\n"
        ),
    );
    let missing = get(server.address(), "/missing");
    assert_eq!(
        (missing.status, text(&missing).as_str()),
        (404, "<p>sorry\n")
    );
    assert_eq!(
        missing.field("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(missing.field("etag"), None);
    assert_eq!(missing.content_length(), missing.body.len());
    let head = request(server.address(), "HEAD", "/missing", "");
    assert_eq!(
        (head.status, head.content_length(), head.body.len()),
        (404, 9, 0)
    );
    // What a client says of the file that it asks for is not about the page.
    let asked = "If-None-Match: *\r\nRange: bytes=0-1\r\n";
    let missing = request(server.address(), "GET", "/missing", asked);
    assert_eq!(
        (missing.status, text(&missing).as_str()),
        (404, "<p>sorry\n")
    );
    let down = get(server.address(), "/down");
    assert_eq!(
        (down.status, text(&down).as_str()),
        (502, "come back later\n")
    );
    let secret = get(server.address(), "/secret/a");
    assert_eq!(
        (secret.status, text(&secret).as_str()),
        (403, "not for you\n")
    );
    // What a rule says is wanted, and a page that is not there does not lead to another.
    assert_eq!(text(&get(server.address(), "/gone")), "as it is\n");
    let other = request(
        server.address(),
        "POST",
        "/hello.txt",
        "content-length: 0\r\n",
    );
    assert_eq!(other.status, 405);
    assert!(text(&other).starts_with("405 ") && other.field("allow").is_some());
    assert_eq!(text(&get(server.address(), "/hello.txt")), "hello\n");
}

#[test]
fn users_with_a_password_get_in_and_are_named() {
    let site = Site::new();
    add_user(&site, "bob", "secret");
    let mut server = serve(
        &site,
        "",
        "[[site.rule]]\npath = \"/app/*\"\n\
         basic-auth = { users = \"FOLDER/users\", realm = \"office\", user-header = \"x-user\" }\n\
         [[site.rule]]\npath = \"/folder/*\"\nbasic-auth = { users = \"FOLDER/users\" }\n",
    );
    let asked = |target: &str, fields: &str| request(server.address(), "GET", target, fields);
    let refused = asked("/folder/page.html", "");
    assert_eq!(refused.status, 401);
    assert_eq!(
        refused.field("www-authenticate"),
        Some("Basic realm=\"restricted\", charset=\"UTF-8\"")
    );
    for wrong in ["bob:Secret", "eve:secret", "bob:", ":"] {
        assert_eq!(
            asked("/folder/page.html", &basic(wrong)).status,
            401,
            "{wrong}"
        );
    }
    for _ in 0..2 {
        let page = asked("/folder/page.html", &basic("bob:secret"));
        assert_eq!((page.status, text(&page).as_str()), (200, "<p>page\n"));
    }
    // The backend hears of the user, whatever the client says of it.
    let claims = "X-User: admin\r\nX_User: admin\r\nConnection: x-user\r\n";
    let seen = text(&asked(
        "/app/x",
        &format!("{}{claims}", basic("bob:secret")),
    ));
    let seen = seen.to_ascii_lowercase();
    assert!(
        seen.contains("x-user: bob") && !seen.contains("admin"),
        "{seen}"
    );
    assert_eq!(asked("/app/x", claims).status, 401);
    // Neither is asked where the rule does not say so.
    assert_eq!(asked("/hello.txt", "").status, 200);
    let log = site.beside("access.log");
    wait_for("the line with the user", || {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        log.contains("127.0.0.1 - bob [").then_some(())
    });
    // A reload reads the users again.
    std::fs::remove_file(site.beside("users")).unwrap();
    add_user(&site, "eve", "other");
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    let asked = |fields: &str| request(server.address(), "GET", "/folder/page.html", fields);
    assert_eq!(asked(&basic("bob:secret")).status, 401);
    assert_eq!(asked(&basic("eve:other")).status, 200);
}

#[test]
fn the_file_that_htpasswd_writes_is_read() {
    let site = Site::new();
    let file = site.beside("users");
    let made = Command::new("htpasswd")
        .args(["-cbB", "-C", "4"])
        .arg(&file)
        .args(["bob", "secret"])
        .output();
    if made.is_err() {
        eprintln!("skipped: htpasswd (apache2-utils) is not installed");
        return;
    }
    let server = serve(
        &site,
        "",
        "[[site.rule]]\nbasic-auth = { users = \"FOLDER/users\" }\n",
    );
    let asked = |fields: &str| request(server.address(), "GET", "/", fields).status;
    assert_eq!(
        (asked(&basic("bob:secret")), asked(&basic("bob:x"))),
        (200, 401)
    );
}

#[test]
fn pages_of_other_origins_may_what_the_rule_says() {
    let site = Site::new();
    let server = serve(
        &site,
        "",
        "[[site.rule]]\npath = \"/app/*\"\n\
         cors = { origins = [\"https://*.example.org\"], methods = [\"GET\", \"PUT\"], headers = [\"x-a\"], \
         expose = [\"etag\"], max-age = \"10min\", credentials = true }\n\
         [[site.rule]]\npath = \"*.txt\"\ncors = { origins = [\"*\"] }\n",
    );
    let preflight = |origin: &str| {
        let fields = format!("Origin: {origin}\r\nAccess-Control-Request-Method: PUT\r\n");
        request(server.address(), "OPTIONS", "/app/x", &fields)
    };
    let may = preflight("https://app.example.org");
    assert_eq!(may.status, 204);
    for (name, value) in [
        ("access-control-allow-origin", "https://app.example.org"),
        ("access-control-allow-methods", "GET, PUT"),
        ("access-control-allow-headers", "x-a"),
        ("access-control-max-age", "600"),
        ("access-control-allow-credentials", "true"),
        ("vary", "origin"),
    ] {
        assert_eq!(may.field(name), Some(value), "{name}");
    }
    let may_not = preflight("https://evil.example");
    assert_eq!(may_not.status, 403);
    assert_eq!(may_not.field("access-control-allow-origin"), None);
    let asked = |target: &str, origin: &str| {
        let fields = format!("Origin: {origin}\r\n");
        request(server.address(), "GET", target, &fields)
    };
    let read = asked("/app/x", "https://app.example.org");
    assert_eq!(read.status, 200);
    assert_eq!(
        read.field("access-control-allow-origin"),
        Some("https://app.example.org")
    );
    assert_eq!(read.field("access-control-expose-headers"), Some("etag"));
    let hidden = asked("/app/x", "https://evil.example");
    assert_eq!(
        (hidden.status, hidden.field("access-control-allow-origin")),
        (200, None)
    );
    assert_eq!(hidden.field("vary"), Some("origin"));
    let file = asked("/hello.txt", "https://evil.example");
    assert_eq!(file.field("access-control-allow-origin"), Some("*"));
    assert_eq!(file.field("vary"), None);
    // Without the page's method it is no preflight.
    let options = request(
        server.address(),
        "OPTIONS",
        "/hello.txt",
        "Origin: https://a\r\n",
    );
    assert_eq!(
        (options.status, options.field("allow").is_some()),
        (204, true)
    );
}

#[test]
fn one_client_asks_as_often_as_it_may() {
    let site = Site::new();
    let server = serve(
        &site,
        "",
        "[[site.rule]]\npath = \"/hello.txt\"\nrate = \"2/h\"\n\
         [[site.rule]]\npath = \"/folder/*\"\nrate = \"1/h\"\nrate-burst = 1\nrate-by = \"header:x-key\"\n",
    );
    let statuses: Vec<u16> = (0..4)
        .map(|_| get(server.address(), "/hello.txt").status)
        .collect();
    assert_eq!(statuses, [200, 200, 429, 429]);
    let over = get(server.address(), "/hello.txt");
    let after: u64 = over.field("retry-after").unwrap().parse().unwrap();
    assert!((1..=1800).contains(&after), "{after}");
    assert_eq!(get(server.address(), "/").status, 200);
    let keyed = |key: &str| {
        let fields = format!("X-Key: {key}\r\n");
        request(server.address(), "GET", "/folder/page.html", &fields).status
    };
    assert_eq!((keyed("a"), keyed("b"), keyed("a")), (200, 200, 429));
}

#[test]
fn a_rule_may_be_for_some_hosts() {
    let site = Site::new();
    let server = serve(
        &site,
        "",
        "[[site.rule]]\nhost = [\"www.example.org\"]\nredirect = \"http://example.org{path}{query}\"\nstatus = 308\n",
    );
    let asked = |host: &str| {
        let text = format!("GET /a?b HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        crate::client::parse(&crate::client::exchange(server.address(), text))
    };
    let moved = asked("www.example.org");
    assert_eq!(moved.field("location"), Some("http://example.org/a?b"));
    assert_eq!(asked("example.org").status, 404);
}

#[test]
fn a_wrong_guard_is_refused_with_its_number_and_a_remedy() {
    let site = Site::new();
    std::fs::write(site.beside("md5"), "bob:$apr1$a$b\n").unwrap();
    std::fs::write(site.beside("empty"), "# nobody\n").unwrap();
    for (rule, told) in [
        ("error-page = { 200 = \"a\" }", "`200` is no error"),
        (
            "basic-auth = { users = \"FOLDER/md5\" }",
            "line 1: the hash of `bob` is MD5",
        ),
        ("basic-auth = { users = \"FOLDER/empty\" }", "names no user"),
        ("basic-auth = { users = \"FOLDER/none\" }", "No such file"),
        (
            "basic-auth = { users = \"a\", realm = \"\\\"\" }",
            "is no realm",
        ),
        (
            "basic-auth = { users = \"a\" }\nrespond = \"a\"",
            "basic-auth: the rule answers by itself",
        ),
        (
            "basic-auth = { users = \"a\", user-header = \"connection\" }",
            "is of the connection",
        ),
        (
            "basic-auth = { users = \"a\", user-header = \"x-user\" }",
            "no route to a backend",
        ),
        ("cors = { origins = [] }", "cors.origins: names none"),
        (
            "cors = { origins = [\"*\"], credentials = true }",
            "cors.origins: * contradicts credentials",
        ),
        (
            "cors = { origins = [\"a.example\"] }",
            "`a.example` is no origin",
        ),
        ("rate = \"10\"", "`10` is no rate"),
        ("rate-burst = 5\nrespond = \"a\"", "belongs to a rate"),
        (
            "rate = \"1/s\"\nrate-by = \"cookie\"",
            "`cookie` does not say",
        ),
        ("host = []\nrespond = \"a\"", "host: names none"),
    ] {
        let file = format!("[site]\nroot = \"FOLDER/site\"\n[[site.rule]]\n{rule}\n");
        let error = refused(&site, &file);
        assert!(error.contains(told), "{rule}: {error}");
        assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    }
    let file = "[[site]]\nnames = [\"a.example\"]\nroot = \"FOLDER/site\"\n\
        [[site.rule]]\nhost = [\"b.example\"]\nrespond = \"a\"\n";
    let error = refused(&site, file);
    assert!(
        error.contains("the site does not answer for b.example"),
        "{error}"
    );
}
