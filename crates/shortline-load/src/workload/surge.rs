//! SURGE, the workload generator of Barford and Crovella (SIGMETRICS 1998), as papers 001, 003
//! and 004 ran it: files, requests and their popularity, locality, pages and pauses.
//!
//! | | law | parameters |
//! |---|---|---|
//! | file sizes, body | log-normal | mu 9.357, sigma 1.318 |
//! | file sizes, tail | Pareto | from k = 133 KB, alpha 1.1 |
//! | request sizes | log-normal, from 9020 B Pareto | mu 7.630, sigma 1.001; alpha 1.0 |
//! | popularity | Zipf | the r-th most popular file is asked for 1/r as often as the first |
//! | temporal locality: stack distance | log-normal | mu 1.5, sigma 0.80, decimal logarithms |
//! | files of a page (in 004 those embedded in it) | Pareto | k = 1, alpha 2.43, rounded down |
//! | active OFF time, between files of a page, s | Weibull | shape 1.46, scale 0.382 |
//! | inactive OFF time, between pages, s | Pareto | k = 1, alpha 1.5 |
//!
//! SURGE's five steps: make the file sizes; give the files popularities such that the sizes of
//! requests follow their own law (`matching.rs`, `bands.rs`); order the requests by their locality
//! (`references.rs`); group them into pages; and let each user fetch a page, pause, and fetch the
//! next (`users.rs`). The **open** variant (003, appendix) has no users: the same requests arrive
//! one by one at a load's rate ([`super::arrivals`]; Poisson, 003 does not say).
//!
//! **What the papers print and what is used.** 004's Table 1 lists SURGE's laws, with slips. Each
//! was compared with SURGE's definitions and with what it would lead to:
//! - The log-normal densities have 2 sigma sqrt(2 pi) in the denominator, without x, and so do not
//!   integrate to 1. Used is 1/(x sigma sqrt(2 pi)), as in 001, Table 1.
//! - The tail has k = 1333 KB instead of 133 KB. The body has 0.02 % above 1333 KB, which leaves no
//!   tail among 2,000 files; above 133 KB it has 3.2 %. The tail takes exactly that share.
//! - The Weibull's density has b in the denominator instead of a^b, and its a = 1.46, b = 0.382 are
//!   scale and shape. Then 42 % of the pauses inside a page would be over the second that by
//!   definition (004, 4.4.3) separates pages. With 1.46 as the shape 1.7 % are.
//! - Request sizes are Pareto with k = 1000, alpha 1. Then no request would be under 1000 bytes,
//!   while 004's own begin at 77. Used is 001, Table 1, of the same alpha, in which 24 % are under
//!   1000 bytes. (003 gives alpha 1.1 with a mean of 11,108 bytes; the mean is that of 1.0.)
//! - Stack distances with natural logarithms would be 4.5 files at the median and under 54 for 99.9
//!   %. Of 2,000 files all but the last few dozen would never be asked for again, against their
//!   popularity. With decimal logarithms the median is 32 and 1.2 % are beyond 2,000.
//! - 004's request sizes are those of its 5.3.3.1, which no law of its Table 1 has (`bands.rs`).
//! - Mean request sizes of 001 and 003 (11,108 B) belong to the law up to 10^10 bytes; no site of
//!   theirs has such a file. `docs/lab/workloads.md` has the means with each paper's largest file.
//!
//! Each preset has its paper's number of files, smallest and largest file, exactly.

mod bands;
mod matching;
mod presets;
mod references;
mod users;

use std::num::NonZeroU64;

use super::SiteFiles;
use super::sizes::named;
pub use presets::{SurgePreset, UnknownPreset};
pub(super) use references::References;
pub use users::{Page, PageFiles, User, UserModel};

impl SurgePreset {
    /// The site with the popularity of each of its files.
    pub fn site(&self) -> SiteFiles {
        let sizes = self.file_law().sizes(self.files);
        let shares = self.shares(&sizes, &zipf(self.files));
        SiteFiles::popular(named(sizes), shares)
    }

