//! The flags of `shortline model`, its table, JSON and drawings.
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
    let text = results_json(&results(flags), &[]).unwrap();
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
        // A job of almost no size waits for the job in service.
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
    assert!(
        lines[5].split_whitespace().take(2).eq(["srpt", "1.4254"]),
        "{}",
        lines[5]
    );
    assert!(lines[6].contains("inf"), "{}", lines[6]);
    assert_eq!(lines[8], "exp:1, load 0.9");
    assert_eq!(lines.len(), 13);
}

#[test]
fn both_kinds_of_drawing_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plot.svg");
    for (flags, part) in [
        (
            "--dist exp:1 --dist bp:1,1e6,1.1 --load 0.9 --policy srpt",
            "bp:1,1e6,1.1",
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
}

#[test]
fn what_has_no_answer_is_bad_usage() {
    for (flags, part) in [
        ("--dist exp:1 --load 1", "load 1: want above 0 and below 1"),
        ("--dist exp:1 --load 0.5,-0.1", "load -0.1"),
        ("--dist exp:1 --load nan", "load NaN"),
        (
            "--workload w1 --rate 10mbit --policy las",
            "`las` under alternating load",
        ),
        ("--load 0.5", "--dist: missing"),
        ("--dist exp:1 --load 0.5 --rate 8bit", "--rate: with --load"),
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
        "--dist exp:1",
        "--dist exp:1 --load 0.5 --workload w1 --rate 8bit",
        "--workload w1",
        "--workload w11 --rate 8bit",
        "--dist exp:1 --schedule 1,1,0.5 --rate 8bit",
        "--dist exp:1 --schedule 1,1,0.9,1.5 --rate 8bit",
        "--dist exp:1 --load 0.5 --simulate 10",
        "--dist exp:1 --load 0.5 --seed 10",
        "--dist exp:-1 --load 0.5",
        "--dist pareto:1 --load 0.5",
        "--dist exp:1 --load half",
        "--dist exp:1 --load 0.5 --policy fsp",
    ] {
        assert!(args(flags).is_err(), "{flags}");
    }
}

#[test]
fn the_simulator_stands_beside_the_formula() {
    let flags = "--dist exp:2 --load 0.5 --policy srpt,fair --simulate 100000 --seed 3";
    for result in results(flags) {
        let found = result.simulated.as_ref().unwrap();
        let error = (found.sojourn_mean - result.analysis.sojourn_mean).abs();
        assert!(
            error < found.sojourn_margin && found.sojourn_margin < 0.1,
            "{found:?}"
        );
        assert_eq!(found.jobs, 100_000);
        assert_eq!(found.slowdown_by_percentile.len(), 40);
    }
    let text = table::table(&results(flags));
    assert!(
        text.contains("mean simulated") && text.contains("±"),
        "{text}"
    );
}

#[test]
fn a_workload_has_its_own_sizes_and_its_mean_load() {
    let results = results("--workload w1 --rate 10mbit --simulate 20000");
    assert_eq!(results.len(), 2);
    let value = serde_json::to_value(&results[0]).unwrap();
    assert_eq!(
        (&value["load"], &value["rate"]),
        (&0.7.into(), &"10mbit".into())
    );
    assert_eq!(value["high_load"], 1.2);
    let [srpt, fair] = [0, 1].map(|place| &results[place].analysis);
    assert!(srpt.sojourn_mean * 3.0 < fair.sojourn_mean, "{srpt:?}");
    let text = table::table(&results);
    assert!(
        text.contains("load 0.2 for 25 s and 1.2 for 25 s at 10mbit"),
        "{text}"
    );
}

#[test]
fn the_tails_of_fifo_and_boost_are_told_where_they_are_light() {
    let told = |flags: &str, json| {
        let settings = args(flags).unwrap().settings().unwrap();
        tails::told(&settings, json)
    };
    let flags = "--dist exp:3000 --load 0.5,0.8 --tail";
    let text = told(flags, false).unwrap();
    let row = text.lines().last().unwrap();
    assert!(row.starts_with("exp:3000, load 0.8"), "{text}");
    let numbers: Vec<&str> = row.split_whitespace().skip(3).collect();
    assert_eq!(numbers, ["0.2000", "1.0000", "0.7217", "0.7217"]);
    let json: serde_json::Value = serde_json::from_str(&told(flags, true).unwrap()).unwrap();
    let boost = json["results"][1]["boost"].as_f64().unwrap();
    assert!((boost - 0.7217).abs() < 1e-4, "{boost}");
    let heavy = told("--dist bp:1,inf,1.3 --load 0.5 --tail", false).unwrap_err();
    assert!(heavy.to_string().contains("not light"), "{heavy}");
    assert!(args("--dist exp:1 --load 0.5 --tail --policy srpt").is_err());
}

#[test]
fn a_drawing_is_titled_by_its_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plot.html");
    for (flags, titles) in [
        (
            "--dist exp:1 --load 0.5,0.75 --policy srpt,fifo",
            [
                "mean time in the system at load 0.75: srpt 2.07, fifo 4.00",
                "slowdown of the largest at load 0.75: fifo 1.00, srpt 4.00",
            ],
        ),
        (
            "--dist exp:1 --load 0.5 --policy fair,srpt,las,psjf",
            ["mean slowdown at load 0.5: srpt ", ", fair 2.00"],
        ),
        (
            "--dist bp:0.0009,1e10,0.5 --dist bp:332.07,1e10,1.1 --load 0.9 --policy srpt,fair",
            [
                "mean slowdown at load 0.9: 1.00 to 10.0",
                "slowdown of the largest at load 0.9: 9.54 to 18.5",
            ],
        ),
    ] {
        plot::draw(&path, &results(flags)).unwrap();
        let drawing = std::fs::read_to_string(&path).unwrap();
        for title in titles {
            assert!(drawing.contains(title), "{flags}: want {title}: {drawing}");
        }
    }
}
