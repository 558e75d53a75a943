//! Every experiment: our own ([`own`]) and those of the four papers, as data.
//!
//! One experiment may be behind several figures of a paper: its runs are the same, and what is
//! drawn and claimed differs.

mod auto;
mod own;
mod paper000;
mod paper001;
mod paper002;
mod paper003;
mod paper004;

use super::claim::{Check, Figure, Plot};
use super::point::Point;
use super::{adversary, bookstore};
use crate::bed::Setup as Environment;

/// An experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name on the command line.
    pub id: &'static str,
    /// What it shows: the figures and tables that its runs are behind.
    pub figures: Vec<Figure>,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Response times over a saturated uplink.
    Uplink(Design),
    /// One client that attacks beside honest users.
    Adversary(adversary::Surface),
    /// Work per second of the server's processor time, without a bottleneck.
    Throughput,
    /// Resident memory with idle connections.
    Memory,
    /// The bookstore before a database, with and without a gate between.
    Bookstore(bookstore::Design),
}

/// What an experiment over an uplink runs.
#[derive(Clone, Debug)]
pub(super) struct Design {
    /// What its points differ in, with the unit; nothing if that is no number.
    pub axis: &'static str,
    /// Its points.
    pub points: Vec<Point>,
    /// The names of the servers, in turn.
    pub servers: Vec<&'static str>,
}

/// Every experiment, our own first.
pub fn all() -> Vec<Experiment> {
    let groups = [
        own::all(),
        auto::all(),
        paper000::all(),
        paper001::all(),
        paper002::all(),
        paper003::all(),
        paper004::all(),
    ];
    groups.into_iter().flatten().collect()
}

/// One of the environments that have names.
fn environment(name: &str) -> Environment {
    name.parse().expect("invariant: one of the setups' names")
}

fn uplink(
    id: &'static str,
    axis: &'static str,
    servers: &[&'static str],
    points: Vec<Point>,
    figures: Vec<Figure>,
) -> Experiment {
    Experiment {
        id,
        figures,
        kind: Kind::Uplink(Design {
            axis,
            points,
            servers: servers.to_vec(),
        }),
    }
}

fn figure(
    name: &'static str,
    claim: &'static str,
    shows: &'static [Plot],
    checks: Vec<Check>,
) -> Figure {
    Figure {
        name,
        claim,
        checks,
        shop_checks: Vec::new(),
        shows,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn designs() -> Vec<(&'static str, Design)> {
        let design = |experiment: Experiment| match experiment.kind {
            Kind::Uplink(design) => Some((experiment.id, design)),
            Kind::Adversary(_) | Kind::Throughput | Kind::Memory | Kind::Bookstore(_) => None,
        };
        all().into_iter().filter_map(design).collect()
    }

    #[test]
    fn ids_and_labels_are_told_apart_and_name_folders() {
        let ids: BTreeSet<&str> = all().iter().map(|experiment| experiment.id).collect();
        assert_eq!(ids.len(), all().len());
        for (id, design) in designs() {
            let labels: BTreeSet<&String> =
                design.points.iter().map(|point| &point.label).collect();
            assert_eq!(labels.len(), design.points.len(), "{id}");
            let good = |byte: u8| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte)
            };
            assert!(
                labels.iter().all(|label| label.bytes().all(good)),
                "{id}: {labels:?}"
            );
        }
    }

    #[test]
    fn every_server_has_a_name_that_is_known() {
        for (id, design) in designs() {
            for server in design.servers {
                assert!(server.parse::<crate::Server>().is_ok(), "{id}: {server}");
            }
        }
    }

    #[test]
    fn every_check_is_of_points_and_servers_that_there_are() {
        for experiment in all() {
            let Kind::Uplink(design) = &experiment.kind else {
                continue;
            };
            for check in experiment.figures.iter().flat_map(|figure| &figure.checks) {
                let at = |point: &Point| point.label.starts_with(check.at);
                assert!(design.points.iter().any(at), "{}: {check:?}", experiment.id);
                for server in check.of.iter().chain(&check.over) {
                    assert!(
                        design.servers.contains(server),
                        "{}: {check:?}",
                        experiment.id
                    );
                }
            }
        }
    }

    /// Item 8 of the lab's list: what `lab list` has a line for.
    #[test]
    fn every_figure_and_table_of_the_five_papers_is_there() {
        let names: Vec<&str> = all()
            .iter()
            .flat_map(|experiment| experiment.figures.iter().map(|figure| figure.name))
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
}
