//! Computes figures from the runs of an experiment: means over seeds, and the peak with its place.

use std::collections::{BTreeMap, BTreeSet};

use shortline_bookstore::browser::{Estimate, TypeSummary};
use shortline_bookstore::{Interaction, Kind};

use super::{Door, Load, Outcome};

/// Fewer browsers count as the peak if they reach this share of it.
const AT_PEAK: f64 = 0.97;
/// A type with fewer interactions is too rare to be compared.
const TYPE_COUNT_MIN: usize = 20;
/// A run has settled when its throughput reaches this share of its final level.
const SETTLED: f64 = 0.95;
/// The seconds over which that throughput is averaged.
const SETTLED_SECONDS: usize = 8;

/// The runs on one database.
#[derive(Clone, Debug)]
pub struct Figures<'a> {
    /// The database.
    pub database: Kind,
    runs: Vec<&'a Outcome>,
}

impl<'a> Figures<'a> {
    /// A set for each database with runs.
    pub fn by_database(all: &'a [Outcome]) -> Vec<Self> {
        let of = |database| Self {
            database,
            runs: all
                .iter()
                .filter(|one| one.run.database == database)
                .collect(),
        };
        let sets = Kind::ALL.into_iter().map(of);
        sets.filter(|figures| !figures.runs.is_empty()).collect()
    }

    /// The same runs with one seed alone.
    #[must_use]
    pub fn of_seed(&self, seed: u64) -> Self {
        let of = |one: &&&Outcome| one.run.seed == seed;
        Self {
            database: self.database,
            runs: self.runs.iter().filter(of).copied().collect(),
        }
    }

    /// The seeds.
    pub fn seeds(&self) -> BTreeSet<u64> {
        self.runs.iter().map(|one| one.run.seed).collect()
    }

    /// The loads, fewest browsers first.
    pub fn loads(&self) -> BTreeSet<Load> {
        self.runs.iter().map(|one| one.run.load).collect()
    }

    /// The doors at that load, or at any load, in the order of 002's legends.
    pub fn doors(&self, load: Option<Load>) -> BTreeSet<Door> {
        let at = |one: &&&Outcome| load.is_none_or(|load| one.run.load == load);
        self.runs
            .iter()
            .filter(at)
            .map(|one| one.run.door)
            .collect()
    }

    /// The runs with that door at that load, one for each seed.
    pub fn runs(&self, door: Door, load: Load) -> impl Iterator<Item = &'a Outcome> + '_ {
        let runs = self.runs.iter().copied();
        runs.filter(move |one| one.run.door == door && one.run.load == load)
    }

    /// A figure of these runs, with its interval over the seeds.
    pub fn estimate(
        &self,
        door: Door,
        load: Load,
        of: impl Fn(&Outcome) -> Option<f64>,
    ) -> Option<Estimate> {
        let values: Vec<f64> = self.runs(door, load).filter_map(of).collect();
        Estimate::of(&values)
    }

    /// The mean of a figure over the seeds.
    pub fn mean(
        &self,
        door: Door,
        load: Load,
        of: impl Fn(&Outcome) -> Option<f64>,
    ) -> Option<f64> {
        Some(self.estimate(door, load, of)?.mean)
    }

    /// The means of a figure of two doors, over the seeds that both were run with. Other seeds have other arrivals,
    /// and the machine may have been in another state.
    pub fn means(
        &self,
        doors: (Door, Door),
        load: Load,
        of: impl Fn(&Outcome) -> Option<f64>,
    ) -> Option<(f64, f64)> {
        let by_seed = |door| -> BTreeMap<u64, f64> {
            let runs = self.runs(door, load);
            runs.filter_map(|run| Some((run.run.seed, of(run)?)))
                .collect()
        };
        let (first, second) = (by_seed(doors.0), by_seed(doors.1));
        let both = first
            .iter()
            .filter_map(|(seed, first)| Some((*first, *second.get(seed)?)));
        let (first, second): (Vec<f64>, Vec<f64>) = both.unzip();
        Some((Estimate::of(&first)?.mean, Estimate::of(&second)?.mean))
    }

    /// Finished interactions a minute by the number of browsers, in the mean over the seeds.
    pub fn throughput(&self, door: Door) -> Vec<(usize, f64)> {
        self.by_browsers(door, throughput)
    }

    /// A figure by the number of browsers, in the mean over the seeds.
    pub fn by_browsers(
        &self,
        door: Door,
        of: impl Fn(&Outcome) -> Option<f64>,
    ) -> Vec<(usize, f64)> {
        let loads = self.loads().into_iter();
        loads
            .filter_map(|load| Some((load.browsers()?, self.mean(door, load, &of)?)))
            .collect()
    }

    /// The highest throughput of a door, and the fewest browsers that about reach it.
    pub fn peak(&self, door: Door) -> Option<(usize, f64)> {
        peak_of(&self.throughput(door))
    }

    /// The load with twice the browsers of a door's own peak, or the next load above, with its throughput and that at the
    /// peak. The peak is that of the loads for which twice as many browsers were run, too: what rises beyond them has not
    /// fallen. `None` if there is no such load.
    pub fn twice_the_peak(&self, door: Door) -> Option<(Load, f64, f64)> {
        let curve = self.throughput(door);
        let (most, _) = *curve.last()?;
        let below = curve.partition_point(|(browsers, _)| 2 * browsers <= most);
        let (at_peak, highest) = peak_of(&curve[..below])?;
        let mut above = curve.into_iter();
        let (twice, held) = above.find(|(browsers, _)| *browsers >= 2 * at_peak)?;
        Some((Load::Browsers(twice), held, highest))
    }

