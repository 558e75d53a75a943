//! Rules, read and matched.
#![allow(clippy::unwrap_used)]
use std::time::Duration;

use super::super::Dialect;
use super::*;

const SQL: Protocol = Protocol::Sql(Dialect::Postgres);

fn rule(name: &str) -> RuleText {
    RuleText {
        name: Some(name.to_owned()),
        ..RuleText::default()
    }
}

#[test]
fn the_first_that_matches_names_the_type() {
    let batch = RuleText {
        application_name: Some("batch-.*".to_owned()),
        ..rule("batch")
    };
    let orders = RuleText {
        statement: Some("(?i)insert into orders".to_owned()),
        user: Some("shop".to_owned()),
        ..rule("orders")
    };
    let search = RuleText {
        tag: [("route".to_owned(), "/search.*".to_owned())].into(),
        ..rule("search")
    };
    let rules = Rules::new(&[batch, orders, search], SQL).unwrap();
    let shop = Client {
        user: Some("shop"),
        ..Client::default()
    };
    let night = Client {
        application_name: Some("batch-7"),
        ..shop
    };
    let insert = b"/* x */ INSERT INTO orders";
    let none = Tags::default();
    let name = |sql: &[u8], tags: &Tags<'_>, client: &Client<'_>| {
        let said = rules.statement(sql, tags, client);
        said.name.map(str::to_owned)
    };
    assert_eq!(name(insert, &none, &shop).as_deref(), Some("orders"));
    assert_eq!(name(insert, &none, &night).as_deref(), Some("batch"));
    assert_eq!(name(insert, &none, &Client::default()), None);
    let tagged = super::super::Tagged::new(b"select 1 /*route='%2Fsearch%2Fbooks'*/");
    assert_eq!(
        name(tagged.statement, &tagged.tags, &shop).as_deref(),
        Some("search")
    );
    let workshop = Client {
        user: Some("workshop"),
        ..Client::default()
    };
    assert_eq!(name(insert, &none, &workshop), None);
}

#[test]
fn each_thing_is_said_by_the_first_rule_that_says_it() {
    let shop = RuleText {
        user: Some("shop".to_owned()),
        tenant: Some("shop".to_owned()),
        ..RuleText::default()
    };
    let night = RuleText {
        application_name: Some("batch".to_owned()),
        wait: Some(false),
        ..RuleText::default()
    };
    let reports = RuleText {
        statement: Some("report".to_owned()),
        tenant: Some("reports".to_owned()),
        ..rule("report")
    };
    let rules = Rules::new(&[shop, night, reports], SQL).unwrap();
    let client = Client {
        user: Some("shop"),
        application_name: Some("batch"),
        ..Client::default()
    };
    let said = rules.statement(b"report 1", &Tags::default(), &client);
    assert_eq!((said.name, said.wait), (Some("report"), Some(false)));
    assert_eq!(said.tenant.map(|tenant| &**tenant), Some("shop"));
    let said = rules.statement(b"report 1", &Tags::default(), &Client::default());
    assert_eq!(said.tenant.map(|tenant| &**tenant), Some("reports"));
    assert_eq!(rules.connection(&Client::default()), Terms::default());
}

#[test]
fn the_terms_of_a_client_are_of_rules_without_statements() {
    let etl = RuleText {
        user: Some("etl".to_owned()),
        pool: Some(PoolMode::Session),
        runaway: Some("charge:3".parse().unwrap()),
        ..RuleText::default()
    };
    let all = RuleText {
        pool: Some(PoolMode::Transaction),
        idle_transaction_max: Some("0s".parse().unwrap()),
        runaway: Some("cancel".parse().unwrap()),
        ..RuleText::default()
    };
    let rules = Rules::new(&[etl, all], SQL).unwrap();
    let etl = Client {
        user: Some("etl"),
        ..Client::default()
    };
    let terms = rules.connection(&etl);
    assert_eq!(terms.pool, Some(PoolMode::Session));
    assert_eq!(terms.idle_transaction_time_max, Some(Duration::ZERO));
    let others = rules.connection(&Client::default());
    assert_eq!(others.pool, Some(PoolMode::Transaction));
    let runaway = |client| {
        let said = rules.statement(b"select 1", &Tags::default(), client);
        said.runaway.unwrap().to_string()
    };
    assert_eq!(runaway(&etl), "charge:3");
    assert_eq!(runaway(&Client::default()), "cancel:20");
}

