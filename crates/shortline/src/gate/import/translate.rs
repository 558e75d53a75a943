//! From the keys of a `pgbouncer.ini` to a table `[gate]`.
//!
//! The gate has one backend and one bound on its connections. So only the databases of one server are translated:
//! the server with most of them. The bound is the sum of PgBouncer's pools for these databases, with one user each.
//! Settings of single databases and users become rules and tenants ([`super::accounts`]), or are lost, and reported.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use shortline_gate::postgres::pgbouncer::{IniError, pairs};

use super::accounts::{self, Account, By};
use super::settings::{Fate, fate};
use super::text::{line_of, number, quoted, seconds};

/// A key and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// File and line.
    pub place: String,
    /// Its section.
    pub section: String,
    /// Its name.
    pub key: String,
    /// Its value, as written.
    pub value: String,
}

/// A translated configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translated {
    /// A TOML file.
    pub text: String,
    /// The number of settings that matter and are lost.
    pub lost: usize,
}

/// Why there is no translation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranslateError {
    /// A malformed list of pairs.
    #[error("{place}: {error}")]
    Pairs {
        /// Where.
        place: String,
        /// What is wrong.
        error: IniError,
    },
    /// A malformed number.
    #[error("{place}: `{value}` is no {what}")]
    Value {
        /// Where.
        place: String,
        /// The text in its place.
        value: String,
        /// What was expected.
        what: &'static str,
    },
    /// There is no database.
    #[error("no section [databases]: where is the backend?")]
    NoDatabase,
}

/// PgBouncer's default `listen_port`.
const PORT: &str = "6432";
/// PgBouncer's default `port` of a database.
const SERVER_PORT: &str = "5432";
/// The folder of Debian's PostgreSQL for its Unix sockets.
const SOCKETS: &str = "/var/run/postgresql";
/// PgBouncer's `default_pool_size`.
const POOL_SIZE: u64 = 20;
/// PgBouncer's default `max_prepared_statements`.
const STATEMENTS_MAX: u64 = 200;

/// Translates all keys. `of` names their file.
///
/// # Errors
/// [`TranslateError`]
pub fn translate(of: &str, entries: &[Entry]) -> Result<Translated, TranslateError> {
    let mut writing = Writing::default();
    let mut settings: BTreeMap<&str, &Entry> = BTreeMap::new();
    let (mut databases, mut users) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry.section.as_str() {
            "pgbouncer" => drop(settings.insert(&entry.key, entry)),
            "databases" => databases.push(Database::of(entry)?),
            "users" => {
                writing.user(entry)?;
                users.push(Account::of(By::User, entry)?);
            }
            "peers" => writing.lost(entry, "a cancel request is known to its own gate only"),
            _ => writing.lost(entry, "PgBouncer has no such section"),
        }
    }
    let settings = Settings(settings);
    let server = writing.databases(&databases)?;
    writing.listen(&settings);
    writing.key("upstream", &quoted(&server.address()));
    for database in databases.iter().filter(|each| each.server() == server) {
        users.push(Account::of(By::Database, database.entry)?);
    }
    let accounts = accounts::translate(&users, &settings)?;
    writing.pool(&databases, &settings, &server, accounts.pool)?;
    writing.tls(&settings);
    for entry in settings.0.values() {
        writing.setting(entry)?;
    }
    if let Some(by) = accounts.tenant_by {
        writing.key("tenant-by", &quoted(by));
    }
    for (entry, why) in &accounts.lost {
        writing.lost(entry, why);
    }
    let Writing { keys, notes, lost } = writing;
    let mut text = format!(
        "# Made of {of} by `shortline gate import`, for\n# shortline gate postgres --config THIS\n[gate]\n"
    );
    for line in keys.iter().chain(&notes).chain(&accounts.tables) {
        let _ = writeln!(text, "{line}");
    }
    Ok(Translated { text, lost })
}

