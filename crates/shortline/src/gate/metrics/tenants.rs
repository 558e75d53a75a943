//! The metrics of tenants, for gates with more than one.
//!
//! The label `tenant` has a bounded number of values: the first tenants of the table, and one for the sum of
//! all others. Tenants keep their places in the table.

use shortline_sched::admission::TenantView;

use super::{AtGate, Labels, Metric, Number};
use shortline_daemon::admin::prometheus::Text;

/// The most tenants of a gate that have series of their own.
const TENANTS_MAX: usize = 100;

/// The label of the sum of all others.
const OTHERS: &str = "(others)";

const OF_A_TENANT: [Metric<TenantView, Number>; 9] = [
    (
        "gauge",
        "gate_tenant_weight",
        "Its share where others want theirs.",
        |each| Number::Count(u64::from(each.weight)),
    ),
    (
        "gauge",
        "gate_tenant_connections",
        "Open connections of its clients.",
        |each| Number::Count(each.connections as u64),
    ),
    (
        "gauge",
        "gate_tenant_waiting",
        "Requests of the tenant that wait.",
        |each| Number::Count(each.waiting as u64),
    ),
    (
        "gauge",
        "gate_tenant_running",
        "Requests of the tenant that were admitted and have not ended.",
        |each| Number::Count(each.running as u64),
    ),
    (
        "gauge",
        "gate_tenant_load_seconds",
        "What its active requests add to the load.",
        |each| Number::Nanoseconds(each.load_ns),
    ),
    (
        "counter",
        "gate_tenant_served_seconds_total",
        "What the backend has spent on it, in the unit of the load.",
        |each| Number::Nanoseconds(each.served_ns),
    ),
    (
        "counter",
        "gate_tenant_admitted_total",
        "Requests admitted.",
        |each| Number::Count(each.admitted),
    ),
    (
        "counter",
        "gate_tenant_refused_total",
        "Requests refused on arrival.",
        |each| Number::Count(each.refused),
    ),
    (
        "counter",
        "gate_tenant_wait_seconds_total",
        "Total time that admitted requests have waited.",
        |each| Number::Nanoseconds(each.waited_ns_sum),
    ),
];

/// The metrics of each gate's tenants.
pub(super) fn tenants(text: &mut Text, gates: &[AtGate<'_>]) {
    let several = gates.iter().filter(|gate| gate.admission.tenants.len() > 1);
    let shown: Vec<_> = several
        .map(|gate| (gate, shown(&gate.admission.tenants)))
        .collect();
    if shown.is_empty() {
        return;
    }
    for (kind, name, help, value) in OF_A_TENANT {
        text.head(kind, name, help);
        for (gate, tenants) in &shown {
            for each in tenants {
                let label = ("tenant", each.name.as_str());
                let labels: Labels<'_> = gate.labels.iter().copied().chain([label]).collect();
                text.sample(name, &labels, value(each));
            }
        }
    }
}

/// The tenants that have series.
fn shown(tenants: &[TenantView]) -> Vec<TenantView> {
    let (first, rest) = tenants.split_at(tenants.len().min(TENANTS_MAX));
    let mut shown = first.to_vec();
    if let Some(others) = rest.iter().cloned().reduce(sum) {
        shown.push(TenantView {
            name: OTHERS.to_owned(),
            ..others
        });
    }
    shown
}

fn sum(one: TenantView, other: TenantView) -> TenantView {
    TenantView {
        weight: one.weight.saturating_add(other.weight),
        connections: one.connections + other.connections,
        waiting: one.waiting + other.waiting,
        running: one.running + other.running,
        active: one.active + other.active,
        load_ns: one.load_ns + other.load_ns,
        served_ns: one.served_ns + other.served_ns,
        admitted: one.admitted + other.admitted,
        unqueued: one.unqueued + other.unqueued,
        refused: one.refused + other.refused,
        connections_refused: one.connections_refused + other.connections_refused,
        waited_ns_sum: one.waited_ns_sum + other.waited_ns_sum,
        ..one
    }
}

#[cfg(test)]
mod tests {
    use shortline_gate::{Gate, GateConfig};

    use super::*;

    #[test]
    fn the_series_are_bounded_and_lose_nothing() {
        let gate = Gate::new(GateConfig::default());
        let mut clients = Vec::new();
        for index in 0..150 {
            let mut client = gate.client("user");
            client
                .join(Some(&format!("t{index}")))
                .expect("there is no limit");
            clients.push(client);
        }
        let tenants = gate.snapshot().tenants;
        let shown = shown(&tenants);
        assert_eq!(shown.len(), TENANTS_MAX + 1);
        let connections: usize = shown.iter().map(|each| each.connections).sum();
        assert_eq!(connections, 150);
        assert_eq!(shown[TENANTS_MAX].name, OTHERS);
    }
}
