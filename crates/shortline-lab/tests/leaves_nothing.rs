//! A lab that is killed, even by SIGKILL, leaves nothing behind: no process, no namespace, no scratch
//! directory. Namespaces are tested if the tests run as root.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Far longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A running lab, with its scratch directory in a folder of its own.
struct Lab {
    child: Child,
    folder: tempfile::TempDir,
}

impl Lab {
    fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_shortline-lab"))
            .args(["run"])
            .args(arguments)
            .arg("--out")
            .arg(folder.path().join("out"))
            .env("TMPDIR", folder.path().join("tmp"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, folder }
    }

    /// The lab's scratch directory, whose name ends in the run's id.
    fn scratch(&self) -> Option<PathBuf> {
        let entries = fs::read_dir(self.folder.path().join("tmp")).unwrap();
        entries.map(|entry| entry.unwrap().path()).next()
    }

    fn run_id(&self) -> String {
        let scratch = wait_for("the scratch directory", || self.scratch());
        let name = scratch.file_name().unwrap().to_str().unwrap().to_owned();
        name.rsplit('-').next().unwrap().to_owned()
    }

    fn end_by(&mut self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        assert!(!self.child.wait().unwrap().success());
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Otherwise it would go on for minutes after a failed assertion.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn wait_for<T>(what: &str, found: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Processes of the run, by the mark in their environment or the run's id in their command line
/// (nginx overwrites its environment).
fn processes(run_id: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let told = |folder: PathBuf| {
        let read = |name: &str| fs::read(folder.join(name)).unwrap_or_default();
        let text = [read("environ"), read("cmdline")].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        text.contains(run_id).then_some(folder)
    };
    entries.filter_map(|entry| told(entry.path())).collect()
}

/// The children of these processes; all as folders of `/proc`.
fn children_of_all(parents: &[PathBuf]) -> Vec<PathBuf> {
    let children = |parent: &PathBuf| {
        let pid = parent.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(parent.join("task").join(&pid).join("children"));
        let text = text.unwrap_or_default();
        text.split_whitespace()
            .map(|child| Path::new("/proc").join(child))
            .collect::<Vec<PathBuf>>()
    };
    parents.iter().flat_map(children).collect()
}

fn namespaces(run_id: &str) -> Vec<String> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains(run_id)).collect()
}

fn assert_nothing_is_left(lab: &Lab, run_id: &str) {
    wait_for("the end of all processes", || {
        processes(run_id).is_empty().then_some(())
    });
    wait_for("the end of the namespaces", || {
        namespaces(run_id).is_empty().then_some(())
    });
    wait_for("the end of the scratch directory", || {
        lab.scratch().is_none().then_some(())
    });
}

#[test]
fn a_killed_demo_leaves_nothing_behind() {
    let mut lab = Lab::start(&["demo", "--seconds", "60"]);
    let run_id = lab.run_id();
    wait_for("server and generator", || {
        (processes(&run_id).len() >= 2).then_some(())
    });
    lab.end_by(Signal::KILL);
    assert_nothing_is_left(&lab, &run_id);
}

#[test]
fn a_terminated_demo_has_cleaned_up_when_it_ends() {
    let mut lab = Lab::start(&["demo", "--seconds", "60"]);
    let run_id = lab.run_id();
    wait_for("server and generator", || {
        (processes(&run_id).len() >= 2).then_some(())
    });
    lab.end_by(Signal::TERM);
    assert_eq!(processes(&run_id), Vec::<PathBuf>::new());
    assert_eq!(lab.scratch(), None);
}

#[test]
fn a_killed_lab_leaves_no_namespace_and_no_peer_behind() {
    let installed = ["/usr/sbin/nginx", "/usr/sbin/ip", "/usr/sbin/tc"];
    let possible = rustix::process::geteuid().is_root()
        && installed.iter().all(|path| Path::new(path).exists());
    if !possible {
        eprintln!("skipped: needs root, nginx and iproute2");
        return;
    }
    let allowed = Path::new("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
    let allowed_before = fs::read_to_string(allowed).unwrap();
    let mut lab = Lab::start(&["w1", "--seconds", "60", "--servers", "nginx"]);
    let run_id = lab.run_id();
    wait_for("nginx's master and the generator", || {
        (processes(&run_id).len() >= 2).then_some(())
    });
    let workers = wait_for("nginx's workers", || {
        let workers = children_of_all(&processes(&run_id));
        (!workers.is_empty()).then_some(workers)
    });
    assert_eq!(namespaces(&run_id).len(), 2);
    lab.end_by(Signal::KILL);
    assert_nothing_is_left(&lab, &run_id);
    wait_for("the end of nginx's workers", || {
        workers.iter().all(|worker| !worker.exists()).then_some(())
    });
    assert_eq!(fs::read_to_string(allowed).unwrap(), allowed_before);
}
