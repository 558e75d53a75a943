//! How each database is initialised and started.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use super::{BedError, Sizing};
use crate::store::{Database, Kind};

/// Where Debian keeps PostgreSQL's programs, in a folder for each version.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";
/// The superuser of the new server.
const USER: &str = "bookstore";

/// The programs of a database.
#[derive(Debug)]
pub(super) struct Commands {
    kind: Kind,
    initialise: PathBuf,
    serve: PathBuf,
}

impl Commands {
    /// The installed programs.
    pub fn find(kind: Kind) -> Result<Self, BedError> {
        let (initialise, serve) = match kind {
            Kind::Postgres => ("initdb", "postgres"),
            Kind::MariaDb => ("mariadb-install-db", "mariadbd"),
        };
        Ok(Self {
            kind,
            initialise: find(kind, initialise)?,
            serve: find(kind, serve)?,
        })
    }

    /// The server's version, in numbers.
    pub fn version(&self) -> Result<String, BedError> {
        let said = Command::new(&self.serve).arg("--version").output();
        let said = said.map_err(BedError::System)?.stdout;
        let said = String::from_utf8_lossy(&said);
        let is_of_version = |sign: char| sign.is_ascii_digit() || sign == '.';
        let word = said
            .split_whitespace()
            .find(|word| word.starts_with(is_of_version));
        let end = |word: &str| word.find(|sign| !is_of_version(sign)).unwrap_or(word.len());
        Ok(word.map_or_else(String::new, |word| word[..end(word)].to_owned()))
    }

    /// The signal that ends the server at once. Nothing in it is needed any more.
    pub fn stop_signal(&self) -> &'static str {
        match self.kind {
            // It has shared memory to free.
            Kind::Postgres => "QUIT",
            Kind::MariaDb => "KILL",
        }
    }

    /// The signal on which the server writes all that it has, and ends.
    pub fn end_in_order(kind: Kind) -> Signal {
        match kind {
            Kind::Postgres => Signal::INT,
            Kind::MariaDb => Signal::TERM,
        }
    }

    /// A shell script that initialises a database in `directory`, or copies that of `copied`, and becomes its
    /// server; and how to reach the server.
    pub fn text(
        &self,
        directory: &Path,
        copied: Option<&Path>,
        port: u16,
        sizing: Sizing,
    ) -> Result<(String, Database), BedError> {
        let account = match self.kind {
            Kind::Postgres => "postgres",
            Kind::MariaDb => "mysql",
        };
        let (before, own) = if rustix::process::geteuid().is_root() {
            let switch = format!("setpriv --reuid={account} --regid={account} --init-groups ");
            (switch, format!("chown {account}: data temporary && "))
        } else {
            (String::new(), String::new())
        };
        let pinned = sizing
            .processor
            .map_or_else(String::new, |processor| format!("taskset -c {processor} "));
        let (initialise, serve) = match self.kind {
            Kind::Postgres => self.postgres(port, sizing),
            Kind::MariaDb => self.mariadb(directory, port, sizing)?,
        };
        let initialise = match copied {
            Some(copied) => format!("cp -R --preserve=mode '{}/data/.' data", copied.display()),
            None => initialise,
        };
        // As it starts, MariaDB removes the temporary tables of every other server in its folder
        // for temporary files, and a server that is being initialised then ends.
        let text = format!(
            "cd '{}' && mkdir data temporary && {own}export TMPDIR=\"$PWD/temporary\" && \
             {before}{initialise} && exec {before}{pinned}{serve}",
            directory.display()
        );
        let name = match self.kind {
            Kind::Postgres => "postgres",
            Kind::MariaDb => "bookstore",
        };
        let database = Database {
            kind: self.kind,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            user: USER.to_owned(),
            password: None,
            name: name.to_owned(),
        };
        Ok((text, database))
    }

    fn postgres(&self, port: u16, sizing: Sizing) -> (String, String) {
        let initialise = format!(
            "'{}' -D data -U {USER} -A trust -E UTF8 --locale=C --no-sync",
            self.initialise.display()
        );
        let settings = [
            format!("port={port}"),
            "listen_addresses=127.0.0.1".to_owned(),
            "unix_socket_directories=".to_owned(),
            format!("shared_buffers={}MB", sizing.buffer_mib),
            format!("max_connections={}", sizing.connections_max),
            "fsync=off".to_owned(),
            "synchronous_commit=off".to_owned(),
            "full_page_writes=off".to_owned(),
            "max_wal_size=4GB".to_owned(),
            "checkpoint_timeout=1h".to_owned(),
            // One processor per query: as many queries at once as the gate admits, no more.
            "max_parallel_workers_per_gather=0".to_owned(),
            "jit=off".to_owned(),
            // Otherwise each connection plans a statement five times before it keeps the plan.
            "plan_cache_mode=force_generic_plan".to_owned(),
        ];
        let settings: String = settings
            .iter()
            .map(|setting| format!(" -c '{setting}'"))
            .collect();
        let serve = format!("'{}' -D data{settings}", self.serve.display());
        (initialise, serve)
    }

    fn mariadb(
        &self,
        directory: &Path,
        port: u16,
        sizing: Sizing,
    ) -> Result<(String, String), BedError> {
        let first = "CREATE DATABASE IF NOT EXISTS bookstore;\n\
            CREATE USER IF NOT EXISTS bookstore@'%';\n\
            GRANT ALL PRIVILEGES ON *.* TO bookstore@'%';\n";
        fs::write(directory.join("first.sql"), first).map_err(BedError::System)?;
        let initialise = format!(
            "'{}' --no-defaults --datadir=\"$PWD/data\" --skip-test-db \
             --auth-root-authentication-method=normal >/dev/null",
            self.initialise.display()
        );
        // A server that begins with a copy reads again all pages that the other had in memory, not a quarter of them.
        let serve = format!(
            "'{}' --no-defaults --datadir=\"$PWD/data\" --init-file=\"$PWD/first.sql\" \
             --bind-address=127.0.0.1 --port={port} --socket=\"$PWD/data/socket\" \
             --skip-name-resolve --innodb-buffer-pool-size={}M --max-connections={} \
             --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 \
             --innodb-flush-method=nosync --innodb-log-file-size=512M --query-cache-type=0 \
             --innodb-buffer-pool-dump-pct=100",
            self.serve.display(),
            sizing.buffer_mib,
            sizing.connections_max,
        );
        Ok((initialise, serve))
    }
}

fn find(kind: Kind, program: &str) -> Result<PathBuf, BedError> {
    let mut folders = Vec::new();
    if kind == Kind::Postgres {
        folders.extend(postgres_folders().unwrap_or_default());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path));
    folders.push("/usr/sbin".into());
    let found = folders
        .into_iter()
        .map(|folder| folder.join(program))
        .find(|path| path.is_file());
    found.ok_or_else(|| BedError::Missing {
        program: program.to_owned(),
        package: match kind {
            Kind::Postgres => "postgresql",
            Kind::MariaDb => "mariadb-server",
        },
    })
}

/// The newest version first.
fn postgres_folders() -> io::Result<Vec<PathBuf>> {
    let mut versions = Vec::new();
    for entry in fs::read_dir(POSTGRES_VERSIONS)? {
        let entry = entry?;
        let version = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let version: Option<u32> = version;
        versions.extend(version.map(|version| (version, entry.path().join("bin"))));
    }
    versions.sort_unstable_by(|one, other| other.cmp(one));
    Ok(versions.into_iter().map(|(_, folder)| folder).collect())
}
