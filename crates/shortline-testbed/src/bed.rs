//! Where servers and clients run: on this machine's loopback, or in the [`native`] bed
//! with an uplink that can be saturated.

pub mod hop;
pub mod kind;
pub mod native;
mod netns;
pub mod parameters;
mod queue;
mod router;
pub mod setup;
mod wire;

pub use kind::BedKind;
pub use native::{BedConfig, Counters, NativeBed};
pub use queue::FairQueue;
pub use router::client_address;
pub use setup::Setup;
