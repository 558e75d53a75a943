//! The files of a synthetic site, and writing them to disk.
//!
//! Contents are pseudo-random (ChaCha8, seeded by the file's place in the list) and so
//! cannot be compressed: what crosses the link is what the size says.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use thiserror::Error;

const CHUNK_BYTES: usize = 64 * 1024;

/// One file of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteFile {
    /// Its path on the site; begins with `/`.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The files of a site, every one asked for equally often. Its paths stay under the root.
#[derive(Clone, Debug)]
pub struct SiteFiles {
    files: Vec<SiteFile>,
}

/// A file of the site could not be written.
#[derive(Debug, Error)]
#[error("{}: cannot write the site: {source}", path.display())]
pub struct SiteError {
    path: PathBuf,
    source: io::Error,
}

impl SiteFiles {
    pub(super) fn new(files: Vec<SiteFile>) -> Self {
        Self { files }
    }

    /// All files; never empty.
    pub fn files(&self) -> &[SiteFile] {
        &self.files
    }

    /// Writes every file under `root`, making folders as needed. Files that are there
    /// already with the right size are kept: contents depend on nothing but the list.
    ///
    /// # Errors
    /// [`SiteError`] names the file that could not be written.
    pub fn write_site(&self, root: &Path) -> Result<(), SiteError> {
        for (place, file) in self.files.iter().enumerate() {
            let path = root.join(file.path.trim_start_matches('/'));
            write_file(&path, place as u64, file.bytes)
                .map_err(|source| SiteError { path, source })?;
        }
        Ok(())
    }
}

fn write_file(path: &Path, seed: u64, bytes: u64) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = File::create(path)?;
    write_content(&mut file, seed, bytes)
}

fn write_content(out: &mut impl io::Write, seed: u64, bytes: u64) -> io::Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut chunk = vec![0; CHUNK_BYTES.min(bytes as usize)];
    let mut left = bytes;
    while left > 0 {
        let now = left.min(CHUNK_BYTES as u64) as usize;
        rng.fill_bytes(&mut chunk[..now]);
        out.write_all(&chunk[..now])?;
        left -= now as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn site() -> SiteFiles {
        SiteFiles::new(vec![
            SiteFile {
                path: "/a/b.bin".into(),
                bytes: 100,
            },
            SiteFile {
                path: "/c.bin".into(),
                bytes: 150_000,
            },
        ])
    }

    #[test]
    fn files_have_their_sizes_and_the_same_bytes_each_time() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        site().write_site(one.path()).unwrap();
        site().write_site(two.path()).unwrap();
        for (name, bytes) in [("a/b.bin", 100), ("c.bin", 150_000)] {
            let content = fs::read(one.path().join(name)).unwrap();
            assert_eq!(content.len(), bytes);
            assert_eq!(content, fs::read(two.path().join(name)).unwrap());
        }
    }

    #[test]
    fn a_file_of_the_wrong_size_is_written_anew() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("c.bin"), b"old").unwrap();
        site().write_site(dir.path()).unwrap();
        assert_eq!(
            fs::metadata(dir.path().join("c.bin")).unwrap().len(),
            150_000
        );
    }

    #[test]
    fn bytes_are_spread_like_noise() {
        let mut content = Vec::new();
        write_content(&mut content, 1, 65_536).unwrap();
        let mut counts = [0u32; 256];
        for byte in content {
            counts[usize::from(byte)] += 1;
        }
        // 256 expected of each, deviation 16: six deviations either way.
        assert!(counts.iter().all(|count| (160..352).contains(count)));
    }

    #[test]
    fn an_error_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), b"a file where a folder must go").unwrap();
        let error = site().write_site(dir.path()).unwrap_err().to_string();
        assert!(error.contains("a/b.bin: cannot write the site"), "{error}");
    }
}
