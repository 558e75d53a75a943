//! Transactions through the pool: what the gate does between its sockets, which are in memory here. A client asks, the
//! database answers, and what is counted is each poll of the clients' sessions.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use shortline_base::alarm::Alarm;
use shortline_base::world::{self, Boxed, DiskRead, Stream, World};
use shortline_gate::classify::{Classifier, ClassifierConfig, Client, Dialect, Protocol};
use shortline_gate::pool::{PoolLimits, PoolMode};
use shortline_gate::postgres::pool::{Users, md5_of};
use shortline_gate::postgres::{Pool, PoolConfig, PostgresConfig, PostgresRelay};
use shortline_gate::relay::{Socket, Upstream};
use shortline_gate::{Gate, GateConfig};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};

const PIPE_BYTES: usize = 4096;
/// More than any answer of the database or message of a client.
const READ_BYTES: usize = 1024;
const TRANSACTIONS: usize = 100;
const PATIENCE: Duration = Duration::from_secs(3600);

/// A poll of a session, in a function of its own for each path.
type Counted = fn(Pin<&mut dyn Future<Output = ()>>, &mut Context<'_>) -> Poll<()>;

#[inline(never)]
fn simple(session: Pin<&mut dyn Future<Output = ()>>, context: &mut Context<'_>) -> Poll<()> {
    std::hint::black_box(1);
    session.poll(context)
}

#[inline(never)]
fn prepared(session: Pin<&mut dyn Future<Output = ()>>, context: &mut Context<'_>) -> Poll<()> {
    std::hint::black_box(2);
    session.poll(context)
}

#[inline(never)]
fn extended(session: Pin<&mut dyn Future<Output = ()>>, context: &mut Context<'_>) -> Poll<()> {
    std::hint::black_box(3);
    session.poll(context)
}

#[inline(never)]
fn transaction(session: Pin<&mut dyn Future<Output = ()>>, context: &mut Context<'_>) -> Poll<()> {
    std::hint::black_box(4);
    session.poll(context)
}

#[inline(never)]
fn waiting(session: Pin<&mut dyn Future<Output = ()>>, context: &mut Context<'_>) -> Poll<()> {
    std::hint::black_box(5);
    session.poll(context)
}

#[inline(never)]
fn crowded(session: Pin<&mut dyn Future<Output = ()>>, context: &mut Context<'_>) -> Poll<()> {
    std::hint::black_box(6);
    session.poll(context)
}

#[inline(never)]
fn uncounted(session: Pin<&mut dyn Future<Output = ()>>, context: &mut Context<'_>) -> Poll<()> {
    std::hint::black_box(7);
    session.poll(context)
}

/// Runs the paths that are wanted, by their names.
pub fn run(is_wanted: impl Fn(&str) -> bool) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().build();
    let runtime = runtime.expect("invariant: a runtime without I/O");
    let paths: [(&str, Counted, Script, usize); 6] = [
        ("pool::simple", simple, by_text, 1),
        ("pool::prepared", prepared, by_name, 1),
        ("pool::extended", extended, without_name, 1),
        ("pool::transaction", transaction, in_transaction, 1),
        ("pool::waiting", waiting, by_text, 32),
        ("pool::crowded", crowded, by_text, 1000),
    ];
    let paths = paths.into_iter().filter(|(name, ..)| is_wanted(name));
    for (_, counted, script, clients) in paths {
        // All that is polled here is in memory: nothing else waits for its turn.
        runtime.block_on(tokio::task::unconstrained(async {
            let wire = Rc::new(Wire::default());
            let life = world::enter(wire.clone());
            let mut bed = Bed::new(wire);
            for _ in 0..clients {
                bed.log_in().await;
            }
            bed.transact(counted, script).await;
            drop(life);
        }));
    }
}

/// What a client sends in one of its transactions, message group by message group, each of which is answered.
type Script = fn(usize) -> Vec<Vec<u8>>;

fn by_text(number: usize) -> Vec<Vec<u8>> {
    vec![query(&format!(
        "SELECT abalance FROM pgbench_accounts WHERE aid = {number};"
    ))]
}

