//! One client that attacks beside honest users, as data: what it does, what it meets, and what is kept of it.

pub mod attacks;
pub mod results;
pub mod surface;

pub use surface::Surface;
