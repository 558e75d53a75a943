//! The claims of 002's figures and tables, in a form that can be compared with our own runs: a figure of
//! two doors in a scene, and what it should be. Each database is a point.

use std::collections::BTreeMap;

use shortline_bookstore::{Interaction, Kind};

use super::figures::Figures;
use super::measure::{Measure, Sides, unfinished};
use super::{Door, Load, Outcome};
use crate::study::claim::{Judge, Judged, Measured, System, Value};
use crate::study::verdict::{Better, OWN_AIM, Want};

/// One claim in numbers.
#[derive(Clone, Debug)]
pub struct Check {
    measure: Measure,
    of: Door,
    over: Door,
    scene: Scene,
    /// The database. `None`: each.
    database: Option<Kind>,
    want: Want,
    better: Better,
    /// What the paper found, in its words.
    pub paper: String,
}

/// The load at which doors are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scene {
    /// With the most browsers.
    Most,
    /// With that load.
    Load(Load),
}

impl Check {
    /// A check with both doors `sjf`, with the most browsers, on each database.
    pub fn new(measure: Measure, want: Want, paper: &str) -> Self {
        Self {
            measure,
            of: Door::SJF,
            over: Door::FIFO,
            scene: Scene::Most,
            database: None,
            want,
            better: measure.better(),
            paper: paper.to_owned(),
        }
    }

    /// Our own aim, which no paper claims.
    pub fn own_aim(measure: Measure, want: Want) -> Self {
        Self::new(measure, want, OWN_AIM)
    }

    /// Whether it is a paper's claim.
    pub fn is_papers(&self) -> bool {
        self.paper != OWN_AIM
    }

    /// The same of one door over another.
    #[must_use]
    pub fn of(self, of: Door, over: Door) -> Self {
        Self { of, over, ..self }
    }

    /// The same in another scene.
    #[must_use]
    pub fn at(self, load: Load) -> Self {
        Self {
            scene: Scene::Load(load),
            ..self
        }
    }

    /// The same on one database only.
    #[must_use]
    pub fn on(self, database: Kind) -> Self {
        Self {
            database: Some(database),
            ..self
        }
    }

    /// The same with this better side of a range.
    #[must_use]
    pub fn better(self, better: Better) -> Self {
        Self { better, ..self }
    }

    /// Whether it is about this database.
    pub fn is_of(&self, database: Kind) -> bool {
        self.database.is_none_or(|only| only == database)
    }

    /// The claim beside our results. The gate is both ours and the paper's own system.
    pub fn judge(&self, all: &[Outcome]) -> Judged {
        let sets = Figures::by_database(all);
        let mut measured = Measured::default();
        let mut notes = Vec::new();
        let mut type_named = None;
        for set in &sets {
            if !self.is_of(set.database) {
                continue;
            }
            if self.measure == Measure::LongestRatio {
                type_named = self
                    .load(set)
                    .and_then(|load| set.longest(self.of, self.over, load));
            }
            match self.value_of(set) {
                Some(value) => measured.values.push(value),
                None => measured.missing += 1,
            }
            notes.extend(self.note(set));
        }
        measured.note = (!notes.is_empty()).then(|| notes.join("; "));
        self.judged(self.describe(type_named), measured)
    }

    /// The claim beside kept values, by what they are of.
    pub fn judge_kept(&self, kept: &BTreeMap<String, Measured>) -> Judged {
        let types = Interaction::ALL.into_iter().map(Some);
        let named = types.chain([None]).map(|named| self.describe(named));
        let found = named.into_iter().find(|what| kept.contains_key(what));
        let what = found.unwrap_or_else(|| self.describe(None));
        let measured = kept.get(&what).cloned().unwrap_or_default();
        self.judged(what, measured)
    }

    fn judged(&self, what: String, measured: Measured) -> Judged {
        let judge = Judge {
            want: self.want,
            better: self.better,
            points: 1,
        };
        let (verdict, is_doubtful, is_split) = judge.verdict(&measured);
        Judged {
            what,
            paper: self.paper.clone(),
            wanted: self.want.to_string(),
            system: System::Both,
            measured,
            verdict,
            is_doubtful,
            is_split,
        }
    }

