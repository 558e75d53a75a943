//! The folder that keys and certificates are kept in.
//!
//! ```text
//! STATE/HOST-PATH-OF-THE-DIRECTORY/     0700: a folder for each authority
//!     lock                              whoever orders holds it (flock)
//!     account.json                      the account's URL and key
//!     certificates/NAME.pem             key and chain, together in one file
//!     certificates/NAME.json            failures since the last certificate
//!     challenges/TOKEN                  texts of challenges that are open
//! ```
//!
//! Files are 0600. Each is written beside its place, and then renamed: it is whole or not there. Key and chain are one file, so
//! that no moment has the one without the other.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use instant_acme::AccountCredentials;
use rustix::fs::{Access, FlockOperation, access, flock};
use rustls::sign::CertifiedKey;
use serde::Serialize;
use serde::de::DeserializeOwned;
use shortline_tls::TlsError;

use crate::schedule::Backoff;

/// The folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "acme: state folder {}: {problem}; make it writable for the user of the server, or name another (`state` of [acme], --acme-state)",
    folder.display()
)]
pub struct StoreError {
    folder: PathBuf,
    problem: String,
}

/// The state of one authority.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// Held by the process that orders.
#[derive(Debug)]
pub struct Lock {
    /// The kernel lets go of the lock when it closes this.
    _file: File,
}

impl Store {
    /// The state of the authority with this directory, below the folder `state`. Makes the folders that are missing.
    ///
    /// # Errors
    /// [`StoreError`]
    pub fn open(state: &Path, directory: &str) -> Result<Self, StoreError> {
        let refused = |error: io::Error| StoreError {
            folder: state.to_owned(),
            problem: error.to_string(),
        };
        let store = Self {
            folder: state.join(file_name(directory)),
        };
        for folder in [
            state,
            &store.folder,
            &store.certificates(),
            &store.challenges(),
        ] {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(refused)?;
        }
        fs::set_permissions(&store.folder, Permissions::from_mode(0o700)).map_err(refused)?;
        store.lock().map_err(refused)?;
        Ok(store)
    }

    /// Where texts of challenges are.
    pub fn challenges(&self) -> PathBuf {
        self.folder.join("challenges")
    }

    fn certificates(&self) -> PathBuf {
        self.folder.join("certificates")
    }

    fn certificate(&self, name: &str, ending: &str) -> PathBuf {
        self.certificates().join(format!("{name}.{ending}"))
    }

