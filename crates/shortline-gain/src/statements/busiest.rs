//! The busiest hour under each order.
//!
//! **What a statement needs.** A database of k processors that has n statements under way gives each min(1, k/n) of one
//! (processor sharing). So a statement that was there from a to e needed
//!
//! ```text
//! work = integral from a to e of min(1, k / n(t)) dt
//! ```
//!
//! which turns the log's durations back into work exactly, if the database shares so. Locks and disks count as work.
//!
//! **The orders.** As found are the durations of the log itself. The other two have the gate's own code in front
//! ([`shortline_sim::GatedBackend`]): one that admits as many as there are processors, first come first served; and one with its
//! defaults, which finds by itself how much to admit and learns what each type takes. Arrivals are those of the log, however early
//! answers come.

use std::num::NonZeroUsize;

use serde::Serialize;
use shortline_sched::admission::{AdmissionConfig, Capacity, OldestShare, Order};
use shortline_sim::{GatedBackend, NamedArrival, SimError};

use super::{Kept, S_PER_HOUR, Statements, US_PER_S};
use crate::GainError;
use crate::gain::Basis;
use crate::waits::{Collected, Waits};

/// What is compared, in the order of tables.
pub(crate) const ORDERS: [&str; 3] = ["as found", "FIFO", "Shortline"];
/// As found, first come first served, behind the gate.
pub(crate) const FOUND: usize = 0;
pub(crate) const FIFO: usize = 1;
pub(crate) const OURS: usize = 2;

/// What each order would have given.
#[derive(Clone, Debug, Serialize)]
pub struct DatabaseGain {
    /// The logs' names.
    pub logs: Vec<String>,
    /// The first second, since 1970.
    pub from_unix_s: u32,
    /// The last.
    pub to_unix_s: u32,
    /// How many statements.
    pub statements: u64,
    /// How many types they have.
    pub kinds_count: usize,
    /// What did not become a statement, a line each.
    pub notes: Vec<String>,
    /// How many statements the database works on at once.
    pub processors: u32,
    /// Where that is from.
    pub processors_from: Basis,
    /// The hours that have a statement, in order.
    pub hours: Vec<DatabaseHour>,
    /// The hour that is compared, in seconds since 1970.
    pub busiest_unix_s: u32,
    /// How much of it the logs cover, in seconds.
    pub covered_s: f64,
    /// How long in it more statements were under way than there are processors.
    pub full_s: f64,
    /// The most under way at once.
    pub under_way_max: u32,
    /// The work that came in it over what the processors can do.
    pub load: f64,
    /// The types, those with most work first.
    pub kinds: Vec<Kind>,
    /// How many statements that is.
    pub busiest_statements: u64,
    /// All of them, in each order.
    pub waits: [Waits; 3],
}

/// An hour.
#[derive(Clone, Debug, Serialize)]
pub struct DatabaseHour {
    /// Its beginning, in seconds since 1970.
    pub begin_unix_s: u32,
    /// How many statements began in it.
    pub statements: u64,
    /// How many were under way in the mean.
    pub under_way: f64,
}

/// A type in the busiest hour.
#[derive(Clone, Debug, Serialize)]
pub struct Kind {
    /// The statement without its constants.
    pub name: String,
    /// How many.
    pub statements: u64,
    /// Its part of all work.
    pub work_share: f64,
    /// From arrival to answer, in each order.
    pub waits: [Waits; 3],
}

/// A statement's work and what came of it, in microseconds.
struct Outcome {
    work_us: Vec<f64>,
    full_us: f64,
    under_way_max: usize,
}

