//! The site's files, in a real folder. Each world has its own: whether the kernel has seen a name before decides
//! whether a lookup waits for the disk, and a seed must go the same way each time.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::content::piece;
use crate::scenario::{CUT_FILE, FILES};

/// The modification time of the files, in seconds since 1970.
const MODIFIED_S: u64 = 1_600_000_000;

/// The folder of a site. It is removed when this is dropped.
pub struct Folder(TempDir);

impl Folder {
    /// A folder with all files, whole.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn new() -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        for (at, bytes) in FILES.into_iter().enumerate() {
            let mut file = File::create(folder.path().join(name(at)))?;
            file.write_all(&piece(at as u64, 0, bytes as usize))?;
            file.set_modified(modified(MODIFIED_S))?;
        }
        Ok(Self(folder))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Cuts [`CUT_FILE`] short, a while after it was made.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn cut(&self) -> io::Result<()> {
        let file = File::options()
            .write(true)
            .open(self.path().join(name(CUT_FILE)))?;
        file.set_len(FILES[CUT_FILE] / 3)?;
        file.set_modified(modified(MODIFIED_S + 1))
    }
}

fn name(file: usize) -> String {
    format!("f{file}")
}

fn modified(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}
