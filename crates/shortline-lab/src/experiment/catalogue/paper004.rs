//! Paper 004, a thesis on scheduling by shortest remaining response time (SRRT) through
//! heterogeneous WANs: Tables 3 to 7 and Figs. 12 to 17, and the starvation of 5.3.3.
//!
//! SURGE's user equivalents, evenly behind the six WANs of its Table 2, at 10 and at 100
//! Mbit/s. Its improvement of p per cent is a mean 1/(1 - p/100) times shorter; its averages and
//! maxima by WAN (Tables 4 to 7) are over the numbers of users, as those of all WANs (Table 3).
//!
//! The paper's 120 users saturated 10 Mbit/s and its 960 users 100; ours ask for less, so there
//! are 3.3 and 4.2 times as many (docs/workloads.md).

use shortline_sched::units::Rate;

use super::{Experiment, environment, figure, uplink};
use crate::experiment::claim::Measure::{FinishedGain, LargestStretch, StarvedPercent};
use crate::experiment::claim::Plot::{GainByGroup, Mean, MeanByGroup, Stretch};
use crate::experiment::claim::{Across, Check, Clients, Want};
use crate::experiment::point::{Arrivals, Files, Point};

/// The groups of clients of the setup `wans`, the best network first.
const WANS: [&str; 6] = ["wan1", "wan2", "wan3", "wan4", "wan5", "wan6"];
const SERVERS: [&str; 4] = ["srrt", "srpt", "stert", "nginx"];
/// The paper ran 15 minutes.
const SECONDS: u64 = 60;

pub fn all() -> Vec<Experiment> {
    vec![at_10_mbit(), at_100_mbit()]
}

fn points(rate_bps: u64, users: &[u32]) -> Vec<Point> {
    let point = |users: &u32| {
        Point {
            rate: Rate::from_bps(rate_bps),
            ..Point::new(
                format!("users-{users:04}"),
                Arrivals::Users(*users),
                SECONDS,
            )
        }
        .at(f64::from(*users))
        .of(Files::Surge004)
        .with(|setup| setup.environment = environment("wans"))
    };
    users.iter().map(point).collect()
}

