//! `shortline sim` and `shortline model` as programs: what they print, and how they refuse.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn shortline(flags: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_shortline"))
        .args(flags.split_whitespace())
        .output()
        .unwrap()
}

/// What a command that succeeds prints.
fn printed(flags: &str) -> String {
    let output = shortline(flags);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{flags}: {error}");
    assert_eq!(error, "", "{flags}");
    String::from_utf8(output.stdout).unwrap()
}

/// The results of a command that succeeds, each with a policy and the two means.
fn results(flags: &str) -> Vec<(String, f64, Option<f64>)> {
    let value: serde_json::Value = serde_json::from_str(&printed(flags)).unwrap();
    assert_eq!(value.as_object().unwrap().len(), 1, "{flags}");
    let result = |result: &serde_json::Value| {
        let policy = result["policy"].as_str().unwrap().to_owned();
        let sojourn_mean = result["sojourn_mean"].as_f64().unwrap();
        let slowdown_mean = result.as_object().unwrap().get("slowdown_mean").unwrap();
        (policy, sojourn_mean, slowdown_mean.as_f64())
    };
    let list = value["results"].as_array().unwrap();
    list.iter().map(result).collect()
}

/// A command that fails prints nothing but one line that has every part.
fn assert_refused(flags: &str, code: i32, parts: &[&str]) {
    let output = shortline(flags);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{flags}: {error}");
    assert_eq!(output.stdout, b"", "{flags}");
    assert_eq!(error.lines().count(), 1, "{flags}: {error}");
    assert!(error.starts_with("shortline: "), "{flags}: {error}");
    for part in parts {
        assert!(
            error.contains(part),
            "{flags}: `{part}` is not in `{error}`"
        );
    }
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// A record of the World Cup log: time, client, object, size, then four bytes.
fn record(timestamp: u32, bytes: u32) -> Vec<u8> {
    let mut record = Vec::new();
    for field in [timestamp, 7, 9, bytes] {
        record.extend(field.to_be_bytes());
    }
    record.extend([0, 2, 1, 0]);
    record
}

const SCHEDULE: &str =
    "seconds,path,bytes\n0,/a,15000\n0,/b,10000\n0.010,/c,10000\n0.020,/d,10000\n";
/// The link carries nothing but bodies, a byte a microsecond.
const BARE: &str = "--rate 8mbit --wire-per-packet 0 --wire-per-request 0";

#[test]
fn the_model_knows_the_known_queue_to_four_digits() {
    let found = results("model --dist exp:1 --load 0.5 --policy srpt,psjf,sjf,ps,las,fcfs --json");
    let known = [
        ("srpt", 1.4254),
        ("psjf", 1.5314),
        ("sjf", 1.7127),
        ("fair", 2.0),
        ("las", 2.0),
        ("fifo", 2.0),
    ];
    assert_eq!(found.len(), known.len());
    for ((policy, mean, slowdown), (known_policy, known_mean)) in found.iter().zip(known) {
        assert_eq!(policy, known_policy);
        assert_eq!(format!("{mean:.4}"), format!("{known_mean:.4}"), "{policy}");
        // Under these two a job next to no size waits for one in service.
        let infinite = policy == "sjf" || policy == "fifo";
        assert_eq!(slowdown.is_none(), infinite, "{policy}");
    }
}

#[test]
fn a_trace_has_its_exact_times() {
    let folder = Folder::new();
    let trace = folder.write("day.csv", SCHEDULE);
    let flags = format!("sim --trace {} {BARE}", trace.display());
    // SRPT ends at 45, 10, 20 and 30 ms, FSP at 25, 10, 35 and 45.
    assert_eq!(
        results(&format!("{flags} --policy srpt,fsp --json")),
        [
            ("srpt".to_owned(), 0.01875, Some(1.5)),
            (
                "fsp".to_owned(),
                0.02125,
                Some((25.0 / 15.0 + 1.0 + 2.5 + 2.5) / 4.0)
            ),
        ]
    );
    let table = printed(&format!(
        "{flags} --policy srpt,fsp --csv {0}/r.csv --plot {0}/r.svg",
        folder.path().display()
    ));
    assert!(table.contains("4 requests"), "{table}");
    let csv = std::fs::read_to_string(folder.path().join("r.csv")).unwrap();
    for kind in ["all", "size", "percentile", "nines", "time"] {
        assert!(csv.contains(&format!("\nfsp,{kind},")), "{csv}");
    }
    let drawing = std::fs::read_to_string(folder.path().join("r.svg")).unwrap();
    assert!(drawing.starts_with("<svg"));
}

#[test]
fn records_of_the_world_cup_log_are_a_trace_too() {
    let folder = Folder::new();
    let records = [record(898_000_000, 1000), record(898_000_001, 3000)].concat();
    let trace = folder.write("wc_day.bin", records);
    let flags = format!(
        "sim --trace {} {BARE} --policy fair --json",
        trace.display()
    );
    assert_eq!(results(&flags), [("fair".to_owned(), 0.002, Some(1.0))]);
}

#[test]
fn a_steady_load_is_simulated_as_the_model_has_it() {
    // A mean service time is a millisecond.
    let found = results("sim --dist exp:1000 --load 0.5 --rate 8mbit --policy srpt,fair --json");
    assert!((found[0].1 * 1e3 / 1.4254 - 1.0).abs() < 0.02, "{found:?}");
    assert!((found[1].1 * 1e3 / 2.0 - 1.0).abs() < 0.02, "{found:?}");
}

#[test]
fn a_load_without_a_steady_state_is_refused() {
    for load in ["1", "1.2", "0", "-0.5", "NaN", "inf"] {
        let load_named = format!("load {load}");
        let parts = [load_named.as_str(), "above 0 and below 1"];
        let sim = format!("sim --dist exp:1000 --load {load} --rate 10mbit");
        assert_refused(&sim, 2, &parts);
        assert_refused(&format!("model --dist exp:1 --load {load}"), 2, &parts);
    }
    let sim = "sim --dist exp:1000 --schedule 5,5,0.9,1.5 --rate 1mbit";
    assert_refused(sim, 2, &["mean load 1.2"]);
    let model = "model --dist exp:1000 --schedule 5,5,0.9,1.5 --rate 1mbit";
    assert_refused(model, 2, &["mean load 1.2"]);
    for command in ["sim", "model"] {
        for (phases, part) in [
            ("-5,5,0.5,1.2", "low span -5"),
            ("5,NaN,0.5,1.2", "high span NaN"),
            ("5,5,0.5,0.4", "at least the low load"),
            ("5,5,0.5", "four numbers"),
        ] {
            let flags = format!("{command} --dist exp:1000 --schedule {phases} --rate 1mbit");
            assert_refused(&flags, 2, &["--schedule", part]);
        }
    }
}

#[test]
fn sizes_that_are_none_are_refused() {
    for (sizes, value) in [
        ("exp:0", "MEAN 0"),
        ("exp:-3", "MEAN -3"),
        ("exp:NaN", "`NaN`"),
        ("det:0", "SIZE 0"),
        ("bp:-1,5,1.1", "LOW -1"),
        ("bp:9,5,1.1", "HIGH 5"),
        ("weibull:0,5", "SHAPE 0"),
        ("uniform:0,-5", "-5"),
        ("exp:many", "`many`"),
    ] {
        let sim = format!("sim --dist {sizes} --load 0.5 --rate 10mbit");
        assert_refused(&sim, 2, &["--dist", value]);
        let model = format!("model --dist {sizes} --load 0.5");
        assert_refused(&model, 2, &["--dist", value]);
    }
}

#[test]
fn sizes_without_the_moment_needed_are_refused() {
    let (no_mean, no_square) = ("bp:1000,inf,0.9", "bp:1000,inf,1.5");
    for command in ["sim --rate 10mbit", "model"] {
        let with = |sizes| format!("{command} --load 0.5 --policy fifo --dist {sizes}");
        assert_refused(&with(no_mean), 2, &[no_mean, "mean", "infinite"]);
        assert_refused(&with(no_square), 2, &[no_square, "`fifo`", "infinite"]);
    }
}

#[test]
fn a_wrong_trace_is_refused_with_the_place() {
    let folder = Folder::new();
    let whole = record(898_000_000, 1000);
    let earlier = record(897_999_999, 1000);
    let cut = whole[..7].to_vec();
    let backwards = [whole, earlier].concat();
    for (trace, parts) in [
        (&b""[..], ["holds no request", "seconds,path,bytes"]),
        (
            b"seconds,path,bytes\n",
            ["holds no request", "seconds,path,bytes"],
        ),
        (b"2,/a,1\n1,/b,1\n", ["line 2", "time 1 is before 2"]),
        (b"NaN,/a,1\n", ["line 1", "time `NaN`"]),
        (b"-1,/a,1\n", ["line 1", "time `-1`"]),
        (b"0,/a,NaN\n", ["line 1", "bytes `NaN`"]),
        (b"0,/a,-7\n", ["line 1", "bytes `-7`"]),
        (b"0,/a\n0,/b\n", ["line 1", "`0,/a`"]),
        (&cut, ["record 1", "cut short after 7 of 20 bytes"]),
        (&backwards, ["record 2", "timestamp 897999999"]),
    ] {
        let path = folder.write("wrong.trace", trace);
        let file = path.display();
        for flags in [
            format!("sim --trace {file} --rate 10mbit"),
            format!("sim --dist trace:{file} --load 0.5 --rate 10mbit"),
        ] {
            assert_refused(&flags, 1, &["wrong.trace: ", parts[0], parts[1]]);
        }
    }
    // A job of nothing is none, if the link carries nothing else for it.
    let empty = folder.write("empty.csv", "0,/a,1\n0,/b,0\n");
    let flags = format!("sim --dist trace:{} --load 0.5 {BARE}", empty.display());
    assert_refused(&flags, 1, &["empty.csv: ", "size 0", "place 2"]);
    let missing = "sim --trace no/such.csv --rate 10mbit";
    assert_refused(missing, 1, &["no/such.csv: "]);
}

#[test]
fn settings_that_mean_nothing_are_refused() {
    let sim = |flags: &str| format!("sim --dist exp:1000 --load 0.5 {flags}");
    for (flags, parts) in [
        ("--rate 0mbit", ["--rate", "0mbit"]),
        ("--rate NaN", ["--rate", "NaN"]),
        ("--rate 1mbit --policy sprt", ["--policy", "`sprt`"]),
        ("--rate 1mbit --policy swift", ["`swift`", "clients"]),
        (
            "--rate 1mbit --policy fsp --servers 2",
            ["`fsp`", "2 servers"],
        ),
        (
            "--rate 1mbit --estimate-sigma NaN",
            ["sigma NaN", "0 to 20"],
        ),
        ("--rate 1mbit --confidence 1", ["confidence 1", "below 1"]),
        ("--rate 1mbit --arrivals-c2 -2", ["-2", "C"]),
        ("--rate 1mbit --plot r.png", ["r.png", "svg"]),
    ] {
        assert_refused(&sim(flags), 2, &parts);
    }
    let model = |flags: &str| format!("model --dist exp:1 --load 0.5 {flags}");
    for (flags, parts) in [
        ("--policy fsp", ["`fsp`", "no closed form"]),
        ("--plot r.png", ["r.png", "svg"]),
        ("--rate 1mbit", ["--rate", "--schedule"]),
    ] {
        assert_refused(&model(flags), 2, &parts);
    }
    for command in [sim("--rate 1mbit"), model("")] {
        let nowhere = format!("{command} --plot no/such/folder.svg");
        assert_refused(&nowhere, 1, &["--plot", "no/such/folder.svg"]);
    }
}
