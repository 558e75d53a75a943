//! A PostgreSQL server of a test: its own data below a temporary folder, stopped at the end.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use crate::process::wait_for;

/// A running server with the user `tester`, who needs no password.
pub struct Postgres {
    server: Child,
    /// Its port on 127.0.0.1.
    pub port: u16,
    programs: PathBuf,
    folder: TempDir,
}

impl Postgres {
    /// Starts one; says why the test is skipped where the programs are missing.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!(
                "skipped: no PostgreSQL below /usr/lib/postgresql (scripts/setup installs it)"
            );
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let as_user = User::of(folder.path());
        let made = as_user
            .command(&programs.join("initdb"))
            .args(["--username=tester", "--auth=trust", "--no-sync", "--pgdata"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        // Free at this moment; whoever takes it in between makes the start fail, loudly.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let server = as_user
            .command(&programs.join("postgres"))
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c"])
            .arg(format!(
                "unix_socket_directories={}",
                folder.path().display()
            ))
            .args(["-p", &port.to_string(), "-D"])
            .arg(&data)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let postgres = Self {
            server,
            port,
            programs,
            folder,
        };
        wait_for("PostgreSQL", || {
            let ready = Command::new(postgres.programs.join("pg_isready"))
                .args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()])
                .status();
            ready.unwrap().success().then_some(())
        });
        Some(postgres)
    }

    /// What `psql` answers to `commands`, one after another, through `port`.
    pub fn psql(&self, port: u16, commands: &[&str]) -> Output {
        self.psql_command(port, "postgres", commands)
            .output()
            .unwrap()
    }

    /// `psql`, to be run.
    pub fn psql_command(&self, port: u16, database: &str, commands: &[&str]) -> Command {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-X", "-A", "-t", "-h", "127.0.0.1", "-U", "tester", "-p"])
            .arg(port.to_string())
            .args(["-d", database, "-v", "ON_ERROR_STOP=1"]);
        for command in commands {
            psql.args(["-c", command]);
        }
        psql
    }

    /// Its Unix socket.
    pub fn socket(&self) -> PathBuf {
        let name = format!(".s.PGSQL.{}", self.port);
        self.folder.path().join(name)
    }

    /// Its address.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGINT is its fast shutdown; it ends the processes of its sessions, too.
        let pid = rustix::process::Pid::from_child(&self.server);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        let _ = self.server.wait();
    }
}

/// The newest version that Debian's packages have put there.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let folders = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    folders
        .filter(|folder| folder.join("initdb").exists())
        .max()
}

/// PostgreSQL refuses to run as root: then as its own user.
struct User {
    is_root: bool,
}

impl User {
    /// The user to run as, to whom `folder` is given.
    fn of(folder: &Path) -> Self {
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            let given = Command::new("chown").arg("postgres").arg(folder).status();
            assert!(
                given.unwrap().success(),
                "user postgres comes with the package"
            );
        }
        Self { is_root }
    }

    fn command(&self, program: &Path) -> Command {
        if !self.is_root {
            return Command::new(program);
        }
        // setpriv becomes the program itself, so that signals reach it.
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=postgres", "--regid=postgres", "--clear-groups"])
            .arg(program)
            .current_dir("/");
        command
    }
}
