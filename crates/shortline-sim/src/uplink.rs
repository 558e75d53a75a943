//! A link with a queue, and what a server sees of it: the plant of the uplink's controller.
//!
//! Everything is fluid in steps of one millisecond. Flows put bytes into one FIFO, which drains at
//! the link's rate and drops what does not fit. What comes out is acknowledged a path's propagation
//! time later. Our flows and the others' follow the same CUBIC (RFC 9438, with HyStart's exit from
//! slow start by delay). Ours also wait for the pacing rate, in the order of remaining bytes. Every
//! ten milliseconds an [`Observation`] is made as the real link makes it: from what left, what was
//! acknowledged, and round-trip times with noise.
//!
//! Left out are packets (at 10 Mbit/s about one a millisecond), timeouts, and the queue of the way
//! back. A decision without a rate holds nothing back.

mod fifo;
mod flow;
mod path;
mod plan;
mod trace;

pub use plan::{Cross, Demand, Path, Plan};
pub use trace::{Sample, Trace};

use crate::random::unit;
use fifo::{Fifo, Part};
use flow::Flow;
use path::PathState;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shortline_sched::uplink::{Decision, Limit, Observation};
use std::collections::VecDeque;

/// Steps between two observations.
const OBSERVED_EVERY: u32 = 10;
/// A packet on the wire, in bytes.
pub(crate) const PACKET: f64 = 1514.0;
/// The longest way from the bottleneck to the acknowledgement, in steps.
const FLIGHT_MAX: usize = 4096;
/// At most this many of our own responses are sent at once; the rest wait.
const FLOWS_MAX: usize = 96;

/// Plays `plan` for its time; `control` is asked after each observation. The same plan and the same
/// answers give the same trace.
pub fn run(plan: &Plan, control: impl FnMut(&Observation) -> Decision) -> Trace {
    let mut plant = Plant::new(plan);
    let mut control = control;
    let steps = (plan.seconds * 1000.0) as u32;
    for step in 0..steps {
        plant.step(step);
        if step % OBSERVED_EVERY == OBSERVED_EVERY - 1 {
            let observation = plant.observation(step);
            let decision = control(&observation);
            plant.record(step, &observation, &decision);
        }
    }
    plant.trace
}

/// An acknowledgement, or the news of a loss, under way.
#[derive(Clone, Copy, Debug)]
struct Echo {
    flow: usize,
    bytes: f64,
    rtt_ms: Option<f64>,
}

struct Plant<'a> {
    plan: &'a Plan,
    rng: ChaCha8Rng,
    fifo: Fifo,
    paths: Vec<PathState>,
    flows: Vec<Flow>,
    waiting: VecDeque<f64>,
    next_arrival_s: f64,
    order: Vec<usize>,
    flight: Vec<Vec<Echo>>,
    tokens: f64,
    rate_bps: Option<f64>,
    seen: Interval,
    trace: Trace,
}

/// Counters between two observations.
#[derive(Default)]
struct Interval {
    sent: f64,
    acknowledged: f64,
    repeated: f64,
    ours_out: f64,
    cross_out: f64,
    steps_by_limit: [u32; 3],
}

impl<'a> Plant<'a> {
    fn new(plan: &'a Plan) -> Self {
        let mut flows: Vec<Flow> = plan
            .cross
            .iter()
            .map(|cross| Flow::cross(cross.rtt_ms))
            .collect();
        if let Demand::Backlogged { flows: count } = plan.demand {
            flows.extend((0..count).map(|k| Flow::ours(k % plan.paths.len(), f64::INFINITY)));
        }
        Self {
            plan,
            rng: ChaCha8Rng::seed_from_u64(plan.seed),
            fifo: Fifo::new(plan.buffer_bytes()),
            paths: plan.paths.iter().map(|_| PathState::new()).collect(),
            flows,
            waiting: VecDeque::new(),
            next_arrival_s: 0.0,
            order: Vec::new(),
            flight: vec![Vec::new(); FLIGHT_MAX],
            tokens: 0.0,
            rate_bps: None,
            seen: Interval::default(),
            trace: Trace::default(),
        }
    }

    fn step(&mut self, step: u32) {
        let now_s = f64::from(step) / 1000.0;
        self.echo(step);
        self.arrive(now_s);
        self.send(step, now_s);
        self.drain(step, now_s);
    }