#[test]
fn http_goes_by_method_host_and_path() {
    let reports = RuleText {
        method: Some("GET|HEAD".to_owned()),
        path: Some("^/report.*[?&]full=1".to_owned()),
        ..rule("reports")
    };
    let all = rule("others");
    let rules = Rules::new(&[reports, all], Protocol::Http).unwrap();
    assert_eq!(
        rules.request("GET", None, "/report/1?full=1").name,
        Some("reports")
    );
    assert_eq!(
        rules.request("POST", None, "/report/1?full=1").name,
        Some("others")
    );
}

#[test]
fn what_cannot_be_a_rule_is_told_in_one_line() {
    let error = |text: RuleText, protocol| {
        let error = Rules::new(&[rule("fine"), text], protocol)
            .unwrap_err()
            .to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    };
    let open = RuleText {
        statement: Some("(a".to_owned()),
        ..rule("x")
    };
    assert_eq!(
        error(open, SQL),
        "rule 2 (`x`): statement `(a` is not a regular expression: unclosed group"
    );
    let closed = RuleText {
        user: Some("a)|(b".to_owned()),
        ..rule("x")
    };
    assert!(error(closed, SQL).contains("user `a)|(b`"));
    let path = RuleText {
        path: Some("a".to_owned()),
        ..rule("x")
    };
    assert!(error(path, SQL).contains("path means nothing to a gate for PostgreSQL"));
    assert!(error(rule(""), SQL).contains("1 to 96 bytes"));
    assert!(
        error(RuleText::default(), SQL)
            .contains("add type, tenant, wait, server, runaway, pool or")
    );
    let by_statement = RuleText {
        statement: Some("a".to_owned()),
        idle_transaction_max: Some("1s".parse().unwrap()),
        ..rule("x")
    };
    assert!(error(by_statement, SQL).contains("idle-transaction-max is said of a client"));
    let pool = RuleText {
        pool: Some(PoolMode::Session),
        ..rule("x")
    };
    assert!(error(pool, Protocol::Http).contains("pool means nothing to a gate for HTTP"));
    let unnamed = RuleText {
        tenant: Some(String::new()),
        ..rule("x")
    };
    assert!(error(unnamed, SQL).contains("tenant ``"));
    let many = vec![rule("x"); RULES_MAX + 1];
    assert!(Rules::new(&many, SQL).is_err());
}

#[test]
fn what_a_rule_on_a_statement_says_of_the_server_is_of_that_statement() {
    let of = |server, statement: Option<&str>, user: Option<&str>| RuleText {
        server: Some(server),
        statement: statement.map(str::to_owned),
        user: user.map(str::to_owned),
        ..RuleText::default()
    };
    let rules = [
        of(ServerRole::Primary, Some("nextval"), None),
        of(ServerRole::Replica, Some("^select"), None),
        of(ServerRole::Replica, None, Some("reports")),
    ];
    let rules = Rules::new(&rules, SQL).unwrap();
    let reports = Client {
        user: Some("reports"),
        ..Client::default()
    };
    let said = |sql: &[u8], client: &Client<'_>| {
        let said = rules.statement(sql, &Tags::default(), client);
        said.reads
    };
    assert_eq!(said(b"select nextval('a')", &reports), Reads::Primary);
    assert_eq!(said(b"select 1", &reports), Reads::Statement);
    assert_eq!(said(b"with a as", &reports), Reads::Transaction);
    assert_eq!(said(b"with a as", &Client::default()), Reads::Unsaid);
    let rule = of(ServerRole::Replica, None, None);
    let error = Rules::new(&[rule], Protocol::Http).unwrap_err().to_string();
    assert!(
        error.contains("server means nothing to a gate for HTTP"),
        "{error}"
    );
}
