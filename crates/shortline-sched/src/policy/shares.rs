//! `shares`: a fair share of the server for each client, and inside it the shortest first.
//!
//! Source and formula: [`crate::shares`]. The rank inside a client is that of `srpt`.

use super::Needs;
pub(super) use super::srpt::rank;

pub(super) const NEEDS: Needs = Needs::Sizes;