    /// The lock, unless another process has it.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn lock(&self) -> io::Result<Option<Lock>> {
        let mut options = File::options();
        let options = options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(self.folder.join("lock"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes texts that a process has left behind. Only for who holds the lock and has posted nothing.
    pub fn clear_challenges(&self, _: &Lock) {
        let entries = fs::read_dir(self.challenges()).into_iter().flatten();
        for entry in entries.flatten() {
            // What cannot be removed now can be next time.
            let _ = fs::remove_file(entry.path());
        }
    }

    /// When the certificate of a name was written, if there is one.
    pub fn written(&self, name: &str) -> Option<SystemTime> {
        let found = fs::metadata(self.certificate(name, "pem")).ok()?;
        found.modified().ok()
    }

    /// The certificate of a name.
    ///
    /// # Errors
    /// [`TlsError`]: the file is not there, or is none.
    pub fn read(&self, name: &str) -> Result<CertifiedKey, TlsError> {
        let path = self.certificate(name, "pem");
        shortline_tls::load(&path, &path)
    }

    /// Keeps a key and its chain, in PEM, as the certificate of a name, if `check` has nothing against it.
    ///
    /// # Errors
    /// It is not usable, or the folder cannot be written. What was kept before still is.
    pub fn keep<T>(
        &self,
        name: &str,
        pem: &str,
        check: impl FnOnce(&CertifiedKey) -> Result<T, String>,
    ) -> Result<(CertifiedKey, T), String> {
        let path = self.certificate(name, "pem");
        let unwritten = |error: io::Error| format!("{}: {error}", path.display());
        let beside = write_beside(&path, pem.as_bytes()).map_err(unwritten)?;
        let read = shortline_tls::load(&beside, &beside).map_err(|error| error.to_string());
        let checked = read.and_then(|key| {
            let checked = check(&key)?;
            fs::rename(&beside, &path).map_err(unwritten)?;
            Ok((key, checked))
        });
        if checked.is_err() {
            // It has a key in it.
            let _ = fs::remove_file(&beside);
        }
        checked
    }

    /// The failures of a name since its last certificate.
    pub fn failures(&self, name: &str) -> Backoff {
        read_json(&self.certificate(name, "json")).unwrap_or_default()
    }

    /// Keeps the failures of a name. Without any the file goes.
    pub fn keep_failures(&self, name: &str, backoff: &Backoff) {
        let path = self.certificate(name, "json");
        match backoff.failures {
            // It is seldom there.
            0 => drop(fs::remove_file(path)),
            _ => write_json(&path, backoff),
        }
    }

    /// The account, if there is one.
    pub fn account(&self) -> Option<AccountCredentials> {
        read_json(&self.folder.join("account.json"))
    }

    /// Keeps the account.
    pub fn keep_account(&self, account: &AccountCredentials) {
        write_json(&self.folder.join("account.json"), account);
    }

    /// The authority knows the account no longer.
    pub fn forget_account(&self) {
        // It may never have been there.
        let _ = fs::remove_file(self.folder.join("account.json"));
    }
}

/// Whether the folder of the state could be used, without making it.
///
/// # Errors
/// [`StoreError`]
pub fn check(state: &Path) -> Result<(), StoreError> {
    let refused = |error: io::Error| StoreError {
        folder: state.to_owned(),
        problem: error.to_string(),
    };
    let there = state.ancestors().find(|folder| folder.exists());
    let there = there.unwrap_or(Path::new("."));
    if !there.is_dir() {
        return Err(refused(io::ErrorKind::NotADirectory.into()));
    }
    access(there, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| refused(error.into()))
}

/// A name for the folder of an authority, from the URL of its directory.
fn file_name(directory: &str) -> String {
    let address = directory.trim_start_matches("https://");
    let letter = |letter: char| match letter {
        letter if letter.is_ascii_alphanumeric() || ".-_".contains(letter) => letter,
        _ => '-',
    };
    let name: String = address.chars().map(letter).collect();
    name.trim_matches(['.', '-']).chars().take(200).collect()
}

/// Writes a file that only its owner reads, beside its place.
pub(crate) fn write_beside(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let mut options = File::options();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&beside)?;
    // One that was left behind may have been more open.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(beside)
}

/// A failure is logged: without the file only more is asked of the authority.
fn write_json(path: &Path, value: &impl Serialize) {
    let written = serde_json::to_vec(value).map_err(io::Error::from);
    let written = written.and_then(|bytes| fs::rename(write_beside(path, &bytes)?, path));
    if let Err(error) = written {
        tracing::warn!("acme: {}: {error}", path.display());
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!("acme: {}: {error}", path.display());
            return None;
        }
    };
    let read = serde_json::from_slice(&bytes);
    read.inspect_err(|error| {
        tracing::warn!(
            "acme: {}: not ours ({error}), so it is ignored",
            path.display()
        )
    })
    .ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn pem(name: &str) -> String {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        made.signing_key.serialize_pem() + &made.cert.pem()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn keys_are_for_their_owner_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let store =
            Store::open(&folder.path().join("a/b"), "https://ca.example:14000/dir/").unwrap();
        assert!(store.folder.ends_with("a/b/ca.example-14000-dir"));
        assert!(store.read("a.example").is_err() && store.written("a.example").is_none());
        let anything = |_: &CertifiedKey| Ok(());
        let first = store
            .keep("a.example", &pem("a.example"), anything)
            .unwrap()
            .0;
        let path = store.certificate("a.example", "pem");
        assert_eq!((mode(&store.folder), mode(&path)), (0o700, 0o600));
        assert_eq!(store.read("a.example").unwrap().cert, first.cert);
        // What cannot be used does not take its place, and its key does not stay.
        let mixed = format!(
            "{}{}",
            pem("a.example").split("-----BEGIN CERT").next().unwrap(),
            {
                let other = pem("a.example");
                other[other.find("-----BEGIN CERT").unwrap()..].to_owned()
            }
        );
        for wrong in ["", "nonsense", &mixed] {
            let error = store.keep("a.example", wrong, anything).unwrap_err();
            assert!(!error.contains('\n'), "{error}");
        }
        let disliked = |_: &CertifiedKey| Err::<(), _>("not for us".to_owned());
        let refused = store.keep("a.example", &pem("a.example"), disliked);
        assert_eq!(refused.unwrap_err(), "not for us");
        assert_eq!(store.read("a.example").unwrap().cert, first.cert);
        assert_eq!(fs::read_dir(store.certificates()).unwrap().count(), 1);
    }

    #[test]
    fn one_at_a_time_has_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] =
            [(); 2].map(|()| Store::open(folder.path(), "https://ca.example/").unwrap());
        let lock = one.lock().unwrap().unwrap();
        assert!(two.lock().unwrap().is_none());
        fs::write(two.challenges().join("left"), "behind").unwrap();
        one.clear_challenges(&lock);
        assert_eq!(fs::read_dir(one.challenges()).unwrap().count(), 0);
        drop(lock);
        assert!(two.lock().unwrap().is_some());
    }

    #[test]
    fn failures_outlive_a_restart_and_damage_is_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), "https://ca.example/").unwrap();
        let mut backoff = Backoff::default();
        backoff.failed(1000, None, 0.0);
        store.keep_failures("a.example", &backoff);
        assert_eq!(store.failures("a.example"), backoff);
        store.keep_failures("a.example", &Backoff::default());
        assert_eq!(store.failures("a.example"), Backoff::default());
        fs::write(store.certificate("a.example", "json"), "{").unwrap();
        assert_eq!(store.failures("a.example"), Backoff::default());
        assert!(store.account().is_none());
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_told_with_what_would_be_right() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        for refused in [
            Store::open(&file, "https://a/").map(drop),
            check(&file.join("below")),
        ] {
            let error = refused.unwrap_err().to_string();
            assert!(
                error.contains("file") && error.contains("`state` of [acme]"),
                "{error}"
            );
            assert!(!error.contains('\n'), "{error}");
        }
        check(&folder.path().join("new/one")).unwrap();
        assert!(!folder.path().join("new").exists());
    }
}
