//! A PostgreSQL of the tests' own, and the programs that come with it.
//!
//! A shell keeps it: when the tests end, however they end, the shell's input ends, and it stops the
//! server and removes its folder.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::{Mutex, OnceLock};

/// Runs as the child's whole program: `$1` the programs' folder, `$2` our folder, `$3` the port, `$4` whether it
/// begins empty. Commands are lines: `start`, `stop`, `crash`, and `follow PORT`, which makes it a replica of the
/// server at that port, whatever it was. Each is answered with a line.
const KEEPER: &str = r#"
bin=$1 folder=$2 port=$3 empty=$4
as= ; [ "$(id -u)" = 0 ] && as='setpriv --reuid=postgres --regid=postgres --clear-groups'
[ -z "$as" ] || chown -R postgres:postgres "$folder"
init() {
    $as "$bin/initdb" -D "$folder/data" -N -U postgres -A trust >"$folder/initdb.log" 2>&1
    $as cp "$folder/server.crt" "$folder/server.key" "$folder/data/"
    $as chmod 600 "$folder/data/server.key"
    $as sh -c 'cat "$1/postgresql.conf" >>"$1/data/postgresql.conf"; cp "$1/pg_hba.conf" "$1/data/"' sh "$folder"
}
[ "$empty" = yes ] || init
follow() {
    rm -rf "$folder/data"
    $as "$bin/pg_basebackup" -h 127.0.0.1 -p "$1" -U postgres -D "$folder/data" -R -X stream -c fast \
        >>"$folder/log" 2>&1 </dev/null
}
start() {
    $as "$bin/postgres" -D "$folder/data" -p "$port" >>"$folder/log" 2>&1 </dev/null &
    pid=$!
    until "$bin/pg_isready" -q -h 127.0.0.1 -p "$port"; do
        kill -0 $pid 2>/dev/null || break
        sleep 0.05
    done
}
end() { kill -s "$1" $pid 2>/dev/null; wait $pid; }
while read -r command; do
    case $command in
        start) start ;;
        stop) end INT ;;
        crash) end QUIT ;;
        follow*) follow "${command#follow }" ;;
    esac
    echo "$command"
done
end INT
rm -rf "$folder"
"#;

const CONFIGURATION: &str = "
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
max_connections = 120
shared_buffers = 16MB
ssl = on
log_line_prefix = '%p '
wal_level = logical
";

const AUTHENTICATION: &str = "
hostssl all tls 127.0.0.1/32 trust
host all tls 127.0.0.1/32 reject
host all scram 127.0.0.1/32 scram-sha-256
host all md5 127.0.0.1/32 md5
host all all 127.0.0.1/32 trust
host replication all 127.0.0.1/32 trust
";

/// What every cluster has.
const ROLES: &str = "
create role tls login;
create role scram login password 'secret';
set password_encryption = 'md5';
create role md5 login replication password 'secret';
grant all on schema public to public;
";

/// A running PostgreSQL.
pub struct Cluster {
    /// Where it listens on 127.0.0.1.
    pub port: u16,
    bin: PathBuf,
    folder: PathBuf,
    _keeper: Child,
    talk: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Cluster {
    /// The one that tests share which leave it running.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    /// One of a test's own.
    pub fn start() -> Option<Self> {
        let cluster = Self::make(false)?;
        cluster.tell("start");
        let roles = cluster.psql(cluster.port, &[], &["-c", ROLES]);
        assert!(roles.status.success(), "{roles:?}");
        Some(cluster)
    }

    /// One of a test's own that follows `primary`.
    pub fn replica_of(primary: &Self) -> Option<Self> {
        let cluster = Self::make(true)?;
        cluster.tell(&format!("follow {}", primary.port));
        cluster.tell("start");
        Some(cluster)
    }

    fn make(is_empty: bool) -> Option<Self> {
        let Some(bin) = programs() else {
            eprintln!("skipped: no PostgreSQL server in /usr/lib/postgresql (Debian: postgresql)");
            return None;
        };
        let folder = tempfile::tempdir().unwrap().keep();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let files = [
            ("server.crt", made.cert.pem()),
            ("server.key", made.signing_key.serialize_pem()),
            ("postgresql.conf", CONFIGURATION.to_owned()),
            ("pg_hba.conf", AUTHENTICATION.to_owned()),
        ];
        for (name, text) in files {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let port = free_port();
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .args([&bin, &folder])
            .args([
                port.to_string().as_str(),
                if is_empty { "yes" } else { "no" },
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let talk = (
            keeper.stdin.take().unwrap(),
            BufReader::new(keeper.stdout.take().unwrap()),
        );
        Some(Self {
            port,
            bin,
            folder,
            _keeper: keeper,
            talk: Mutex::new(talk),
        })
    }

    /// `start`, `stop`, `crash` or `follow PORT`; returns when it is done.
    pub fn tell(&self, command: &str) {
        let mut talk = self.talk.lock().unwrap();
        writeln!(talk.0, "{command}").unwrap();
        let mut answer = String::new();
        talk.1.read_line(&mut answer).unwrap();
        assert_eq!(answer.trim(), command);
    }

    /// The server's own certificate and key.
    pub fn certificate(&self) -> (PathBuf, PathBuf) {
        (
            self.folder.join("server.crt"),
            self.folder.join("server.key"),
        )
    }

    /// What it shows as its certificate from its next start on.
    pub fn show(&self, cert: &str, key: &str) {
        for (name, text) in [("server.crt", cert), ("server.key", key)] {
            std::fs::write(self.folder.join(name), text).unwrap();
            // The file stays its owner's.
            std::fs::write(self.folder.join("data").join(name), text).unwrap();
        }
    }

    /// Runs psql against `port`.
    pub fn psql(&self, port: u16, environment: &[(&str, &str)], arguments: &[&str]) -> Output {
        self.program(
            "psql",
            port,
            environment,
            &[&["-XAtq", "-v", "ON_ERROR_STOP=1"], arguments].concat(),
        )
    }

    /// Runs a program of PostgreSQL's against `port`.
    pub fn program(
        &self,
        name: &str,
        port: u16,
        environment: &[(&str, &str)],
        arguments: &[&str],
    ) -> Output {
        Command::new(self.bin.join(name))
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", port.to_string())
            .env("PGUSER", "postgres")
            .env("PGDATABASE", "postgres")
            .env("PGCONNECT_TIMEOUT", "20")
            .envs(environment.iter().copied())
            .args(arguments)
            .output()
            .unwrap()
    }
}

/// A port at which nobody listens.
pub fn free_port() -> u16 {
    shortline_base::port::free_port().unwrap()
}

/// Debian's newest.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    versions
        .filter_map(|version| Some(version.ok()?.path().join("bin")))
        .filter(|bin| has(bin, "postgres") && has(bin, "psql"))
        .max()
}

fn has(bin: &Path, name: &str) -> bool {
    bin.join(name).exists()
}