fn by_name(_: usize) -> Vec<Vec<u8>> {
    vec![executed("P0_0")]
}

fn without_name(_: usize) -> Vec<Vec<u8>> {
    let text = "SELECT abalance FROM pgbench_accounts WHERE aid = $1;";
    let parse = message(b'P', format!("\0{text}\0\0\0").as_bytes());
    vec![[parse, executed("")].concat()]
}

fn in_transaction(number: usize) -> Vec<Vec<u8>> {
    vec![
        query("BEGIN"),
        query(&format!(
            "SELECT i_title, i_cost FROM item WHERE i_id = {number}"
        )),
        query(&format!(
            "UPDATE cart SET qty = {number} WHERE sc_id = 17 AND i_id = 4"
        )),
        query("COMMIT"),
    ]
}

fn executed(name: &str) -> Vec<u8> {
    let bind = format!("\0{name}\0\0\0\0\x01\0\0\0\x0512345\0\0");
    [
        message(b'B', bind.as_bytes()),
        message(b'D', b"P\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'S', b""),
    ]
    .concat()
}

/// The sessions of one gate, their clients, and the database.
struct Bed {
    wire: Rc<Wire>,
    relay: PostgresRelay,
    sessions: Vec<Pin<Box<dyn Future<Output = ()>>>>,
    clients: Vec<DuplexStream>,
    woken: Arc<Woken>,
    wakers: Vec<Waker>,
}

/// The connections to the database, and whether each is in a transaction.
#[derive(Default)]
struct Wire(RefCell<Vec<(DuplexStream, Vec<u8>, bool)>>);

/// The sessions that are to be polled.
#[derive(Default)]
struct Woken(Mutex<VecDeque<usize>>);

struct Wakes(Arc<Woken>, usize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        let mut woken = self.0.0.lock().expect("invariant: nothing panics");
        if !woken.contains(&self.1) {
            woken.push_back(self.1);
        }
    }
}

