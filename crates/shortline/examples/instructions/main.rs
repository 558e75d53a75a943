//! The hot paths, for callgrind to count the instructions of: `scripts/instructions` holds each to what
//! `scripts/instructions.txt` has of it, and 5 % more. A count does not depend on how busy the machine is, so it shows
//! a few per cent where no clock would.
//!
//! | function | what is counted |
//! |---|---|
//! | `grant_srpt`, `grant_shares` | 1,000 grants of the link's scheduler, 1,000 jobs of 100 clients waiting: take, record, resume |
//! | `classify` | the type of 100 statements, of two forms and with other constants each time |
//! | `admit` | 100 requests at a gate where 100 wait: finish, admit, arrive |
//! | `scan` | where the 200 messages of a piece of a PostgreSQL stream begin |
//! | `answer` | the heads of 100 responses of a backend over HTTP/1.1, on a connection that is kept |
//! | `heads` | the heads of 100 requests of a client over HTTP/1.1, on a connection that is kept, and those of their responses |
//! | `streams` | 100 requests over HTTP/2, each with an answer of 1 KB |
//! | `pool::simple`, `pool::prepared`, `pool::extended` | 100 transactions of one client through the pool, as pgbench's select-only ones: by their text, a named statement, one without a name |
//! | `pool::transaction` | 100 transactions of BEGIN, two statements and COMMIT |
//! | `pool::waiting`, `pool::crowded` | 100 of `simple`, where 31 and 999 clients wait for the one connection |
//!
//! Callgrind counts while one of these functions runs, so what makes their arguments is left out. The plan of a
//! file is missing: a site opens its folder with `openat2`, which valgrind 3.19 does not know.

mod pool;

