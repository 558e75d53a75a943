//! Load over time: steady, or phases of low load and of overload in turn, the low first
//! (paper 000, 2.3 and Table I).

use crate::SimError;

/// The load at any time, 1 being all that the servers can do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadProfile {
    low_s: f64,
    high_s: f64,
    low_load: f64,
    high_load: f64,
}

impl LoadProfile {
    /// One load for ever, at which there is a steady state.
    ///
    /// # Errors
    /// [`SimError::Load`] unless it is above 0 and below 1.
    pub fn steady(load: f64) -> Result<Self, SimError> {
        if !(load > 0.0 && load < 1.0) {
            return Err(SimError::Load { load });
        }
        Ok(Self {
            low_s: f64::INFINITY,
            high_s: 0.0,
            low_load: load,
            high_load: load,
        })
    }

    /// `low_s` seconds at `low_load`, then `high_s` at `high_load`, again and again.
    ///
    /// # Errors
    /// [`SimError::Range`] unless all are finite and above 0, the low load is below 1, and so
    /// is the mean load.
    pub fn alternating(
        low_s: f64,
        high_s: f64,
        low_load: f64,
        high_load: f64,
    ) -> Result<Self, SimError> {
        let refuse = |what, value, want| Err(SimError::Range { what, value, want });
        let positive = [
            ("low phase", low_s),
            ("high phase", high_s),
            ("low load", low_load),
            ("high load", high_load),
        ];
        for (what, value) in positive {
            if !(value > 0.0 && value <= 1e9) {
                return refuse(what, value, "above 0 and at most 1e9");
            }
        }
        let profile = Self {
            low_s,
            high_s,
            low_load,
            high_load,
        };
        if low_load >= 1.0 {
            return refuse("low load", low_load, "below 1");
        }
        if profile.mean_load() >= 1.0 {
            return refuse(
                "mean load",
                profile.mean_load(),
                "below 1, or jobs pile up for ever",
            );
        }
        Ok(profile)
    }

    /// The load averaged over a period.
    pub fn mean_load(&self) -> f64 {
        if self.is_steady() {
            return self.low_load;
        }
        (self.low_s * self.low_load + self.high_s * self.high_load) / (self.low_s + self.high_s)
    }

    /// The load in the low phases.
    pub fn low_load(&self) -> f64 {
        self.low_load
    }

    /// When the overload of the period `index`, from 0, ends, in seconds; `None` for a steady
    /// load.
    pub fn overload_end_s(&self, index: u64) -> Option<f64> {
        (!self.is_steady()).then(|| (index + 1) as f64 * (self.low_s + self.high_s))
    }

    fn is_steady(&self) -> bool {
        self.low_s.is_infinite()
    }
}

/// Turns expected numbers of arrivals into times.
pub(super) struct Clock {
    profile: LoadProfile,
    jobs_per_s: f64,
    end_s: f64,
    now_s: f64,
    /// How many phases are over.
    phases: u64,
    phase_end_s: f64,
}

impl Clock {
    pub(super) fn new(profile: LoadProfile, jobs_per_s: f64, end_s: f64) -> Self {
        Self {
            profile,
            jobs_per_s,
            end_s,
            now_s: 0.0,
            phases: 0,
            phase_end_s: profile.low_s,
        }
    }

    /// The time, in seconds, at which `jobs` more arrivals are to be expected; `None` from
    /// the end on.
    pub(super) fn advance(&mut self, jobs: f64) -> Option<f64> {
        let mut jobs_left = jobs;
        loop {
            let load = if self.phases.is_multiple_of(2) {
                self.profile.low_load
            } else {
                self.profile.high_load
            };
            let per_s = load * self.jobs_per_s;
            let at_s = self.now_s + jobs_left / per_s;
            if at_s <= self.phase_end_s {
                self.now_s = at_s;
                return (at_s < self.end_s).then_some(at_s);
            }
            if self.phase_end_s >= self.end_s {
                return None;
            }
            jobs_left -= (self.phase_end_s - self.now_s) * per_s;
            self.now_s = self.phase_end_s;
            self.phases += 1;
            let period_s = self.profile.low_s + self.profile.high_s;
            // From the start anew, so that rounding does not add up.
            self.phase_end_s = (self.phases / 2) as f64 * period_s
                + if self.phases.is_multiple_of(2) {
                    self.profile.low_s
                } else {
                    period_s
                };
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn loads_that_make_no_sense_are_refused() {
        for load in [0.0, -0.5, 1.0, 1.2, f64::NAN, f64::INFINITY] {
            assert!(LoadProfile::steady(load).is_err(), "{load}");
        }
        assert!(LoadProfile::alternating(25.0, 25.0, 0.2, 1.2).is_ok());
        for (low_s, high_s, low, high) in [
            (0.0, 25.0, 0.2, 1.2),
            (25.0, f64::NAN, 0.2, 1.2),
            (25.0, 25.0, 1.0, 1.2),
            (25.0, 25.0, 0.9, 1.2),
            (25.0, 25.0, 0.2, -1.0),
        ] {
            assert!(LoadProfile::alternating(low_s, high_s, low, high).is_err());
        }
    }

    #[test]
    fn expected_arrivals_become_times_across_phases() {
        let profile = LoadProfile::alternating(10.0, 10.0, 0.5, 1.25).unwrap();
        let mut clock = Clock::new(profile, 2.0, 50.0);
        // One a second at low load, 2.5 at high load.
        assert_eq!(clock.advance(9.0), Some(9.0));
        assert_eq!(clock.advance(11.0), Some(14.0));
        assert_eq!(clock.advance(15.0 + 10.0 + 5.0), Some(32.0));
        assert_eq!(clock.advance(20.0 + 10.0), None);
        assert_eq!(profile.overload_end_s(1), Some(40.0));
    }
}
