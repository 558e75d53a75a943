//! The report on an uplink experiment as text. Each point has a table for each seed, its void runs and
//! failures, and the medians over the seeds. The papers' claims beside our figures follow.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::report::headline::headline;
use crate::study::claim::{Judged, Runs, Value};
use crate::study::course_figures::CourseFigures;
use crate::study::design::Experiment;
use crate::study::figures::{BoundFigures, Figures, PointFigures, RunFigures, SeedFigures};
use crate::study::plan::Plan;
use crate::study::point::{Arrivals, Point};
use crate::study::stats::Spread;
use shortline_table::{Table, bytes, three_digits, time};

/// The report. `whole` is the number of runs of the plan that are kept.
pub fn table(experiment: &Experiment, plan: &Plan, figures: &Figures, whole: usize) -> String {
    let mut text = String::new();
    if let Some(cut_short) = plan.cut_short(whole) {
        text += &format!("{cut_short}\n\n");
    }
    if let Some(headline) = headline(figures) {
        text += &format!("{headline}\n\n");
    }
    for (point, figures) in plan.points.iter().zip(&figures.points) {
        text += &point_tables(plan, point, figures);
    }
    text + &claims(experiment, figures)
}

fn point_tables(plan: &Plan, point: &Point, figures: &PointFigures) -> String {
    let mut text = format!(
        "{} {}: {}\n",
        plan.experiment,
        point.label,
        describe(point, figures)
    );
    for seed in &figures.seeds {
        // Writing to a string cannot fail.
        let beside = seed.bounds.map(|bounds| bounds.per_request_bytes);
        let beside = beside.map_or(String::new(), |bytes| {
            format!(", {bytes} bytes a request beside its body")
        });
        writeln!(text, "\nseed {}{beside}:", seed.seed).ok();
        text += &seed_table(seed).to_string();
        text += &notes(point, seed);
    }
    if figures.seeds.len() > 1 {
        let seeds = figures.seeds.len();
        writeln!(text, "\nmedian of {seeds} seeds (lowest to highest):").ok();
        text += &medians(plan, &figures.seeds).to_string();
    }
    text + "\n"
}

/// A point in words. Conditions that were not set are as the runs found them.
pub fn describe(point: &Point, figures: &PointFigures) -> String {
    let setup = &point.setup;
    let protocol = match (setup.speech.tls, setup.speech.http2) {
        _ if setup.speech.http3 => "HTTP/3",
        (false, false) => "HTTP/1.1",
        (true, false) => "HTTP/1.1 over TLS",
        (false, true) => "HTTP/2 (prior knowledge)",
        (true, true) => "HTTP/2 over TLS",
    };
    let environment = &setup.environment;
    let per_connection = match environment.requests_per_connection {
        Some(1) => "a connection per request".to_owned(),
        Some(requests) => format!("{requests} requests per connection"),
        None => "6 connections for all".to_owned(),
    };
    let arrivals = match &point.arrivals {
        Arrivals::Phases {
            low_load,
            high_load,
            ..
        } if low_load == high_load => format!("load {low_load}"),
        Arrivals::Phases {
            low_s,
            high_s,
            low_load,
            high_load,
        } => format!("load {low_load} for {low_s} s, {high_load} for {high_s} s"),
        Arrivals::Users(users) => format!("{users} user equivalents"),
        Arrivals::Trace(path) => format!("the requests of {}", path.display()),
    };
    let patience = environment.abort.map_or(String::new(), |abort| {
        format!(
            ", users give up after {}, {} retries",
            abort.after, abort.retries
        )
    });
    let congestion_control = figures.congestion_control();
    let congestion_control = congestion_control.map_or(String::new(), |name| format!(", {name}"));
    format!(
        "{} for {} s, {arrivals}, {protocol}, {per_connection}{patience}{congestion_control}, setup \
         {environment}{}",
        point.rate, point.seconds, setup.course
    )
}

fn seed_table(seed: &SeedFigures) -> Table {
    let mut table = Table::new(&[
        "server",
        "mean",
        "x optimum",
        "p50",
        "p99",
        "largest 1 %",
        "x optimum",
        "failed",
        "on wire",
        "overload/off",
        "drops",
        "late",
        "latest",
    ]);
    if let Some(bounds) = seed.bounds {
        let row = |name: &str, bound: BoundFigures| {
            vec![
                name.to_owned(),
                time(bound.mean_s),
                three_digits(bound.mean_s / bounds.optimum.mean_s),
                time(bound.p50_s),
                time(bound.p99_s),
                time(bound.largest_mean_s),
                three_digits(bound.largest_mean_s / bounds.optimum.largest_mean_s),
            ]
        };
        table.row(row("fluid SRPT", bounds.optimum));
        table.row(row("fluid PS", bounds.fair));
    }
    let multiple = |value: Option<f64>| value.map_or("-".into(), three_digits);
    for run in &seed.runs {
        let summary = &run.summary;
        table.row(vec![
            run.server.clone(),
            time(summary.response_time.mean),
            multiple(run.over_optimum),
            time(summary.response_time.p50),
            time(summary.response_time.p99),
            time(summary.largest.response_time.mean),
            multiple(run.largest_over_optimum),
            (summary.requests - summary.finished).to_string(),
            bytes(run.wire_bytes as f64),
            run.overload_over_off
                .map_or("-".into(), |share| format!("{share:.3}")),
            run.drops.to_string(),
            summary.late_starts.to_string(),
            time(summary.lateness.max),
        ]);
    }
    table
}

