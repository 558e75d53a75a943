//! The copies of routes' requests as Prometheus text.

use std::fmt::Display;

use shortline_daemon::admin::prometheus::Text;
use shortline_web::proxy::mirror::MirrorSnapshot;

use super::super::routes::MirrorStatus;

/// A line for each route whose requests are copied.
pub fn render(page: &mut Text, mirrors: &[MirrorStatus]) {
    fn of<'a, V: Display>(
        mirrors: &'a [MirrorStatus],
        value: impl Fn(&MirrorSnapshot) -> V + 'a,
    ) -> impl Iterator<Item = ([(&'a str, &'a str); 1], V)> {
        let label = |mirror: &'a MirrorStatus| [("route", mirror.route.as_str())];
        mirrors
            .iter()
            .map(move |mirror| (label(mirror), value(&mirror.state)))
    }
    if mirrors.is_empty() {
        return;
    }
    page.gauge_of(
        "mirror_in_flight",
        "Copies of requests under way.",
        of(mirrors, |mirror| mirror.in_flight),
    );
    page.counter_of(
        "mirror_answered_total",
        "Copies of requests that were answered.",
        of(mirrors, |mirror| mirror.answered_total),
    );
    page.counter_of(
        "mirror_failed_total",
        "Copies of requests that were not answered.",
        of(mirrors, |mirror| mirror.failed_total),
    );
    page.counter_of(
        "mirror_dropped_total",
        "Copies of requests that were not sent: too many, too long, or broken off.",
        of(mirrors, |mirror| mirror.dropped_total),
    );
}
