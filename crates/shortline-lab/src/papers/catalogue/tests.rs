//! The files of the studies: all can be read, and they cover what they must.

#![allow(clippy::unwrap_used)]
use std::collections::BTreeSet;

use shortline_sched::units::Rate;

use shortline_testbed::server::Server;

use super::*;
use crate::papers::{PAPERS, claims_of};
use crate::study::claim::{Check, LinkCheck};
use crate::study::design::{Design, Kind};
use crate::study::shop::Load;
use crate::study::verdict::Want;

fn designs() -> Vec<(&'static str, &'static Design)> {
    let design = |experiment: &'static Experiment| match &experiment.kind {
        Kind::Uplink(design) => Some((&*experiment.id, design)),
        Kind::Adversary(_)
        | Kind::Throughput
        | Kind::Versus(_)
        | Kind::Memory(_)
        | Kind::Bookstore(_)
        | Kind::Application(_) => None,
    };
    all().iter().filter_map(design).collect()
}

#[test]
fn ids_and_labels_are_told_apart_and_name_folders() {
    let ids: BTreeSet<&str> = all().iter().map(|experiment| &*experiment.id).collect();
    assert_eq!(ids.len(), all().len());
    for (id, design) in designs() {
        let labels: BTreeSet<&String> = design.points.iter().map(|point| &point.label).collect();
        assert_eq!(labels.len(), design.points.len(), "{id}");
        let good =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
        assert!(
            labels.iter().all(|label| label.bytes().all(good)),
            "{id}: {labels:?}"
        );
    }
}

#[test]
fn every_server_has_a_name_that_is_known() {
    for (id, design) in designs() {
        for server in &design.servers {
            assert!(server.parse::<Server>().is_ok(), "{id}: {server}");
        }
    }
}

#[test]
fn every_file_is_read_and_is_in_the_catalogue() {
    for file in FILES {
        let read = file.parse();
        assert!(read.is_ok(), "{}", read.unwrap_err());
    }
    let mut there = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in std::fs::read_dir(root.join("studies")).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            there.push(file.unwrap().path());
        }
    }
    let mut listed: Vec<_> = FILES.iter().map(|file| root.join(file.path)).collect();
    there.sort();
    listed.sort();
    assert_eq!(there, listed);
}

#[test]
fn a_file_can_be_copied() {
    for file in FILES {
        assert_eq!(text_of(file.id), Some(file.text));
        let copy = file::parse(Path::new("mine.toml"), "mine", file.text, Traces::AsWritten);
        assert_eq!(copy.unwrap().id, "mine");
        assert!(
            file.text.starts_with("# "),
            "{} says not what it is about",
            file.path
        );
    }
    assert_eq!(text_of("w11"), None);
}

/// Item 8 of the lab's list: what `lab list` has a line for.
#[test]
fn every_figure_and_table_of_the_five_papers_is_there() {
    let names: Vec<&str> = all()
        .iter()
        .flat_map(|experiment| experiment.figures.iter().map(|figure| &*figure.name))
        .collect();
    let mut wanted: Vec<String> = Vec::new();
    wanted.extend((2..=6).map(|n| format!("001 Fig. {n}")));
    wanted.extend((3..=11).map(|n| format!("003 Fig. {n}")));
    wanted.extend((6..=16).map(|n| format!("000 Fig. {n}")));
    // Figs. 1 and 4 of 002 show where the gate stands.
    wanted.extend(
        (2..=15)
            .filter(|n| *n != 4)
            .map(|n| format!("002 Fig. {n}")),
    );
    wanted.extend((1..=2).map(|n| format!("002 Table {n}")));
    wanted.extend((12..=17).map(|n| format!("004 Fig. {n}")));
    wanted.extend((3..=7).map(|n| format!("004 Table {n}")));
    wanted.extend(
        [
            "000 Table I",
            "000 Table II",
            "000 sec. 6.1",
            "000 sec. 6.2",
        ]
        .map(String::from),
    );
    for wanted in wanted {
        let begins = |name: &&str| {
            name.strip_prefix(wanted.as_str())
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit() || c == 'I'))
        };
        assert!(names.iter().any(begins), "{wanted}");
    }
}

