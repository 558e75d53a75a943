//! A private database server: in its own directory, on its own port, gone together with the process
//! that started it.
//!
//! A small shell process stands between. It starts the server in its own session, then reads from a
//! pipe that only our process holds. The pipe ends when the bed is dropped or when our process
//! dies, however it dies. The shell then ends the server and removes the directory.
//!
//! If we are root, the server runs as `postgres` or `mysql`, since neither database runs as root.
//!
//! A server that was filled can be laid down ([`Bed::lay_down`]): it ends in order, and other beds begin
//! with a copy of its directory. So each of them begins with the same pages, and much sooner.
//!
//! A bed is for measuring. Nothing survives a crash of the machine (`fsync` off). So the bottleneck
//! is the database's processor time and locks, as in 002 (5.1: the database fits in memory), and
//! not a disk. [`Sizing::processor`] confines the server to one processor, for a machine that also
//! runs the application and its visitors.

mod commands;
mod speed;

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, kill_process};
use shortline_base::port::free_port;
use thiserror::Error;

use crate::store::{Connection, Database, Kind, Statements, StoreError};
use commands::Commands;
pub use speed::Speed;

/// How long a server may take to initialise its directory and listen.
const START_MAX: Duration = Duration::from_secs(120);
/// How long the server may take to end. It writes nothing back.
const STOP_MAX: Duration = Duration::from_secs(20);
/// How long a server may take to end in order. It writes all pages that changed.
const LAY_DOWN_MAX: Duration = Duration::from_secs(120);
/// The time between two attempts to reach the server.
const RETRY: Duration = Duration::from_millis(100);

/// `$1` prepares the server and becomes it, `$2` is the directory, `$3` the signal that ends it,
/// `$4` and `$5` the groups it may have been put into.
const SUPERVISOR: &str = r#"
trap '' HUP INT TERM
setsid sh -c "$1" >"$2/log" 2>&1 </dev/null &
server=$!
echo "$server"
exec >/dev/null
read -r end
kill -s "$3" -- "-$server" 2>/dev/null
wait "$server" 2>/dev/null
kill -s KILL -- "-$server" 2>/dev/null
rm -rf -- "$2"
rmdir -- "$4" "$5" 2>/dev/null
"#;

/// The size of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizing {
    /// Memory for its pages (`shared_buffers`, `innodb_buffer_pool_size`), in MiB.
    pub buffer_mib: u32,
    /// The most connections.
    pub connections_max: u32,
    /// The one processor it may use. `None` for all.
    pub processor: Option<u32>,
}

impl Default for Sizing {
    fn default() -> Self {
        Self {
            buffer_mib: 512,
            connections_max: 500,
            processor: None,
        }
    }
}

/// A running server.
#[derive(Debug)]
pub struct Bed {
    supervisor: Child,
    database: Database,
    pid: u32,
    directory: PathBuf,
}

impl Bed {
    /// Reports what is missing for a bed of that kind.
    ///
    /// # Errors
    /// [`BedError::Missing`], in one line.
    pub fn available(kind: Kind) -> Result<(), BedError> {
        Commands::find(kind).map(drop)
    }

    /// The version of the installed server, in numbers: `15.18`.
    ///
    /// # Errors
    /// [`BedError::Missing`], or that of starting it.
    pub fn version(kind: Kind) -> Result<String, BedError> {
        Commands::find(kind)?.version()
    }

    /// Starts a server with an empty database.
    ///
    /// # Errors
    /// [`BedError`] if a program is missing, or the server does not come up.
    pub async fn start(kind: Kind, sizing: Sizing) -> Result<Self, BedError> {
        Self::begin(kind, sizing, None).await
    }

    /// Starts a server with a copy of what another was laid down with.
    ///
    /// # Errors
    /// [`BedError`] if a program is missing, or the server does not come up.
    pub async fn start_with(laid_down: &LaidDown, sizing: Sizing) -> Result<Self, BedError> {
        let Self {
            database,
            directory,
            ..
        } = &laid_down.bed;
        Self::begin(database.kind, sizing, Some(directory)).await
    }

    async fn begin(kind: Kind, sizing: Sizing, copied: Option<&Path>) -> Result<Self, BedError> {
        let commands = Commands::find(kind)?;
        let directory = make_directory()?;
        let port = free_port().map_err(BedError::System)?;
        let (text, database) = commands.text(&directory, copied, port, sizing)?;
        let mut supervisor = Command::new("sh")
            .args(["-c", SUPERVISOR, "bed", &text])
            .arg(&directory)
            .arg(commands.stop_signal())
            .args(speed::groups(&group_name(&directory)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(BedError::System)?;
        let pid = read_pid(&mut supervisor).ok_or_else(|| BedError::Ended(log(&directory)))?;
        let bed = Self {
            supervisor,
            database,
            pid,
            directory,
        };
        bed.wait_until_listening().await?;
        Ok(bed)
    }

    /// Ends the server in order, so that its directory holds all that it was told.
    ///
    /// # Errors
    /// [`BedError::Busy`] if it has not ended in two minutes.
    pub async fn lay_down(self) -> Result<LaidDown, BedError> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let signal = Commands::end_in_order(self.database.kind);
            kill_process(pid, signal).map_err(|error| BedError::System(error.into()))?;
        }
        let begin = Instant::now();
        while is_running(self.pid) {
            if begin.elapsed() > LAY_DOWN_MAX {
                return Err(BedError::Busy(log(&self.directory)));
            }
            tokio::time::sleep(RETRY).await;
        }
        Ok(LaidDown { bed: self })
    }