/// Notes for the reader beside the table: void runs and failures.
fn notes(point: &Point, seed: &SeedFigures) -> String {
    let mut notes = String::new();
    if let Some(offered) = &seed.offered {
        writeln!(notes, "{offered}").ok();
    }
    if let Some(reason) = seed.no_bound {
        writeln!(notes, "no bound here: {reason}").ok();
    }
    for run in &seed.runs {
        if let Some(void) = &run.summary.void {
            writeln!(notes, "{} is VOID: {void}", run.server).ok();
        }
        if let Some(network) = &run.network {
            writeln!(notes, "{}: {network}", run.server).ok();
        }
        if let Some(course) = &run.course {
            notes += &of_course(&run.server, course);
        }
        if run.failed.is_empty() {
            continue;
        }
        let kinds: Vec<String> = run
            .summary
            .failures
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        let finished = run
            .summary
            .response_time_mean_finished_s
            .map_or("-".into(), time);
        writeln!(
            notes,
            "{} failed: {}; mean of the others {finished}; in {}/seed-{}/{}.csv.zst, first:",
            run.server,
            kinds.join(", "),
            point.label,
            seed.seed,
            run.server
        )
        .ok();
        for failed in &run.failed {
            writeln!(notes, "  {failed}").ok();
        }
    }
    notes
}

/// How a server adapted to changes of the link, in lines.
fn of_course(server: &str, course: &CourseFigures) -> String {
    let said = [
        course
            .queue_back_s
            .map(|after_s| format!("the queue short again after {after_s:.1} s")),
        course
            .used_again_s
            .map(|after_s| format!("the link used again after {after_s:.1} s")),
        course
            .neighbour_bytes
            .map(|received| format!("{} to the neighbour's clients", bytes(received as f64))),
        course
            .neighbour_mean_s
            .map(|mean_s| format!("their mean response time {}", time(mean_s))),
    ];
    let said: Vec<String> = said.into_iter().flatten().collect();
    format!("{server}: {}\n", said.join(", "))
}

fn medians(plan: &Plan, seeds: &[SeedFigures]) -> Table {
    let mut table = Table::new(&[
        "server",
        "mean",
        "x optimum",
        "largest 1 % x",
        "overload/off",
        "failed",
        "void",
    ]);
    let mut by_server: BTreeMap<&str, Vec<&RunFigures>> = BTreeMap::new();
    for run in seeds.iter().flat_map(|seed| &seed.runs) {
        by_server.entry(&run.server).or_default().push(run);
    }
    let bounds = seeds.iter().filter_map(|seed| seed.bounds);
    let optimum = bounds.map(|bounds| bounds.optimum.mean_s).collect();
    table.row(vec!["fluid SRPT".into(), spread(optimum, time)]);
    for server in &plan.servers {
        let runs = by_server
            .get(server.as_str())
            .map_or(&[][..], Vec::as_slice);
        let of = |value: fn(&RunFigures) -> Option<f64>, show: fn(f64) -> String| {
            spread(runs.iter().filter_map(|run| value(run)).collect(), show)
        };
        let failed = |run: &&RunFigures| run.summary.requests - run.summary.finished;
        let void = runs.iter().filter(|run| run.summary.void.is_some());
        table.row(vec![
            server.clone(),
            of(|run| Some(run.summary.response_time.mean), time),
            of(|run| run.over_optimum, three_digits),
            of(|run| run.largest_over_optimum, three_digits),
            of(|run| run.overload_over_off, |share| format!("{share:.3}")),
            runs.iter().map(failed).sum::<usize>().to_string(),
            void.count().to_string(),
        ]);
    }
    table
}

fn spread(values: Vec<f64>, show: fn(f64) -> String) -> String {
    match Spread::of(values) {
        Some(spread) => format!(
            "{} ({} to {})",
            show(spread.median),
            show(spread.low),
            show(spread.high)
        ),
        None => "-".into(),
    }
}

fn claims(experiment: &Experiment, figures: &Figures) -> String {
    let mut text = String::new();
    for figure in &experiment.figures {
        let judged = figure.judge(Runs::Link(figures));
        if judged.all().next().is_none() {
            continue;
        }
        let name = if figure.name.is_empty() {
            "aim"
        } else {
            &figure.name
        };
        // Writing to a string cannot fail.
        writeln!(text, "{name}: {}", figure.claim).ok();
        for check in judged.all() {
            writeln!(
                text,
                "  {}: {}: paper {}, want {}; ours {}",
                check.verdict.word(),
                check.what,
                check.paper,
                check.wanted,
                ours(check)
            )
            .ok();
        }
    }
    text
}

/// Our values in words, a single one or each with its point, and what a reader must know of them.
pub fn ours(judged: &Judged) -> String {
    let mut text = match &judged.measured.values[..] {
        [] => "-".into(),
        [value] => of_seeds(value),
        all => {
            let one = |value: &Value| format!("{} {}", value.at, of_seeds(value));
            all.iter().map(one).collect::<Vec<String>>().join(", ")
        }
    };
    if judged.is_doubtful {
        text += "; near its threshold, too few seeds";
    }
    if judged.is_split {
        text += "; seeds on both sides of the threshold";
    }
    if let Some(note) = &judged.measured.note {
        text += &format!("; {note}");
    }
    text
}

/// A median, with the range of several seeds.
fn of_seeds(value: &Value) -> String {
    let median = ratio(value.median);
    match value.seeds {
        0 | 1 => median,
        _ => format!("{median} ({} to {})", ratio(value.low), ratio(value.high)),
    }
}

/// Three decimal places below 1, where a few thousandths may decide.
fn ratio(value: f64) -> String {
    if value < 1.0 {
        format!("{value:.3}")
    } else {
        three_digits(value)
    }
}
