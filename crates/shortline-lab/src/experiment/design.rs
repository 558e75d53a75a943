//! An experiment as data: what it runs, and which figures of a paper its runs are behind.

use super::adversary;
use super::bookstore::design::Design as ShopDesign;
use super::claim::Figure;
use super::point::Point;

/// An experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name on the command line.
    pub id: String,
    /// What it shows: the figures and tables that its runs are behind.
    pub figures: Vec<Figure>,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
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

/// What an experiment over an uplink runs.
#[derive(Clone, Debug)]
pub(super) struct Design {
    /// What its points differ in, with the unit; nothing if that is no number.
    pub axis: String,
    /// Its points.
    pub points: Vec<Point>,
    /// The names of the servers, in turn.
    pub servers: Vec<String>,
}
