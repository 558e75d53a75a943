//! The kept results of a run.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use shortline_bookstore::application::Execution;
use shortline_bookstore::browser::Summary;
use shortline_bookstore::{Interaction, Kind};
use shortline_load::RequestRecord;

use super::counters::Counters;
use super::gate_seen::GateSeen;
use super::{Door, Load, RESULTS, Run};
use crate::study::KeptError;
use crate::study::plan::read_json;

/// Points of a distribution, from the shortest to the longest.
const QUANTILES: usize = 21;
/// The most seconds kept of a run, more than any has.
const SECONDS_MAX: usize = 10_000;

/// A run and its results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The run.
    pub run: Run,
    /// The visitors' figures.
    pub summary: Summary,
    /// The machine's usage, from the end of the warm-up to the end of arrivals.
    pub counters: Counters,
    /// The gate's figures, if there was a gate.
    pub gate: Option<GateSeen>,
    /// By type: how long interactions occupied the database.
    pub executions: BTreeMap<Interaction, ExecutionTimes>,
    /// Second by second, from the beginning.
    pub by_second: Vec<Second>,
    /// The mean lateness of the starts of interactions.
    pub late_mean_s: f64,
    /// Sessions of the open loop that could not begin.
    pub turned_away: u64,
    /// How long a phase of the open loop was, in seconds.
    pub phase_s: Option<f64>,
    /// What it was made with. `None` in results of before this was kept.
    #[serde(default)]
    pub made_with: Option<MadeWith>,
}

/// What a run was made with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MadeWith {
    /// The commit of this program.
    pub commit: String,
    /// The kernel of the machine.
    pub kernel: String,
    /// Its congestion control.
    pub congestion_control: String,
    /// The database, with its version.
    pub database: String,
}

/// How long interactions of a type occupied the database, from the first statement to the last answer,
/// in seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExecutionTimes {
    /// How many.
    pub count: usize,
    /// The mean.
    pub mean_s: f64,
    /// The shortest, 19 values between at equal ranks, and the longest.
    pub quantiles_s: Vec<f64>,
}

/// A second of a run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Second {
    /// Interactions that ended well in it.
    pub finished: u32,
    /// Interactions that began in it.
    pub begun: u32,
    /// The sum of their times, in seconds.
    pub response_time_sum_s: f64,
}

/// The outcomes kept in a folder.
///
/// # Errors
/// If the file is missing or wrong.
pub fn read(folder: &Path) -> Result<Vec<Outcome>, KeptError> {
    read_json(&folder.join(RESULTS))
}

/// The capacity of a database for the mix of `open`, in finished interactions per second. It is the throughput of
/// the closed loop with the best number of browsers, in the mean of first come first served and no gate, or through the
/// best pool: one connection for each browser may cost the database a fifth of its speed. (The highest of many runs
/// would be the one that the machine disturbed least.)
///
/// Only the runs with the open loop's own seed count, if there are any: they were just before it, and a machine whose
/// memory others use too may be a fifth slower a few minutes later.
pub fn capacity_per_s(all: &[Outcome], database: Kind, open: Load, seed: u64) -> Option<f64> {
    let mut alike: BTreeMap<(Load, Option<Door>), Vec<f64>> = BTreeMap::new();
    let closed =
        |one: &&Outcome| one.run.database == database && one.run.load.measures_capacity_for(open);
    let own_seed = |one: &&Outcome| one.run.seed == seed;
    let has_own = all.iter().filter(closed).any(|one| own_seed(&one));
    for one in all
        .iter()
        .filter(closed)
        .filter(|one| !has_own || own_seed(one))
    {
        let pool = match one.run.door {
            Door::None | Door::FIFO => None,
            pool @ (Door::Pool { .. } | Door::PgBouncer { .. }) => Some(pool),
            Door::Gate { .. } => continue,
        };
        let done = alike.entry((one.run.load, pool)).or_default();
        done.push(one.summary.throughput_per_min / 60.0);
    }
    alike
        .values()
        .map(|done| done.iter().sum::<f64>() / done.len() as f64)
        .max_by(f64::total_cmp)
}

impl ExecutionTimes {
    /// The executions of each type that occurred.
    pub fn by_type(executions: &[Execution]) -> BTreeMap<Interaction, Self> {
        let mut by_type: BTreeMap<Interaction, Vec<f64>> = BTreeMap::new();
        for execution in executions {
            let times = by_type.entry(execution.interaction).or_default();
            times.push(execution.took_s);
        }
        by_type
            .into_iter()
            .map(|(interaction, times)| (interaction, Self::of(times)))
            .collect()
    }

    fn of(mut times: Vec<f64>) -> Self {
        times.sort_unstable_by(f64::total_cmp);
        let last = times.len().saturating_sub(1);
        let at = |place: usize| times.get(place * last / (QUANTILES - 1)).copied();
        Self {
            count: times.len(),
            mean_s: times.iter().sum::<f64>() / times.len().max(1) as f64,
            quantiles_s: (0..QUANTILES).filter_map(at).collect(),
        }
    }
}