impl Statements {
    /// What each order would have given in the busiest hour, with so many processors; without a number so many as the hour
    /// would just fill.
    ///
    /// # Errors
    /// The statements cannot be simulated.
    pub fn gain(&self, processors: Option<NonZeroUsize>) -> Result<DatabaseGain, GainError> {
        let hour = self.busiest_hour();
        let covered_s = self.covered_s(hour);
        let busy_s = self.hours[&hour].busy_us as f64 / 1e6;
        let fills = NonZeroUsize::new((busy_s / covered_s).ceil() as usize);
        let places = processors.or(fills).unwrap_or(NonZeroUsize::MIN);
        let mut statements = self.kept[&hour].clone();
        // Those of one moment stay in the log's order.
        statements.sort_by_key(|statement| statement.begin_us);
        let found = outcome(&statements, places.get() as f64);
        let answered = |admission| self.answered(&statements, &found.work_us, places, admission);
        let first_come = AdmissionConfig {
            order: Order::Fifo,
            oldest_share: OldestShare::NONE,
            running_max: Some(places),
            ..AdmissionConfig::default()
        };
        let ours = AdmissionConfig {
            capacity: Capacity::Auto,
            ..AdmissionConfig::default()
        };
        let orders = [Vec::new(), answered(first_come)?, answered(ours)?];
        let answered_s = |order: usize, index: usize| match order {
            FOUND => f64::from(statements[index].duration_us) / 1e6,
            order => orders[order][index] as f64 / 1e9,
        };
        let waits = |indexes: &[u32]| {
            [FOUND, FIFO, OURS].map(|order| {
                let mut collected = Collected::default();
                for index in indexes {
                    collected.add(answered_s(order, *index as usize));
                }
                collected.waits()
            })
        };
        let all: Vec<u32> = (0..statements.len() as u32).collect();
        let work_us: f64 = found.work_us.iter().sum();
        Ok(DatabaseGain {
            logs: self
                .names
                .iter()
                .map(|name| name.display().to_string())
                .collect(),
            from_unix_s: seconds(self.from_us),
            to_unix_s: seconds(self.to_us),
            statements: self.count(),
            kinds_count: self.kinds.count(),
            notes: self.notes.clone(),
            processors: u32::try_from(places.get()).unwrap_or(u32::MAX),
            processors_from: processors.map_or(Basis::BusiestHour, |_| Basis::Stated),
            hours: self.told_hours(),
            busiest_unix_s: seconds(hour * S_PER_HOUR * US_PER_S),
            covered_s,
            full_s: found.full_us / 1e6,
            under_way_max: u32::try_from(found.under_way_max).unwrap_or(u32::MAX),
            load: work_us / 1e6 / covered_s / places.get() as f64,
            kinds: self.told_kinds(&statements, &found.work_us, waits),
            busiest_statements: statements.len() as u64,
            waits: waits(&all),
        })
    }

    /// The hour with most work whose statements are all kept; if there is none, of those that are not.
    fn busiest_hour(&self) -> u64 {
        let work = |hour: &&u64| self.hours.get(hour).map_or(0, |sum| sum.busy_us);
        let busiest = self.kept.keys().max_by_key(work);
        busiest
            .copied()
            .expect("invariant: the current hour or the busiest is kept")
    }

    /// How many seconds of an hour the logs cover.
    fn covered_s(&self, hour: u64) -> f64 {
        let begin = hour * S_PER_HOUR * US_PER_S;
        let from = begin.max(self.from_us);
        let mut to = (begin + S_PER_HOUR * US_PER_S).min(self.to_us);
        if self.hours[&hour].is_incomplete
            && let Some(last) = self.kept.get(&hour).and_then(|kept| kept.last())
        {
            to = to.min(last.begin_us);
        }
        // What began before its end may have ended after it.
        (to.saturating_sub(from) as f64 / 1e6).max(1.0)
    }

    /// How long each is in the system behind a gate, in nanoseconds.
    fn answered(
        &self,
        statements: &[Kept],
        work_us: &[f64],
        places: NonZeroUsize,
        admission: AdmissionConfig,
    ) -> Result<Vec<u64>, SimError> {
        let admission = AdmissionConfig {
            queue_max: statements.len().max(1),
            types_max: super::KINDS_MAX,
            ..admission
        };
        let mut backend = GatedBackend::new(admission, places.get() as f64);
        let mut answered_ns = vec![0; statements.len()];
        let mut ended = |index: usize, sojourn_ns| answered_ns[index] = sojourn_ns;
        let first_us = statements.first().map_or(0, |first| first.begin_us);
        for (index, (statement, work_us)) in statements.iter().zip(work_us).enumerate() {
            let arrival = NamedArrival {
                at_ns: (statement.begin_us - first_us) * 1_000,
                work_ns: (work_us * 1e3).round() as u64,
                kind: &self.kinds.names[usize::from(statement.kind)],
            };
            backend.arrive(arrival, index, &mut ended)?;
        }
        backend.drain(&mut ended);
        Ok(answered_ns)
    }

    fn told_hours(&self) -> Vec<DatabaseHour> {
        let of_hour = |(hour, sum): (&u64, &super::HourSum)| DatabaseHour {
            begin_unix_s: seconds(hour * S_PER_HOUR * US_PER_S),
            statements: sum.statements,
            under_way: sum.busy_us as f64 / 1e6 / self.covered_s(*hour),
        };
        self.hours.iter().map(of_hour).collect()
    }

