//! The replay's files: one for each size, without content, in a folder that ends with it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;

use tempfile::TempDir;

/// The folder. Its files take no room on the disk (they are sparse).
pub(super) struct MadeUp {
    folder: TempDir,
}

impl MadeUp {
    /// A file of each of these sizes, and an empty one.
    pub(super) fn new(sizes: impl Iterator<Item = u64>) -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("shortline-gain-")
            .tempdir()?;
        let sizes: BTreeSet<u64> = sizes.chain([0]).collect();
        for size in sizes {
            File::create_new(folder.path().join(size.to_string()))?.set_len(size)?;
        }
        Ok(Self { folder })
    }

    pub(super) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// The path of a file of that size.
    pub(super) fn path(&self, bytes: u64) -> String {
        format!("/{bytes}")
    }

    /// The path of the empty file.
    pub(super) fn nothing(&self) -> String {
        self.path(0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn files_are_long_take_no_room_and_end() {
        let site = MadeUp::new([7, 1 << 40, 7].into_iter()).unwrap();
        let root = site.root().to_owned();
        let about = std::fs::metadata(root.join("1099511627776")).unwrap();
        assert_eq!((about.len(), about.blocks()), (1 << 40, 0));
        assert_eq!(std::fs::read_dir(&root).unwrap().count(), 3);
        drop(site);
        assert!(!root.exists());
    }
}
