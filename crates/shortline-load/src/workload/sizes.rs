//! File sizes like those requested from the World Cup 98 site, as paper 000, 2.1, gives
//! them: mean 5 KB, 41 B to 2.02 MB, half under 1 KB, 90 % under 9.3 KB, a log-normal
//! body and a Pareto tail with alpha < 1.5, the largest 3 % over half of all bytes.
//!
//! The distribution, K = 1000 bytes:
//! - body, 90 % of the files: log-normal, cut off below 41 B; its two parameters are fixed
//!   by the median of 1 KB and the 90th percentile of 9.3 KB;
//! - tail, 10 %: Pareto from 9.3 KB to 2.02 MB,
//!   P(X > x) = ((9300/x)^alpha - k) / (1 - k), k = (9300/2.02 MB)^alpha.
//!
//! A site of N files has the quantiles at (i + 1/2)/N, so nothing is drawn at random, and
//! exactly the smallest and the largest size. Alpha is then what makes the mean 5 KB:
//! 1.40 for 2,000 files, 1.28 for 4,000, 1.23 for 50,000. Under 2,000 files the one of
//! 2.02 MB alone would leave no Pareto tail with alpha < 1.5, so fewer are refused.
//!
//! Every file is asked for equally often, so sizes of files and of requests have one
//! distribution; the paper gives only the latter.

use thiserror::Error;

use super::{SiteFile, SiteFiles};

/// The fewest files a World Cup-like site can have.
pub const FILES_MIN: usize = 2_000;
/// The most files a World Cup-like site may have (5 GB).
pub const FILES_MAX: usize = 1_000_000;
/// A good number of files for a test: 20 MB in all.
pub const FILES_DEFAULT: usize = 4_000;
/// The smallest file, in bytes.
pub const BYTES_MIN: u64 = 41;
/// The largest file, in bytes.
pub const BYTES_MAX: u64 = 2_020_000;

const BYTES_MEAN: f64 = 5_000.0;
/// Where the body ends and the tail begins: the 90th percentile, in bytes.
const TAIL_BYTES: f64 = 9_300.0;
const TAIL_SHARE: f64 = 0.1;
/// Mean and deviation of the logarithm of the body's log-normal before the cut at 41 B:
/// the solution of F(1000) = 0.5 and F(9300) = 0.9.
const BODY_LOG_MEAN: f64 = 6.817653233731743;
const BODY_LOG_DEVIATION: f64 = 1.777961864597866;
const FILES_PER_DIRECTORY: usize = 1_000;

/// A number of files for which the distribution cannot be had.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{files} files: want {FILES_MIN} to {FILES_MAX} for World Cup-like sizes")]
pub struct FilesOutOfRange {
    files: usize,
}

/// The site of `files` files, smallest first; paths tell the rank, not the size.
///
/// # Errors
/// [`FilesOutOfRange`] outside [`FILES_MIN`] to [`FILES_MAX`].
pub fn world_cup_like(files: usize) -> Result<SiteFiles, FilesOutOfRange> {
    if !(FILES_MIN..=FILES_MAX).contains(&files) {
        return Err(FilesOutOfRange { files });
    }
    let sizes = sizes(files);
    let named = sizes.into_iter().enumerate().map(|(rank, bytes)| SiteFile {
        path: format!("/{:03}/{rank:06}.bin", rank / FILES_PER_DIRECTORY),
        bytes,
    });
    Ok(SiteFiles::new(named.collect()))
}

fn sizes(files: usize) -> Vec<u64> {
    let quantiles = (0..files).map(|i| (i as f64 + 0.5) / files as f64);
    let (body, tail): (Vec<f64>, Vec<f64>) =
        quantiles.partition(|quantile| *quantile < 1.0 - TAIL_SHARE);
    let body: Vec<u64> = body.into_iter().map(body_bytes).collect();
    let body_total: u64 = body.iter().sum();
    let tail_total = (BYTES_MEAN * files as f64) as u64 - body_total;
    let mut sizes = body;
    sizes.extend(tail_sizes(&tail, tail_total));
    if let [first, .., last] = sizes.as_mut_slice() {
        (*first, *last) = (BYTES_MIN, BYTES_MAX);
    }
    sizes
}

/// The quantile of the body, by bisection on the logarithm of the size.
fn body_bytes(quantile: f64) -> u64 {
    let cut = body_share(libm::log(BYTES_MIN as f64));
    let share = cut + quantile * (1.0 - cut);
    let log = bisect(libm::log(BYTES_MIN as f64), libm::log(TAIL_BYTES), |log| {
        body_share(log) < share
    });
    libm::exp(log).round() as u64
}

/// The log-normal's share below the size of this logarithm, before the cut.
fn body_share(log: f64) -> f64 {
    let deviations = (log - BODY_LOG_MEAN) / BODY_LOG_DEVIATION;
    0.5 * libm::erfc(-deviations / std::f64::consts::SQRT_2)
}

/// The tail's sizes for the alpha with which they add up to `total` bytes.
fn tail_sizes(quantiles: &[f64], total: u64) -> Vec<u64> {
    let sizes = |alpha: f64| -> Vec<u64> {
        let mut sizes: Vec<u64> = quantiles.iter().map(|q| tail_bytes(*q, alpha)).collect();
        if let Some(last) = sizes.last_mut() {
            *last = BYTES_MAX;
        }
        sizes
    };
    sizes(bisect(0.5, 4.0, |alpha| {
        sizes(alpha).iter().sum::<u64>() > total
    }))
}

fn tail_bytes(quantile: f64, alpha: f64) -> u64 {
    let above = (1.0 - quantile) / TAIL_SHARE;
    let cut = libm::pow(TAIL_BYTES / BYTES_MAX as f64, alpha);
    let power = above * (1.0 - cut) + cut;
    (TAIL_BYTES * libm::pow(power, -1.0 / alpha)).round() as u64
}

/// The point between `low` and `high` where `is_below` turns false.
fn bisect(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
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

    /// Least squares on the logarithms of the survival function of the tail, the largest
    /// 2 % left out: there a tail with a largest size bends.
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
    fn a_number_of_files_out_of_range_is_refused() {
        assert_eq!(
            world_cup_like(1_999).unwrap_err().to_string(),
            "1999 files: want 2000 to 1000000 for World Cup-like sizes"
        );
        assert!(world_cup_like(FILES_MAX + 1).is_err());
    }
}
