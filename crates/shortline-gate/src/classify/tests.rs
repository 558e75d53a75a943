//! The type and the tenant of a request, by examples.
#![allow(clippy::unwrap_used)]
use super::*;

const SQL: Protocol = Protocol::Sql(Dialect::Postgres);

fn classifier(rules: Vec<RuleText>, sources: &[Source]) -> Classifier {
    let config = ClassifierConfig {
        rules,
        sources: sources.to_vec(),
        tags_from: vec![Trusted::Any],
        ..ClassifierConfig::new(SQL)
    };
    Classifier::new(&config).unwrap()
}

#[test]
fn sources_are_asked_in_their_order() {
    let usual = classifier(Vec::new(), &[Source::Tag, Source::Statement]);
    let client = Client {
        application_name: Some("shop"),
        ..Client::default()
    };
    let name =
        |classifier: &Classifier, sql: &str| classifier.statement(sql.as_bytes(), &client).name;
    for (sql, expected) in [
        ("select 1", "select ?"),
        ("select 2", "select ?"),
        (
            "select 1 /*route='%2Fb%2F17',traceparent='x'*/",
            "route /b/:id",
        ),
        (
            "select 1 /*route='%2Fb%2F18',traceparent='y'*/",
            "route /b/:id",
        ),
        (
            "select 1 /*action='show',controller='books'*/",
            "action books#show",
        ),
        ("select 1 /*traceparent='y'*/", "select ?"),
        ("-- nothing", OTHER),
    ] {
        assert_eq!(&*name(&usual, sql), expected, "{sql}");
        assert_eq!(&*name(&usual, sql), expected, "{sql}, remembered");
    }
    let by_application = classifier(Vec::new(), &[Source::ApplicationName]);
    assert_eq!(&*name(&by_application, "select 1"), "application shop");
    assert_eq!(
        &*by_application
            .statement(b"select 1", &Client::default())
            .name,
        OTHER
    );
}

#[test]
fn a_foreign_tag_does_not_name_the_type() {
    let reports = RuleText {
        name: Some("reports".to_owned()),
        tag: [("route".to_owned(), "/report".to_owned())].into(),
        ..RuleText::default()
    };
    let config = ClassifierConfig {
        rules: vec![reports],
        tags_from: vec!["10.0.1.0/24".parse().unwrap(), "user:shop".parse().unwrap()],
        ..ClassifierConfig::new(SQL)
    };
    let classifier = Classifier::new(&config).unwrap();
    let named = |address: &str, user: &str, route: &str| {
        let client = Client {
            address: Some(address.parse().unwrap()),
            user: Some(user),
            ..Client::default()
        };
        let sql = format!("select heavy(9) /*route='{route}'*/");
        classifier
            .statement(sql.as_bytes(), &client)
            .name
            .to_string()
    };
    for _ in 0..2 {
        assert_eq!(named("10.0.2.1", "guest", "/home"), "select heavy(...)");
        assert_eq!(named("10.0.2.1", "guest", "/report"), "select heavy(...)");
        assert_eq!(named("10.0.1.1", "guest", "/home"), "route /home");
        assert_eq!(named("10.0.1.1", "guest", "/report"), "reports");
        assert_eq!(named("10.0.2.1", "shop", "/home"), "route /home");
    }
    let by_default = Classifier::new(&ClassifierConfig::new(SQL)).unwrap();
    let class = by_default.statement(b"select 1 /*route='x'*/", &Client::default());
    assert_eq!(&*class.name, "select ?");
}

#[test]
fn rules_go_before_and_can_be_replaced() {
    let rule = RuleText {
        name: Some("reports".to_owned()),
        statement: Some("from report".to_owned()),
        ..RuleText::default()
    };
    let classifier = classifier(vec![rule], &[Source::Statement]);
    let name = || {
        let class = classifier.statement(b"select * from report_7", &Client::default());
        class.name
    };
    assert_eq!(&*name(), "reports");
    let wrong = RuleText {
        name: Some("wrong".to_owned()),
        statement: Some("(".to_owned()),
        ..RuleText::default()
    };
    let with = |rules| ClassifierConfig {
        rules,
        ..ClassifierConfig::new(SQL)
    };
    assert!(classifier.replace(&with(vec![wrong])).is_err());
    assert_eq!(&*name(), "reports");
    classifier.replace(&with(Vec::new())).unwrap();
    assert_eq!(&*name(), "select * from report_7");
}

/// A request without a header, from nobody knows where.
fn get<'a>(host: Option<&'a str>, path: &'a str) -> HttpRequest<'a> {
    HttpRequest {
        method: "GET",
        host,
        path,
        peer: None,
        header: &|_| None,
    }
}

#[test]
fn a_request_is_its_method_and_route() {
    let classifier = Classifier::new(&ClassifierConfig::new(Protocol::Http)).unwrap();
    let class = classifier.request(&get(None, "/books/17?x=1"));
    assert_eq!(&*class.name, "GET /books/:id");
}

#[test]
fn a_claim_of_a_tenant_counts_from_trusted_clients_only() {
    let classifier = |tenant_by: &str, protocol| {
        let config = ClassifierConfig {
            tenant_by: tenant_by.parse().unwrap(),
            tags_from: vec!["10.0.1.0/24".parse().unwrap()],
            tenant_names: vec!["a.example".to_owned(), "high".to_owned()],
            ..ClassifierConfig::new(protocol)
        };
        Classifier::new(&config).unwrap()
    };
    let client = |address: &str| Client {
        address: Some(address.parse().unwrap()),
        application_name: Some("app"),
        user: Some("shop"),
        database: Some("books"),
    };
    let (ours, theirs) = (client("10.0.1.1"), client("10.0.2.1"));
    for (by, of_ours, of_theirs) in [
        ("none", None, None),
        ("user", Some("shop"), Some("shop")),
        ("database", Some("books"), Some("books")),
        ("application-name", Some("app"), None),
        ("tag:t", None, None),
    ] {
        let classifier = classifier(by, SQL);
        assert_eq!(classifier.terms(&ours).tenant.as_deref(), of_ours, "{by}");
        assert_eq!(
            classifier.terms(&theirs).tenant.as_deref(),
            of_theirs,
            "{by}"
        );
    }
    let by_tag = classifier("tag:t", SQL);
    let sql = b"select 1 /*t='a'*/";
    for _ in 0..2 {
        assert_eq!(by_tag.statement(sql, &ours).tenant.as_deref(), Some("a"));
        assert_eq!(by_tag.statement(sql, &theirs).tenant, None);
        let other = by_tag.statement(b"select 1 /*t='b'*/", &ours);
        assert_eq!(other.tenant.as_deref(), Some("b"));
    }
    let by_host = classifier("host", Protocol::Http);
    let tenant = |host| by_host.request(&get(Some(host), "/")).tenant;
    assert_eq!(tenant("A.example").as_deref(), Some("a.example"));
    assert_eq!(tenant("b.example"), None);
    let by_header = classifier("header:X-Priority", Protocol::Http);
    let tenant = |peer: &str, value: &'static str| {
        let request = HttpRequest {
            peer: Some(peer.parse().unwrap()),
            header: &|name| (name == "X-Priority").then_some(value),
            ..get(None, "/")
        };
        by_header.request(&request).tenant
    };
    assert_eq!(tenant("10.0.1.1", "High ").as_deref(), Some("high"));
    assert_eq!(tenant("10.0.1.1", "higher"), None);
    assert_eq!(tenant("10.0.2.1", "high"), None);
}
