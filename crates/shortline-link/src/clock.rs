//! The one clock of the link: monotonic nanoseconds since the process first asked. The
//! scheduler core gets its times from here, as arguments.

use std::sync::OnceLock;
use std::time::Instant;

/// Nanoseconds since the first call in this process. Never goes back.
pub fn now_ns() -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    // 584 years fit into the 64 bits.
    ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
