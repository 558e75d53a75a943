//! The figures that claims about the bookstore compare.

use std::collections::BTreeSet;

use serde::Deserialize;
use shortline_bookstore::Interaction;

use super::figures::{self, Figures};
use super::{Door, Load, Outcome};
use crate::study::verdict::Better;

/// The seconds in which 002's estimates had to converge.
const CONVERGED_S: f64 = 50.0;
/// A type with fewer executions has no percentiles.
const EXECUTIONS_MIN: usize = 20;
/// Executions alone in 002's Table 1, in milliseconds, of the types whose row the scan shows whole.
const TABLE_1_MS: [(Interaction, f64); 11] = [
    (Interaction::AdminRequest, 2.84),
    (Interaction::AdminConfirm, 2476.75),
    (Interaction::BestSellers, 1205.01),
    (Interaction::BuyConfirm, 15.71),
    (Interaction::BuyRequest, 5.26),
    (Interaction::SearchResults, 73.27),
    (Interaction::Home, 1.83),
    (Interaction::NewProducts, 13.82),
    (Interaction::OrderDisplay, 7.43),
    (Interaction::SearchRequest, 0.22),
    (Interaction::ShoppingCart, 0.34),
];

/// A figure to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Throughput at twice the browsers of the first door's peak, over its peak, among the loads twice of which was run.
    HeldAtTwice,
    /// Highest throughput over the other's highest.
    PeakRatio,
    /// Throughput over the other's.
    ThroughputRatio,
    /// How many times shorter the mean response time of finished interactions is.
    FinishedGain,
    /// The same of all interactions.
    MeanGain,
    /// The mean response time of all interactions of a type over the other's.
    TypeRatio(Interaction),
    /// The same of the type that takes longest, among those that are not too rare.
    LongestRatio,
    /// How many times shorter requests of a type wait in the gate.
    WaitGain(Interaction),
    /// How long requests of a type wait in the gate, over the other's.
    WaitRatio(Interaction),
    /// How many times shorter requests of all types wait in the gate in the mean.
    MeanWaitGain,
    /// How long interactions of a type occupy the database, over the other's.
    ServiceRatio(Interaction),
    /// How long they occupy it in the scene, over how long alone, with the first door.
    BusyRatio(Interaction),
    /// How many times longer an execution of a type than another of the same type takes, alone, of the type where that is
    /// most: its 95th percentile over its fifth.
    ServiceSpreadWithin,
    /// Whether types cost about what they cost in 002's Table 1: the rank correlation of their executions alone.
    CostOrder,
    /// The number of types whose interactions take longer in the scene than alone.
    SlowerThanAlone,
    /// The longest type's mean execution over the shortest's, alone.
    ServiceSpread,
    /// The number of types whose estimate was right after 50 s.
    Converged,
    /// Throughput over that of the best fixed capacity.
    OfBestFixed,
    /// The seconds from a change until the throughput is at its final level.
    Settled,
    /// Throughput in the last third after a change over that of the best fixed capacity.
    AfterChangeOfBest,
    /// The database's processes and threads over the other's.
    ProcessesRatio,
    /// The database's memory over the other's.
    MemoryRatio,
    /// The share of its processor that the database used, in per cent.
    DatabaseShare,
}

/// What a check compares of the runs on a database.
#[derive(Clone, Copy, Debug)]
pub struct Sides {
    /// The first door.
    pub of: Door,
    /// The second.
    pub over: Door,
    /// The load, if runs have it.
    pub load: Option<Load>,
}

impl Measure {
    pub fn is_of_two(self) -> bool {
        !matches!(
            self,
            Self::HeldAtTwice
                | Self::SlowerThanAlone
                | Self::ServiceSpread
                | Self::ServiceSpreadWithin
                | Self::BusyRatio(_)
                | Self::CostOrder
                | Self::Converged
                | Self::OfBestFixed
                | Self::Settled
                | Self::AfterChangeOfBest
                | Self::DatabaseShare
        )
    }

