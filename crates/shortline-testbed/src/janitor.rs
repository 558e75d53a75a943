//! Undoes everything that an experiment made, also when the lab is killed.
//!
//! A janitor is a process of its own: this same binary, started with the hidden `lab janitor`. The lab
//! tells it through a pipe what there is to undo, before making it if possible. The end of the pipe is
//! the signal to clean up. The lab closes the pipe when it is done, and the kernel closes it when the
//! lab dies, however it dies. The janitor has its own process group, so a Ctrl-C for the lab does not
//! reach it.
//!
//! Lines of the protocol, undone from the newest to the oldest:
//! ```text
//! run ID                     kill every process with SHORTLINE_LAB_RUN=ID
//! process PID START_TICKS    kill this process and its group, if the start time is still the same
//! forget-process PID         this process has been waited for
//! namespace NAME             remove it, with whatever runs in it
//! setting PATH VALUE         write the value back
//! forget-setting PATH        it has been written back
//! directory PATH             remove it, if its name contains the run's id
//! ```
//! Processes get SIGTERM, then SIGKILL after a second. A process is identified by its id and its start
//! time, so that a stranger with a reused id is safe.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};

use crate::proc_fs;
use crate::{TestbedError, command};

/// The environment variable that marks every process of a run.
pub const RUN_VARIABLE: &str = "SHORTLINE_LAB_RUN";

/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
/// How long a new process may take to show the environment that marks it.
const STARTING_MAX: Duration = Duration::from_millis(50);
/// How long the lab waits for the janitor to end, which takes far less.
const CLEANING_MAX: Duration = Duration::from_secs(30);

/// The lab's end of the pipe.
#[derive(Debug)]
pub struct Janitor {
    /// `None` once it has been told to clean up.
    child: Mutex<Option<Child>>,
}

