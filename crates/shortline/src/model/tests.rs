#![allow(clippy::unwrap_used)]
use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn args(flags: &str) -> Result<Args, clap::Error> {
    let words = std::iter::once("model").chain(flags.split_whitespace());
    Line::try_parse_from(words).map(|line| line.args)
}

fn results(flags: &str) -> Vec<ModelResult> {
    args(flags).unwrap().results().unwrap()
}

#[test]
fn the_json_has_the_means_in_mean_service_times() {
    let flags = "--dist exp:250 --load 0.5 --policy srpt,psjf,sjf,fair,las,fifo";
    let text = json(results(flags)).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let known = [
        ("srpt", 1.4254),
        ("psjf", 1.5314),
        ("sjf", 1.7127),
        ("fair", 2.0),
        ("las", 2.0),
        ("fifo", 2.0),
    ];
    for (place, (policy, mean)) in known.into_iter().enumerate() {
        let result = &value["results"][place];
        assert_eq!(result["policy"], policy);
        let found = result["sojourn_mean"].as_f64().unwrap();
        assert!((found - mean).abs() < 5e-5, "{policy}: {found}");
        // A job next to no size waits for one in service.
        let infinite = policy == "sjf" || policy == "fifo";
        assert_eq!(result["slowdown_mean"].is_null(), infinite, "{policy}");
    }
    assert_eq!(value["results"][0]["dist"], "exp:250");
}

#[test]
fn the_names_of_theory_are_known_too() {
    let results = results("--dist exp:1 --load 0.5 --policy ps,fcfs");
    let policies: Vec<_> = results
        .iter()
        .map(|result| result.analysis.policy)
        .collect();
    assert_eq!(policies, [Form::Fair, Form::Fifo]);
}

#[test]
fn the_table_has_a_row_for_each_policy_under_its_load() {
    let text = table::table(&results("--dist exp:1 --load 0.5,0.9 --policy srpt,fifo"));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[2], "exp:1, load 0.5");
    assert!(lines[4].starts_with("srpt       1.4254"), "{}", lines[4]);
    assert!(lines[5].contains("inf"), "{}", lines[5]);
    assert_eq!(lines[7], "exp:1, load 0.9");
    assert_eq!(lines.len(), 11);
}

#[test]
fn both_kinds_of_drawing_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plot.svg");
    for (flags, part) in [
        (
            "--dist exp:1 --dist bp:1,1e6,1.1 --load 0.9 --policy srpt",
            "bp:1,1000000,1.1",
        ),
        (
            "--dist exp:1 --load 0.5,0.9 --policy srpt,fifo",
            "slowdown of the largest job",
        ),
    ] {
        plot::draw(&path, &results(flags)).unwrap();
        let drawing = std::fs::read_to_string(&path).unwrap();
        assert!(
            drawing.starts_with("<svg") && drawing.contains(part),
            "{flags}"
        );
    }
    let nowhere = folder.path().join("no/such/folder.svg");
    let told = plot::draw(&nowhere, &results("--dist exp:1 --load 0.5")).unwrap_err();
    assert!(told.to_string().contains("folder.svg"), "{told}");
}

#[test]
fn what_has_no_answer_is_bad_usage() {
    for (flags, part) in [
        ("--dist exp:1 --load 1", "load 1: want above 0 and below 1"),
        ("--dist exp:1 --load 0.5,-0.1", "load -0.1"),
        ("--dist exp:1 --load nan", "load NaN"),
        ("--dist bp:1,inf,0.9 --load 0.5", "their mean is infinite"),
        (
            "--dist bp:1,inf,1.5 --load 0.5 --policy fifo",
            "second moment is infinite",
        ),
    ] {
        let error = args(flags).unwrap().results().unwrap_err();
        assert!(matches!(error, CommandError::Usage(_)), "{flags}");
        assert!(error.to_string().contains(part), "{flags}: {error}");
    }
    for flags in [
        "--load 0.5",
        "--dist exp:1",
        "--dist exp:-1 --load 0.5",
        "--dist pareto:1 --load 0.5",
        "--dist exp:1 --load half",
        "--dist exp:1 --load 0.5 --policy fsp",
    ] {
        assert!(args(flags).is_err(), "{flags}");
    }
}
