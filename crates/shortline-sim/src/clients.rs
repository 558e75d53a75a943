//! Classes of clients: how fast a client takes bytes, and how far away it is.
//!
//! Written `RATE[/RTT][*SHARE]`, classes separated by commas, such as
//! `56kbit/200ms*0.3,10mbit/20ms*0.7`. A job belongs to a class with the probability of its share
//! over the sum of the shares; a class without a share counts 1. What a path-aware policy knows of
//! a client follows from both: RTT, the window that fills the path (rate times RTT), and the rate.
//!
//! Departure: policies take the client's own rate for the rate seen so far, whatever the queue did
//! to the job. So `stert` has one rate where paper 004 has two.

use std::fmt;
use std::str::FromStr;

use shortline_sched::units::{Rate, Span, excerpt};

/// A class of clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientClass {
    /// The most that a client takes.
    pub rate: Rate,
    /// Round trip time to it.
    pub rtt: Span,
    /// How likely a job is of this class, relative to the others' shares: finite, above 0.
    pub share: f64,
}

/// Text that describes no class of clients.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("client class `{text}`: {problem}; write it like 10mbit/20ms*0.5")]
pub struct ClientClassError {
    text: String,
    problem: String,
}

impl FromStr for ClientClass {
    type Err = ClientClassError;

    fn from_str(text: &str) -> Result<Self, ClientClassError> {
        let refused = |problem: String| ClientClassError {
            text: excerpt(text),
            problem,
        };
        let (path, share) = text.split_once('*').unwrap_or((text, "1"));
        let (rate, rtt) = path.split_once('/').unwrap_or((path, "0ms"));
        let share: f64 = share
            .trim()
            .parse()
            .ok()
            .filter(|share: &f64| share.is_finite() && *share > 0.0)
            .ok_or_else(|| refused("its share must be a number above 0".into()))?;
        Ok(Self {
            rate: rate
                .parse()
                .map_err(|_| refused(format!("`{}` is no rate", excerpt(rate))))?,
            rtt: rtt
                .parse()
                .map_err(|_| refused(format!("`{}` is no time", excerpt(rtt))))?,
            share,
        })
    }
}

impl fmt::Display for ClientClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}*{}", self.rate, self.rtt, self.share)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn classes_read_as_they_are_written() {
        let class: ClientClass = "56kbit/200ms*0.3".parse().unwrap();
        assert_eq!(class.rate, Rate::from_bps(56_000));
        assert_eq!(class.rtt.duration().as_millis(), 200);
        assert_eq!(class.share, 0.3);
        assert_eq!(class.to_string().parse(), Ok(class));
        assert_eq!("1mbit".parse::<ClientClass>().unwrap().share, 1.0);
    }

    #[test]
    fn what_is_no_class_is_refused_in_one_line() {
        for text in [
            "",
            "fast",
            "1mbit/x",
            "1mbit*0",
            "1mbit*NaN",
            "0mbit",
            "1mbit*-1",
        ] {
            let error = text.parse::<ClientClass>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")) && error.lines().count() == 1);
        }
    }
}