impl Bed {
    fn new(wire: Rc<Wire>) -> Self {
        let classifier = Classifier::new(&ClassifierConfig::new(Protocol::Sql(Dialect::Postgres)));
        let classifier = classifier.expect("invariant: there are no rules");
        let classify =
            Arc::new(move |text: &[u8], client: &Client<'_>| classifier.statement(text, client));
        let size = NonZeroUsize::new(1).expect("invariant: one is not zero");
        let mut gate = GateConfig::default();
        gate.admission.running_max = Some(size);
        let gate = Gate::new(gate);
        let upstream = Upstream {
            host: "database".to_owned(),
            port: 5432,
        };
        let mut config = PostgresConfig::new(upstream, classify);
        let file = std::env::temp_dir().join(format!("instructions-{}", std::process::id()));
        let stored = md5_of(&[b"secret", b"user"]);
        std::fs::write(&file, format!("\"user\" \"md5{stored}\"\n")).expect("a folder for files");
        let users = Users::read(&file).expect("invariant: a line of a user");
        std::fs::remove_file(&file).expect("invariant: it is there");
        let pool = PoolConfig {
            limits: PoolLimits {
                mode: PoolMode::Transaction,
                size,
                idle_time_max: PATIENCE,
                wait_max: PATIENCE,
                statements_max: 20,
            },
            users: Arc::new(users),
            lookup: None,
            cluster: None,
        };
        config.pool = Some(Pool::new(pool, &config, &gate));
        Self {
            wire,
            relay: PostgresRelay::new(config, gate),
            sessions: Vec::new(),
            clients: Vec::new(),
            woken: Arc::default(),
            wakers: Vec::new(),
        }
    }

    /// One more client, which has prepared what it executes by name.
    async fn log_in(&mut self) {
        let (client, ours) = duplex(PIPE_BYTES);
        let ours: Box<dyn Stream> = Box::new(ours);
        let relay = self.relay.clone();
        let peer = ([127, 0, 0, 1], 1).into();
        self.sessions.push(Box::pin(async move {
            relay.serve(Socket::from(ours), peer).await;
        }));
        self.clients.push(client);
        let number = self.sessions.len() - 1;
        let waker = Waker::from(Arc::new(Wakes(Arc::clone(&self.woken), number)));
        waker.wake_by_ref();
        self.wakers.push(waker);
        let startup = b"\0\x03\0\0user\0user\0database\0shop\0application_name\0pgbench\0client_encoding\0UTF8\0\0";
        let length = (startup.len() as u32 + 4).to_be_bytes();
        self.say(number, &[&length[..], startup].concat());
        let asked = self.answer(number, b'R').await;
        let stored = md5_of(&[b"secret", b"user"]);
        let hash = md5_of(&[stored.as_bytes(), &asked[asked.len() - 4..]]);
        self.say(number, &message(b'p', format!("md5{hash}\0").as_bytes()));
        self.answer(number, b'Z').await;
        let text = "SELECT abalance FROM pgbench_accounts WHERE aid = $1;";
        let parse = message(b'P', format!("P0_0\0{text}\0\0\0").as_bytes());
        self.say(number, &[parse, message(b'S', b"")].concat());
        self.answer(number, b'Z').await;
    }

    /// Runs transactions, of which the last are counted: what is made once is not. Every client has one under way or waits for
    /// its turn.
    async fn transact(&mut self, counted: Counted, script: Script) {
        let uncounted_first = self.clients.len() + 200;
        let mut under_way: Vec<VecDeque<Vec<u8>>> = Vec::new();
        let (mut begun, mut ended) = (0, 0);
        for client in 0..self.clients.len() {
            let mut messages = VecDeque::from(script(begun));
            begun += 1;
            if let Some(first) = messages.pop_front() {
                self.say(client, &first);
            }
            under_way.push(messages);
        }
        while ended < uncounted_first + TRANSACTIONS {
            let is_first = ended < uncounted_first;
            let polled = self.poll(if is_first { uncounted } else { counted });
            self.wire.answer_all();
            tokio::task::yield_now().await;
            for client in polled {
                if !self.is_answered(client) {
                    continue;
                }
                if under_way[client].is_empty() {
                    ended += 1;
                    under_way[client].extend(script(begun));
                    begun += 1;
                }
                if let Some(next) = under_way[client].pop_front() {
                    self.say(client, &next);
                }
            }
        }
    }

    /// Polls the sessions that were woken, and returns which these were.
    fn poll(&mut self, counted: Counted) -> Vec<usize> {
        let mut polled = Vec::new();
        loop {
            let next = self
                .woken
                .0
                .lock()
                .expect("invariant: nothing panics")
                .pop_front();
            let Some(number) = next else { return polled };
            polled.push(number);
            let mut context = Context::from_waker(&self.wakers[number]);
            let polled = counted(self.sessions[number].as_mut(), &mut context);
            assert!(
                polled.is_pending(),
                "the session of client {number} has ended"
            );
        }
    }

    fn say(&mut self, client: usize, bytes: &[u8]) {
        write(&mut self.clients[client], bytes);
    }

    /// Whether a ReadyForQuery has come.
    fn is_answered(&mut self, client: usize) -> bool {
        let come = read(&mut self.clients[client]);
        come.len() >= 6 && come[come.len() - 6] == b'Z'
    }

    /// What has come once a message of this type has.
    async fn answer(&mut self, client: usize, tag: u8) -> Vec<u8> {
        let mut come = Vec::new();
        loop {
            self.poll(uncounted);
            self.wire.answer_all();
            tokio::task::yield_now().await;
            come.extend(read(&mut self.clients[client]));
            if tags(&come).contains(&tag) {
                return come;
            }
        }
    }
}

impl Wire {
    /// Answers whatever has come.
    fn answer_all(&self) {
        for (stream, come, is_open) in self.0.borrow_mut().iter_mut() {
            come.extend(read(stream));
            let mut said = Vec::new();
            while let Some(length) = whole(come) {
                let taken: Vec<u8> = come.drain(..length).collect();
                said.extend(answer(&taken, is_open));
            }
            write(stream, &said);
        }
    }
}

/// The length of the first message, if it has come. A StartupMessage has no type.
fn whole(come: &[u8]) -> Option<usize> {
    let skip = usize::from(come.first() != Some(&0));
    let length = come.get(skip..skip + 4)?;
    let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize + skip;
    (come.len() >= length).then_some(length)
}

fn answer(message_come: &[u8], is_open: &mut bool) -> Vec<u8> {
    let row = b"\0\x01\0\0\0\x05-1234";
    let field = b"\0\x01abalance\0\0\0\x40\x01\0\x03\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
    let (described, row) = (message(b'T', field), message(b'D', row));
    let done = message(b'C', b"SELECT 1\0");
    let ready = |is_open: bool| message(b'Z', if is_open { b"T" } else { b"I" });
    match message_come[0] {
        0 => [
            message(b'R', &[0; 4]),
            message(b'S', b"client_encoding\0UTF8\0"),
            message(b'S', b"DateStyle\0ISO, MDY\0"),
            message(b'S', b"TimeZone\0Etc/UTC\0"),
            message(b'S', b"application_name\0\0"),
            message(b'K', &[0; 8]),
            ready(false),
        ]
        .concat(),
        b'P' => message(b'1', b""),
        b'B' => message(b'2', b""),
        b'D' => described,
        b'E' => [row, done].concat(),
        b'S' => ready(*is_open),
        b'Q' => match &message_come[5..] {
            b"BEGIN\0" => {
                *is_open = true;
                [message(b'C', b"BEGIN\0"), ready(true)].concat()
            }
            b"COMMIT\0" => {
                *is_open = false;
                [message(b'C', b"COMMIT\0"), ready(false)].concat()
            }
            _ => [described, row, done, ready(*is_open)].concat(),
        },
        tag => unreachable!("a message {} of the gate's", char::from(tag)),
    }
}

impl World for Wire {
    fn now_ns(&self) -> u64 {
        0
    }

