//! What is known about resources, for a second at a time.
//!
//! An entry is believed for [`BELIEVED_NS`] after the file system was asked. Then the file system
//! is asked again by name, and what has not changed is kept. Absent names are not kept, so nobody
//! can fill the cache with them. Eviction is `quick_cache`'s (S3-FIFO-like). One weight keeps three
//! limits: on bytes, entries and open files. The capacity counts as 1, and an entry weighs the
//! largest of its shares in the three limits. So none of their sums can exceed its limit. All folders of a
//! server share one cache; each has a number in it. What is compressed on the fly (`made`) is kept beside its original, and
//! counts alike.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};

use super::encoding::Coding;
use super::entry::Entry;
use super::kernel_copy::KernelCopies;
use super::made::{Made, Makers};

/// How long an entry is believed, in ns: 1 s.
pub(super) const BELIEVED_NS: u64 = 1_000_000_000;

/// The whole capacity, in units of weight.
const CAPACITY: u64 = 1 << 40;

/// How much may be kept of all folders together, with sound defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// Files up to this size are kept in memory, in bytes. Sending a file from memory costs one
    /// copy, reading it anew two. Default 1 MiB.
    pub file_bytes_max: u64,
    /// Bytes of all cached files together. A file that the kernel may have a copy of counts twice.
    /// Default 128 MiB.
    pub bytes_max: u64,
    /// The most resources in the cache. Default 32,768.
    pub files_max: u64,
    /// The most files kept open in the cache (those too large for memory), and the most files in
    /// memory of which the kernel has a copy. Default 256.
    pub open_files_max: u64,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            file_bytes_max: 1024 * 1024,
            bytes_max: 128 * 1024 * 1024,
            files_max: 32 * 1024,
            open_files_max: 256,
        }
    }
}

/// What is kept of all folders: resources, and the kernel's copies of their bytes.
#[derive(Debug)]
pub struct FileCache {
    entries: Cache<Key, Kept, Shares>,
    folders: AtomicU32,
    /// Bytes of all files together.
    pub(super) bytes_max: u64,
    /// Files up to this size are kept in memory, in bytes.
    pub(super) file_bytes_max: u64,
    pub(super) copies: Arc<KernelCopies>,
    /// Files that are being compressed.
    pub(super) makers: Arc<Makers>,
}

/// The part of a cache that belongs to a folder.
#[derive(Clone, Debug)]
pub(super) struct EntryCache {
    shared: Arc<FileCache>,
    folder: u32,
}

/// A canonical path in a folder, and the coding of what was made of its file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    folder: u32,
    coding: Option<Coding>,
    path: Box<str>,
}

/// What is kept.
#[derive(Clone, Debug)]
enum Kept {
    Entry(Arc<Entry>),
    Made(Arc<Made>),
}

/// The same as it is looked up. It has the hash of a [`Key`].
#[derive(Hash)]
struct Sought<'a> {
    folder: u32,
    coding: Option<Coding>,
    path: &'a str,
}

/// The shares an entry takes.
#[derive(Clone, Debug)]
struct Shares {
    bytes_max: u64,
    entries_max: u64,
    open_files_max: u64,
}

impl FileCache {
    /// An empty cache.
    pub fn new(options: &CacheOptions) -> Arc<Self> {
        let shares = Shares {
            bytes_max: options.bytes_max,
            entries_max: options.files_max,
            open_files_max: options.open_files_max,
        };
        // A hint for the first allocation, so that a small site pays for a small one.
        let entries = usize::try_from(options.files_max)
            .unwrap_or(usize::MAX)
            .min(1024);
        Arc::new(Self {
            entries: Cache::with_weighter(entries, CAPACITY, shares),
            folders: AtomicU32::new(0),
            bytes_max: options.bytes_max,
            file_bytes_max: options.file_bytes_max,
            copies: Arc::new(KernelCopies::new(options.open_files_max)),
            makers: Makers::new(),
        })
    }
}

