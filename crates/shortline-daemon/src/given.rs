//! Options as they were given, the command line over the file over the default, and how an error names
//! where one was.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::time::Duration;

use shortline_sched::units::{Size, Span};

/// A set of options with the places they come from.
pub struct Given<'a, T> {
    /// What the command line says.
    pub flags: &'a T,
    /// The flags over the file.
    pub merged: &'a T,
    /// The name of a key's place, of which the first tells whether it was a flag.
    pub place: &'a dyn Fn(bool, &str) -> String,
}

/// A value that is refused. Its text names the place, and what would be right.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// No time at all.
    #[error("{at}: must be more than 0, such as 20s")]
    NoTime {
        /// Where it was given.
        at: String,
    },
    /// Too little or too much.
    #[error("{at}: {size} is out of range: must be from {least} to {most}")]
    OutOfRange {
        /// Where it was given.
        at: String,
        /// What was given.
        size: Size,
        /// The smallest that is taken.
        least: Size,
        /// The largest.
        most: Size,
    },
}

impl From<ValueError> for String {
    fn from(error: ValueError) -> Self {
        error.to_string()
    }
}

impl<T> Given<'_, T> {
    /// Names a key's place.
    pub fn at(&self, by_flag: bool, key: &str) -> String {
        (self.place)(by_flag, key)
    }

    /// A time above 0.
    ///
    /// # Errors
    /// [`ValueError::NoTime`]
    pub fn time(
        &self,
        key: &str,
        option: impl Fn(&T) -> Option<Span>,
        default: Duration,
    ) -> Result<Duration, ValueError> {
        match option(self.merged).map(Span::duration) {
            None => Ok(default),
            Some(Duration::ZERO) => Err(ValueError::NoTime {
                at: self.at(option(self.flags).is_some(), key),
            }),
            Some(time) => Ok(time),
        }
    }

    /// A number of bytes within `range`.
    ///
    /// # Errors
    /// [`ValueError::OutOfRange`]
    pub fn size<B>(
        &self,
        key: &str,
        option: impl Fn(&T) -> Option<Size>,
        range: RangeInclusive<B>,
        default: B,
    ) -> Result<B, ValueError>
    where
        B: Copy + PartialOrd + TryFrom<u64> + TryInto<u64>,
    {
        let Some(size) = option(self.merged) else {
            return Ok(default);
        };
        let bytes = B::try_from(size.bytes()).ok();
        let limit = |bytes: &B| Size::from_bytes((*bytes).try_into().unwrap_or(u64::MAX));
        bytes
            .filter(|bytes| range.contains(bytes))
            .ok_or_else(|| ValueError::OutOfRange {
                at: self.at(option(self.flags).is_some(), key),
                size,
                least: limit(range.start()),
                most: limit(range.end()),
            })
    }
}

/// A count, or its default.
pub fn count(given: Option<NonZeroUsize>, default: usize) -> usize {
    given.map_or(default, NonZeroUsize::get)
}
