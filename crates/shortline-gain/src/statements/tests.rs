//! From logs to what is told, with figures worked out by hand.

#![allow(clippy::unwrap_used)]
use std::fmt::Write;
use std::num::NonZeroUsize;

use super::*;
use crate::gain::Basis;

/// A line of PostgreSQL's log: when it came, in milliseconds after ten o'clock, and how long it took.
fn line(log: &mut String, at_ms: u64, duration_ms: u64, statement: &str) {
    let end_ms = at_ms + duration_ms;
    let (minute, second, ms) = (end_ms / 60_000, end_ms / 1_000 % 60, end_ms % 1_000);
    writeln!(
        log,
        "2026-11-26 10:{minute:02}:{second:02}.{ms:03} UTC [7] LOG:  duration: {duration_ms} ms  statement: {statement}"
    )
    .unwrap();
}

fn statements(log: &str) -> Statements {
    let input = LogInput::of_bytes(log.as_bytes().to_vec()).unwrap();
    Statements::read(vec![input], |_| {}).unwrap()
}

/// Reports of ten seconds, one after the other, and a lookup every half second that takes twice as long as alone.
fn busy() -> String {
    let mut log = String::new();
    for number in 0..6 {
        line(&mut log, number * 12_000, 11_000, "SELECT count(*) FROM t");
        for lookup in 0..20 {
            let at_ms = number * 12_000 + lookup * 500 + 100;
            line(
                &mut log,
                at_ms,
                100,
                &format!("SELECT a FROM t WHERE b = {lookup}"),
            );
        }
    }
    log
}

#[test]
fn who_gains_and_who_waits_longer_is_told_by_type() {
    let gain = statements(&busy()).gain(None).unwrap();
    assert_eq!((gain.statements, gain.kinds_count), (126, 2));
    assert_eq!(
        (gain.processors, gain.processors_from),
        (2, Basis::BusiestHour)
    );
    let gain = statements(&busy()).gain(NonZeroUsize::new(1)).unwrap();
    assert_eq!(gain.processors_from, Basis::Stated);
    let names: Vec<_> = gain.kinds.iter().map(|kind| &*kind.name).collect();
    assert_eq!(
        names,
        ["select count(*) from t", "select a from t where b = ?"]
    );
    // As found, a lookup shares with the report.
    let lookups = gain.kinds[1].waits.map(|waits| waits.mean_s);
    assert!((lookups[0] - 0.1).abs() < 1e-9, "{lookups:?}");
    // A gate of one place has it wait for the report, which nobody interrupts. Ours finds out that this does no good.
    assert!(lookups[1] > 1.0 && lookups[2] < lookups[1], "{lookups:?}");
    let words = gain.words();
    assert!(
        words.contains("in the busiest hour (2026-11-26 10:00 UTC) the database was full"),
        "{words}"
    );
    assert!(words.contains("select a from t where b = ?"), "{words}");
    let page = gain.page().unwrap();
    assert!(page.contains("the database was full") && page.ends_with("</html>\n"));
    assert!(
        page.contains("<h1>A statement has its answer after "),
        "{page}"
    );
}

#[test]
fn a_burst_of_short_and_long_statements_gains() {
    let mut log = String::new();
    // Forty at once, of which four are long, as processor sharing would end them; before that one of each.
    line(&mut log, 0, 1_000, "SELECT count(*) FROM t");
    line(&mut log, 2_000, 10, "SELECT a FROM t WHERE b = 1");
    for burst in 1..100 {
        let at_ms = burst * 6_000;
        for number in 0..40 {
            let is_long = number % 10 == 9;
            let (duration_ms, statement) = if is_long {
                (4_000 + 360, "SELECT count(*) FROM t")
            } else {
                (400, "SELECT a FROM t WHERE b = 1")
            };
            line(&mut log, at_ms, duration_ms, statement);
        }
    }
    let gain = statements(&log).gain(NonZeroUsize::new(1)).unwrap();
    let [found, fifo, ours] = gain.waits.map(|waits| waits.mean_s);
    assert!(ours < found && ours < 0.6 * fifo, "{found} {fifo} {ours}");
}

