//! Discrete-event simulator over shortline-sched.
//!
//! [`fluid`] gives, for the arrivals of a trace, how long each would have been in the
//! system if the link could be divided at will and nothing were lost to it: under SRPT
//! the optimum that a server is measured against, under `fair` the processor-sharing
//! reference. The order comes from [`shortline_sched`], the same code that the server
//! runs. [`wire`] says what a response costs on the link, [`Summary`] what is worth
//! knowing about the outcome. [`dist`] has the distributions of job sizes, [`model`] what theory says of them.
#![forbid(unsafe_code)]

pub mod dist;
mod fluid;
pub mod model;
mod summary;
pub mod wire;

pub use fluid::{Arrival, SimError, fluid, service_ns};
pub use summary::Summary;
