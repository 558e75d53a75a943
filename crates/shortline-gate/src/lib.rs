//! Admission in front of a database or an application server.
//!
//! A [`Gate`] learns the service time of each type of request. It admits as much work as the
//! backend handles well. The rest waits in the order of a policy. `shortline_sched::admission`
//! makes the decisions. This crate adds the clock, the waiting tasks and the relays.
#![forbid(unsafe_code)]

pub mod classify;
pub mod cluster;
mod gate;
pub mod handover;
pub mod http;
pub mod locks;
pub mod mysql;
pub mod pool;
pub mod postgres;
pub mod relay;

pub use gate::{
    Admitted, BackendConnection, Closed, Decision, DoorError, Gate, GateClient, GateConfig,
    GateSnapshot, Question, TenantTable, Wait,
};
pub use shortline_sched::admission::{Kept, Outcome, TypeId};
