//! What an idle client of a pool takes, by what is allocated and not freed. Resident memory would be that of the
//! allocator, too, and of what else the process does.
//!
//! This is a program of its own, as its allocator counts for all of it. The backend is a stub that speaks as much of the
//! protocol as this takes. The clients are sockets without memory here.
#![allow(clippy::unwrap_used)]

use std::alloc::System;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shortline_gate::classify::{Classifier, ClassifierConfig, Client, Dialect, Protocol};
use shortline_gate::pool::{PoolLimits, PoolMode};
use shortline_gate::postgres::pool::{Users, md5_of};
use shortline_gate::postgres::{Pool, PoolConfig, PostgresConfig, run};
use shortline_gate::relay::Upstream;
use shortline_gate::{Gate, GateConfig};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const POOL_SIZE: NonZeroUsize = NonZeroUsize::new(4).unwrap();
/// Those that come first: what all share is made for them.
const FIRST: usize = 50;
/// Those that are counted. Each takes two descriptors of this process, which may have 1,024.
const COUNTED: usize = 300;
const PATIENCE: Duration = Duration::from_secs(60);

/// What a client may take: a session, its task and socket, its names, and its entries among the clients.
const BYTES_MAX: usize = 4096;
/// The same with two prepared statements, whose texts are shared.
const BYTES_WITH_STATEMENTS_MAX: usize = 4608;

#[test]
fn an_idle_client_takes_few_kilobytes() {
    let gate = relay();
    let query = message(b'Q', b"select 1\0");
    let asks = |client: &mut TcpStream| assert_eq!(ask(client, &query), "CZ");
    let simple = bytes_of_each(gate, asks);
    let prepares = |client: &mut TcpStream| {
        for name in ["a", "b"] {
            let parse = message(b'P', format!("{name}\0select ${name}\0\0\0").as_bytes());
            let bind = message(b'B', format!("\0{name}\0\0\0\0\0\0\0").as_bytes());
            let execute = message(b'E', b"\0\0\0\0\0");
            let sync = message(b'S', b"");
            assert_eq!(ask(client, &[&parse[..], &sync].concat()), "1Z");
            assert_eq!(ask(client, &[&bind[..], &execute, &sync].concat()), "2CZ");
        }
    };
    let prepared = bytes_of_each(gate, prepares);
    println!("an idle client takes {simple} bytes, with two prepared statements {prepared}");
    assert!(simple <= BYTES_MAX, "{simple}");
    assert!(prepared <= BYTES_WITH_STATEMENTS_MAX, "{prepared}");
}

/// What each client takes that comes, does this, and rests.
fn bytes_of_each(gate: u16, does: impl Fn(&mut TcpStream)) -> usize {
    let come = |count: usize| {
        let clients = (0..count).map(|_| {
            let mut client = log_in(gate);
            does(&mut client);
            client
        });
        clients.collect::<Vec<_>>()
    };
    let first = come(FIRST);
    let before = at_rest();
    let counted = come(COUNTED);
    let taken = at_rest().saturating_sub(before);
    drop((first, counted));
    taken / COUNTED
}

/// The bytes in use, once they have stayed the same for a while. An answer comes before its session is done with it.
fn at_rest() -> usize {
    let begun = Instant::now();
    let mut last = in_use();
    let mut same = 0;
    while same < 20 && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
        let now = in_use();
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    last
}

fn in_use() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// A gate with a pool, for as long as the program runs, and its port.
fn relay() -> u16 {
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = Upstream {
        host: "127.0.0.1".to_owned(),
        port: backend.local_addr().unwrap().port(),
    };
    std::thread::spawn(move || {
        for socket in backend.incoming() {
            std::thread::spawn(move || serve(socket.unwrap()));
        }
    });
    let mut users = tempfile::NamedTempFile::new().unwrap();
    let stored = md5_of(&[b"secret", b"user"]);
    writeln!(users, "\"user\" \"md5{stored}\"").unwrap();
    let users = Arc::new(Users::read(users.path()).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let classifier =
                Classifier::new(&ClassifierConfig::new(Protocol::Sql(Dialect::Postgres)));
            let classifier = classifier.unwrap();
            let classify = Arc::new(move |text: &[u8], client: &Client<'_>| {
                classifier.statement(text, client)
            });
            let mut gate = GateConfig::default();
            gate.admission.running_max = Some(POOL_SIZE);
            let gate = Gate::new(gate);
            let mut config = PostgresConfig::new(upstream, classify);
            let limits = PoolLimits {
                mode: PoolMode::Transaction,
                size: POOL_SIZE,
                idle_time_max: PATIENCE,
                wait_max: PATIENCE,
                statements_max: 20,
            };
            let pool = PoolConfig {
                limits,
                users,
                lookup: None,
                cluster: None,
            };
            config.pool = Some(Pool::new(pool, &config, &gate));
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            run(listener, config, gate, std::future::pending())
                .await
                .unwrap();
        });
    });
    port
}

/// The backend's side of a connection.
fn serve(mut socket: TcpStream) {
    let mut length = [0; 4];
    socket.read_exact(&mut length).unwrap();
    let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
    socket.read_exact(&mut startup).unwrap();
    let parameters = [
        "client_encoding\0UTF8\0",
        "DateStyle\0ISO, MDY\0",
        "TimeZone\0Etc/UTC\0",
        "application_name\0\0",
    ];
    let parameters = parameters.map(|parameter| message(b'S', parameter.as_bytes()));
    let begins = [
        message(b'R', &[0; 4]),
        parameters.concat(),
        message(b'K', &[0; 8]),
        message(b'Z', b"I"),
    ];
    socket.write_all(&begins.concat()).unwrap();
    while let Some((tag, _)) = next(&mut socket) {
        let answer = match tag {
            b'P' => message(b'1', b""),
            b'B' => message(b'2', b""),
            b'E' => message(b'C', b"SELECT 1\0"),
            b'S' => message(b'Z', b"I"),
            b'Q' => [message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat(),
            _ => return,
        };
        socket.write_all(&answer).unwrap();
    }
}

/// A client that is let in.
fn log_in(port: u16) -> TcpStream {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let startup =
        b"\0\x03\0\0user\0user\0database\0shop\0application_name\0web\0client_encoding\0UTF8\0\0";
    let length = (startup.len() as u32 + 4).to_be_bytes();
    socket.write_all(&[&length[..], startup].concat()).unwrap();
    let (_, asked) = next(&mut socket).unwrap();
    let stored = md5_of(&[b"secret", b"user"]);
    let hash = md5_of(&[stored.as_bytes(), &asked[4..]]);
    let password = message(b'p', format!("md5{hash}\0").as_bytes());
    let begun = ask(&mut socket, &password);
    assert!(begun.starts_with('R') && begun.ends_with("KZ"), "{begun}");
    socket
}

/// The types of the messages with which this is answered.
fn ask(socket: &mut TcpStream, bytes: &[u8]) -> String {
    socket.write_all(bytes).unwrap();
    let mut tags = String::new();
    while !tags.ends_with('Z') {
        let (tag, _) = next(socket).unwrap();
        tags.push(char::from(tag));
    }
    tags
}

/// The next message. None at the end.
fn next(socket: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut header = [0; 5];
    socket.read_exact(&mut header).ok()?;
    let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
    let mut body = vec![0; length - 4];
    socket.read_exact(&mut body).ok()?;
    Some((header[0], body))
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[tag], length.as_slice(), body].concat()
}
