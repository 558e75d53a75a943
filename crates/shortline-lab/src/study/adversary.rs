//! One client that attacks beside honest users, as data: the attacks, the servers' surface, and the kept results.

pub mod attacks;
pub mod results;
pub mod surface;

pub use surface::Surface;
