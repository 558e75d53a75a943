//! The policies: each gives a job a rank, and the smallest rank is served first.
//!
//! One file per policy has its rank function, its source and its needs.
//! [`Policy`] is the list of them. Under every policy, equal ranks go in the order of submission.
//! As text, a policy is its name; `bands` and `quickfix` may have a parameter after a colon:
//! `bands:1KB,2KB,5KB,50KB`, `bands:6`, `quickfix:2KB`.

mod bands;
pub(crate) mod boost;
mod cutoffs;
mod fair;
mod fcf;
mod fifo;
mod fsp;
mod gittins;
mod las;
mod learnt;
mod psjf;
mod quickfix;
mod ranking;
mod shares;
mod sjf;
mod srpt;
mod srrt;
mod stert;
mod swift;
mod text;

use crate::units::Size;

pub use cutoffs::{BANDS_MAX, Cutoffs, CutoffsError};
pub(crate) use ranking::Ranking;
pub use text::PolicyError;

/// The order in which jobs are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Round robin, one quantum each.
    Fair,
    /// First in, first out.
    Fifo,
    /// Shortest job first, not preempting.
    Sjf,
    /// Shortest job first, preempting.
    Psjf,
    /// Shortest remaining processing time first.
    Srpt,
    /// By the band of the remaining size; fair inside one.
    Bands(Cutoffs),
    /// Small before large; fair within each kind.
    QuickFix {
        /// The largest size that counts as small; `None` for the median of the sizes seen.
        small_max: Option<Size>,
    },
    /// By remaining size and round trip time.
    Swift,
    /// By remaining size over the connection's throughput.
    Fcf,
    /// Shortest remaining response time first.
    Srrt,
    /// Shortest total estimated response time first.
    Stert,
    /// Least attained service first.
    Las,
    /// In the order in which processor sharing would end the jobs.
    Fsp,
    /// In order of arrival, with short jobs counted as earlier.
    Boost,
    /// The smallest Gittins rank first, for sizes that are only estimated.
    Gittins,
    /// In the order in which fair sharing among clients would end their work. Inside a client,
    /// shortest remaining first.
    Shares,
}

/// The input that a policy needs about its jobs and their server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Needs {
    /// At most the jobs' sizes.
    Sizes,
    /// Also the server's rate: how long a job takes alone.
    Rate,
    /// The sizes and each connection's path ([`crate::PathView`]).
    Path,
}

impl Policy {
    /// All policies, with their usual parameters, in the order in which they are documented.
    pub const ALL: [Policy; 16] = [
        Policy::Fair,
        Policy::Fifo,
        Policy::Sjf,
        Policy::Psjf,
        Policy::Srpt,
        Policy::Bands(Cutoffs::USUAL),
        Policy::QuickFix { small_max: None },
        Policy::Swift,
        Policy::Fcf,
        Policy::Srrt,
        Policy::Stert,
        Policy::Las,
        Policy::Fsp,
        Policy::Boost,
        Policy::Gittins,
        Policy::Shares,
    ];

    /// The name on the command line and in a configuration, without a parameter.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Fair => "fair",
            Policy::Fifo => "fifo",
            Policy::Sjf => "sjf",
            Policy::Psjf => "psjf",
            Policy::Srpt => "srpt",
            Policy::Bands(_) => "bands",
            Policy::QuickFix { .. } => "quickfix",
            Policy::Swift => "swift",
            Policy::Fcf => "fcf",
            Policy::Srrt => "srrt",
            Policy::Stert => "stert",
            Policy::Las => "las",
            Policy::Fsp => "fsp",
            Policy::Boost => "boost",
            Policy::Gittins => "gittins",
            Policy::Shares => "shares",
        }
    }

    /// The input that the policy needs.
    pub fn needs(self) -> Needs {
        match self {
            Policy::Fair => fair::NEEDS,
            Policy::Fifo => fifo::NEEDS,
            Policy::Sjf => sjf::NEEDS,
            Policy::Psjf => psjf::NEEDS,
            Policy::Srpt => srpt::NEEDS,
            Policy::Bands(_) => bands::NEEDS,
            Policy::QuickFix { .. } => quickfix::NEEDS,
            Policy::Swift => swift::NEEDS,
            Policy::Fcf => fcf::NEEDS,
            Policy::Srrt => srrt::NEEDS,
            Policy::Stert => stert::NEEDS,
            Policy::Las => las::NEEDS,
            Policy::Fsp => fsp::NEEDS,
            Policy::Boost => boost::NEEDS,
            Policy::Gittins => gittins::NEEDS,
            Policy::Shares => shares::NEEDS,
        }
    }

    /// The policy for a driver that counts `work_per_byte` units of work for each byte. Its sizes
    /// are then in that unit, which its text does not show.
    #[must_use]
    pub fn scaled(self, work_per_byte: f64) -> Self {
        match self {
            Policy::Bands(cutoffs) => Policy::Bands(cutoffs.scaled(work_per_byte)),
            Policy::QuickFix { small_max } => Policy::QuickFix {
                small_max: small_max
                    .map(|size| Size::from_bytes(cutoffs::scaled(size.bytes(), work_per_byte))),
            },
            other => other,
        }
    }
}
