//! Opens what is before the database: a gate, a gate with a pool, or PgBouncer.
//!
//! PgBouncer's configuration is `peers/pgbouncer.ini`, with the values of the run filled in.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use shortline_bookstore::{Database, Kind};
use shortline_testbed::command;
use shortline_testbed::process::Process;

use super::Run;
use super::visit::Visit;
use crate::LabError;
use crate::run::listening::start;
use crate::run::uplink::free_port;
use crate::study::shop::{Door, Load};

/// How long a program may take to end: a gate lets transactions finish for [`DRAIN`], and then lets clients read why
/// not for 5 s.
const STOP_MAX: Duration = Duration::from_secs(30);
/// What is under way at a run's end no longer counts. With locks in the database it would wait for minutes.
const DRAIN: &str = "2s";
/// The template of PgBouncer's configuration.
const PGBOUNCER: &str = include_str!("../../../peers/pgbouncer.ini");
/// The user of PgBouncer, which does not run as root.
const PGBOUNCER_USER: &str = "postgres";
/// The password of a pool's clients. The database behind the pool trusts everybody.
const PASSWORD: &str = "bookstore";

/// A running gate or pool before the database.
pub struct Opened {
    process: Process,
    name: &'static str,
    /// Its exit status when it is asked to end.
    exit_codes: &'static [u8],
    /// The admin address of a gate.
    pub admin: Option<SocketAddr>,
}

/// Opens a run's door. Returns the running program, if there is one, and the application's database.
pub fn open(visit: &Visit<'_>, run: Run) -> Result<(Option<Opened>, Database), LabError> {
    let behind = visit.bed.database().clone();
    match run.door {
        Door::None => Ok((None, behind)),
        Door::Gate { .. } => {
            let flags = gate_flags(visit, run)?;
            open_gate(visit, run, &flags, behind)
        }
        Door::Pool { size } => {
            let users = write_users(visit, &behind)?;
            let flags = [
                "--pool",
                "transaction",
                "--pool-size",
                &size.to_string(),
                "--pool-users",
                &users.display().to_string(),
            ];
            let password = Some(PASSWORD.to_owned());
            open_gate(
                visit,
                run,
                &flags.map(str::to_owned),
                Database { password, ..behind },
            )
        }
        Door::PgBouncer { size } => open_pgbouncer(visit, run, size, behind),
    }
}

impl Opened {
    /// Ends the program.
    pub fn close(self) -> Result<(), LabError> {
        Ok(self
            .process
            .stop_with(self.exit_codes, self.name, STOP_MAX)?)
    }
}

fn gate_flags(visit: &Visit<'_>, run: Run) -> Result<Vec<String>, LabError> {
    let taken_alone = format!("estimates-{}-alone.json", run.database);
    let taken_alone = visit.testbed.out().join(taken_alone);
    if run.door.is_offline() && !taken_alone.exists() {
        return Err(LabError::failed(
            run.door.to_string(),
            &"wants a run alone before it",
        ));
    }
    let takes_them = run.load == Load::Alone;
    let flags = run
        .door
        .gate_flags(run.capacity_ms, &taken_alone, takes_them);
    let mut flags = flags.unwrap_or_default();
    // As an operator sets it who knows his visitors. The application waits for its database however long, as servlets
    // do: without this the shortest first would let work wait, and at last run, of visitors who left long ago.
    let wait_max = format!("{}s", run.load.patience().as_secs());
    flags.extend(["--wait-max".to_owned(), wait_max]);
    Ok(flags)
}

fn open_gate(
    visit: &Visit<'_>,
    run: Run,
    flags: &[String],
    behind: Database,
) -> Result<(Option<Opened>, Database), LabError> {
    let (address, admin) = (free_address()?, free_address()?);
    let protocol = match run.database {
        Kind::Postgres => "postgres",
        Kind::MariaDb => "mysql",
    };
    let mut words = vec!["gate".to_owned(), protocol.to_owned()];
    words.extend(["--listen".to_owned(), address.to_string()]);
    words.extend(["--upstream".to_owned(), behind.address.to_string()]);
    words.extend(["--admin".to_owned(), admin.to_string()]);
    words.extend(["--drain", DRAIN].map(str::to_owned));
    // The application runs on this machine, and its tags name the types.
    words.extend(["--tags-from".to_owned(), "127.0.0.1".to_owned()]);
    words.extend_from_slice(flags);
    let program = visit.testbed.program();
    let process = start(visit.testbed, "gate", program, &words, &[address, admin])?;
    let opened = Opened {
        process,
        name: "gate",
        exit_codes: &[0],
        admin: Some(admin),
    };
    Ok((Some(opened), Database { address, ..behind }))
}

fn open_pgbouncer(
    visit: &Visit<'_>,
    run: Run,
    size: u32,
    behind: Database,
) -> Result<(Option<Opened>, Database), LabError> {
    if run.database != Kind::Postgres {
        return Err(LabError::failed("PgBouncer", &"speaks PostgreSQL alone"));
    }
    let address = free_address()?;
    let users = write_users(visit, &behind)?;
    let text = PGBOUNCER
        .replace("@NAME@", &behind.name)
        .replace("@PORT@", &behind.address.port().to_string())
        .replace("@LISTEN@", &address.port().to_string())
        .replace("@USERS@", &users.display().to_string())
        .replace("@SIZE@", &size.to_string());
    let configuration = visit.testbed.out().join("pgbouncer.ini");
    write_for_all(&configuration, &text)?;
    let mut words = vec!["-q".to_owned()];
    if rustix::process::geteuid().is_root() {
        words.extend(["-u".to_owned(), PGBOUNCER_USER.to_owned()]);
    }
    words.push(configuration.display().to_string());
    let program = command::find("pgbouncer", "pgbouncer")?;
    let process = start(visit.testbed, "pgbouncer", &program, &words, &[address])?;
    let opened = Opened {
        process,
        name: "pgbouncer",
        // Debian 12's ends with 1 after a signal, this year's with 0.
        exit_codes: &[0, 1],
        admin: None,
    };
    let password = Some(PASSWORD.to_owned());
    let database = Database {
        address,
        password,
        ..behind
    };
    Ok((Some(opened), database))
}

/// The file of users, which PgBouncer and the gate's pool both read.
fn write_users(visit: &Visit<'_>, behind: &Database) -> Result<PathBuf, LabError> {
    let path = visit.testbed.out().join("userlist.txt");
    write_for_all(&path, &format!("\"{}\" \"{PASSWORD}\"\n", behind.user))?;
    Ok(path)
}

/// Writes a file that PgBouncer's user can read.
fn write_for_all(path: &Path, text: &str) -> Result<(), LabError> {
    fs::write(path, text).map_err(LabError::file(path))?;
    let readable = fs::Permissions::from_mode(0o644);
    fs::set_permissions(path, readable).map_err(LabError::file(path))
}

fn free_address() -> Result<SocketAddr, LabError> {
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?)))
}