    /// Its address and how to log in.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The server's process id (of PostgreSQL's postmaster).
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// A handle to slow the server down. Needs root.
    ///
    /// # Errors
    /// [`BedError::System`] if the kernel's controller is not available.
    pub fn speed(&self) -> Result<Speed, BedError> {
        Speed::of(&group_name(&self.directory), || descendants(self.pid))
    }

    /// The server's own directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    async fn wait_until_listening(&self) -> Result<(), BedError> {
        let begin = Instant::now();
        loop {
            let problem = match Connection::open(&self.database, Statements::Prepared).await {
                Ok(_) => return Ok(()),
                Err(problem) => problem,
            };
            if !is_running(self.pid) {
                return Err(BedError::Ended(log(&self.directory)));
            }
            if begin.elapsed() > START_MAX {
                let log = log(&self.directory);
                return Err(BedError::Silent { problem, log });
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        drop(self.supervisor.stdin.take());
        let deadline = Instant::now() + STOP_MAX;
        while let Ok(None) = self.supervisor.try_wait() {
            if Instant::now() > deadline {
                tracing::warn!(pid = self.pid, "the database is still ending");
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A server that ended in order, and its directory. That goes with this value, or with the process.
#[derive(Debug)]
pub struct LaidDown {
    bed: Bed,
}

/// Why there is no bed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BedError {
    /// Something is not installed.
    #[error("no {program}: install Debian's {package}")]
    Missing {
        /// The program that was looked for.
        program: String,
        /// The package that has it.
        package: &'static str,
    },
    /// The system refused something.
    #[error("the database's bed: {0}")]
    System(std::io::Error),
    /// The server ended.
    #[error("the database ended at once: {0}")]
    Ended(String),
    /// The server did not end when it was told to.
    #[error("the database does not end; its log ends with: {0}")]
    Busy(String),
    /// The server never accepted a connection.
    #[error("the database does not listen: {problem}; its log ends with: {log}")]
    Silent {
        /// How the last attempt to connect ended.
        problem: StoreError,
        /// The last lines of the server's log.
        log: String,
    },
}

fn make_directory() -> Result<PathBuf, BedError> {
    let directory = tempfile::Builder::new()
        .prefix("shortline-database-")
        .permissions(Permissions::from_mode(0o755))
        .tempdir()
        .map_err(BedError::System)?;
    // The supervisor removes it.
    Ok(directory.keep())
}

/// The name of the server's group: that of its directory, which is unique.
fn group_name(directory: &Path) -> String {
    let name = directory.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Whether a process is there and not a zombie: one that ended stays until the supervisor asks for
/// it (proc(5)).
fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    let state = stat.as_deref().ok().and_then(|stat| stat.rsplit_once(") "));
    state.is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

/// A process and all its living descendants (proc(5)).
fn descendants(root: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let parents: Vec<(u32, u32)> = entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name before it is in parentheses and may contain anything.
            let (_, fields) = stat.rsplit_once(')')?;
            let parent = fields.split_whitespace().nth(1)?.parse().ok()?;
            Some((pid, parent))
        })
        .collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        let children = parents.iter().filter(|(_, of)| *of == parent);
        found.extend(children.map(|(pid, _)| *pid));
        next += 1;
    }
    found
}

fn read_pid(supervisor: &mut Child) -> Option<u32> {
    let mut line = String::new();
    BufReader::new(supervisor.stdout.take()?)
        .read_line(&mut line)
        .ok()?;
    line.trim().parse().ok()
}

/// The last lines of the server's log.
fn log(directory: &Path) -> String {
    let log = std::fs::read_to_string(directory.join("log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().rev().take(5).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn beds_begin_with_what_one_was_laid_down_with() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let sizing = Sizing {
            buffer_mib: 64,
            ..Sizing::default()
        };
        for kind in Kind::ALL {
            if let Err(missing) = Bed::available(kind) {
                eprintln!("skipped: {missing}");
                continue;
            }
            runtime.block_on(async {
                let bed = Bed::start(kind, sizing).await.unwrap();
                let add = "INSERT INTO held (number) VALUES (1)";
                tell(&bed, "CREATE TABLE held (number INT)").await;
                tell(&bed, add).await;
                let laid_down = bed.lay_down().await.unwrap();
                for _ in 0..2 {
                    let bed = Bed::start_with(&laid_down, sizing).await.unwrap();
                    tell(&bed, add).await;
                    assert_eq!(held(&bed).await, 2, "{kind}");
                }
                let directory = laid_down.bed.directory.clone();
                drop(laid_down);
                assert!(!directory.exists(), "{kind}");
            });
        }
    }

    async fn tell(bed: &Bed, statement: &str) {
        let mut connection = Connection::open(&bed.database, Statements::Prepared)
            .await
            .unwrap();
        connection.run(statement).await.unwrap();
    }

    async fn held(bed: &Bed) -> i64 {
        let mut connection = Connection::open(&bed.database, Statements::Prepared)
            .await
            .unwrap();
        let rows = connection.rows("SELECT count(*) FROM held", &[]).await;
        rows.unwrap()[0].integer(0).unwrap()
    }
}
