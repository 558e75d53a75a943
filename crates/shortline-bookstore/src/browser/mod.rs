//! TPC-W's remote browser emulator (clause 5.3; 002, 4.4).
//!
//! A visitor opens a session over a persistent connection, begins at home, reads the page with its
//! pictures, thinks, and follows the transition table of the [`Mix`]. Each interaction becomes one
//! [`RequestRecord`]: its path is that of the interaction, its response time runs from the click to
//! the last byte of the last picture (TPC-W's WIRT), its size is what came.
//!
//! | loop | visitors | what ends a session |
//! |---|---|---|
//! | closed (002) | so many; whose session ends begins another | the clock |
//! | open, by session | sessions begin as a Poisson process, at rates that alternate | its thinking times add up |
//! | open, by click | clicks come as one; each is made by who has thought longest | so many clicks in the mean |
//!
//! In both open loops the run goes on until all have their last page. A session makes the same clicks
//! however slow the shop is, but later where each page is late: its delays hold back its own load, so
//! that the queue of a slow shop is short and the load that it is offered lasts longer (Schroeder,
//! Wierman and Harchol-Balter, Open versus closed: a cautionary tale, NSDI 2006: partly open). Clicks
//! that come by themselves are what is left of that when there are many visitors who think for much
//! longer than pages take: then the load depends on nobody's order. 002 has only the closed loop, where
//! a slow shop is asked for less.

mod client;
mod mix;
mod reading;
mod results;
mod run;
mod session;
mod times;

use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;
use shortline_load::RequestRecord;

use crate::population::Scale;
pub use mix::{Mix, UnknownMix};
pub use results::{Estimate, Summary, TypeSummary};
pub use run::run;
pub use times::{CutExponential, Times};

/// Who comes when.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// So many visitors all the time.
    Closed {
        /// How many.
        browsers: usize,
    },
    /// What comes by itself, whatever became of the earlier.
    Open {
        /// Who is in the shop before.
        crowd: Crowd,
        /// What that is.
        each: Arrival,
        /// Rates that follow each other, over and over, when the crowd has gone.
        phases: Vec<Phase>,
        /// More sessions at once than this are not begun, and counted.
        sessions_max: usize,
        /// How long after the last arrival the run waits for those still in the shop.
        drain_max: Duration,
    },
}

/// Visitors who do not think, so that the shop has a connection to its database for each of them, and uses
/// all of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crowd {
    /// How many.
    pub browsers: usize,
    /// For how long they click; then each waits for its page and goes.
    pub lasts: Duration,
}

/// What comes by itself in an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A session: its further clicks follow its pages and its thinking.
    Session,
    /// A click, by the visitor in the shop who has thought longest, or by a new one where all wait for
    /// pages. Visitors go after as many clicks in the mean as they would make by [`Times`], and come as
    /// if they had been in the shop for a while: else those that one queue made come would all begin at
    /// home, and look for best sellers next.
    Click,
}

/// A time of steady load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// How long.
    pub lasts: Duration,
    /// How many come, per second.
    pub per_s: f64,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The shop.
    pub shop: SocketAddr,
    /// Who comes.
    pub arrivals: Arrivals,
    /// What they are after.
    pub mix: Mix,
    /// So long after the begin all of them are after something else.
    pub mix_later: Option<(Duration, Mix)>,
    /// How long they think and stay.
    pub times: Times,
    /// What the shop was filled with.
    pub scale: Scale,
    /// Whether they fetch pictures.
    pub pictures: bool,
    /// How long they wait for a page with its pictures.
    pub patience: Duration,
    /// How long visitors come.
    pub lasts: Duration,
    /// The same seed makes the same visitors.
    pub seed: u64,
}

/// What a run brought.
#[derive(Clone, Debug)]
pub struct Results {
    /// Every interaction, in the order of their ends.
    pub records: Vec<RequestRecord>,
    /// Sessions that were begun.
    pub sessions: u64,
    /// Sessions that were not, as too many were in the shop.
    pub turned_away: u64,
    /// How long the run took, draining included.
    pub took: Duration,
}
