//! The one clock: monotonic nanoseconds since the process first asked, or those of the simulated
//! world; and the date. The scheduler core gets its times from here, as arguments.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use rustix::time::{ClockId, clock_gettime};

use crate::world;

/// When a simulated world began, in seconds since 1970.
const WORLD_BEGAN_S: u64 = 1_700_000_000;

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

/// How long this thread has kept a processor busy, in nanoseconds. In a simulated world work takes no time.
pub fn thread_work_ns() -> u64 {
    if world::here(|_| ()).is_some() {
        return 0;
    }
    let busy = clock_gettime(ClockId::ThreadCPUTime);
    // Since the thread began, so it is not negative.
    busy.tv_sec as u64 * 1_000_000_000 + busy.tv_nsec as u64
}

/// The date and time of day.
pub fn date() -> SystemTime {
    match world::here(|world| world.now_ns()) {
        Some(now_ns) => {
            SystemTime::UNIX_EPOCH
                + Duration::from_secs(WORLD_BEGAN_S)
                + Duration::from_nanos(now_ns)
        }
        None => SystemTime::now(),
    }
}
