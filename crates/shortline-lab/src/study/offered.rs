//! The load that a run's requests offer to the link, known before the first run and kept as
//! `load.json` beside the records.
//!
//! ```text
//! load = bytes that the link carries for the drawn requests / bytes it carries while they arrive
//! ```
//! In a closed loop the requests are those that users make if each is answered at once, which is the
//! most that they can ask for. A study that needs more than that cannot be run, and what it claims
//! is not measured: its figures would be of another load. A load that the study does not name needs
//! nothing.
//!
//! A study can give the bytes a second that one of a paper's users asks for. Then there are so many
//! of ours that they ask for as many bytes as the paper's did, whatever chance drew.
#![deny(clippy::disallowed_methods)]

use std::fmt;
use std::num::NonZeroU64;
use std::path::Path;

use serde::{Deserialize, Serialize};
use shortline_load::workload::{LoadSchedule, SiteFiles, UserModel};
use shortline_table::bytes;

use super::KeptError;
use super::plan::{read_json, write_json};
use super::point::{Arrivals, Point};

/// What is missing of a load that counts as reached: half of the largest file, and the first pauses.
const TOLERANCE: f64 = 0.05;
/// How often the number of users is corrected, and how close their bytes should come.
const CORRECTIONS_MAX: usize = 8;
const CLOSE: f64 = 0.01;
/// The most users.
const USERS_MAX: f64 = 1e6;
/// The file of a seed's folder.
const FILE: &str = "load.json";

/// The load that a run's requests offer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offered {
    /// The number of users. `None` in an open loop.
    pub users: Option<u64>,
    /// The number of requests drawn.
    pub requests: u64,
    /// What the link carries for them, in bytes.
    pub wire_bytes: u64,
    /// What it carries in the time in which they arrive.
    pub link_bytes: u64,
    /// The load that the study is about. `None` if any will do.
    pub wanted_load: Option<f64>,
}

impl Offered {
    /// The load of an open loop's requests for bodies of these sizes.
    pub fn by_requests(point: &Point, bodies: impl Iterator<Item = u64>) -> Self {
        let model = point.wire(point.setup.per_request_bytes);
        let (requests, wire_bytes) = bodies.fold((0, 0), |(requests, sum), body_bytes| {
            (requests + 1, sum + model.wire_bytes(body_bytes))
        });
        let link_bytes = point.rate.bps() as f64 / 8.0 * point.seconds as f64;
        Self {
            users: None,
            requests,
            wire_bytes,
            link_bytes: link_bytes as u64,
            wanted_load: wanted_load(point),
        }
    }

    /// The load of users of `site`, with the number of them that the point asks for.
    pub fn by_users(point: &Point, users: u32, site: &SiteFiles, seed: u64) -> Self {
        let pages = point.files.pages();
        let bodies = |users: NonZeroU64| -> Vec<u64> {
            let model = UserModel::new(site.clone(), pages, users, seed);
            let asked = model.asked_at_most(point.length()).into_iter();
            asked.map(|file| file.bytes).collect()
        };
        let named = NonZeroU64::new(users.into()).unwrap_or(NonZeroU64::MIN);
        let (users, bodies) = match wanted_bytes(point, users) {
            None => (named, bodies(named)),
            Some(wanted) => users_for(wanted, named, bodies),
        };
        Self {
            users: Some(users.get()),
            ..Self::by_requests(point, bodies.into_iter())
        }
    }

    /// The load.
    pub fn load(&self) -> f64 {
        self.wire_bytes as f64 / self.link_bytes as f64
    }

    /// Whether it is the one that the study is about.
    pub fn is_reached(&self) -> bool {
        let wanted = self.wanted_load.unwrap_or_default();
        self.load() >= wanted * (1.0 - TOLERANCE)
    }

    /// What is kept of it in the folder of a point with one seed. `None` in results of before it was.
    ///
    /// # Errors
    /// If the file is wrong.
    pub fn read(folder: &Path) -> Result<Option<Self>, KeptError> {
        let file = folder.join(FILE);
        file.exists().then(|| read_json(&file)).transpose()
    }

    /// Keeps it there.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), KeptError> {
        write_json(&folder.join(FILE), self)
    }
}

impl fmt::Display for Offered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (drawn, link) = (bytes(self.wire_bytes as f64), bytes(self.link_bytes as f64));
        match self.users {
            None => write!(f, "{} requests ask for {drawn}", self.requests)?,
            Some(users) => write!(f, "{users} users ask for {drawn} at most")?,
        }
        write!(
            f,
            " of the {link} that the link carries meanwhile, a load of {:.2}",
            self.load()
        )?;
        match self.wanted_load {
            Some(wanted) if !self.is_reached() => {
                write!(
                    f,
                    ": load not reached, want {wanted:.2}; what is claimed is not measured"
                )
            }
            _ => Ok(()),
        }
    }
}

/// The load that a point is about.
fn wanted_load(point: &Point) -> Option<f64> {
    let rate_bps = point.rate.bps() as f64;
    let of_phases = point.arrivals.schedule().map(|schedule| {
        let seconds = point.seconds as f64;
        let phases = LoadSchedule::from(&schedule).until(seconds);
        let busy_s: f64 = phases.map(|(begin, end, load)| (end - begin) * load).sum();
        busy_s / seconds
    });
    let of_users = match (&point.arrivals, point.setup.user_rate) {
        (Arrivals::Users(users), Some(each)) => {
            Some(f64::from(*users) * each.bps() as f64 / rate_bps)
        }
        _ => None,
    };
    point.setup.least_load.or(of_phases).or(of_users)
}

