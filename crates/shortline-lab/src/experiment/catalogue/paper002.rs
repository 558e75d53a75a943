//! Paper 002: admission and shortest job first before a database.
//!
//! The databases of today do an interaction many times faster than 002's did, so that all times are
//! scaled by a factor for each (`experiment/bookstore/load`).

use shortline_bookstore::{Interaction, Kind as Database, Locking};

use super::{Experiment, Figure, Kind, figure};
use crate::experiment::bookstore::{
    Capacity, Check, DATABASE_CONNECTIONS_MAX, Design, Door, Load, Measure, Stage, Step,
};
use crate::experiment::claim::Want::{AtLeast, AtMost};
use Measure::{
    AfterChangeOfBest, Converged, DatabaseShare, FinishedGain, HeldAtTwice, LongestRatio, MeanGain,
    MemoryRatio, OfBestFixed, PeakRatio, ProcessesRatio, ServiceRatio, ServiceSpread, Settled,
    SlowerThanAlone, ThroughputRatio, TypeRatio, WaitGain,
};

/// By database: what 002's times are multiplied by, so that the second most browsers keep it busy, and the
/// capacity found by `002-capacity` in milliseconds; with locking in the application, and in the database.
const BEDS: [(Database, Bed, Bed); 2] = [
    (Database::Postgres, bed(0.01, 200), bed(0.005, 200)),
    (Database::MariaDb, bed(0.05, 1600), bed(0.05, 1600)),
];

#[derive(Clone, Copy)]
struct Bed {
    factor: f64,
    capacity_ms: u32,
}

const fn bed(factor: f64, capacity_ms: u32) -> Bed {
    Bed {
        factor,
        capacity_ms,
    }
}

/// How many interactions a phase of the open loop has, and how many connections the shop then has. PostgreSQL has a
/// process for each and is the slower the more of them are in use.
fn open_loop(database: Database) -> (u32, u32) {
    match database {
        Database::Postgres => (500, 400),
        Database::MariaDb => (2000, DATABASE_CONNECTIONS_MAX),
    }
}

/// Below the peak, near it, and twice that; 002's peak was at 230.
const APPLICATION_BROWSERS: [usize; 3] = [30, 60, 90];
const APPLICATION_MOST: usize = 180;
const DATABASE_BROWSERS: [usize; 3] = [20, 40, 80];
const DATABASE_MOST: usize = 160;
/// At the peak, about.
const AT_PEAK: Load = Load::Browsers(90);
/// Twice that.
const IN_OVERLOAD: Load = Load::Browsers(APPLICATION_MOST);
const SHORT_SESSIONS: Load = Load::ShortSessions(90);
const MORE_SHORT_SESSIONS: Load = Load::ShortSessions(APPLICATION_MOST);
const SLOWED: Load = Load::SlowsDown(APPLICATION_MOST);
const OTHER_MIX: Load = Load::ChangesMix(APPLICATION_MOST);
const ORDERS: [Door; 3] = [Door::None, Door::FIFO, Door::SJF];
const AUTO: [Door; 2] = [Door::FIFO_AUTO, Door::SJF_AUTO];
const AGING: [Door; 3] = [Door::aging(1), Door::aging(3), Door::aging(5)];
/// Around the capacity that was found, in eighths of it: 002's incremental steps.
const CAPACITIES_EIGHTHS: [u32; 6] = [1, 2, 4, 8, 16, 64];

pub fn all() -> Vec<Experiment> {
    vec![estimates(), application(), database(), capacity(), open()]
}

/// 3.1: what interactions take, and how soon the gate knows it.
fn estimates() -> Experiment {
    let steps = |_| {
        vec![
            once(Load::Alone, &[Door::None, Door::FIFO]).times(2),
            once(AT_PEAK, &[Door::None, Door::FIFO, Door::FIFO_OFFLINE]).times(3),
            once(IN_OVERLOAD, &[Door::FIFO, Door::FIFO_OFFLINE]).times(3),
        ]
    };
    let figures = vec![
        shown(
            "002 Fig. 2",
            "alone, types differ by four orders of magnitude, far more than executions of a type",
            vec![
                Check::new(ServiceSpread, AtLeast(100.0), "four orders of magnitude")
                    .of(Door::None, Door::None)
                    .at(Load::Alone),
            ],
        ),
        shown(
            "002 Fig. 3",
            "at peak load most types take much longer than alone",
            vec![slower(11.0, "12 of 13")],
        ),
        shown(
            "002 Table 1",
            "executions alone and at peak: best sellers 1.2 and 2.4 s, most others under 100 ms",
            vec![slower(11.0, "12 of 13")],
        ),
        shown(
            "002 sec. 3.1, convergence",
            "estimates of 11 of 13 types are within 90 % of their steady values in 50 s",
            vec![
                Check::new(Converged, AtLeast(11.0), "11 of 13")
                    .of(Door::FIFO, Door::None)
                    .at(AT_PEAK),
            ],
        ),
        shown(
            "002 Fig. 6",
            "with estimates taken alone the gate is unstable at high load, with those learnt online it is not",
            vec![
                Check::new(ThroughputRatio, AtMost(0.97), "degrades")
                    .of(Door::FIFO_OFFLINE, Door::FIFO)
                    .at(IN_OVERLOAD),
            ],
        ),
    ];
    bookstore("002-estimates", Locking::Application, steps, figures)
}