impl Janitor {
    /// Starts `janitor` for the run of that id. The command must call [`clean_up_at_end_of`] on its
    /// standard input.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(mut janitor: Command, run_id: &str) -> Result<Self, TestbedError> {
        let child = janitor
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| TestbedError::Command {
                command: format!("{janitor:?}"),
                problem: error.to_string(),
            })?;
        let janitor = Self {
            child: Mutex::new(Some(child)),
        };
        janitor.note(&format!("run {run_id}"))?;
        Ok(janitor)
    }

    /// Notes that this process, just started, must not outlive the run.
    ///
    /// # Errors
    /// If the janitor no longer listens. Then nothing more may be started.
    pub fn watch_process(&self, pid: i32) -> Result<(), TestbedError> {
        match proc_fs::stat(pid) {
            Some(stat) => self.note(&format!("process {pid} {}", stat.start_ticks)),
            // It has ended, and its parent has waited for it.
            None => Ok(()),
        }
    }

    /// Notes that this process has ended and has been waited for.
    ///
    /// # Errors
    /// As [`Janitor::watch_process`].
    pub fn forget_process(&self, pid: i32) -> Result<(), TestbedError> {
        self.note(&format!("forget-process {pid}"))
    }

    /// Notes that the network namespace `name` is about to be made.
    ///
    /// # Errors
    /// As [`Janitor::watch_process`].
    pub fn watch_namespace(&self, name: &str) -> Result<(), TestbedError> {
        self.note(&format!("namespace {name}"))
    }

    /// Notes that the file `path` under `/proc/sys`, which contains `value`, is about to be changed.
    ///
    /// # Errors
    /// As [`Janitor::watch_process`].
    pub fn watch_setting(&self, path: &Path, value: &str) -> Result<(), TestbedError> {
        self.note(&format!("setting {} {value}", path.display()))
    }

    /// Notes that this file has been written back.
    ///
    /// # Errors
    /// As [`Janitor::watch_process`].
    pub fn forget_setting(&self, path: &Path) -> Result<(), TestbedError> {
        self.note(&format!("forget-setting {}", path.display()))
    }

    /// Notes that the scratch directory `path` is about to be made.
    ///
    /// # Errors
    /// As [`Janitor::watch_process`].
    pub fn watch_directory(&self, path: &Path) -> Result<(), TestbedError> {
        self.note(&format!("directory {}", path.display()))
    }

    /// Lets the janitor undo everything, and waits for it. A second call does nothing.
    pub fn clean_up(&self) {
        let Some(mut child) = self.lock().take() else {
            return;
        };
        drop(child.stdin.take());
        if let Ok(None) | Err(_) = wait_at_most(&mut child, CLEANING_MAX) {
            tracing::warn!(
                "lab: the janitor (process {}) is still cleaning up",
                child.id()
            );
        }
    }

    fn note(&self, line: &str) -> Result<(), TestbedError> {
        let mut child = self.lock();
        let pipe = child.as_mut().and_then(|child| child.stdin.as_mut());
        // Once the cleaning has begun, nothing may be made.
        let pipe = pipe.ok_or(TestbedError::Interrupted)?;
        writeln!(pipe, "{line}").map_err(|error| TestbedError::Command {
            command: "lab janitor".into(),
            problem: error.to_string(),
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.child
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        self.clean_up();
    }
}

/// Waits at most `limit` for `child` to end. `None` if it still runs then.
pub fn wait_at_most(
    child: &mut Child,
    limit: Duration,
) -> io::Result<Option<std::process::ExitStatus>> {
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Some(status)),
            None if Instant::now() >= deadline => return Ok(None),
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Runs the janitor: reads from `input` what there is to undo, undoes it when `input` ends, and
/// returns what could not be undone, one line each.
pub fn clean_up_at_end_of(input: impl BufRead) -> Vec<String> {
    let mut duties = Duties::default();
    // A line that cannot be read ends the input too: cleaning too early is better than never.
    for line in input.lines().map_while(Result::ok) {
        duties.note(&line);
    }
    duties.perform()
}

/// What there is to undo.
#[derive(Debug, Default)]
struct Duties {
    run_id: Option<String>,
    /// Ids and start times.
    processes: BTreeMap<i32, u64>,
    namespaces: BTreeSet<String>,
    settings: Vec<(PathBuf, String)>,
    directories: BTreeSet<PathBuf>,
}

impl Duties {
    fn note(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "run" => self.run_id = Some(rest.to_owned()),
            "process" => self.processes.extend(parse_process(rest)),
            "forget-process" => {
                rest.parse()
                    .ok()
                    .and_then(|pid: i32| self.processes.remove(&pid));
            }
            "namespace" => {
                self.namespaces.insert(rest.to_owned());
            }
            "setting" => {
                let setting = rest.split_once(' ');
                let setting = setting.map(|(path, value)| (path.into(), value.to_owned()));
                self.settings.extend(setting);
            }
            "forget-setting" => self.settings.retain(|(path, _)| path != Path::new(rest)),
            "directory" => {
                self.directories.insert(rest.into());
            }
            // A word of another version, which this one cannot undo.
            _ => {}
        }
    }

    fn perform(self) -> Vec<String> {
        let mut failures = Vec::new();
        end_all(|| self.living());
        std::thread::sleep(STARTING_MAX);
        end_all(|| self.living());
        for name in &self.namespaces {
            failures.extend(remove_namespace(name).err().map(|error| error.to_string()));
        }
        for (path, value) in self.settings.iter().rev() {
            failures.extend(write_back(path, value).err().map(|error| error.to_string()));
        }
        for path in self.directories.iter().filter(|path| self.is_ours(path)) {
            match fs::remove_dir_all(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    failures.push(format!("{}: {error}", path.display()));
                }
                _ => {}
            }
        }
        failures
    }

    /// Removes a directory only if its own name shows that it is the run's.
    fn is_ours(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        let run_id = self.run_id.as_deref().filter(|run_id| !run_id.is_empty());
        name.zip(run_id)
            .is_some_and(|(name, run_id)| name.contains(run_id))
    }

    /// The processes to kill that are still alive.
    fn living(&self) -> Vec<i32> {
        let all = proc_fs::all();
        let own = i32::try_from(std::process::id()).unwrap_or(-1);
        let listed = |pid: i32| match (self.processes.get(&pid), all.get(&pid)) {
            (Some(start_ticks), Some(stat)) => stat.start_ticks == *start_ticks,
            // The leader is gone, but the id is not reused while its group lives.
            (Some(_), None) => true,
            (None, _) => false,
        };
        let mut living: BTreeSet<i32> = all
            .iter()
            .filter(|(pid, stat)| listed(**pid) || listed(stat.group))
            .map(|(pid, _)| *pid)
            .collect();
        living.extend(all.keys().filter(|pid| self.is_marked(**pid)));
        for name in &self.namespaces {
            living.extend(processes_in(name));
        }
        let ended = |pid: &i32| all.get(pid).is_none_or(|stat| stat.zombie);
        living.retain(|pid| *pid != own && !ended(pid));
        living.into_iter().collect()
    }

    fn is_marked(&self, pid: i32) -> bool {
        let Some(run_id) = &self.run_id else {
            return false;
        };
        let mark = format!("{RUN_VARIABLE}={run_id}");
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|entry| entry == mark.as_bytes())
    }
}

/// Waits until no other lab changes the machine's setting `path`, and keeps others from it until the file that it
/// returns is dropped.
///
/// # Errors
/// If there is no such setting.
pub fn lock_setting(path: &Path) -> Result<File, TestbedError> {
    let file = File::open(path).map_err(TestbedError::file(path))?;
    flock(&file, FlockOperation::LockExclusive)
        .map_err(|error| TestbedError::file(path)(error.into()))?;
    Ok(file)
}

