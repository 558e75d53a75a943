//! The backend's connections as an operator sees them, and their end at his word (`RECONNECT`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use shortline_base::roster::{Place, Roster};
use tokio::time::Instant;

/// All connections of a pool, lent and idle ones.
#[derive(Debug, Default)]
pub struct Servers {
    roster: Arc<Roster<Server>>,
    opened: AtomicU64,
    lent: AtomicU64,
}

/// Whose it is, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// Who is logged in.
    pub user: String,
    /// The database, or the one that it was opened in.
    pub database: String,
    /// The backend's number for it.
    pub process: Option<u32>,
}

/// One of them.
#[derive(Debug)]
pub struct Server {
    id: u64,
    names: Names,
    opened: Instant,
    /// When it was last lent or given back, in milliseconds since it was opened.
    since_ms: AtomicU64,
    /// The number of the client that has it; 0 for nobody.
    client: AtomicU64,
    is_to_close: AtomicBool,
}

/// One of them as it is now.
#[derive(Clone, Debug)]
pub struct ServerView {
    /// Its number, which no other of the pool has or had.
    pub id: u64,
    /// Who is logged in.
    pub user: String,
    /// Where.
    pub database: String,
    /// The number of the client that has it.
    pub client: Option<u64>,
    /// The backend's number for it.
    pub process: Option<u32>,
    /// How long it is open.
    pub open: Duration,
    /// How long it is lent, or idle.
    pub in_state: Duration,
    /// Whether it is closed once it is given back.
    pub is_to_close: bool,
}

impl Servers {
    /// A connection of these names is open.
    pub fn enter(&self, names: Names) -> Place<Server> {
        let server = Server {
            id: self.opened.fetch_add(1, Ordering::Relaxed) + 1,
            names,
            opened: Instant::now(),
            since_ms: AtomicU64::new(0),
            client: AtomicU64::new(0),
            is_to_close: AtomicBool::new(false),
        };
        self.roster.enter(server).0
    }

    /// All of them now.
    pub fn views(&self) -> Vec<ServerView> {
        let mut views = Vec::new();
        self.roster.for_each(|server| views.push(server.view()));
        views
    }

    /// How many of a database, or of all, are open; and whether some of them are to close yet.
    pub fn count(&self, database: Option<&str>) -> (usize, bool) {
        let (mut count, mut are_to_close) = (0, false);
        self.roster.for_each(|server| {
            if server.is_of(database) {
                count += 1;
                are_to_close |= server.is_to_close();
            }
        });
        (count, are_to_close)
    }

    /// Those of a database, or all, close once they are given back.
    pub fn close(&self, database: Option<&str>) {
        self.roster.for_each(|server| {
            if server.is_of(database) {
                server.is_to_close.store(true, Ordering::Release);
            }
        });
    }

    /// How often one was lent.
    pub fn lent(&self) -> u64 {
        self.lent.load(Ordering::Relaxed)
    }

    /// One is lent to the client of this number.
    pub fn lend(&self, server: &Server, client: u64) {
        self.lent.fetch_add(1, Ordering::Relaxed);
        server.note(client);
    }
}

impl Server {
    /// Its number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether it closes once it is given back.
    pub fn is_to_close(&self) -> bool {
        self.is_to_close.load(Ordering::Acquire)
    }

    /// Nobody has it now.
    pub fn rest(&self) {
        self.note(0);
    }

    /// Whether it is of this database, or any is meant.
    pub fn is_of(&self, database: Option<&str>) -> bool {
        database.is_none_or(|name| self.names.database == name)
    }

    fn note(&self, client: u64) {
        let since = self.opened.elapsed().as_millis();
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
            open,
            in_state: open.saturating_sub(since),
            is_to_close: self.is_to_close(),
        }
    }
}