fn slower(types: f64, paper: &'static str) -> Check {
    Check::new(SlowerThanAlone, AtLeast(types), paper)
        .of(Door::None, Door::None)
        .at(AT_PEAK)
}

/// 5, with locking in the application.
fn application() -> Experiment {
    let steps = |_| by_browsers(&APPLICATION_BROWSERS, AT_PEAK, APPLICATION_MOST);
    let held = |database| {
        vec![
            Check::new(HeldAtTwice, AtLeast(0.97), "941 a minute held")
                .of(Door::FIFO, Door::None)
                .on(database),
            Check::new(HeldAtTwice, AtLeast(0.97), "941 a minute held")
                .of(Door::SJF, Door::None)
                .on(database),
            Check::own_aim(HeldAtTwice, AtLeast(0.97))
                .of(Door::FIFO_AUTO, Door::None)
                .on(database),
            Check::own_aim(HeldAtTwice, AtLeast(0.97))
                .of(Door::SJF_AUTO, Door::None)
                .on(database),
            Check::new(HeldAtTwice, AtMost(0.97), "852 a minute falls to 589")
                .of(Door::None, Door::None)
                .on(database),
            Check::new(PeakRatio, AtLeast(1.05), "1.10")
                .of(Door::FIFO, Door::None)
                .on(database),
            Check::own_aim(PeakRatio, AtLeast(1.05))
                .of(Door::FIFO_AUTO, Door::None)
                .on(database),
        ]
    };
    let figures = vec![
        shown(
            "002 Fig. 5",
            "throughput (MySQL): the gate holds its peak of 941 a minute in overload; without it 852 and then 589",
            held(Database::MariaDb),
        ),
        shown(
            "002 Fig. 8",
            "the same on another database (DB2; ours PostgreSQL)",
            held(Database::Postgres),
        ),
        shown(
            "002 Fig. 9",
            "mean response time of the finished at 250 clients: 11 s without the gate, 9 s FIFO, 0.5 s SJF",
            response(22.0, "22"),
        ),
        shown(
            "002 Fig. 11",
            "exec search, a short type: it waits 99 ms instead of 8 s, its execution stays the same",
            short_type(),
        ),
        shown(
            "002 Fig. 12",
            "the long type waits for 15.6 instead of 12.9 s, 13 % more response time",
            vec![
                Check::new(LongestRatio, AtMost(1.3), "1.13"),
                Check::own_aim(TypeRatio(Interaction::BestSellers), AtMost(1.3)),
            ],
        ),
        shown(
            "002 Fig. 13",
            "in the mean over all types the wait falls from 8.8 s to 225 ms",
            vec![Check::new(FinishedGain, AtLeast(14.0), "14 (abstract)")],
        ),
        shown(
            "002 Fig. 14",
            "aging by 1, 3 and 5 lies between FIFO and SJF, in this order",
            aging(),
        ),
        shown(
            "002 Table 2",
            "in overload the gate saves the database processes (82 for 378) and memory (375 MB for 509), at a full processor",
            vec![
                Check::new(DatabaseShare, AtLeast(90.0), "100 %"),
                Check::new(ProcessesRatio, AtMost(0.5), "49 for 345").of(Door::FIFO, Door::None),
                Check::new(MemoryRatio, AtMost(0.8), "375 MB for 509").of(Door::FIFO, Door::None),
            ],
        ),
    ];
    bookstore("002-application", Locking::Application, steps, figures)
}