    /// Receivers' acknowledgements and losses arrive.
    fn echo(&mut self, step: u32) {
        let slot = step as usize % FLIGHT_MAX;
        let mut echoes = std::mem::take(&mut self.flight[slot]);
        for echo in echoes.drain(..) {
            let flow = &mut self.flows[echo.flow];
            match echo.rtt_ms {
                None => flow.lose(echo.bytes, step),
                Some(rtt_ms) => {
                    flow.acknowledge(echo.bytes, rtt_ms, step);
                    if let Some(path) = flow.path {
                        self.seen.acknowledged += echo.bytes;
                        self.paths[path].sample(echo.flow, rtt_ms);
                    }
                }
            }
        }
        self.flight[slot] = echoes;
    }

    /// New responses, each on a connection of its own.
    fn arrive(&mut self, now_s: f64) {
        while let Some(load) = self.plan.demand.load_at(now_s)
            && self.next_arrival_s <= now_s
        {
            let gap = -libm::log(unit(&mut self.rng)) * self.plan.demand.mean_bytes() * 8.0
                / (load.max(1e-3) * self.plan.rate_bps_at(0.0));
            self.next_arrival_s = self.next_arrival_s.max(now_s - 0.001) + gap;
            let size = self.plan.demand.size(unit(&mut self.rng));
            self.waiting.push_back(size);
        }
        while self.order.len() < FLOWS_MAX
            && let Some(size) = self.waiting.pop_front()
        {
            let path = (self.rng.next_u32() as usize) % self.paths.len();
            match self.flows.iter().position(Flow::is_over) {
                Some(slot) => self.flows[slot] = Flow::ours(path, size),
                None => self.flows.push(Flow::ours(path, size)),
            }
            self.order.push(0);
        }
    }

    /// Every flow sends what it may, the others' and ours taking turns to be first.
    fn send(&mut self, step: u32, now_s: f64) {
        let ours_first = self.rng.next_u32().is_multiple_of(2);
        if ours_first {
            self.send_ours(step);
        }
        self.send_cross(step, now_s);
        if !ours_first {
            self.send_ours(step);
        }
    }

    fn send_ours(&mut self, step: u32) {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend((0..self.flows.len()).filter(|k| self.flows[*k].is_ours_with_work()));
        if matches!(self.plan.demand, Demand::Backlogged { .. }) {
            let turn = step as usize % order.len().max(1);
            order.rotate_left(turn);
        } else {
            order.sort_unstable_by(|a, b| self.flows[*a].unsent.total_cmp(&self.flows[*b].unsent));
        }
        if let Some(rate_bps) = self.rate_bps {
            let per_step = rate_bps / 8000.0;
            self.tokens = (self.tokens + per_step).min(per_step + PACKET);
        } else {
            self.tokens = f64::INFINITY;
        }
        let mut limit = Limit::Application;
        for &k in &order {
            let room = self.flows[k].room();
            let bytes = room.min(self.tokens);
            self.put(k, bytes, step);
            self.tokens -= bytes;
            if bytes < room {
                limit = Limit::Pacing;
            } else if self.flows[k].unsent > 0.0 && limit == Limit::Application {
                limit = Limit::Network;
            }
        }
        self.seen.steps_by_limit[limit as usize] += 1;
        self.order = order;
    }

    fn send_cross(&mut self, step: u32, now_s: f64) {
        let count = self.plan.cross.len();
        for turn in 0..count {
            let k = (turn + step as usize) % count;
            let active = self.plan.cross[k].is_active(now_s);
            let bytes = match self.plan.cross[k].rate_bps {
                _ if !active => 0.0,
                Some(rate_bps) => rate_bps / 8000.0,
                None => self.flows[k].room(),
            };
            self.put(k, bytes, step);
        }
    }

    /// Puts bytes into the queue, as far as there is room. The sender hears of the rest.
    fn put(&mut self, k: usize, bytes: f64, step: u32) {
        if bytes <= 0.0 {
            return;
        }
        let flow = &mut self.flows[k];
        let repeated = flow.send(bytes);
        if flow.path.is_some() {
            self.seen.sent += bytes;
            self.seen.repeated += repeated;
        }
        let dropped = self.fifo.put(Part {
            flow: k,
            entered: step,
            bytes,
        });
        if dropped > 0.0 {
            let wait_ms =
                self.fifo.bytes() * 8000.0 / self.plan.rate_bps_at(f64::from(step) / 1000.0);
            let arrives = step + 1 + (wait_ms + self.rtt_ms(k, step)) as u32;
            self.fly(
                arrives,
                step,
                Echo {
                    flow: k,
                    bytes: dropped,
                    rtt_ms: None,
                },
            );
        }
    }

