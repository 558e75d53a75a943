//! What scheduling costs a response that nobody waits before, and what the link's one lock costs where many workers share it.
//!
//! One operation is a whole response of 1 KB: it is submitted, granted, handed over and finished, and its connection has drained.
//! Nothing is written. Modes: `off` (nothing is scheduled), `paced` at a rate that is never reached (it asks the socket what it has
//! sent, as loopback has no device's counters), `slots` (it asks the socket what it holds), and `auto` on a link that is not full.
//! Each is measured with one worker and with 16, each of which has 64 connections of its own, of a client each. With 16 the figure
//! is the time for one response of all of them together: where the lock were no hindrance, it would be that of one worker over the
//! number of processors.

use std::hint::black_box;
use std::io::IoSlice;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Barrier};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use shortline_base::socket::Halves;
use shortline_link::{Length, Link, LinkConfig, LinkMode, TransportHandle, client_at};
use shortline_sched::units::Rate;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

const CONNECTIONS: usize = 64;
const RESPONSE_BYTES: u32 = 1000;
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = lock
}
criterion_main!(benches);

fn lock(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("invariant: a runtime");
    let _inside = runtime.enter();
    let mut group = criterion.benchmark_group("a response that nobody waits before");
    for mode in [
        LinkMode::Off,
        LinkMode::Paced,
        LinkMode::Slots,
        LinkMode::Auto,
    ] {
        for workers in [1, 16] {
            let bed = Bed::new(&runtime, mode, workers);
            group.bench_function(format!("{mode}, {workers} workers"), |bencher| {
                bencher.iter_custom(|responses| bed.time_of(responses));
            });
        }
    }
}

/// A link with the connections of some workers.
struct Bed {
    workers: Vec<Vec<TransportHandle>>,
    /// The other ends. They say nothing.
    _clients: Vec<TcpStream>,
}

impl Bed {
    fn new(runtime: &Runtime, mode: LinkMode, workers: usize) -> Self {
        let link = Link::new(LinkConfig {
            mode,
            rate: (mode == LinkMode::Paced).then(|| Rate::from_bps(1_000_000_000_000)),
            schedule_loopback: true,
            // As many as respond at once, so that none waits for another's.
            slots_max: 64,
            ..LinkConfig::default()
        });
        let link = link.expect("invariant: a link");
        let mut clients = Vec::new();
        let mut connection = || {
            let (transport, client) = runtime.block_on(connection(&link));
            clients.push(client);
            transport
        };
        let mut worker = || (0..CONNECTIONS).map(|_| connection()).collect();
        Self {
            workers: (0..workers).map(|_| worker()).collect(),
            _clients: clients,
        }
    }

    /// How long all workers take for so many responses together.
    fn time_of(&self, responses: u64) -> Duration {
        let each = responses.div_ceil(self.workers.len() as u64);
        let start = Barrier::new(self.workers.len() + 1);
        std::thread::scope(|scope| {
            for transports in &self.workers {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    respond(transports, each);
                });
            }
            start.wait();
            let begin = Instant::now();
            // The scope ends with the last of them.
            begin
        })
        .elapsed()
    }
}

async fn connection(link: &Arc<Link>) -> (TransportHandle, TcpStream) {
    let listener = TcpListener::bind((HERE, 0)).await;
    let listener = listener.expect("invariant: a socket");
    let address = listener.local_addr().expect("invariant: it is bound");
    let client = TcpStream::connect(address).await;
    let mut client = client.expect("invariant: it listens");
    let (ours, _) = listener.accept().await.expect("invariant: it has come");
    let ours = ours.into_std().expect("invariant: it is one");
    let transport = link.transport(Halves::from(ours).sending, HERE, HERE);
    // A client that has never acknowledged anything is no usual one.
    let written = transport.socket().try_write(&[IoSlice::new(b"!")]);
    written.expect("invariant: the socket is empty");
    let read = client.read_exact(&mut [0]).await;
    read.expect("invariant: it was written");
    (transport, client)
}

fn respond(transports: &[TransportHandle], responses: u64) {
    let mut context = Context::from_waker(Waker::noop());
    let clients = (1..).map(|number: u32| client_at(Ipv4Addr::from(number).into()));
    let all: Vec<_> = transports.iter().zip(clients).collect();
    for (transport, client) in all.iter().cycle().take(responses as usize) {
        let length = Length::Known(RESPONSE_BYTES.into());
        let mut job = transport
            .submit(*client, length)
            .expect("invariant: nobody waits");
        let granted = black_box(job.poll_grant(&mut context));
        assert!(
            granted.is_ready(),
            "a response waits, so this measures a queue"
        );
        job.finish(RESPONSE_BYTES);
        transport.drained();
    }
}
