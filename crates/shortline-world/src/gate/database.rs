//! The database. It executes statements, answers in its protocol, cancels what it is told to, and
//! sometimes ends a connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::verdict::Fault;
use crate::world::World;

/// The database, shared by all its connections.
pub struct Database {
    /// Time.
    pub world: Arc<World>,
    /// The share of statements whose connection it ends.
    kills: f64,
    connections: AtomicU32,
    sessions: Mutex<HashMap<u32, Arc<Session>>>,
    executed: Mutex<HashMap<u64, usize>>,
    busy: AtomicUsize,
}

/// One connection, as seen by the others.
#[derive(Default)]
struct Session {
    /// Signals that its statement must end.
    cancelled: Notify,
    /// The statement it executes.
    works_on: Mutex<Option<u64>>,
}

/// The result of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// It answers with this many bytes of the content named by its number.
    Rows(u64, u64),
    /// It failed by itself.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// Its connection must end without an answer.
    Killed,
    /// It begins or ends a transaction.
    Control(Control),
}

/// The effect of a statement on the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// `begin`
    Begin,
    /// `commit`, `rollback`
    End,
}

impl Database {
    /// A database without connections.
    pub fn new(world: &Arc<World>, kills: f64) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(world),
            kills,
            connections: AtomicU32::new(0),
            sessions: Mutex::default(),
            executed: Mutex::default(),
            busy: AtomicUsize::new(0),
        })
    }

    /// Adds a connection and returns its number.
    pub fn enter(&self) -> u32 {
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        self.sessions.lock().insert(number, Arc::default());
        number
    }

    /// Removes a connection.
    pub fn leave(&self, connection: u32) {
        self.sessions.lock().remove(&connection);
    }

    /// Cancels the statement of a connection, if it executes one.
    pub fn cancel(&self, connection: u32) {
        let session = self.sessions.lock().get(&connection).cloned();
        let Some(session) = session else {
            return;
        };
        let works_on = *session.works_on.lock();
        self.world.note(format_args!(
            "connection {connection} is to end {works_on:?}"
        ));
        if works_on.is_some() {
            session.cancelled.notify_one();
        }
    }

    /// How often a statement was started.
    pub fn executed(&self, number: u64) -> usize {
        self.executed.lock().get(&number).copied().unwrap_or(0)
    }

    /// The number of statements it executes.
    pub fn busy(&self) -> usize {
        self.busy.load(Ordering::Relaxed)
    }

    /// Executes a statement.
    pub async fn execute(&self, connection: u32, text: &str) -> Done {
        match text {
            "begin" => return Done::Control(Control::Begin),
            "commit" | "rollback" => return Done::Control(Control::End),
            // There is no savepoint. This is how the gate fails a transaction after refusing one of
            // its statements.
            _ if text.starts_with("ROLLBACK TO SAVEPOINT") => return Done::Failed,
            _ => {}
        }
        let Some((fails, [number, us, bytes])) = parse(text) else {
            self.world.report(Fault::Upload {
                whose: format!("connection {connection}"),
                what: format!("{text:?}"),
            });
            return Done::Failed;
        };
        let session = self.sessions.lock().get(&connection).cloned();
        let session = session.unwrap_or_default();
        *self.executed.lock().entry(number).or_default() += 1;
        self.busy.fetch_add(1, Ordering::Relaxed);
        *session.works_on.lock() = Some(number);
        self.world.note(format_args!(
            "connection {connection} works on {number} for {us} us"
        ));
        let cancelled = tokio::select! {
            biased;
            () = session.cancelled.notified() => true,
            () = self.world.sleep(us * 1000) => false,
        };
        *session.works_on.lock() = None;
        self.busy.fetch_sub(1, Ordering::Relaxed);
        if cancelled {
            self.world.note(format_args!("{number} is ended"));
            return Done::Cancelled;
        }
        if self.world.chance(self.kills) {
            self.world
                .note(format_args!("connection {connection} is killed"));
            return Done::Killed;
        }
        match fails {
            true => Done::Failed,
            false => Done::Rows(number, bytes),
        }
    }
}

/// Whether it fails, and its number, microseconds and bytes.
fn parse(text: &str) -> Option<(bool, [u64; 3])> {
    let rest = text.strip_prefix("select ")?;
    let (name, arguments) = rest.split_once('(')?;
    let mut numbers = arguments.strip_suffix(')')?.split(", ").map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some((name.starts_with("fail"), [next()?, next()?, next()?]))
}
