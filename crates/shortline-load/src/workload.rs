//! Workloads made from the numbers of paper 000 (Schroeder and Harchol-Balter, "Web
//! servers under overload", ACM TOIT 6(1), 2006) instead of a trace: a site whose file
//! sizes follow its section 2.1 ([`world_cup_like`]) and arrivals that follow its Table I
//! ([`Schedule`], [`arrivals`]).
//!
//! The same seed gives the same requests on every machine: ChaCha8, and `libm` instead of
//! the platform's logarithms.

mod schedule;
mod site;
mod sizes;

pub use schedule::{Schedule, UnknownSchedule, arrivals, stream_arrivals};
pub use site::{SiteError, SiteFile, SiteFiles};
pub use sizes::{
    BYTES_MAX, BYTES_MIN, FILES_DEFAULT, FILES_MAX, FILES_MIN, FilesOutOfRange, world_cup_like,
};
