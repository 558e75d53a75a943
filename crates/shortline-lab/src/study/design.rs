//! An experiment as data: what it runs, and which figures of a paper its runs are behind.

use super::adversary;
use super::claim::Figure;
use super::point::Point;
use super::shop::design::Design as ShopDesign;

/// What points that differ in the initial timeout need.
const SETTABLE_RTO: &str =
    "a kernel whose initial timeout can be set (that of `shortline lab kernel build`)";

/// An experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name on the command line.
    pub id: String,
    /// What it shows: the figures and tables that its runs are behind.
    pub figures: Vec<Figure>,
    /// What it runs.
    pub kind: Kind,
}

/// What an experiment runs, by its kind.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Response times over a saturated uplink.
    Uplink(Design),
    /// One client that attacks beside honest users.
    Adversary(adversary::Surface),
    /// Work per second of the server's processor time, without a bottleneck.
    Throughput,
    /// Resident memory with idle connections.
    Memory,
    /// The bookstore before a database, with and without a gate between.
    Bookstore(ShopDesign),
}

/// Work per second of processor time. There is nothing to choose.
#[derive(Clone, Copy, Debug)]
pub struct Throughput;

/// Memory of idle connections. There is nothing to choose.
#[derive(Clone, Copy, Debug)]
pub struct Memory;

/// What an experiment over an uplink runs.
#[derive(Clone, Debug)]
pub struct Design {
    /// What its points differ in, with the unit; nothing if that is no number.
    pub axis: String,
    /// Its points.
    pub points: Vec<Point>,
    /// The names of the servers, in turn.
    pub servers: Vec<String>,
}

impl Experiment {
    /// What it needs that not every bed has.
    pub fn needs(&self) -> Option<&'static str> {
        match &self.kind {
            Kind::Uplink(design) => design.needs(),
            _ => None,
        }
    }
}

impl Design {
    /// What a bed only notes of other experiments must be had where it is all that points differ in.
    pub fn needs(&self) -> Option<&'static str> {
        let only_in_rto = |pair: &[Point]| {
            let (one, mut other) = (
                &pair[0].setup.environment,
                pair[1].setup.environment.clone(),
            );
            let rto = std::mem::replace(&mut other.system.initial_rto, one.system.initial_rto);
            rto != one.system.initial_rto && other == *one
        };
        self.points
            .windows(2)
            .any(only_in_rto)
            .then_some(SETTABLE_RTO)
    }
}
