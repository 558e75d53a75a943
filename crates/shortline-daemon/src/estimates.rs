//! Keeps what the gate has learnt in a file across restarts.
//!
//! The file is JSON with a version. It is written to a new file that is then renamed, so it is
//! whole or not there. A file that cannot be understood is logged and ignored: that costs no more
//! than learning anew.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shortline_gate::{Gate, Kept};

use shortline_command::CommandError;

/// How often the file is written.
pub const EVERY: Duration = Duration::from_secs(60);
const VERSION: u32 = 1;
/// The largest file that is read. A thousand types with names of 96 bytes take a tenth of a
/// megabyte.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The file's content.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Content {
    version: u32,
    /// The kind of gate. Estimates of another kind mean nothing.
    kind: String,
    kept: Kept,
}

/// Why a file is ignored.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    #[error("{0}")]
    Unreadable(#[from] std::io::Error),
    #[error("larger than {FILE_BYTES_MAX} bytes")]
    TooLarge,
    #[error("no estimates of a gate ({0})")]
    Content(#[from] serde_json::Error),
    #[error("version {0} of the format; this release knows {VERSION}")]
    Version(u32),
    #[error("estimates of gate {0}")]
    Kind(String),
}

/// A file with what a gate has learnt.
#[derive(Clone, Debug)]
pub struct Keeper {
    path: PathBuf,
    kind: &'static str,
    gate: Gate,
    /// Another process keeps the file.
    is_given_away: Arc<AtomicBool>,
}

impl Keeper {
    /// Starts with what the file has, if it exists.
    ///
    /// # Errors
    /// [`CommandError::Failure`] if the file's folder does not exist.
    pub fn open(path: &Path, kind: &'static str, gate: &Gate) -> Result<Self, CommandError> {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        if !folder.unwrap_or(Path::new(".")).is_dir() {
            return Err(CommandError::failure(format!(
                "estimates {}: its folder does not exist; make it first",
                path.display()
            )));
        }
        match load(path, kind) {
            Ok(Some(kept)) => gate.restore(&kept),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!("estimates {}: {error}; learning anew", path.display());
            }
        }
        Ok(Self {
            path: path.to_owned(),
            kind,
            gate: gate.clone(),
            is_given_away: Arc::default(),
        })
    }

    /// Writes the file every minute from now on, for as long as the runtime lives.
    pub fn start(&self) {
        let keeper = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(EVERY).await;
                let keeper = keeper.clone();
                // A panic in there has its own message.
                let _ = tokio::task::spawn_blocking(move || keeper.save()).await;
            }
        });
    }

    /// Writes the file a last time: another process reads it and keeps it from now on.
    pub fn give_away(&self) {
        self.save();
        self.is_given_away.store(true, Ordering::Relaxed);
    }

    /// The other process does not, after all.
    pub fn take_back(&self) {
        self.is_given_away.store(false, Ordering::Relaxed);
    }

    /// Writes the file, unless another process keeps it. A failure is logged.
    pub fn save(&self) {
        if self.is_given_away.load(Ordering::Relaxed) {
            return;
        }
        let content = Content {
            version: VERSION,
            kind: self.kind.to_owned(),
            kept: self.gate.kept(),
        };
        if let Err(error) = write(&self.path, &content) {
            tracing::warn!("estimates {}: {error}", self.path.display());
        }
    }
}

fn load(path: &Path, kind: &str) -> Result<Option<Kept>, LoadError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(LoadError::TooLarge);
    }
    parse(&bytes, kind).map(Some)
}

fn parse(bytes: &[u8], kind: &str) -> Result<Kept, LoadError> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let Version { version } = serde_json::from_slice(bytes)?;
    if version != VERSION {
        return Err(LoadError::Version(version));
    }
    let content: Content = serde_json::from_slice(bytes)?;
    if content.kind != kind {
        return Err(LoadError::Kind(content.kind));
    }
    Ok(content.kept)
}

fn write(path: &Path, content: &Content) -> std::io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let mut file = File::create(&beside)?;
    file.write_all(&serde_json::to_vec_pretty(content)?)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use shortline_gate::GateConfig;
    use shortline_sched::admission::KeptEstimate;

    use super::*;

    fn content(kind: &str) -> Content {
        Content {
            version: VERSION,
            kind: kind.to_owned(),
            kept: Kept {
                capacity_ns: Some(400_000_000),
                estimates: vec![KeptEstimate {
                    name: "select ?".to_owned(),
                    service_ns: 7_000_000,
                    requests: 64,
                    spread: None,
                }],
            },
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("estimates.json");
        assert!(load(&path, "postgres").unwrap().is_none());
        write(&path, &content("postgres")).unwrap();
        assert_eq!(load(&path, "postgres").unwrap(), Some(content("").kept));
        let names = std::fs::read_dir(folder.path()).unwrap();
        assert_eq!(names.count(), 1);
    }

    #[test]
    fn a_damaged_file_is_ignored_and_a_missing_folder_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("estimates.json");
        std::fs::write(&path, "{\"version\":1,").unwrap();
        let gate = Gate::new(GateConfig::default());
        Keeper::open(&path, "postgres", &gate).unwrap().save();
        assert!(load(&path, "postgres").unwrap().is_some());
        let nowhere = folder.path().join("missing/estimates.json");
        assert!(Keeper::open(&nowhere, "postgres", &gate).is_err());
    }

    #[test]
    fn why_a_file_is_ignored_is_told_in_a_line() {
        let told = |bytes: &[u8]| {
            let error = parse(bytes, "postgres").unwrap_err().to_string();
            assert!(!error.contains('\n'), "{error}");
            error
        };
        assert!(told(b"nonsense").starts_with("no estimates of a gate"));
        assert!(told(b"{\"version\":2}").starts_with("version 2 of the format"));
        let other = serde_json::to_vec(&content("mysql")).unwrap();
        assert_eq!(told(&other), "estimates of gate mysql");
    }
}
