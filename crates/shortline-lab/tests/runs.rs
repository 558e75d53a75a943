//! Every kind of experiment runs on the native bed for seconds, and reports. Kept runs are not repeated.
//! Namespaces are tested if the tests run as root.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use shortline_load::record::{read_records, write_records};

/// Experiments, each with options that make it take seconds, and its own folder.
const KINDS: [(&str, &[&str]); 22] = [
    // One point, alternating overload, everybody.
    (
        "w1",
        &["--servers", "srpt,fair,off,nginx,apache", "--seeds", "1"],
    ),
    ("w1-slots", &["--servers", "slots"]),
    // Protocols.
    ("w1-k5", &["--servers", "srpt"]),
    ("w1-tls", &["--servers", "srpt"]),
    ("w1-h2-shared", &["--servers", "srpt"]),
    // One process of the generator and two.
    ("generators", &["--servers", "srpt"]),
    // Persistent overload, at two loads.
    ("000-persistent", &["--servers", "srpt"]),
    ("aging", &["--servers", "srpt-aging-20"]),
    // SURGE's files and the NASA log's twin.
    ("003-surge-quickfix", &["--servers", "quickfix"]),
    ("000-nasa-realistic", &["--servers", "srpt"]),
    // Users in a closed loop, through six WANs; several delays at once; 001's writers.
    ("004-10mbit", &["--servers", "srrt"]),
    ("000-delays", &["--servers", "srpt"]),
    // Delay and loss; what is realistic.
    ("000-rtt-loss", &["--servers", "srpt"]),
    ("000-realistic", &["--servers", "srpt,nginx"]),
    // A range of values; users who give up; all of Table I.
    ("000-keepalive", &["--servers", "nginx"]),
    ("000-abort", &["--servers", "srpt"]),
    ("000-table1", &["--servers", "srpt"]),
    // A link that changes; another server's downloads through it; two servers.
    ("auto-steps", &["--servers", "auto"]),
    ("auto-cross", &["--servers", "auto,nginx"]),
    ("auto-two", &["--servers", "auto"]),
    // Steady loads below 1; two bands.
    ("003-load", &["--servers", "srpt"]),
    (
        "003-quickfix",
        &["--servers", "quickfix,kernel-quickfix,nginx"],
    ),
];

/// This many experiments run at once.
const AT_ONCE: usize = 3;

fn lab(arguments: &[&str], out: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shortline-lab"));
    command.args(arguments).arg("--out").arg(out);
    command.output().unwrap()
}

fn list() -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_shortline-lab"))
        .args(["list"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn shortline_lab_is_this_program() {
    let shortline = Path::new(env!("CARGO_BIN_EXE_shortline-lab")).with_file_name("shortline");
    let output = Command::new(shortline).args(["lab", "list"]).output();
    assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), list());
}

/// Runs it, and returns its standard error.
fn run(id: &str, arguments: &[&str], out: &Path) -> String {
    let output = lab(&[&["run", id, "--seconds", "1"], arguments].concat(), out);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    // A busy machine makes a run void, which is not a failure.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{id}: {told}");
    told
}

/// The page exists, has a part for every figure in the list, and fetches nothing.
fn assert_reported(id: &str, out: &Path) {
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    let begin = format!("{id} ");
    let lines = list();
    let figures = lines.lines().filter(|line| line.starts_with(&begin));
    assert_eq!(page.matches("<article").count(), figures.count(), "{id}");
    let page = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    assert!(!page.contains("http") && !page.contains("//"), "{id}");
    assert!(page.contains("<figure"), "{id}");
    assert!(out.join("report/figures.csv").exists(), "{id}");
}

#[test]
fn the_demo_runs_once_and_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("demo");
    run("demo", &[], &out);
    assert_reported("demo", &out);
    let again = run("demo", &[], &out);
    assert_eq!(again.matches("kept already").count(), 2, "{again}");
    let other = lab(&["run", "demo", "--seconds", "3"], &out);
    let told = String::from_utf8_lossy(&other.stderr);
    assert!(
        other.status.code() == Some(2) && told.contains("another plan"),
        "{told}"
    );
}

#[test]
fn an_experiment_with_a_void_run_exits_3() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("demo");
    run("demo", &[], &out);
    start_late(&records(&out, "srpt"));
    let output = lab(&["run", "demo", "--seconds", "1"], &out);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    let last = told.lines().last().unwrap();
    assert!(last.starts_with("shortline: void: "), "{told}");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("srpt is VOID: "), "{report}");
}

/// The records of an experiment's only run of a server.
fn records(out: &Path, server: &str) -> PathBuf {
    let folders = fs::read_dir(out).unwrap();
    let files = folders.map(|folder| {
        let seed = folder.unwrap().path().join("seed-1");
        seed.join(format!("{server}.csv.zst"))
    });
    files.into_iter().find(|file| file.exists()).unwrap()
}

/// Changes the records so that every request started a second late.
fn start_late(file: &Path) {
    let mut records = read_records(file).unwrap();
    for record in &mut records {
        record.lag_s = 1.0;
    }
    write_records(file, &records).unwrap();
}

