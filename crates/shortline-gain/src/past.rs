//! Reads logs: what was sent, and how much in each hour.

use std::collections::BTreeMap;

use shortline_load::trace::{LogInput, SentLog};
use shortline_sched::units::Rate;
use shortline_sim::wire::WireModel;

use crate::kept::Kept;
use crate::{GainError, Name};

pub(crate) const S_PER_HOUR: u32 = 3600;
/// How many responses are read between two calls of `progress`.
const TOLD_EVERY: u64 = 1 << 14;

/// What the logs hold.
pub struct Past {
    pub(crate) names: Vec<Name>,
    pub(crate) kept: Kept,
    /// By hour since 1970.
    pub(crate) hours: BTreeMap<u32, HourSum>,
    pub(crate) from_unix_s: u32,
    pub(crate) to_unix_s: u32,
    pub(crate) bytes: u64,
    pub(crate) wire: WireModel,
    /// What did not become a response, and what could not be read, a line each.
    pub(crate) notes: Vec<String>,
}

/// What was sent in an hour.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HourSum {
    pub(crate) responses: u64,
    pub(crate) wire_bytes: u64,
}

/// How far reading is.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Which log.
    pub log: usize,
    /// How many bytes of its file have been read.
    pub read_bytes: u64,
    /// How many responses have been found in all.
    pub responses: u64,
}

impl Past {
    /// Reads all of them. A log that ends with a fault counts as far as it goes.
    ///
    /// # Errors
    /// No log has a response, or a temporary file that cannot be written.
    pub fn read(
        inputs: Vec<LogInput>,
        wire: WireModel,
        mut progress: impl FnMut(Reading),
    ) -> Result<Self, GainError> {
        let mut past = Self {
            names: inputs.iter().map(|input| input.name().to_owned()).collect(),
            kept: Kept::new().map_err(GainError::kept)?,
            hours: BTreeMap::new(),
            from_unix_s: u32::MAX,
            to_unix_s: 0,
            bytes: 0,
            wire,
            notes: Vec::new(),
        };
        let mut responses = 0;
        for (log, input) in inputs.into_iter().enumerate() {
            past.read_log(SentLog::of(input), |read_bytes, more| {
                responses += more;
                progress(Reading {
                    log,
                    read_bytes,
                    responses,
                });
            })?;
        }
        past.kept.close().map_err(GainError::kept)?;
        if past.hours.is_empty() {
            let first_bad = past.notes.into_iter().next();
            return Err(GainError::Empty { first_bad });
        }
        Ok(past)
    }

    /// The rate that the busiest hour would just fill, or the part of it that the logs cover.
    pub fn busiest_rate(&self) -> Rate {
        let (hour, busiest) = self.busiest_hour();
        let seconds = self.covered_s(hour);
        Rate::from_bps((busiest.wire_bytes as f64 * 8.0 / seconds).max(1.0) as u64)
    }

    /// How many seconds of an hour the logs cover: all of it, but for the first and the last.
    pub(crate) fn covered_s(&self, hour: u32) -> f64 {
        let begin = u64::from(hour) * u64::from(S_PER_HOUR);
        let from = begin.max(self.from_unix_s.into());
        let to = (begin + u64::from(S_PER_HOUR)).min(u64::from(self.to_unix_s) + 1);
        to.saturating_sub(from).max(1) as f64
    }

    pub(crate) fn busiest_hour(&self) -> (u32, HourSum) {
        let busiest = self.hours.iter().max_by_key(|(_, hour)| hour.wire_bytes);
        busiest.map(|(hour, sum)| (*hour, *sum)).unwrap_or_default()
    }

    pub(crate) fn responses(&self) -> u64 {
        self.hours.values().map(|hour| hour.responses).sum()
    }

    fn read_log(
        &mut self,
        mut log: SentLog,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<(), GainError> {
        let mut count = 0;
        while let Some(sent) = log.next() {
            let sent = match sent {
                Ok(sent) => sent,
                Err(fault) => {
                    self.notes
                        .push(format!("{fault}; it counts as far as that"));
                    break;
                }
            };
            self.kept.keep(sent).map_err(GainError::kept)?;
            let hour = self.hours.entry(sent.unix_s / S_PER_HOUR).or_default();
            hour.responses += 1;
            hour.wire_bytes = hour
                .wire_bytes
                .saturating_add(self.wire.wire_bytes(sent.bytes));
            self.bytes = self.bytes.saturating_add(sent.bytes);
            self.from_unix_s = self.from_unix_s.min(sent.unix_s);
            self.to_unix_s = self.to_unix_s.max(sent.unix_s);
            count += 1;
            if count % TOLD_EVERY == 0 {
                progress(log.read_bytes(), TOLD_EVERY);
            }
        }
        progress(log.read_bytes(), count % TOLD_EVERY);
        let name = log.name().display().to_string();
        let told = log.passed_over().told();
        self.notes
            .extend(told.iter().map(|line| format!("{name}: {line}")));
        Ok(())
    }
}