/// Improvements in the paper's words: SRRT on SRPT, SRRT on PS, SRPT on PS.
type Improvements = [&'static str; 3];

/// Each improvement as large as the paper's.
fn gains(across: Across, clients: Clients, papers: Improvements) -> Vec<Check> {
    let pairs = [("srrt", "srpt"), ("srrt", "nginx"), ("srpt", "nginx")];
    let check = |(paper, (of, over)): (&'static str, _)| {
        Check::new(FinishedGain, Want::AtLeast(times_shorter(paper)), paper)
            .of(of, over)
            .seen_by(clients)
            .across(across)
    };
    papers.into_iter().zip(pairs).map(check).collect()
}

/// What an improvement in per cent is as a ratio of means.
fn times_shorter(improvement: &str) -> f64 {
    let percent = improvement
        .split(' ')
        .next()
        .and_then(|number| number.parse().ok());
    let percent: f64 = percent.expect("invariant: an improvement begins with its per cent");
    1.0 / (1.0 - percent / 100.0)
}

/// A table of improvements, a row for each WAN.
fn by_wan(across: Across, rows: [Improvements; 6]) -> Vec<Check> {
    let rows = WANS.into_iter().zip(rows);
    rows.flat_map(|(wan, row)| gains(across, Clients::Group(wan), row))
        .collect()
}

/// The order of the curves of each WAN, all numbers of users together.
fn order_in_each_wan() -> Vec<Check> {
    let shorter = |(wan, (of, over))| {
        Check::new(FinishedGain, Want::AtLeast(1.0), "shorter")
            .of(of, over)
            .seen_by(Clients::Group(wan))
            .across(Across::Average)
    };
    let pairs = [("srrt", "srpt"), ("srpt", "nginx")];
    let curves = WANS
        .into_iter()
        .flat_map(|wan| pairs.map(|pair| (wan, pair)));
    curves.map(shorter).collect()
}

/// The improvements on PS fall from the best WAN to the worst.
fn better_in_better_wans(srrt_ps: &'static str, srpt_ps: &'static str) -> Vec<Check> {
    let larger = |(of, paper)| {
        Check::new(FinishedGain, Want::AtLeast(1.0), paper)
            .of(of, "nginx")
            .seen_by(Clients::GroupOver(WANS[0], WANS[5]))
            .across(Across::Average)
    };
    [("srrt", srrt_ps), ("srpt", srpt_ps)].map(larger).into()
}

fn at_10_mbit() -> Experiment {
    let average = gains(
        Across::Average,
        Clients::All,
        ["7.5 % on average", "13.6 % on average", "6.8 % on average"],
    );
    let most = gains(
        Across::Highest,
        Clients::All,
        ["13.2 % at most", "24.2 % at most", "13.7 % at most"],
    );
    let average_by_wan = by_wan(
        Across::Average,
        [
            ["6.3 %", "13.9 %", "8.3 %"],
            ["7.0 %", "13.9 %", "7.5 %"],
            ["7.2 %", "13.8 %", "7.4 %"],
            ["7.8 %", "13.8 %", "6.7 %"],
            ["8.1 %", "13.7 %", "6.3 %"],
            ["8.2 %", "12.6 %", "4.9 %"],
        ],
    );
    let most_by_wan = by_wan(
        Across::Highest,
        [
            ["12.0 %", "28.4 %", "18.7 %"],
            ["12.7 %", "24.4 %", "13.5 %"],
            ["15.9 %", "25.8 %", "14.4 %"],
            ["12.9 %", "23.4 %", "13.3 %"],
            ["14.4 %", "24.9 %", "14.5 %"],
            ["14.2 %", "23.8 %", "11.9 %"],
        ],
    );
    uplink(
        "004-10mbit",
        "user equivalents",
        &SERVERS,
        points(10_000_000, &[60, 180, 300, 420, 540, 660, 900, 1200]),
        vec![
            figure(
                "004 Fig. 12, 10 Mbit/s",
                "through six WANs SRRT is shorter than SRPT and both than PS, most after the link saturates at 120 users",
                &[Mean],
                average.clone(),
            ),
            figure(
                "004 Table 3, 10 Mbit/s",
                "SRRT improves on SRPT by 7.5 % on average (13.2 % at most), on PS by 13.6 % (24.2 %)",
                &[Mean],
                [average, most].concat(),
            ),
            figure(
                "004 Fig. 13",
                "each of the six WANs shows the same order: SRRT, SRPT, PS",
                &[MeanByGroup],
                order_in_each_wan(),
            ),
            figure(
                "004 Table 4",
                "by WAN SRRT improves on SRPT by 6.3 to 8.2 % and on PS by 12.6 to 13.9 % on average",
                &[MeanByGroup],
                average_by_wan,
            ),
            figure(
                "004 Table 5",
                "by WAN SRRT improves on SRPT by 12 to 15.9 % and on PS by 23.8 to 28.4 % at most",
                &[MeanByGroup],
                most_by_wan,
            ),
            figure(
                "004 Fig. 15",
                "the better the WAN the more SRRT and SRPT improve on PS",
                &[GainByGroup],
                better_in_better_wans("13.9 against 12.6 %", "8.3 against 4.9 %"),
            ),
            figure(
                "004 Fig. 17, 10 Mbit/s",
                "STERT improves on SRPT and PS, SRRT on STERT",
                &[Mean],
                vec![Check::new(FinishedGain, Want::AtLeast(1.0), "shorter").of("srrt", "stert")],
            ),
            figure(
                "004 sec. 5.3.3, 10 Mbit/s",
                "under SRPT 2.6 % of the requests starve, the largest 2.4 times",
                &[Stretch],
                vec![
                    Check::new(StarvedPercent, Want::AtMost(2.6), "2.6 %").of("srpt", "nginx"),
                    Check::new(LargestStretch, Want::AtMost(2.4), "2.4").of("srpt", "nginx"),
                ],
            ),
        ],
    )
}

fn at_100_mbit() -> Experiment {
    let average = gains(
        Across::Average,
        Clients::All,
        ["7.4 % on average", "7.1 % on average", "2.6 % on average"],
    );
    let most = gains(
        Across::Highest,
        Clients::All,
        ["11.6 % at most", "16.2 % at most", "5.8 % at most"],
    );
    let average_by_wan = by_wan(
        Across::Average,
        [
            ["5.2 %", "9.6 %", "4.9 %"],
            ["5.0 %", "8.1 %", "3.4 %"],
            ["5.0 %", "7.3 %", "2.5 %"],
            ["5.2 %", "7.2 %", "2.3 %"],
            ["4.9 %", "6.9 %", "2.2 %"],
            ["3.8 %", "5.9 %", "2.2 %"],
        ],
    );
    let most_by_wan = by_wan(
        Across::Highest,
        [
            ["16.6 %", "25.8 %", "11.1 %"],
            ["12.0 %", "20.3 %", "9.7 %"],
            ["12.3 %", "16.2 %", "5.1 %"],
            ["13.8 %", "17.4 %", "5.6 %"],
            ["12.8 %", "16.4 %", "5.8 %"],
            ["9.1 %", "12.4 %", "4.7 %"],
        ],
    );
    uplink(
        "004-100mbit",
        "user equivalents",
        &SERVERS,
        points(100_000_000, &[250, 1250, 2500, 3250, 3750, 4250, 4800]),
        vec![
            figure(
                "004 Fig. 12, 100 Mbit/s",
                "through six WANs the order is the same at 100 Mbit/s, from 780 users on",
                &[Mean],
                average.clone(),
            ),
            figure(
                "004 Table 3, 100 Mbit/s",
                "SRRT improves on SRPT by 7.4 % on average (11.6 % at most), on PS by 7.1 % (16.2 %)",
                &[Mean],
                [average, most].concat(),
            ),
            figure(
                "004 Fig. 14",
                "each of the six WANs shows the same order: SRRT, SRPT, PS",
                &[MeanByGroup],
                order_in_each_wan(),
            ),
            figure(
                "004 Table 6",
                "by WAN SRRT improves on SRPT by 3.8 to 5.2 % and on PS by 5.9 to 9.6 % on average",
                &[MeanByGroup],
                average_by_wan,
            ),
            figure(
                "004 Table 7",
                "by WAN SRRT improves on SRPT by 9.1 to 16.6 % and on PS by 12.4 to 25.8 % at most",
                &[MeanByGroup],
                most_by_wan,
            ),
            figure(
                "004 Fig. 16",
                "the better the WAN the more SRRT and SRPT improve on PS",
                &[GainByGroup],
                better_in_better_wans("9.6 against 5.9 %", "4.9 against 2.2 %"),
            ),
            figure(
                "004 Fig. 17, 100 Mbit/s",
                "STERT improves on SRPT and PS, SRRT on STERT",
                &[Mean],
                vec![Check::new(FinishedGain, Want::AtLeast(1.0), "shorter").of("srrt", "stert")],
            ),
            figure(
                "004 sec. 5.3.3, 100 Mbit/s",
                "under SRPT 2.3 % of the requests starve, the largest 2.1 times",
                &[Stretch],
                vec![
                    Check::new(StarvedPercent, Want::AtMost(2.3), "2.3 %").of("srpt", "nginx"),
                    Check::new(LargestStretch, Want::AtMost(2.1), "2.1").of("srpt", "nginx"),
                ],
            ),
        ],
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_improvement_in_per_cent_is_a_ratio_of_means() {
        assert_eq!(times_shorter("50 % at most"), 2.0);
        let checks = gains(Across::Average, Clients::All, ["20 %", "0 %", "75 %"]);
        let wanted: Vec<Want> = checks.iter().map(|check| check.want).collect();
        assert_eq!(wanted, [1.25, 1.0, 4.0].map(Want::AtLeast));
    }

    #[test]
    fn the_tables_by_wan_are_about_groups_that_the_setup_has() {
        for experiment in all() {
            for check in experiment.figures.iter().flat_map(|figure| &figure.checks) {
                let named = match check.clients {
                    Clients::All => vec![],
                    Clients::Group(group) => vec![group],
                    Clients::GroupOver(group, other) => vec![group, other],
                };
                let groups = environment("wans").groups;
                let has = |name: &&str| groups.iter().any(|group| group.name == **name);
                assert!(named.iter().all(has), "{named:?}");
            }
        }
        let checks = |name: &str| {
            let all = all();
            let mut figures = all.iter().flat_map(|experiment| &experiment.figures);
            figures
                .find(|figure| figure.name == name)
                .unwrap()
                .checks
                .len()
        };
        assert_eq!(
            ["004 Table 4", "004 Table 7", "004 Fig. 15"].map(checks),
            [18, 18, 2]
        );
    }
}
