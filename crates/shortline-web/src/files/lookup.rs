//! From a canonical path to what it names: first the cache, then the file system.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use shortline_base::clock;

use super::cache::{BELIEVED_NS, EntryCache, FileCache};
use super::encoding::Coding;
use super::entry::{Entry, Kind, Stamp, Variant, content_type};
use super::file::OpenFile;
use super::made::{Made, Order};
use super::open::{OpenError, Opened, PathKind, Root, Wait};
use super::paths::FilePath;
use super::{FilesError, FilesOptions, listing};
use crate::compress;

/// The part of the cache that what is made of a file may take.
const CACHE_PART_MAX: u64 = 4;

/// What a [`super::Files`] and its clones share.
#[derive(Debug)]
pub(super) struct Lookup {
    root: Root,
    options: FilesOptions,
    cache: EntryCache,
}

/// What a path names.
pub(super) enum Found {
    Resource(Arc<Entry>),
    /// A directory whose path lacks its final slash.
    Directory,
    Listing(String),
}

impl Lookup {
    pub(super) fn open(
        root: &Path,
        options: FilesOptions,
        cache: &Arc<FileCache>,
    ) -> Result<Self, FilesError> {
        let is_plain = |name: &str| !name.contains(['/', '\0']) && !["", ".", ".."].contains(&name);
        if let Some(name) = options.index.iter().find(|name| !is_plain(name)) {
            return Err(FilesError::Index { name: name.clone() });
        }
        Ok(Self {
            root: Root::open(root)?,
            options,
            cache: EntryCache::of(cache),
        })
    }

    /// What a path below the root names, which need not be readable.
    pub(super) fn kind(&self, relative: &str, wait: Wait) -> Result<Option<PathKind>, OpenError> {
        self.root.kind(relative, wait)
    }

    /// The names tried in a directory.
    pub(super) fn index(&self) -> &[String] {
        &self.options.index
    }

    /// Whether directories are listed.
    pub(super) fn lists(&self) -> bool {
        self.options.listing
    }

    /// What `path` names at `now_ns`, or named at most [`BELIEVED_NS`] before.
    pub(super) fn find(
        &self,
        now_ns: u64,
        path: &FilePath<'_>,
        wait: Wait,
    ) -> Result<Found, OpenError> {
        if self.options.is_program(path.as_str()) {
            return Err(OpenError::NotFound);
        }
        let known = self.cache.get(path.as_str());
        if let Some(entry) = known
            .as_ref()
            .filter(|entry| entry.is_fresh(now_ns, BELIEVED_NS))
        {
            return Ok(Found::Resource(Arc::clone(entry)));
        }
        let found = self.look_up(path, known.as_deref(), now_ns, wait);
        match (&found, known) {
            (Ok(Found::Resource(entry)), known) => {
                if !known.is_some_and(|known| known.confirm(entry, now_ns)) {
                    self.cache.insert(path.as_str(), entry);
                }
            }
            (Err(OpenError::WouldBlock), _) | (_, None) => {}
            (_, Some(_)) => self.cache.remove(path.as_str()),
        }
        found
    }

    /// What was made of the file of a path, if it still holds.
    pub(super) fn made(
        &self,
        path: &FilePath<'_>,
        coding: Coding,
        original: &Arc<Variant>,
    ) -> Option<Arc<Made>> {
        let made = self.cache.made(path.as_str(), coding)?;
        made.holds_for(original).then_some(made)
    }

    /// Whether something would be made of the file soon.
    pub(super) fn would_make(
        &self,
        path: &FilePath<'_>,
        coding: Coding,
        original: &Variant,
    ) -> bool {
        let key = self.cache.key(path.as_str(), Some(coding));
        let makers = &self.cache.shared().makers;
        makers.has_room(&key, original.file.len())
    }

    /// Makes something of the file of a path, or waits until another request has.
    pub(super) async fn make(
        &self,
        path: &FilePath<'_>,
        coding: Coding,
        original: &Arc<Variant>,
    ) -> Option<Arc<Made>> {
        let order = Order {
            key: self.cache.key(path.as_str(), Some(coding)),
            original: Arc::clone(original),
            coding,
        };
        let made = self.cache.shared().makers.make(&self.cache, order).await?;
        made.holds_for(original).then_some(made)
    }

    /// Whether a file may be compressed on the fly: one that gains by it, and of which the cache can keep what is made.
    fn is_compressible(&self, name: &str, bytes: u64) -> bool {
        let kept_max = self.cache.shared().bytes_max / CACHE_PART_MAX;
        self.options.compress
            && (compress::BYTES_MIN..=self.options.compress_bytes_max.min(kept_max))
                .contains(&bytes)
            && content_type(name).to_str().is_ok_and(compress::suits_type)
    }

    fn look_up(
        &self,
        path: &FilePath<'_>,
        known: Option<&Entry>,
        now_ns: u64,
        wait: Wait,
    ) -> Result<Found, OpenError> {
        if path.is_directory() {
            return self.look_up_directory(path, known, now_ns, wait);
        }
        match self.root.get(path.relative(), wait)? {
            Opened::Directory(_) => Ok(Found::Directory),
            file => Ok(Found::Resource(self.entry(
                path.relative(),
                file,
                known,
                now_ns,
                wait,
            )?)),
        }
    }

