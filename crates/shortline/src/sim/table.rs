//! The results on a terminal.

use shortline_sched::Policy;
use shortline_sim::UserGroup;
use shortline_sim::results::PolicyResult;
use shortline_table::{Table, or_dash};

/// A line per policy for the first `asked` results. The reference is among all results; means are
/// related to it under the name given with it.
pub(super) fn table(
    title: &str,
    results: &[PolicyResult],
    asked: usize,
    reference: (Policy, &str),
    users: &[UserGroup],
) -> String {
    let requests = results.first().map_or(0, |result| result.requests);
    let shown = &results[..asked];
    let mut text = format!("{title}: {requests} requests; times in the system in ms\n\n");
    text += &times(results, shown, reference).to_string();
    let others = [
        by_users(results, shown, reference, users),
        stretches(shown),
        recoveries(shown),
        failures(shown),
    ];
    for table in others.into_iter().flatten() {
        text += &format!("\n{table}");
    }
    text
}

fn times(
    results: &[PolicyResult],
    shown: &[PolicyResult],
    (reference, related): (Policy, &str),
) -> Table {
    let mut table = Table::new(&[
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
        related,
    ]);
    let reference_mean = of_policy(results, reference).map(|result| result.sojourn_mean);
    for result in shown {
        let ms = |seconds: f64, places: usize| format!("{:.places$}", seconds * 1e3);
        let two = |value: f64| format!("{value:.2}");
        table.row(vec![
            result.policy.to_string(),
            ms(result.sojourn_mean, 2),
            or_dash(result.sojourn_mean_half_width, |width| ms(width, 2)),
            ms(result.sojourn_p50, 2),
            ms(result.sojourn_p99, 1),
            ms(result.sojourn_p999, 1),
            ms(result.sojourn_max, 1),
            ms(result.largest_percent_sojourn_mean, 1),
            two(result.sojourn_c2),
            two(result.slowdown_mean),
            two(result.number_mean),
            two(reference_mean.map_or(f64::NAN, |mean| result.sojourn_mean / mean)),
        ]);
    }
    table
}

fn of_policy(results: &[PolicyResult], policy: Policy) -> Option<&PolicyResult> {
    results.iter().find(|result| result.policy == policy)
}

fn by_users(
    results: &[PolicyResult],
    shown: &[PolicyResult],
    (reference, related): (Policy, &str),
    users: &[UserGroup],
) -> Option<Table> {
    if users.len() < 2 {
        return None;
    }
    let mut table = Table::new(&["by users", "users", "requests", "mean", related]);
    let reference = of_policy(results, reference);
    for result in shown {
        for (place, (group, means)) in users.iter().zip(&result.by_users).enumerate() {
            let over = reference.map_or(f64::NAN, |reference| {
                means.sojourn_mean / reference.by_users[place].sojourn_mean
            });
            table.row(vec![
                result.policy.to_string(),
                group.to_string(),
                means.requests.to_string(),
                format!("{:.2}", means.sojourn_mean * 1e3),
                format!("{over:.2}"),
            ]);
        }
    }
    Some(table)
}

fn stretches(shown: &[PolicyResult]) -> Option<Table> {
    let mut table = Table::new(&["stretch", "above 1", "mean", "largest", "largest job"]);
    let of_each = shown.iter();
    let known: Vec<_> = of_each
        .filter_map(|result| Some((result, result.stretch?)))
        .collect();
    for (result, stretch) in &known {
        table.row(vec![
            result.policy.to_string(),
            format!("{:.2} %", stretch.share_above_one * 100.0),
            format!("{:.3}", stretch.mean),
            format!("{:.2}", stretch.max),
            format!("{:.2}", stretch.largest_job),
        ]);
    }
    (!known.is_empty()).then_some(table)
}

fn recoveries(shown: &[PolicyResult]) -> Option<Table> {
    let mut table = Table::new(&[
        "recovery",
        "overloads",
        "jobs then",
        "mean s",
        "not in time",
    ]);
    let of_each = shown.iter();
    let known: Vec<_> = of_each
        .filter_map(|result| Some((result, result.recovery.as_ref()?)))
        .collect();
    for (result, recovery) in &known {
        table.row(vec![
            result.policy.to_string(),
            recovery.overloads.to_string(),
            format!("{:.1}", recovery.jobs_at_end_mean),
            or_dash(recovery.seconds_mean, |seconds| format!("{seconds:.2}")),
            recovery.not_recovered.to_string(),
        ]);
    }
    (!known.is_empty()).then_some(table)
}

fn failures(shown: &[PolicyResult]) -> Option<Table> {
    let mut table = Table::new(&["given up", "attempts", "for good"]);
    for result in shown {
        table.row(vec![
            result.policy.to_string(),
            result.aborts.to_string(),
            result.failed.to_string(),
        ]);
    }
    shown
        .iter()
        .any(|result| result.aborts > 0)
        .then_some(table)
}
