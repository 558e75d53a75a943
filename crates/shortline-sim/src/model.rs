//! What theory says of one queue: mean times in the system, by formula.
//!
//! [`Queue`] is an M/G/1: Poisson arrivals, sizes of a [`Distribution`], one server of speed 1, so
//! that sizes are times. [`Queue::solve`] gives the means under a policy, [`Queue::tail`] how the
//! tails of `fifo` and `boost` fall. [`Alternating`] is the same queue with a load that changes
//! between two levels, one of which may be above 1 (paper 000, 6.3). It is an approximation; the
//! other is exact.
//!
//! The integrals over sizes run over the share of jobs that are larger, on a logarithmic scale
//! (`mesh`), because there both an exponential and a Pareto tail are smooth. With a mesh four times
//! as coarse the means stay the same within 1e-7.

mod alternating;
mod analysis;
mod error;
mod form;
mod mesh;
mod queue;
mod residence;
mod tail;

pub use alternating::Alternating;
pub use analysis::{Analysis, Bucket, Point};
pub use error::ModelError;
pub use form::Form;
pub use queue::Queue;
pub use tail::Tail;

#[cfg(test)]
mod tests;

#[cfg(doc)]
use crate::dist::Distribution;
