//! The one clock: monotonic nanoseconds since the process first asked, or the simulated world's.
//! The scheduler core gets its times from here, as arguments.

use std::sync::OnceLock;
use std::time::Instant;

use crate::world;

/// Nanoseconds since the first call in this process, or since the thread's world began. Never goes
/// back.
pub fn now_ns() -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    if let Some(now_ns) = world::here(|world| world.now_ns()) {
        return now_ns;
    }
    // 584 years fit into the 64 bits.
    ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
