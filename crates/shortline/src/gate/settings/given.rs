//! Options as they were given, and how an error names where that was.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
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

    /// A number of bytes within `range`.
    ///
    /// # Errors
    /// Names the place and the range.
    pub fn size<B>(
        &self,
        by_flag: bool,
        key: &str,
        given: Option<Size>,
        range: RangeInclusive<B>,
        default: B,
    ) -> Result<B, String>
    where
        B: Copy + PartialOrd + TryFrom<u64> + TryInto<u64>,
    {
        let Some(size) = given else {
            return Ok(default);
        };
        let bytes = B::try_from(size.bytes()).ok();
        bytes.filter(|bytes| range.contains(bytes)).ok_or_else(|| {
            let written = |bytes: &B| Size::from_bytes((*bytes).try_into().unwrap_or(u64::MAX));
            format!(
                "{}: {size} is out of range: must be from {} to {}",
                self.at(by_flag, key),
                written(range.start()),
                written(range.end())
            )
        })
    }
}

/// A count, or its default.
pub fn count(given: Option<NonZeroUsize>, default: usize) -> usize {
    given.map_or(default, NonZeroUsize::get)
}
