//! Rules of a site: redirects, texts, rewritten targets, files tried in turn, fields, networks.

use crate::client::{Response, get, request};
use crate::process::{Server, Site};
use crate::routes::application;
use crate::sites::{refused, start};

/// Serves the folder of the test, and an application at `/app`, with these rules.
fn with_rules(site: &Site, rules: &str) -> Server {
    let backend = application();
    let file = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[site]\nroot = \"FOLDER/site\"\n\
         [[route]]\npath = \"/app\"\nupstream = [\"{backend}\"]\n{rules}"
    );
    start(site, &file)
}

fn text(response: &Response) -> String {
    String::from_utf8(response.body.clone()).unwrap()
}

#[test]
fn a_redirect_keeps_what_it_is_told_to_keep() {
    let site = Site::new();
    let server = with_rules(
        &site,
        "[[site.rule]]\npath = \"/old/*\"\nredirect = \"/new/{rest}{query}\"\nstatus = 308\n\
         [[site.rule]]\npath = \"/feed\"\nmethod = [\"GET\"]\nredirect = \"https://feeds.example{path}\"\n",
    );
    let moved = get(server.address(), "/old/a%20b?c=d");
    assert_eq!(moved.status, 308);
    assert_eq!(moved.field("location"), Some("/new/a%20b?c=d"));
    let moved = get(server.address(), "//feed");
    assert_eq!(moved.status, 302);
    assert_eq!(moved.field("location"), Some("https://feeds.example/feed"));
    assert_eq!(request(server.address(), "HEAD", "/feed", "").status, 404);
    // A client cannot put a field of its own into the answer.
    let moved = get(server.address(), "/old/%0d%0aset-cookie:%20a=b");
    assert_eq!(moved.field("set-cookie"), None);
    assert_eq!(
        moved.field("location"),
        Some("/new/%0D%0Aset-cookie%3A%20a%3Db")
    );
}

#[test]
fn a_single_page_application_gets_its_page_for_every_path_that_is_no_file() {
    let site = Site::new();
    let server = with_rules(
        &site,
        "[[site.rule]]\ntry-files = [\"{path}\", \"{path}.html\", \"/index.html\"]\n",
    );
    let body = |target| text(&get(server.address(), target));
    assert_eq!(body("/hello.txt"), "hello\n");
    assert_eq!(body("/folder/page"), "<p>page\n");
    assert_eq!(body("/some/where?a"), "<p>index\n");
    assert_eq!(body("/"), "<p>index\n");
    // What is hidden stays so: the page comes instead.
    assert_eq!(body("/.hidden"), "<p>index\n");
    // A path below a route that is no file goes to its backend.
    let server = with_rules(&site, "[[site.rule]]\ntry-files = [\"{path}\"]\n");
    assert!(text(&get(server.address(), "/app/x")).starts_with("GET /app/x "));
    assert_eq!(get(server.address(), "/nothing").status, 404);
    let posted = request(server.address(), "POST", "/app/x", "content-length: 0\r\n");
    assert!(text(&posted).starts_with("POST /app/x "));
}

#[test]
fn a_target_changes_before_its_route_is_found() {
    let site = Site::new();
    let server = with_rules(
        &site,
        "[[site.rule]]\npath = \"/v1/*\"\nstrip-prefix = \"/v1\"\nrequest-headers = { set = { x-api = \"1\" }, remove = [\"x-secret\"] }\n\
         [[site.rule]]\npath = \"/docs/*\"\nrewrite = \"/folder/{rest}\"\n",
    );
    let seen = text(&request(
        server.address(),
        "GET",
        "/v1/app/y?z",
        "X-Secret: a\r\n",
    ));
    assert!(seen.starts_with("GET /app/y?z "), "{seen}");
    let fields = seen.to_ascii_lowercase();
    assert!(
        fields.contains("x-api: 1") && !fields.contains("x-secret"),
        "{seen}"
    );
    assert_eq!(text(&get(server.address(), "/docs/page.html")), "<p>page\n");
}

