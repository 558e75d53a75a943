//! A gate's state as Prometheus text: of `shortline gate`, and of the gates in front of `serve`'s
//! routes, which have the label `route`.
//!
//! The label `type` has a bounded number of values ([`super::series`]).

mod tenants;

use std::fmt::Display;

use shortline_gate::GateSnapshot;
use shortline_sched::admission::{BOUNDS_NS, Histogram, OpeningStage, Times, TypeView};

use super::servers;
use super::status::{Connections, PoolStatus, Status};
use shortline_daemon::admin::prometheus::Text;

/// Labels that tell a gate from others in its process. Empty for the only one.
pub type Labels<'a> = Vec<(&'a str, &'a str)>;

/// All metrics of one moment.
pub fn render(status: &Status) -> String {
    let mut text = Text::default();
    text.gauge(
        "uptime_seconds",
        "Time since the start.",
        status.uptime_seconds,
    );
    text.gauge_of(
        "build_info",
        "The version; always 1.",
        [([("version", status.version)], 1)],
    );
    let settings = &status.settings;
    let policy = settings.admission.policy;
    text.gauge_of(
        "gate_info",
        "What is relayed and who goes first; always 1.",
        [([("kind", settings.kind), ("policy", policy)], 1)],
    );
    let gate = AtGate {
        labels: Vec::new(),
        admission: &status.admission,
        types: status.series.shown(&status.admission.types),
    };
    admission(&mut text, &[gate]);
    connections(&mut text, &status.connections);
    if let Some(of) = &status.pool {
        pool(&mut text, of);
    }
    servers::metrics(&mut text, &status.servers);
    text.finish()
}

/// The metrics of a pool.
fn pool(text: &mut Text, of: &PoolStatus) {
    text.gauge("pool_size", "The most connections to the backend.", of.size);
    text.gauge_of(
        "pool_connections",
        "Connections to the backend.",
        [
            ([("state", "lent")], of.open - of.idle),
            ([("state", "idle")], of.idle),
        ],
    );
    text.gauge(
        "pool_pinned",
        "Connections that sessions keep between two transactions.",
        of.pinned,
    );
    text.gauge(
        "pool_waiting",
        "Sessions that are admitted and wait for a connection.",
        of.waiting,
    );
    text.gauge(
        "pool_statements",
        "Prepared statements that some client or connection has.",
        of.statements,
    );
}

/// A gate at one moment.
pub struct AtGate<'a> {
    /// The labels that tell it from others.
    pub labels: Labels<'a>,
    /// The state of its admission.
    pub admission: &'a GateSnapshot,
    /// The types that have series.
    pub types: Vec<TypeView>,
}

