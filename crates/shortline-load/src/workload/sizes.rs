//! Sizes like those requested from two sites whose logs paper 000 replays. The logs are not part of
//! this project. What the paper says of their sizes makes a twin of each.
//!
//! | | World Cup 98 (2.1) | NASA (appendix) |
//! |---|---|---|
//! | smallest, largest | 41 B, 2.02 MB | 50 B, 1.93 MB |
//! | mean | 5 KB | 19 KB |
//! | the largest | 3 % hold over half of all bytes | 2.5 % hold half of all bytes |
//! | body | log-normal; half under 1 KB, 90 % under 9.3 KB | |
//! | tail | Pareto with alpha < 1.5 | |
//!
//! Both have the form of `hybrid.rs`, K = 1000 bytes. For the World Cup, the median of 1 KB and the
//! 90th percentile of 9.3 KB, where the tail begins, fix the two parameters of the body. For NASA
//! the paper gives none. There the tail is the largest 2.5 %. It begins at 132 KB, where with alpha
//! = 1 (the tail of 001, Table 1) they hold half the bytes. The body is the log-normal that ends
//! there with the rest of the shares and of the bytes (median 2.7 KB).
//!
//! Alpha then makes the mean of the N quantiles right. World Cup: 1.40 for 2,000 files, 1.28 for
//! 4,000, 1.23 for 50,000; NASA: 1.01 for 4,000. With fewer files the largest alone would leave no
//! such tail, so they are refused.
//!
//! Every file is asked for equally often, so sizes of files and of requests have one distribution.
//! The paper gives only the latter.

use thiserror::Error;

use super::hybrid::{Hybrid, bisect};
use super::{SiteFile, SiteFiles};

/// The fewest files of a log's twin.
pub const FILES_MIN: usize = 2_000;
/// The most files of a log's twin (5 GB for the World Cup).
pub const FILES_MAX: usize = 1_000_000;
/// A good number of files for a test: 20 MB in all for the World Cup, 76 MB for NASA.
pub const FILES_DEFAULT: usize = 4_000;
/// The smallest file of the World Cup's twin, in bytes.
pub const BYTES_MIN: u64 = 41;
/// The largest file of the World Cup's twin, in bytes.
pub const BYTES_MAX: u64 = 2_020_000;

const FILES_PER_DIRECTORY: usize = 1_000;

/// A log whose sizes are imitated.
struct Twin {
    name: &'static str,
    bytes_mean: f64,
    /// Its alpha is to be found.
    law: Hybrid,
}

const WORLD_CUP: Twin = Twin {
    name: "World Cup",
    bytes_mean: 5_000.0,
    law: Hybrid {
        // The solution of F(1000) = 0.5 and F(9300) = 0.9.
        log_mean: 6.817653233731743,
        log_deviation: 1.777961864597866,
        bytes_min: BYTES_MIN,
        cut_bytes: 9_300.0,
        bytes_max: BYTES_MAX,
        alpha: 1.0,
        tail_share: 0.1,
    },
};

const NASA: Twin = Twin {
    name: "NASA",
    bytes_mean: 19_000.0,
    law: Hybrid {
        // The solution of F(131959) = 0.975 and a mean of 0.5 * 19000 / 0.975 below that.
        log_mean: 7.8550789977933295,
        log_deviation: 1.9971338881194283,
        bytes_min: 50,
        cut_bytes: 131_959.0,
        bytes_max: 1_930_000,
        alpha: 1.0,
        tail_share: 0.025,
    },
};

/// A number of files for which the distribution does not exist.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{files} files: want {FILES_MIN} to {FILES_MAX} for {name}-like sizes")]
pub struct FilesOutOfRange {
    files: usize,
    name: &'static str,
}

/// A site like the World Cup's with `files` files, smallest first; paths give the rank, not the
/// size.
///
/// # Errors
/// [`FilesOutOfRange`] outside [`FILES_MIN`] to [`FILES_MAX`].
pub fn world_cup_like(files: usize) -> Result<SiteFiles, FilesOutOfRange> {
    WORLD_CUP.site(files)
}

/// A site like NASA's with `files` files, as [`world_cup_like`].
///
/// # Errors
/// [`FilesOutOfRange`] outside [`FILES_MIN`] to [`FILES_MAX`].
pub fn nasa_like(files: usize) -> Result<SiteFiles, FilesOutOfRange> {
    NASA.site(files)
}

impl Twin {
    fn site(&self, files: usize) -> Result<SiteFiles, FilesOutOfRange> {
        if !(FILES_MIN..=FILES_MAX).contains(&files) {
            let name = self.name;
            return Err(FilesOutOfRange { files, name });
        }
        Ok(SiteFiles::new(named(self.sizes(files))))
    }

