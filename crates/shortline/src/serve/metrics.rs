//! The server's state as Prometheus text.

mod caches;
mod mirrors;

use std::fmt::Display;

use shortline_link::{Discovered, LinkSnapshot, SIZE_CLASSES};
use shortline_web::comparison::Figures;
use shortline_web::compress::counts::CompressedBytes;
use shortline_web::proxy::BackendSnapshot;
use shortline_web::server::ServerSnapshot;
use shortline_web::{RESPONSE_SECONDS, ResponseCounts, ResponseTimes};

use super::certificates::CertificatesStatus;
use super::routes::GateStatus;
use super::status::Status;
use crate::gate;
use crate::gate::metrics::AtGate;
use shortline_daemon::admin::prometheus::Text;

/// All metrics of one moment.
pub fn render(status: &Status) -> String {
    let mut page = Text::default();
    page.gauge(
        "uptime_seconds",
        "Time since the start.",
        status.uptime_seconds,
    );
    page.gauge_of(
        "build_info",
        "The version; always 1.",
        [([("version", status.version)], 1)],
    );
    page.counter(
        "access_log_dropped_total",
        "Access log lines lost because the disk was slow or full.",
        status.access_log_dropped_total,
    );
    link(&mut page, &status.link);
    server(&mut page, &status.server);
    responses(&mut page, &status.server.responses);
    compressed(&mut page, &status.server.compressed);
    comparison(&mut page, status.comparison.as_ref());
    caches::add(&mut page, &status.caches);
    mirrors::render(&mut page, &status.mirrors);
    gates(&mut page, &status.gates);
    certificates(&mut page, &status.certificates);
    page.finish()
}

fn compressed(page: &mut Text, compressed: &[CompressedBytes]) {
    let labels = |one: &CompressedBytes| [("coding", one.coding), ("what", one.what)];
    page.counter_of(
        "compressed_bytes_in_total",
        "Bytes that were compressed on the fly: of files once each, of backends' responses as they pass.",
        compressed.iter().map(|one| (labels(one), one.in_total)),
    );
    page.counter_of(
        "compressed_bytes_out_total",
        "What came out of that.",
        compressed.iter().map(|one| (labels(one), one.out_total)),
    );
}

/// The metrics of `shortline gate` for each gate, labelled by the paths of its routes.
fn gates(page: &mut Text, gates: &[GateStatus]) {
    if gates.is_empty() {
        return;
    }
    let paths: Vec<String> = gates.iter().map(|gate| gate.routes.join(",")).collect();
    let gates = paths.iter().zip(gates);
    let labelled = gates.map(|(paths, gate)| AtGate {
        labels: vec![("route", paths.as_str())],
        admission: &gate.admission,
        types: gate.series.shown(&gate.admission.types),
    });
    let labelled: Vec<_> = labelled.collect();
    gate::metrics::admission(page, &labelled);
}

/// What is not there has no time left.
fn certificates(page: &mut Text, certificates: &CertificatesStatus) {
    let all = &certificates.all;
    if all.is_empty() {
        return;
    }
    let labelled = all.iter().map(|one| ([("name", one.name.as_str())], one));
    page.gauge_of(
        "certificate_expires_seconds",
        "How long the certificate for a name is valid; below 0 if it no longer is, absent if there is none.",
        labelled.clone().filter_map(|(name, one)| Some((name, one.expires_in_seconds?))),
    );
    page.gauge_of(
        "certificate_late",
        "Whether it ends soon, and should have been renewed before.",
        labelled
            .clone()
            .map(|(name, one)| (name, u8::from(one.is_late))),
    );
    page.gauge_of(
        "certificate_failures",
        "Attempts to get it that failed in a row.",
        labelled.clone().map(|(name, one)| (name, one.failures)),
    );
    let mut responders = labelled
        .filter_map(|(name, one)| Some((name, one.ocsp.as_ref()?)))
        .peekable();
    if responders.peek().is_some() {
        page.gauge_of(
            "certificate_stapled_seconds",
            "How long the answer of its responder (OCSP) is stapled; 0 if there is none, absent if it names no responder.",
            responders.map(|(name, ocsp)| (name, ocsp.stapled_for_seconds.unwrap_or(0))),
        );
    }
    let Some(orders) = &certificates.orders else {
        return;
    };
    page.counter_of(
        "certificate_orders_total",
        "Orders that ended, by result.",
        [
            ([("result", "got")], orders.got_total),
            ([("result", "failed")], orders.failed_total),
        ],
    );
}