fn write_back(path: &Path, value: &str) -> Result<(), TestbedError> {
    let _turn = lock_setting(path)?;
    fs::write(path, value).map_err(TestbedError::file(path))
}

fn parse_process(text: &str) -> Option<(i32, u64)> {
    let (pid, start_ticks) = text.split_once(' ')?;
    Some((pid.parse().ok()?, start_ticks.parse().ok()?))
}

/// Ends all processes that `living` returns, until it returns none: by SIGTERM, after `GRACE` by
/// SIGKILL.
pub fn end_all(living: impl Fn() -> Vec<i32>) {
    let begin = Instant::now();
    let mut asked = BTreeSet::new();
    loop {
        let left = living();
        let elapsed = begin.elapsed();
        if left.is_empty() || elapsed > 5 * GRACE {
            return;
        }
        for pid in left {
            if elapsed > GRACE {
                signal(pid, Signal::KILL);
            } else if asked.insert(pid) {
                signal(pid, Signal::TERM);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a signal to a process. It is no error if the process has ended.
pub fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid).filter(|_| pid > 1) {
        kill_process(pid, signal).ok();
    }
}

/// Removes the network namespace `name` and its devices. It is no error if it was never made, or if
/// another process removes it at the same time (lab and janitor after a signal).
///
/// # Errors
/// If `ip` fails.
pub fn remove_namespace(name: &str) -> Result<(), TestbedError> {
    let there = || Path::new("/run/netns").join(name).exists();
    if !there() {
        return Ok(());
    }
    end_all(|| processes_in(name));
    match command::run("ip", &["netns", "delete", name]) {
        Err(error) if there() => Err(error),
        _ => Ok(()),
    }
}

fn processes_in(namespace: &str) -> Vec<i32> {
    if !Path::new("/run/netns").join(namespace).exists() {
        return Vec::new();
    }
    let pids = command::run("ip", &["netns", "pids", namespace]).unwrap_or_default();
    pids.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep")
            .arg("300")
            .process_group(0)
            .spawn()
            .unwrap()
    }

    fn start_ticks(child: &Child) -> u64 {
        proc_fs::stat(child.id() as i32).unwrap().start_ticks
    }

    #[test]
    fn at_the_end_of_its_input_it_kills_restores_and_removes() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = folder.path().join("lab-id7");
        fs::create_dir_all(scratch.join("inner")).unwrap();
        let setting = folder.path().join("setting");
        fs::write(&setting, "changed").unwrap();
        let mut child = sleeper();
        let input = format!(
            "run id7\nprocess {} {}\nsetting {} as it was\ndirectory {}\n",
            child.id(),
            start_ticks(&child),
            setting.display(),
            scratch.display(),
        );

        let reaper = std::thread::spawn(move || child.wait().unwrap());
        assert_eq!(clean_up_at_end_of(input.as_bytes()), Vec::<String>::new());

        assert!(!reaper.join().unwrap().success());
        assert!(!scratch.exists());
        assert_eq!(fs::read_to_string(setting).unwrap(), "as it was");
    }

    #[test]
    fn a_setting_that_was_written_back_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let setting = folder.path().join("setting");
        fs::write(&setting, "of somebody else").unwrap();
        let path = setting.display();
        let input = format!("run id12\nsetting {path} as it was\nforget-setting {path}\n");
        assert_eq!(clean_up_at_end_of(input.as_bytes()), Vec::<String>::new());
        assert_eq!(fs::read_to_string(&setting).unwrap(), "of somebody else");
    }

    #[test]
    fn a_process_that_only_took_over_the_id_is_left_alone() {
        let mut child = sleeper();
        let input = format!(
            "run id8\nprocess {} {}\n",
            child.id(),
            start_ticks(&child) + 1
        );
        clean_up_at_end_of(input.as_bytes());
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_was_never_listed_is_found_by_its_mark() {
        let mut child = Command::new("sleep")
            .arg("300")
            .env(RUN_VARIABLE, "id9-marked")
            .spawn()
            .unwrap();
        let reaper = std::thread::spawn(move || child.wait().unwrap());
        clean_up_at_end_of("run id9-marked\n".as_bytes());
        assert!(!reaper.join().unwrap().success());
    }

    #[test]
    fn a_directory_without_the_runs_id_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("precious");
        fs::create_dir(&other).unwrap();
        clean_up_at_end_of(format!("run id10\ndirectory {}\n", other.display()).as_bytes());
        assert!(other.exists());
    }

    #[test]
    fn what_was_forgotten_is_not_killed() {
        let mut child = sleeper();
        let (pid, start) = (child.id(), start_ticks(&child));
        let input = format!("run id11\nprocess {pid} {start}\nforget-process {pid}\n");
        clean_up_at_end_of(input.as_bytes());
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
