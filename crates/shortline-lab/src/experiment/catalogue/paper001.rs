//! Paper 001, Crovella, Frangioso and Harchol-Balter, "Connection scheduling in web servers"
//! (USITS 1999): Figs. 2 to 6. Figs. 7 and 8 are theory, which `shortline model` draws.
//!
//! SURGE's user equivalents against the paper's own server with 35 writers of 32 KiB, its
//! size-independent policy (`writers-fair`) and shortest connection first (`writers-srpt`), beside Apache.
//!
//! The users are those of 4.2: two client machines with half of them each, of which one was found
//! afterwards to be behind a port that delivered a tenth of the rate. So half of the users here, every
//! second one, are behind a path of a tenth of the uplink's rate, both ways, and it stays a tenth
//! under `--rate`. The departures: the paper says nothing of that port's queue, which here holds
//! 100 packets as our uplink's does; both halves share one generator, where the paper had a machine
//! for each; and the uplink is the server's own 100 Mbit/s link, where the paper had a switch.

use shortline_sched::units::Rate;

use super::{Experiment, figure, uplink};
use crate::bed::setup::ClientGroup;
use crate::experiment::claim::Measure::{BytesRatio, FinishedGain, LargestRatio};
use crate::experiment::claim::Plot::{BySize, Bytes, Mean, Requests};
use crate::experiment::claim::{Check, Want};
use crate::experiment::point::{Arrivals, Files, Point};

const SERVERS: [&str; 3] = ["writers-srpt", "writers-fair", "apache"];
/// The paper ran ten minutes.
const SECONDS: u64 = 60;
const RATE_BPS: u64 = 100_000_000;
/// The writers of every figure but 5 and 6.
const WRITERS: u32 = 35;

pub fn all() -> Vec<Experiment> {
    vec![load(), writers()]
}

/// Half of the users behind a tenth of the rate (4.2).
fn point(label: String, users: u32, writers: u32, x: f64) -> Point {
    let slow = ClientGroup::behind("slow", Rate::from_bps(RATE_BPS / 10));
    Point {
        rate: Rate::from_bps(RATE_BPS),
        ..Point::new(label, Arrivals::Users(users), SECONDS)
    }
    .at(x)
    .of(Files::Surge001)
    .with(|setup| {
        setup.writers = Some(writers);
        setup.environment.groups = vec![ClientGroup::local(), slow];
    })
}

fn load() -> Experiment {
    let users = [400, 800, 1000, 1200, 1400, 1600, 1800, 2000];
    let points =
        users.map(|users| point(format!("users-{users:04}"), users, WRITERS, users.into()));
    uplink(
        "001-load",
        "user equivalents",
        &SERVERS,
        points.to_vec(),
        vec![
            figure(
                "001 Fig. 2",
                "by size Apache treats connections as the size-independent server does at 1000, 1400 and 1800 users, or favours the long",
                &[BySize],
                vec![
                    Check::new(FinishedGain, Want::AtLeast(0.8), "about the same")
                        .of("writers-fair", "apache"),
                ],
            ),
            figure(
                "001 Fig. 3",
                "the mean is the same below 1000 users and 4 to 5 times shorter at 1400",
                &[Mean],
                vec![
                    Check::new(FinishedGain, Want::AtLeast(4.0), "4 to 5")
                        .of("writers-srpt", "writers-fair")
                        .at("users-1400"),
                ],
            ),
            figure(
                "001 Fig. 4",
                "at 1400 users the long connections are not hurt, at 1800 they begin to be",
                &[BySize],
                vec![
                    Check::new(LargestRatio, Want::AtMost(1.1), "not worse")
                        .of("writers-srpt", "writers-fair")
                        .at("users-1400"),
                ],
            ),
        ],
    )
}

fn writers() -> Experiment {
    let writers = [1, 5, 10, 20, 35, 50, 60];
    let points = writers.map(|writers| {
        point(
            format!("writers-{writers:02}"),
            1400,
            writers,
            writers.into(),
        )
    });
    uplink(
        "001-writers",
        "writers",
        &SERVERS,
        points.to_vec(),
        vec![
            figure(
                "001 Fig. 5",
                "at 1400 users the gain grows as writers get fewer than 35, and is gone at 60",
                &[Mean, Requests],
                vec![
                    Check::new(FinishedGain, Want::AtLeast(4.0), "4 to 5")
                        .of("writers-srpt", "writers-fair")
                        .at("writers-35"),
                    Check::new(FinishedGain, Want::AtMost(1.2), "1: none")
                        .of("writers-srpt", "writers-fair")
                        .at("writers-60"),
                ],
            ),
            figure(
                "001 Fig. 6",
                "byte throughput grows with the writers, the same for both orders, and at 35 is above Apache's",
                &[Bytes],
                vec![
                    Check::new(BytesRatio, Want::AtLeast(1.0), "slightly higher")
                        .of("writers-srpt", "writers-fair"),
                    Check::new(BytesRatio, Want::AtLeast(1.0), "higher")
                        .of("writers-srpt", "apache")
                        .at("writers-35"),
                ],
            ),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_users_are_behind_a_tenth_of_the_rate_whatever_it_is() {
        let usual = point("users-0400".into(), 400, WRITERS, 400.0);
        for (point, tenth_bps) in [
            (usual.clone(), RATE_BPS / 10),
            (usual.at_rate(Rate::from_bps(20_000_000)), 2_000_000),
        ] {
            let [fast, slow] = &point.setup.environment.groups[..] else {
                panic!("two groups: {:?}", point.setup.environment.groups);
            };
            assert!(fast.is_local() && fast.share == slow.share);
            let tenth = Some(Rate::from_bps(tenth_bps));
            assert_eq!((slow.down.rate, slow.up.rate), (tenth, tenth));
        }
    }
}