use std::collections::VecDeque;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::task::{Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use shortline_gate::classify::{Classifier, ClassifierConfig, Client, Dialect, Protocol};
use shortline_gate::postgres::frame::Scanner;
use shortline_http2::{Limits, Request, Server};
use shortline_sched::admission::{
    Admission, AdmissionConfig, Capacity, Order, Outcome, RequestId, TypeId,
};
use shortline_sched::{Client as Owner, JobSpec, Policy, Scheduler, SchedulerConfig};
use shortline_web::http1;
use shortline_web::message::memory::Memory;
use shortline_web::proxy::http1::head;

const JOBS: u64 = 1_000;
const GRANTS: u64 = 1_000;
const QUANTUM: u64 = 4_344;
const ROUNDS: u64 = 100;
const WAITING: usize = 100;
const MESSAGES: u32 = 200;
/// The most bytes and fields of a head: a route's defaults.
const HEAD_LIMITS: (usize, usize) = (64 * 1024, 100);

/// Runs the path that is named, or all.
fn main() {
    let wanted = std::env::args().nth(1);
    let is_wanted = |path: &str| wanted.as_deref().is_none_or(|wanted| wanted == path);
    if is_wanted("grant_srpt") {
        grant_srpt(&mut filled(Policy::Srpt));
    }
    if is_wanted("grant_shares") {
        grant_shares(&mut filled(Policy::Shares));
    }
    if is_wanted("classify") {
        let (classifier, statements) = statements();
        classify(&classifier, &statements);
    }
    if is_wanted("admit") {
        admit(&mut full());
    }
    if is_wanted("scan") {
        scan(&rows());
    }
    if is_wanted("answer") {
        answer(&mut answers());
    }
    if is_wanted("heads") {
        heads(&mut BytesMut::from(&request_heads()[..]));
    }
    if is_wanted("streams") {
        streams(&greeted(), &requests());
    }
    pool::run(is_wanted);
}

#[inline(never)]
fn answer(heads: &mut [BytesMut]) {
    let mut memory = Memory::default();
    for text in heads {
        let head = head::read(text, &Method::GET, HEAD_LIMITS, &mut memory);
        black_box(head).expect("invariant: it is a head");
    }
}

#[inline(never)]
fn heads(input: &mut BytesMut) {
    let fields = response_fields().into();
    let (mut memory, mut text) = (Memory::default(), Vec::new());
    while let Some(head) =
        http1::head::read(input, HEAD_LIMITS, &mut memory).expect("invariant: it is sound HTTP/1.1")
    {
        let form = (
            http1::head::Form::of(&head.parts),
            http1::head::Body::Length(1000),
        );
        http1::head::write(&mut text, StatusCode::OK, &fields, form, &mut {
            head.keeps
        });
        black_box(&text);
        text.clear();
    }
}

/// Requests as browsers send them, behind each other.
fn request_heads() -> Vec<u8> {
    let request = |number| {
        format!(
            "GET /images/{number}.webp HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:145.0) \
             Gecko/20100101 Firefox/145.0\r\nAccept: image/avif,image/webp,*/*\r\nAccept-Language: en\r\nAccept-Encoding: gzip, br\r\n\
             Referer: http://www.example.com/\r\nCookie: session=0123456789abcdef\r\nConnection: keep-alive\r\n\r\n"
        )
    };
    (0..ROUNDS)
        .flat_map(|number| request(number).into_bytes())
        .collect()
}

fn response_fields() -> HeaderMap {
    HeaderMap::from_iter([
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html")),
        (header::CONTENT_LENGTH, HeaderValue::from_static("1000")),
        (header::ETAG, HeaderValue::from_static("\"6566b0a0-3e8\"")),
        (
            header::DATE,
            HeaderValue::from_static("Thu, 26 Nov 2026 12:00:00 GMT"),
        ),
    ])
}

#[inline(never)]
fn streams(server: &Server, requests: &[Vec<u8>]) {
    let fields = response_fields();
    for bytes in requests {
        server
            .receive(bytes)
            .expect("invariant: it is sound HTTP/2");
        while let Some(Request { answer, .. }) = server.next_request() {
            let sent = answer
                .send_head(StatusCode::OK, &fields, None, false)
                .and_then(|()| answer.send_data(Bytes::from_static(&[b'a'; 1000]), true));
            sent.expect("invariant: nobody has reset it");
        }
        let written = server.poll_write(Waker::noop(), |slices| {
            Poll::Ready(Ok(black_box(slices).iter().map(|slice| slice.len()).sum()))
        });
        assert!(written.is_ready());
    }
}

/// A connection whose client allows as much as there is.
fn greeted() -> Server {
    let server = Server::new(Limits {
        streams_max: 100,
        header_bytes_max: 16 * 1024,
        resets_max: 32,
    });
    // The preface, settings without any, and a larger window.
    let hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\
                  \0\0\x04\x08\0\0\0\0\0\x10\0\0\0";
    server
        .receive(hello)
        .expect("invariant: it is sound HTTP/2");
    server
}

/// Requests as browsers send them: the first spells out who and where, and the next refer to it.
fn requests() -> Vec<Vec<u8>> {
    let first = &b"\x82\x86\x84\x41\x0bexample.com\x7a\x0bMozilla/5.0"[..];
    let request = |number: u32| {
        let block = if number == 0 {
            first
        } else {
            b"\x82\x86\x84\xbf\xbe"
        };
        let head = [0, 0, block.len() as u8, 1, 5];
        [&head[..], &(2 * number + 1).to_be_bytes(), block].concat()
    };
    (0..ROUNDS as u32).map(request).collect()
}

/// Heads as nginx writes them.
fn answers() -> Vec<BytesMut> {
    let text = |number| {
        format!(
            "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Thu, 26 Nov 2026 12:00:00 GMT\r\nContent-Type: text/html\r\n\
             Content-Length: {number}\r\nLast-Modified: Thu, 26 Nov 2026 11:00:00 GMT\r\nConnection: keep-alive\r\n\
             ETag: \"6566b0a0-{number:x}\"\r\nAccept-Ranges: bytes\r\n\r\n"
        )
    };
    (0..ROUNDS)
        .map(|number| text(1000 + number).as_bytes().into())
        .collect()
}

#[inline(never)]
fn grant_srpt(scheduler: &mut Scheduler) {
    grant(black_box(Policy::Srpt), scheduler);
}

#[inline(never)]
fn grant_shares(scheduler: &mut Scheduler) {
    grant(black_box(Policy::Shares), scheduler);
}

/// Two functions of one body would be made one: the policy keeps them apart.
fn grant(_: Policy, scheduler: &mut Scheduler) {
    for grant in 0..GRANTS {
        let taken = scheduler.take(JOBS + grant);
        let taken = taken.expect("invariant: jobs are waiting");
        scheduler.record(taken, QUANTUM);
        scheduler.resume(black_box(taken));
    }
}

fn filled(policy: Policy) -> Scheduler {
    let mut scheduler = Scheduler::new(SchedulerConfig::new(policy, JOBS as usize));
    for job in 0..JOBS {
        let spec = JobSpec {
            arrival_ns: job,
            // Large enough that none ends.
            work: 10_000_000 + job * 7919 % 100_000,
            client: Some(Owner {
                name: u128::from(job % 100),
                weight: NonZeroU32::MIN,
            }),
            ..JobSpec::default()
        };
        scheduler.submit(spec).expect("invariant: there is room");
    }
    scheduler
}

#[inline(never)]
fn classify(classifier: &Classifier, statements: &[String]) {
    let client = Client {
        user: Some("shop"),
        database: Some("shop"),
        ..Client::default()
    };
    for sql in statements {
        black_box(classifier.statement(sql.as_bytes(), &client));
    }
}

fn statements() -> (Classifier, Vec<String>) {
    let config = ClassifierConfig::new(Protocol::Sql(Dialect::Postgres));
    let classifier = Classifier::new(&config).expect("there are no rules");
    let statement = |number: u64| match number % 2 {
        0 => format!("SELECT abalance FROM pgbench_accounts WHERE aid = {number};"),
        _ => format!(
            "SELECT i_id, i_title, a_fname FROM item JOIN author ON item.i_a_id = author.a_id \
             WHERE i_subject = 'COMPUTERS' AND i_id IN ({number}, 1, 2) ORDER BY i_title LIMIT 50"
        ),
    };
    (classifier, (0..ROUNDS).map(statement).collect())
}

#[inline(never)]
fn admit(full: &mut Full) {
    for _ in 0..ROUNDS {
        full.round();
    }
}

/// A gate with requests that wait, and those it has admitted.
struct Full {
    gate: Admission,
    types: Vec<TypeId>,
    running: VecDeque<RequestId>,
    now_ns: u64,
}

fn full() -> Full {
    let capacity: Capacity = "1s".parse().expect("invariant: a capacity");
    let mut gate = Admission::new(AdmissionConfig {
        order: Order::Sjf,
        capacity,
        queue_max: WAITING + 1,
        ..AdmissionConfig::default()
    });
    let names = (0..20).map(|number| format!("type {number}"));
    let types = names.map(|name| gate.type_of(&name)).collect();
    let mut full = Full {
        gate,
        types,
        running: VecDeque::new(),
        now_ns: 0,
    };
    while full.gate.waiting() < WAITING {
        full.arrive();
    }
    // The times of the types are known by then.
    (0..10 * ROUNDS).for_each(|_| full.round());
    full
}

impl Full {
    /// One ends, whoever may start is admitted, and as many come as were.
    fn round(&mut self) {
        self.now_ns += 1_000_000;
        if let Some(id) = self.running.pop_front() {
            self.gate.finish(self.now_ns, id, Outcome::Completed);
        }
        while let Some(id) = self.gate.admit_next(self.now_ns) {
            self.running.push_back(black_box(id));
            self.arrive();
        }
    }

    fn arrive(&mut self) {
        let kind = self.types[(self.now_ns / 1_000_000) as usize % self.types.len()];
        let arrived = self.gate.arrive(self.now_ns, kind);
        arrived.expect("invariant: there is room");
    }
}

#[inline(never)]
fn scan(bytes: &[u8]) {
    let mut scanner = Scanner::new(1 << 30);
    let (mut at, mut found) = (0, 0);
    loop {
        let message = scanner.next(bytes, &mut at, |_| 1);
        match message.expect("invariant: they are messages") {
            Some(message) => found += u32::from(black_box(message).tag == b'D'),
            None => break,
        }
    }
    assert_eq!(found, MESSAGES);
}

/// Rows of a result, of 20 to 219 bytes each.
fn rows() -> Vec<u8> {
    let mut bytes = Vec::new();
    for row in 0..MESSAGES {
        let body = vec![0; 20 + row as usize];
        bytes.push(b'D');
        bytes.extend((body.len() as u32 + 4).to_be_bytes());
        bytes.extend(body);
    }
    bytes
}