    /// The value on a database over all its seeds, and the range of those that one seed alone has.
    fn value_of(&self, set: &Figures<'_>) -> Option<Value> {
        let sides = |set: &Figures<'_>| Sides {
            of: self.of,
            over: self.over,
            load: self.load(set),
        };
        let all = self.measure.value(set, sides(set))?;
        let by_seed = set.seeds().into_iter().filter_map(|seed| {
            let alone = set.of_seed(seed);
            self.measure.value(&alone, sides(&alone))
        });
        let by_seed: Vec<f64> = by_seed.collect();
        let range = by_seed.iter().chain([&all]);
        Some(Value {
            at: set.database.to_string(),
            median: all,
            low: range.clone().copied().fold(f64::MAX, f64::min),
            high: range.copied().fold(f64::MIN, f64::max),
            seeds: by_seed.len().max(1),
        })
    }

    /// What a throughput does not tell: the types none of which finished.
    fn note(&self, set: &Figures<'_>) -> Option<String> {
        let load = match self.measure {
            Measure::HeldAtTwice => set.twice_the_peak(self.of).map(|(load, ..)| load),
            measure if measure.is_throughput() => self.load(set),
            _ => None,
        }?;
        let types = unfinished(set, self.of, load);
        let names: Vec<&str> = types.iter().map(|interaction| interaction.name()).collect();
        (!names.is_empty()).then(|| {
            let (database, door, names) = (set.database, self.of, names.join(", "));
            format!("{database}, {door}, {load}: none finished of {names}")
        })
    }

    /// The part of it that these steps do not run, if any.
    pub fn not_run(&self, steps: &[super::Step]) -> Option<String> {
        let runs = |door: Door| {
            steps.iter().any(|step| {
                let there = match self.scene {
                    Scene::Load(load) => step.load == load,
                    Scene::Most => true,
                };
                there && step.doors.contains(&door)
            })
        };
        let wanted = if self.measure.is_of_two() {
            vec![self.of, self.over]
        } else {
            vec![self.of]
        };
        let missing = wanted.into_iter().find(|door| !runs(*door));
        missing.map(|door| format!("{door} is not run there"))
    }

    fn load(&self, set: &Figures<'_>) -> Option<Load> {
        match self.scene {
            Scene::Most => set.most(),
            Scene::Load(load) => Some(load),
        }
    }

    fn describe(&self, type_named: Option<Interaction>) -> String {
        let what = match (self.measure, type_named) {
            (Measure::LongestRatio, Some(interaction)) => {
                format!("mean response time of the longest type ({interaction}), ratio")
            }
            _ => self.measure.describe(),
        };
        let at = match self.scene {
            Scene::Load(load) => format!(", {load}"),
            Scene::Most => String::new(),
        };
        // Kept values are found by these words, so that two databases' must differ in them.
        let on = self.database.map(|database| format!(", on {database}"));
        let on = on.unwrap_or_default();
        let (of, over) = (self.of, self.over);
        if self.measure.is_of_two() {
            format!("{what}, {of} against {over}{at}{on}")
        } else {
            format!("{what}, {of}{at}{on}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::door::Capacity;
    use super::super::outcome::made_up::run;
    use super::*;
    use crate::study::verdict::Verdict;
    use Want::{AtLeast, AtMost};

    const FIXED: [Door; 2] = [
        Door::FIFO.at(Capacity::Fixed(10)),
        Door::FIFO.at(Capacity::Fixed(20)),
    ];

    fn value(check: &Check, all: &[Outcome]) -> f64 {
        let compared = check.judge(all);
        assert_eq!(compared.measured.values.len(), 1, "{}", compared.what);
        compared.measured.values[0].median
    }

    /// 100 to 200 interactions a run. Beyond 20 browsers the number stays the same, except without a gate.
    fn by_browsers() -> Vec<Outcome> {
        let mut all = Vec::new();
        for (browsers, none, fifo) in [
            (10, 100, 100),
            (20, 190, 200),
            (40, 150, 199),
            (80, 60, 198),
        ] {
            let load = Load::Browsers(browsers);
            all.push(run(Door::None, load, 1, none, 0.02));
            all.push(run(Door::FIFO, load, 1, fifo, 0.02));
            all.push(run(Door::SJF, load, 1, fifo, 0.01));
        }
        all
    }

    #[test]
    fn doors_are_compared_over_the_seeds_that_both_had() {
        let load = Load::AlternatingClicks;
        let all = [
            run(Door::FIFO, load, 1, 100, 0.02),
            run(Door::FIFO, load, 2, 100, 2.0),
            run(Door::SJF, load, 1, 100, 0.01),
            run(Door::SJF, load, 3, 100, 0.3),
        ];
        let gain = Check::own_aim(Measure::MeanGain, AtLeast(1.5)).at(load);
        assert!((value(&gain, &all) - 2.0).abs() < 1e-9);
        let none_in_common = gain.judge(&all[1..3]);
        assert!(none_in_common.measured.values.is_empty());
    }

    #[test]
    fn a_peak_is_held_at_twice_its_browsers_or_not() {
        let all = by_browsers();
        let held = Check::new(Measure::HeldAtTwice, AtLeast(0.97), "held");
        let with = held.clone().of(Door::FIFO, Door::None);
        assert!((value(&with, &all) - 0.995).abs() < 1e-9);
        assert_eq!(with.judge(&all).verdict, Verdict::Holds);
        let without = held.clone().of(Door::None, Door::None);
        assert!((value(&without, &all) - 150.0 / 190.0).abs() < 1e-9);
        // What still rises at the most browsers has not fallen: the peak is that at 20.
        let mut rising = by_browsers();
        rising.push(run(Door::SJF, Load::Browsers(160), 1, 210, 0.01));
        let rises = held.of(Door::SJF, Door::None);
        assert!((value(&rises, &rising) - 199.0 / 200.0).abs() < 1e-9);
        let peak = Check::new(Measure::PeakRatio, AtLeast(1.05), "1.10").of(Door::FIFO, Door::None);
        assert!((value(&peak, &all) - 200.0 / 190.0).abs() < 1e-9);
        let elsewhere = peak.on(Kind::MariaDb).judge(&all);
        assert_eq!(elsewhere.verdict, Verdict::Open);
    }

    #[test]
    fn kept_values_of_two_databases_are_told_apart() {
        let peak = Check::new(Measure::PeakRatio, AtLeast(1.0), "1").of(Door::FIFO, Door::None);
        let mut all = by_browsers();
        for mut run in by_browsers() {
            run.run.database = Kind::MariaDb;
            if run.run.door == Door::FIFO {
                run.summary.throughput_per_min *= 0.5;
            }
            all.push(run);
        }
        let each = [Kind::Postgres, Kind::MariaDb].map(|kind| peak.clone().on(kind));
        let judged = each.each_ref().map(|check| check.judge(&all));
        let kept: BTreeMap<String, Measured> =
            judged.clone().map(|one| (one.what, one.measured)).into();
        let again = each.each_ref().map(|check| check.judge_kept(&kept));
        for (one, other) in judged.iter().zip(&again) {
            assert_eq!(one.measured, other.measured);
        }
        assert_ne!(again[0].verdict, again[1].verdict);
    }

    #[test]
    fn gains_are_with_the_most_browsers_or_where_said() {
        let all = by_browsers();
        let gain = Check::new(Measure::FinishedGain, AtLeast(2.0), "2");
        assert!((value(&gain, &all) - 2.0).abs() < 1e-9);
        assert!((value(&gain.at(Load::Browsers(10)), &all) - 2.0).abs() < 1e-9);
        let longest = Check::own_aim(Measure::LongestRatio, AtMost(1.3));
        let compared = longest.judge(&all);
        assert!(compared.what.contains("best_sellers"), "{}", compared.what);
        assert!(!longest.is_papers());
    }

    #[test]
    fn the_best_fixed_capacity_is_chosen_by_other_seeds() {
        let load = Load::Browsers(10);
        let mut all = Vec::new();
        for (seed, auto, one, other) in [(1, 90, 80, 100), (2, 110, 110, 100)] {
            all.push(run(Door::FIFO, load, seed, auto, 0.01));
            all.push(run(FIXED[0], load, seed, one, 0.01));
            all.push(run(FIXED[1], load, seed, other, 0.01));
        }
        let check = Check::own_aim(Measure::OfBestFixed, AtLeast(0.95)).of(Door::FIFO, Door::None);
        // Seed 2 says 10 ms, which does 80 with seed 1; seed 1 says 20 ms, which does 100.
        let expected = f64::midpoint(90.0 / 80.0, 110.0 / 100.0);
        assert!((value(&check, &all) - expected).abs() < 1e-9);
    }

    #[test]
    fn what_was_not_run_is_open() {
        for measure in [
            Measure::Converged,
            Measure::SlowerThanAlone,
            Measure::Settled,
            Measure::MeanGain,
        ] {
            let compared = Check::new(measure, AtLeast(1.0), "1").judge(&[]);
            assert_eq!(compared.verdict, Verdict::Open);
        }
    }
}
