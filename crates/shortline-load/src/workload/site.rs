//! The files of a synthetic site, how often each is asked for, and writing them to disk.
//!
//! Contents are pseudo-random (ChaCha8, seeded by the file's place in the list) and so cannot be
//! compressed: the link carries as much as the size says.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use thiserror::Error;

use super::surge::References;

const CHUNK_BYTES: usize = 64 * 1024;
/// Files from this size on are coded.
const CODED_BYTES_MIN: u64 = 1024;

/// One file of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteFile {
    /// Its path on the site; begins with `/`.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The files of a site and how often each is asked for. Its paths stay under the root.
#[derive(Clone, Debug)]
pub struct SiteFiles {
    files: Vec<SiteFile>,
    /// The share of the requests of each; `None` if all are alike.
    shares: Option<Vec<f64>>,
}

/// A file of the site could not be written.
#[derive(Debug, Error)]
#[error("{}: cannot write the site: {source}", path.display())]
pub struct SiteError {
    path: PathBuf,
    source: io::Error,
}

impl SiteFiles {
    /// Files that are equally popular; each request may be for any of them.
    pub(super) fn new(files: Vec<SiteFile>) -> Self {
        Self {
            files,
            shares: None,
        }
    }

    /// Files that have these shares of the requests, with SURGE's temporal locality.
    pub(super) fn popular(files: Vec<SiteFile>, shares: Vec<f64>) -> Self {
        Self {
            files,
            shares: Some(shares),
        }
    }

    /// All files; never empty.
    pub fn files(&self) -> &[SiteFile] {
        &self.files
    }

    /// The share of the requests of each file, in the order of [`SiteFiles::files`].
    pub fn shares(&self) -> impl Iterator<Item = f64> {
        let even = 1.0 / self.files.len() as f64;
        let shares = self.shares.as_deref();
        (0..self.files.len()).map(move |file| shares.map_or(even, |shares| shares[file]))
    }

    /// The mean of what the link carries for a request, in bytes; `wire_bytes` gives it for a body.
    /// It defines a load (003, 4.2.3, the analytical way).
    pub fn mean_wire_bytes(&self, wire_bytes: impl Fn(u64) -> u64) -> f64 {
        let files = self.files.iter().zip(self.shares());
        files
            .map(|(file, share)| share * wire_bytes(file.bytes) as f64)
            .sum()
    }

    /// Returns the file of the next request.
    pub(super) fn picker(&self, rng: &mut ChaCha8Rng) -> Picker {
        match &self.shares {
            None => Picker::Even(
                u32::try_from(self.files.len())
                    .expect("invariant: a site has at most FILES_MAX files"),
            ),
            Some(shares) => Picker::Popular(References::new(shares, rng)),
        }
    }

    /// Writes every file under `root`, making folders as needed. Existing files of the right size
    /// are kept, because contents depend only on the list.
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

    /// Writes a text for every file under `root`, with `.txt` behind its path, that is in a coding about as long as the file:
    /// `coded_bytes` says how long. Returns the texts with that length. A short file's text has the file's length, because nothing so
    /// short is coded.
    ///
    /// # Errors
    /// [`SiteError`] names the file that could not be written.
    pub fn write_texts(
        &self,
        root: &Path,
        coded_bytes: impl Fn(&[u8]) -> io::Result<u64>,
    ) -> Result<Self, SiteError> {
        let mut files = Vec::with_capacity(self.files.len());
        for (place, file) in self.files.iter().enumerate() {
            let name = format!("{}.txt", file.path);
            let path = root.join(name.trim_start_matches('/'));
            let text = text(place as u64, file.bytes);
            let is_coded = file.bytes >= CODED_BYTES_MIN;
            let written = write_text(&path, &text).and_then(|()| match is_coded {
                true => coded_bytes(&text),
                false => Ok(text.len() as u64),
            });
            let bytes = written.map_err(|source| SiteError { path, source })?;
            files.push(SiteFile { path: name, bytes });
        }
        Ok(Self {
            files,
            shares: self.shares.clone(),
        })
    }
}

/// Picks the files of a site, by their place in it.
#[derive(Clone, Debug)]
pub(super) enum Picker {
    /// One of so many, all alike.
    Even(u32),
    /// By popularity and locality.
    Popular(References),
}

impl Picker {
    pub(super) fn next(&mut self, rng: &mut ChaCha8Rng) -> usize {
        match self {
            // By u32: picking by usize would differ between 32- and 64-bit machines.
            Self::Even(count) => rng.random_range(0..*count) as usize,
            Self::Popular(references) => references.next(rng),
        }
    }
}

/// Hexadecimal digits: a coding makes a byte of two. As long as the file where that is too short for one.
fn text(seed: u64, bytes: u64) -> Vec<u8> {
    let digits_each = if bytes < CODED_BYTES_MIN { 1 } else { 2 };
    let mut random = vec![0; bytes as usize];
    ChaCha8Rng::seed_from_u64(seed).fill_bytes(&mut random);
    let digits = random.iter().flat_map(|byte| {
        let digit = |four: u8| b"0123456789abcdef"[usize::from(four)];
        [digit(byte >> 4), digit(byte & 15)]
            .into_iter()
            .take(digits_each)
    });
    digits.collect()
}

fn write_text(path: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
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
    fn a_mean_counts_requests_and_not_files() {
        assert_eq!(site().mean_wire_bytes(|bytes| bytes + 50), 75_100.0);
        let popular = SiteFiles::popular(site().files, vec![0.75, 0.25]);
        assert_eq!(popular.mean_wire_bytes(|bytes| bytes), 37_575.0);
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

    #[test]
    fn texts_have_the_length_of_their_coding() {
        let dir = tempfile::tempdir().unwrap();
        let files = SiteFiles::new(vec![
            SiteFile {
                path: "/a".into(),
                bytes: 1000,
            },
            SiteFile {
                path: "/b/c".into(),
                bytes: 5000,
            },
        ]);
        let half = |text: &[u8]| Ok(text.len() as u64 / 2);
        let texts = files.write_texts(dir.path(), half).unwrap();
        let lengths: Vec<_> = texts.files().iter().map(|file| file.bytes).collect();
        assert_eq!(lengths, [1000, 5000]);
        let text = fs::read(dir.path().join("b/c.txt")).unwrap();
        assert_eq!(text.len(), 10_000);
        assert!(text.iter().all(u8::is_ascii_hexdigit));
    }
}
