//! Load over time, as `--schedule` writes it:
//!
//! | text | load |
//! |---|---|
//! | `w1` to `w10` | Table I of paper 000 |
//! | `1.4` | 1.4 throughout: persistent overload (000, 2.3) |
//! | `25s@0.2,25s@1.2` | 0.2 for 25 s, then 1.2 for 25 s, repeated: any alternating or intermittent overload, of up to [`PHASES_MAX`] phases |
//!
//! A length is in seconds, or a time with its unit.

use std::fmt;
use std::str::FromStr;

use shortline_sched::units::{Span, excerpt};
use thiserror::Error;

use super::Schedule;

/// The most phases of a schedule.
pub const PHASES_MAX: usize = 1_000;
/// The highest load of a phase.
pub const LOAD_MAX: f64 = 100.0;

/// Some load for some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadPhase {
    /// How long, in seconds; infinite if nothing follows.
    pub length_s: f64,
    /// The load, 1 being the whole uplink.
    pub load: f64,
}

/// Phases of load, repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadSchedule {
    text: String,
    /// At least one.
    phases: Vec<LoadPhase>,
}

/// A text that describes no schedule.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "schedule `{text}`: {problem}; write it like w1 (to w10, Table I of paper 000), 1.4 or \
     25s@0.2,25s@1.2"
)]
pub struct ScheduleError {
    text: String,
    problem: String,
}

impl LoadSchedule {
    /// The phases of one period, at least one.
    pub fn phases(&self) -> &[LoadPhase] {
        &self.phases
    }

    /// The load averaged over a period.
    pub fn mean_load(&self) -> f64 {
        match self.phases.as_slice() {
            [always] => always.load,
            phases => {
                let length_s: f64 = phases.iter().map(|phase| phase.length_s).sum();
                let work = phases.iter().map(|phase| phase.length_s * phase.load);
                work.sum::<f64>() / length_s
            }
        }
    }

    /// Begin, end and load of each phase from the start to `end_s`, in seconds; the last is cut
    /// there.
    pub fn until(&self, end_s: f64) -> impl Iterator<Item = (f64, f64, f64)> + use<> {
        let mut begin = 0.0;
        let phases = self.phases.clone();
        phases.into_iter().cycle().map_while(move |phase| {
            let cut =
                (begin < end_s).then(|| (begin, end_s.min(begin + phase.length_s), phase.load));
            begin += phase.length_s;
            cut
        })
    }
}

impl From<&Schedule> for LoadSchedule {
    fn from(schedule: &Schedule) -> Self {
        let phase = |length_s, load| LoadPhase { length_s, load };
        Self {
            text: schedule.name.to_owned(),
            phases: vec![
                phase(schedule.low_s, schedule.low_load),
                phase(schedule.high_s, schedule.high_load),
            ],
        }
    }
}

impl From<&LoadSchedule> for LoadSchedule {
    fn from(schedule: &LoadSchedule) -> Self {
        schedule.clone()
    }
}

impl fmt::Display for LoadSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for LoadSchedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        if let Ok(schedule) = Schedule::by_name(text) {
            return Ok(Self::from(&schedule));
        }
        let refuse = |problem: String| ScheduleError {
            text: excerpt(text),
            problem,
        };
        let phases = phases(text).map_err(refuse)?;
        if phases.iter().all(|phase| phase.load == 0.0) {
            return Err(refuse("no load at all".into()));
        }
        Ok(Self {
            text: text.to_owned(),
            phases,
        })
    }
}

fn phases(text: &str) -> Result<Vec<LoadPhase>, String> {
    if !text.contains('@') {
        let length_s = f64::INFINITY;
        let load = load(text)?;
        return Ok(vec![LoadPhase { length_s, load }]);
    }
    let mut phases = Vec::new();
    for part in text.split(',') {
        if phases.len() == PHASES_MAX {
            return Err(format!("more than {PHASES_MAX} phases"));
        }
        let (length, at) = part
            .split_once('@')
            .ok_or_else(|| format!("`{}` is not LENGTH@LOAD", excerpt(part)))?;
        phases.push(LoadPhase {
            length_s: length_s(length)?,
            load: load(at)?,
        });
    }
    Ok(phases)
}

fn load(text: &str) -> Result<f64, String> {
    let load = text.parse::<f64>().ok();
    // A zero may be written with a minus: times between arrivals must not be negative.
    load.filter(|load| (0.0..=LOAD_MAX).contains(load))
        .map(f64::abs)
        .ok_or_else(|| format!("load `{}` is not from 0 to {LOAD_MAX}", excerpt(text)))
}

fn length_s(text: &str) -> Result<f64, String> {
    let plain = text.parse::<f64>().ok();
    let length = plain.or_else(|| Some(text.parse::<Span>().ok()?.duration().as_secs_f64()));
    length
        .filter(|length| (0.001..=crate::trace::SECONDS_MAX).contains(length))
        .ok_or_else(|| format!("length `{}` is not from 1ms to 10000000 s", excerpt(text)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn schedule(text: &str) -> LoadSchedule {
        text.parse().unwrap()
    }

    #[test]
    fn phases_alternate_and_are_cut_at_the_end() {
        let want = [(0.0, 25.0, 0.2), (25.0, 50.0, 1.2), (50.0, 60.0, 0.2)];
        for text in ["w1", "W1", "25s@0.2,25@1.2", "25000ms@0.2,25s@1.2"] {
            let phases: Vec<_> = schedule(text).until(60.0).collect();
            assert_eq!(phases, want, "{text}");
        }
        let persistent: Vec<_> = schedule("1.4").until(60.0).collect();
        assert_eq!(persistent, [(0.0, 60.0, 1.4)]);
    }

    #[test]
    fn a_mean_weighs_by_length() {
        assert_eq!(schedule("1.4").mean_load(), 1.4);
        assert_eq!(schedule("30@0,10@2").mean_load(), 0.5);
        assert!((schedule("w7").mean_load() - 0.8).abs() < 1e-12);
    }

    #[test]
    fn each_error_says_what_is_wrong_and_what_would_be_right() {
        for (text, problem) in [
            ("w11", "load `w11` is not from 0 to 100"),
            ("-1", "load `-1` is not from 0 to 100"),
            ("NaN", "load `NaN` is not from 0 to 100"),
            ("0", "no load at all"),
            ("25s@0.2,1.2", "`1.2` is not LENGTH@LOAD"),
            ("25s@0.2,0@1.2", "length `0` is not from 1ms to 10000000 s"),
            ("25s@0.2,x@1.2", "length `x` is not from 1ms to 10000000 s"),
        ] {
            let error = text.parse::<LoadSchedule>().unwrap_err().to_string();
            let want = format!("schedule `{text}`: {problem}; write it like w1 (to w10");
            assert!(error.starts_with(&want), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(text in "[0-9a-z@.,]{0,30}") {
            if let Ok(read) = text.parse::<LoadSchedule>() {
                prop_assert_eq!(schedule(&read.to_string()), read);
            }
        }
    }
}
