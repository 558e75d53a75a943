//! What becomes of a request, and what can be found not to hold.

use std::fmt;

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A response, to its end.
    Whole(u16),
    /// Its client gave up.
    GivenUp,
    /// It broke off, or nothing came: how.
    Broken(String),
}

/// What does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The link's books do not balance.
    Link(shortline_link::Fault),
    /// A response has a byte that is not its own, or has them in another place.
    Wrong {
        /// Whose: client, request, target.
        whose: String,
        /// What is wrong.
        what: String,
    },
    /// A response that nothing stood in the way of was not whole.
    Broken {
        /// Whose: client, request, target.
        whose: String,
        /// How it ended.
        how: String,
    },
    /// A response that could not be whole was taken for whole by its client.
    TakenForWhole {
        /// Whose: client, request, target.
        whose: String,
    },
    /// Clients that take what they are sent wait, and nothing comes.
    Stuck {
        /// Who they are.
        clients: Vec<String>,
    },
    /// Something is held after everybody has gone.
    Leaked {
        /// What, and how much.
        what: String,
    },
    /// A response was not counted once.
    Counted {
        /// Whose: target.
        whose: String,
        /// How often.
        times: usize,
    },
    /// A backend got another request than was sent.
    Upload {
        /// Whose: target.
        whose: String,
        /// What is wrong.
        what: String,
    },
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
            Self::Upload { whose, what } => write!(formatter, "{whose}: the backend got {what}"),
            Self::Unbounded { what } => write!(formatter, "beyond its bound: {what}"),
        }
    }
}
