//! User equivalents: each fetches a page, rests, fetches the next, for ever (001, 4.2; 004, 4.4.3).
//!
//! Everything a user does is drawn by number, whatever the server does: the file of request r of
//! user u is number r * users + u of one sequence of references, and each user has its own pauses.
//! So two runs of a seed make the same requests, and join by user and request. Users who all ask at
//! the same pace take the sequence in its order, so that popularity is as it should be and locality
//! nearly so.
//!
//! SURGE's Pareto draw of a page, rounded down, is 1 in 81 % of the cases and 1.37 in the mean. It
//! is at most [`FILES_PER_PAGE_MAX`]. [`PageFiles`] says what it counts.

use std::num::NonZeroU64;
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

/// What SURGE's draw of a page counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFiles {
    /// All files of the page. With 001's 1,000 users that makes 0.44 requests a second of each; the
    /// paper has 250,000 in ten minutes (4.2), 0.42.
    All,
    /// The files that are embedded in it, beside its own. 004 calls the draw so (4.4.3), and its
    /// more than 650,000 requests in 15 minutes (5.1) are 0.6 a second of 1,200 users at least.
    Embedded,
}

/// What the users of a site do.
#[derive(Debug)]
pub struct UserModel {
    site: SiteFiles,
    pages: PageFiles,
    seed: u64,
    users: u64,
    sequence: Mutex<Sequence>,
}

/// References as far as they are drawn.
#[derive(Debug)]
struct Sequence {
    picker: Picker,
    rng: ChaCha8Rng,
    drawn: Vec<u32>,
}

/// One user, with pauses of its own.
#[derive(Debug)]
pub struct User<'a> {
    model: &'a UserModel,
    number: u64,
    /// The number of its next request.
    next: u64,
    rng: ChaCha8Rng,
}

/// The files of a page, the page itself first; never empty.
pub type Page = Vec<SiteFile>;

impl UserModel {
    /// So many users of this site, at least one. The same seed gives the same references and pauses.
    pub fn new(site: SiteFiles, pages: PageFiles, users: NonZeroU64, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let picker = site.picker(&mut rng);
        let sequence = Sequence {
            picker,
            rng,
            drawn: Vec::new(),
        };
        Self {
            site,
            pages,
            seed,
            users: users.get(),
            sequence: Mutex::new(sequence),
        }
    }

    /// How many there are.
    pub fn users(&self) -> u64 {
        self.users
    }

