//! What another order would have given the visitors in a site's own log.
//!
//! ```text
//! logs -> responses in the order of time -> the link at a rate -> waits by size and by hour, under three orders
//! ```
//!
//! [`Past::read`] reads logs, however many and in whatever order. [`Past::gain`] puts what was sent through a link under first
//! come first served, fair sharing and Shortline's order, as fluid theory has them ([`shortline_sim::FluidLink`]): no losses, no
//! round trips. [`Past::replay`] replays the busiest minute with servers of ours, so that theory is checked. [`Gain::words`] and
//! [`Gain::page`] say what came out.
//!
//! [`Statements`] and [`Mix`] do the same for a database, from its logs.
//!
//! Limits: memory does not grow with the log, since responses are kept in a temporary file (`kept`), 12 bytes each; but a
//! link that never catches up would keep all of them, so that there are at most [`JOBS_MAX`] at once.
#![forbid(unsafe_code)]

mod busy;
mod gain;
mod kept;
pub mod live;
mod page;
mod past;
mod statements;
mod waits;
mod words;

use std::path::PathBuf;

pub use gain::{Basis, Class, FULL_SHARE, Gain, Group, Hour};
pub use past::{Past, Reading};
pub use statements::{
    Content, DatabaseGain, DatabaseHour, KEPT_MAX, KINDS_MAX, Kind, Mix, MixKind, MixLoad,
    Statements,
};
pub use waits::{SERVERS, Server, Waits};

/// The most responses on the link at once. More wait only where the link is far too slow for the site.
pub const JOBS_MAX: usize = 4_000_000;

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
pub enum GainError {
    /// A log cannot be read.
    #[error(transparent)]
    Trace(#[from] shortline_load::trace::TraceError),
    /// There is no response in any log.
    #[error(
        "no log has a GET answered 200: want logs in Common or Combined Log Format, in JSON of Caddy, nginx or Shortline, World \
         Cup records, or a database's statements with their durations{}",
        .first_bad.as_ref().map(|told| format!("; {told}")).unwrap_or_default()
    )]
    Empty {
        /// What was wrong with the first line that could not be read.
        first_bad: Option<String>,
    },
    /// There is no statement in any log.
    #[error(
        "no log has a statement with its duration: want PostgreSQL's with log_min_duration_statement = 0, or a slow query log{}",
        .first_bad.as_ref().map(|told| format!("; {told}")).unwrap_or_default()
    )]
    NoStatement {
        /// What was wrong with the first line that could not be read.
        first_bad: Option<String>,
    },
    /// There is no row of `pg_stat_statements`.
    #[error(
        "{name}: no row of pg_stat_statements: want the columns query, calls, mean_exec_time and stddev_exec_time"
    )]
    NoRow {
        /// The file.
        name: String,
    },
    /// The responses cannot be kept.
    #[error("the temporary file in {}: {error} (TMPDIR names another folder)", std::env::temp_dir().display())]
    Kept {
        /// Why.
        error: std::io::Error,
    },
    /// The link never catches up.
    #[error(
        "--uplink {rate}: {JOBS_MAX} responses would wait at once: want a rate nearer to {busiest}, which the busiest hour would \
         just fill"
    )]
    TooSlow {
        /// The rate asked for.
        rate: shortline_sched::units::Rate,
        /// The one that the busiest hour would fill.
        busiest: shortline_sched::units::Rate,
    },
    /// The simulation refuses the arrivals.
    #[error(transparent)]
    Simulation(#[from] shortline_sim::SimError),
    /// The busiest minute cannot be replayed.
    #[error(transparent)]
    Live(#[from] live::LiveError),
    /// The page cannot be drawn.
    #[error("the page: {0}")]
    Page(String),
}

impl GainError {
    fn kept(error: std::io::Error) -> Self {
        Self::Kept { error }
    }
}

/// A log's name, as it was given.
type Name = PathBuf;
