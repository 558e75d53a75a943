//! Scheduling policies, ranks, aging and queues: no I/O, no clock.
//!
//! A [`Scheduler`] holds [`Job`]s and determines the next one: the job of the smallest rank
//! under its [`Policy`]. Waiting may add [`Urgency`]. The uplink, the gate and the simulator
//! drive the same code. They own the sockets and the clock, and pass the time in as an argument,
//! in nanoseconds from an origin of their choice.
//!
//! ```
//! use shortline_sched::{JobSpec, Policy, Scheduler, SchedulerConfig};
//!
//! let mut scheduler = Scheduler::new(SchedulerConfig::new(Policy::Srpt, 1000));
//! let large = scheduler.submit(JobSpec { arrival_ns: 0, work: 9000, ..JobSpec::default() })?;
//! let small = scheduler.submit(JobSpec { arrival_ns: 5, work: 700, ..JobSpec::default() })?;
//! assert_eq!(scheduler.take(5), Some(small));
//! scheduler.record(small, 700);
//! scheduler.remove(small);
//! assert_eq!(scheduler.peek(705), Some(large));
//! # Ok::<(), shortline_sched::QueueFull>(())
//! ```
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod admission;
pub mod dispatch;
mod estimate;
mod heap;
mod job;
mod network;
mod path;
pub mod policy;
pub mod processor_sharing;
mod scheduler;
mod shares;
mod twin;
pub mod units;
pub mod uplink;
mod urgency;

pub use estimate::{Estimate, Estimator, EstimatorError, KeptSpread, Spread};
pub use job::{Client, Job, JobId, JobSpec};
pub use network::{Network, NetworkError};
pub use path::PathView;
pub use policy::{Cutoffs, Needs, Policy, PolicyError};
pub use processor_sharing::ProcessorSharing;
pub use scheduler::{QueueFull, Scheduler, SchedulerConfig};
pub use twin::{FairEnd, Twin};
pub use urgency::{Aging, FactorError, Growing, Urgency};
