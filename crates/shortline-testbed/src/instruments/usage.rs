//! Processor time and memory of a process and its descendants. Finding the descendants means reading
//! every process of the machine. So both are read once a second and repeated in between.

use std::iter::Sum;
use std::time::Duration;

use crate::proc_fs;

const REFRESH: Duration = Duration::from_secs(1);

/// What a process and its descendants have used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Processor time, user and system, in seconds, to 10 ms.
    pub cpu_s: f64,
    /// Resident memory now, in bytes; shared pages count for each.
    pub resident_bytes: u64,
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, usage| Self {
            cpu_s: sum.cpu_s + usage.cpu_s,
            resident_bytes: sum.resident_bytes + usage.resident_bytes,
        })
    }
}

/// A process that is watched.
#[derive(Debug)]
pub struct Watched {
    pid: i32,
    last: Usage,
    refresh_at: Duration,
}

impl Watched {
    /// The process of that id.
    pub fn new(pid: i32) -> Self {
        Self {
            pid,
            last: Usage::default(),
            refresh_at: Duration::ZERO,
        }
    }

    /// Its usage, at most a second old. If the process has ended, its last usage.
    pub fn usage(&mut self, now: Duration) -> Usage {
        if now >= self.refresh_at {
            self.refresh_at = now + REFRESH;
            let (cpu_s, resident_bytes) = proc_fs::usage(self.pid);
            if resident_bytes > 0 {
                self.last = Usage {
                    cpu_s,
                    resident_bytes,
                };
            }
        }
        self.last
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::hint::black_box;

    use super::*;

    #[test]
    fn it_is_read_once_a_second() {
        let mut watched = Watched::new(i32::try_from(std::process::id()).unwrap());
        let first = watched.usage(Duration::ZERO);
        assert!(first.resident_bytes > 100_000);
        let memory = black_box(vec![1_u8; 50 << 20]);
        assert_eq!(watched.usage(REFRESH / 2), first);
        let later = watched.usage(REFRESH);
        assert!(later.resident_bytes >= first.resident_bytes + (20 << 20));
        drop(black_box(memory));
    }
}
