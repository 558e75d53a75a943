//! What an operator's Prometheus and Grafana get: `packaging/prometheus-rules.yml` and both dashboards. Each metric that
//! they name is one of `/metrics`, each alert is told in docs/operations.md, and Prometheus's own `promtool` reads the
//! rules and the dashboards' expressions, where it is installed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::Value;

use crate::page::root;
use crate::place::Place;
use crate::serving::{PATIENCE, Serving};

const PROGRAM: &str = env!("CARGO_BIN_EXE_shortline");
const DASHBOARDS: [&str; 2] = ["grafana-dashboard.json", "grafana-gate-dashboard.json"];
/// How wide Grafana's grid is.
const COLUMNS: u64 = 24;

fn packaging(name: &str) -> String {
    std::fs::read_to_string(root().join("packaging").join(name)).unwrap()
}

/// The metrics of a process at its admin address, with their kinds, once it has `last`.
fn metrics(place: &mut Place, arguments: &[&str], last: &str) -> BTreeMap<String, String> {
    let admin = place.address("9180");
    let mut command = Command::new(PROGRAM);
    command
        .args(arguments)
        .args(["--listen", "127.0.0.1:0", "--admin", &admin]);
    command.current_dir(place.folder());
    let _serving = Serving::start(command).unwrap();
    let until = Instant::now() + PATIENCE;
    loop {
        let found = metrics_now(&admin);
        if found.contains_key(last) {
            return found;
        }
        assert!(Instant::now() < until, "no {last}: {found:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn metrics_now(admin: &str) -> BTreeMap<String, String> {
    let mut stream = TcpStream::connect(admin).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let kinds = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    kinds
        .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
        .collect()
}

/// Those of a server and of a gate that do everything.
fn all_metrics() -> BTreeMap<String, String> {
    let mut place = Place::new();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    place
        .with("a.crt", made.cert.pem())
        .with("a.key", made.signing_key.serialize_pem());
    place
        .with("users", "\"ann\" \"secret\"\n")
        .with("site/index.html", "<p>\n");
    place.with(
        "a.toml",
        "[[route]]\npath = \"/a\"\nupstream = [\"127.0.0.1:1\"]\n[route.cache]\n",
    );
    let serve = [
        "serve",
        "site",
        "--config",
        "a.toml",
        "--uplink",
        "10mbit",
        "--tls-cert",
        "a.crt",
        "--tls-key",
        "a.key",
    ];
    let mut all = metrics(&mut place, &serve, "shortline_certificate_late");
    let gate = [
        "gate",
        "postgres",
        "--upstream",
        "127.0.0.1:1,127.0.0.1:2",
        "--pool",
        "transaction",
    ];
    let pool = ["--pool-users", "users", "--watch-user", "ann"];
    all.append(&mut metrics(
        &mut place,
        &[&gate[..], &pool].concat(),
        "shortline_server_up",
    ));
    all
}

/// The metrics that expressions name, without what Prometheus adds to a histogram's name.
fn named(text: &str, known: &BTreeMap<String, String>) -> BTreeSet<String> {
    let names = Regex::new(r"\bshortline_[a-z0-9_]+").unwrap();
    let of_histogram = |name: &str| {
        let ends = ["_bucket", "_sum", "_count"].into_iter();
        let mut base = ends.filter_map(|end| name.strip_suffix(end));
        base.find(|base| known.get(*base).is_some_and(|kind| kind == "histogram"))
            .map(str::to_owned)
    };
    let found = names.find_iter(text).map(|name| name.as_str());
    found
        .map(|name| of_histogram(name).unwrap_or_else(|| name.to_owned()))
        .collect()
}

#[test]
fn each_metric_of_the_alerts_and_dashboards_exists() {
    let known = all_metrics();
    assert!(known.len() > 60, "{known:?}");
    for file in ["prometheus-rules.yml", DASHBOARDS[0], DASHBOARDS[1]] {
        let used = named(&packaging(file), &known);
        let unknown: Vec<_> = used
            .iter()
            .filter(|name| !known.contains_key(*name))
            .collect();
        assert!(used.len() > 8 && unknown.is_empty(), "{file}: {unknown:?}");
    }
}

#[test]
fn each_alert_is_told() {
    let page = std::fs::read_to_string(root().join("docs/operations.md")).unwrap();
    let rules = packaging("prometheus-rules.yml");
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    let untold: Vec<_> = alerts
        .clone()
        .filter(|alert| !page.contains(&format!("`{alert}`")))
        .collect();
    assert!(alerts.count() > 10 && untold.is_empty(), "{untold:?}");
}

/// The expressions of a dashboard, with an interval in the place of Grafana's.
fn expressions(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let expression = |target: &Value| {
        target["expr"]
            .as_str()
            .unwrap()
            .replace("$__rate_interval", "1m")
    };
    targets.map(expression).collect()
}

/// What Grafana wants of a dashboard that it imports (its model of version 39): panels with numbers of their own, on a grid
/// without overlaps, that name the data source and have a query.
#[test]
fn dashboards_are_as_grafana_wants_them() {
    let mut names = BTreeSet::new();
    for file in DASHBOARDS {
        let dashboard: Value = serde_json::from_str(&packaging(file)).unwrap();
        assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 39, "{file}");
        assert!(
            names.insert(dashboard["uid"].as_str().unwrap().to_owned()),
            "{file}: uid"
        );
        let variables = dashboard["templating"]["list"].as_array().unwrap();
        let variables: Vec<_> = variables
            .iter()
            .map(|variable| variable["name"].as_str().unwrap())
            .collect();
        assert_eq!(variables, ["datasource", "instance"], "{file}");
        let (mut numbers, mut cells) = (BTreeSet::new(), BTreeSet::new());
        for panel in dashboard["panels"].as_array().unwrap() {
            let title = panel["title"].as_str().unwrap();
            let place = |key: &str| panel["gridPos"][key].as_u64().unwrap();
            assert!(
                numbers.insert(panel["id"].as_u64().unwrap()),
                "{file}: {title}: id"
            );
            assert_eq!(panel["type"], "timeseries", "{file}: {title}");
            assert_eq!(
                panel["datasource"]["uid"], "${datasource}",
                "{file}: {title}"
            );
            assert!(
                panel["fieldConfig"]["defaults"]["unit"].is_string(),
                "{file}: {title}"
            );
            assert!(place("x") + place("w") <= COLUMNS, "{file}: {title}");
            for x in place("x")..place("x") + place("w") {
                for y in place("y")..place("y") + place("h") {
                    assert!(cells.insert((x, y)), "{file}: {title} covers another");
                }
            }
            for target in panel["targets"].as_array().unwrap() {
                assert!(
                    target["expr"].as_str().unwrap().contains("$instance"),
                    "{file}: {title}"
                );
                assert!(target["legendFormat"].is_string(), "{file}: {title}");
            }
        }
        assert!(numbers.len() >= 10, "{file}");
    }
}

/// The program that reads rules as Prometheus does. `None`, with a line that says so, if there is none.
fn promtool() -> Option<Command> {
    let found = Command::new("promtool").arg("--version").output();
    if found.is_err() {
        eprintln!("skipped: no promtool; scripts/setup installs it");
    }
    found.ok().map(|_| Command::new("promtool"))
}

fn assert_succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&said)
    );
}

