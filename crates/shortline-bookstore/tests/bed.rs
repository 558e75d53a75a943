//! A private database server is gone together with its owner, however that ended.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use shortline_bookstore::Kind;
use shortline_bookstore::bed::{Bed, Sizing};

/// Set in a process that will be killed while it has a server.
const OWNER: &str = "SHORTLINE_BED_OWNER";
/// How long the server may outlive its owner.
const ENDING_MAX: Duration = Duration::from_secs(20);

#[test]
fn an_owner_that_is_killed_leaves_nothing() {
    for kind in Kind::ALL {
        if let Err(missing) = Bed::available(kind) {
            eprintln!("skipped: {missing}");
            continue;
        }
        let mut owner = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "an_owner", "--nocapture"])
            .env(OWNER, kind.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
        let told = lines
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("bed ").map(str::to_owned));
        let told = told.unwrap();
        let (pid, directory) = told.split_once(' ').unwrap();
        let left = [PathBuf::from(format!("/proc/{pid}")), directory.into()];
        assert!(left.iter().all(|path| path.exists()), "{told}");
        owner.kill().unwrap();
        owner.wait().unwrap();
        assert_gone(&left);
    }
}

/// Not a test of its own: [`an_owner_that_is_killed_leaves_nothing`] kills it.
#[test]
fn an_owner() {
    let Ok(kind) = std::env::var(OWNER) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let sizing = Sizing {
        buffer_mib: 64,
        ..Sizing::default()
    };
    let bed = runtime.block_on(Bed::start(kind.parse().unwrap(), sizing));
    let bed = bed.unwrap();
    println!("\nbed {} {}", bed.pid(), bed.directory().display());
    std::thread::sleep(Duration::from_secs(60));
}

fn assert_gone(paths: &[PathBuf]) {
    let deadline = Instant::now() + ENDING_MAX;
    let left = || paths.iter().any(|path: &PathBuf| Path::exists(path));
    while left() {
        assert!(Instant::now() < deadline, "still there: {paths:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_server_tells_its_version_in_numbers() {
    for kind in Kind::ALL {
        if let Err(missing) = Bed::available(kind) {
            eprintln!("skipped: {missing}");
            continue;
        }
        let version = Bed::version(kind).unwrap();
        let numbers = version.split('.').map(str::parse::<u32>);
        assert!(
            numbers.clone().count() > 1 && numbers.clone().all(|number| number.is_ok()),
            "{version}"
        );
    }
}

/// Timing a busy statement at both speeds would be a measurement. This only checks that the group
/// exists, holds the server, and is gone after it.
#[test]
fn a_slowed_server_is_in_a_group_that_goes_with_it() {
    let kind = Kind::Postgres;
    if let Err(missing) = Bed::available(kind) {
        eprintln!("skipped: {missing}");
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let sizing = Sizing {
        buffer_mib: 64,
        ..Sizing::default()
    };
    let bed = runtime.block_on(Bed::start(kind, sizing)).unwrap();
    let speed = match bed.speed() {
        Ok(speed) => speed,
        Err(error) => {
            eprintln!("skipped: {error}");
            return;
        }
    };
    let group = bed.directory().file_name().unwrap().to_owned();
    let group = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"]
        .map(|root| Path::new(root).join(&group))
        .into_iter()
        .find(|group| group.exists())
        .unwrap();
    let members = std::fs::read_to_string(group.join("cgroup.procs")).unwrap();
    assert!(members.lines().any(|line| line == bed.pid().to_string()));
    speed.set(0.5).unwrap();
    assert!(speed.set(1.0).is_ok());
    drop(speed);
    drop(bed);
    assert_gone(&[group]);
}
