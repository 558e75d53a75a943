//! Clients that send pgbench's select-only transaction one after the other, as many as one likes:
//! `crowd ADDRESS CLIENTS SECONDS [PROCESS]`. pgbench looks at all its sockets at each turn, so that with 5,000 clients most of
//! what it measures is itself; here a turn costs the same with 32 clients and with 5,000 (epoll, by tokio).
//!
//! All clients connect and log in at once, as user `postgres` with the password `secret`, by MD5 or SCRAM. (By SCRAM
//! each client hashes 4,096 times, which for 5,000 takes this process seconds.) Each sends a first statement at once.
//! When all have their answer, the measured seconds begin. It prints a line: how many failed, the longest and the 99th
//! percentile of the time from connecting to the first answer, transactions per second, median and 99th percentile of
//! their latency, and the processor time that PROCESS took for each.
//! The protocol: PostgreSQL 17 documentation, chapter 53.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::{backend::Message, frontend};
use rand::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Rows of pgbench's table: `pgbench -i -s 10` makes as many.
const ACCOUNTS: u32 = 1_000_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, clients, seconds, process @ ..] = arguments.as_slice() else {
        return Err("usage: crowd ADDRESS CLIENTS SECONDS [PROCESS]".into());
    };
    let process = process.first().map_or("self", String::as_str);
    let address: SocketAddr = address.parse()?;
    let clients: usize = clients.parse()?;
    let measured = Duration::from_secs(seconds.parse()?);

    let (start, started) = watch::channel(None);
    let (ready, mut all_ready) = tokio::sync::mpsc::unbounded_channel();
    let running: Vec<_> = (0..clients)
        .map(|_| tokio::spawn(client(address, ready.clone(), started.clone())))
        .collect();
    drop(ready);
    let mut first = Vec::with_capacity(clients);
    for _ in 0..clients {
        first.extend(all_ready.recv().await.flatten());
    }
    let used_before = processor_time(process)?;
    start.send(Some(Instant::now() + measured))?;

    let mut latencies = Vec::new();
    let mut failed = 0;
    for task in running {
        match task.await? {
            Ok(of_one) => latencies.extend(of_one),
            Err(error) => {
                failed += 1;
                if failed == 1 {
                    eprintln!("crowd: {error}");
                }
            }
        }
    }
    let used = processor_time(process)? - used_before;
    println!(
        "{failed} failed; first answer p99 {:.2} s, longest {:.2} s; \
         {:.0} /s, median {:.0} us, p99 {:.0} us; {:.1} us of processor time each",
        quantile(&mut first, 0.99).as_secs_f64(),
        quantile(&mut first, 1.0).as_secs_f64(),
        latencies.len() as f64 / measured.as_secs_f64(),
        quantile(&mut latencies, 0.5).as_secs_f64() * 1e6,
        quantile(&mut latencies, 0.99).as_secs_f64() * 1e6,
        used.as_secs_f64() * 1e6 / latencies.len().max(1) as f64,
    );
    Ok(())
}

/// One client: tells how long its first answer took (`None` if it failed before), then goes on from the start until
/// the end that it is given; the latency of each transaction that ended before.
async fn client(
    address: SocketAddr,
    ready: tokio::sync::mpsc::UnboundedSender<Option<Duration>>,
    mut started: watch::Receiver<Option<Instant>>,
) -> io::Result<Vec<Duration>> {
    let begin = Instant::now();
    let mut session = match connected(address).await {
        Ok(session) => session,
        Err(error) => {
            let _ = ready.send(None);
            return Err(error);
        }
    };
    let _ = ready.send(Some(begin.elapsed()));
    let end = started
        .wait_for(Option::is_some)
        .await
        .map_err(io::Error::other)?
        .expect("invariant: waited for it");
    let mut latencies = Vec::with_capacity(1024);
    loop {
        let begin = Instant::now();
        session.transaction().await?;
        let now = Instant::now();
        if now > end {
            return Ok(latencies);
        }
        latencies.push(now - begin);
    }
}

async fn connected(address: SocketAddr) -> io::Result<Session> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut session = Session {
        stream,
        sent: BytesMut::new(),
        read: BytesMut::with_capacity(1024),
    };
    session.log_in().await?;
    session.transaction().await?;
    Ok(session)
}

struct Session {
    stream: TcpStream,
    sent: BytesMut,
    read: BytesMut,
}

impl Session {
    async fn log_in(&mut self) -> io::Result<()> {
        let who = [("user", "postgres"), ("database", "postgres")];
        frontend::startup_message(who, &mut self.sent)?;
        let mut scram = None;
        loop {
            self.stream.write_all_buf(&mut self.sent).await?;
            match self.message().await? {
                Message::AuthenticationSasl(offered) => {
                    if !offered.mechanisms().any(|name| Ok(name == SCRAM_SHA_256))? {
                        return Err(io::Error::other("SCRAM-SHA-256 is not offered"));
                    }
                    let begun = ScramSha256::new(b"secret", ChannelBinding::unsupported());
                    frontend::sasl_initial_response(
                        SCRAM_SHA_256,
                        begun.message(),
                        &mut self.sent,
                    )?;
                    scram = Some(begun);
                }
                Message::AuthenticationMd5Password(asked) => {
                    let hashed = md5_hash(b"postgres", b"secret", asked.salt());
                    frontend::password_message(hashed.as_bytes(), &mut self.sent)?;
                }
                Message::AuthenticationSaslContinue(asked) => {
                    let scram = scram.as_mut().ok_or_else(unexpected)?;
                    scram.update(asked.data())?;
                    frontend::sasl_response(scram.message(), &mut self.sent)?;
                }
                Message::AuthenticationSaslFinal(proof) => {
                    scram
                        .as_mut()
                        .ok_or_else(unexpected)?
                        .finish(proof.data())?;
                }
                Message::ReadyForQuery(_) => return Ok(()),
                Message::ErrorResponse(error) => {
                    let fields = error
                        .fields()
                        .map(|field| Ok(String::from_utf8_lossy(field.value_bytes()).into_owned()));
                    return Err(io::Error::other(fields.collect::<Vec<_>>()?.join(" ")));
                }
                _ => {}
            }
        }
    }

    async fn transaction(&mut self) -> io::Result<()> {
        let account = rand::rng().random_range(1..=ACCOUNTS);
        let statement = format!("SELECT abalance FROM pgbench_accounts WHERE aid = {account};");
        frontend::query(&statement, &mut self.sent)?;
        self.stream.write_all_buf(&mut self.sent).await?;
        loop {
            match self.message().await? {
                Message::ReadyForQuery(_) => return Ok(()),
                Message::ErrorResponse(_) => return Err(io::Error::other("a statement failed")),
                _ => {}
            }
        }
    }

    async fn message(&mut self) -> io::Result<Message> {
        loop {
            if let Some(message) = Message::parse(&mut self.read)? {
                return Ok(message);
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

fn unexpected() -> io::Error {
    io::Error::other("a message of SCRAM that nobody waits for")
}

/// Processor time of a process so far, user and system (`proc_pid_stat(5)`, fields 14 and 15).
fn processor_time(process: &str) -> Result<Duration, Box<dyn Error>> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(str::parse::<u64>).sum::<Result<_, _>>()?;
    Ok(Duration::from_millis(
        ticks * 1000 / rustix::param::clock_ticks_per_second(),
    ))
}

/// The `share`-th quantile, zero of nothing.
fn quantile(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    let at = (times.len() as f64 * share).ceil() as usize;
    times.get(at.saturating_sub(1)).copied().unwrap_or_default()
}
