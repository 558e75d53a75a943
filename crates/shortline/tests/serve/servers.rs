//! Which server of a route gets a request, as an operator configures and sees it.

use rustix::process::Signal;

use crate::admin::status;
use crate::client::{get, request};
use crate::process::{Server, Site, shortline};
use crate::routes::application;

fn config(site: &Site, lines: &str) -> String {
    let file = site.beside("shortline.toml");
    std::fs::write(&file, format!("[[route]]\npath = \"/app\"\n{lines}\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn what_cannot_be_is_refused_in_a_line() {
    let site = Site::new();
    for (lines, expected) in [
        (
            "upstream = [\"a:1\", { url = \"b:1\", weight = 1001 }]",
            "weight: 1001 is out of range: must be from 0 to 1000",
        ),
        (
            "upstream = [{ url = \"b:1\", wieght = 1 }]",
            "unknown field `wieght`: did you mean `weight`?",
        ),
        ("upstream = [{ url = \"b\" }]", "has no port: write b:9000"),
        (
            "upstream = [{ url = \"b:1\", weight = 0 }]",
            "weight: 0 for all servers: give one at least a weight from 1 to 1000",
        ),
        (
            "upstream = [{ url = \"b:1\", id = \"b\" }]",
            "id: is what a cookie calls the server: give sticky-cookie",
        ),
        (
            "upstream = [\"b:1\"]\nhash-by = \"url\"",
            "`url` is nothing to hash: give \"client\", \"header:NAME\" or \"cookie:NAME\"",
        ),
        (
            "upstream = [\"b:1\"]\nhealth-rise = 2",
            "health-rise: is for a health check: give health-path",
        ),
        (
            "upstream = [\"127.0.0.1:1\"]\nresolve-every = \"5s\"",
            "resolve-every: is for hosts with a name",
        ),
        (
            "upstream = [\"b:1\"]\nretries-share-max = 2.0",
            "2 is out of range: must be from 0.0 to 1.0",
        ),
        (
            "upstream = [{ url = \"b:1\", send-proxy = \"v3\" }]",
            "`v3` is no version of the PROXY protocol: give \"v1\" (text) or \"v2\" (binary)",
        ),
        (
            "upstream = [{ url = \"h2c://b:1\", send-proxy = \"v2\" }]",
            "upstream: h2c://b:1: send-proxy: a connection of HTTP/2 is for many clients",
        ),
        (
            "upstream = [{ url = \"https://b:1\", send-proxy = \"v2\" }]\nhttp = \"2\"",
            "give http = \"1\", or leave it out",
        ),
        (
            "upstream = [{ url = \"fastcgi://b:1\", send-proxy = \"v2\" }]",
            "send-proxy: is for servers that speak HTTP",
        ),
        (
            "upstream = [\"b:1\"]\nsticky-cookie = \"a b\"",
            "`a b` is no name of a cookie",
        ),
    ] {
        let config = config(&site, lines);
        let ended = shortline(&site.root(), &["serve", "--config", &config]);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert_eq!(ended.stderr.trim().lines().count(), 1, "{}", ended.stderr);
    }
}

#[test]
fn weights_change_at_a_reload_and_a_cookie_outlasts_it() {
    let site = Site::new();
    let (blue, green) = (application(), application());
    let lines = |blue_weight: u32, green_weight: u32| {
        format!(
            "upstream = [{{ url = \"{blue}\", weight = {blue_weight}, id = \"blue\" }}, \
             {{ url = \"{green}\", weight = {green_weight}, id = \"green\" }}]\n\
             sticky-cookie = \"colour\""
        )
    };
    let file = config(&site, &lines(1, 0));
    let mut server = Server::start(&site, &["--config", &file]);
    let address = server.address();
    let first = get(address, "/app/small");
    let cookie = first.field("set-cookie").unwrap();
    assert!(cookie.starts_with("colour=blue; "), "{cookie}");

    config(&site, &lines(0, 1));
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    for _ in 0..3 {
        let new = get(address, "/app/small");
        assert!(
            new.field("set-cookie")
                .unwrap()
                .starts_with("colour=green; ")
        );
        let old = request(address, "GET", "/app/small", "Cookie: colour=blue\r\n");
        assert_eq!((old.status, old.field("set-cookie")), (200, None));
    }
    let backends = status(&server)["server"]["backends"].clone();
    for (at, weight) in [(0, 0.0), (1, 1.0)] {
        assert_eq!(backends[at]["requests_total"], 3);
        assert_eq!(backends[at]["weight"], weight);
        assert_eq!(backends[at]["state"], "up");
    }
    let metrics = get(server.admin.unwrap(), "/metrics").body;
    let metrics = String::from_utf8(metrics).unwrap();
    for name in ["backend_weight", "backend_retries_total"] {
        let series = format!("shortline_{name}{{backend=\"{green}\"}}");
        assert!(metrics.contains(&series), "{series}: {metrics}");
    }
}