/// 001, 4.2.
#[test]
fn half_of_the_users_are_behind_a_tenth_of_the_rate_whatever_it_is() {
    let designs = designs();
    let (_, load) = designs.iter().find(|(id, _)| *id == "001-load").unwrap();
    for rate_bps in [100_000_000, 20_000_000] {
        let point = load.points[0].clone().at_rate(Rate::from_bps(rate_bps));
        let [fast, slow] = &point.setup.environment.groups[..] else {
            panic!("two groups: {:?}", point.setup.environment.groups);
        };
        assert!(fast.is_local() && fast.share == slow.share);
        let tenth = Some(Rate::from_bps(rate_bps / 10));
        assert_eq!((slow.down.rate, slow.up.rate), (tenth, tenth));
    }
}

#[test]
fn twice_the_browsers_of_the_peak_are_there() {
    for id in ["002-application", "002-database"] {
        let experiment = all().iter().find(|experiment| experiment.id == id).unwrap();
        let Kind::Bookstore(design) = &experiment.kind else {
            panic!("{id}");
        };
        for stage in &design.stages {
            let loads = stage.steps.iter().map(|step| step.load);
            let browsers: Vec<usize> = loads.filter_map(Load::browsers).collect();
            let most = browsers.iter().copied().max();
            assert!(browsers.iter().any(|few| Some(2 * few) == most));
        }
    }
}

/// An improvement of p per cent in 004 is a mean that is 1/(1 - p/100) times shorter.
#[test]
fn improvements_are_as_large_as_the_papers() {
    let figures = || all().iter().flat_map(|experiment| &experiment.figures);
    let checks = |name: &str| -> Vec<&LinkCheck> {
        let figure = figures().find(|figure| figure.name == name).unwrap();
        let checks = figure.clauses.iter().flat_map(|clause| &clause.checks);
        checks
            .map(|check| match check {
                Check::Link(check) => check,
                Check::Shop(other) => panic!("{other:?}"),
            })
            .collect()
    };
    let tables = ["004 Table 4", "004 Table 7", "004 Fig. 15"];
    assert_eq!(tables.map(|name| checks(name).len()), [18, 18, 2]);
    for check in ["004 Table 3, 10 Mbit/s", "004 Table 4"]
        .into_iter()
        .flat_map(checks)
    {
        let percent: f64 = check.paper.split(' ').next().unwrap().parse().unwrap();
        let times = |percent: f64| 1.0 / (1.0 - percent / 100.0);
        assert_eq!(
            check.want,
            Want::Between(times(0.5 * percent), times(1.5 * percent))
        );
    }
}

/// The parser refuses a clause without a check. That a figure of a paper has clauses at all, it cannot know.
#[test]
fn every_claim_of_a_paper_has_clauses_with_checks() {
    let of_papers = PAPERS.iter().flat_map(|(number, _)| claims_of(number));
    for (experiment, figure) in of_papers {
        let id = &experiment.id;
        assert!(!figure.clauses.is_empty(), "{id}: {}", figure.name);
        for clause in &figure.clauses {
            let is_papers = |check: &Check| match check {
                Check::Link(check) => check.is_papers(),
                Check::Shop(check) => check.is_papers(),
            };
            let all = !clause.checks.is_empty() && clause.checks.iter().all(is_papers);
            assert!(all, "{}: {}", figure.name, clause.says);
        }
        let says: Vec<&str> = figure
            .clauses
            .iter()
            .map(|clause| clause.says.as_str())
            .collect();
        assert_eq!(figure.claim, says.join("; "));
    }
}

/// 000 and 003 had the kernel's bands and Apache, and the FAIR of theory stands beside nginx.
#[test]
fn the_papers_own_systems_are_in_each_experiment() {
    for (id, design) in designs() {
        let wanted: &[&str] = match &id[..3.min(id.len())] {
            "000" => &["kernel-bands", "apache", "nginx", "nginx-fq"],
            "003" => &["kernel-bands", "apache", "nginx", "nginx-fq"],
            "001" => &["writers-srpt", "writers-fair", "apache", "nginx-fq"],
            "004" => &["kernel-srrt", "kernel-stert", "kernel-bands", "nginx-fq"],
            _ => &[],
        };
        for server in wanted {
            assert!(
                design.servers.iter().any(|run| run == server),
                "{id}: {server}"
            );
        }
    }
}
