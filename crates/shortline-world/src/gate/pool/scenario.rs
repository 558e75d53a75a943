//! What a seed draws, whatever the protocol: a pool, its gate, what goes wrong at its server, what the operator does.

use std::fmt;
use std::num::NonZeroUsize;
use std::time::Duration;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use shortline_gate::GateConfig;
use shortline_gate::pool::{PoolLimits, PoolMode};
use shortline_sched::admission::Capacity;

use super::super::scenario::{gate, path, pick};
use super::server::Faults;
use crate::network::Path;

const MS: u64 = 1_000_000;

/// What a seed draws apart from its clients.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The protocol's name.
    protocol: &'static str,
    /// The gate.
    pub gate: GateConfig,
    /// The pool.
    pub limits: PoolLimits,
    /// What goes wrong at the server.
    pub faults: Faults,
    /// The path between the gate and the server.
    pub path: Path,
    /// Whether every client is of one user and wants nothing of its own, so that any connection is fit for any.
    pub is_of_one_kind: bool,
    /// Whether sessions keep connections.
    pub has_keepers: bool,
    /// Whether clients end each other's sessions.
    pub has_killers: bool,
    /// The number of clients.
    pub clients: usize,
    /// What the operator does, and when.
    pub orders: Vec<(u64, Order)>,
}

/// What an operator does.
#[derive(Clone, Debug)]
pub enum Order {
    /// The pool has this size from now on.
    Resize(NonZeroUsize),
    /// Connections are opened anew.
    Reconnect,
    /// The gate has these settings from now on.
    Reload(Box<GateConfig>),
    /// Sessions end as soon as nothing is under way.
    Drain,
}

/// What a client of one of the protocols does.
pub trait Plan: Sized {
    /// The protocol's name.
    const PROTOCOL: &'static str;

    /// Draws the client of this index.
    fn draw(random: &mut ChaCha8Rng, terms: &Terms, number: &mut u64) -> Self;

    /// Whether its session has, at some time, what belongs to its connection.
    fn keeps(&self) -> bool;

    /// Whether it ends another's session.
    fn kills(&self) -> bool;
}

/// What the client of a scenario may do.
pub struct Terms {
    /// Its index.
    pub index: usize,
    /// Whether all clients are of one kind.
    pub is_of_one_kind: bool,
    /// Whether some may keep connections.
    pub keeps: bool,
}

impl Scenario {
    /// Draws a scenario and its clients. Their statements have numbers of their own.
    pub fn draw<P: Plan>(random: &mut ChaCha8Rng) -> (Self, Vec<P>) {
        let size = random.random_range(1..=4);
        let mode = *pick(
            random,
            &[
                PoolMode::Transaction,
                PoolMode::Transaction,
                PoolMode::Transaction,
                PoolMode::Session,
            ],
        );
        let is_of_one_kind = random.random_bool(0.3);
        let keeps = size > 1 && random.random_bool(0.4);
        let mut number = 0;
        let clients = random.random_range(1..=8);
        let clients: Vec<P> = (0..clients)
            .map(|index| {
                let terms = Terms {
                    index,
                    is_of_one_kind,
                    keeps,
                };
                P::draw(random, &terms, &mut number)
            })
            .collect();
        // A session whose state cannot be asked for keeps its connection.
        let has_killers = clients.iter().any(P::kills);
        let scenario = Self {
            protocol: P::PROTOCOL,
            gate: narrow(random, mode, size),
            limits: PoolLimits {
                mode,
                size: places(size),
                idle_time_max: Duration::from_millis(*pick(random, &[300, 600_000])),
                wait_max: Duration::from_secs(*pick(random, &[2, 20, 20])),
                statements_max: *pick(random, &[1, 2, 100]),
            },
            faults: faults(random),
            path: path(random, MS),
            is_of_one_kind,
            has_keepers: mode == PoolMode::Session || clients.iter().any(P::keeps) || has_killers,
            has_killers,
            clients: clients.len(),
            orders: orders(random, mode, size),
        };
        (scenario, clients)
    }

    /// Whether the operator does something like this.
    pub fn is_told(&self, what: impl Fn(&Order) -> bool) -> bool {
        self.orders.iter().any(|(_, order)| what(order))
    }
}

fn places(size: usize) -> NonZeroUsize {
    NonZeroUsize::new(size).unwrap_or(NonZeroUsize::MIN)
}

/// A gate whose places are the pool's connections, as the command makes it.
fn narrow(random: &mut ChaCha8Rng, mode: PoolMode, size: usize) -> GateConfig {
    let mut config = gate(random);
    config.admission.running_max = (mode == PoolMode::Transaction).then(|| places(size));
    if random.random_bool(0.5) {
        config.admission.capacity = Capacity::Off;
    }
    config
}

fn faults(random: &mut ChaCha8Rng) -> Faults {
    let mut share = |of: f64, among: u32| match random.random_ratio(1, among) {
        true => of,
        false => 0.0,
    };
    Faults {
        refusals: share(0.1, 8),
        hangs: share(0.2, 6),
        breaks: share(0.1, 8),
        garbles: share(0.2, 8),
        ends: share(0.2, 4),
        kills: share(0.05, 6),
        notices: share(0.3, 3),
    }
}

fn orders(random: &mut ChaCha8Rng, mode: PoolMode, size: usize) -> Vec<(u64, Order)> {
    let mut orders = Vec::new();
    let mut at_ns = 0;
    while orders.len() < 3 && random.random_bool(0.3) {
        at_ns += random.random_range(5 * MS..600 * MS);
        let order = match random.random_range(0..7) {
            0..3 => Order::Resize(places(random.random_range(1..=5))),
            3 | 4 => Order::Reconnect,
            5 => Order::Reload(Box::new(narrow(random, mode, size))),
            _ => Order::Drain,
        };
        orders.push((at_ns, order));
    }
    orders
}

impl fmt::Display for Scenario {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let admission = &self.gate.admission;
        write!(
            formatter,
            "{}'s pool of {} for {:?}s, {:?} with capacity {:?}, {} may wait for {:?}, {} clients, {:?}, {} orders",
            self.protocol,
            self.limits.size,
            self.limits.mode,
            admission.order,
            admission.capacity,
            admission.queue_max,
            self.gate.wait_max,
            self.clients,
            self.faults,
            self.orders.len(),
        )
    }
}
