//! The live page in a real browser: it runs, shows what `/status` tells, and fits a phone.

use crate::admin::gate;
use crate::browser::{assert_fits_a_phone, document, text_of};
use crate::client::get;
use crate::postgres::Postgres;
use crate::process::wait_for;
use crate::relayed;

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
    let long = format!(
        "select 1 as {}",
        "a_name_without_any_place_to_break".repeat(3)
    );
    assert!(postgres.psql(port, &[&long]).status.success());
    assert_fits_a_phone(&server);
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