    /// The sizes for the alpha with which they add up to the mean.
    fn sizes(&self, files: usize) -> Vec<u64> {
        let tail_files = (0..files)
            .map(|i| (i as f64 + 0.5) / files as f64)
            .filter(|quantile| *quantile >= 1.0 - self.law.tail_share)
            .count();
        let body_files = files - tail_files;
        let mut sizes = self.law.sizes(files);
        let total = (self.bytes_mean * files as f64) as u64;
        let left = total - sizes[..body_files].iter().sum::<u64>();
        let tail = |alpha: f64| -> Vec<u64> {
            let law = Hybrid { alpha, ..self.law };
            let quantiles = (body_files..files).map(|i| (i as f64 + 0.5) / files as f64);
            let mut tail: Vec<u64> = quantiles.map(|q| law.bytes_at(q).round() as u64).collect();
            if let Some(last) = tail.last_mut() {
                *last = law.bytes_max;
            }
            tail
        };
        let alpha = bisect(0.5, 4.0, |alpha| tail(alpha).iter().sum::<u64>() > left);
        sizes.splice(body_files.., tail(alpha));
        sizes
    }
}

/// Files of these sizes, with paths that give their place.
pub(super) fn named(sizes: Vec<u64>) -> Vec<SiteFile> {
    let named = sizes.into_iter().enumerate().map(|(rank, bytes)| SiteFile {
        path: format!("/{:03}/{rank:06}.bin", rank / FILES_PER_DIRECTORY),
        bytes,
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn sorted_sizes(files: usize) -> Vec<u64> {
        let site = world_cup_like(files).unwrap();
        site.files().iter().map(|file| file.bytes).collect()
    }

    #[test]
    fn the_papers_numbers_hold_for_every_site() {
        for files in [FILES_MIN, 2_345, FILES_DEFAULT, 20_000] {
            let sizes = sorted_sizes(files);
            assert_eq!(sizes.len(), files);
            assert!(sizes.is_sorted());
            assert_eq!((sizes[0], sizes[files - 1]), (41, 2_020_000));

            let total: u64 = sizes.iter().sum();
            let mean = total as f64 / files as f64;
            assert!((mean - 5_000.0).abs() < 5.0, "{files} files: mean {mean}");

            let share_under = |bytes: u64| {
                sizes.iter().filter(|size| **size < bytes).count() as f64 / files as f64
            };
            assert!((share_under(1_000) - 0.5).abs() < 0.001, "{files} files");
            assert!((share_under(9_300) - 0.9).abs() < 0.001, "{files} files");

            let largest: u64 = sizes[files - files * 3 / 100..].iter().sum();
            assert!(
                largest * 2 > total,
                "{files} files: largest 3 % hold {largest}"
            );
        }
    }

    /// Least squares on the logarithms of the tail's survival function. The largest 2 % are left
    /// out, because there a tail with a largest size bends.
    #[test]
    fn the_tail_is_pareto_with_alpha_below_1_5() {
        let sizes = sorted_sizes(20_000);
        let files = sizes.len();
        let points: Vec<(f64, f64)> = (files * 90 / 100..files * 98 / 100)
            .map(|i| {
                let above = (files - i) as f64 / files as f64;
                ((sizes[i] as f64).ln(), above.ln())
            })
            .collect();
        let count = points.len() as f64;
        let mean_x = points.iter().map(|p| p.0).sum::<f64>() / count;
        let mean_y = points.iter().map(|p| p.1).sum::<f64>() / count;
        let slope = points
            .iter()
            .map(|p| (p.0 - mean_x) * (p.1 - mean_y))
            .sum::<f64>()
            / points.iter().map(|p| (p.0 - mean_x).powi(2)).sum::<f64>();
        assert!((-1.5..-1.0).contains(&slope), "slope {slope}");
    }

    #[test]
    fn the_sizes_are_the_same_everywhere() {
        let sizes = sorted_sizes(FILES_DEFAULT);
        let picked = [1, 1_000, 2_000, 3_600, 3_900, 3_998].map(|rank| sizes[rank]);
        assert_eq!(picked, [41, 325, 1_001, 9_309, 27_568, 609_469]);
    }

    #[test]
    fn the_appendix_numbers_hold_for_nasas_twin() {
        for files in [FILES_MIN, FILES_DEFAULT, 20_000] {
            let site = nasa_like(files).unwrap();
            let sizes: Vec<u64> = site.files().iter().map(|file| file.bytes).collect();
            assert!(sizes.is_sorted());
            assert_eq!((sizes[0], sizes[files - 1]), (50, 1_930_000));
            let total: u64 = sizes.iter().sum();
            let mean = total as f64 / files as f64;
            assert!((mean - 19_000.0).abs() < 20.0, "{files} files: mean {mean}");
            let largest: u64 = sizes[files - files * 25 / 1_000..].iter().sum();
            let share = largest as f64 / total as f64;
            assert!((share - 0.5).abs() < 0.01, "{files} files: {share}");
        }
    }

    #[test]
    fn a_number_of_files_out_of_range_is_refused() {
        assert_eq!(
            world_cup_like(1_999).unwrap_err().to_string(),
            "1999 files: want 2000 to 1000000 for World Cup-like sizes"
        );
        assert!(world_cup_like(FILES_MAX + 1).is_err());
    }
}
