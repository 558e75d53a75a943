//! The configured cutoffs of `bands`: sizes, or a number of bands to learn.
//!
//! As text: `1KB,2KB,5KB,50KB` (rising sizes), or `6` (six learnt bands). Papers 003 and 000 use
//! the four sizes of the default. The kernel's priority queue has at most 16 bands.

use std::fmt;
use std::str::FromStr;

use crate::units::{Size, UnitError, excerpt};

/// The most bands.
pub const BANDS_MAX: usize = 16;
/// The most cutoffs: between 16 bands.
pub(super) const CUTOFFS_MAX: usize = BANDS_MAX - 1;

/// How the bands of policy `bands` divide the sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cutoffs(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// The first `count` sizes, rising; the others are 0.
    Fixed {
        sizes: [u64; CUTOFFS_MAX],
        count: u8,
    },
    Learnt {
        bands: u8,
    },
}

/// Cutoffs that make no bands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CutoffsError {
    /// Too few or too many bands.
    #[error("{0} bands: must be from 2 to {BANDS_MAX}")]
    Count(String),
    /// A size that does not exceed the one before.
    #[error("cutoffs must rise from above 0: {} follows {}", .next, .before)]
    NotRising {
        /// The cutoff before, or 0.
        before: Size,
        /// The cutoff that is not larger.
        next: Size,
    },
    /// A text that is not a size.
    #[error(transparent)]
    Size(#[from] UnitError),
}

impl Cutoffs {
    /// The five bands of paper 000 3.2: 1, 2, 5 and 50 KB.
    pub const USUAL: Cutoffs = Cutoffs::of(&[1_000, 2_000, 5_000, 50_000]);

    /// Fixed cutoffs: the largest size of each band but the last, in bytes.
    ///
    /// # Errors
    /// [`CutoffsError`] unless there are 1 to 15 of them, rising from above 0.
    pub fn fixed(bytes: &[u64]) -> Result<Self, CutoffsError> {
        if bytes.is_empty() || bytes.len() > CUTOFFS_MAX {
            return Err(CutoffsError::Count((bytes.len() + 1).to_string()));
        }
        let mut before = 0;
        for &next in bytes {
            if next <= before {
                return Err(CutoffsError::NotRising {
                    before: Size::from_bytes(before),
                    next: Size::from_bytes(next),
                });
            }
            before = next;
        }
        Ok(Self::of(bytes))
    }

    /// Cutoffs for `bands` bands, learnt from the sizes seen.
    ///
    /// # Errors
    /// [`CutoffsError`] unless it is from 2 to 16.
    pub fn learnt(bands: usize) -> Result<Self, CutoffsError> {
        if (2..=BANDS_MAX).contains(&bands) {
            Ok(Self(Kind::Learnt { bands: bands as u8 }))
        } else {
            Err(CutoffsError::Count(bands.to_string()))
        }
    }

    /// The fixed cutoffs, in bytes; none if they are learnt.
    pub fn sizes(&self) -> &[u64] {
        match &self.0 {
            Kind::Fixed { sizes, count } => &sizes[..usize::from(*count)],
            Kind::Learnt { .. } => &[],
        }
    }

    /// How many bands the cutoffs make.
    pub fn bands(&self) -> usize {
        self.learnt_bands().unwrap_or(self.sizes().len() + 1)
    }

    /// How many bands are to be learnt; `None` if the cutoffs are fixed.
    pub(crate) fn learnt_bands(&self) -> Option<usize> {
        match self.0 {
            Kind::Fixed { .. } => None,
            Kind::Learnt { bands } => Some(usize::from(bands)),
        }
    }

    /// The cutoffs for a driver that counts `work_per_byte` units of work for each byte.
    pub(super) fn scaled(self, work_per_byte: f64) -> Self {
        match self.0 {
            Kind::Learnt { .. } => self,
            Kind::Fixed { mut sizes, count } => {
                for size in &mut sizes {
                    *size = scaled(*size, work_per_byte);
                }
                Self(Kind::Fixed { sizes, count })
            }
        }
    }

    /// Two bands around a size, or around the median of the sizes seen.
    pub(super) fn around(size: Option<Size>) -> Self {
        match size {
            Some(size) => Self::of(&[size.bytes()]),
            None => Self(Kind::Learnt { bands: 2 }),
        }
    }

    const fn of(bytes: &[u64]) -> Self {
        let mut sizes = [0; CUTOFFS_MAX];
        let (first, _) = sizes.split_at_mut(bytes.len());
        first.copy_from_slice(bytes);
        Self(Kind::Fixed {
            sizes,
            count: bytes.len() as u8,
        })
    }
}

/// Bytes as units of work.
pub(super) fn scaled(bytes: u64, work_per_byte: f64) -> u64 {
    (bytes as f64 * work_per_byte).round() as u64
}

impl Default for Cutoffs {
    fn default() -> Self {
        Self::USUAL
    }
}

impl FromStr for Cutoffs {
    type Err = CutoffsError;

    fn from_str(text: &str) -> Result<Self, CutoffsError> {
        let bare_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if bare_number {
            // A number that does not fit is too large, too.
            let refused = || CutoffsError::Count(excerpt(text));
            return Self::learnt(text.parse().map_err(|_| refused())?);
        }
        let sizes: Result<Vec<Size>, UnitError> = text.split(',').map(str::parse).collect();
        let bytes: Vec<u64> = sizes?.into_iter().map(Size::bytes).collect();
        Self::fixed(&bytes)
    }
}

impl fmt::Display for Cutoffs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(bands) = self.learnt_bands() {
            return write!(f, "{bands}");
        }
        let sizes = self.sizes().iter().map(|&size| Size::from_bytes(size));
        let texts: Vec<String> = sizes.map(|size| size.to_string()).collect();
        f.write_str(&texts.join(","))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn read_as_sizes_or_as_a_number_of_bands() {
        let cutoffs: Cutoffs = "1KB,2KB,5KB,50KB".parse().unwrap();
        assert_eq!(cutoffs, Cutoffs::default());
        assert_eq!("6".parse(), Cutoffs::learnt(6));
        assert_eq!("512B".parse(), Cutoffs::fixed(&[512]));
        for text in ["1kB,2kB", "16", "512B", "1B,2B,1MiB"] {
            assert_eq!(text.parse::<Cutoffs>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        let refused = |text: &str| text.parse::<Cutoffs>().unwrap_err().to_string();
        assert_eq!(refused("1"), "1 bands: must be from 2 to 16");
        assert_eq!(refused("17"), "17 bands: must be from 2 to 16");
        assert!(refused("99999999999999999999").contains("must be from 2 to 16"));
        assert_eq!(
            refused("2kB,1kB"),
            "cutoffs must rise from above 0: 1kB follows 2kB"
        );
        assert!(refused("0B,1kB").contains("0B follows 0B"));
        assert!(refused("").starts_with("size ``"));
        assert!(refused("1kB,,2kB").starts_with("size ``"));
        let many: Vec<String> = (1..=16).map(|kb| format!("{kb}kB")).collect();
        assert_eq!(refused(&many.join(",")), "17 bands: must be from 2 to 16");
    }

    #[test]
    fn scale_with_the_unit_of_work() {
        let scaled = Cutoffs::default().scaled(800.0);
        assert_eq!(scaled.sizes(), [800_000, 1_600_000, 4_000_000, 40_000_000]);
        let learnt = Cutoffs::learnt(3).unwrap();
        assert_eq!(learnt.scaled(800.0), learnt);
    }
}
