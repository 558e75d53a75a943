//! Starts and ends processes: servers and the load generator.
//!
//! Every process gets a process group of its own and the run's mark in its environment, and the
//! janitor knows it. Dropping a [`Process`] ends it and its descendants.
//!
//! [`raise_open_files`] raises this process's own limit of open files.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

use crate::janitor::{self, Janitor, RUN_VARIABLE};
use crate::place::Place;
use crate::testbed::Testbed;
use crate::{TestbedError, command, proc_fs};

/// How long a process may take to end after SIGTERM, and after a second SIGTERM.
const TERM_MAX: Duration = Duration::from_secs(2);

/// Where a process's output goes.
#[derive(Clone, Debug)]
pub enum Log {
    /// Output and errors to a file.
    File(PathBuf),
    /// Output to a file, errors (a progress bar) to the lab's own terminal.
    Progress(PathBuf),
}

impl Log {
    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Progress(path) => path,
        }
    }
}

/// A process that ends when it is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    janitor: Arc<Janitor>,
    log: PathBuf,
}

impl Process {
    /// Starts `program` with `arguments` at `place`.
    ///
    /// # Errors
    /// If the log cannot be made, the program cannot be started, or the run is over.
    pub fn start(
        testbed: &Testbed,
        place: &Place,
        program: &Path,
        arguments: &[String],
        log: &Log,
    ) -> Result<Self, TestbedError> {
        let path = log.path();
        let file = File::create(path).map_err(TestbedError::file(path))?;
        let errors = match log {
            Log::File(_) => Stdio::from(file.try_clone().map_err(TestbedError::file(path))?),
            Log::Progress(_) => Stdio::inherit(),
        };
        let mut child = place
            .command(program)
            .args(arguments)
            .env(RUN_VARIABLE, testbed.run_id())
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(|error| TestbedError::Command {
                command: program.display().to_string(),
                problem: error.to_string(),
            })?;
        if let Err(error) = testbed.janitor().watch_process(pid_of(&child)) {
            // The janitor would not clean up after it.
            child.kill().ok();
            child.wait().ok();
            return Err(error);
        }
        Ok(Self {
            child,
            janitor: Arc::clone(testbed.janitor()),
            log: path.into(),
        })
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        pid_of(&self.child)
    }

    /// The last line that it wrote.
    pub fn last_words(&self) -> String {
        command::last_line(&self.log)
    }

    /// How it ended. `None` while it runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits at most `limit` for its end.
    ///
    /// # Errors
    /// If it takes longer or ends with an error.
    pub fn finish(self, what: &str, limit: Duration) -> Result<(), TestbedError> {
        self.finish_with(&[0], what, limit)
    }

    /// Waits at most `limit` for its end with one of these exit codes.
    ///
    /// # Errors
    /// If it takes longer or ends otherwise.
    pub fn finish_with(
        mut self,
        exit_codes: &[u8],
        what: &str,
        limit: Duration,
    ) -> Result<(), TestbedError> {
        let expected = |status: ExitStatus| {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            code.is_some_and(|code| exit_codes.contains(&code))
        };
        let status = janitor::wait_at_most(&mut self.child, limit)
            .map_err(|error| self.failed(what, &error))?;
        match status {
            Some(status) if expected(status) => Ok(()),
            Some(status) => Err(TestbedError::Command {
                command: what.into(),
                problem: format!("{status}: {}", self.last_words()),
            }),
            None => Err(TestbedError::TooLong {
                what: what.into(),
                limit_s: limit.as_secs(),
            }),
        }
    }

    /// Sends SIGTERM, waits for its end, and returns the last line that it wrote.
    ///
    /// # Errors
    /// As [`Process::finish`].
    pub fn stop(self, what: &str, limit: Duration) -> Result<String, TestbedError> {
        let log = self.log.clone();
        self.stop_with(&[0], what, limit)?;
        Ok(command::last_line(&log))
    }

    /// Asks it to end (SIGTERM), and waits for that; it answers with one of these exit codes.
    ///
    /// # Errors
    /// As [`Process::finish_with`].
    pub fn stop_with(
        self,
        exit_codes: &[u8],
        what: &str,
        limit: Duration,
    ) -> Result<(), TestbedError> {
        janitor::signal(self.pid(), Signal::TERM);
        self.finish_with(exit_codes, what, limit)
    }

    fn failed(&self, what: &str, error: &io::Error) -> TestbedError {
        TestbedError::Command {
            command: what.into(),
            problem: error.to_string(),
        }
    }

    fn end(&mut self) {
        let pid = self.pid();
        let descendants: Vec<(i32, u64)> = proc_fs::tree(pid)
            .into_iter()
            .filter(|descendant| *descendant != pid)
            .filter_map(|descendant| Some((descendant, proc_fs::stat(descendant)?.start_ticks)))
            .collect();
        // Shortline drains at the first SIGTERM and stops at the second.
        for _ in 0..2 {
            if let Ok(None) = self.child.try_wait() {
                janitor::signal(pid, Signal::TERM);
                janitor::wait_at_most(&mut self.child, TERM_MAX).ok();
            }
        }
        if let Ok(None) = self.child.try_wait() {
            self.child.kill().ok();
            self.child.wait().ok();
        }
        // Workers that outlived their master.
        janitor::end_all(|| still_there(&descendants));
        self.janitor.forget_process(pid).ok();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Raises this process's limit of open files to the hard limit, and that one to `needed` if it is below.
///
/// # Errors
/// If the hard limit is below `needed`, and this process may not raise it.
pub fn raise_open_files(needed: u64) -> Result<(), TestbedError> {
    let limit = getrlimit(Resource::Nofile);
    let too_few = |problem: String| TestbedError::Command {
        command: "ulimit -n".into(),
        problem,
    };
    // Root may raise the hard limit, too.
    let raised = Rlimit {
        current: limit
            .maximum
            .map(|maximum| maximum.max(needed))
            .or(Some(needed)),
        maximum: limit.maximum.map(|maximum| maximum.max(needed)),
    };
    let is_below = limit.maximum.is_some_and(|maximum| maximum < needed);
    setrlimit(Resource::Nofile, raised).map_err(|error| {
        too_few(if is_below {
            format!("the hard limit is below {needed} open files: raise it")
        } else {
            error.to_string()
        })
    })
}

fn still_there(processes: &[(i32, u64)]) -> Vec<i32> {
    let same = |(pid, start_ticks): &(i32, u64)| {
        let stat = proc_fs::stat(*pid)?;
        (stat.start_ticks == *start_ticks && !stat.zombie).then_some(*pid)
    };
    processes.iter().filter_map(same).collect()
}

fn pid_of(child: &Child) -> i32 {
    i32::try_from(child.id()).expect("invariant: Linux process ids fit an i32")
}