    /// The load of the most browsers.
    pub fn most(&self) -> Option<Load> {
        let mut loads = self.loads().into_iter();
        loads.rfind(|load| load.browsers().is_some())
    }

    /// The type with the longest execution there, among those that are common enough with both doors.
    pub fn longest(&self, one: Door, other: Door, load: Load) -> Option<Interaction> {
        let common = |interaction: &Interaction| {
            [one, other].iter().all(|door| {
                let runs = self.runs(*door, load);
                let counts = runs.filter_map(|run| Some(run.summary.types.get(interaction)?.count));
                counts.sum::<usize>() >= TYPE_COUNT_MIN
            })
        };
        let longest =
            |interaction: &Interaction| self.mean(other, load, |run| service_s(run, *interaction));
        Interaction::ALL
            .into_iter()
            .filter(common)
            .filter_map(|interaction| Some((interaction, longest(&interaction)?)))
            .max_by(|one, other| one.1.total_cmp(&other.1))
            .map(|(interaction, _)| interaction)
    }
}

/// The highest throughput of a curve, and the fewest browsers that about reach it.
fn peak_of(curve: &[(usize, f64)]) -> Option<(usize, f64)> {
    let values = curve.iter().map(|(_, value)| *value);
    let highest = values.max_by(f64::total_cmp)?;
    let at = curve
        .iter()
        .find(|(_, value)| *value >= AT_PEAK * highest)?;
    Some((at.0, highest))
}

/// Finished interactions a minute.
pub fn throughput(run: &Outcome) -> Option<f64> {
    Some(run.summary.throughput_per_min)
}

/// The mean response time of the finished interactions, as 002 counts, in seconds.
pub fn finished_s(run: &Outcome) -> Option<f64> {
    run.summary.all.as_ref()?.mean_finished_s
}

/// The mean response time of all interactions, in seconds.
pub fn all_s(run: &Outcome) -> Option<f64> {
    Some(run.summary.all.as_ref()?.mean_s.mean)
}

/// The visitors' figures of a type.
pub fn seen(run: &Outcome, interaction: Interaction) -> Option<&TypeSummary> {
    run.summary.types.get(&interaction)
}

/// The mean wait of a type's requests in the gate, in seconds. 0 without a gate.
pub fn wait_s(run: &Outcome, interaction: Interaction) -> Option<f64> {
    match &run.gate {
        None => Some(0.0),
        Some(gate) => Some(gate.waits.get(interaction.name())?.mean_s),
    }
}

/// The mean wait of all requests in the gate, in seconds. 0 without a gate.
pub fn mean_wait_s(run: &Outcome) -> Option<f64> {
    let Some(gate) = &run.gate else {
        return Some(0.0);
    };
    let admitted: u64 = gate.waits.values().map(|wait| wait.admitted).sum();
    let waits = gate.waits.values();
    let sum_s: f64 = waits.map(|wait| wait.admitted as f64 * wait.mean_s).sum();
    (admitted > 0).then(|| sum_s / admitted as f64)
}

/// The mean time that interactions of a type occupied the database, without their wait in the gate, in
/// seconds. It is the difference of two means. One is over the interactions that began in the run, the other
/// over those admitted in it. `None` if waits change so much that the difference is not positive.
pub fn service_s(run: &Outcome, interaction: Interaction) -> Option<f64> {
    let whole_s = run.executions.get(&interaction)?.mean_s;
    let difference_s = whole_s - wait_s(run, interaction)?;
    (difference_s > 0.0).then_some(difference_s)
}

/// When arrivals of the open loop end, in seconds from the run's beginning.
pub fn arrivals_end_s(run: &Outcome) -> f64 {
    run.run.load.warm_up().as_secs_f64() + run.run.seconds as f64
}

/// When something changes, in seconds from the run's beginning.
pub fn change_s(run: &Outcome) -> f64 {
    run.run.load.warm_up().as_secs_f64() + run.run.seconds as f64 / 2.0
}

/// The final level: interactions finished per second in the last third of the time after the change.
pub fn level_after_change(run: &Outcome) -> Option<f64> {
    let (begin, end) = after_change(run);
    let last_third = begin + (end - begin) * 2 / 3;
    mean_finished(run, last_third, end)
}

/// The seconds until the throughput first was at its final level for a while.
pub fn settled_s(run: &Outcome) -> Option<f64> {
    let level = level_after_change(run)?;
    let (begin, end) = after_change(run);
    let found = (begin..=end.checked_sub(SETTLED_SECONDS)?).find(|from| {
        mean_finished(run, *from, from + SETTLED_SECONDS).is_some_and(|now| now >= SETTLED * level)
    })?;
    Some((found - begin) as f64)
}

/// The whole seconds from the change to the end.
fn after_change(run: &Outcome) -> (usize, usize) {
    let begin = change_s(run).ceil() as usize;
    let end = run.run.load.warm_up().as_secs() as usize + run.run.seconds as usize;
    (begin, end.min(run.by_second.len()))
}

fn mean_finished(run: &Outcome, from: usize, to: usize) -> Option<f64> {
    let seconds = run.by_second.get(from..to)?;
    let finished: u32 = seconds.iter().map(|second| second.finished).sum();
    (to > from).then(|| f64::from(finished) / (to - from) as f64)
}
