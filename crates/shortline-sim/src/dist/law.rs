//! What a family of size distributions provides.

/// What each family provides. Integrals run from 0 up to and including their bound.
pub trait Law {
    /// E\[S^power\]; infinite where it does not exist.
    fn moment(&self, power: i32) -> f64;
    /// The integral of t^power dF(t) up to and including `size`.
    fn partial_moment(&self, power: i32, size: f64) -> f64;
    /// P(S > size), accurate far out in the tail.
    fn share_above(&self, size: f64) -> f64;
    /// The size that a share of the jobs exceeds, 0 < share < 1: the inverse of `share_above`.
    fn size_exceeded_by(&self, share: f64) -> f64;
    /// The smallest and the largest size, either of which may be 0 or infinite.
    fn range(&self) -> (f64, f64);
}
