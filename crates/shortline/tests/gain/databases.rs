//! Logs that real databases write, and what `gain` says of them: PostgreSQL's three forms and `pg_stat_statements`, MariaDB's slow
//! query log.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use shortline_base::port::free_port;
use shortline_bookstore::Kind;
use shortline_bookstore::bed::{Bed, Sizing};

use crate::{gain, json, text, write};

/// What is asked of each: types by name, and how often.
const ASKED: [(&str, u64); 2] = [
    ("select count(*) from numbers where number > ?", 30),
    ("select max(number) from numbers", 10),
];

/// One client after the other, each statement by itself.
fn script() -> String {
    let mut script = String::new();
    for number in 0..30 {
        script += &format!("SELECT count(*)\n  FROM numbers WHERE number > {number};\n");
        if number % 3 == 0 {
            script += "SELECT max(number) FROM numbers;\n";
        }
    }
    script
}

fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    text(output.stdout)
}

/// The statements of these types in the busiest hour are as many as were asked, unless the clock struck between them.
fn assert_all_asked(result: &Value) {
    if result["hours"].as_array().unwrap().len() > 1 {
        return;
    }
    for (name, count) in ASKED {
        let kinds = result["kinds"].as_array().unwrap();
        let kind = kinds.iter().find(|kind| kind["name"] == name);
        let kind = kind.unwrap_or_else(|| panic!("no {name}: {result}"));
        assert_eq!(kind["statements"], count, "{result}");
        assert!(kind["waits"][0]["mean_s"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(result["processors"], 1);
    assert_eq!(result["processors_from"], "busiest-hour");
}

/// A private PostgreSQL that logs all statements in all forms. It ends with the test, however that ends.
struct Postgres {
    server: Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl Postgres {
    /// `None` where it is not installed.
    fn start() -> Option<Self> {
        let programs = newest(Path::new("/usr/lib/postgresql"))?.join("bin");
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let data = folder.path().join("data");
        let port = free_port().unwrap();
        run(as_postgres(&programs.join("initdb"))
            .args(["-A", "trust", "-U", "owner", "--no-sync", "-D"])
            .arg(&data));
        let settings = [
            format!("port={port}"),
            "listen_addresses=127.0.0.1".to_owned(),
            "unix_socket_directories=".to_owned(),
            "fsync=off".to_owned(),
            "log_min_duration_statement=0".to_owned(),
            "logging_collector=on".to_owned(),
            "log_destination=stderr,csvlog,jsonlog".to_owned(),
            "log_filename=statements.log".to_owned(),
            format!("log_directory={}", folder.path().join("logs").display()),
            "log_file_mode=0644".to_owned(),
            "log_timezone=Asia/Kolkata".to_owned(),
            "shared_preload_libraries=pg_stat_statements".to_owned(),
        ];
        let server = as_postgres(&programs.join("postgres"))
            .arg("-D")
            .arg(&data)
            .args(settings.iter().flat_map(|setting| ["-c", setting]))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let postgres = Self {
            server,
            folder,
            port,
        };
        postgres.wait_until_listening();
        Some(postgres)
    }

    fn wait_until_listening(&self) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !self
            .client()
            .args(["-c", "SELECT 1"])
            .output()
            .unwrap()
            .status
            .success()
        {
            assert!(Instant::now() < deadline, "PostgreSQL does not listen");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn client(&self) -> Command {
        let mut client = Command::new("psql");
        client
            .args([
                "-X",
                "-q",
                "-h",
                "127.0.0.1",
                "-U",
                "owner",
                "-d",
                "postgres",
                "-p",
            ])
            .arg(self.port.to_string());
        client
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.path().join("logs").join(name)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.server.id() as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        }
        let _ = self.server.wait();
    }
}

/// PostgreSQL does not run as root.
fn as_postgres(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "QUIT"]);
    if rustix::process::geteuid().is_root() {
        command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]);
    }
    command.arg(program).current_dir("/");
    command
}

fn newest(folder: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(folder).ok()?.flatten();
    versions.map(|version| version.path()).max()
}

#[test]
fn postgresql_says_what_it_was_asked() {
    let Some(postgres) = Postgres::start() else {
        eprintln!("skipped: no PostgreSQL in /usr/lib/postgresql (scripts/setup installs it)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let prepare = "CREATE EXTENSION pg_stat_statements; \
                   CREATE TABLE numbers AS SELECT generate_series(1, 20000) AS number";
    run(postgres.client().args(["-c", prepare]));
    let asked = write(folder.path(), "asked.sql", script().as_bytes());
    run(postgres.client().args(["-f", &asked]));
    // The very command of docs/gain.md.
    let rows = run(postgres.client().args([
        "--csv",
        "-c",
        "SELECT query, calls, mean_exec_time, stddev_exec_time FROM pg_stat_statements",
    ]));
    let shown = run(postgres.client().args([
        "-c",
        "SELECT query, calls, total_exec_time FROM pg_stat_statements",
    ]));
    wait_for(
        &postgres.log("statements.json"),
        "stddev_exec_time FROM pg_stat",
    );
    for name in ["statements.log", "statements.csv", "statements.json"] {
        let log = postgres.log(name);
        let result = json(&["--json", log.to_str().unwrap()]);
        assert_all_asked(&result);
        assert!(
            !result["notes"].to_string().contains("could not be read"),
            "{result}"
        );
    }
    for (name, rows, is_whole) in [("rows.csv", rows, true), ("shown.txt", shown, false)] {
        let rows = write(folder.path(), name, rows.as_bytes());
        let result = json(&["--json", &rows]);
        for (name, count) in ASKED {
            let kinds = result["kinds"].as_array().unwrap();
            let kind = kinds.iter().find(|kind| kind["name"] == name);
            assert_eq!(kind.unwrap()["calls"], count, "{result}");
        }
        assert_eq!(result["has_deviations"], is_whole);
        let words = text(gain(&[&rows]).stdout);
        assert!(words.contains("cannot tell whether any waited"), "{words}");
    }
}

/// The collector writes a little later.
fn wait_for(log: &Path, end: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !fs::read_to_string(log).is_ok_and(|text| text.contains(end)) {
        assert!(Instant::now() < deadline, "nothing in {}", log.display());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn mariadb_says_what_it_was_asked() {
    if let Err(missing) = Bed::available(Kind::MariaDb) {
        eprintln!("skipped: {missing}");
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let sizing = Sizing {
        buffer_mib: 16,
        ..Sizing::default()
    };
    let bed = runtime.block_on(Bed::start(Kind::MariaDb, sizing)).unwrap();
    let port = bed.database().address.port().to_string();
    let ask = |script: &str| {
        run(Command::new("mariadb")
            .args([
                "--no-defaults",
                "-h127.0.0.1",
                "-ubookstore",
                "-N",
                "-P",
                &port,
                "-e",
            ])
            .args([script, "bookstore"]))
    };
    ask("CREATE TABLE numbers (number int); INSERT INTO numbers SELECT seq FROM seq_1_to_20000");
    ask(
        "SET GLOBAL slow_query_log = ON, GLOBAL long_query_time = 0, GLOBAL slow_query_log_file = 'slow.log'",
    );
    ask(&script());
    let log = bed.directory().join("data/slow.log");
    wait_for(&log, "max(number)");
    let result = json(&["--json", log.to_str().unwrap()]);
    assert_all_asked(&result);
    assert!(
        !result["notes"].to_string().contains("could not be read"),
        "{result}"
    );
}
