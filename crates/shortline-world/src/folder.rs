//! The sites' files, in real folders. Each world has its own: whether the kernel has seen a name before decides
//! whether a lookup waits for the disk, and a seed must go the same way each time.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::content::{Content, piece};
use crate::scenario::{CUT_FILE, CUT_TEXT, FILES, FILES_OF_SECOND, TEXTS};

/// The modification time of the files, in seconds since 1970.
const MODIFIED_S: u64 = 1_600_000_000;

/// The first key of the second site's files.
const SECOND_KEY: u64 = 100;
/// The first key of texts.
const TEXTS_KEY: u64 = 200;
/// The key of the page that stands for 404 on the second site, and its length.
pub const PAGE_KEY: u64 = 300;
/// Its length.
pub const PAGE_BYTES: usize = 400;
/// The front controller of programs. Backends run it; here it has only to be there.
pub const PROGRAM: &str = "front.php";

/// The folder of a site. It is removed when this is dropped.
pub struct Folder(TempDir);

/// The key of a file.
pub fn key(is_second: bool, file: usize) -> u64 {
    file as u64 + if is_second { SECOND_KEY } else { 0 }
}

/// A text.
pub fn text(text: usize) -> Content {
    Content::Text(TEXTS_KEY + text as u64)
}

impl Folder {
    /// A folder with all files, whole.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn new() -> io::Result<Self> {
        let folder = Self(tempfile::tempdir()?);
        for (at, bytes) in FILES.into_iter().enumerate() {
            folder.write(&name(at), &piece(key(false, at), 0, bytes as usize))?;
        }
        for (at, bytes) in TEXTS.into_iter().enumerate() {
            folder.write(&text_name(at), &text(at).piece(0, bytes as usize))?;
        }
        folder.write(PROGRAM, b"")?;
        Ok(folder)
    }

    /// That of the second site.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn of_second() -> io::Result<Self> {
        let folder = Self(tempfile::tempdir()?);
        for (at, bytes) in FILES[..FILES_OF_SECOND].iter().enumerate() {
            folder.write(&name(at), &piece(key(true, at), 0, *bytes as usize))?;
        }
        Ok(folder)
    }

    fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut file = File::create(self.path().join(name))?;
        file.write_all(content)?;
        file.set_modified(modified(MODIFIED_S))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Cuts [`CUT_FILE`] and [`CUT_TEXT`] short, a while after they were made.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn cut(&self) -> io::Result<()> {
        let cut = [
            (name(CUT_FILE), FILES[CUT_FILE]),
            (text_name(CUT_TEXT), TEXTS[CUT_TEXT]),
        ];
        for (name, bytes) in cut {
            let file = File::options().write(true).open(self.path().join(name))?;
            file.set_len(bytes / 3)?;
            file.set_modified(modified(MODIFIED_S + 1))?;
        }
        Ok(())
    }
}

fn text_name(text: usize) -> String {
    format!("t{text}.txt")
}

fn name(file: usize) -> String {
    format!("f{file}")
}

fn modified(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}
