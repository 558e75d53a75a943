//! The live page in a real browser: it runs, and shows what `/status` tells.

use crate::browser::{assert_fits_a_phone, document, text_of};
use crate::client::{get, request};
use crate::process::{Server, Site, wait_for};

#[test]
fn the_page_shows_the_uplink_who_waits_and_what_failed() {
    let site = Site::new().with("text.txt", "a text that is easy to compress".repeat(645));
    let file = site.beside("shortline.toml");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let text = format!("[[route]]\npath = \"/app\"\nupstream = [\"{nobody}\"]\n");
    std::fs::write(&file, text).unwrap();
    let flags = [
        "--config",
        file.to_str().unwrap(),
        "--uplink",
        "10mbit",
        "--uplink-loopback",
    ];
    let server = Server::start(&site, &flags);
    assert_eq!(get(server.address(), "/hello.txt").status, 200);
    assert_eq!(request(server.address(), "GET", "/app/x", "").status, 502);
    let coded = request(
        server.address(),
        "GET",
        "/text.txt",
        "Accept-Encoding: zstd\r\n",
    );
    assert_eq!(coded.field("content-encoding"), Some("zstd"));
    wait_for(
        "responses that were compared and the chart's second sample",
        || {
            let history = get(server.admin.unwrap(), "/history").body;
            let samples: Vec<serde_json::Value> = serde_json::from_slice(&history).unwrap();
            let newest = samples.last()?;
            (samples.len() > 2 && newest["compared"][0][0].as_u64() > Some(0)).then_some(())
        },
    );
    let Some(document) = document(&server) else {
        return;
    };
    assert_eq!(text_of(&document, "live"), "live");
    assert_eq!(text_of(&document, "waiting"), "0");
    assert_eq!(text_of(&document, "uplink"), "10 Mbit/s");
    assert_eq!(
        text_of(&document, "found"),
        "The rate of 10 Mbit/s is given."
    );
    let listens = server.address().to_string();
    assert!(text_of(&document, "what").contains(&listens), "{document}");
    assert!(
        text_of(&document, "rate-note").contains("5xx 1"),
        "{document}"
    );
    for part in [
        "load-line",
        "queue-line",
        "class=\"limit\"",
        "<td data-name=\"Coding\">zstd</td><td data-name=\"Of\">files</td><td data-name=\"Before\">20 KB</td>",
        "up to 1 KB",
        "default",
        &nobody.to_string(),
        "a request failed",
    ] {
        assert!(document.contains(part), "no {part} in {document}");
    }
    assert_fits_a_phone(&server);
}

#[test]
fn the_page_of_a_server_that_schedules_nothing_says_so() {
    let site = Site::new();
    let server = Server::start(&site, &["--uplink", "off"]);
    let Some(document) = document(&server) else {
        return;
    };
    assert_eq!(text_of(&document, "live"), "live");
    assert_eq!(text_of(&document, "uplink"), "off");
    assert!(
        text_of(&document, "gain-note").contains("no rate is known"),
        "{document}"
    );
    assert!(!document.contains("class=\"limit\""), "{document}");
}

#[test]
fn the_page_shows_certificates_of_both_kinds_and_which_to_see_to() {
    let site = Site::new();
    for (name, hours) in [
        ("soon.example", 5 * 24 + 12),
        ("later.example", 80 * 24 + 12),
    ] {
        crate::ocsp::write_certificate(&site, name, hours);
    }
    let of_file = |name: &str| {
        format!(
            "[[site]]\nnames = [\"{name}\"]\nroot = \"FOLDER/site\"\ntls-cert = \"FOLDER/{name}.crt\"\n\
             tls-key = \"FOLDER/{name}.key\"\n"
        )
    };
    // Nobody is an authority there.
    let nobody = shortline_base::port::free_port().unwrap();
    let acme =
        format!("[acme]\ndirectory = \"https://localhost:{nobody}/\"\nstate = \"FOLDER/state\"\n");
    let head =
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n[admin]\naddress = \"127.0.0.1:0\"\n";
    let by_itself = crate::certificates::auto("\"none.example\"");
    let sites = [of_file("soon.example"), of_file("later.example"), by_itself].concat();
    let server = crate::certificates::begin(&site, &format!("{head}{acme}{sites}"));
    wait_for("a look at all, and an attempt", || {
        let certificates = crate::admin::status(&server)["certificates"]["all"].clone();
        let all = certificates.as_array()?;
        let is_known =
            |one: &serde_json::Value| one["failures"] == 1 || one["expires_in_seconds"].is_i64();
        (all.len() == 3 && all.iter().all(is_known)).then_some(())
    });
    let Some(document) = document(&server) else {
        return;
    };
    assert!(
        text_of(&document, "certificates-note").contains("3, the first to end first, 1 to see to"),
        "{document}"
    );
    for part in [
        "<tr class=\"late\"><td data-name=\"Certificate\">soon.example</td>",
        "5 days, ends soon",
        "80 days",
        "by hand",
        "there is none yet",
        "under way",
        "no responder",
        "ACME",
    ] {
        assert!(document.contains(part), "no {part} in {document}");
    }
}
