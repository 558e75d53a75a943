//! What is known about resources, for a second at a time.
//!
//! An entry is believed for [`BELIEVED_NS`] after the file system was asked. Then the file system
//! is asked again by name, and what has not changed is kept. Absent names are not kept, so nobody
//! can fill the cache with them. Eviction is `quick_cache`'s (S3-FIFO-like). One weight keeps three
//! limits: on bytes, entries and open files. The capacity counts as 1, and an entry weighs the
//! largest of its shares in the three limits. So none of their sums can exceed its limit.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::SiteOptions;
use super::entry::Entry;

/// How long an entry is believed, in ns: 1 s.
pub(super) const BELIEVED_NS: u64 = 1_000_000_000;

/// The whole capacity, in units of weight.
const CAPACITY: u64 = 1 << 40;

/// A bounded map from canonical paths to entries.
#[derive(Debug)]
pub(super) struct EntryCache {
    entries: Cache<Box<str>, Arc<Entry>, Shares>,
}

/// The shares an entry takes.
#[derive(Clone, Debug)]
struct Shares {
    bytes_max: u64,
    entries_max: u64,
    open_files_max: u64,
}

impl EntryCache {
    pub(super) fn new(options: &SiteOptions) -> Self {
        let shares = Shares {
            bytes_max: options.cache_bytes_max,
            entries_max: options.cache_files_max,
            open_files_max: options.cache_open_files_max,
        };
        // A hint for the first allocation, so that a small site pays for a small one.
        let entries = usize::try_from(options.cache_files_max)
            .unwrap_or(usize::MAX)
            .min(1024);
        Self {
            entries: Cache::with_weighter(entries, CAPACITY, shares),
        }
    }

    /// The entry of a path, whether still believed or not.
    pub(super) fn get(&self, path: &str) -> Option<Arc<Entry>> {
        self.entries.get(path)
    }

    /// Keeps an entry if the limits allow.
    pub(super) fn insert(&self, path: &str, entry: &Arc<Entry>) {
        self.entries.insert(path.into(), Arc::clone(entry));
    }

    /// Forgets a path that no longer names anything.
    pub(super) fn remove(&self, path: &str) {
        self.entries.remove(path);
    }
}

impl Weighter<Box<str>, Arc<Entry>> for Shares {
    fn weight(&self, path: &Box<str>, entry: &Arc<Entry>) -> u64 {
        let mut bytes = path.len() as u64;
        let mut open_files = 0;
        for variant in entry.variants() {
            bytes += variant.file.kept_bytes();
            open_files += u64::from(variant.file.disk().is_some());
        }
        share(bytes, self.bytes_max)
            .max(share(1, self.entries_max))
            .max(share(open_files, self.open_files_max))
    }
}

/// A part of a limit in units of the capacity, rounded up. More than the capacity if the part
/// exceeds the limit.
fn share(part: u64, limit: u64) -> u64 {
    if part > limit {
        return CAPACITY + 1;
    }
    let units = (u128::from(part) * u128::from(CAPACITY)).div_ceil(u128::from(limit.max(1)));
    u64::try_from(units).expect("invariant: a part within its limit is within the capacity")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shares_within_the_capacity_are_parts_within_the_limit(
            limit in 0u64..10_000, parts in proptest::collection::vec(0u64..1000, 0..100),
        ) {
            let weights: Vec<u64> = parts.iter().map(|part| share(*part, limit)).collect();
            if weights.iter().sum::<u64>() <= CAPACITY {
                prop_assert!(parts.iter().sum::<u64>() <= limit);
            }
        }
    }

    #[test]
    fn a_limit_is_a_share_of_one() {
        assert_eq!(share(7, 7), CAPACITY);
        assert_eq!(share(u64::MAX, u64::MAX), CAPACITY);
        assert_eq!(share(0, 0), 0);
        assert!(share(1, 0) > CAPACITY);
    }
}