    fn look_up_directory(
        &self,
        path: &FilePath<'_>,
        known: Option<&Entry>,
        now_ns: u64,
        wait: Wait,
    ) -> Result<Found, OpenError> {
        let served = |index: &&String| !self.options.is_program(index);
        for index in self.options.index.iter().filter(served) {
            let name = format!("{}/{index}", path.relative());
            match self.root.get(&name, wait) {
                Ok(Opened::Directory(_)) | Err(OpenError::NotFound) => {}
                Ok(file) => {
                    return Ok(Found::Resource(
                        self.entry(&name, file, known, now_ns, wait)?,
                    ));
                }
                Err(error) => return Err(error),
            }
        }
        if !self.options.listing {
            return Err(OpenError::NotFound);
        }
        if wait == Wait::Never {
            return Err(OpenError::WouldBlock);
        }
        match self.root.get(path.relative(), wait)? {
            Opened::Directory(directory) => {
                let entries_max = self.options.listing_entries_max;
                listing::page(&self.root, directory, path, entries_max).map(Found::Listing)
            }
            Opened::File { .. } => Err(OpenError::NotFound),
        }
    }

    /// The entry of an open file. What has not changed is taken over from `known`.
    fn entry(
        &self,
        name: &str,
        file: Opened,
        known: Option<&Entry>,
        now_ns: u64,
        wait: Wait,
    ) -> Result<Arc<Entry>, OpenError> {
        let Opened::File { fd, stat } = file else {
            return Err(OpenError::NotFound);
        };
        let now = clock::date();
        let stamp = Stamp::new(&stat);
        let siblings = self.siblings(name, &stamp, wait)?;
        let is_compressible = self.is_compressible(name, stamp.len);
        let varies = is_compressible || !siblings.is_empty();
        let variant = |fd, stamp: Stamp, coding, before: Option<&Arc<Variant>>| match before {
            Some(before) if before.holds_for(stamp, varies) => before.released(),
            _ => {
                let cache = self.cache.shared();
                let small = stamp.len <= cache.file_bytes_max;
                let keep = small.then(|| Arc::clone(&cache.copies));
                let kind = Kind {
                    name,
                    coding,
                    varies,
                };
                Arc::new(Variant::new(
                    OpenFile::new(fd, stamp.len, keep),
                    stamp,
                    kind,
                    now,
                ))
            }
        };
        let coded = siblings.into_iter().map(|(coding, fd, stamp)| {
            let before = known.and_then(|known| known.sibling(coding));
            (coding, variant(fd, stamp, Some(coding), before))
        });
        let coded = coded.collect();
        let identity = variant(fd, stamp, None, known.map(|known| &known.identity));
        let entry = Entry::new(identity, coded, is_compressible, now_ns);
        Ok(Arc::new(entry))
    }

    /// The precompressed siblings that are not older than their original. One that cannot be
    /// opened, for whatever reason of its own, counts as absent.
    fn siblings(
        &self,
        name: &str,
        original: &Stamp,
        wait: Wait,
    ) -> Result<Vec<(Coding, OwnedFd, Stamp)>, OpenError> {
        let mut siblings = Vec::new();
        if !self.options.precompressed {
            return Ok(siblings);
        }
        for coding in Coding::ALL {
            match self.root.get(&format!("{name}{}", coding.suffix()), wait) {
                Ok(Opened::File { fd, stat }) => {
                    let stamp = Stamp::new(&stat);
                    if !stamp.is_older_than(original) {
                        siblings.push((coding, fd, stamp));
                    }
                }
                Err(error @ (OpenError::WouldBlock | OpenError::Exhausted)) => return Err(error),
                Ok(Opened::Directory(_)) | Err(_) => {}
            }
        }
        Ok(siblings)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bytes::Bytes;

    use super::super::CacheOptions;
    use super::super::paths::{Target, parse_target};
    use super::*;

    fn content(lookup: &Lookup, now_ns: u64) -> Result<Bytes, OpenError> {
        let Ok(Target::Resource { path, .. }) = parse_target("/file") else {
            panic!("a path")
        };
        let Found::Resource(entry) = lookup.find(now_ns, &path, Wait::Allowed)? else {
            panic!("a file")
        };
        let file = &entry.identity.file;
        Ok(file
            .read_blocking(0, usize::try_from(file.len()).unwrap())
            .unwrap())
    }

    #[test]
    fn a_small_file_is_believed_for_a_second_and_no_longer() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let cache = FileCache::new(&CacheOptions::default());
        let lookup = Lookup::open(dir.path(), FilesOptions::default(), &cache).unwrap();
        std::fs::write(&file, "one").unwrap();
        assert_eq!(content(&lookup, 0).unwrap(), "one");
        // The same length and, on a coarse clock, the same time.
        std::fs::write(&file, "two").unwrap();
        assert_eq!(content(&lookup, BELIEVED_NS).unwrap(), "one");
        assert_eq!(content(&lookup, BELIEVED_NS + 1).unwrap(), "two");
        std::fs::remove_file(&file).unwrap();
        assert_eq!(content(&lookup, 2 * BELIEVED_NS).unwrap(), "two");
        assert_eq!(
            content(&lookup, 3 * BELIEVED_NS).unwrap_err(),
            OpenError::NotFound
        );
        // Gone from the cache at once, not only at the next check.
        assert_eq!(
            content(&lookup, 3 * BELIEVED_NS).unwrap_err(),
            OpenError::NotFound
        );
    }
}
