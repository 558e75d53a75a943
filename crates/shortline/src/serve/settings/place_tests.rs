//! What is refused in the tables of a file, after it was read, comes with its line, its key and what would be right.
#![allow(clippy::unwrap_used)]

use super::tests::as_told;

/// Files, each with what the only error begins with behind the file's name, and what it ends with.
fn refused(cases: &[(&str, &str, &str)]) {
    for (file, begins, ends) in cases {
        let error = as_told("", file).unwrap_err();
        let told = error.strip_prefix("a.toml:").unwrap_or(&error);
        assert!(
            told.starts_with(begins) && told.ends_with(ends),
            "{file}\n{error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

/// The same for keys of a route, whose first is in line 4.
fn refused_of_a_route(cases: &[(&str, &str, &str)]) {
    for (keys, begins, ends) in cases {
        let upstream = match keys.contains("upstream =") {
            true => "",
            false => "upstream = [\"a:1\"]",
        };
        let file = format!("[[route]]\npath = \"/api\"\n{upstream}\n{keys}\n");
        refused(&[(&file, begins, ends)]);
        let several = format!(
            "[[site]]\nnames = [\"a.b\"]\nroot = \"/srv\"\n[[site.route]]\npath = \"/\"\nupstream = [\"z:9\"]\n{}",
            file.replace("[[route]]", "[[site.route]]")
                .replace("[route.", "[site.route.")
        );
        let (line, rest) = begins.split_once(':').unwrap();
        let line: usize = line.parse().unwrap();
        let begins = format!(
            "{}:{}",
            line + 6,
            rest.replace("route /api", "route a.b/api")
        );
        refused(&[(&several, &begins, ends)]);
    }
}

#[test]
fn of_a_route() {
    refused_of_a_route(&[
        (
            "health-fall = 2",
            "4: route /api: health-fall: is for a health check",
            "leave it out",
        ),
        (
            "health-rise = 2",
            "4: route /api: health-rise: is for a health check",
            "leave it out",
        ),
        (
            "upstream = [{ url = \"a:1\", id = \"x\" }]",
            "4: route /api: upstream: id: is what a cookie calls the server: give sticky-cookie = \"NAME\"",
            "leave it out",
        ),
        (
            "dns-servers = [\"10.0.0.2\"]",
            "4: route /api: dns-servers: are asked for services",
            "leave it out",
        ),
        (
            "upstream = [\"srv+http://_http._tcp.a.b\"]\ndns-servers = []",
            "5: route /api: dns-servers: names none: give one such as \"10.0.0.2\"",
            "leave it out",
        ),
        (
            "sticky-cookie = \"s\"\nupstream = [{ url = \"srv+http://_http._tcp.a.b\", id = \"x\" }]",
            "5: route /api: upstream: id: is for one server",
            "leave it out",
        ),
        (
            "upstream = [\"127.0.0.1:1\"]\nresolve-every = \"5s\"",
            "5: route /api: resolve-every: is for hosts with a name",
            "leave it out",
        ),
    ]);
}

#[test]
fn of_how_the_servers_of_a_route_are_spoken_to() {
    refused_of_a_route(&[
        (
            "http = \"1\"\nupstream = [\"h2c://a:1\"]",
            "4: route /api: http: \"1\" contradicts upstream h2c://a:1",
            "http out",
        ),
        (
            "http = \"2\"\nupstream = [\"fastcgi:///a\"]",
            "4: route /api: http: the servers speak FastCGI",
            "leave it out",
        ),
        (
            "\nstreams-max = 5",
            "5: route /api: streams-max: is for servers with HTTP/2",
            "leave it out",
        ),
        (
            "ping-every = \"5s\"",
            "4: route /api: ping-every: is for servers with HTTP/2",
            "leave it out",
        ),
        (
            "upstream = [\"srv+https://_https._tcp.a.b\"]",
            "4: route /api: upstream: srv+https://_https._tcp.a.b: the names of its servers come from DNS",
            "certificates alone",
        ),
        (
            "upstream = [{ url = \"h2c://a:1\", send-proxy = \"v1\" }]",
            "4: route /api: upstream: h2c://a:1: send-proxy: a connection of HTTP/2 is for many clients",
            "leave it out",
        ),
        (
            "upstream-ca = \"/ca.pem\"",
            "4: route /api: upstream-ca: is for servers with TLS",
            "leave it out",
        ),
        (
            "upstream = [\"fastcgi:///a\", \"b:1\"]",
            "4: route /api: upstream: some servers speak FastCGI",
            "of its own",
        ),
    ]);
}

#[test]
fn of_the_tables_below_a_route() {
    refused_of_a_route(&[
        (
            "[route.fastcgi]",
            "4: route /api: fastcgi: no server speaks FastCGI",
            "leave it out",
        ),
        (
            "mirror = \"fastcgi:///a\"",
            "4: route /api: mirror: fastcgi:///a speaks FastCGI",
            "leave it out",
        ),
        (
            "mirror = \"srv+http://_http._tcp.a.b\"",
            "4: route /api: mirror: srv+http://_http._tcp.a.b: copies go to one server",
            "host:port",
        ),
        (
            "[route.mirror]\nurl = \"b:1\"\nca = \"/ca.pem\"",
            "6: route /api: mirror.ca: is for a server with TLS",
            "leave it out",
        ),
        (
            "upstream = [\"fastcgi:///a\"]\nmirror = \"b:1\"",
            "5: route /api: mirror: copies are of HTTP",
            "leave it out",
        ),
        (
            "[route.cache]\ndisk = { folder = \"\" }",
            "5: route /api: cache.disk.folder: is empty: name a folder",
            "/var/cache/shortline/app",
        ),
        (
            "[route.cache.disk]\nfolder = \"/c\"\nsize-max = \"1MB\"\nresponse-size-max = \"2MB\"",
            "7: route /api: cache.disk.response-size-max: is more than size-max",
            "larger size-max",
        ),
        (
            "[route.gate]\nlisten = \"127.0.0.1:1\"",
            "5: route /api: gate.listen: means nothing",
            "leave it out",
        ),
        (
            "[route.gate]\ncapacity = \"calibrate\"",
            "5: route /api: gate.capacity: calibrate is for",
            "or auto",
        ),
        (
            "[route.gate]\npolicy = \"fifo\"\naging = 2.0",
            "6: route /api: gate.aging: is for policy sjf and contradicts policy fifo",
            "",
        ),
    ]);
}

#[test]
fn of_two_routes() {
    let cache = "[route.cache]\ndisk = { folder = \"/c\" }";
    let gate = "[route.gate]\npolicy";
    let two = |one: &str, other: &str| {
        format!(
            "[[route]]\npath = \"/a\"\nupstream = [\"a:1\"]\n{one}\n[[route]]\npath = \"/b\"\nupstream = [\"a:1\"]\n{other}\n"
        )
    };
    refused(&[
        (
            &two("", "").replace("/b", "/a"),
            "5: route /a: appears twice: give each path once",
            "the first is in line 1",
        ),
        (
            &two(cache, cache),
            "10: route /b: cache.disk.folder: /c is the folder of route /a, too",
            "give each its own",
        ),
        (
            &two(&format!("{gate} = \"sjf\""), &format!("{gate} = \"fifo\"")),
            "9: route /b: gate: a:1 is behind the gate of route /a, too",
            "the same gate",
        ),
    ]);
}

/// The same for keys of a rule, whose first is in line 6.
fn refused_of_a_rule(cases: &[(&str, &str)]) {
    for (keys, begins) in cases {
        let file = format!("[site]\nnames = [\"a.b\"]\n\n[[site.rule]]\npath = \"/a\"\n{keys}\n");
        refused(&[(&file, begins, "")]);
        let several = file.replace("[site]", "[[site]]");
        let begins = begins.replace("site.rule 1", "site a.b: rule 1");
        refused(&[(&several, &begins, "")]);
    }
}

#[test]
fn of_a_rule() {
    refused_of_a_rule(&[
        (
            "redirect = \"/b\"\nrespond = \"x\"",
            "6: site.rule 1: redirect: contradicts respond",
        ),
        (
            "respond = \"x\"\nrewrite = \"/b\"",
            "7: site.rule 1: rewrite: the rule answers by itself",
        ),
        (
            "rewrite = \"/b\"\nstrip-prefix = \"/a\"",
            "6: site.rule 1: rewrite: contradicts strip-prefix",
        ),
        (
            "status = 404\ncompress = true",
            "6: site.rule 1: status: is for redirect and respond",
        ),
        (
            "rewrite = \"/b{rest}\"",
            "6: site.rule 1: rewrite: {rest} is what a * of the path",
        ),
        (
            "redirect = \"/b\"\nstatus = 200",
            "7: site.rule 1: status: 200 is no redirect",
        ),
        (
            "respond = \"x\"\nstatus = 204",
            "7: site.rule 1: status: 204 has no text",
        ),
        (
            "bandwidth-after = \"1MB\"",
            "6: site.rule 1: bandwidth-after: belongs to a limit",
        ),
        (
            "rate-burst = 3",
            "6: site.rule 1: rate-burst: belongs to a rate",
        ),
        (
            "rate-by = \"client\"",
            "6: site.rule 1: rate-by: belongs to a rate",
        ),
        (
            "compress = true\nheaders.set = { content-encoding = \"x\" }",
            "6: site.rule 1: compress: the rule sets",
        ),
    ]);
    refused(&[(
        "[site]\n[[site.rule]]\nrespond = \"x\"\n[[site.rule]]\npath = \"/a\"\nrespond = \"y\"\n",
        "4: site.rule: rule 2 never applies: rule 1 takes all of its requests",
        "leave it out",
    )]);
}

#[test]
fn of_what_a_rule_lets_in() {
    refused_of_a_rule(&[
        (
            "host = [\"other.example\"]\nrespond = \"x\"",
            "6: site.rule 1: host: the site does not answer for other.example",
        ),
        (
            "request-headers.remove = [\"x\"]",
            "6: site.rule 1: request-headers: the site has no route",
        ),
        (
            "error-page = { 404 = \"/a.html\", 4xx = \"x\" }",
            "6: site.rule 1: error-page.404: the site has no files",
        ),
        (
            "basic-auth = { users = \"u\", realm = \"\\n\" }",
            "6: site.rule 1: basic-auth.realm: `\\n` is no realm",
        ),
        (
            "cors.origins = []",
            "6: site.rule 1: cors.origins: names none",
        ),
        (
            "cors = { origins = [\"https://a.b\"], headers = [\"*\"], credentials = true }",
            "6: site.rule 1: cors.headers: * contradicts credentials",
        ),
        (
            "[site.rule.forward-auth]\nurl = \"http://a/\"\nca = \"c\"",
            "8: site.rule 1: forward-auth.ca: is for a server with TLS",
        ),
        (
            "[site.rule.forward-auth]\nurl = \"http://a/\"\ntime-max = \"0s\"",
            "8: site.rule 1: forward-auth.time-max: must be more than 0",
        ),
        (
            "host = [\"a.b\"]",
            "4: site.rule 1: does nothing: give it redirect",
        ),
        (
            "try-files = [\"/x\"]",
            "6: site.rule 1: try-files: the site has no files",
        ),
    ]);
}

#[test]
fn of_a_site() {
    refused(&[
        (
            "[[site]]\nroot = \"/srv\"\n[[site]]\nroot = \"/srv\"\n",
            "3: site 2 (without names): another site has no names",
            "",
        ),
        (
            "[site]\nroot = \"/srv\"\nnames = []\n",
            "3: site.names: is empty",
            "all other names",
        ),
        (
            "[site]\nroot = \"/srv\"\ntls = \"auto\"\n",
            "3: site.tls: \"auto\" needs to know",
            "[\"example.org\"]",
        ),
        (
            "[[site]]\nroot = \"/srv\"\nnames = [\"*.a.b\"]\ntls = \"auto\"\n",
            "4: site *.a.b: tls: \"auto\": *.a.b: a certificate for all names below",
            "\"on-demand\"",
        ),
        (
            "[site]\nroot = \"/srv\"\nerror-page = { 404 = \"/a\" }\ntls-cert = \"c\"\n",
            "4: site.tls-cert: belongs together with tls-key",
            "neither",
        ),
        (
            "[site]\nroot = \"/srv\"\nclient-auth = \"request\"\n",
            "3: site.client-auth: has no effect without client-ca",
            "",
        ),
        (
            "[[site]]\nroot = \"/srv\"\nnames = [\"a.b\"]\n[[site]]\nroot = \"/srv\"\nnames = [\"c.d\"]\ntls = \"auto\"\n",
            "7: tls = \"auto\" for c.d: no address speaks TLS: add tls = true",
            "",
        ),
        (
            "[[site]]\nroot = \"/srv\"\ntls = \"on-demand\"\n[[listen]]\naddress = \"[::]:1\"\ntls = true\n",
            "3: tls = \"on-demand\": a site without names",
            "",
        ),
        (
            "[[site]]\nroot = \"/srv\"\n[[route]]\npath = \"/\"\nupstream = [\"a:1\"]\n",
            "3: route: the file has several [[site]]",
            "[[site.route]]",
        ),
        (
            "[site]\nerror-page = { 404 = \"/a\" }\n[[route]]\npath = \"/\"\nupstream = [\"a:1\"]\n",
            "2: site.error-page.404: the site has no files",
            "",
        ),
        (
            "[[route]]\npath = \"/\"\n\nupstream = [\"fastcgi:///a\"]\n",
            "4: route /: upstream: FastCGI runs the programs of a folder",
            "[route.fastcgi]",
        ),
        (
            "[[route]]\npath = \"/\"\nupstream = [\"fastcgi:///a\"]\nfastcgi.root = \"/etc\"\n",
            "4: route /: fastcgi.root: /etc is a folder of the system",
            "/srv/www",
        ),
    ]);
}

#[test]
fn of_an_address() {
    let site = "[site]\nroot = \"/srv\"\n[[listen]]\naddress = \"[::]:1\"\n[[listen]]\naddress = \"[::]:2\"\n";
    for (keys, begins) in [
        (
            "tls-cert = \"c\"",
            "5: listen [::]:2: tls-cert and tls-key belong together",
        ),
        (
            "mode = \"660\"",
            "7: listen [::]:2: mode: is for a socket in the file system",
        ),
        ("proxy-from = []", "7: listen [::]:2: proxy-from: is empty"),
        (
            "tls-cert = \"c\"\ntls-key = \"k\"\ntls = false",
            "9: listen [::]:2: tls: false contradicts tls-cert",
        ),
        ("http3 = true", "7: listen [::]:2: http3: needs TLS"),
        (
            "tls = true",
            "7: listen [::]:2: tls = true: there is no certificate",
        ),
    ] {
        refused(&[(&format!("{site}{keys}\n"), begins, "")]);
    }
}
