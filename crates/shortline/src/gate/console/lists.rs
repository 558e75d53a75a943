//! Tables of clients and connections: `SHOW CLIENTS`, `SERVERS`, `POOLS`, `DATABASES`, `USERS`, `LISTS`,
//! `ACTIVE_SOCKETS`. A column with the same meaning as one of PgBouncer's has the same name.
//!
//! `ptr` and `link` are a letter and an id: `c7` is the client with the id 7, and `s3` the connection to the backend
//! with the id 3. Without a pool each client has its own connection, with the same id.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use shortline_gate::Closed;
use shortline_gate::pool::ServerView;
use shortline_gate::postgres::Table;
use shortline_gate::relay::{ClientState, ClientView};

use super::super::status::{PoolStatus, View};

/// The clients and connections of a gate at one moment.
pub struct Lists {
    clients: Vec<ClientView>,
    servers: Vec<ServerView>,
    closed: Closed,
    pool: Option<PoolStatus>,
    connections: usize,
    connections_max: usize,
    upstream: String,
    now: SystemTime,
}

/// A column and its value.
type Cell = (&'static str, String);

impl Lists {
    /// The state at this moment.
    pub fn of(view: &View) -> Self {
        let status = view.status();
        let mut clients = view.clients().map(|all| all.clients()).unwrap_or_default();
        clients.sort_by_key(|client| client.id);
        let mut servers = match view.pool() {
            Some(pool) => pool.servers(),
            None => clients.iter().map(own_server).collect(),
        };
        servers.sort_by_key(|server| server.id);
        Self {
            clients,
            servers,
            closed: view.gate().closed(),
            pool: status.pool,
            connections: status.connections.open,
            connections_max: view.connections_max(),
            upstream: status.settings.upstream,
            now: SystemTime::now(),
        }
    }

    /// Clients' connections.
    pub fn clients(&self) -> Table {
        table(self.clients.iter().map(|client| self.client(client)))
    }

    /// Connections to the backend.
    pub fn servers(&self) -> Table {
        table(self.servers.iter().map(|server| self.server(server)))
    }

    /// Clients and connections to the backend that have a unit of work.
    pub fn active_sockets(&self) -> Table {
        const SHARED: [&str; 12] = [
            "type",
            "user",
            "database",
            "state",
            "connect_time",
            "request_time",
            "wait",
            "wait_us",
            "close_needed",
            "ptr",
            "link",
            "id",
        ];
        let is_active = |client: &&ClientView| client.state != ClientState::Idle;
        let clients = self.clients.iter().filter(is_active);
        let servers = self.servers.iter().filter(|server| server.client.is_some());
        let rows = clients
            .map(|client| self.client(client))
            .chain(servers.map(|server| self.server(server)));
        table(rows.map(|mut row| {
            row.retain(|(name, _)| SHARED.contains(name));
            row
        }))
    }

    /// A row for each pair of database and user.
    pub fn pools(&self) -> Table {
        let mode = self.pool.map_or("off", |pool| pool.mode);
        table(self.pairs().into_iter().map(|((database, user), count)| {
            let waited = count.waited;
            vec![
                ("database", database),
                ("user", user),
                ("cl_active", (count.clients - count.waiting).to_string()),
                ("cl_waiting", count.waiting.to_string()),
                ("sv_active", (count.servers - count.idle).to_string()),
                ("sv_idle", count.idle.to_string()),
                ("maxwait", waited.as_secs().to_string()),
                ("maxwait_us", waited.subsec_micros().to_string()),
                ("pool_mode", mode.to_owned()),
            ]
        }))
    }

    /// Every database that has a client or a connection, or that is paused or disabled.
    pub fn databases(&self) -> Table {
        let upstream = self.upstream.as_str();
        let (host, port) = match upstream.strip_prefix("unix:") {
            Some(path) => (path, ""),
            // Several servers have no one port.
            None if upstream.contains(',') => (upstream, ""),
            None => upstream.rsplit_once(':').unwrap_or((upstream, "")),
        };
        table(self.database_names().into_iter().map(|name| {
            let is_here = |server: &&ServerView| server.database == name;
            let clients = self
                .clients
                .iter()
                .filter(|client| database_of(client) == name);
            let is = |is: bool| u8::from(is).to_string();
            vec![
                ("name", name.clone()),
                ("host", host.to_owned()),
                ("port", port.to_owned()),
                ("database", name.clone()),
                ("force_user", String::new()),
                (
                    "pool_size",
                    self.pool.map_or(0, |pool| pool.size).to_string(),
                ),
                (
                    "pool_mode",
                    self.pool.map_or("off", |pool| pool.mode).to_owned(),
                ),
                (
                    "max_connections",
                    self.pool.map_or(0, |pool| pool.size).to_string(),
                ),
                (
                    "current_connections",
                    self.servers.iter().filter(is_here).count().to_string(),
                ),
                ("max_client_connections", self.connections_max.to_string()),
                ("current_client_connections", clients.count().to_string()),
                ("paused", is(self.closed.is_closed(Some(&name)))),
                ("disabled", is(self.closed.disabled.contains(name.as_str()))),
            ]
        }))
    }

    /// Every user that has a client or a connection.
    pub fn users(&self) -> Table {
        let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for client in &self.clients {
            counts.entry(user_of(client).to_owned()).or_default().0 += 1;
        }
        for server in &self.servers {
            counts.entry(server.user.clone()).or_default().1 += 1;
        }
        table(counts.into_iter().map(|(name, (clients, servers))| {
            vec![
                ("name", name),
                ("current_connections", servers.to_string()),
                ("current_client_connections", clients.to_string()),
            ]
        }))
    }

    /// The number of items in each list.
    pub fn counts(&self) -> Table {
        let users: BTreeSet<&str> = self.clients.iter().map(user_of).collect();
        let idle = self.servers.iter().filter(|server| server.client.is_none());
        let (idle, servers) = (idle.count(), self.servers.len());
        let rows = [
            ("databases", self.database_names().len()),
            ("users", users.len()),
            ("pools", self.pairs().len()),
            ("used_clients", self.clients.len()),
            (
                "login_clients",
                self.connections.saturating_sub(self.clients.len()),
            ),
            ("free_servers", idle),
            ("used_servers", servers - idle),
        ];
        table(
            rows.into_iter()
                .map(|(list, items)| vec![("list", list.to_owned()), ("items", items.to_string())]),
        )
    }

    /// Whether work is admitted.
    pub fn state(&self) -> Table {
        let rows = [("active", !self.closed.all), ("paused", self.closed.all)];
        table(rows.into_iter().map(|(key, is)| {
            let value = if is { "yes" } else { "no" };
            vec![("key", key.to_owned()), ("value", value.to_owned())]
        }))
    }

    fn client(&self, client: &ClientView) -> Vec<Cell> {
        let about = &client.about;
        let (state, waits) = match client.state {
            ClientState::Idle => ("idle", Duration::ZERO),
            ClientState::Waiting => ("waiting", client.in_state),
            ClientState::Active => ("active", Duration::ZERO),
        };
        let link = match &self.pool {
            Some(_) => client.link,
            None => Some(client.id),
        };
        let ip = |of: Option<std::net::SocketAddr>| match of {
            Some(address) => (address.ip().to_canonical().to_string(), address.port()),
            None => ("unix".to_owned(), 0),
        };
        let ((addr, port), (local_addr, local_port)) = (ip(about.peer), ip(about.local));
        let application = about.names.application_name.as_deref();
        vec![
            ("type", "C".to_owned()),
            ("user", user_of(client).to_owned()),
            ("database", database_of(client).to_owned()),
            ("state", state.to_owned()),
            ("addr", addr),
            ("port", port.to_string()),
            ("local_addr", local_addr),
            ("local_port", local_port.to_string()),
            ("connect_time", self.time(client.open)),
            ("request_time", self.time(client.in_state)),
            ("wait", waits.as_secs().to_string()),
            ("wait_us", waits.subsec_micros().to_string()),
            ("close_needed", "0".to_owned()),
            ("ptr", format!("c{}", client.id)),
            ("link", link.map_or_else(String::new, |id| format!("s{id}"))),
            ("tls", if about.is_secure { "TLS" } else { "" }.to_owned()),
            (
                "application_name",
                application.unwrap_or_default().to_owned(),
            ),
            ("id", client.id.to_string()),
            ("state_ms", client.in_state.as_millis().to_string()),
        ]
    }

    fn server(&self, server: &ServerView) -> Vec<Cell> {
        let state = if server.client.is_some() {
            "active"
        } else {
            "idle"
        };
        let link = server.client.map(|id| format!("c{id}"));
        vec![
            ("type", "S".to_owned()),
            ("user", server.user.clone()),
            ("database", server.database.clone()),
            ("state", state.to_owned()),
            (
                "addr",
                server
                    .address
                    .as_deref()
                    .unwrap_or(&self.upstream)
                    .to_owned(),
            ),
            ("connect_time", self.time(server.open)),
            ("request_time", self.time(server.in_state)),
            ("wait", "0".to_owned()),
            ("wait_us", "0".to_owned()),
            ("close_needed", u8::from(server.is_to_close).to_string()),
            ("ptr", format!("s{}", server.id)),
            ("link", link.unwrap_or_default()),
            ("remote_pid", server.process.unwrap_or(0).to_string()),
            ("id", server.id.to_string()),
        ]
    }

    /// The time `ago` before now, such as `2026-11-25 10:00:00 UTC`.
    fn time(&self, ago: Duration) -> String {
        let at = self.now.checked_sub(ago).unwrap_or(self.now);
        // Wed, 25 Nov 2026 10:00:00 GMT
        let http = httpdate::fmt_http_date(at);
        let (day, month, year, clock) = (&http[5..7], &http[8..11], &http[12..16], &http[17..25]);
        let month = MONTHS.iter().position(|name| *name == month).unwrap_or(0) + 1;
        format!("{year}-{month:02}-{day} {clock} UTC")
    }

    fn database_names(&self) -> BTreeSet<String> {
        let clients = self.clients.iter().map(database_of);
        let servers = self.servers.iter().map(|server| server.database.as_str());
        let closed = self.closed.databases.iter().chain(&self.closed.disabled);
        let names = clients.chain(servers).chain(closed.map(|name| &**name));
        names.map(str::to_owned).collect()
    }

    fn pairs(&self) -> BTreeMap<(String, String), Count> {
        let mut pairs: BTreeMap<_, Count> = BTreeMap::new();
        for client in &self.clients {
            let pair = (database_of(client).to_owned(), user_of(client).to_owned());
            let count = pairs.entry(pair).or_default();
            count.clients += 1;
            if client.state == ClientState::Waiting {
                count.waiting += 1;
                count.waited = count.waited.max(client.in_state);
            }
        }
        for server in &self.servers {
            let pair = (server.database.clone(), server.user.clone());
            let count = pairs.entry(pair).or_default();
            count.servers += 1;
            count.idle += usize::from(server.client.is_none());
        }
        pairs
    }
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The counts of a pair of database and user.
#[derive(Default)]
struct Count {
    clients: usize,
    waiting: usize,
    waited: Duration,
    servers: usize,
    idle: usize,
}

/// A client's own connection to the backend, without a pool.
fn own_server(client: &ClientView) -> ServerView {
    ServerView {
        id: client.id,
        user: user_of(client).to_owned(),
        database: database_of(client).to_owned(),
        client: (client.state == ClientState::Active).then_some(client.id),
        process: None,
        address: None,
        open: client.open,
        in_state: client.in_state,
        is_to_close: false,
    }
}

fn user_of(client: &ClientView) -> &str {
    client.about.names.user.as_deref().unwrap_or_default()
}

fn database_of(client: &ClientView) -> &str {
    client.about.names.database.as_deref().unwrap_or_default()
}

/// A table of rows that all have the same columns.
fn table(rows: impl Iterator<Item = Vec<Cell>>) -> Table {
    let mut table = Table::default();
    for row in rows {
        let (columns, values): (Vec<_>, Vec<_>) = row.into_iter().unzip();
        table.columns = columns;
        table.rows.push(values);
    }
    if table.columns.is_empty() {
        table.columns = vec!["database"];
    }
    table
}