#[test]
fn the_first_word_is_whether_it_is_worth_it() {
    let mut gain = statements(&busy()).gain(NonZeroUsize::new(1)).unwrap();
    for (ours_s, opening) in [
        (0.5, "\nWorth it: in the busiest hour"),
        (1.0, "\nLittle to gain: in the busiest hour"),
        (1.2, "\nNot worth it: in the busiest hour"),
    ] {
        gain.waits[0].mean_s = 1.0;
        gain.waits[2].mean_s = ours_s;
        assert!(gain.words().contains(opening), "{}", gain.words());
    }
    gain.kinds[1].waits[2].mean_s = 9.0;
    let longer = "Longer wait: select a from t where b = ? (120): 9.00 s instead of 100 ms";
    assert!(gain.words().contains(longer), "{}", gain.words());
}

#[test]
fn without_a_queue_there_is_nothing_to_gain() {
    let mut log = String::new();
    (0..60).for_each(|second| line(&mut log, second * 1_000, 5, "SELECT 1"));
    let gain = statements(&log).gain(None).unwrap();
    let (words, page) = (gain.words(), gain.page().unwrap());
    assert!(
        words.contains("Nothing to gain: in the busiest hour"),
        "{words}"
    );
    assert!(page.contains("<h1>Nothing to gain"), "{page}");
}

#[test]
fn logs_are_told_apart_by_what_they_hold() {
    let of = |text: &str| Content::of(&mut LogInput::of_bytes(text.into()).unwrap());
    assert_eq!(of(&busy()), Content::Statements);
    assert_eq!(
        of("2026-11-26 10:00:00 UTC [7] LOG:  ready\n"),
        Content::Statements
    );
    assert_eq!(
        of("# Query_time: 1\nSET timestamp=1795711415;\nSELECT 1;\n"),
        Content::Statements
    );
    assert_eq!(of("query,calls,total_exec_time\n"), Content::Mix);
    let line = "h - - [21/Nov/2026:10:00:00 +0000] \"GET /a HTTP/1.1\" 200 1\n";
    assert_eq!(of(line), Content::Responses);
    // A client's own words do not make a database's log of it.
    let agent = line.replace(
        "\n",
        " \"-\" \"LOG:  duration: 1 ms  statement: SELECT 1\"\n",
    );
    assert_eq!(of(&[line, &agent, line].concat()), Content::Responses);
    let json = "{\"timestamp\":\"2026-11-26T10:00:00Z\",\"message\":\"GET /\"}\n";
    assert_eq!(of(json), Content::Responses);
    assert_eq!(of(""), Content::Responses);
}

#[test]
fn statements_of_the_quieter_hours_are_forgotten_first() {
    let mut all = statements(&busy());
    let kept = |duration_us: u32| Kept {
        begin_us: 0,
        duration_us,
        kind: 0,
    };
    let busiest = *all.kept.keys().next().unwrap();
    all.kept.insert(busiest + 1, vec![kept(1)]);
    all.kept.insert(busiest + 2, vec![kept(1)]);
    for hour in [busiest + 1, busiest + 2] {
        all.hours.entry(hour).or_default().busy_us = 1;
    }
    all.kept_count += 2;
    all.forget(busiest + 2);
    assert_eq!(
        all.kept.keys().copied().collect::<Vec<_>>(),
        [busiest, busiest + 2]
    );
    assert!(all.hours[&(busiest + 1)].is_incomplete);
    // Then the one that is read.
    all.forget(busiest + 2);
    assert_eq!(all.kept.keys().copied().collect::<Vec<_>>(), [busiest]);
    assert_eq!(all.kept_count, 126);
}
