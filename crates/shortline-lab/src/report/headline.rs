//! The result in one sentence: the first line of a report and of its page. An experiment with several
//! points has none, because its lines and claims say it.

use crate::study::figures::{Figures, RunFigures, SeedFigures};
use crate::study::stats::Spread;
use shortline_table::{three_digits, time};

/// The sentence: the mean response times of the servers that stand for SRPT and for FAIR, as medians over
/// the seeds that have both.
pub fn headline(figures: &Figures) -> Option<String> {
    let [point] = &figures.points[..] else {
        return None;
    };
    let both = |seed: &'_ SeedFigures| seed.ours().is_some() && seed.fair().is_some();
    let seeds: Vec<&SeedFigures> = point.seeds.iter().filter(|seed| both(seed)).collect();
    let ours: Vec<&RunFigures> = seeds.iter().filter_map(|seed| seed.ours()).collect();
    let fair: Vec<&RunFigures> = seeds.iter().filter_map(|seed| seed.fair()).collect();
    let over = Spread::of(ours.iter().filter_map(|run| run.over_optimum));
    let over = over.map_or(String::new(), |over| {
        let times = three_digits(over.median);
        format!(", {times} times the best possible")
    });
    let congestion_control = point.congestion_control();
    let under = congestion_control.map_or(String::new(), |name| format!(" (TCP: {name})"));
    let mut text = format!(
        "Shortline{} answered in {} on the mean{over}; {} in {}{under}",
        policy_suffix(&ours.first()?.server),
        mean(&ours)?,
        name(&fair.first()?.server),
        mean(&fair)?
    );
    if ours
        .iter()
        .chain(&fair)
        .any(|run| run.summary.void.is_some())
    {
        text += " (VOID: see below)";
    }
    Some(text)
}

/// The policy in parentheses, unless it is the papers' `srpt` or the default.
fn policy_suffix(ours: &str) -> String {
    match ours {
        "srpt" | "shares" => String::new(),
        policy => format!(" ({policy})"),
    }
}

fn name(fair: &str) -> &str {
    match fair {
        "fair" => "fair sharing",
        "off" => "Shortline without an order",
        server => server,
    }
}

fn mean(runs: &[&RunFigures]) -> Option<String> {
    let means = runs.iter().map(|run| run.summary.response_time.mean);
    Spread::of(means).map(|spread| time(spread.median))
}
