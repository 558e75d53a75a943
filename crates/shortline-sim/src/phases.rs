//! Load that alternates between a low level and a high one, which may be an overload (paper 000,
//! 2.3 and Table I). The simulator plays it and the model approximates it.
//!
//! Written `LOW_SPAN,HIGH_SPAN,LOW_LOAD,HIGH_LOAD`, such as `25,25,0.2,1.2` for W1 of the paper.
//! Spans are in any unit the caller chooses.

use std::fmt;
use std::str::FromStr;

use shortline_sched::units::excerpt;

/// Two loads in turn for ever, the low one first. On average work does not pile up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phases {
    low_span: f64,
    high_span: f64,
    low_load: f64,
    high_load: f64,
}

/// Impossible phases, or phases in which work would pile up for ever.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PhasesError {
    /// The text is not four numbers.
    #[error(
        "`{text}`: want four numbers, how long the low and the high load last and the two loads, \
         such as 25,25,0.2,1.2"
    )]
    Text {
        /// What was given.
        text: String,
    },
    /// One of the numbers is out of its range.
    #[error("{parameter} {value} of alternating load: want {wanted}")]
    Parameter {
        /// Which of the numbers.
        parameter: &'static str,
        /// What was given.
        value: f64,
        /// What would be right.
        wanted: &'static str,
    },
}

impl Phases {
    /// `low_span` of a load of `low_load`, then `high_span` of `high_load`, repeated for ever.
    ///
    /// # Errors
    /// [`PhasesError::Parameter`] unless all are finite and above 0, the high load is not below
    /// the low one, and the mean load is below 1.
    pub fn new(
        low_span: f64,
        high_span: f64,
        low_load: f64,
        high_load: f64,
    ) -> Result<Self, PhasesError> {
        for (parameter, value) in [
            ("low span", low_span),
            ("high span", high_span),
            ("low load", low_load),
            ("high load", high_load),
        ] {
            let positive = value > 0.0 && value.is_finite();
            check(positive, parameter, value, "a finite number above 0")?;
        }
        let wanted = "at least the low load";
        check(high_load >= low_load, "high load", high_load, wanted)?;
        let phases = Self {
            low_span,
            high_span,
            low_load,
            high_load,
        };
        let load = phases.mean_load();
        let wanted = "below 1, else work piles up for ever";
        check(load < 1.0, "mean load", load, wanted)?;
        Ok(phases)
    }

    /// How long the low load lasts.
    pub fn low_span(&self) -> f64 {
        self.low_span
    }

    /// How long the high load lasts.
    pub fn high_span(&self) -> f64 {
        self.high_span
    }

    /// The low load, 1 being all that the servers can do.
    pub fn low_load(&self) -> f64 {
        self.low_load
    }

    /// The high load, not below the low one.
    pub fn high_load(&self) -> f64 {
        self.high_load
    }

    /// How long both last.
    pub fn period(&self) -> f64 {
        self.low_span + self.high_span
    }

    /// The load averaged over a period.
    pub fn mean_load(&self) -> f64 {
        (self.low_span * self.low_load + self.high_span * self.high_load) / self.period()
    }

    /// The same loads for spans that many times as long, as in a smaller unit.
    #[must_use]
    pub fn stretched(self, factor: f64) -> Self {
        Self {
            low_span: self.low_span * factor,
            high_span: self.high_span * factor,
            ..self
        }
    }
}

fn check(
    right: bool,
    parameter: &'static str,
    value: f64,
    wanted: &'static str,
) -> Result<(), PhasesError> {
    if right {
        return Ok(());
    }
    Err(PhasesError::Parameter {
        parameter,
        value,
        wanted,
    })
}

impl FromStr for Phases {
    type Err = PhasesError;

    fn from_str(text: &str) -> Result<Self, PhasesError> {
        let refused = || PhasesError::Text {
            text: excerpt(text),
        };
        let numbers: Result<Vec<f64>, _> =
            text.split(',').map(|part| part.trim().parse()).collect();
        match numbers.map_err(|_| refused())?[..] {
            [low_span, high_span, low_load, high_load] => {
                Self::new(low_span, high_span, low_load, high_load)
            }
            _ => Err(refused()),
        }
    }
}

/// With spans in seconds, for people.
impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            low_span,
            high_span,
            low_load,
            high_load,
        } = self;
        write!(
            f,
            "load {low_load} for {low_span} s and {high_load} for {high_span} s"
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn four_numbers_are_phases() {
        let phases: Phases = "25, 10,0.2,1.2".parse().unwrap();
        assert_eq!(phases, Phases::new(25.0, 10.0, 0.2, 1.2).unwrap());
        assert_eq!(phases.to_string(), "load 0.2 for 25 s and 1.2 for 10 s");
        assert!((phases.mean_load() - 17.0 / 35.0).abs() < 1e-12);
        assert_eq!(phases.stretched(2.0).period(), 70.0);
    }

    #[test]
    fn what_means_nothing_is_told_in_one_line() {
        for (text, part) in [
            ("", "``: want four numbers"),
            ("1,1,0.5", "`1,1,0.5`: want four numbers"),
            ("1,1,0.5,x", "want four numbers"),
            ("0,1,0.5,1.2", "low span 0 of alternating load: want"),
            ("1,inf,0.5,1.2", "high span inf"),
            ("1,1,-0.5,1.2", "low load -0.5"),
            ("1,1,0.5,NaN", "high load NaN"),
            ("1,1,0.5,0.4", "at least the low load"),
            ("1,1,0.9,1.2", "mean load 1.05 "),
        ] {
            let told = text.parse::<Phases>().unwrap_err().to_string();
            assert!(told.contains(part), "{text}: {told}");
            assert_eq!(told.lines().count(), 1, "{told}");
        }
    }
}