/// A run second by second.
pub fn seconds_of(records: &[RequestRecord]) -> Vec<Second> {
    let mut seconds: Vec<Second> = Vec::new();
    let mut at = |time_s: f64, count: &dyn Fn(&mut Second)| {
        let place = time_s as usize;
        if place < SECONDS_MAX {
            if seconds.len() <= place {
                seconds.resize(place + 1, Second::default());
            }
            count(&mut seconds[place]);
        }
    };
    for record in records {
        at(record.at_s, &|second| {
            second.begun += 1;
            second.response_time_sum_s += record.response_time_s;
        });
        if record.ok() {
            at(record.at_s + record.response_time_s, &|second| {
                second.finished += 1;
            });
        }
    }
    seconds
}

/// Made-up runs, for the tests of reports.
#[cfg(test)]
pub mod made_up {
    use std::time::Duration;

    use super::*;
    use crate::study::shop::Load;
    use crate::study::shop::gate_seen::Wait;

    /// A gate in which nobody waited.
    fn gate() -> GateSeen {
        let wait = Wait {
            admitted: 1,
            mean_s: 0.0,
        };
        let names = [Interaction::Home, Interaction::BestSellers];
        GateSeen {
            waits: names.map(|each| (each.name().to_owned(), wait)).into(),
            ..GateSeen::default()
        }
    }

    /// `count` interactions each of home and of best sellers, which take ten times as long.
    pub fn run(door: Door, load: Load, seed: u64, count: u32, mean_s: f64) -> Outcome {
        let (seconds, warm_up) = (10, load.warm_up());
        let mut records = Vec::new();
        for n in 0..count {
            let at_s = warm_up.as_secs_f64() + 9.0 * f64::from(n) / f64::from(count);
            records.push(RequestRecord::finished(at_s, "/home", 10, mean_s));
            records.push(RequestRecord::finished(
                at_s,
                "/best_sellers",
                10,
                10.0 * mean_s,
            ));
        }
        let executions = [(Interaction::Home, 1.0), (Interaction::BestSellers, 10.0)];
        let executions = executions.map(|(interaction, times)| Execution {
            interaction,
            at_s: 7.0,
            took_s: times * mean_s,
        });
        Outcome {
            run: Run {
                database: Kind::Postgres,
                door,
                load,
                seed,
                seconds,
                capacity_ms: 40,
            },
            summary: Summary::of(&records, warm_up, warm_up + Duration::from_secs(seconds)),
            counters: Counters {
                database_user_share: 0.75,
                database_system_share: 0.25,
                others_share: 0.3,
                database_memory_mb: 400.0,
                free_memory_mb: 300.0,
                transfers_per_s: 30.0,
                network_mbit_per_s: 1.0,
                database_processes: 82,
                processes: 300,
                context_switches_per_s: 319.0,
                interrupts_per_s: 219.0,
            },
            gate: (door != Door::None).then(gate),
            executions: ExecutionTimes::by_type(&executions),
            by_second: seconds_of(&records),
            late_mean_s: 0.001,
            turned_away: 0,
            phase_s: None,
            made_with: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_go_from_the_shortest_to_the_longest() {
        let executions: Vec<Execution> = (0..=100)
            .rev()
            .map(|n| Execution {
                interaction: Interaction::Home,
                at_s: 0.0,
                took_s: f64::from(n),
            })
            .collect();
        let times = &ExecutionTimes::by_type(&executions)[&Interaction::Home];
        assert_eq!(times.count, 101);
        assert_eq!(times.mean_s, 50.0);
        assert_eq!(times.quantiles_s.len(), QUANTILES);
        assert_eq!(times.quantiles_s[1], 5.0);
        assert_eq!(times.quantiles_s[20], 100.0);
    }

    #[test]
    fn capacity_is_of_the_number_of_browsers_with_which_most_was_done() {
        let run =
            |door, browsers, count| made_up::run(door, Load::Browsers(browsers), 1, count, 0.01);
        let all = [
            run(Door::None, 10, 100),
            run(Door::FIFO, 10, 300),
            run(Door::None, 20, 250),
            run(Door::FIFO, 20, 50),
            run(Door::SJF, 20, 900),
        ];
        let capacity = |load| capacity_per_s(&all, Kind::Postgres, load, 2);
        // Two interactions of each type count, in 10 s.
        assert_eq!(capacity(Load::AlternatingClicks), Some(40.0));
        assert_eq!(capacity(Load::Alternating), None);
        let pooled = |size, count| run(Door::PgBouncer { size }, 20, count);
        let mut all = vec![
            pooled(8, 400),
            pooled(8, 200),
            pooled(4, 250),
            run(Door::None, 10, 290),
        ];
        let capacity = |seed| capacity_per_s(&all, Kind::Postgres, Load::AlternatingClicks, seed);
        assert_eq!(capacity(1), Some(60.0));
        // The runs of that seed, and where it has none, all.
        all.push(made_up::run(Door::None, Load::Browsers(10), 2, 50, 0.01));
        let capacity = |seed| capacity_per_s(&all, Kind::Postgres, Load::AlternatingClicks, seed);
        assert_eq!((capacity(2), capacity(3)), (Some(10.0), Some(60.0)));
    }

    #[test]
    fn an_interaction_begins_in_one_second_and_ends_in_another() {
        let records = [RequestRecord::finished(0.5, "/home", 1, 2.0)];
        let seconds = seconds_of(&records);
        assert_eq!(seconds.len(), 3);
        assert_eq!((seconds[0].begun, seconds[0].finished), (1, 0));
        assert_eq!((seconds[2].begun, seconds[2].finished), (0, 1));
    }
}
