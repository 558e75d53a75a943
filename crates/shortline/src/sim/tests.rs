//! `sim`: its flags, and what it prints.

#![allow(clippy::unwrap_used)]
use std::io::Write;

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn args(flags: &str) -> Result<Args, clap::Error> {
    let words = std::iter::once("sim").chain(flags.split_whitespace());
    Line::try_parse_from(words).map(|line| line.args)
}

fn trace(lines: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(lines.as_bytes()).unwrap();
    file
}

/// Results of a trace where the link carries only the bodies.
fn bare(lines: &str, flags: &str) -> Result<Vec<PolicyResult>, CommandError> {
    let file = trace(lines);
    let flags = format!(
        "--trace {} --wire-per-packet 0 --wire-per-request 0 {flags}",
        file.path().display()
    );
    args(&flags).unwrap().results().map(|(results, _)| results)
}

const KNOWN: &str = "0,/a,15000\n0,/b,10000\n0.010,/c,10000\n0.020,/d,10000\n";

#[test]
fn a_known_schedule_gives_its_known_times() {
    // At 8 Mbit/s a byte takes a microsecond. SRPT ends at 45, 10, 20 and 30 ms, FSP at 25, 10, 35
    // and 45.
    let results = bare(KNOWN, "--rate 8mbit --policy srpt,fsp --json").unwrap();
    let value: serde_json::Value =
        serde_json::from_str(&results_json(&results, &[]).unwrap()).unwrap();
    assert_eq!(value["results"][0]["policy"], "srpt");
    assert_eq!(value["results"][0]["sojourn_mean"], 0.01875);
    assert_eq!(value["results"][0]["slowdown_mean"], 1.5);
    assert_eq!(value["results"][1]["sojourn_mean"], 0.02125);
    assert_eq!(value["results"].as_array().unwrap().len(), 2);
}

#[test]
fn the_table_relates_every_policy_to_the_optimum() {
    let results = bare(
        "0,/a,20\n0,/b,20\n",
        "--rate 8gbit --policy fair --no-stretch",
    )
    .unwrap();
    let text = table::table("t", &results, 1, (Policy::Srpt, "x optimum"), &[]);
    // Both end at 40 ns, instead of at 20 and 40.
    assert!(text.lines().last().unwrap().ends_with("1.33"), "{text}");
}

#[test]
fn a_workload_counts_the_wire_as_the_generator_does() {
    let args = args("--workload w1 --rate 10mbit --seconds 10").unwrap();
    assert!(args.results().unwrap().0[0].requests > 100);
    for body_bytes in [0, 1, 1448, 1449, 1_000_000] {
        assert_eq!(
            args.wire().wire_bytes(body_bytes),
            WireModel::default().wire_bytes(body_bytes)
        );
    }
}

#[test]
fn every_policy_runs_with_every_option_at_once() {
    let options = "--dist surge-001 --load 0.6 --rate 10mbit --jobs 500 --replications 2 --json \
         --clients 1mbit/100ms*0.5,10mbit/10ms --start-delay 20ms --setup 1ms \
         --estimate-sigma 0.5 --abort-after 5s --retries 1 --arrivals-c2 2 --preload 5";
    let but_fsp = "fair,fifo,sjf,psjf,srpt,bands:1KB,9KB,quickfix,swift,fcf,srrt,stert,las";
    for (servers, policies, count) in [(2, but_fsp, 12), (1, "fsp", 1)] {
        let flags = format!("{options} --servers {servers} --policy {policies}");
        let results = args(&flags).unwrap().results().unwrap().0;
        assert_eq!(results.len(), count);
        for result in &results {
            assert_eq!(result.requests, 1000, "{}", result.policy);
            assert!(result.slowdown_mean >= 0.5, "{}", result.policy);
        }
    }
}

#[test]
fn csv_and_drawings_are_written() {
    let results = bare(KNOWN, "--rate 8mbit --policy srpt,fair --json").unwrap();
    let folder = tempfile::tempdir().unwrap();
    csv::write(&folder.path().join("r.csv"), &results).unwrap();
    let text = std::fs::read_to_string(folder.path().join("r.csv")).unwrap();
    assert!(
        text.lines()
            .filter(|line| line.starts_with("fair,percentile,"))
            .count()
            == 200
    );
    assert!(text.contains("\nfair,all,,,4,,0.0"), "{text}");
    assert!(text.contains("\nsrpt,time,0,0.001,2,"), "{text}");
    assert!(text.contains("\nsrpt,nines,0,0.25,"), "{text}");
    for line in text.lines() {
        assert_eq!(line.split(',').count(), 10, "{line}");
    }
    for (name, start) in [("r.svg", "<svg"), ("r.html", "<!doctype html>")] {
        let path = folder.path().join(name);
        check_plot_file(&path).unwrap();
        plot::draw(&path, "title", &results).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(start) && text.contains("srpt"), "{name}");
    }
    let told = |name: &str| check_plot_file(&folder.path().join(name)).unwrap_err();
    assert!(
        told("r.png")
            .to_string()
            .contains("r.png: the file must end")
    );
    assert!(told("no/such.svg").to_string().contains("--plot"));
}

