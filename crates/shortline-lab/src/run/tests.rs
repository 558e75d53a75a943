//! The options of experiments, and those that are refused.

#![allow(clippy::unwrap_used)]
use super::*;

fn error_of(options: RunOptions) -> LabError {
    run(&options).unwrap_err()
}

#[test]
fn wrong_options_are_refused_before_anything_is_made() {
    let options = |id: &str| RunOptions {
        id: id.into(),
        out: Some("/no/such/place".into()),
        ..RunOptions::default()
    };
    let unknown = error_of(options("w11"));
    assert!(unknown.is_usage() && unknown.to_string().contains("`w11`"));
    let seconds = error_of(RunOptions {
        seconds: Some(0),
        ..options("w1")
    });
    assert_eq!(seconds.to_string(), "--seconds is 0: want 1 to 3600");
    let servers = error_of(RunOptions {
        servers: vec!["iis".into()],
        ..options("w1")
    });
    assert!(servers.is_usage() && servers.to_string().contains("`iis`"));
    let rate = error_of(RunOptions {
        rate: Some(Rate::from_bps(1)),
        ..options("memory")
    });
    assert!(rate.is_usage());
    let root = error_of(RunOptions {
        servers: vec!["nginx".into()],
        ..options("demo")
    });
    assert!(root.is_usage() && root.to_string().contains("`demo` cannot run `nginx`"));
}

#[test]
fn the_list_has_a_line_for_every_figure() {
    let list = list();
    let figures: usize = all()
        .iter()
        .map(|experiment| experiment.figures.len())
        .sum();
    assert_eq!(list.lines().count(), figures);
    for experiment in all() {
        let begin = format!("{} ", experiment.id);
        let lines = list.lines().filter(|line| line.starts_with(&begin));
        assert_eq!(lines.count(), experiment.figures.len(), "{begin}");
    }
}

#[test]
fn what_the_bed_does_not_have_is_refused_in_a_line() {
    let told = error_of(RunOptions {
        id: "throughput".into(),
        bed: BedKind::Uml,
        ..RunOptions::default()
    });
    assert!(
        told.is_usage() && told.to_string().contains("--bed does not apply"),
        "{told}"
    );
    let needing = all()
        .iter()
        .filter(|experiment| experiment.needs().is_some());
    let needing: Vec<&str> = needing.map(|experiment| &*experiment.id).collect();
    assert_eq!(needing, ["000-rto", "000-nasa-rto"]);
    if !shortline_testbed::bed::parameters::sets_initial_rto() {
        let told = error_of(RunOptions {
            id: "000-rto".into(),
            ..RunOptions::default()
        });
        assert!(
            told.to_string()
                .starts_with("experiment `000-rto` needs a kernel whose initial"),
            "{told}"
        );
    }
}
