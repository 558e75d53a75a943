//! Responders' answers that outlast a restart.
//!
//! ```text
//! STATE/ocsp/SHA256-OF-THE-CERTIFICATE.der     an answer as it came, 0600
//! ```
//!
//! Several processes may share the folder. Whoever reads an answer looks at it as if it had just come: it is signed, about that
//! certificate, and of now. So nobody need be trusted who may write here. Without the folder answers are asked for again.

use std::fmt::Write;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::client::ANSWER_BYTES_MAX;
use crate::store::write_beside;

/// Answers hold for ten days or so. What was written so long ago is of a certificate that is served no more.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60 * 24 * 3600);

/// The folder.
#[derive(Clone, Debug)]
pub struct KeptAnswers(PathBuf);

impl KeptAnswers {
    /// Below the folder of the state. `None`: nobody has made that, nor the folder that it is in.
    pub fn below(state: &Path) -> Option<Self> {
        let is_there = state.is_dir() || state.parent().is_some_and(Path::is_dir);
        is_there.then(|| Self(state.join("ocsp")))
    }

    /// The answer about a certificate, if one was kept.
    pub fn read(&self, print: &[u8; 32]) -> Option<Vec<u8>> {
        let file = File::open(self.path(print)).ok()?;
        let mut answer = Vec::new();
        let most = ANSWER_BYTES_MAX as u64;
        let read = file.take(most).read_to_end(&mut answer);
        read.ok().map(|_| answer)
    }

    /// Keeps an answer, and forgets those that are old.
    pub fn write(&self, print: &[u8; 32], answer: &[u8]) {
        let path = self.path(print);
        let written = || -> io::Result<()> {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.0)?;
            fs::rename(write_beside(&path, answer)?, &path)
        };
        if let Err(error) = written() {
            // Only a restart is poorer by it.
            tracing::debug!("ocsp: {}: {error}", path.display());
        }
        self.forget_what_is_old();
    }

    fn forget_what_is_old(&self) {
        let now = SystemTime::now();
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let written = entry.metadata().and_then(|found| found.modified());
            let age = written.ok().and_then(|at| now.duration_since(at).ok());
            if age.is_some_and(|age| age > FORGOTTEN_AFTER) {
                // What cannot be removed now can be next time.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn path(&self, print: &[u8; 32]) -> PathBuf {
        let mut name = String::with_capacity(68);
        for byte in print {
            // Writing to a text never fails.
            let _ = write!(name, "{byte:02x}");
        }
        self.0.join(name + ".der")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_answer_is_kept_for_its_owner_and_an_old_one_goes() {
        let folder = tempfile::tempdir().unwrap();
        let kept = KeptAnswers::below(&folder.path().join("acme")).unwrap();
        assert_eq!(kept.read(&[1; 32]), None);
        kept.write(&[1; 32], b"one");
        kept.write(&[2; 32], b"two");
        assert_eq!(kept.read(&[1; 32]).unwrap(), b"one");
        kept.write(&[1; 32], b"another");
        assert_eq!(kept.read(&[1; 32]).unwrap(), b"another");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&kept.0), mode(&kept.path(&[1; 32]))), (0o700, 0o600));
        let long_ago = SystemTime::now() - FORGOTTEN_AFTER - Duration::from_secs(60);
        let file = File::options().write(true).open(kept.path(&[2; 32]));
        file.unwrap().set_modified(long_ago).unwrap();
        kept.write(&[1; 32], b"once more");
        assert_eq!(kept.read(&[2; 32]), None);
        assert_eq!(fs::read_dir(&kept.0).unwrap().count(), 1);
    }

    #[test]
    fn without_a_folder_for_state_nothing_is_kept_and_nothing_is_made() {
        let folder = tempfile::tempdir().unwrap();
        assert!(KeptAnswers::below(&folder.path().join("a/acme")).is_none());
        let file = folder.path().join("acme");
        fs::write(&file, "").unwrap();
        let kept = KeptAnswers::below(&file).unwrap();
        kept.write(&[1; 32], b"one");
        assert_eq!(kept.read(&[1; 32]), None);
    }
}