    /// The user with this number, from 0.
    pub fn user(&self, number: u64) -> User<'_> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        // Stream 0 is that of the references.
        rng.set_stream(number + 1);
        User {
            model: self,
            number,
            next: 0,
            rng,
        }
    }

    /// The requests that all users make in that time if each is answered at once: the most that they
    /// can ask for. Over two connections a page's files are asked for two at a time, which changes
    /// little, so one after the other here.
    pub fn asked_at_most(&self, length: Duration) -> Vec<&SiteFile> {
        let users = (0..self.users).flat_map(|number| {
            let mut user = self.user(number);
            let mut at = user.first_wait();
            let mut asked = Vec::new();
            while at < length {
                let count = user.page_files();
                asked.push(user.next_file());
                let pauses: Vec<Duration> = (1..count).map(|_| user.active_off()).collect();
                for pause in pauses {
                    at += pause;
                    let file = user.next_file();
                    if at < length {
                        asked.push(file);
                    }
                }
                at += user.inactive_off();
            }
            asked
        });
        users.map(|file| &self.site.files()[file]).collect()
    }

    /// The file of reference number `index`, as its place in the site.
    fn file(&self, index: u64) -> usize {
        let Sequence { picker, rng, drawn } = &mut *self.sequence.lock();
        // Two for each that is asked for, up to a request of each user ahead: so hardly anybody waits
        // until many are drawn.
        let ahead = (drawn.len() as u64 + 2).min(index + self.users);
        while (drawn.len() as u64) < ahead.max(index + 1) {
            drawn.push(picker.next(rng) as u32);
        }
        drawn[index as usize] as usize
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

    /// The number of its next request, from 0.
    pub fn next_request(&self) -> u64 {
        self.next
    }

    /// The next page.
    pub fn page(&mut self) -> Page {
        let files = self.page_files();
        let places: Vec<usize> = (0..files).map(|_| self.next_file()).collect();
        let files = places
            .into_iter()
            .map(|place| &self.model.site.files()[place]);
        files.cloned().collect()
    }

    /// How many files the next page has.
    fn page_files(&mut self) -> usize {
        let count = pareto(1.0, FILES_PER_PAGE_ALPHA, self.rng.random()) as usize;
        let itself = match self.model.pages {
            PageFiles::All => 0,
            PageFiles::Embedded => 1,
        };
        (count + itself).clamp(1, FILES_PER_PAGE_MAX)
    }

    /// The file of its next request, as its place in the site.
    fn next_file(&mut self) -> usize {
        let index = self.next * self.model.users + self.number;
        self.next += 1;
        self.model.file(index)
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
    use std::collections::BTreeMap;

    use super::*;
    use crate::workload::SurgePreset;

    const COUNT: usize = 40_000;

    fn model(seed: u64) -> UserModel {
        SurgePreset::ALL[1].users(NonZeroU64::new(50_000).unwrap(), seed)
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
        let model = SurgePreset::ALL[1].users(NonZeroU64::MIN, 3);
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

    /// Whoever comes first: another order of the users changes nothing of what each asks for.
    #[test]
    fn a_request_is_the_same_in_whatever_order_users_ask() {
        let users = NonZeroU64::new(7).unwrap();
        let asked = |order: &[u64]| {
            let model = SurgePreset::ALL[2].users(users, 6);
            let mut users: Vec<User<'_>> = (0..7).map(|number| model.user(number)).collect();
            let mut asked = BTreeMap::new();
            for number in order {
                let user = &mut users[*number as usize];
                for (request, file) in (user.next_request()..).zip(user.page()) {
                    asked.insert((*number, request), file.path);
                }
            }
            asked
        };
        let turns: Vec<u64> = (0..70).map(|turn| turn % 7).collect();
        let one_by_one: Vec<u64> = (0..70).map(|turn| turn / 10).collect();
        let (one, other) = (asked(&turns), asked(&one_by_one));
        assert_eq!(one, other);
        // Requests of a user are numbered without a gap.
        let of_user_3: Vec<u64> = one
            .keys()
            .filter(|key| key.0 == 3)
            .map(|key| key.1)
            .collect();
        assert_eq!(of_user_3, (0..of_user_3.len() as u64).collect::<Vec<_>>());
    }

    #[test]
    fn a_user_of_004_asks_for_a_page_and_what_is_embedded() {
        let preset = SurgePreset::ALL[2];
        let model = preset.users(NonZeroU64::new(900).unwrap(), 8);
        let asked = model.asked_at_most(Duration::from_secs(300)).len() as f64;
        // 2.37 files in the 3.47 s of a page. 004, 5.1: 650,000 in 900 s of 1,200 users at most.
        let each = asked / 900.0 / 300.0;
        assert!(each > 650_000.0 / 900.0 / 1_200.0, "{each}");
        assert!((0.6..0.75).contains(&each), "{each}");
    }

    /// 004, 5.3.3.1, of what is drawn.
    #[test]
    fn the_requests_of_004_have_its_shares_and_bytes() {
        const KB: u64 = 1024;
        let model = SurgePreset::ALL[2].users(NonZeroU64::new(960).unwrap(), 9);
        let asked = model.asked_at_most(Duration::from_secs(300));
        let share = |from: u64, to: u64| {
            let (mut requests, mut bytes) = (0.0, 0.0);
            let inside = |file: &&&SiteFile| (from..to).contains(&file.bytes);
            for file in asked.iter().filter(inside) {
                requests += 100.0;
                bytes += 100.0 * file.bytes as f64;
            }
            let all: f64 = asked.iter().map(|file| file.bytes as f64).sum();
            (requests / asked.len() as f64, bytes / all)
        };
        let near =
            |(got, got_bytes): (f64, f64), (want, want_bytes): (f64, f64), by: (f64, f64)| {
                assert!(
                    (got - want).abs() < by.0,
                    "{got} % of the requests, not {want}"
                );
                assert!(
                    (got_bytes - want_bytes).abs() < by.1,
                    "{got_bytes} % of the bytes, not {want_bytes}"
                );
            };
        assert!(asked.len() > 150_000, "{}", asked.len());
        near(share(0, 16 * KB), (82.9, 11.55), (0.5, 0.5));
        near(share(16 * KB, 128 * KB), (15.66, 25.91), (0.5, 1.0));
        near(share(128 * KB, u64::MAX), (1.44, 62.54), (0.1, 1.5));
        let mean = asked.iter().map(|file| file.bytes).sum::<u64>() as f64 / asked.len() as f64;
        assert!((17_000.0..19_000.0).contains(&mean), "{mean}");
        let sizes = asked.iter().map(|file| file.bytes);
        assert_eq!(
            (sizes.clone().min(), sizes.max()),
            (Some(77), Some(3_119_822))
        );
    }

    #[test]
    fn users_differ_and_seeds_repeat() {
        let (one, two) = (model(4), model(4));
        assert_eq!(one.user(1).page(), two.user(1).page());
        assert_eq!(one.user(1).inactive_off(), two.user(1).inactive_off());
        assert_ne!(one.user(1).inactive_off(), one.user(2).inactive_off());
    }
}
