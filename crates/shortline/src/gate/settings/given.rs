//! Options as they were given, and how an error names where that was.

use std::num::NonZeroUsize;
use std::time::Duration;

use shortline_sched::units::{Size, Span};

use super::super::options::GateOptions;

/// Options with the places they come from.
pub struct Given<'a> {
    /// What the command line says.
    pub flags: &'a GateOptions,
    /// The flags over the file.
    pub merged: &'a GateOptions,
    /// The name of a key's place, of which the first tells whether it was a flag.
    pub place: &'a dyn Fn(bool, &str) -> String,
}

impl Given<'_> {
    /// Names a key's place.
    pub fn at(&self, by_flag: bool, key: &str) -> String {
        (self.place)(by_flag, key)
    }

    /// A time above 0.
    ///
    /// # Errors
    /// Names the place and what would be right.
    pub fn time(
        &self,
        by_flag: bool,
        key: &str,
        given: Option<Span>,
        default: Duration,
    ) -> Result<Duration, String> {
        match given.map(Span::duration) {
            None => Ok(default),
            Some(Duration::ZERO) => Err(format!(
                "{}: must be more than 0, such as 20s",
                self.at(by_flag, key)
            )),
            Some(time) => Ok(time),
        }
    }

    /// What to say of a size that is not between two others, in bytes.
    pub fn out_of_range(
        &self,
        by_flag: bool,
        key: &str,
        size: Size,
        least: u64,
        most: u64,
    ) -> String {
        format!(
            "{}: {size} is out of range: must be from {} to {}",
            self.at(by_flag, key),
            Size::from_bytes(least),
            Size::from_bytes(most)
        )
    }
}

/// A count, or its default.
pub fn count(given: Option<NonZeroUsize>, default: usize) -> usize {
    given.map_or(default, NonZeroUsize::get)
}