    pub fn describe(self) -> String {
        let of = |what: &str, interaction: Interaction| format!("{what} of {interaction}");
        match self {
            Self::HeldAtTwice => {
                "throughput at twice the browsers of its own peak, over the peak".into()
            }
            Self::PeakRatio => "highest throughput, ratio".into(),
            Self::ThroughputRatio => "throughput, ratio".into(),
            Self::FinishedGain => "mean response time of the finished, times shorter".into(),
            Self::MeanGain => "mean response time of all, times shorter".into(),
            Self::TypeRatio(each) => of("mean response time", each) + ", ratio",
            Self::LongestRatio => "mean response time of the longest type, ratio".into(),
            Self::WaitGain(each) => of("mean wait in the gate", each) + ", times shorter",
            Self::WaitRatio(each) => of("mean wait in the gate", each) + ", ratio",
            Self::MeanWaitGain => "mean wait in the gate of all types, times shorter".into(),
            Self::BusyRatio(each) => of("mean execution time", each) + ", over that alone",
            Self::ServiceSpreadWithin => {
                "executions of one type, alone, 95th percentile over fifth, of the widest type"
                    .into()
            }
            Self::CostOrder => "rank correlation of types' executions alone with Table 1's".into(),
            Self::ServiceRatio(each) => of("mean execution time", each) + ", ratio",
            Self::SlowerThanAlone => "types whose execution takes longer than alone".into(),
            Self::ServiceSpread => "longest type's execution over the shortest's, alone".into(),
            Self::Converged => "types whose estimate was right within 50 s".into(),
            Self::OfBestFixed => "throughput over that of the best fixed capacity".into(),
            Self::Settled => "seconds from the change until throughput had settled".into(),
            Self::AfterChangeOfBest => {
                "throughput at the end over that of the best fixed capacity".into()
            }
            Self::ProcessesRatio => "the database's processes, ratio".into(),
            Self::MemoryRatio => "the database's memory, ratio".into(),
            Self::DatabaseShare => "the database's use of its processor, per cent".into(),
        }
    }

    /// The better side of a range, unless the check says another.
    pub fn better(self) -> Better {
        match self {
            Self::HeldAtTwice
            | Self::PeakRatio
            | Self::ThroughputRatio
            | Self::FinishedGain
            | Self::MeanGain
            | Self::WaitGain(_)
            | Self::MeanWaitGain
            | Self::Converged
            | Self::CostOrder
            | Self::OfBestFixed
            | Self::AfterChangeOfBest => Better::More,
            Self::ServiceSpread
            | Self::ServiceSpreadWithin
            | Self::SlowerThanAlone
            | Self::BusyRatio(_)
            | Self::DatabaseShare => Better::Neither,
            _ => Better::Less,
        }
    }

    /// Whether it is a throughput, which types that do not finish are not part of.
    pub fn is_throughput(self) -> bool {
        matches!(
            self,
            Self::HeldAtTwice | Self::PeakRatio | Self::ThroughputRatio
        )
    }

    /// The figure. `None` if it was not measured.
    pub fn value(self, set: &Figures<'_>, sides: Sides) -> Option<f64> {
        let Sides { of, over, load } = sides;
        let pair = |figure: &dyn Fn(&Outcome) -> Option<f64>| set.means((of, over), load?, figure);
        let ratio = |figure: &dyn Fn(&Outcome) -> Option<f64>| {
            pair(figure).and_then(|(of, over)| divided(of, over))
        };
        let gain = |figure: &dyn Fn(&Outcome) -> Option<f64>| {
            pair(figure).and_then(|(of, over)| divided(over, of))
        };
        let type_ratio = |interaction| {
            ratio(&move |run: &Outcome| Some(figures::seen(run, interaction)?.mean_s.mean))
        };
        match self {
            Self::HeldAtTwice => {
                let (_, held, highest) = set.twice_the_peak(of)?;
                divided(held, highest)
            }
            Self::PeakRatio => divided(set.peak(of)?.1, set.peak(over)?.1),
            Self::ThroughputRatio => ratio(&figures::throughput),
            Self::FinishedGain => gain(&figures::finished_s),
            Self::MeanGain => gain(&figures::all_s),
            Self::TypeRatio(interaction) => type_ratio(interaction),
            Self::LongestRatio => type_ratio(set.longest(of, over, load?)?),
            Self::WaitGain(interaction) => {
                gain(&move |run: &Outcome| figures::wait_s(run, interaction))
            }
            Self::WaitRatio(interaction) => {
                ratio(&move |run: &Outcome| figures::wait_s(run, interaction))
            }
            Self::MeanWaitGain => gain(&figures::mean_wait_s),
            Self::BusyRatio(interaction) => busy_ratio(set, of, load?, interaction),
            Self::ServiceSpreadWithin => service_spread_within(set),
            Self::CostOrder => cost_order(set),
            Self::ServiceRatio(interaction) => {
                ratio(&move |run: &Outcome| figures::service_s(run, interaction))
            }
            Self::SlowerThanAlone => slower_than_alone(set, of, load?),
            Self::ServiceSpread => service_spread(set),
            Self::Converged => set.mean(of, load?, converged),
            Self::OfBestFixed => of_best_fixed(set, of, load?, figures::throughput),
            Self::Settled => set.mean(of, load?, figures::settled_s),
            Self::AfterChangeOfBest => of_best_fixed(set, of, load?, figures::level_after_change),
            Self::ProcessesRatio => {
                ratio(&|run: &Outcome| Some(run.counters.database_processes as f64))
            }
            Self::MemoryRatio => ratio(&|run: &Outcome| Some(run.counters.database_memory_mb)),
            Self::DatabaseShare => {
                set.mean(of, load?, |run| Some(100.0 * run.counters.database_share()))
            }
        }
    }
}