/// 5, with locking in the database.
fn database() -> Experiment {
    let steps = |_| by_browsers(&DATABASE_BROWSERS, Load::Browsers(80), DATABASE_MOST);
    let figures = vec![
        shown(
            "002 Fig. 7",
            "throughput: without the gate 515 a minute at 70 clients and then a collapse, with it the peak is held",
            vec![
                Check::new(HeldAtTwice, AtLeast(0.97), "held").of(Door::FIFO, Door::None),
                Check::new(HeldAtTwice, AtLeast(0.97), "held").of(Door::SJF, Door::None),
                Check::new(HeldAtTwice, AtMost(0.97), "a collapse").of(Door::None, Door::None),
                Check::new(PeakRatio, AtLeast(1.0), "about 1").of(Door::FIFO, Door::None),
            ],
        ),
        shown(
            "002 Fig. 10",
            "mean response time there: SJF up to 4 times shorter than FIFO, the original worst",
            response(4.0, "up to 4"),
        ),
        shown(
            "002 Fig. 15",
            "aging by 1, 3 and 5 lies between FIFO and SJF, in this order",
            aging(),
        ),
    ];
    bookstore("002-database", Locking::Database, steps, figures)
}

/// 3.1: the capacity, searched for beforehand and followed.
fn capacity() -> Experiment {
    let steps = |bed: Bed| {
        let fixed = |eighths| Door::FIFO.at(Capacity::Fixed(bed.capacity_ms * eighths / 8));
        let mut searched = vec![Door::FIFO_AUTO];
        searched.extend(CAPACITIES_EIGHTHS.map(fixed));
        let changed = [Door::FIFO_AUTO, fixed(8)];
        vec![
            Step {
                is_repeated: true,
                ..once(Load::Browsers(APPLICATION_MOST), &searched)
            },
            once(SLOWED, &changed).times(4),
            once(OTHER_MIX, &changed).times(4),
        ]
    };
    let auto = |measure, want| Check::own_aim(measure, want).of(Door::FIFO_AUTO, Door::None);
    let figures = vec![
        shown(
            "002 sec. 3.1, capacity",
            "throughput has one peak by capacity; auto finds it (our aim: 0.95 of the best fixed one)",
            vec![auto(OfBestFixed, AtLeast(0.95))],
        ),
        shown(
            "",
            "auto settles within 30 s when the database loses half of its processor",
            vec![
                auto(Settled, AtMost(30.0)).at(SLOWED),
                auto(AfterChangeOfBest, AtLeast(0.95)).at(SLOWED),
            ],
        ),
        shown(
            "",
            "auto settles within 30 s when the mix changes from shopping to ordering",
            vec![
                auto(Settled, AtMost(30.0)).at(OTHER_MIX),
                auto(AfterChangeOfBest, AtLeast(0.95)).at(OTHER_MIX),
            ],
        ),
    ];
    bookstore("002-capacity", Locking::Application, steps, figures)
}

/// Where response times can be compared: the load does not depend on who serves it. Capacity is what the database
/// did for the number of browsers for which it did more: on a fast machine 90 do not keep PostgreSQL busy.
fn open() -> Experiment {
    let steps = |_| {
        let clicks = |doors: &[Door]| once(Load::AlternatingClicks, doors).times(4);
        let known = [Door::None, Door::FIFO];
        vec![
            once(AT_PEAK, &known).times(2),
            once(IN_OVERLOAD, &known).times(2),
            Step {
                is_repeated: true,
                ..clicks(&ORDERS)
            },
            clicks(&AGING),
            clicks(&[Door::SJF_AUTO]),
            once(SHORT_SESSIONS, &known).times(2),
            once(MORE_SHORT_SESSIONS, &known).times(2),
            once(Load::Alternating, &ORDERS).times(4),
        ]
    };
    let own = |gain, of: Door, over: Door| {
        Check::own_aim(MeanGain, AtLeast(gain))
            .of(of, over)
            .at(Load::AlternatingClicks)
    };
    let figures = vec![
        shown(
            "",
            "clicks of open sessions at 1.3 and 0.6 of capacity in turn, drained, all counted: SJF 4 times shorter than FIFO and than no gate, the longest type at most 1.3 times as long",
            vec![
                own(4.0, Door::SJF, Door::FIFO),
                own(4.0, Door::SJF, Door::None),
                Check::own_aim(LongestRatio, AtMost(1.3)).at(Load::AlternatingClicks),
                own(4.0, Door::SJF_AUTO, Door::FIFO),
                own(1.0, Door::SJF, Door::aging(5)),
                own(1.0, Door::aging(5), Door::aging(3)),
                own(1.0, Door::aging(3), Door::aging(1)),
                own(1.0, Door::aging(1), Door::FIFO),
            ],
        ),
        shown(
            "",
            "the same with sessions of ten pages, whose visitors wait for each: SJF 4 times shorter than FIFO",
            vec![
                Check::own_aim(MeanGain, AtLeast(4.0)).at(Load::Alternating),
                Check::own_aim(LongestRatio, AtMost(1.3)).at(Load::Alternating),
            ],
        ),
    ];
    bookstore("002-open", Locking::Application, steps, figures)
}