fn link(page: &mut Text, link: &LinkSnapshot) {
    let (mode, policy) = (link.mode.to_string(), link.policy.as_str());
    page.gauge_of(
        "link_info",
        "Link mode and policy; always 1.",
        [([("mode", mode.as_str()), ("policy", policy)], 1)],
    );
    if let Some(rate_bps) = link.rate_bps {
        page.gauge(
            "link_rate_bits_per_second",
            "The rate of grants, as given or found out.",
            rate_bps,
        );
    }
    if let Some(found) = &link.discovered {
        discovered(page, found);
    }
    page.counter(
        "link_wire_bytes_total",
        "Bytes on the wire, headers included.",
        link.wire_bytes_total,
    );
    page.counter("link_grants_total", "Grants made.", link.grants_total);
    page.counter(
        "link_refunds_total",
        "Grants given back unused or late.",
        link.refunds_total,
    );
    page.gauge(
        "link_quantum_bytes",
        "Body bytes of a grant now.",
        link.quantum_bytes,
    );
    if let Some(bytes) = link.queue_bytes {
        page.gauge(
            "link_queue_bytes",
            "The modelled queue of the uplink (paced).",
            bytes,
        );
    }
    if let Some(slots) = link.slots_held {
        page.gauge("link_slots_held", "Slots that hold bytes (slots).", slots);
    }
    page.gauge_of(
        "link_jobs",
        "Responses on the link by stage.",
        [
            ([("stage", "waiting")], link.jobs_waiting),
            ([("stage", "blocked")], link.jobs_blocked),
            ([("stage", "sending")], link.jobs_sending),
        ],
    );
    page.gauge_of(
        "link_jobs_by_size",
        "Responses on the link by their whole size.",
        link.size_classes
            .iter()
            .map(|class| ([("size", class.name)], class.jobs)),
    );
    page.gauge_of(
        "link_remaining_bytes_by_size",
        "Bytes that these responses still have to send.",
        link.size_classes
            .iter()
            .map(|class| ([("size", class.name)], class.remaining_bytes)),
    );
}

/// What is not known is absent.
fn discovered(page: &mut Text, found: &Discovered) {
    page.gauge_of(
        "uplink_state",
        "The classification of the uplink (auto); always 1.",
        [([("state", found.state.name())], 1)],
    );
    page.gauge(
        "uplink_confidence",
        "How sure the rate found is, from 0 to 1 (auto).",
        found.confidence,
    );
    page.counter(
        "uplink_state_changes_total",
        "How often the classification of the uplink changed (auto).",
        found.changes_total,
    );
    if let Some(estimate_bps) = found.estimate_bps {
        page.gauge(
            "uplink_estimate_bits_per_second",
            "The uplink's rate as found out (auto).",
            estimate_bps,
        );
    }
    if let Some(delay_ms) = found.shared_delay_ms {
        page.gauge(
            "uplink_shared_delay_seconds",
            "How long most clients' packets are queued on the way (auto).",
            delay_ms / 1e3,
        );
    }
}

fn server(page: &mut Text, server: &ServerSnapshot) {
    let connections = &server.connections;
    page.gauge_of(
        "connections",
        "Open connections by stage.",
        [
            ([("stage", "idle")], connections.idle),
            ([("stage", "head")], connections.head),
            ([("stage", "response")], connections.response),
            ([("stage", "tunnel")], connections.tunnel),
        ],
    );
    page.counter(
        "connections_total",
        "Connections accepted.",
        server.connections_total,
    );
    page.counter(
        "connections_refused_total",
        "Connections closed at once because their address had its share.",
        server.connections_refused_total,
    );
    page.counter(
        "connections_expired_total",
        "Connections closed because a time limit ran out.",
        server.connections_expired_total,
    );
    page.counter(
        "connections_failed_total",
        "Connections that ended by an error.",
        server.connections_failed_total,
    );
    page.gauge(
        "disk_jobs",
        "Responses that wait for the disk.",
        server.disk_jobs,
    );
    backends(page, &server.backends);
}

fn backends(page: &mut Text, backends: &[BackendSnapshot]) {
    fn of<'a, V: Display>(
        backends: &'a [BackendSnapshot],
        value: impl Fn(&BackendSnapshot) -> V + 'a,
    ) -> impl Iterator<Item = ([(&'a str, &'a str); 1], V)> {
        let label = |backend: &'a BackendSnapshot| [("backend", backend.address.as_str())];
        backends
            .iter()
            .map(move |backend| (label(backend), value(backend)))
    }
    if backends.is_empty() {
        return;
    }
    page.gauge_of(
        "backend_up",
        "Whether the server behind a route seems to be up.",
        of(backends, |backend| u8::from(backend.up)),
    );
    page.gauge_of(
        "backend_weight",
        "Its weight now: less than in the configuration after it has come back.",
        of(backends, |backend| backend.weight),
    );
    page.gauge_of(
        "backend_requests",
        "Requests under way at it.",
        of(backends, |backend| backend.outstanding),
    );
    page.gauge_of(
        "backend_connections",
        "Open connections to it.",
        of(backends, |backend| backend.connections_open),
    );
    page.counter_of(
        "backend_requests_total",
        "Requests sent to it, including retries.",
        of(backends, |backend| backend.requests_total),
    );
    page.counter_of(
        "backend_retries_total",
        "Requests sent to it that another server did not answer.",
        of(backends, |backend| backend.retries_total),
    );
    page.counter_of(
        "backend_failures_total",
        "Requests that it failed.",
        of(backends, |backend| backend.failures_total),
    );
}