/// The types of which none finished with that door at that load, though some were begun.
pub fn unfinished(set: &Figures<'_>, door: Door, load: Load) -> BTreeSet<Interaction> {
    let (mut begun, mut finished) = (BTreeSet::new(), BTreeSet::new());
    for run in set.runs(door, load) {
        for (interaction, seen) in &run.summary.types {
            begun.insert(*interaction);
            if seen.mean_finished_s.is_some() {
                finished.insert(*interaction);
            }
        }
    }
    begun.difference(&finished).copied().collect()
}

/// How long interactions of a type occupy the database at a load, over how long alone.
fn busy_ratio(set: &Figures<'_>, door: Door, load: Load, interaction: Interaction) -> Option<f64> {
    let of = |door, load| set.mean(door, load, |run| figures::service_s(run, interaction));
    divided(of(door, load)?, of(Door::None, Load::Alone)?)
}

fn service_spread_within(set: &Figures<'_>) -> Option<f64> {
    let runs = set.runs(Door::None, Load::Alone);
    let types = runs.flat_map(|run| run.executions.values());
    let spreads = types
        .filter(|times| times.count >= EXECUTIONS_MIN)
        .filter_map(|times| {
            let last = times.quantiles_s.len().checked_sub(2)?;
            divided(times.quantiles_s[last], times.quantiles_s[1])
        });
    spreads.max_by(f64::total_cmp)
}

/// Spearman's rank correlation over the types that were executed alone.
fn cost_order(set: &Figures<'_>) -> Option<f64> {
    let costs = TABLE_1_MS.iter().filter_map(|(interaction, table_ms)| {
        let own_s = set.mean(Door::None, Load::Alone, |run| {
            figures::service_s(run, *interaction)
        })?;
        Some((own_s, *table_ms))
    });
    let (own, table): (Vec<f64>, Vec<f64>) = costs.unzip();
    let count = own.len() as f64;
    let rank = |all: &[f64], value: f64| all.iter().filter(|other| **other < value).count() as f64;
    let squares = own
        .iter()
        .zip(&table)
        .map(|(one, other)| (rank(&own, *one) - rank(&table, *other)).powi(2));
    (count > 2.0).then(|| 1.0 - 6.0 * squares.sum::<f64>() / (count * (count * count - 1.0)))
}

fn slower_than_alone(set: &Figures<'_>, door: Door, load: Load) -> Option<f64> {
    let of =
        |door, load, interaction| set.mean(door, load, |run| figures::service_s(run, interaction));
    let mut compared = Interaction::ALL.into_iter().filter_map(|interaction| {
        let alone = of(Door::None, Load::Alone, interaction)?;
        Some(of(door, load, interaction)? > alone)
    });
    let first = compared.next()?;
    Some(compared.chain([first]).filter(|slower| *slower).count() as f64)
}

fn service_spread(set: &Figures<'_>) -> Option<f64> {
    let times = Interaction::ALL.into_iter().filter_map(|interaction| {
        set.mean(Door::None, Load::Alone, |run| {
            figures::service_s(run, interaction)
        })
    });
    let times: Vec<f64> = times.collect();
    let longest = times.iter().copied().max_by(f64::total_cmp)?;
    divided(longest, times.iter().copied().min_by(f64::total_cmp)?)
}

fn converged(run: &Outcome) -> Option<f64> {
    let types = &run.gate.as_ref()?.converged_s;
    let shop = |name: &&String| name.parse::<Interaction>().is_ok();
    let in_time = types
        .iter()
        .filter(|(name, at_s)| shop(name) && at_s.is_some_and(|at_s| at_s <= CONVERGED_S));
    Some(in_time.count() as f64)
}

