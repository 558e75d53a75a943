//! The gate's state as Prometheus text.
//!
//! The label `type` has as many values as the table of types has rows (`--types-max`).

use std::fmt::Display;

use shortline_sched::admission::{Totals, TypeView};

use super::status::{Connections, Status};
use crate::admin::prometheus::Text;

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
    text.gauge_of(
        "gate_info",
        "What is relayed and who goes first; always 1.",
        [([("kind", settings.kind), ("policy", settings.policy)], 1)],
    );
    load(&mut text, status);
    totals(&mut text, &status.admission.totals);
    if let Some(counts) = &status.connections {
        connections(&mut text, counts);
    }
    types(&mut text, &status.admission.types);
    text.finish()
}

fn load(text: &mut Text, status: &Status) {
    let admission = &status.admission;
    text.gauge("gate_waiting", "Requests that wait.", admission.waiting);
    text.gauge(
        "gate_running",
        "Requests that were admitted and have not ended.",
        admission.running,
    );
    text.gauge(
        "gate_active",
        "Those of them whose client does not keep them waiting.",
        admission.active,
    );
    text.gauge(
        "gate_load_seconds",
        "The sum of the estimated service times of the active requests.",
        seconds(admission.load_ns),
    );
    text.gauge(
        "gate_slowdown",
        "How many times longer services take than alone (capacity auto; else 1).",
        admission.slowdown,
    );
    if let Some(capacity_ns) = admission.capacity_ns {
        text.gauge(
            "gate_capacity_seconds",
            "How much of that may run at once.",
            seconds(capacity_ns),
        );
    }
}

fn totals(text: &mut Text, totals: &Totals) {
    text.counter_of(
        "gate_ended_total",
        "Requests by how they ended.",
        [
            ([("how", "completed")], totals.completed),
            ([("how", "failed")], totals.failed),
            ([("how", "refused_full")], totals.refused_full),
            ([("how", "refused_shed")], totals.refused_shed),
            ([("how", "withdrawn")], totals.withdrawn),
        ],
    );
    text.counter("gate_admitted_total", "Requests admitted.", totals.admitted);
    text.counter(
        "gate_escaped_total",
        "Requests admitted above the capacity, because nothing else happened any more.",
        totals.escaped,
    );
    text.counter(
        "gate_would_wait_total",
        "In a dry run: requests that would have had to wait.",
        totals.would_wait,
    );
    text.counter(
        "gate_wait_seconds_total",
        "Time that admitted requests have waited, all together.",
        seconds(totals.waited_ns_sum),
    );
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

fn types(text: &mut Text, types: &[TypeView]) {
    let mut of = |kind: &str, name: &str, help: &str, value: &dyn Fn(&TypeView) -> Number| {
        text.head(kind, name, help);
        for each in types {
            text.sample(name, &[("type", &each.name)], value(each));
        }
    };
    of(
        "gauge",
        "gate_type_estimate_seconds",
        "Estimated service time.",
        &|each| Number::Seconds(each.estimate_ns),
    );
    of(
        "gauge",
        "gate_type_waiting",
        "Requests of the type that wait.",
        &|each| Number::Count(each.waiting as u64),
    );
    of(
        "gauge",
        "gate_type_running",
        "Requests of the type that run.",
        &|each| Number::Count(each.running as u64),
    );
    of(
        "counter",
        "gate_type_admitted_total",
        "Requests admitted.",
        &|each| Number::Count(each.admitted),
    );
    of(
        "counter",
        "gate_type_completed_total",
        "Requests that ended well.",
        &|each| Number::Count(each.completed),
    );
    of(
        "counter",
        "gate_type_failed_total",
        "Requests that broke off after they were admitted.",
        &|each| Number::Count(each.failed),
    );
    of(
        "counter",
        "gate_type_refused_total",
        "Requests refused on arrival.",
        &|each| Number::Count(each.refused),
    );
    of(
        "counter",
        "gate_type_withdrawn_total",
        "Requests that went away while they waited, at their limit or before.",
        &|each| Number::Count(each.withdrawn),
    );
    of(
        "counter",
        "gate_type_wait_seconds_total",
        "Time that admitted requests have waited, all together.",
        &|each| Number::Seconds(each.waited_ns_sum),
    );
    of(
        "gauge",
        "gate_type_wait_seconds_max",
        "The longest of these waits.",
        &|each| Number::Seconds(each.waited_ns_max),
    );
}

/// A value of a type.
enum Number {
    Count(u64),
    /// Nanoseconds, told in seconds.
    Seconds(u64),
}

impl Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Count(count) => count.fmt(f),
            Self::Seconds(ns) => seconds(ns).fmt(f),
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