/// A user's own study: a file, with an access log beside it.
fn own_study(folder: &Path) -> PathBuf {
    let line = |second: u32| {
        let request = ["/", "/?page=2", "/../large"][second as usize % 3];
        let bytes = 3_000 * (second + 1);
        format!(
            "10.0.0.1 - - [01/Jan/2026:12:00:0{second} +0000] \"GET {request} HTTP/1.1\" 200 {bytes}\n"
        )
    };
    fs::write(
        folder.join("access.log"),
        (0..3).map(line).collect::<String>(),
    )
    .unwrap();
    let file = folder.join("own.toml");
    let text = "servers = [\"fair\", \"srpt\"]\n\n[setup]\ntrace = \"access.log\"\ntime = \"9s\"\n\
                rate = \"5mbit\"\nloopback = true\n\n[[figure]]\nname = \"own\"\nclaim = \"none\"\n\
                check = [{ measure = \"bytes-ratio\", of = \"srpt\", over = \"fair\", at-least = 0.5 }]\n";
    fs::write(&file, text).unwrap();
    file
}

#[test]
fn a_study_of_ones_own_runs_with_its_trace_and_is_told_without_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = own_study(folder.path());
    let name = file.to_str().unwrap();
    let out = folder.path().join("results/own");
    run(name, &[], &out);
    let trace = fs::read_to_string(out.join("own/seed-1/trace.csv")).unwrap();
    assert!(trace.contains("/trace/000/000000.bin,3000"), "{trace}");
    let again = run(name, &[], &out);
    assert_eq!(again.matches("kept already").count(), 2, "{again}");

    fs::write(folder.path().join("access.log"), "0,/other,1\n").unwrap();
    let other = lab(&["run", name, "--seconds", "1"], &out);
    let told = String::from_utf8_lossy(&other.stderr);
    assert!(
        other.status.code() == Some(2) && told.contains("another plan"),
        "{told}"
    );

    fs::remove_file(&file).unwrap();
    let mut report = Command::new(env!("CARGO_BIN_EXE_shortline-lab"));
    let told = report.arg("report").arg(&out).output().unwrap().stdout;
    let told = String::from_utf8(told).unwrap();
    // On a busy machine a request may start late. Then the run is void, and judged by nobody.
    let verdict = if told.contains("VOID") {
        "not measured"
    } else {
        "holds"
    };
    let judged = format!("own: none\n  {verdict}: bytes carried, ratio");
    assert!(told.contains(&judged), "{told}");
    let mut report = Command::new(env!("CARGO_BIN_EXE_shortline-lab"));
    let pass = report.arg("report").arg(folder.path().join("results"));
    assert!(pass.output().unwrap().status.success());
    let kept = fs::read_to_string(folder.path().join("results/claims.json")).unwrap();
    assert!(!kept.contains("own"), "{kept}");
}

#[test]
fn a_study_that_is_shown_can_be_copied_and_one_that_is_wrong_is_refused_at_its_line() {
    let show = |id: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shortline-lab"));
        command.args(["show", id]).output().unwrap()
    };
    let demo = String::from_utf8(show("demo").stdout).unwrap();
    assert_eq!(show("demos").status.code(), Some(2));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    fs::write(&file, &demo).unwrap();
    let out = folder.path().join("out");
    run(file.to_str().unwrap(), &["--servers", "srpt"], &out);
    fs::write(&file, demo.replace("loopback = true", "loopbacks = true")).unwrap();
    let refused = lab(&["run", file.to_str().unwrap()], &out);
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let line = 1 + demo
        .lines()
        .position(|line| line.starts_with("loopback"))
        .unwrap();
    let place = format!("mine.toml:{line}: setup.loopbacks: unknown field");
    assert!(
        told.contains(&place) && told.contains("`loopback`"),
        "{told}"
    );
}

#[test]
fn every_kind_of_experiment_runs() {
    let installed = [
        "/usr/sbin/nginx",
        "/usr/sbin/apache2",
        "/usr/sbin/ip",
        "/usr/sbin/tc",
    ];
    let possible = rustix::process::geteuid().is_root()
        && installed.iter().all(|path| Path::new(path).exists());
    if !possible {
        eprintln!("skipped: needs root, nginx, apache2 and iproute2");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // They wait most of their time, for what has begun to end.
    let next = AtomicUsize::new(0);
    let some = || {
        while let Some((id, arguments)) = KINDS.get(next.fetch_add(1, Relaxed)) {
            let out = folder.path().join(id);
            run(id, arguments, &out);
            assert_reported(id, &out);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(some);
        }
    });
}

#[test]
fn what_this_machines_kernel_cannot_do_is_refused_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    for id in ["000-rto", "000-nasa-rto"] {
        let refused = lab(&["run", id], &folder.path().join(id));
        let told = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(
            (refused.status.code(), told.lines().count()),
            (Some(1), 1),
            "{id}: {told}"
        );
    }
    let bed = lab(&["run", "throughput", "--bed", "uml"], folder.path());
    assert_eq!(bed.status.code(), Some(2));
}