fn responses(page: &mut Text, counts: &ResponseCounts) {
    const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
    page.counter_of(
        "requests_total",
        "Requests answered, by class of status.",
        CLASSES
            .iter()
            .zip(counts.by_status_class)
            .map(|(class, count)| ([("status", *class)], count)),
    );
    page.counter(
        "responses_incomplete_total",
        "Responses that ended before their last byte.",
        counts.incomplete_total,
    );
    page.counter(
        "body_bytes_total",
        "Body bytes handed over.",
        counts.body_bytes_total,
    );
    page.counter(
        "wait_seconds_total",
        "Time from complete request to first grant, summed over complete responses.",
        counts.wait_seconds_total,
    );
    page.head(
        "histogram",
        "response_seconds",
        "Time from complete request to last byte handed over, complete responses.",
    );
    histogram(page, "response_seconds", &[], &counts.times);
    page.head(
        "histogram",
        "response_seconds_by_size",
        "The same by the size of the body.",
    );
    for ((_, size), times) in SIZE_CLASSES.iter().zip(&counts.by_size) {
        histogram(page, "response_seconds_by_size", &[("size", size)], times);
    }
    page.head(
        "histogram",
        "response_seconds_by_site",
        "The same by site; the first 64 have their own.",
    );
    for site in &counts.by_site {
        let label = [("site", site.name.as_str())];
        histogram(page, "response_seconds_by_site", &label, &site.times);
    }
}

/// The same responses as they were and as fair sharing would have had them.
fn comparison(page: &mut Text, figures: Option<&Figures>) {
    let Some(figures) = figures else {
        return;
    };
    page.head(
        "histogram",
        "compared_response_seconds",
        "Response times on the uplink by size, as they were (ours) and as fair sharing among clients would have had them (fair).",
    );
    for both in &figures.by_size {
        for (order, times) in [("ours", &both.ours), ("fair", &both.fair)] {
            let labels = [("order", order), ("size", both.size)];
            histogram(page, "compared_response_seconds", &labels, times);
        }
    }
    page.counter(
        "compared_left_out_total",
        "Responses that were not compared because there were too many at once.",
        figures.left_out_total,
    );
    page.counter(
        "compared_restarts_total",
        "Times that the comparison began anew because it could not keep up.",
        figures.restarts_total,
    );
}

/// In Prometheus, each bucket includes all those below it.
fn histogram(page: &mut Text, name: &str, labels: &[(&str, &str)], times: &ResponseTimes) {
    let bounds = RESPONSE_SECONDS.iter().map(f64::to_string);
    let bounds = bounds.chain(std::iter::once("+Inf".to_owned()));
    let mut total = 0;
    for (bound, count) in bounds.zip(&times.buckets) {
        total += count;
        let labels = [labels, &[("le", bound.as_str())]].concat();
        page.sample(&format!("{name}_bucket"), &labels, total);
    }
    page.sample(&format!("{name}_sum"), labels, times.seconds);
    page.sample(&format!("{name}_count"), labels, total);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_histogram_is_cumulative() {
        let mut counts = ResponseCounts {
            by_status_class: [0, 3, 0, 0, 0],
            body_bytes_total: 9,
            wait_seconds_total: 0.5,
            ..ResponseCounts::default()
        };
        for response_ns in [1_000, 20_000_000_000, 30_000_000_000] {
            counts.times.count(response_ns);
        }
        let mut page = Text::default();
        responses(&mut page, &counts);
        let text = page.finish();
        assert!(text.contains("shortline_response_seconds_bucket{le=\"0.001\"} 1\n"));
        assert!(text.contains("shortline_response_seconds_bucket{le=\"10\"} 1\n"));
        assert!(text.contains("shortline_response_seconds_bucket{le=\"+Inf\"} 3\n"));
        assert!(text.contains("shortline_response_seconds_count 3\n"));
        assert!(text.contains("shortline_response_seconds_by_size_count{size=\"up to 1 KB\"} 0\n"));
        assert!(text.contains("shortline_requests_total{status=\"2xx\"} 3\n"));
    }
}