/// The metrics of each gate's admission.
pub fn admission(text: &mut Text, gates: &[AtGate<'_>]) {
    for (kind, name, help, value) in OF_A_GATE {
        text.head(kind, name, help);
        for gate in gates {
            if let Some(value) = value(gate.admission) {
                text.sample(name, &gate.labels, value);
            }
        }
    }
    ended(text, gates);
    times(text, gates);
    for (kind, name, help, value) in OF_A_TYPE {
        text.head(kind, name, help);
        for gate in gates {
            for each in &gate.types {
                let type_label = ("type", each.name.as_str());
                let labels: Labels<'_> = gate.labels.iter().copied().chain([type_label]).collect();
                text.sample(name, &labels, value(each));
            }
        }
    }
    tenants::tenants(text, gates);
}

/// A histogram's name, its help, and its part of the times.
type Of = (&'static str, &'static str, fn(&Times) -> &Histogram);

const TIMES: [Of; 3] = [
    ("wait", "From arrival to admission.", |times| &times.wait),
    ("service", "How long the backend worked.", |times| {
        &times.service
    }),
    (
        "sojourn",
        "From arrival to the end, pauses of the client included.",
        |times| &times.sojourn,
    ),
];

/// The histograms of a gate and of its types. In Prometheus, each bucket includes all those below it.
fn times(text: &mut Text, gates: &[AtGate<'_>]) {
    for (name, help, of) in TIMES {
        let name = format!("gate_{name}_seconds");
        text.head("histogram", &name, help);
        for gate in gates {
            histogram(text, &name, &gate.labels, of(&gate.admission.times));
        }
        let name = name.replace("gate_", "gate_type_");
        text.head("histogram", &name, help);
        for gate in gates {
            for each in &gate.types {
                let type_label = ("type", each.name.as_str());
                let labels: Labels<'_> = gate.labels.iter().copied().chain([type_label]).collect();
                histogram(text, &name, &labels, of(&each.times));
            }
        }
    }
}

fn histogram(text: &mut Text, name: &str, labels: &Labels<'_>, of: &Histogram) {
    let mut total = 0;
    let bounds = BOUNDS_NS
        .iter()
        .map(|bound_ns| (*bound_ns as f64 / 1e9).to_string());
    for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(of.counts) {
        total += count;
        let of_bucket: Labels<'_> = labels
            .iter()
            .copied()
            .chain([("le", bound.as_str())])
            .collect();
        text.sample(&format!("{name}_bucket"), &of_bucket, total);
    }
    text.sample(
        &format!("{name}_sum"),
        labels,
        Number::Nanoseconds(of.sum_ns),
    );
    text.sample(&format!("{name}_count"), labels, total);
}

/// Kind, name, help and value of a metric.
type Metric<T, V> = (&'static str, &'static str, &'static str, fn(&T) -> V);

const OF_A_GATE: [Metric<GateSnapshot, Option<Number>>; 15] = [
    ("gauge", "gate_waiting", "Requests that wait.", |gate| {
        Some(Number::Count(gate.waiting as u64))
    }),
    (
        "gauge",
        "gate_oldest_wait_seconds",
        "How long the longest waiting request has waited so far; 0 while none waits.",
        |gate| {
            let waited_ns = gate.oldest.as_ref().map_or(0, |oldest| oldest.waited_ns);
            Some(Number::Nanoseconds(waited_ns))
        },
    ),
    (
        "gauge",
        "gate_running",
        "Requests that were admitted and have not ended.",
        |gate| Some(Number::Count(gate.running as u64)),
    ),
    (
        "gauge",
        "gate_active",
        "Admitted requests that do not wait for their client.",
        |gate| Some(Number::Count(gate.active as u64)),
    ),
    (
        "gauge",
        "gate_load_seconds",
        "The sum of the estimated service times of the active requests.",
        |gate| Some(Number::Nanoseconds(gate.load_ns)),
    ),
    (
        "gauge",
        "gate_slowdown",
        "How many times longer services take than alone (capacity auto; else 1).",
        |gate| Some(Number::Ratio(gate.slowdown)),
    ),
    (
        "gauge",
        "gate_capacity_seconds",
        "How much of that sum may run at once; absent if there is no limit or none is known (dry run).",
        |gate| gate.capacity_ns.map(Number::Nanoseconds),
    ),
    (
        "gauge",
        "gate_opened",
        "Whether a limit above the capacity is in use because it does more; absent if it never is.",
        |gate| {
            let stage = gate.opening?.stage;
            Some(Number::Count(u64::from(stage == OpeningStage::Open)))
        },
    ),
    (
        "counter",
        "gate_opening_trials_total",
        "Trials of a limit above the capacity.",
        |gate| gate.opening.map(|opening| Number::Count(opening.trials)),
    ),
    (
        "counter",
        "gate_openings_total",
        "Times that a higher limit came into use, because it does clearly more.",
        |gate| gate.opening.map(|opening| Number::Count(opening.openings)),
    ),
    (
        "counter",
        "gate_admitted_total",
        "Requests admitted.",
        |gate| Some(Number::Count(gate.totals.admitted)),
    ),
    (
        "counter",
        "gate_escaped_total",
        "Requests admitted above the capacity, because nothing else made progress.",
        |gate| Some(Number::Count(gate.totals.escaped)),
    ),
    (
        "counter",
        "gate_would_wait_total",
        "In a dry run: requests that would have had to wait.",
        |gate| Some(Number::Count(gate.totals.would_wait)),
    ),
    (
        "counter",
        "gate_wait_seconds_total",
        "Total time that admitted requests have waited.",
        |gate| Some(Number::Nanoseconds(gate.totals.waited_ns_sum)),
    ),
    (
        "counter",
        "gate_lock_wait_seconds_total",
        "Time that statements have waited for locks in the database, as seen by the monitor.",
        |gate| Some(Number::Nanoseconds(gate.totals.locked_ns_sum)),
    ),
];

const OF_A_TYPE: [Metric<TypeView, Number>; 11] = [
    (
        "gauge",
        "gate_type_estimate_seconds",
        "Estimated service time.",
        |each| Number::Nanoseconds(each.estimate_ns),
    ),
    (
        "gauge",
        "gate_type_waiting",
        "Requests of the type that wait.",
        |each| Number::Count(each.waiting as u64),
    ),
    (
        "gauge",
        "gate_type_oldest_wait_seconds",
        "How long the longest waiting request has waited so far; 0 while none waits.",
        |each| Number::Nanoseconds(each.oldest_wait_ns),
    ),
    (
        "gauge",
        "gate_type_running",
        "Requests of the type that run.",
        |each| Number::Count(each.running as u64),
    ),
    (
        "counter",
        "gate_type_admitted_total",
        "Requests admitted.",
        |each| Number::Count(each.admitted),
    ),
    (
        "counter",
        "gate_type_completed_total",
        "Requests that ended well.",
        |each| Number::Count(each.completed),
    ),
    (
        "counter",
        "gate_type_failed_total",
        "Requests that broke off after they were admitted.",
        |each| Number::Count(each.failed),
    ),
    (
        "counter",
        "gate_type_refused_total",
        "Requests refused on arrival.",
        |each| Number::Count(each.refused),
    ),
    (
        "counter",
        "gate_type_withdrawn_total",
        "Requests that went away while they waited, at their limit or before.",
        |each| Number::Count(each.withdrawn),
    ),
    (
        "counter",
        "gate_type_wait_seconds_total",
        "Total time that admitted requests have waited.",
        |each| Number::Nanoseconds(each.waited_ns_sum),
    ),
    (
        "gauge",
        "gate_type_wait_seconds_max",
        "The longest finished wait, including requests that went away.",
        |each| Number::Nanoseconds(each.waited_ns_max),
    ),
];

fn ended(text: &mut Text, gates: &[AtGate<'_>]) {
    const NAME: &str = "gate_ended_total";
    text.head("counter", NAME, "Requests by how they ended.");
    for gate in gates {
        let totals = &gate.admission.totals;
        for (how, count) in [
            ("completed", totals.completed),
            ("failed", totals.failed),
            ("refused_full", totals.refused_full),
            ("refused_shed", totals.refused_shed),
            ("withdrawn", totals.withdrawn),
        ] {
            let labels: Labels<'_> = gate.labels.iter().copied().chain([("how", how)]).collect();
            text.sample(NAME, &labels, count);
        }
    }
}

fn connections(text: &mut Text, counts: &Connections) {
    text.gauge(
        "gate_connections",
        "Open connections of clients.",
        counts.open,
    );
    text.counter(
        "gate_connections_total",
        "Connections accepted.",
        counts.total,
    );
    text.counter(
        "gate_connections_refused_total",
        "Connections above the limit.",
        counts.refused_total,
    );
    text.counter(
        "gate_connections_failed_total",
        "Connections that ended by an error.",
        counts.failed_total,
    );
}

/// The value of a sample.
enum Number {
    Count(u64),
    /// A time, shown in seconds.
    Nanoseconds(u64),
    Ratio(f64),
}

impl Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Count(count) => count.fmt(f),
            Self::Nanoseconds(ns) => (ns as f64 / 1e9).fmt(f),
            Self::Ratio(ratio) => ratio.fmt(f),
        }
    }
}
