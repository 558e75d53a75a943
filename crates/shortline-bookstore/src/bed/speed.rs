//! Limits a private server to a share of its processor, with the kernel's CPU controller (Linux's
//! Documentation/scheduler/sched-bwc and admin-guide/cgroup-v2).
//!
//! The server runs for its share of every period of 5 ms, and then stands still. So a backend can
//! be made half as fast at any chosen moment, and running queries notice. This needs root and a
//! writable controller of either version of cgroups.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::BedError;

const VERSION_1: &str = "/sys/fs/cgroup/cpu";
const VERSION_2: &str = "/sys/fs/cgroup";
/// Short, so that no query is held up for long.
const PERIOD_US: u64 = 5_000;
/// How often to look for processes that were born while others were moved.
const ROUNDS_MAX: usize = 20;

/// The group of a server's processes. Dropping it gives them back their full speed.
#[derive(Debug)]
pub struct Speed {
    group: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Speed {
    /// A group called `name` that holds `processes` and everything they will start. `processes` is
    /// called until none is outside the group.
    ///
    /// # Errors
    /// [`BedError::System`] if there is no controller or it cannot be written.
    pub(super) fn of(name: &str, processes: impl Fn() -> Vec<u32>) -> Result<Self, BedError> {
        let version = if Path::new(VERSION_1).join("cpu.cfs_quota_us").exists() {
            Version::One
        } else {
            fs::write(Path::new(VERSION_2).join("cgroup.subtree_control"), "+cpu")
                .map_err(BedError::System)?;
            Version::Two
        };
        let speed = Self {
            group: version.root().join(name),
            version,
        };
        fs::create_dir_all(&speed.group).map_err(BedError::System)?;
        let members = speed.group.join("cgroup.procs");
        for _ in 0..ROUNDS_MAX {
            let inside = fs::read_to_string(&members).map_err(BedError::System)?;
            let inside: Vec<&str> = inside.lines().collect();
            let outside: Vec<u32> = processes()
                .into_iter()
                .filter(|pid| !inside.contains(&pid.to_string().as_str()))
                .collect();
            if outside.is_empty() {
                break;
            }
            for pid in outside {
                enter(&members, pid).map_err(BedError::System)?;
            }
        }
        Ok(speed)
    }

    /// Gives the server this share of its processor, above 0; 1 is all of it.
    ///
    /// # Errors
    /// [`BedError::System`] if the controller refuses.
    pub fn set(&self, share: f64) -> Result<(), BedError> {
        let whole = share >= 1.0;
        let quota_us = ((PERIOD_US as f64 * share) as u64).max(1_000);
        let write = |file: &str, text: String| {
            fs::write(self.group.join(file), text).map_err(BedError::System)
        };
        match (self.version, whole) {
            (Version::One, true) => write("cpu.cfs_quota_us", "-1".to_owned()),
            (Version::One, false) => {
                write("cpu.cfs_period_us", PERIOD_US.to_string())?;
                write("cpu.cfs_quota_us", quota_us.to_string())
            }
            (Version::Two, true) => write("cpu.max", format!("max {PERIOD_US}")),
            (Version::Two, false) => write("cpu.max", format!("{quota_us} {PERIOD_US}")),
        }
    }
}

impl Drop for Speed {
    fn drop(&mut self) {
        // The group itself goes with the server: the supervisor removes it when it is empty.
        if let Err(error) = self.set(1.0) {
            tracing::warn!(%error, "the database stays slow");
        }
    }
}

impl Version {
    fn root(self) -> &'static Path {
        Path::new(match self {
            Self::One => VERSION_1,
            Self::Two => VERSION_2,
        })
    }
}

/// The groups in which a server of that name may have been.
pub(super) fn groups(name: &str) -> [PathBuf; 2] {
    [Version::One, Version::Two].map(|version| version.root().join(name))
}

/// Moves a process into the group. One that has ended in the meantime is skipped.
fn enter(members: &Path, pid: u32) -> io::Result<()> {
    match fs::write(members, pid.to_string()) {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
            Ok(())
        }
        result => result,
    }
}
