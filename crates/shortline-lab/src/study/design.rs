//! An experiment as data: what it runs, and the figures of papers that its runs reproduce.

use super::adversary;
use super::application::Design as ApplicationDesign;
use super::claim::Figure;
use super::point::Point;
use super::shop::design::Design as ShopDesign;
use super::versus::Versus;

/// What a bed needs if points differ in TCP's first timeout.
const SETTABLE_RTO: &str =
    "a kernel whose initial timeout can be set (that of `shortline lab kernel build`)";

/// The most seeds (or rounds) of an experiment.
pub const SEEDS_MAX: u64 = 100;

/// An experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name on the command line.
    pub id: String,
    /// The figures and tables that its runs reproduce.
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
    /// The same beside other servers.
    Versus(Versus),
    /// Resident memory with idle connections.
    Memory(Memory),
    /// The bookstore before a database, with and without a gate between.
    Bookstore(ShopDesign),
    /// A gate before a web application, and others.
    Application(ApplicationDesign),
}

/// Work per second of processor time. It has no options.
#[derive(Clone, Copy, Debug)]
pub struct Throughput;

/// The most idle connections: each takes two file descriptors and two sockets of the kernel.
pub const IDLE_CONNECTIONS_MAX: u32 = 500_000;

/// Memory of idle connections.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// How many.
    pub connections: u32,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            connections: 10_000,
        }
    }
}

/// What an experiment over an uplink runs.
#[derive(Clone, Debug)]
pub struct Design {
    /// The quantity in which its points differ, with its unit. `None` if it is not a number.
    pub axis: String,
    /// Its points.
    pub points: Vec<Point>,
    /// The names of the servers, in turn.
    pub servers: Vec<String>,
    /// How many seeds each server has a run with, unless the command line says another number.
    pub seeds: u64,
}

impl Experiment {
    /// What it needs and not every bed has.
    pub fn needs(&self) -> Option<&'static str> {
        match &self.kind {
            Kind::Uplink(design) => design.needs(),
            _ => None,
        }
    }
}

impl Design {
    /// What a bed lacks is usually only noted. It is required if it is all in which the points differ.
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
