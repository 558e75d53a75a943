//! The PostgreSQL behind the pool: a session for each connection, and all that can go wrong with one.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use parking_lot::Mutex;
use rand::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

use super::super::postgres::{Beginning, SECRET, message, read_message};
use super::sql::{Message, Session};
use crate::network::End;
use crate::verdict::Fault;
use crate::world::World;

const MS: u64 = 1_000_000;
/// What the gate may take to notice an end.
const SLACK_NS: u64 = 2 * MS;

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
    /// Statements whose connection ends without an answer.
    pub kills: f64,
    /// Answers with a notice and a parameter before them.
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
    world: Arc<World>,
    faults: Faults,
    /// How long a byte travels from the gate, where no session keeps a connection.
    delay_ns: Option<u64>,
    connections: AtomicU32,
    working: Mutex<BTreeMap<u32, Arc<Working>>>,
    executed: Mutex<BTreeMap<u64, usize>>,
    busy: AtomicUsize,
    open: AtomicUsize,
}

/// A connection, as cancel requests see it.
#[derive(Default)]
struct Working {
    cancelled: Notify,
    works: AtomicBool,
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

    /// Serves a connection until it is over.
    pub async fn serve(self: Arc<Self>, end: End) {
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        self.open.fetch_add(1, Ordering::Relaxed);
        let working = Arc::<Working>::default();
        self.working.lock().insert(number, Arc::clone(&working));
        let serving = Connection::serve(&self, end, number, &working);
        // A client that has gone gets no more answers.
        let _ = serving.await;
        self.working.lock().remove(&number);
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.world.note(format_args!("server {number} is closed"));
    }

    fn cancel(&self, number: u32) {
        let working = self.working.lock().get(&number).cloned();
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
    }
}

struct Connection<'a> {
    server: &'a Server,
    end: End,
    number: u32,
    working: &'a Working,
    session: Session,
    /// Answers that are sent with the next ReadyForQuery, error or Flush.
    says: Vec<u8>,
    /// It has ended its direction.
    has_ended: bool,
    /// It has, and has received nothing since.
    ends: bool,
}

impl<'a> Connection<'a> {
    async fn serve(
        server: &'a Server,
        mut end: End,
        number: u32,
        working: &'a Working,
    ) -> io::Result<()> {
        let Some(startup) = read_startup(server, &mut end).await? else {
            return Ok(());
        };
        let mut parameters = startup;
        let user = parameters.remove("user").unwrap_or_default();
        parameters.remove("database");
        server
            .world
            .note(format_args!("server {number} is of {user} {parameters:?}"));
        let mut connection = Self {
            server,
            end,
            number,
            working,
            session: Session::begin(&user, &parameters),
            says: Vec::new(),
            has_ended: false,
            ends: false,
        };
        if connection.greet().await? {
            while connection.turn().await? {}
        }
        Ok(())
    }

    /// Lets the pool in. Returns whether it is.
    async fn greet(&mut self) -> io::Result<bool> {
        let (world, faults) = (&self.server.world, self.server.faults);
        let takes_ns = world.draw(|random| random.random_range(MS / 4..4 * MS));
        world.sleep(takes_ns).await;
        if world.chance(faults.hangs) {
            world.note(format_args!("server {} hangs", self.number));
            let mut rest = Vec::new();
            self.end.read_to_end(&mut rest).await?;
            return Ok(false);
        }
        self.say(b'R', &[0; 4]);
        for (name, value) in self.session.reported() {
            self.say(b'S', format!("{name}\0{value}\0").as_bytes());
        }
        if world.chance(faults.breaks) {
            world.note(format_args!("server {} breaks off", self.number));
            self.flush().await?;
            return Ok(false);
        }
        let key = [self.number.to_be_bytes(), SECRET.to_be_bytes()].concat();
        self.say(b'K', &key);
        self.say(b'Z', b"I");
        if world.chance(faults.notices) {
            self.say(b'N', b"SNOTICE\0C00000\0Mhello\0\0");
        }
        if world.chance(faults.garbles) {
            let (length, later_ns) = world.draw(|random| {
                let later = [0, MS, 30 * MS][random.random_range(0..3)];
                (random.random_range(1..40), later)
            });
            world.note(format_args!(
                "server {} garbles {length} bytes",
                self.number
            ));
            if later_ns > 0 {
                self.flush().await?;
                world.sleep(later_ns).await;
            }
            // None of them is the type of a message.
            self.says.extend(vec![0xf7; length]);
        }
        self.flush().await?;
        Ok(true)
    }

