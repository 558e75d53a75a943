//! The live page in a real browser: it runs, shows what `/status` tells, and fits a phone.

use std::process::{Command, Stdio};

use crate::admin::gate;
use crate::client::get;
use crate::postgres::Postgres;
use crate::process::{Server, wait_for};
use crate::relayed;

/// The page's document after its script has run for some seconds of its own time.
fn document(server: &Server) -> Option<String> {
    let address = format!("http://{}/", server.admin.unwrap());
    let profile = tempfile::tempdir().unwrap();
    let mut command = Command::new("chromium");
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=4000",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--dump-dom", &address])
        .stderr(Stdio::null());
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: chromium: {error} (scripts/setup installs it)");
            return None;
        }
    };
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The text of the element with that id.
fn text_of<'a>(document: &'a str, id: &str) -> &'a str {
    let (_, behind) = document.split_once(&format!("id=\"{id}\"")).unwrap();
    let (_, inside) = behind.split_once('>').unwrap();
    inside.split("</").next().unwrap()
}

#[test]
fn the_page_shows_what_the_gate_does() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let server = relayed::gate(&postgres, &["--capacity", "1s"]);
    let port = server.address().port();
    assert!(
        postgres
            .psql(port, &["select 1", "select 2"])
            .status
            .success()
    );
    wait_for("the chart's second sample", || {
        let history = get(server.admin.unwrap(), "/history").body;
        let samples: Vec<serde_json::Value> = serde_json::from_slice(&history).unwrap();
        (samples.len() > 1).then_some(())
    });
    let Some(document) = document(&server) else {
        return;
    };
    assert_eq!(text_of(&document, "live"), "live");
    assert_eq!(text_of(&document, "waiting"), "0");
    assert!(
        text_of(&document, "what").contains(&postgres.address()),
        "{document}"
    );
    assert!(
        text_of(&document, "load-note").ends_with(" of 1 s"),
        "{document}"
    );
    assert!(document.contains("select ?"), "{document}");
    for part in ["load-line", "queue-line", "class=\"limit\""] {
        assert!(document.contains(part), "no {part} in {document}");
    }
}

#[test]
fn the_page_of_a_gate_without_a_limit_says_so() {
    let server = gate(&["--capacity", "off"]);
    let Some(document) = document(&server) else {
        return;
    };
    assert_eq!(text_of(&document, "live"), "live");
    assert!(
        text_of(&document, "load-note").contains("nobody waits"),
        "{document}"
    );
    assert!(!document.contains("class=\"limit\""), "{document}");
}