#[test]
fn promtool_reads_rules_and_dashboards() {
    let Some(mut promtool) = promtool() else {
        return;
    };
    let mut rules = "groups:\n- name: panels\n  rules:\n".to_owned();
    for file in DASHBOARDS {
        let dashboard = serde_json::from_str(&packaging(file)).unwrap();
        for (number, expression) in expressions(&dashboard).iter().enumerate() {
            let quoted = serde_json::to_string(expression).unwrap();
            let name = file.replace(['-', '.'], "_");
            writeln!(rules, "  - record: {name}_{number}\n    expr: {quoted}").unwrap();
        }
    }
    let place = Place::new();
    place.with("panels.yml", rules);
    let own = root().join("packaging/prometheus-rules.yml");
    assert_succeeds(
        promtool
            .args(["check", "rules"])
            .arg(own)
            .arg(place.path("panels.yml")),
    );
}

#[test]
fn alerts_fire_when_they_should() {
    let Some(mut promtool) = promtool() else {
        return;
    };
    let tests = root().join("crates/shortline/tests/docs/alerts.yml");
    let place = Place::new();
    place.with("prometheus-rules.yml", packaging("prometheus-rules.yml"));
    place.with("alerts.yml", std::fs::read_to_string(tests).unwrap());
    assert_succeeds(
        promtool
            .args(["test", "rules"])
            .arg(place.path("alerts.yml")),
    );
}
