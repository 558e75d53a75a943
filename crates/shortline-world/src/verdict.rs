//! How a request ends, and the faults that can be found.

use std::fmt;
use std::net::IpAddr;

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A complete response with this status.
    Whole(u16),
    /// Its client gave up.
    GivenUp,
    /// It broke off, or nothing came. The text says how.
    Broken(String),
}

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The link's accounts do not balance.
    Link(shortline_link::Fault),
    /// A response has a byte that is not its own, or that is in the wrong place.
    Wrong {
        /// The request: client, number, target.
        whose: String,
        /// What is wrong.
        what: String,
    },
    /// A response was incomplete although nothing prevented it.
    Broken {
        /// The request: client, number, target.
        whose: String,
        /// How it ended.
        how: String,
    },
    /// A client took a response for complete that could not be.
    TakenForWhole {
        /// The request: client, number, target.
        whose: String,
    },
    /// Clients that read what they are sent wait, and nothing comes.
    Stuck {
        /// Who they are.
        clients: Vec<String>,
    },
    /// Something is still held after all clients have gone.
    Leaked {
        /// What, and how much.
        what: String,
    },
    /// A response was not counted exactly once.
    Counted {
        /// The request's target.
        whose: String,
        /// How often.
        times: usize,
    },
    /// A request was counted as another client's.
    Mistaken {
        /// The request's target.
        whose: String,
        /// The other's address.
        other: IpAddr,
    },
    /// A backend received a different request than was sent.
    Upload {
        /// The request's target.
        whose: String,
        /// What is wrong.
        what: String,
    },
    /// The same is done again and again, and no time passes.
    Spins,
    /// More was held than is allowed.
    Unbounded {
        /// What.
        what: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(fault) => write!(formatter, "the link: {fault}"),
            Self::Wrong { whose, what } => write!(formatter, "{whose}: wrong bytes: {what}"),
            Self::Broken { whose, how } => write!(formatter, "{whose}: not whole: {how}"),
            Self::TakenForWhole { whose } => {
                write!(formatter, "{whose}: cut short, and nobody can tell")
            }
            Self::Stuck { clients } => {
                write!(
                    formatter,
                    "nothing comes any more for {}",
                    clients.join(", ")
                )
            }
            Self::Leaked { what } => write!(formatter, "left when all have gone: {what}"),
            Self::Counted { whose, times } => {
                write!(formatter, "{whose}: ended {times} times by the access log")
            }
            Self::Mistaken { whose, other } => {
                write!(formatter, "{whose}: taken for one of {other}")
            }
            Self::Upload { whose, what } => write!(formatter, "{whose}: the backend got {what}"),
            Self::Spins => formatter.write_str("it goes on and on, and no time passes"),
            Self::Unbounded { what } => write!(formatter, "beyond its bound: {what}"),
        }
    }
}
