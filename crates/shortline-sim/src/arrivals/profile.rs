//! Load over time: steady, or phases of low load and of overload in turn ([`Phases`]).

use crate::{Phases, SimError};

/// The load at any time; 1 is all that the servers can do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadProfile(Profile);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Profile {
    Steady(f64),
    /// Spans in seconds.
    Alternating(Phases),
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
        Ok(Self(Profile::Steady(load)))
    }

    /// Two loads in turn for ever, spans in seconds.
    pub fn alternating(phases: Phases) -> Self {
        Self(Profile::Alternating(phases))
    }

    /// The load averaged over a period.
    pub fn mean_load(&self) -> f64 {
        match self.0 {
            Profile::Steady(load) => load,
            Profile::Alternating(phases) => phases.mean_load(),
        }
    }

    /// The load of a phase, counted from 0, and when it ends, in seconds.
    fn phase(&self, index: u64) -> (f64, f64) {
        match self.0 {
            Profile::Steady(load) => (load, f64::INFINITY),
            Profile::Alternating(phases) => {
                // Counted from the start, so that rounding does not add up.
                let begin_s = (index / 2) as f64 * phases.period();
                if index.is_multiple_of(2) {
                    (phases.low_load(), begin_s + phases.low_span())
                } else {
                    (phases.high_load(), begin_s + phases.period())
                }
            }
        }
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
}

impl Clock {
    pub(super) fn new(profile: LoadProfile, jobs_per_s: f64, end_s: f64) -> Self {
        Self {
            profile,
            jobs_per_s,
            end_s,
            now_s: 0.0,
            phases: 0,
        }
    }

    /// The time, in seconds, at which `jobs` more arrivals are expected; `None` after the end.
    pub(super) fn advance(&mut self, jobs: f64) -> Option<f64> {
        let mut jobs_left = jobs;
        loop {
            let (load, phase_end_s) = self.profile.phase(self.phases);
            let per_s = load * self.jobs_per_s;
            let at_s = self.now_s + jobs_left / per_s;
            if at_s <= phase_end_s {
                self.now_s = at_s;
                return (at_s < self.end_s).then_some(at_s);
            }
            if phase_end_s >= self.end_s {
                return None;
            }
            jobs_left -= (phase_end_s - self.now_s) * per_s;
            self.now_s = phase_end_s;
            self.phases += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn loads_without_a_steady_state_are_refused() {
        for load in [0.0, -0.5, 1.0, 1.2, f64::NAN, f64::INFINITY] {
            assert!(LoadProfile::steady(load).is_err(), "{load}");
        }
    }

    #[test]
    fn expected_arrivals_become_times_across_phases() {
        let profile = LoadProfile::alternating("10,10,0.5,1.25".parse().unwrap());
        let mut clock = Clock::new(profile, 2.0, 50.0);
        // One a second at low load, 2.5 at high load.
        assert_eq!(clock.advance(9.0), Some(9.0));
        assert_eq!(clock.advance(11.0), Some(14.0));
        assert_eq!(clock.advance(15.0 + 10.0 + 5.0), Some(32.0));
        assert_eq!(clock.advance(20.0 + 10.0), None);
        assert_eq!(profile.mean_load(), 0.875);
    }
}