#[test]
fn fields_and_texts_are_those_of_the_rule() {
    let site = Site::new();
    let server = with_rules(
        &site,
        "[[site.rule]]\npath = \"/health\"\nrespond = \"fine\\n\"\nheaders = { set = { x-a = \"b\" } }\n\
         [[site.rule]]\npath = \"*.txt\"\ncache-control = \"public, max-age=60\"\n\
         headers = { set = { x-frame-options = \"DENY\" }, remove = [\"x-content-type-options\"] }\n\
         [[site.rule]]\nheader = \"accept: text/html*\"\nrespond = \"gone\"\nstatus = 410\n",
    );
    let fine = get(server.address(), "/health");
    assert_eq!(
        (fine.status, text(&fine).as_str(), fine.field("x-a")),
        (200, "fine\n", Some("b"))
    );
    assert_eq!(fine.content_length(), 5);
    let file = get(server.address(), "/hello.txt");
    assert_eq!(file.field("cache-control"), Some("public, max-age=60"));
    assert_eq!(file.field("x-frame-options"), Some("DENY"));
    assert_eq!(text(&file), "hello\n");
    let asked = |accept| {
        request(
            server.address(),
            "GET",
            "/",
            &format!("Accept: {accept}\r\n"),
        )
        .status
    };
    assert_eq!((asked("text/html, */*"), asked("*/*")), (410, 200));
}

#[test]
fn a_network_is_kept_out_however_the_path_is_written() {
    let site = Site::new();
    let server = with_rules(
        &site,
        "[[site.rule]]\npath = \"/folder/*\"\nallow = [\"192.0.2.0/24\"]\n",
    );
    for target in [
        "/folder/page.html",
        "//folder//page.html",
        "/%66older/page.html",
        "/folder%2Fpage.html",
    ] {
        assert_eq!(get(server.address(), target).status, 403, "{target}");
    }
    assert_eq!(get(server.address(), "/hello.txt").status, 200);
    let server = with_rules(
        &site,
        "[[site.rule]]\npath = \"/folder/*\"\nallow = [\"127.0.0.0/8\"]\n",
    );
    assert_eq!(get(server.address(), "/folder/page.html").status, 200);
}

#[test]
fn a_wrong_rule_is_refused_with_its_number_and_a_remedy() {
    let site = Site::new();
    for (rules, told) in [
        (
            "path = \"/a\"\n",
            "site.rule 1: does nothing: give it redirect",
        ),
        (
            "path = \"/a\"\nredirect = \"/b{rest}\"\n",
            "{rest} is what a * of the path stands for",
        ),
        (
            "redirect = \"/b\"\nrespond = \"c\"\n",
            "redirect: contradicts respond",
        ),
        ("redirect = \"/b\"\nstatus = 200\n", "200 is no redirect"),
        ("redirect = \"b\"\n", "`b` leads nowhere"),
        ("redirect = \"/{uri}\"\n", "{uri} is no place"),
        ("respond = \"a\"\nstatus = 304\n", "304 has no text"),
        (
            "respond = \"a\"\nrewrite = \"/b\"\n",
            "rewrite: the rule answers by itself",
        ),
        (
            "status = 301\ncache-control = \"a\"\n",
            "status: is for redirect and respond",
        ),
        (
            "headers = { set = { transfer-encoding = \"a\" } }\n",
            "is of the connection",
        ),
        (
            "headers = { set = { x-a = \"b\\r\\nc\" } }\n",
            "is no value of a field",
        ),
        ("allow = [\"here\"]\n", "`here` is no network"),
        (
            "method = [\"get\"]\nrespond = \"a\"\n",
            "`get` is no method",
        ),
        ("path = \"a\"\nrespond = \"a\"\n", "begin with / or *"),
        (
            "path = \"/a/*\"\nrespond = \"a\"\n[[site.rule]]\npath = \"/a/b\"\nrespond = \"b\"\n",
            "rule 2 never applies: rule 1 takes all of its requests",
        ),
    ] {
        let file = format!("[site]\nroot = \"FOLDER/site\"\n[[site.rule]]\n{rules}");
        let error = refused(&site, &file);
        assert!(error.contains(told), "{rules}: {error}");
        assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    }
}