/// The figure of a door over that of the best fixed capacity, in the mean over the seeds. The other seeds
/// decide which capacity is the best, so that chance does not choose it. With a single seed that one decides.
fn of_best_fixed(
    set: &Figures<'_>,
    door: Door,
    load: Load,
    figure: fn(&Outcome) -> Option<f64>,
) -> Option<f64> {
    let fixed: Vec<Door> = set
        .doors(Some(load))
        .into_iter()
        .filter(|door| door.fixed_ms().is_some())
        .collect();
    let value = |door, seed| {
        let mut runs = set.runs(door, load);
        figure(runs.find(|run| run.run.seed == seed)?)
    };
    let seeds: Vec<u64> = set.runs(door, load).map(|run| run.run.seed).collect();
    let mut ratios = Vec::new();
    for &seed in &seeds {
        let elsewhere = |door| {
            let others = seeds
                .iter()
                .filter(|other| seeds.len() == 1 || **other != seed);
            others.filter_map(|other| value(door, *other)).sum::<f64>()
        };
        let best = fixed
            .iter()
            .copied()
            .max_by(|one, other| elsewhere(*one).total_cmp(&elsewhere(*other)))?;
        ratios.push(divided(value(door, seed)?, value(best, seed)?)?);
    }
    (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
}

fn divided(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::outcome::{ExecutionTimes, made_up};
    use super::*;

    /// Executions of these types, as many times as in the table, and as different as said.
    fn alone(times: f64, widest: f64) -> Outcome {
        let mut run = made_up::run(Door::None, Load::Alone, 1, 40, 0.01);
        let of = |(interaction, ms): &(Interaction, f64)| {
            let quantiles_s =
                (0..21).map(|at| ms * (1.0 + (widest - 1.0) * f64::from(at - 1) / 18.0));
            let executions = ExecutionTimes {
                count: 20,
                mean_s: ms * times,
                quantiles_s: quantiles_s.collect(),
            };
            (*interaction, executions)
        };
        run.executions = TABLE_1_MS.iter().map(of).collect();
        run
    }

    fn value(measure: Measure, runs: &[Outcome], of: Door, load: Load) -> Option<f64> {
        let over = Door::FIFO;
        let load = Some(load);
        let sets = Figures::by_database(runs);
        measure.value(&sets[0], Sides { of, over, load })
    }

    #[test]
    fn costs_are_in_the_order_of_the_table_or_not() {
        let order = |run| value(Measure::CostOrder, &[run], Door::None, Load::Alone);
        assert_eq!(order(alone(0.05, 2.0)), Some(1.0));
        let mut swapped = alone(0.05, 2.0);
        let best_sellers = swapped
            .executions
            .get_mut(&Interaction::BestSellers)
            .unwrap();
        best_sellers.mean_s = 1e-6;
        assert!(order(swapped).unwrap() < 0.7);
        let spread = |run| {
            value(
                Measure::ServiceSpreadWithin,
                &[run],
                Door::None,
                Load::Alone,
            )
        };
        assert!((spread(alone(1.0, 10.0)).unwrap() - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_busy_database_takes_longer_than_alone() {
        let peak = Load::Browsers(90);
        let busy = Outcome {
            run: made_up::run(Door::None, peak, 1, 40, 0.01).run,
            ..alone(2.0, 2.0)
        };
        let ratio = Measure::BusyRatio(Interaction::BestSellers);
        let runs = [alone(1.0, 2.0), busy];
        assert!((value(ratio, &runs, Door::None, peak).unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(value(ratio, &runs[1..], Door::None, peak), None);
    }

    #[test]
    fn types_none_of_which_finished_are_named() {
        let peak = Load::Browsers(90);
        let mut run = made_up::run(Door::SJF, peak, 1, 40, 0.01);
        let set = |run: &Outcome| {
            unfinished(
                &Figures::by_database(std::slice::from_ref(run))[0],
                Door::SJF,
                peak,
            )
        };
        assert!(set(&run).is_empty());
        let best_sellers = run
            .summary
            .types
            .get_mut(&Interaction::BestSellers)
            .unwrap();
        best_sellers.mean_finished_s = None;
        assert_eq!(
            set(&run).into_iter().collect::<Vec<_>>(),
            [Interaction::BestSellers]
        );
    }

    #[test]
    fn waits_are_weighted_by_how_many_were_admitted() {
        let peak = Load::Browsers(90);
        let with_wait = |door, wait_s| {
            let mut run = made_up::run(door, peak, 1, 40, 0.01);
            let waits = &mut run.gate.as_mut().unwrap().waits;
            let home = waits.get_mut(Interaction::Home.name()).unwrap();
            (home.admitted, home.mean_s) = (3, wait_s);
            run
        };
        let runs = [with_wait(Door::SJF, 0.1), with_wait(Door::FIFO, 4.0)];
        let gain = value(Measure::MeanWaitGain, &runs, Door::SJF, peak).unwrap();
        assert!((gain - 40.0).abs() < 1e-9);
    }
}
