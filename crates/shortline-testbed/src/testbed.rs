//! What every experiment needs: the run's id, its janitor, a scratch directory, the folder for results,
//! and the shortline binary for servers and generators.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Mode;
use rustix::process::umask;

use crate::TestbedError;
use crate::janitor::Janitor;
use crate::process::Log;

/// One run of an experiment.
#[derive(Debug)]
pub struct Testbed {
    run_id: String,
    janitor: Arc<Janitor>,
    program: PathBuf,
    scratch: PathBuf,
    out: PathBuf,
}

impl Testbed {
    /// Starts a run that keeps its results in `out`, with the shortline binary beside this program.
    ///
    /// # Errors
    /// If there is no such binary, the janitor cannot be started, or a folder cannot be made.
    pub fn open(out: &Path) -> Result<Self, TestbedError> {
        let this =
            std::env::current_exe().map_err(TestbedError::file(Path::new("/proc/self/exe")))?;
        let program = this.with_file_name("shortline");
        fs::metadata(&program).map_err(TestbedError::file(&program))?;
        Self::of_program(program, out)
    }

    /// The same with another shortline binary.
    ///
    /// # Errors
    /// As [`Testbed::open`].
    pub fn of_program(program: PathBuf, out: &Path) -> Result<Self, TestbedError> {
        let run_id = run_id();
        let mut janitor = Command::new(&program);
        janitor.args(["lab", "janitor"]);
        let janitor = Arc::new(Janitor::start(janitor, &run_id)?);
        let scratch = std::env::temp_dir().join(format!("shortline-lab-{run_id}"));
        janitor.watch_directory(&scratch)?;
        // nginx and Apache run as `nobody`, which must be able to read the site.
        umask(Mode::from_raw_mode(0o022));
        for folder in [&scratch, out] {
            fs::create_dir_all(folder).map_err(TestbedError::file(folder))?;
        }
        // nginx and Apache change their working directory, so paths must be absolute.
        let out = fs::canonicalize(out).map_err(TestbedError::file(out))?;
        Ok(Self {
            run_id,
            janitor,
            program,
            scratch,
            out,
        })
    }

    /// Eight characters that are in the name of everything this run makes.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The janitor, which undoes what this run makes.
    pub fn janitor(&self) -> &Arc<Janitor> {
        &self.janitor
    }

    /// The shortline binary.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// A folder that is removed after the run.
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// Where results are kept.
    pub fn out(&self) -> &Path {
        &self.out
    }

    /// A file for the output of the process called `name`, removed after the run.
    pub fn log(&self, name: &str) -> Log {
        Log::File(self.scratch.join(format!("{name}.log")))
    }
}

fn run_id() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanoseconds = now.unwrap_or(Duration::ZERO).as_nanos() as u64;
    // Two labs that start in the same nanosecond differ in their process ids.
    let mixed = (nanoseconds ^ u64::from(std::process::id()).rotate_left(40))
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!("{:08x}", mixed >> 32)
}