    /// So many of its users, with a site of their own.
    pub fn users(&self, users: NonZeroU64, seed: u64) -> UserModel {
        UserModel::new(self.site(), self.pages, users, seed)
    }
}

/// Shares of the requests by rank, the most popular first.
fn zipf(files: usize) -> Vec<f64> {
    let total: f64 = (1..=files).map(|rank| 1.0 / rank as f64).sum();
    (1..=files).map(|rank| 1.0 / rank as f64 / total).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_preset_has_its_papers_files() {
        let want = [
            ("surge-001", 2_000, 186, 121_000_000),
            ("surge-003", 1_000, 76, 2_000_000),
            ("surge-004", 2_000, 77, 3_119_822),
        ];
        for (preset, (name, files, smallest, largest)) in SurgePreset::ALL.iter().zip(want) {
            let site = preset.site();
            let sizes: Vec<u64> = site.files().iter().map(|file| file.bytes).collect();
            assert_eq!(preset.name, name);
            assert_eq!(sizes.len(), files);
            assert!(sizes.is_sorted());
            assert_eq!((sizes[0], sizes[files - 1]), (smallest, largest), "{name}");
        }
        let site = SurgePreset::ALL[1].site();
        let mean = site.files().iter().map(|file| file.bytes).sum::<u64>() as f64 / 1_000.0;
        // 003, appendix.
        assert!((mean - 13_727.0).abs() < 5.0, "{mean}");
    }

    #[test]
    fn the_files_of_surge_001_follow_surges_law() {
        let site = SurgePreset::ALL[0].site();
        let sizes: Vec<f64> = site.files().iter().map(|file| file.bytes as f64).collect();
        let above = |bytes: f64| {
            sizes.iter().filter(|size| **size > bytes).count() as f64 / sizes.len() as f64
        };
        // Of a log-normal the median is e^mu and 84.1 % are below e^(mu + sigma).
        assert!((above(9.357f64.exp()) - 0.5).abs() < 0.002);
        assert!((above((9.357f64 + 1.318).exp()) - 0.1587).abs() < 0.002);
        // In a Pareto tail 10^-alpha of what is above x is above 10 x.
        let decade = above(1_330_000.0) / above(133_000.0);
        assert!((decade - 10f64.powf(-1.1)).abs() < 0.01, "{decade}");
    }

    #[test]
    fn popularity_is_zipfs() {
        let mut shares: Vec<f64> = SurgePreset::ALL[2].site().shares().collect();
        shares.sort_unstable_by(|a, b| b.total_cmp(a));
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        for (rank, share) in (1..).zip(&shares) {
            assert!((share * f64::from(rank) - shares[0]).abs() < 1e-9);
        }
    }

    /// One file has a tenth of the requests or more, so the sizes of requests cannot follow a
    /// smooth law closer than half of that.
    #[test]
    fn sizes_of_requests_follow_their_law_as_close_as_popularity_lets_them() {
        for preset in &SurgePreset::ALL[..2] {
            let site = preset.site();
            let law = preset.request_law();
            let most = site.shares().fold(0.0, f64::max);
            let mut below = 0.0;
            let files = site.files();
            for (at, share) in site.shares().enumerate() {
                below += share;
                if let Some(next) = files.get(at + 1) {
                    let border = (files[at].bytes as f64 * next.bytes as f64).sqrt();
                    let distance = (law.share_below(border) - below).abs();
                    assert!(
                        distance < most / 2.0 + 0.01,
                        "{}: {distance} at {border} bytes",
                        preset.name
                    );
                }
            }
        }
    }

    #[test]
    fn presets_have_names() {
        assert_eq!("SURGE-003".parse::<SurgePreset>().unwrap().files, 1_000);
        assert_eq!(
            "surge-002".parse::<SurgePreset>().unwrap_err().to_string(),
            "preset `surge-002`: want surge-001, surge-003 or surge-004"
        );
    }
}