    fn told_kinds(
        &self,
        statements: &[Kept],
        work_us: &[f64],
        waits: impl Fn(&[u32]) -> [Waits; 3],
    ) -> Vec<Kind> {
        let mut of_kind: Vec<Vec<u32>> = vec![Vec::new(); self.kinds.names.len()];
        for (index, statement) in (0..).zip(statements) {
            of_kind[usize::from(statement.kind)].push(index);
        }
        let all_us: f64 = work_us.iter().sum();
        let present = of_kind.iter().zip(&self.kinds.names);
        let present = present.filter(|(indexes, _)| !indexes.is_empty());
        let mut kinds: Vec<Kind> = present
            .map(|(indexes, name)| {
                let of_kind_us: f64 = indexes.iter().map(|index| work_us[*index as usize]).sum();
                Kind {
                    name: name.clone(),
                    statements: indexes.len() as u64,
                    work_share: of_kind_us / all_us.max(1e-9),
                    waits: waits(indexes),
                }
            })
            .collect();
        kinds.sort_by(|one, other| other.work_share.total_cmp(&one.work_share));
        kinds
    }
}

/// What each needs, by processor sharing, in the order of beginnings.
fn outcome(statements: &[Kept], processors: f64) -> Outcome {
    let end_us =
        |index: usize| statements[index].begin_us + u64::from(statements[index].duration_us);
    let mut ends: Vec<usize> = (0..statements.len()).collect();
    ends.sort_by_key(|index| end_us(*index));
    let mut work_us = vec![0.0; statements.len()];
    // What a statement that was there from the beginning would have got.
    let (mut attained_us, mut now_us) = (0.0, 0u64);
    let (mut under_way, mut under_way_max, mut full_us) = (0usize, 0, 0.0);
    let mut next = 0;
    for index in ends {
        loop {
            let begins = next < statements.len() && statements[next].begin_us < end_us(index);
            let at_us = if begins {
                statements[next].begin_us
            } else {
                end_us(index)
            };
            let passed_us = at_us.saturating_sub(now_us) as f64;
            if under_way > 0 {
                attained_us += passed_us * (processors / under_way as f64).min(1.0);
            }
            if under_way as f64 > processors {
                full_us += passed_us;
            }
            now_us = at_us;
            if !begins {
                break;
            }
            work_us[next] = -attained_us;
            under_way += 1;
            under_way_max = under_way_max.max(under_way);
            next += 1;
        }
        work_us[index] += attained_us;
        under_way -= 1;
    }
    Outcome {
        work_us,
        full_us,
        under_way_max,
    }
}

fn seconds(us: u64) -> u32 {
    u32::try_from(us / US_PER_S).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(begin_us: u64, duration_us: u32) -> Kept {
        Kept {
            begin_us,
            duration_us,
            kind: 0,
        }
    }

    #[test]
    fn durations_become_work_by_the_rule_of_sharing() {
        // Alone for 10, two for 20, alone for 10.
        let found = outcome(&[kept(0, 40), kept(10, 20)], 1.0);
        assert_eq!(found.work_us, [30.0, 10.0]);
        assert_eq!((found.full_us, found.under_way_max), (20.0, 2));
        // Two processors share nothing.
        let found = outcome(&[kept(0, 40), kept(10, 20)], 2.0);
        assert_eq!((found.work_us, found.full_us), (vec![40.0, 20.0], 0.0));
    }

    proptest! {
        /// Work is what processor sharing makes the durations of: put through it again, they come out.
        #[test]
        fn sharing_gives_the_durations_back(
            jobs in prop::collection::vec((0..2_000u64, 1..300u32), 1..40), processors in 1..4u32
        ) {
            let mut statements: Vec<_> = jobs.iter().map(|(at, long)| kept(*at, *long)).collect();
            statements.sort_unstable();
            let found = outcome(&statements, processors.into());
            let off = AdmissionConfig { stall_ns: None, ..AdmissionConfig::default() };
            let mut backend = GatedBackend::new(off, processors.into());
            let mut got = vec![0; statements.len()];
            let mut ended = |index: usize, sojourn_ns: u64| got[index] = sojourn_ns;
            for (index, statement) in statements.iter().enumerate() {
                // A hundred nanoseconds a microsecond, so that rounding does not show.
                let arrival = NamedArrival {
                    at_ns: statement.begin_us * 1_000_000,
                    work_ns: (found.work_us[index] * 1e6).round() as u64,
                    kind: "all",
                };
                backend.arrive(arrival, index, &mut ended).expect("in order");
            }
            backend.drain(&mut ended);
            for (statement, got) in statements.iter().zip(got) {
                let want = u64::from(statement.duration_us) * 1_000_000;
                prop_assert!(got.abs_diff(want) <= 1_000, "{got} {want}");
            }
        }
    }
}
