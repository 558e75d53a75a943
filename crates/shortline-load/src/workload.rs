//! Workloads made from the papers' numbers instead of a trace: which files, who asks for them, and
//! when.
//!
//! | | |
//! |---|---|
//! | sites | [`world_cup_like`] and [`nasa_like`], the twins of paper 000's logs (2.1 and appendix); [`SurgePreset::site`], SURGE's files as 001, 003 and 004 had them |
//! | load over time | [`LoadSchedule`]: Table I of 000 ([`Schedule`]), any other alternating or intermittent overload, or a persistent one |
//! | open loop | [`arrivals`] of a site's requests at a load; a trace scaled to a load with [`reschedule`]; a trace and the files it asks for with [`replay`] |
//! | closed loop | [`UserModel`]: SURGE's user equivalents |
//! | a load, measured | [`critical_rate`] (003, 4.2.3) |
//!
//! The same seed gives the same requests on every machine: ChaCha8, and `libm` instead of
//! the platform's logarithms.

mod arrivals;
mod critical;
mod hybrid;
mod named;
mod profile;
mod replay;
mod schedule;
mod site;
mod sizes;
mod surge;

pub use arrivals::{arrivals, arrivals_at, reschedule, stream_arrivals};
pub use critical::{CriticalRateError, critical_rate};
pub use named::{SiteName, UnknownSite, Workload, WorkloadError};
pub use profile::{LOAD_MAX, LoadPhase, LoadSchedule, PHASES_MAX, ScheduleError};
pub use replay::{ReplayError, SITE_BYTES_MAX, replay};
pub use schedule::{Schedule, UnknownSchedule};
pub use site::{SiteError, SiteFile, SiteFiles};
pub use sizes::{
    BYTES_MAX, BYTES_MIN, FILES_DEFAULT, FILES_MAX, FILES_MIN, FilesOutOfRange, nasa_like,
    world_cup_like,
};
pub use surge::{Page, PageFiles, SurgePreset, UnknownPreset, User, UserModel};