impl EntryCache {
    /// A part for one more folder.
    pub(super) fn of(shared: &Arc<FileCache>) -> Self {
        Self {
            folder: shared.folders.fetch_add(1, Ordering::Relaxed),
            shared: Arc::clone(shared),
        }
    }

    /// What all folders share.
    pub(super) fn shared(&self) -> &FileCache {
        &self.shared
    }

    /// The entry of a path, whether still believed or not.
    pub(super) fn get(&self, path: &str) -> Option<Arc<Entry>> {
        match self.shared.entries.get(&self.sought(path, None))? {
            Kept::Entry(entry) => Some(entry),
            Kept::Made(_) => None,
        }
    }

    /// What was made of the file of a path.
    pub(super) fn made(&self, path: &str, coding: Coding) -> Option<Arc<Made>> {
        self.made_for(&self.sought(path, Some(coding)))
    }

    /// The same by its key.
    pub(super) fn made_for<K: Hash + Equivalent<Key>>(&self, key: &K) -> Option<Arc<Made>> {
        match self.shared.entries.get(key)? {
            Kept::Made(made) => Some(made),
            Kept::Entry(_) => None,
        }
    }

    /// Keeps an entry if the limits allow.
    pub(super) fn insert(&self, path: &str, entry: &Arc<Entry>) {
        let kept = Kept::Entry(Arc::clone(entry));
        self.shared.entries.insert(self.key(path, None), kept);
    }

    /// Keeps what was made of a file if the limits allow.
    pub(super) fn keep_made(&self, key: Key, made: Arc<Made>) {
        self.shared.entries.insert(key, Kept::Made(made));
    }

    /// Forgets a path that no longer names anything.
    pub(super) fn remove(&self, path: &str) {
        self.shared.entries.remove(&self.sought(path, None));
    }

    /// The key of a path's entry, or of what is made of its file.
    pub(super) fn key(&self, path: &str, coding: Option<Coding>) -> Key {
        Key {
            folder: self.folder,
            coding,
            path: path.into(),
        }
    }

    fn sought<'a>(&self, path: &'a str, coding: Option<Coding>) -> Sought<'a> {
        Sought {
            folder: self.folder,
            coding,
            path,
        }
    }
}

impl Equivalent<Key> for Sought<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        (self.folder, self.coding, self.path) == (key.folder, key.coding, &*key.path)
    }
}

impl Weighter<Key, Kept> for Shares {
    fn weight(&self, key: &Key, kept: &Kept) -> u64 {
        let mut bytes = key.path.len() as u64;
        let mut open_files = 0;
        match kept {
            Kept::Entry(entry) => {
                for variant in entry.variants() {
                    bytes += variant.file.kept_bytes();
                    open_files += u64::from(variant.file.disk().is_some());
                }
            }
            Kept::Made(made) => bytes += made.kept_bytes(),
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
    use std::hash::{BuildHasher, RandomState};

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
    fn a_path_is_found_by_the_hash_of_its_key() {
        let build = RandomState::new();
        let key = Key {
            folder: 7,
            coding: Some(Coding::Gzip),
            path: "/a".into(),
        };
        let coding = Some(Coding::Gzip);
        let sought = |folder, path| Sought {
            folder,
            coding,
            path,
        };
        assert_eq!(build.hash_one(&key), build.hash_one(sought(7, "/a")));
        assert!(sought(7, "/a").equivalent(&key));
        assert!(!sought(8, "/a").equivalent(&key) && !sought(7, "/b").equivalent(&key));
    }

    #[test]
    fn a_limit_is_a_share_of_one() {
        assert_eq!(share(7, 7), CAPACITY);
        assert_eq!(share(u64::MAX, u64::MAX), CAPACITY);
        assert_eq!(share(0, 0), 0);
        assert!(share(1, 0) > CAPACITY);
    }
}
