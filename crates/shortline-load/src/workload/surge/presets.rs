//! SURGE as each paper configured it.

use std::fmt;
use std::str::FromStr;

use shortline_sched::units::excerpt;
use thiserror::Error;

use super::super::hybrid::Hybrid;
use super::bands::Bands;
use super::matching;
use super::users::PageFiles;

/// A paper's configuration of SURGE (Barford and Crovella 1998): 001, 4.2; 003, appendix; 004,
/// 5.1. The laws that all three share, and where the papers print them wrongly, are listed in
/// `docs/lab/workloads.md`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurgePreset {
    /// Its name, `surge-` and the paper's number.
    pub name: &'static str,
    /// How many files the site has.
    pub files: usize,
    /// The smallest file, in bytes.
    pub bytes_min: u64,
    /// The largest file, in bytes.
    pub bytes_max: u64,
    /// Mean of the natural logarithm of the file sizes' body.
    log_mean: f64,
    /// What the sizes of its requests follow.
    requests: RequestSizes,
    /// What the draw of a page counts.
    pub pages: PageFiles,
}

/// What the sizes of requests follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestSizes {
    /// 001, Table 1.
    Table1,
    /// 004, 5.3.3.1.
    Bands004,
}

/// SURGE's mu of file sizes.
const LOG_MEAN: f64 = 9.357;

impl SurgePreset {
    /// All of them, by paper.
    pub const ALL: [Self; 3] = [
        // 4.2.
        Self::new("surge-001", 2_000, 186, 121_000_000, LOG_MEAN),
        // Appendix. The mean of the files is 13,727 bytes, which with SURGE's other parameters
        // asks for this mu.
        Self::new("surge-003", 1_000, 76, 2_000_000, 8.510_07),
        // 5.1; the largest file is in 5.3.3.1.
        Self {
            requests: RequestSizes::Bands004,
            pages: PageFiles::Embedded,
            ..Self::new("surge-004", 2_000, 77, 3_119_822, LOG_MEAN)
        },
    ];

    const fn new(
        name: &'static str,
        files: usize,
        bytes_min: u64,
        bytes_max: u64,
        log_mean: f64,
    ) -> Self {
        Self {
            name,
            files,
            bytes_min,
            bytes_max,
            log_mean,
            requests: RequestSizes::Table1,
            pages: PageFiles::All,
        }
    }

    /// The share of the requests of each file of these sizes, which rise.
    pub(super) fn shares(&self, sizes: &[u64], popularity: &[f64]) -> Vec<f64> {
        match self.requests {
            RequestSizes::Bands004 => {
                Bands::of_004(self.bytes_min, self.bytes_max).matched(sizes, popularity)
            }
            RequestSizes::Table1 => {
                let law = self.request_law();
                matching::matched(sizes, |bytes| law.share_below(bytes), popularity)
            }
        }
    }

    /// The law of its file sizes.
    pub(super) fn file_law(&self) -> Hybrid {
        let law = Hybrid {
            log_mean: self.log_mean,
            log_deviation: 1.318,
            bytes_min: self.bytes_min,
            cut_bytes: 133_000.0,
            bytes_max: self.bytes_max,
            alpha: 1.1,
            tail_share: 0.0,
        };
        law.joined()
    }

    /// The law that the sizes of its requests should follow: 001, Table 1, between its smallest and
    /// its largest file.
    pub(super) fn request_law(&self) -> Hybrid {
        let law = Hybrid {
            log_mean: 7.630,
            log_deviation: 1.001,
            bytes_min: self.bytes_min,
            cut_bytes: 9_020.0,
            bytes_max: self.bytes_max,
            alpha: 1.0,
            tail_share: 0.0,
        };
        law.joined()
    }
}

impl fmt::Display for SurgePreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A name that no preset has.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("preset `{name}`: want surge-001, surge-003 or surge-004")]
pub struct UnknownPreset {
    name: String,
}

impl FromStr for SurgePreset {
    type Err = UnknownPreset;

    fn from_str(name: &str) -> Result<Self, UnknownPreset> {
        let found = Self::ALL
            .into_iter()
            .find(|preset| preset.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| UnknownPreset {
            name: excerpt(name),
        })
    }
}