/// The bytes of files that the point's users ask for, if it says how many each of them does.
fn wanted_bytes(point: &Point, users: u32) -> Option<f64> {
    let each_bps = point.setup.user_rate?.bps() as f64;
    Some(f64::from(users) * each_bps / 8.0 * point.seconds as f64)
}

/// The number of users who ask for that many bytes, and what for. `asked` says it of a number.
fn users_for(
    wanted_bytes: f64,
    first: NonZeroU64,
    asked: impl Fn(NonZeroU64) -> Vec<u64>,
) -> (NonZeroU64, Vec<u64>) {
    let mut users = first;
    let mut best: Option<(f64, NonZeroU64, Vec<u64>)> = None;
    for _ in 0..CORRECTIONS_MAX {
        let bodies = asked(users);
        let bytes = bodies.iter().sum::<u64>().max(1) as f64;
        let off = (bytes / wanted_bytes - 1.0).abs();
        if best.as_ref().is_none_or(|(least, ..)| off < *least) {
            best = Some((off, users, bodies));
        }
        let next = (users.get() as f64 * wanted_bytes / bytes).round();
        let next = NonZeroU64::new(next.clamp(1.0, USERS_MAX) as u64).unwrap_or(users);
        if off < CLOSE || next == users {
            break;
        }
        users = next;
    }
    let (_, users, bodies) = best.expect("invariant: there is one round at least");
    (users, bodies)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::study::point::Files;
    use shortline_sched::units::Rate;

    /// Users of 004 over 10 Mbit/s, where its 120 fill the link (5.1).
    fn users_of_004(users: u32) -> Point {
        let mut point = Point::new("users", Arrivals::Users(users), 300);
        point.files = Files::Surge004;
        point.with(|setup| setup.least_load = Some(1.0))
    }

    #[test]
    fn the_users_of_004_fill_its_links_where_it_says_so() {
        let site = Files::Surge004.site();
        let few = Offered::by_users(&users_of_004(60), 60, &site, 1);
        let enough = Offered::by_users(&users_of_004(120), 120, &site, 1);
        assert!(!few.is_reached() && few.load() > 0.2, "{few}");
        assert!(enough.is_reached() && enough.load() < 1.6, "{enough}");
        let wide = users_of_004(960).at_rate(Rate::from_bps(100_000_000));
        let wide = Offered::by_users(&wide, 960, &site, 1);
        assert!(wide.is_reached() && wide.load() < 1.3, "{wide}");
    }

    #[test]
    fn a_load_that_is_not_reached_is_told_with_both_figures() {
        let told = |wanted| {
            let mut point = Point::new("trace", Arrivals::Trace("a.csv".into()), 10);
            point.setup.least_load = wanted;
            let offered = Offered::by_requests(&point, [1_448, 1_448].into_iter());
            (offered.is_reached(), offered.to_string())
        };
        let figures = "2 requests ask for 3.95 KB of the 12.5 MB that the link carries meanwhile, a load of 0.00";
        assert_eq!(told(None), (true, figures.to_owned()));
        let (is_reached, text) = told(Some(1.0));
        assert!(!is_reached);
        assert_eq!(
            text,
            format!("{figures}: load not reached, want 1.00; what is claimed is not measured")
        );
    }

    /// A run that was interrupted goes on only where it finds the load that it wrote.
    #[test]
    fn what_was_kept_is_read_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        for wanted_load in [0.19999999999999982, 0.1 + 0.7, 1.0 / 3.0, 1.1 * 1.1] {
            let offered = Offered {
                users: None,
                requests: 2_649,
                wire_bytes: 14_999_892,
                link_bytes: 75_000_000,
                wanted_load: Some(wanted_load),
            };
            offered.write(folder.path()).unwrap();
            assert_eq!(Offered::read(folder.path()).unwrap(), Some(offered));
        }
    }

    #[test]
    fn an_open_loop_is_about_the_load_of_its_schedule() {
        let point = Point::new("w1", Arrivals::table_one("w1"), 50);
        let offered = |bytes: u64| Offered::by_requests(&point, std::iter::once(bytes));
        assert!((offered(1).wanted_load.unwrap() - 0.7).abs() < 1e-9);
        assert!(offered(43_000_000).is_reached() && !offered(30_000_000).is_reached());
    }

    /// 001, 4.2: more than 2.5 GB in ten minutes of 1,000 users, 4.2 MB a second.
    #[test]
    fn users_are_as_many_as_ask_for_a_papers_bytes() {
        let mut point = Point::new("users", Arrivals::Users(1_000), 600);
        point.files = Files::Surge001;
        point = point.at_rate(Rate::from_bps(100_000_000));
        point.setup.user_rate = Some(Rate::from_bps(33_600));
        let site = Files::Surge001.site();
        // With this seed 1,000 users would ask for 6.3 KB a second each.
        let offered = Offered::by_users(&point, 1_000, &site, 4);
        let wanted = 4.2e6 * 600.0;
        // That file is 121 MB, 5 % of all; heads are some 8 %.
        let ratio = offered.wire_bytes as f64 / wanted;
        assert!((1.0..1.15).contains(&ratio), "{ratio}");
        assert!(offered.is_reached());
        assert!((500..900).contains(&offered.users.unwrap()), "{offered}");
    }
}