    /// The link carries what it can.
    fn drain(&mut self, step: u32, now_s: f64) {
        let mut budget = self.plan.rate_bps_at(now_s) / 8000.0;
        while budget > 0.0
            && let Some(part) = self.fifo.take(budget)
        {
            budget -= part.bytes;
            self.carried(part, step);
        }
    }

    fn carried(&mut self, part: Part, step: u32) {
        let lost = unit(&mut self.rng) < self.plan.loss * part.bytes / PACKET;
        let base_ms = self.rtt_ms(part.flow, step);
        let mut flight_ms = base_ms;
        if let Some(path) = self.flows[part.flow].path {
            self.seen.ours_out += part.bytes;
            flight_ms += self.plan.paths[path].noise_ms(unit(&mut self.rng), unit(&mut self.rng));
        } else {
            self.seen.cross_out += part.bytes;
        }
        let queued_ms = f64::from(step - part.entered);
        let rtt_ms = (!lost).then_some(queued_ms + flight_ms);
        let aggregated = self.flows[part.flow]
            .path
            .map_or(1, |path| self.plan.paths[path].aggregation_ms.max(1));
        let arrives = (step + 1 + flight_ms as u32).next_multiple_of(aggregated);
        self.fly(
            arrives,
            step,
            Echo {
                flow: part.flow,
                bytes: part.bytes,
                rtt_ms,
            },
        );
    }

    fn fly(&mut self, arrives: u32, step: u32, echo: Echo) {
        let arrives = arrives.clamp(step + 1, step + FLIGHT_MAX as u32 - 1);
        self.flight[arrives as usize % FLIGHT_MAX].push(echo);
    }

    fn rtt_ms(&self, k: usize, step: u32) -> f64 {
        let later_ms = self.plan.rtt_rise_ms_at(f64::from(step) / 1000.0);
        match self.flows[k].path {
            Some(path) => self.plan.paths[path].rtt_ms + later_ms,
            None => self.plan.cross[k].rtt_ms,
        }
    }

    fn observation(&mut self, step: u32) -> Observation {
        let limits = self.seen.steps_by_limit;
        let limited_by = match limits {
            [pacing, application, network] if pacing >= application.max(network) && pacing > 0 => {
                Limit::Pacing
            }
            [_, application, network] if application > network => Limit::Application,
            _ => Limit::Network,
        };
        for path in &mut self.paths {
            path.look(step);
        }
        let (shared_delay_ns, rtt_ns, paths) = path::shared_delay(&self.paths, step);
        Observation {
            now_ns: u64::from(step + 1) * 1_000_000,
            sent_wire_bytes: self.seen.sent as u64,
            delivered_wire_bytes: (self.seen.acknowledged * self.plan.acknowledged_scale) as u64,
            shared_delay_ns,
            rtt_ns,
            paths,
            lost_wire_bytes: self.seen.repeated as u64,
            limited_by,
            local: None,
        }
    }

    fn record(&mut self, step: u32, observation: &Observation, decision: &Decision) {
        let now_s = f64::from(step + 1) / 1000.0;
        let link_bps = self.plan.rate_bps_at(now_s);
        let span_s = f64::from(OBSERVED_EVERY) / 1000.0;
        self.trace.push(Sample {
            at_s: now_s,
            link_bps,
            paced_bps: decision.pacing_rate_bps.map(|bps| bps as f64),
            estimate_bps: decision.estimate_bps.map(|bps| bps as f64),
            confidence: decision.confidence,
            state: decision.state,
            queue_ms: self.fifo.bytes() * 8000.0 / link_bps,
            seen_delay_ms: observation.shared_delay_ns.map(|ns| ns as f64 / 1e6),
            ours_bps: self.seen.ours_out * 8.0 / span_s,
            cross_bps: self.seen.cross_out * 8.0 / span_s,
            limited_by: observation.limited_by,
        });
        self.rate_bps = decision.pacing_rate_bps.map(|bps| bps as f64);
        self.seen = Interval::default();
    }
}