/// Response times with the most browsers, in both counts.
fn response(gain: f64, paper: &'static str) -> Vec<Check> {
    vec![
        Check::new(FinishedGain, AtLeast(gain), paper),
        Check::new(FinishedGain, AtLeast(1.0), "the original is worst").of(Door::FIFO, Door::None),
        Check::own_aim(MeanGain, AtLeast(1.0)),
    ]
}

fn short_type() -> Vec<Check> {
    vec![
        Check::new(WaitGain(Interaction::SearchResults), AtLeast(10.0), "80"),
        Check::new(
            ServiceRatio(Interaction::SearchResults),
            AtMost(1.1),
            "the same",
        ),
    ]
}

/// Each at most as slow as the next stricter one; a few per cent are noise.
fn aging() -> Vec<Check> {
    let order = [
        (Door::SJF, Door::aging(5)),
        (Door::aging(5), Door::aging(3)),
        (Door::aging(3), Door::aging(1)),
        (Door::aging(1), Door::FIFO),
    ];
    let check = |(of, over)| Check::new(FinishedGain, AtLeast(0.97), "in order").of(of, over);
    order.map(check).into()
}

/// Doors by the number of browsers; repeated near the peak and with the most, where there is aging.
fn by_browsers(fewer: &[usize], near_peak: Load, most: usize) -> Vec<Step> {
    let mut steps: Vec<Step> = fewer
        .iter()
        .map(|browsers| Load::Browsers(*browsers))
        .map(|load| Step {
            is_repeated: load == near_peak,
            ..once(load, &ORDERS)
        })
        .collect();
    let most = Load::Browsers(most);
    steps.push(Step {
        is_repeated: true,
        ..once(most, &ORDERS)
    });
    steps.push(once(most, &AGING));
    steps.push(once(near_peak, &AUTO));
    steps.push(once(most, &AUTO));
    steps
}

fn once(load: Load, doors: &[Door]) -> Step {
    Step {
        load,
        doors: doors.to_vec(),
        times: 1,
        is_repeated: false,
    }
}

impl Step {
    fn times(self, times: u64) -> Self {
        Self { times, ..self }
    }
}

fn bookstore(
    id: &'static str,
    locking: Locking,
    steps: impl Fn(Bed) -> Vec<Step>,
    figures: Vec<Figure>,
) -> Experiment {
    let of = |application: Bed, in_database: Bed| match locking {
        Locking::Application => application,
        Locking::Database => in_database,
    };
    let stage = |(database, application, in_database)| {
        let bed = of(application, in_database);
        let (phase_interactions, open_connections) = open_loop(database);
        Stage {
            database,
            factor: bed.factor,
            capacity_ms: bed.capacity_ms,
            phase_interactions,
            open_connections,
            steps: steps(bed),
        }
    };
    Experiment {
        id,
        figures,
        kind: Kind::Bookstore(Design {
            locking,
            stages: BEDS.map(stage).into(),
        }),
    }
}

fn shown(name: &'static str, claim: &'static str, shop_checks: Vec<Check>) -> Figure {
    Figure {
        shop_checks,
        ..figure(name, claim, &[], Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_is_of_doors_and_loads_that_there_are() {
        for experiment in all() {
            let Kind::Bookstore(design) = &experiment.kind else {
                panic!("{}", experiment.id);
            };
            let checks = experiment
                .figures
                .iter()
                .flat_map(|figure| &figure.shop_checks);
            for check in checks {
                for stage in &design.stages {
                    let problem = check.not_run(&stage.steps);
                    assert_eq!(problem, None, "{}: {check:?}", experiment.id);
                }
            }
        }
    }

    #[test]
    fn twice_the_browsers_of_the_peak_are_there() {
        for experiment in [application(), database()] {
            let Kind::Bookstore(design) = experiment.kind else {
                panic!("{}", experiment.id);
            };
            for stage in design.stages {
                let loads = stage.steps.iter().map(|step| step.load);
                let browsers: Vec<usize> = loads.filter_map(Load::browsers).collect();
                let most = browsers.iter().copied().max();
                assert!(browsers.iter().any(|few| Some(2 * few) == most));
            }
        }
    }
}
