//! Admission in front of a database or an application server.
//!
//! A [`Gate`] learns the service time of each type of request. It admits as much work as the
//! backend does well, and lets the rest wait in the order of a policy. `shortline_sched::admission`
//! decides. This crate has the clock, the waiting tasks, and the relays that ask it.
#![forbid(unsafe_code)]

pub mod classify;
mod gate;
pub mod http;
pub mod locks;
pub mod mysql;
pub mod pool;
pub mod postgres;
pub mod relay;

pub use gate::{
    Admitted, Closed, Decision, DoorError, Gate, GateClient, GateConfig, GateSnapshot, Wait,
};
pub use shortline_sched::admission::{Kept, Outcome, TypeId};
