//! One processor for each guest. A guest has one, and its kernel and its processes take turns: each of their system calls is
//! handed from one to the other, which takes four times as long where the two are on different processors.
//!
//! Guests that run at the same time share the machine by a lock for each processor. One that finds none free runs
//! wherever the machine likes.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A processor that no other guest has, until this is dropped.
pub struct Processor {
    number: usize,
    _lock: File,
}

impl Processor {
    /// The first processor that this thread may run on and no other guest has. `locks` is the folder of the locks.
    ///
    /// # Errors
    /// If a lock cannot be made.
    pub fn take(locks: &Path) -> io::Result<Option<Self>> {
        let allowed = sched_getaffinity(None)?;
        for number in (0..CpuSet::MAX_CPU).filter(|number| allowed.is_set(*number)) {
            if let Some(lock) = lock(&locks.join(format!("guest-on-processor-{number}.lock")))? {
                return Ok(Some(Self {
                    number,
                    _lock: lock,
                }));
            }
        }
        Ok(None)
    }

    /// Starts something that stays on this processor, with all that it starts.
    ///
    /// # Errors
    /// If the system does not allow it.
    pub fn start<T>(&self, start: impl FnOnce() -> T) -> io::Result<T> {
        let before = sched_getaffinity(None)?;
        let mut only = CpuSet::new();
        only.set(self.number);
        sched_setaffinity(None, &only)?;
        let started = start();
        sched_setaffinity(None, &before)?;
        Ok(started)
    }
}

/// The lock, unless somebody has it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_guest_has_a_processor_of_its_own_until_there_is_none_left() {
        let locks = tempfile::tempdir().unwrap();
        let allowed = sched_getaffinity(None).unwrap();
        let there = (0..CpuSet::MAX_CPU).filter(|number| allowed.is_set(*number));
        let there: Vec<usize> = there.collect();
        let take = || Processor::take(locks.path()).unwrap();
        let mut taken: Vec<Processor> = there.iter().map(|_| take().unwrap()).collect();
        let numbers: Vec<usize> = taken.iter().map(|one| one.number).collect();
        assert_eq!(numbers, there);
        assert!(take().is_none());
        let first = taken.swap_remove(0).number;
        assert_eq!(take().unwrap().number, first);
    }

    #[test]
    fn what_is_started_stays_there_and_who_started_it_does_not() {
        let locks = tempfile::tempdir().unwrap();
        let before = sched_getaffinity(None).unwrap();
        let processor = Processor::take(locks.path()).unwrap().unwrap();
        let inside = processor.start(|| sched_getaffinity(None).unwrap());
        let inside = inside.unwrap();
        assert!(inside.is_set(processor.number) && inside.count() == 1);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
