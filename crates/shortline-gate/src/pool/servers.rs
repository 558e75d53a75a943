//! An operator's view of the backend's connections, and the operator's `RECONNECT`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use shortline_base::roster::{Place, Roster};
use tokio::time::Instant;

/// All connections of a pool, lent and idle ones.
#[derive(Debug)]
pub struct Servers {
    roster: Arc<Roster<Server>>,
    /// The last number that was given out, of this pool's connections to whatever server.
    ids: Arc<AtomicU64>,
    lent: AtomicU64,
}

/// The names of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The user that it is logged in as.
    pub user: String,
    /// The database that it was opened in.
    pub database: String,
    /// The backend's number for it.
    pub process: Option<u32>,
}

/// A connection to the backend.
#[derive(Debug)]
pub struct Server {
    id: u64,
    names: Names,
    opened: Instant,
    /// The time when it was last lent or given back, in milliseconds since it was opened.
    since_ms: AtomicU64,
    /// The number of the client that has it. 0 while it is idle.
    client: AtomicU64,
    is_to_close: AtomicBool,
}

/// A connection to the backend at one moment.
#[derive(Clone, Debug)]
pub struct ServerView {
    /// Its number, unique in the pool since the start.
    pub id: u64,
    /// The user that it is logged in as.
    pub user: String,
    /// The database that it was opened in.
    pub database: String,
    /// The number of the client that has it. `None` while it is idle.
    pub client: Option<u64>,
    /// The backend's number for it.
    pub process: Option<u32>,
    /// Where the server listens, if there are several.
    pub address: Option<Arc<str>>,
    /// How long it has been open.
    pub open: Duration,
    /// How long it has been lent, or idle.
    pub in_state: Duration,
    /// Whether it closes when it is given back.
    pub is_to_close: bool,
}

impl Servers {
    /// None yet.
    pub fn new(ids: &Arc<AtomicU64>) -> Self {
        Self {
            roster: Arc::default(),
            ids: Arc::clone(ids),
            lent: AtomicU64::new(0),
        }
    }

    /// Adds a connection.
    pub fn enter(&self, names: Names) -> Place<Server> {
        let server = Server {
            id: self.ids.fetch_add(1, Ordering::Relaxed) + 1,
            names,
            opened: Instant::now(),
            since_ms: AtomicU64::new(0),
            client: AtomicU64::new(0),
            is_to_close: AtomicBool::new(false),
        };
        self.roster.enter(server).0
    }

    /// All connections at this moment.
    pub fn views(&self) -> Vec<ServerView> {
        let mut views = Vec::new();
        self.roster.for_each(|server| views.push(server.view()));
        views
    }

    /// Whether connections of a database, or any, have yet to close.
    pub fn any_to_close(&self, database: Option<&str>) -> bool {
        let mut any = false;
        self.roster
            .for_each(|server| any |= server.is_of(database) && server.is_to_close());
        any
    }

    /// Marks the connections of a database, or all, to close when they are given back.
    pub fn close(&self, database: Option<&str>) {
        self.roster.for_each(|server| {
            if server.is_of(database) {
                server.is_to_close.store(true, Ordering::Release);
            }
        });
    }

    /// How often a connection was lent.
    pub fn lent(&self) -> u64 {
        self.lent.load(Ordering::Relaxed)
    }

    /// Records that a connection is lent to the client of this number from `now` on.
    pub fn lend(&self, server: &Server, client: u64, now: Instant) {
        self.lent.fetch_add(1, Ordering::Relaxed);
        server.note(client, now);
    }
}

impl Server {
    /// Its number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether it closes when it is given back.
    pub fn is_to_close(&self) -> bool {
        self.is_to_close.load(Ordering::Acquire)
    }

    /// Records that it was given back at `now`.
    pub fn rest(&self, now: Instant) {
        self.note(0, now);
    }

    /// Whether it is of this database. `None` stands for any.
    pub fn is_of(&self, database: Option<&str>) -> bool {
        database.is_none_or(|name| self.names.database == name)
    }

    fn note(&self, client: u64, now: Instant) {
        let since = now.saturating_duration_since(self.opened).as_millis();
        let since_ms = u64::try_from(since).unwrap_or(u64::MAX);
        self.since_ms.store(since_ms, Ordering::Relaxed);
        self.client.store(client, Ordering::Relaxed);
    }

    fn view(&self) -> ServerView {
        let open = self.opened.elapsed();
        let since = Duration::from_millis(self.since_ms.load(Ordering::Relaxed));
        ServerView {
            id: self.id,
            user: self.names.user.clone(),
            database: self.names.database.clone(),
            client: Some(self.client.load(Ordering::Relaxed)).filter(|client| *client > 0),
            process: self.names.process,
            address: None,
            open,
            in_state: open.saturating_sub(since),
            is_to_close: self.is_to_close(),
        }
    }
}
