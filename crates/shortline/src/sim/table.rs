//! The results on a terminal.

use std::fmt::Write;

use shortline_sched::Policy;
use shortline_sim::UserGroup;
use shortline_sim::results::PolicyResult;

/// A line per policy, of the first `asked` results; the reference is among all of them, and what
/// means are related to under the name beside it.
pub(super) fn table(
    title: &str,
    results: &[PolicyResult],
    asked: usize,
    (reference, related): (Policy, &str),
    users: &[UserGroup],
) -> String {
    let reference_mean = results
        .iter()
        .find(|result| result.policy == reference)
        .map(|result| result.sojourn_mean);
    let requests = results.first().map_or(0, |result| result.requests);
    let mut text = format!("{title}: {requests} requests; times in the system in ms\n\n");
    let asked = &results[..asked];
    let width = asked
        .iter()
        .map(|result| result.policy.to_string().len())
        .max()
        .unwrap_or(0)
        .max(6);
    let _ = writeln!(
        text,
        "{:<width$} {:>10} {:>9} {:>9} {:>10} {:>10} {:>10} {:>11} {:>6} {:>9} {:>9} {:>9}",
        "policy",
        "mean",
        "±",
        "p50",
        "p99",
        "p99.9",
        "longest",
        "largest 1%",
        "C2",
        "slowdown",
        "number",
        related
    );
    for result in asked {
        let ms = |seconds: f64| seconds * 1e3;
        let _ = writeln!(
            text,
            "{:<width$} {:>10.2} {:>9} {:>9.2} {:>10.1} {:>10.1} {:>10.1} {:>11.1} {:>6.2} {:>9.2} {:>9.2} {:>9.2}",
            result.policy.to_string(),
            ms(result.sojourn_mean),
            or_dash(result.sojourn_mean_half_width.map(ms), 2),
            ms(result.sojourn_p50),
            ms(result.sojourn_p99),
            ms(result.sojourn_p999),
            ms(result.sojourn_max),
            ms(result.largest_percent_sojourn_mean),
            result.sojourn_c2,
            result.slowdown_mean,
            result.number_mean,
            reference_mean.map_or(f64::NAN, |mean| result.sojourn_mean / mean),
        );
    }
    by_users(
        &mut text,
        results,
        asked.len(),
        (reference, related),
        users,
        width,
    );
    stretches(&mut text, asked, width);
    recoveries(&mut text, asked, width);
    failures(&mut text, asked, width);
    text
}

fn by_users(
    text: &mut String,
    results: &[PolicyResult],
    asked: usize,
    (reference, related): (Policy, &str),
    users: &[UserGroup],
    width: usize,
) {
    if users.len() < 2 {
        return;
    }
    let _ = writeln!(
        text,
        "\n{:<width$} {:>12} {:>12} {:>12} {:>12}",
        "by users", "users", "requests", "mean", related
    );
    let reference = results.iter().find(|result| result.policy == reference);
    for result in &results[..asked] {
        for (place, (group, means)) in users.iter().zip(&result.by_users).enumerate() {
            let over = reference.map_or(f64::NAN, |reference| {
                means.sojourn_mean / reference.by_users[place].sojourn_mean
            });
            let _ = writeln!(
                text,
                "{:<width$} {:>12} {:>12} {:>12.2} {:>12.2}",
                result.policy.to_string(),
                group.to_string(),
                means.requests,
                means.sojourn_mean * 1e3,
                over,
            );
        }
    }
}

fn stretches(text: &mut String, results: &[PolicyResult], width: usize) {
    if results.iter().all(|result| result.stretch.is_none()) {
        return;
    }
    let _ = writeln!(
        text,
        "\n{:<width$} {:>12} {:>9} {:>9} {:>12}",
        "stretch", "above 1", "mean", "largest", "largest job"
    );
    for result in results {
        if let Some(stretch) = result.stretch {
            let _ = writeln!(
                text,
                "{:<width$} {:>10.2} % {:>9.3} {:>9.2} {:>12.2}",
                result.policy.to_string(),
                stretch.share_above_one * 100.0,
                stretch.mean,
                stretch.max,
                stretch.largest_job,
            );
        }
    }
}

fn recoveries(text: &mut String, results: &[PolicyResult], width: usize) {
    if results.iter().all(|result| result.recovery.is_none()) {
        return;
    }
    let _ = writeln!(
        text,
        "\n{:<width$} {:>12} {:>12} {:>12} {:>14}",
        "recovery", "overloads", "jobs then", "mean s", "not in time"
    );
    for result in results {
        if let Some(recovery) = &result.recovery {
            let _ = writeln!(
                text,
                "{:<width$} {:>12} {:>12.1} {:>12} {:>14}",
                result.policy.to_string(),
                recovery.overloads,
                recovery.jobs_at_end_mean,
                or_dash(recovery.seconds_mean, 2),
                recovery.not_recovered,
            );
        }
    }
}

fn failures(text: &mut String, results: &[PolicyResult], width: usize) {
    if results.iter().all(|result| result.aborts == 0) {
        return;
    }
    let _ = writeln!(
        text,
        "\n{:<width$} {:>12} {:>12}",
        "given up", "attempts", "for good"
    );
    for result in results {
        let _ = writeln!(
            text,
            "{:<width$} {:>12} {:>12}",
            result.policy.to_string(),
            result.aborts,
            result.failed
        );
    }
}

fn or_dash(value: Option<f64>, places: usize) -> String {
    value.map_or("-".into(), |value| format!("{value:.places$}"))
}
