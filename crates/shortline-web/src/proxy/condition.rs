//! Whether a backend works, as its requests and its health check tell it. Time is an argument.
//!
//! - So many failures in a row make it doubtful for a while (passive check).
//! - So many health checks in a row that fail take it out, and so many that succeed bring it back (active
//!   check).
//! - One that comes back may be given its weight little by little, from a tenth on (slow start).

use std::time::Duration;

use super::choice::Standing;

/// The part of its weight that a backend begins with when it comes back.
const SLOW_PART_MIN: f64 = 0.1;

/// When a backend's condition changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthOptions {
    /// Failures in a row that make a backend doubtful. Default 3.
    pub failures_max: u32,
    /// How long it stays doubtful. Default 10 s.
    pub down_time: Duration,
    /// Health checks in a row that must fail to take it out. Default 1.
    pub fall: u32,
    /// Health checks in a row that must succeed to bring it back. Default 1.
    pub rise: u32,
    /// How long a backend that comes back takes to its whole weight. Default: no time.
    pub slow_start: Duration,
}

impl Default for HealthOptions {
    fn default() -> Self {
        Self {
            failures_max: 3,
            down_time: Duration::from_secs(10),
            fall: 1,
            rise: 1,
            slow_start: Duration::ZERO,
        }
    }
}

/// The condition of a backend; see the module's text.
#[derive(Debug, Default)]
pub struct Condition {
    failures_in_a_row: u32,
    /// 0 if it is not doubtful.
    doubtful_until_ns: u64,
    is_out: bool,
    /// Health checks in a row whose result is not what the condition is.
    contrary: u32,
    /// When it came back, if it was ever away.
    back_ns: Option<u64>,
}

/// A change that is worth a line in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// So many requests in a row failed.
    Doubtful(u32),
    /// It answers again.
    AnswersAgain,
    /// Its health check took it out.
    Out,
    /// Its health check brought it back.
    Back,
}

impl Condition {
    /// Notes that it has answered. The time is asked for only if it was in doubt.
    pub fn succeeded(&mut self, now_ns: impl FnOnce() -> u64) -> Option<Change> {
        self.failures_in_a_row = 0;
        let until_ns = std::mem::take(&mut self.doubtful_until_ns);
        (until_ns > 0).then(|| {
            self.back_ns = Some(until_ns.min(now_ns()));
            Change::AnswersAgain
        })
    }

    /// Notes that it has not answered.
    pub fn failed(&mut self, now_ns: u64, options: &HealthOptions) -> Option<Change> {
        self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
        if self.failures_in_a_row < options.failures_max {
            return None;
        }
        let until_ns = now_ns + options.down_time.as_nanos() as u64;
        let before_ns = std::mem::replace(&mut self.doubtful_until_ns, until_ns);
        (before_ns == 0).then_some(Change::Doubtful(self.failures_in_a_row))
    }

    /// Notes the result of its health check.
    pub fn probed(
        &mut self,
        is_well: bool,
        now_ns: u64,
        options: &HealthOptions,
    ) -> Option<Change> {
        if is_well != self.is_out {
            self.contrary = 0;
            return None;
        }
        self.contrary += 1;
        let needed = if is_well { options.rise } else { options.fall };
        if self.contrary < needed {
            return None;
        }
        self.contrary = 0;
        self.is_out = !is_well;
        if !is_well {
            return Some(Change::Out);
        }
        self.back_ns = Some(now_ns);
        Some(Change::Back)
    }

    /// How likely it is to answer.
    pub fn standing(&self, now_ns: u64) -> Standing {
        if self.is_out {
            Standing::Down
        } else if self.doubtful_until_ns > now_ns {
            Standing::Doubtful
        } else {
            Standing::Up
        }
    }

    /// Its weight now, if it is `weight` in the end.
    pub fn weight(&self, weight: u64, now_ns: u64, options: &HealthOptions) -> u64 {
        let slow_ns = options.slow_start.as_nanos() as u64;
        let doubtful_ns = Some(self.doubtful_until_ns).filter(|until_ns| *until_ns > 0);
        let Some(back_ns) = self.back_ns.max(doubtful_ns) else {
            return weight;
        };
        let passed_ns = now_ns.saturating_sub(back_ns);
        if weight == 0 || passed_ns >= slow_ns {
            return weight;
        }
        let part = (passed_ns as f64 / slow_ns as f64).max(SLOW_PART_MIN);
        ((weight as f64 * part) as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn options() -> HealthOptions {
        HealthOptions {
            failures_max: 2,
            rise: 2,
            fall: 3,
            slow_start: Duration::from_secs(10),
            ..HealthOptions::default()
        }
    }

    #[test]
    fn failures_in_a_row_make_it_doubtful_for_a_while() {
        let mut one = Condition::default();
        assert_eq!(one.failed(0, &options()), None);
        assert_eq!(one.succeeded(|| 0), None);
        assert_eq!(one.failed(0, &options()), None);
        assert_eq!(one.failed(0, &options()), Some(Change::Doubtful(2)));
        assert_eq!(one.failed(SECOND, &options()), None);
        assert_eq!(one.standing(11 * SECOND - 1), Standing::Doubtful);
        assert_eq!(one.standing(11 * SECOND), Standing::Up);
        assert_eq!(one.weight(1000, 13 * SECOND, &options()), 200);
        assert_eq!(one.succeeded(|| 13 * SECOND), Some(Change::AnswersAgain));
        assert_eq!(one.weight(1000, 13 * SECOND, &options()), 200);
        assert_eq!(one.weight(1000, 21 * SECOND, &options()), 1000);
    }

    #[test]
    fn health_checks_must_agree_so_many_times() {
        let mut one = Condition::default();
        let mut probed = |is_well, at_s: u64| {
            let change = one.probed(is_well, at_s * SECOND, &options());
            (change, one.standing(at_s * SECOND))
        };
        assert_eq!(probed(false, 1), (None, Standing::Up));
        assert_eq!(probed(false, 2), (None, Standing::Up));
        assert_eq!(probed(true, 3), (None, Standing::Up));
        assert_eq!(probed(false, 4), (None, Standing::Up));
        assert_eq!(probed(false, 5), (None, Standing::Up));
        assert_eq!(probed(false, 6), (Some(Change::Out), Standing::Down));
        assert_eq!(probed(true, 7), (None, Standing::Down));
        assert_eq!(probed(false, 8), (None, Standing::Down));
        assert_eq!(probed(true, 9), (None, Standing::Down));
        assert_eq!(probed(true, 10), (Some(Change::Back), Standing::Up));
        let weight = |at_s: u64| one.weight(1000, at_s * SECOND, &options());
        assert_eq!((weight(10), weight(15), weight(20)), (100, 500, 1000));
        assert_eq!(one.weight(0, 15 * SECOND, &options()), 0);
    }

    #[test]
    fn one_that_was_never_away_has_its_whole_weight() {
        let one = Condition::default();
        assert_eq!(one.weight(1000, 0, &options()), 1000);
    }
}