    /// Answers one message. Returns whether another may follow.
    async fn turn(&mut self) -> io::Result<bool> {
        let received = match self.idle().await? {
            Some(received) => received,
            None => return Ok(true),
        };
        let (tag, _) = &received;
        if *tag == b'X' {
            return Ok(false);
        }
        self.check_not_over(&received);
        // What follows may have been sent together with it.
        self.ends = false;
        let (us, counted) = self.session.work(&received);
        let is_cancelled = us > 0 && self.work(us, counted).await;
        let faults = self.server.faults;
        if us > 0 && self.server.world.chance(faults.kills) {
            self.server
                .world
                .note(format_args!("server {} is killed", self.number));
            if self.server.world.chance(0.5) {
                self.say(b'E', b"SFATAL\0C57P01\0Mterminating connection\0\0");
                self.flush().await?;
            }
            return Ok(false);
        }
        if is_cancelled {
            self.server
                .world
                .note(format_args!("server {} has cancelled", self.number));
        }
        let answer = self.session.handle(&received, is_cancelled);
        let is_told = answer.iter().any(|(tag, _)| matches!(tag, b'Z' | b'E'));
        if is_told && self.server.world.chance(faults.notices) {
            self.say(b'N', b"SNOTICE\0C00000\0Mby the way\0\0");
            self.say(b'S', b"in_hot_standby\0off\0");
        }
        for (tag, body) in answer {
            self.say(tag, &body);
        }
        if is_told || received.0 == b'H' {
            self.flush().await?;
        }
        Ok(true)
    }

    /// The next message. Meanwhile the server may end its direction. Then there is none.
    async fn idle(&mut self) -> io::Result<Option<Message>> {
        let world = &self.server.world;
        let rests = self.session.status() == b'I' && self.says.is_empty() && !self.has_ended;
        if !rests || !world.chance(self.server.faults.ends) {
            return read_message(&mut self.end).await.map(Some);
        }
        let after_ns = world.draw(|random| random.random_range(1..200 * MS));
        tokio::select! {
            biased;
            tag = self.end.read_u8() => {
                let tag = tag?;
                let length = self.end.read_u32().await? as usize;
                let length = length.checked_sub(4).ok_or(io::ErrorKind::InvalidData)?;
                let mut body = vec![0; length];
                self.end.read_exact(&mut body).await?;
                return Ok(Some((tag, body)));
            }
            () = world.sleep(after_ns) => {}
        }
        world.note(format_args!("server {} ends its direction", self.number));
        if world.chance(0.5) {
            self.say(b'E', b"SFATAL\0C57P01\0Mterminating connection\0\0");
            self.flush().await?;
        }
        self.end.finish();
        (self.has_ended, self.ends) = (true, true);
        Ok(None)
    }

    /// A pool that has seen the end of a connection lends it to nobody.
    fn check_not_over(&self, (tag, body): &Message) {
        // While a client reads slowly, the gate does not read the answer before that end, and so not the end.
        let came_ns = self.end.finish_came_ns().filter(|_| self.ends);
        let (Some(came_ns), Some(delay_ns)) = (came_ns, self.server.delay_ns) else {
            return;
        };
        // The way here is as long for each byte, and none is lost on it.
        let sent_ns = self.server.world.now_ns().saturating_sub(delay_ns);
        if sent_ns > came_ns + SLACK_NS {
            self.server.world.report(Fault::Upload {
                whose: format!("server {}", self.number),
                what: format!(
                    "{} {:?} on a connection whose end had come",
                    char::from(*tag),
                    super::fields::first_text(body)
                ),
            });
        }
    }

    /// Works for so long. Returns whether it was cancelled.
    async fn work(&self, us: u64, counted: Option<u64>) -> bool {
        let world = &self.server.world;
        if let Some(number) = counted {
            *self.server.executed.lock().entry(number).or_default() += 1;
            world.note(format_args!(
                "server {} works on {number} for {us} us",
                self.number
            ));
        }
        self.server.busy.fetch_add(1, Ordering::Relaxed);
        self.working.works.store(true, Ordering::Relaxed);
        let is_cancelled = tokio::select! {
            biased;
            () = self.working.cancelled.notified() => true,
            () = world.sleep(us * 1000) => false,
        };
        self.working.works.store(false, Ordering::Relaxed);
        self.server.busy.fetch_sub(1, Ordering::Relaxed);
        is_cancelled
    }

    fn say(&mut self, tag: u8, body: &[u8]) {
        self.says.extend(message(tag, body));
    }

    async fn flush(&mut self) -> io::Result<()> {
        let says = std::mem::take(&mut self.says);
        self.end.write_all(&says).await
    }
}

/// The parameters of a StartupMessage. `None` after a cancel request.
async fn read_startup(
    server: &Server,
    end: &mut End,
) -> io::Result<Option<BTreeMap<String, String>>> {
    let startup = match Beginning::read(end).await? {
        Beginning::Startup(startup) => startup,
        Beginning::Cancel(of) => {
            let takes_ns = server.world.draw(|random| random.random_range(0..2 * MS));
            server.world.sleep(takes_ns).await;
            server.cancel(of);
            return Ok(None);
        }
    };
    let texts = startup.split(|byte| *byte == 0);
    let texts: Vec<_> = texts.map(String::from_utf8_lossy).collect();
    let pairs = texts.chunks_exact(2).filter(|pair| !pair[0].is_empty());
    Ok(Some(
        pairs
            .map(|pair| (pair[0].to_string(), pair[1].to_string()))
            .collect(),
    ))
}
