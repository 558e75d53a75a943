//! Discrete-event simulator over shortline-sched.
//!
//! [`Simulation`] puts streams of arrivals ([`arrivals`], or a trace's) through servers under each
//! of several policies, and reports the outcome ([`results`]). [`fluid`] gives, for the arrivals of
//! a trace, how long each would have been in the system: under SRPT the optimum that a server is
//! measured against, under `fair` the processor-sharing reference. The order comes from
//! [`shortline_sched`], the same code that the server runs.
//!
//! [`wire`] says what a response costs on the link. [`dist`] has the distributions of job sizes,
//! [`model`] what theory says of them. [`Backend`] puts the gate and a backend in the place of the
//! servers. [`trust`] says whether a run is long enough. [`uplink`] is a link with a queue, for the
//! controller that finds its rate.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod admission;
pub mod arrivals;
mod clients;
pub mod dist;
mod engine;
mod error;
mod fluid;
mod gated;
mod intake;
pub mod model;
mod normal;
mod observer;
mod phases;
mod random;
mod replication;
pub mod results;
mod simulation;
pub mod trust;
pub mod uplink;
mod users;
pub mod wire;

pub use admission::{Backend, Thrash, ThrashError};
pub use clients::{ClientClass, ClientClassError};
pub use error::SimError;
pub use fluid::{Arrival, FluidLink, fluid};
pub use gated::{GatedBackend, NamedArrival};
pub use observer::{JobEnd, Observer};
pub use phases::{Phases, PhasesError};
pub use simulation::{Dispatch, Impatience, Simulation};
pub use users::{Greedy, GreedyError, UserGroup, UserGroupError};
