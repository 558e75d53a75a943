//! The server behind the pool, whatever its protocol: what goes wrong at it, and what its connections do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::network::End;
use crate::verdict::Fault;
use crate::world::World;

/// What the gate may take to notice an end.
const SLACK_NS: u64 = 2_000_000;

/// What goes wrong, as shares of the occasions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Connections that are not accepted.
    pub refusals: f64,
    /// Logins that are never answered.
    pub hangs: f64,
    /// Logins that break off.
    pub breaks: f64,
    /// Logins behind which something follows that is no message.
    pub garbles: f64,
    /// Idle connections that the server ends in its direction.
    pub ends: f64,
    /// Statements whose connection ends without an answer, or in the middle of one.
    pub kills: f64,
    /// Answers with what nobody has asked for: a notice and a parameter, or a text.
    pub notices: f64,
}

impl Faults {
    /// Whether a connection may end at any time.
    pub fn ends_connections(&self) -> bool {
        self.ends + self.kills > 0.0
    }

    /// Whether a connection may not come about.
    pub fn hinders_logins(&self) -> bool {
        self.refusals + self.hangs + self.breaks + self.garbles > 0.0
    }
}

/// The server, shared by all its connections.
pub struct Server {
    /// Time.
    pub world: Arc<World>,
    /// What goes wrong at it.
    pub faults: Faults,
    /// How long a byte travels from the gate, where no session keeps a connection.
    delay_ns: Option<u64>,
    connections: AtomicU32,
    working: Mutex<BTreeMap<u32, Arc<Working>>>,
    executed: Mutex<BTreeMap<u64, usize>>,
    busy: AtomicUsize,
    open: AtomicUsize,
}

/// A connection, as others see it.
#[derive(Default)]
pub struct Working {
    cancelled: Notify,
    works: AtomicBool,
    /// Somebody has ended the connection.
    pub is_killed: AtomicBool,
    /// Tells an idle connection so.
    pub killed: Notify,
}

impl Server {
    /// A server without connections.
    pub fn new(world: &Arc<World>, faults: Faults, delay_ns: Option<u64>) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(world),
            faults,
            delay_ns,
            connections: AtomicU32::new(0),
            working: Mutex::default(),
            executed: Mutex::default(),
            busy: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
        })
    }

    /// A statement that was begun more than once, and how often.
    pub fn executed_twice(&self) -> Option<(u64, usize)> {
        let executed = self.executed.lock();
        let mut twice = executed.iter().filter(|(_, times)| **times > 1);
        twice.next().map(|(number, times)| (*number, *times))
    }

    /// The statements that it works on.
    pub fn busy(&self) -> usize {
        self.busy.load(Ordering::Relaxed)
    }

    /// The connections that have not ended.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// A connection begins. The result is its number.
    pub fn enter(&self) -> (u32, Arc<Working>) {
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        self.open.fetch_add(1, Ordering::Relaxed);
        let working = Arc::<Working>::default();
        self.working.lock().insert(number, Arc::clone(&working));
        (number, working)
    }

    /// A connection is over.
    pub fn leave(&self, number: u32) {
        self.working.lock().remove(&number);
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.world.note(format_args!("server {number} is closed"));
    }

    /// The statement of this connection is to end, if it has one. Returns whether there is such a connection.
    pub fn cancel(&self, number: u32) -> bool {
        let working = self.working.lock().get(&number).cloned();
        let is_there = working.is_some();
        let works = working.filter(|working| working.works.load(Ordering::Relaxed));
        self.world.note(format_args!(
            "server {number} is to cancel, {}",
            if works.is_some() {
                "and works"
            } else {
                "and does nothing"
            }
        ));
        if let Some(working) = works {
            working.cancelled.notify_one();
        }
        is_there
    }

    /// This connection is to end. Returns whether there is one.
    pub fn kill(&self, number: u32) -> bool {
        let working = self.working.lock().get(&number).cloned();
        self.world
            .note(format_args!("server {number} is to be killed"));
        if let Some(working) = &working {
            working.is_killed.store(true, Ordering::Relaxed);
            if working.works.load(Ordering::Relaxed) {
                working.cancelled.notify_one();
            }
            working.killed.notify_one();
        }
        working.is_some()
    }

    /// A pool that has seen the end of a connection lends it to nobody. `ends`: this connection has ended its
    /// direction, and has received nothing since but `what`.
    pub fn check_not_over(&self, number: u32, end: &End, ends: bool, what: &str) {
        // While a client reads slowly, the gate does not read the answer before that end, and so not the end.
        let came_ns = end.finish_came_ns().filter(|_| ends);
        let (Some(came_ns), Some(delay_ns)) = (came_ns, self.delay_ns) else {
            return;
        };
        // The way here is as long for each byte, and none is lost on it.
        let sent_ns = self.world.now_ns().saturating_sub(delay_ns);
        if sent_ns > came_ns + SLACK_NS {
            self.world.report(Fault::Upload {
                whose: format!("server {number}"),
                what: format!("{what} on a connection whose end had come"),
            });
        }
    }

    /// Works for so long on statements of these numbers. Returns whether it was cancelled.
    pub async fn work(&self, number: u32, working: &Working, us: u64, counted: &[u64]) -> bool {
        for statement in counted {
            *self.executed.lock().entry(*statement).or_default() += 1;
            self.world.note(format_args!(
                "server {number} works on {statement} for {us} us"
            ));
        }
        self.busy.fetch_add(1, Ordering::Relaxed);
        working.works.store(true, Ordering::Relaxed);
        let is_cancelled = tokio::select! {
            biased;
            () = working.cancelled.notified() => true,
            () = self.world.sleep(us * 1000) => false,
        };
        working.works.store(false, Ordering::Relaxed);
        self.busy.fetch_sub(1, Ordering::Relaxed);
        is_cancelled
    }
}
