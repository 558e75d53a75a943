//! The site's files, in a real folder. A thread keeps it for its next world unless a file was cut: to write
//! the files and to remove them takes a good part of a world's time.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::content::piece;
use crate::scenario::{CUT_FILE, FILES};

/// The modification time of the files, in seconds since 1970.
const MODIFIED_S: u64 = 1_600_000_000;

thread_local! {
    /// A folder whose files are whole.
    static KEPT: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

/// The folder of a site.
pub struct Folder {
    /// None while it is dropped.
    folder: Option<TempDir>,
    is_cut: AtomicBool,
}

impl Folder {
    /// A folder with all files, whole.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn open() -> io::Result<Self> {
        let folder = match KEPT.take() {
            Some(kept) => kept,
            None => filled()?,
        };
        Ok(Self {
            folder: Some(folder),
            is_cut: AtomicBool::new(false),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.as_ref().map_or(Path::new(""), TempDir::path)
    }

    /// Cuts [`CUT_FILE`] short, a while after it was made.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn cut(&self) -> io::Result<()> {
        self.is_cut.store(true, Ordering::Relaxed);
        let file = File::options()
            .write(true)
            .open(self.path().join(name(CUT_FILE)))?;
        file.set_len(FILES[CUT_FILE] / 3)?;
        file.set_modified(modified(MODIFIED_S + 1))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_cut.load(Ordering::Relaxed) {
            // A thread that ends keeps nothing: the folder is removed.
            let _ = KEPT.try_with(|kept| kept.replace(self.folder.take()));
        }
    }
}

fn filled() -> io::Result<TempDir> {
    let folder = tempfile::tempdir()?;
    for (at, bytes) in FILES.into_iter().enumerate() {
        let mut file = File::create(folder.path().join(name(at)))?;
        file.write_all(&piece(at as u64, 0, bytes as usize))?;
        file.set_modified(modified(MODIFIED_S))?;
    }
    Ok(folder)
}

fn name(file: usize) -> String {
    format!("f{file}")
}

fn modified(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}