/// The section `[pgbouncer]`.
pub struct Settings<'a>(BTreeMap<&'a str, &'a Entry>);

impl<'a> Settings<'a> {
    /// A setting, unless it is empty.
    pub fn get(&self, key: &str) -> Option<&'a Entry> {
        self.0
            .get(key)
            .copied()
            .filter(|entry| !entry.value.is_empty())
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.get(key).map(|entry| entry.value.as_str())
    }

    /// A number, or its default.
    ///
    /// # Errors
    /// [`TranslateError::Value`]
    pub fn number(&self, key: &str, default: u64) -> Result<u64, TranslateError> {
        self.get(key)
            .map_or(Ok(default), |entry| number(&entry.place, &entry.value))
    }
}

/// A line of `[databases]`.
struct Database<'a> {
    entry: &'a Entry,
    pairs: BTreeMap<String, String>,
}

/// A database server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Server {
    host: String,
    port: String,
}

impl Server {
    fn address(&self) -> String {
        if self.host.starts_with('/') {
            format!("unix:{}/.s.PGSQL.{}", self.host, self.port)
        } else if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl<'a> Database<'a> {
    fn of(entry: &'a Entry) -> Result<Self, TranslateError> {
        let pairs = pairs_of(entry)?.into_iter().collect();
        Ok(Self { entry, pairs })
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.pairs.get(name).map(String::as_str)
    }

    /// The server at the first of its hosts. A host that is a folder has a Unix socket. Without a host it is Debian's
    /// folder.
    fn server(&self) -> Server {
        let hosts = self.get("host").unwrap_or_default();
        let first = hosts.split(',').next().unwrap_or_default();
        let host = if first.is_empty() { SOCKETS } else { first };
        Server {
            host: host.to_owned(),
            port: self.get("port").unwrap_or(SERVER_PORT).to_owned(),
        }
    }
}

/// The pairs in a value.
///
/// # Errors
/// [`TranslateError::Pairs`]
pub fn pairs_of(entry: &Entry) -> Result<Vec<(String, String)>, TranslateError> {
    pairs(&entry.value).map_err(|error| TranslateError::Pairs {
        place: entry.place.clone(),
        error,
    })
}

/// The text written so far.
#[derive(Default)]
struct Writing {
    keys: Vec<String>,
    notes: Vec<String>,
    lost: usize,
}

impl Writing {
    fn key(&mut self, key: &str, value: &dyn Display) {
        self.keys.push(format!("{key} = {value}"));
    }

    fn note(&mut self, entry: &Entry, why: &str) {
        self.notes
            .push(line_of(entry, &format!("not needed: {why}")));
    }

    fn lost(&mut self, entry: &Entry, why: &str) {
        self.lost += 1;
        self.notes.push(line_of(entry, &format!("LOST: {why}")));
    }

    /// Reports the settings that are lost of one user.
    fn user(&mut self, entry: &Entry) -> Result<(), TranslateError> {
        for (name, _) in pairs_of(entry)?
            .into_iter()
            .filter(|(name, _)| !By::User.has(name))
        {
            let why = match fate(&name) {
                Some(Fate::Lost(why)) => why,
                _ => "the gate has no such setting by user",
            };
            self.lost(entry, &format!("{name}: {why}"));
        }
        Ok(())
    }

    /// Finds the server with most databases, and reports the settings that are lost of each.
    fn databases(&mut self, databases: &[Database<'_>]) -> Result<Server, TranslateError> {
        let mut counts: BTreeMap<Server, usize> = BTreeMap::new();
        for database in databases {
            *counts.entry(database.server()).or_default() += 1;
        }
        let most = counts.iter().max_by_key(|(_, count)| **count);
        let server = most.map(|(server, _)| server.clone());
        let server = server.ok_or(TranslateError::NoDatabase)?;
        for database in databases {
            self.database(database, &server);
        }
        Ok(server)
    }

    fn database(&mut self, database: &Database<'_>, server: &Server) {
        let entry = database.entry;
        if database.server() != *server {
            let address = database.server().address();
            self.lost(entry, &format!("{address} needs a gate of its own"));
            return;
        }
        for (name, value) in &database.pairs {
            let why = match name.as_str() {
                "host" if value.contains(',') => "the gate goes to the first host",
                "host" if value.starts_with('@') => "the gate uses no abstract Unix socket",
                "host" | "port" | "pool_size" | "max_db_connections" => continue,
                "dbname" if *value == entry.key || entry.key == "*" => continue,
                "dbname" => "clients have to ask for the database by its own name",
                name if By::Database.has(name) => continue,
                "min_pool_size" | "reserve_pool" | "reserve_pool_size" => {
                    self.note(
                        entry,
                        &format!("{name}: the order decides who gets a connection"),
                    );
                    continue;
                }
                "server_lifetime" | "load_balance_hosts" => {
                    self.note(entry, &format!("{name}: RECONNECT closes connections"));
                    continue;
                }
                "user" | "password" => "each client is its own user at the server",
                "client_encoding" | "datestyle" | "timezone" => "use ALTER DATABASE ... SET",
                _ => "the gate has no such setting by database",
            };
            self.lost(entry, &format!("{name}: {why}"));
        }
        if database.get("host").is_none() {
            let why = format!("host: the server's Unix socket is looked for in {SOCKETS}");
            self.note(entry, &why);
        }
    }

    fn listen(&mut self, settings: &Settings<'_>) {
        let port = settings.text("listen_port").unwrap_or(PORT);
        let mut addresses = Vec::new();
        for host in settings
            .text("listen_addr")
            .unwrap_or("127.0.0.1")
            .split(',')
        {
            match host.trim() {
                "" => {}
                "*" => addresses.push(format!("0.0.0.0:{port}")),
                "localhost" => addresses.push(format!("127.0.0.1:{port}")),
                host if host.contains(':') => addresses.push(format!("[{host}]:{port}")),
                host if host.parse::<std::net::Ipv4Addr>().is_ok() => {
                    addresses.push(format!("{host}:{port}"));
                }
                _ => {
                    if let Some(entry) = settings.get("listen_addr") {
                        self.lost(
                            entry,
                            "a name is no address to listen on: give its IP address",
                        );
                    }
                }
            }
        }
        if let Some(folder) = settings
            .text("unix_socket_dir")
            .filter(|folder| folder.starts_with('/'))
        {
            addresses.push(format!("unix:{folder}/.s.PGSQL.{port}"));
        }
        let addresses: Vec<String> = addresses.iter().map(|address| quoted(address)).collect();
        self.key("listen", &format!("[{}]", addresses.join(", ")));
    }

    fn pool(
        &mut self,
        databases: &[Database<'_>],
        settings: &Settings<'_>,
        server: &Server,
        mode: &str,
    ) -> Result<(), TranslateError> {
        let statement = settings.get("pool_mode");
        if let Some(entry) = statement.filter(|entry| entry.value == "statement") {
            self.lost(entry, "transactions of several statements are not refused");
        }
        self.key("pool", &quoted(mode));
        let default = settings.number("default_pool_size", POOL_SIZE)?;
        let bound = settings.number("max_db_connections", 0)?;
        let mut size = 0_u64;
        for database in databases.iter().filter(|each| each.server() == *server) {
            let of = |name| {
                let value = database.get(name);
                value
                    .map(|value| number(&database.entry.place, value))
                    .transpose()
            };
            let own = of("pool_size")?.unwrap_or(default);
            let bound = of("max_db_connections")?.unwrap_or(bound);
            size = size.saturating_add(if bound > 0 { own.min(bound) } else { own });
        }
        self.keys.push(
            "# All users and databases together. PgBouncer has a pool for each pair of them."
                .to_owned(),
        );
        self.key("pool-size", &size.max(1));
        let statements = settings.number("max_prepared_statements", STATEMENTS_MAX)?;
        if statements > 0 {
            self.key("pool-statements-max", &statements);
        }
        match settings.get("auth_type") {
            Some(entry) if !["md5", "scram-sha-256", "plain"].contains(&entry.value.as_str()) => {
                self.lost(
                    entry,
                    "the gate asks each client for its password (SCRAM, or MD5 of a stored hash)",
                );
            }
            _ => {}
        }
        if settings.get("auth_file").is_none() {
            self.keys.push(
                "# The gate has to know its clients: a file of \"user\" \"secret\" lines."
                    .to_owned(),
            );
            self.key("pool-users", &quoted("/etc/shortline/userlist.txt"));
        }
        if settings.get("auth_query").is_some() && settings.get("auth_user").is_none() {
            self.key("pool-auth-user", &quoted("pgbouncer"));
        }
        Ok(())
    }

    fn tls(&mut self, settings: &Settings<'_>) {
        let client = settings.get("client_tls_sslmode");
        match client.map(|entry| (entry, entry.value.as_str())) {
            Some((_, "require")) => self.key("tls-required", &true),
            Some((entry, "verify-ca" | "verify-full")) => {
                self.key("tls-required", &true);
                self.lost(entry, "the gate asks clients for no certificate");
            }
            _ => {}
        }
        let how = settings.get("server_tls_sslmode");
        let how = how.map(|entry| (entry, entry.value.as_str()));
        let authorities = settings.text("server_tls_ca_file");
        match (how, authorities) {
            (Some((entry, mode @ ("verify-ca" | "verify-full"))), Some(file)) => {
                self.key("upstream-tls", &quoted("verify-full"));
                self.key("upstream-ca", &quoted(file));
                if mode == "verify-ca" {
                    self.lost(entry, "the server's name is checked, too");
                }
            }
            (Some((entry, "verify-ca" | "verify-full")), None) => {
                self.key("upstream-tls", &quoted("require"));
                self.lost(entry, "there is no server_tls_ca_file to check by");
            }
            (Some((_, mode @ ("disable" | "require"))), _) => {
                self.key("upstream-tls", &quoted(mode));
            }
            // PgBouncer's default, and the nearest to `allow`.
            _ => self.key("upstream-tls", &quoted("prefer")),
        }
    }

    /// Translates a key of `[pgbouncer]` by its fate.
    fn setting(&mut self, entry: &Entry) -> Result<(), TranslateError> {
        let Some(fate) = fate(&entry.key) else {
            self.lost(entry, "PgBouncer 1.25 has no such key");
            return Ok(());
        };
        let value = entry.value.as_str();
        let is_on = !["", "0", "0.0"].contains(&value);
        match fate {
            Fate::Together => {}
            Fate::Needless(why) => self.note(entry, why),
            Fate::Lost(why) if is_on => self.lost(entry, why),
            Fate::Lost(_) => self.note(entry, "it is off"),
            Fate::Text(key) if is_on => self.key(key, &quoted(value)),
            Fate::Texts(key) => {
                let names = value
                    .split(',')
                    .map(str::trim)
                    .filter(|name| !name.is_empty());
                let names: Vec<String> = names.map(quoted).collect();
                if !names.is_empty() {
                    self.key(key, &format!("[{}]", names.join(", ")));
                }
            }
            Fate::Text(_) => {}
            Fate::Switch(key) if is_on => self.key(key, &true),
            Fate::Switch(_) => {}
            Fate::Number(key) => self.key(key, &number(&entry.place, value)?.max(1)),
            Fate::Seconds(key, never) if !is_on => {
                if let Some(never) = never {
                    self.key(key, &quoted(never));
                }
            }
            Fate::Seconds(key, _) => {
                self.key(key, &quoted(&seconds(&entry.place, value)?));
            }
        }
        Ok(())
    }
}
