//! What the gate finds types of requests by: a statement's fingerprint and tags, and a request's
//! route.

use std::sync::LazyLock;

use shortline_gate::classify::{
    Classifier, ClassifierConfig, Client, Dialect, HttpRequest, NAME_BYTES_MAX, Protocol,
    STATEMENT_BYTES_MAX, Tagged, fingerprint,
};

static POSTGRES: LazyLock<Classifier> =
    LazyLock::new(|| classifier(Protocol::Sql(Dialect::Postgres)));
static MYSQL: LazyLock<Classifier> = LazyLock::new(|| classifier(Protocol::Sql(Dialect::MySql)));
static HTTP: LazyLock<Classifier> = LazyLock::new(|| classifier(Protocol::Http));

fn classifier(protocol: Protocol) -> Classifier {
    Classifier::new(&ClassifierConfig::new(protocol))
        .expect("invariant: without rules none is wrong")
}

/// A statement as either database lexes it, and its tags.
pub fn statement(bytes: &[u8]) {
    for dialect in [Dialect::Postgres, Dialect::MySql] {
        let name = fingerprint(bytes, dialect);
        assert_name(&name);
        if bytes.len() < STATEMENT_BYTES_MAX {
            let spaced = [b" \n", bytes].concat();
            assert_eq!(fingerprint(&spaced, dialect), name);
        }
        let classifier = match dialect {
            Dialect::Postgres => &POSTGRES,
            Dialect::MySql => &MYSQL,
        };
        let first = classifier.statement(bytes, &Client::default());
        assert_name(&first.name);
        assert_eq!(classifier.statement(bytes, &Client::default()), first);
        // A lookup without constants must give the statement's own type.
        if Tagged::new(bytes).tags.is_empty() && !name.is_empty() {
            assert_eq!(*first.name, *name);
        }
    }
    let tagged = Tagged::new(bytes);
    assert!(tagged.statement.len() <= bytes.len());
    let _ = tagged.tags.get("route");
}

/// The path of an HTTP request.
pub fn route(bytes: &[u8]) {
    let Ok(path) = std::str::from_utf8(bytes) else {
        return;
    };
    let request = HttpRequest {
        method: "GET",
        host: Some("a"),
        path,
        peer: None,
        header: &|_| None,
    };
    assert_name(&HTTP.request(&request).name);
}

fn assert_name(name: &str) {
    assert!(name.len() <= NAME_BYTES_MAX, "{name:?}");
    assert!(!name.contains(['\n', '\r']), "{name:?}");
}