#[test]
fn bad_input_is_told_with_its_place() {
    let told = |lines| bare(lines, "--rate 8mbit").unwrap_err().to_string();
    assert!(told("").contains("no request"));
    assert!(told("2,/a,1\n1,/b,1\n").contains("line 2"));
    assert!(told("0,/a,one\n").contains("line 1"));
    assert!(told("NaN,/a,1\n").contains("line 1"));
    assert!(told("0,/a,-1\n").contains("line 1"));
    assert!(told("0,/a,1\n\u{0}").contains("line 2") || told("\u{0}\u{1}").contains("record 1"));

    let told = |flags: &str| args(flags).unwrap().results().unwrap_err().to_string();
    assert!(told("--rate 10mbit").contains("--trace F, --workload NAME and --dist D"));
    assert!(told("--workload w1 --rate 10000gbit --seconds 86400").contains("--seconds 86400"));
    assert!(told("--dist exp:1000 --load 1.2 --rate 1mbit").contains("load 1.2"));
    assert!(told("--dist exp:1000 --load NaN --rate 1mbit").contains("load NaN"));
    assert!(told("--dist bp:1000,inf,0.9 --load 0.5 --rate 1mbit").contains("E[S] is infinite"));
    let fifo = told("--dist bp:1000,inf,1.5 --load 0.5 --rate 1mbit --policy fifo");
    assert!(fifo.contains("E[S^2] is infinite"));
    assert!(told("--dist exp:1000 --rate 1mbit").contains("--load"));
    assert!(told("--dist exp:1000 --load 0.5 --rate 1mbit --policy srrt").contains("`srrt`"));
    let twins = "--dist exp:1000 --load 0.5 --rate 1mbit --policy fsp --servers 2";
    assert!(told(twins).contains("`fsp` with 2 servers"));
    assert!(told("--dist exp:1000 --load 0.5 --rate 1mbit --arrivals-c2 -1").contains("-1"));
}

#[test]
fn wrong_flags_are_refused() {
    for flags in [
        "--trace t.csv",
        "--trace t.csv --workload w1 --rate 10mbit",
        "--trace t.csv --dist exp:1 --rate 10mbit",
        "--trace t.csv --rate 0mbit",
        "--trace t.csv --rate 10",
        "--trace t.csv --rate 10mbit --policy sprt",
        "--trace t.csv --rate 10mbit --seconds 5",
        "--trace t.csv --rate 10mbit --load 0.5",
        "--trace t.csv --rate 10mbit --servers 0",
        "--trace t.csv --rate 10mbit --retries 2",
        "--trace t.csv --rate 10mbit --aging 2 --growing 2",
        "--workload w11 --rate 10mbit",
        "--workload w1 --rate 10mbit --wire-segment 0",
        "--workload w1 --rate 10mbit --load 0.5",
        "--dist exp:-1 --load 0.5 --rate 10mbit",
        "--dist exp:0 --load 0.5 --rate 10mbit",
        "--dist exp:NaN --load 0.5 --rate 10mbit",
        "--dist exp:1 --schedule 5,5,0.2 --rate 10mbit",
        "--dist exp:1 --schedule 5,5,0.9,1.5 --rate 10mbit",
        "--dist exp:1 --load 0.5 --rate 10mbit --jobs 0",
    ] {
        assert!(args(flags).is_err(), "{flags}");
    }
}

#[test]
fn a_gate_in_front_of_servers_that_thrash() {
    let flags = "--dist exp:1000 --load 0.9 --rate 8mbit --servers 4 --jobs 2000 --replications 1 \
         --backend-capacity 40ms --backend-thrash 8:0.05 --policy";
    let asked = args(&format!("{flags} fifo,sjf --aging 5")).unwrap();
    let results = asked.results().unwrap().0;
    let policies: Vec<_> = results.iter().map(|result| result.policy).collect();
    // The policy that the table relates the others to comes last.
    assert_eq!(policies, [Policy::Fifo, Policy::Sjf, Policy::Fair]);
    let error = args(&format!("{flags} srpt")).unwrap().results();
    assert!(error.unwrap_err().to_string().contains("behind a gate"));
    for wrong in [
        "--backend-capacity 0s",
        "--backend-capacity soon",
        "--backend-thrash 8:0.1",
        "--backend-capacity 1s --backend-thrash 0:0.1",
        "--backend-capacity 1s --clients 1mbit/10ms*1",
    ] {
        let line = format!("--dist exp:1000 --load 0.9 --rate 8mbit --policy fifo {wrong}");
        assert!(args(&line).is_err(), "{wrong}");
    }
}

#[test]
fn intervals_that_cannot_be_trusted_come_with_a_warning() {
    let warnings = |flags: &str| {
        let flags = format!("--rate 8mbit --policy srpt --replications 1 {flags}");
        args(&flags).unwrap().results().unwrap().1
    };
    let told = |flags: &str, what: &str| {
        let warnings = warnings(flags);
        assert!(
            warnings.iter().any(|warning| warning.contains(what)),
            "{warnings:?}"
        );
    };
    told("--dist exp:1000 --load 0.99 --jobs 1000", "at load 0.99");
    let unseen = "--dist bp:1,1e9,1.1 --schedule 1,1,0.2,1.2 --seconds 2";
    told(unseen, "jobs above");
    assert_eq!(warnings("--dist exp:1000 --load 0.5 --jobs 20000"), [""; 0]);
}