    fn alarm(&self) -> Box<dyn Alarm> {
        unreachable!("the gate sets no alarm of the link's")
    }

    fn connect(&self, _: &str, _: u16) -> Boxed<io::Result<Box<dyn Stream>>> {
        let (ours, theirs) = duplex(PIPE_BYTES);
        self.0.borrow_mut().push((ours, Vec::new(), false));
        let theirs: Box<dyn Stream> = Box::new(theirs);
        Box::pin(std::future::ready(Ok(theirs)))
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }

    fn disk_read(&self, _: bool) -> DiskRead {
        DiskRead::There
    }

    fn random(&self) -> u64 {
        unreachable!("nothing here goes by chance")
    }
}

/// What has come, without waiting.
fn read(stream: &mut DuplexStream) -> Vec<u8> {
    let mut bytes = [0; READ_BYTES];
    let mut buffer = ReadBuf::new(&mut bytes);
    let mut context = Context::from_waker(Waker::noop());
    let read = Pin::new(stream).poll_read(&mut context, &mut buffer);
    match read {
        Poll::Ready(Ok(())) => buffer.filled().to_vec(),
        _ => Vec::new(),
    }
}

fn write(stream: &mut DuplexStream, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let mut context = Context::from_waker(Waker::noop());
    let written = Pin::new(stream).poll_write(&mut context, bytes);
    assert!(
        matches!(written, Poll::Ready(Ok(length)) if length == bytes.len()),
        "{written:?}"
    );
}

/// The types of the messages in these bytes.
fn tags(mut come: &[u8]) -> Vec<u8> {
    let mut tags = Vec::new();
    while let Some(length) = come.get(1..5) {
        let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize + 1;
        tags.push(come[0]);
        come = come.get(length..).unwrap_or_default();
    }
    tags
}

fn query(text: &str) -> Vec<u8> {
    message(b'Q', format!("{text}\0").as_bytes())
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[tag], length.as_slice(), body].concat()
}
