//! What telling the type of a statement costs, seen before and never seen:
//! `cargo run --release -p shortline-gate --example classify_speed`.
//!
//! The target is 10 us a statement.

use std::hint::black_box;
use std::time::Instant;

use shortline_gate::classify::{
    Classifier, ClassifierConfig, Client, Dialect, Protocol, RuleText, fingerprint,
};

const ROUNDS: u32 = 20_000;

/// Statements as applications send them; `#` is another number each time.
const STATEMENTS: [(&str, &str); 4] = [
    (
        "pgbench select",
        "SELECT abalance FROM pgbench_accounts WHERE aid = #;",
    ),
    (
        "with tags",
        "SELECT * FROM item WHERE i_id = # /*action='show',controller='books',\
         route='%2Fbooks%2F%3Aid',traceparent='00-5bd66ef5095369c7b0d1f8f4bd33716a-#-01'*/",
    ),
    (
        "a join of 500 bytes",
        "SELECT i_id, i_title, i_pub_date, i_publisher, i_subject, i_desc, i_thumbnail, i_image, \
         i_srp, i_cost, i_avail, i_isbn, i_page, i_backing, i_dimensions, a_fname, a_lname, \
         a_mname, a_dob, a_bio FROM item JOIN author ON item.i_a_id = author.a_id LEFT JOIN \
         order_line ON order_line.ol_i_id = item.i_id WHERE item.i_subject = 'COMPUTERS' AND \
         i_id IN (#, 1, 2, 3, 4, 5, 6, 7, 8, 9) AND i_pub_date > '2001-01-01' GROUP BY i_id, \
         a_id ORDER BY i_pub_date DESC, i_title LIMIT 50 OFFSET #",
    ),
    ("an insert of 100 rows", "INSERT INTO t (a, b, c) VALUES @"),
];

fn main() {
    println!(
        "{:<24}{:>8}{:>14}{:>14}{:>14}",
        "us a statement", "bytes", "fingerprint", "new", "seen"
    );
    for (name, text) in STATEMENTS {
        let statement = |number: u32| {
            let rows = vec![format!("({number}, 'x', 1.5)"); 100].join(", ");
            text.replace('#', &number.to_string()).replace('@', &rows)
        };
        let statements: Vec<String> = (0..ROUNDS).map(statement).collect();
        let rule = RuleText {
            name: Some("reports".to_owned()),
            statement: Some("(?i)from +report_".to_owned()),
            ..RuleText::default()
        };
        let config = ClassifierConfig {
            rules: vec![rule],
            ..ClassifierConfig::new(Protocol::Sql(Dialect::Postgres))
        };
        let classifier = Classifier::new(&config).expect("the rule is sound");
        let client = Client {
            user: Some("shop"),
            database: Some("shop"),
            ..Client::default()
        };
        let alone = time(&statements, |sql| {
            black_box(fingerprint(sql.as_bytes(), Dialect::Postgres));
        });
        let new = time(&statements, |sql| {
            black_box(classifier.statement(sql.as_bytes(), &client));
        });
        let seen = time(&statements, |_| {
            black_box(classifier.statement(statements[0].as_bytes(), &client));
        });
        println!(
            "{name:<24}{:>8}{alone:>14.2}{new:>14.2}{seen:>14.2}",
            statements[0].len()
        );
    }
}

/// Microseconds a statement.
fn time(statements: &[String], mut each: impl FnMut(&String)) -> f64 {
    let begun = Instant::now();
    statements.iter().for_each(&mut each);
    begun.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS)
}
