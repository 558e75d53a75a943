//! User equivalents: each fetches a page, rests, fetches the next, for ever (001, 4.2; 004, 4.4.3).
//! All users together make one sequence of references, in the order in which they ask. Each has its
//! own pauses.
//!
//! A page has as many files as a Pareto draw rounded down: 1 in 81 % of the cases, 1.37 in the
//! mean, at most [`FILES_PER_PAGE_MAX`]. They are the next ones of the sequence, which leaves
//! popularity and locality as they are.

use std::time::Duration;

use parking_lot::Mutex;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::site::Picker;
use super::super::{SiteFile, SiteFiles};

/// The most files of a page.
const FILES_PER_PAGE_MAX: usize = 100;
const FILES_PER_PAGE_ALPHA: f64 = 2.43;
const ACTIVE_OFF_SHAPE: f64 = 1.46;
const ACTIVE_OFF_SCALE_S: f64 = 0.382;
const INACTIVE_OFF_ALPHA: f64 = 1.5;
const INACTIVE_OFF_MIN_S: f64 = 1.0;

/// What the users of a site do.
#[derive(Debug)]
pub struct UserModel {
    site: SiteFiles,
    seed: u64,
    sequence: Mutex<(Picker, ChaCha8Rng)>,
}

/// One user, with pauses of its own.
#[derive(Debug)]
pub struct User<'a> {
    model: &'a UserModel,
    rng: ChaCha8Rng,
}

/// The files of a page, the page itself first; never empty.
pub type Page = Vec<SiteFile>;

impl UserModel {
    /// The users of this site. The same seed gives the same references and the same pauses.
    pub fn new(site: SiteFiles, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let picker = site.picker(&mut rng);
        Self {
            site,
            seed,
            sequence: Mutex::new((picker, rng)),
        }
    }

    /// The user with this number.
    pub fn user(&self, number: u64) -> User<'_> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        // Stream 0 is that of the references.
        rng.set_stream(number + 1);
        User { model: self, rng }
    }

    /// The next reference of all users.
    fn next_file(&self) -> &SiteFile {
        let (picker, rng) = &mut *self.sequence.lock();
        &self.site.files()[picker.next(rng)]
    }
}

impl User<'_> {
    /// How long until the user's first page: the rest of a pause, as if users had been active for
    /// ever, so that the load of a run is the same from its beginning. With pauses of mean m,
    /// P(first wait > x) is the integral of P(pause > t) from x on, over m.
    pub fn first_wait(&mut self) -> Duration {
        let (k, a) = (INACTIVE_OFF_MIN_S, INACTIVE_OFF_ALPHA);
        let mean_s = k * a / (a - 1.0);
        let above = 1.0 - self.rng.random::<f64>();
        // Up to k every pause is still on; from there P(> x) = (k/x)^(a - 1) / a.
        let wait_s = if above >= 1.0 / a {
            mean_s * (1.0 - above)
        } else {
            k * libm::pow(a * above, -1.0 / (a - 1.0))
        };
        Duration::from_secs_f64(wait_s)
    }

    /// The next page.
    pub fn page(&mut self) -> Page {
        let count = pareto(1.0, FILES_PER_PAGE_ALPHA, self.rng.random());
        let files = (count as usize).clamp(1, FILES_PER_PAGE_MAX);
        (0..files).map(|_| self.model.next_file().clone()).collect()
    }

    /// The pause before another file of the same page (active OFF time).
    pub fn active_off(&mut self) -> Duration {
        let above = 1.0 - self.rng.random::<f64>();
        let power = libm::pow(-libm::log(above), 1.0 / ACTIVE_OFF_SHAPE);
        Duration::from_secs_f64(ACTIVE_OFF_SCALE_S * power)
    }

    /// The pause before the next page (inactive OFF time, "think time").
    pub fn inactive_off(&mut self) -> Duration {
        let pause_s = pareto(INACTIVE_OFF_MIN_S, INACTIVE_OFF_ALPHA, self.rng.random());
        Duration::from_secs_f64(pause_s)
    }
}

/// The Pareto quantile: P(X > x) = (k/x)^alpha.
fn pareto(k: f64, alpha: f64, quantile: f64) -> f64 {
    k * libm::pow(1.0 - quantile, -1.0 / alpha)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::workload::SurgePreset;

    const COUNT: usize = 40_000;

    fn model(seed: u64) -> UserModel {
        UserModel::new(SurgePreset::ALL[1].site(), seed)
    }

    fn sorted(draw: impl FnMut() -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = std::iter::repeat_with(draw).take(COUNT).collect();
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    /// The share above each value is that of the closed form, within five deviations.
    fn assert_survival(values: &[f64], above: impl Fn(f64) -> f64) {
        for share in [0.9, 0.5, 0.25, 0.1, 0.01] {
            let at = ((1.0 - share) * COUNT as f64) as usize;
            let got = above(values[at]);
            let deviation = (share * (1.0 - share) / COUNT as f64).sqrt();
            assert!((got - share).abs() < 5.0 * deviation, "{got}, not {share}");
        }
    }

    #[test]
    fn active_off_times_are_weibull() {
        let model = model(1);
        let mut user = model.user(0);
        let values = sorted(|| user.active_off().as_secs_f64());
        assert_survival(&values, |x| (-(x / 0.382).powf(1.46)).exp());
        let mean = values.iter().sum::<f64>() / COUNT as f64;
        // 0.382 Gamma(1 + 1/1.46).
        assert!((mean - 0.3460).abs() < 0.006, "{mean}");
    }

    #[test]
    fn inactive_off_times_are_pareto() {
        let model = model(2);
        let mut user = model.user(0);
        let values = sorted(|| user.inactive_off().as_secs_f64());
        assert!(values[0] >= 1.0);
        assert_survival(&values, |x| x.powf(-1.5));
    }

    #[test]
    fn first_waits_are_what_is_left_of_a_pause() {
        let model = model(5);
        let mut number = 0;
        let values = sorted(|| {
            number += 1;
            model.user(number).first_wait().as_secs_f64()
        });
        let above = |x: f64| {
            if x < 1.0 {
                1.0 - x / 3.0
            } else {
                2.0 / 3.0 / x.sqrt()
            }
        };
        assert_survival(&values, above);
    }

    #[test]
    fn pages_are_as_large_as_a_pareto_rounded_down() {
        let model = model(3);
        let mut user = model.user(0);
        let pages: Vec<usize> = (0..COUNT).map(|_| user.page().len()).collect();
        let share_from = |files: usize| {
            pages.iter().filter(|page| **page >= files).count() as f64 / COUNT as f64
        };
        assert_eq!(share_from(1), 1.0);
        for files in [2, 3, 5, 10] {
            let want = (files as f64).powf(-2.43);
            let deviation = (want / COUNT as f64).sqrt();
            assert!(
                (share_from(files) - want).abs() < 5.0 * deviation,
                "{files}"
            );
        }
        // The sum of m^-2.43.
        let mean = pages.iter().sum::<usize>() as f64 / COUNT as f64;
        assert!((mean - 1.368).abs() < 0.03, "{mean}");
    }

    #[test]
    fn users_differ_and_seeds_repeat() {
        let (one, two) = (model(4), model(4));
        assert_eq!(one.user(1).page(), two.user(1).page());
        assert_eq!(one.user(1).inactive_off(), two.user(1).inactive_off());
        assert_ne!(one.user(1).inactive_off(), one.user(2).inactive_off());
    }
}
