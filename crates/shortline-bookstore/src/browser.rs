//! TPC-W's remote browser emulator (clause 5.3; 002, 4.4).
//!
//! A visitor opens a session over a persistent connection and begins at home. It reads the page
//! with its pictures, thinks, and follows the transition table of the [`Mix`]. Each interaction
//! becomes one [`RequestRecord`]. Its path is that of the interaction. Its response time runs from
//! the click to the last byte of the last picture (TPC-W's WIRT). Its size is what came.
//!
//! | loop | visitors | what ends a session |
//! |---|---|---|
//! | closed (002) | a fixed number; when a session ends, the visitor begins another | the clock |
//! | open, by session | sessions begin as a Poisson process, at rates that alternate | the sum of its thinking times |
//! | open, by click | clicks are such a process; the visitor who has thought longest makes each | a mean number of clicks |
//!
//! In both open loops the run goes on until all visitors have their last page. A session makes the
//! same clicks however slow the shop is, but later if pages are late. Its delays hold back its own
//! load. So the queue of a slow shop is short, and its offered load lasts longer (Schroeder,
//! Wierman and Harchol-Balter, Open versus closed: a cautionary tale, NSDI 2006: partly open).
//! Independent clicks are the limit of this for many visitors who think for much longer than pages
//! take: the load then depends on no order. 002 has only the closed loop, where a slow shop gets
//! fewer requests.

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

/// When visitors come.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// A fixed number of visitors at all times.
    Closed {
        /// How many.
        browsers: usize,
    },
    /// Arrivals that do not depend on earlier ones.
    Open {
        /// The crowd in the shop before them.
        crowd: Crowd,
        /// What arrives.
        each: Arrival,
        /// Rates that follow each other in a cycle, once the crowd has gone.
        phases: Vec<Phase>,
        /// The most sessions at once. Further ones are not begun, but counted.
        sessions_max: usize,
        /// How long the run waits, after the last arrival, for visitors still in the shop.
        drain_max: Duration,
    },
}

/// Visitors who do not think. The shop then has and uses a database connection for each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crowd {
    /// How many.
    pub browsers: usize,
    /// How long they click. Then each waits for its page and leaves.
    pub lasts: Duration,
}

/// The unit of arrival in an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A session. Its further clicks follow its pages and its thinking.
    Session,
    /// A click, by the visitor in the shop who has thought longest, or by a new one if all wait for
    /// pages. Visitors leave after as many clicks in the mean as they would make by [`Times`]. A
    /// new visitor arrives as if it had been in the shop for a while. Otherwise the visitors
    /// created by a queue would all begin at home and look for best sellers next.
    Click,
}

/// A period of steady load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Its length.
    pub lasts: Duration,
    /// Arrivals per second.
    pub per_s: f64,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The shop.
    pub shop: SocketAddr,
    /// When visitors come.
    pub arrivals: Arrivals,
    /// Their mix.
    pub mix: Mix,
    /// After this time from the start, all visitors change to this mix.
    pub mix_later: Option<(Duration, Mix)>,
    /// How long they think and stay.
    pub times: Times,
    /// What the shop was filled with.
    pub scale: Scale,
    /// Whether they fetch pictures.
    pub pictures: bool,
    /// How long they wait for a page with its pictures.
    pub patience: Duration,
    /// For how long visitors come.
    pub lasts: Duration,
    /// The same seed makes the same visitors.
    pub seed: u64,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Results {
    /// Every interaction, in the order of their ends.
    pub records: Vec<RequestRecord>,
    /// Sessions that were begun.
    pub sessions: u64,
    /// Sessions that were not begun because too many visitors were in the shop.
    pub turned_away: u64,
    /// How long the run took, draining included.
    pub took: Duration,
}
