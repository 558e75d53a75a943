//! What a seed draws: a gate, a database, clients and their statements.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use shortline_gate::{GateConfig, TenantTable};
use shortline_sched::admission::{AdmissionConfig, Capacity, Order};

use crate::network::Path;

const MS: u64 = 1_000_000;

/// Everything that a seed draws.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Whether the database is MySQL rather than PostgreSQL.
    pub is_mysql: bool,
    /// The gate.
    pub gate: GateConfig,
    /// The share of statements whose connection the database ends.
    pub kills: f64,
    /// The share of connections that it refuses.
    pub refusals: f64,
    /// The path between the gate and the database.
    pub path: Path,
    /// The clients.
    pub clients: Vec<ClientPlan>,
    /// When the gate is told to finish, in nanoseconds.
    pub drain_ns: Option<u64>,
}

/// One client.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// When it comes, in nanoseconds.
    pub begins_ns: u64,
    /// The path to it.
    pub path: Path,
    /// What it does, in order.
    pub units: Vec<Unit>,
}

/// What a client does on its connection.
#[derive(Clone, Debug)]
pub enum Unit {
    /// A statement.
    Statement(Statement),
    /// A transaction of several statements, with a pause before each. At its end it is rolled back
    /// or not.
    Transaction(Vec<(u64, Statement)>, bool),
    /// Statements sent without waiting for each other's answers.
    Pipeline(Vec<Statement>),
    /// A statement, and the time after which it is cancelled.
    Cancelled(Statement, u64),
    /// A statement, and the time after which the client leaves.
    Leaves(Statement, u64),
    /// A pause, in nanoseconds.
    Pause(u64),
    /// Bytes that are not of any protocol.
    Babble,
}

/// One statement.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    /// Its number in the run.
    pub number: u64,
    /// Its type, one of a few.
    pub kind: usize,
    /// How long the database takes for it, in nanoseconds.
    pub service_ns: u64,
    /// Bytes of its answer.
    pub bytes: u64,
    /// Whether the database answers with an error.
    pub fails: bool,
    /// PostgreSQL: whether it uses the extended protocol.
    pub extended: bool,
}

impl Statement {
    /// Its text.
    pub fn text(&self) -> String {
        let kind = ["small", "medium", "report"][self.kind];
        let what = if self.fails { "fail" } else { "work" };
        let us = self.service_ns / 1000;
        format!(
            "select {what}_{kind}({}, {us}, {})",
            self.number, self.bytes
        )
    }
}

impl Scenario {
    /// Draws a scenario.
    pub fn draw(random: &mut ChaCha8Rng) -> Self {
        let mut number = 0;
        let clients = random.random_range(1..=10);
        Self {
            is_mysql: random.random_bool(0.4),
            gate: gate(random),
            kills: *pick(random, &[0.0, 0.0, 0.05]),
            refusals: *pick(random, &[0.0, 0.0, 0.0, 0.1]),
            path: path(random, MS),
            clients: (0..clients).map(|_| client(random, &mut number)).collect(),
            drain_ns: random
                .random_bool(0.1)
                .then(|| random.random_range(10 * MS..2000 * MS)),
        }
    }
}

pub fn pick<'a, T>(random: &mut ChaCha8Rng, of: &'a [T]) -> &'a T {
    of.choose(random).expect("there are some")
}

pub fn path(random: &mut ChaCha8Rng, delay_ns_max: u64) -> Path {
    Path {
        delay_ns: random.random_range(20_000..delay_ns_max),
        jitter_ns: 0,
        loss: *pick(random, &[0.0, 0.0, 0.02]),
        window_bytes: *pick(random, &[2_000, 65_536]),
        buffer_bytes: *pick(random, &[4_000, 65_536]),
        short_writes: *pick(random, &[0.0, 0.3]),
    }
}

pub fn gate(random: &mut ChaCha8Rng) -> GateConfig {
    let capacity_ns = NonZeroU64::new(random.random_range(MS..60 * MS));
    let capacity_ns = capacity_ns.expect("it begins at a millisecond");
    let capacities = [
        Capacity::Fixed(capacity_ns),
        Capacity::Fixed(capacity_ns),
        Capacity::Off,
        Capacity::Auto,
    ];
    GateConfig {
        tenants: TenantTable::default(),
        admission: AdmissionConfig {
            order: *pick(random, &[Order::Sjf, Order::Sjf, Order::Fifo]),
            capacity: *pick(random, &capacities),
            queue_max: *pick(random, &[1, 10_000, 10_000]),
            ..AdmissionConfig::default()
        },
        wait_max: Duration::from_millis(*pick(random, &[50, 20_000, 20_000])),
        slow_wait: None,
        watches_locks: false,
    }
}

fn client(random: &mut ChaCha8Rng, number: &mut u64) -> ClientPlan {
    let units = random.random_range(1..=6);
    ClientPlan {
        begins_ns: random.random_range(0..200 * MS),
        path: path(random, 10 * MS),
        units: (0..units).map(|_| unit(random, number)).collect(),
    }
}

fn unit(random: &mut ChaCha8Rng, number: &mut u64) -> Unit {
    match random.random_range(0..20) {
        0..8 => Unit::Statement(statement(random, number)),
        8..12 => {
            let statements = random.random_range(1..=4);
            let each = (0..statements).map(|_| {
                let pause_ns = random.random_range(0..30 * MS);
                (pause_ns, statement(random, number))
            });
            Unit::Transaction(each.collect(), random.random_bool(0.2))
        }
        12 | 13 => {
            let statements = random.random_range(2..=5);
            Unit::Pipeline((0..statements).map(|_| statement(random, number)).collect())
        }
        14 | 15 => {
            let after_ns = random.random_range(0..60 * MS);
            Unit::Cancelled(statement(random, number), after_ns)
        }
        16 => {
            let after_ns = random.random_range(0..60 * MS);
            Unit::Leaves(statement(random, number), after_ns)
        }
        17 if random.random_bool(0.3) => Unit::Babble,
        _ => Unit::Pause(random.random_range(0..500 * MS)),
    }
}

fn statement(random: &mut ChaCha8Rng, number: &mut u64) -> Statement {
    *number += 1;
    let kind = random.random_range(0..3);
    let service_ns = [MS, 10 * MS, 100 * MS][kind];
    Statement {
        number: *number,
        kind,
        service_ns: service_ns / 2 + random.random_range(0..service_ns),
        bytes: *pick(random, &[1, 200, 9_000, 70_000]),
        fails: random.random_bool(0.05),
        extended: random.random_bool(0.4),
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let admission = &self.gate.admission;
        write!(
            formatter,
            "{}, {:?} with capacity {:?}, {} may wait for {:?}, {} clients, kills {}",
            if self.is_mysql { "MySQL" } else { "PostgreSQL" },
            admission.order,
            admission.capacity,
            admission.queue_max,
            self.gate.wait_max,
            self.clients.len(),
            self.kills,
        )?;
        match self.drain_ns {
            Some(at_ns) => write!(formatter, ", drain at {} ms", at_ns / MS),
            None => Ok(()),
        }
    }
}
