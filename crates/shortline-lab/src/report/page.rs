//! The page: claims, tables, plots. All text goes through maud, which escapes it. The plots' SVG comes
//! from plotters, which escapes its text too.

use maud::{Markup, PreEscaped, html};
use shortline_plot as drawing;

use super::document::{claim, document, swatch};
use super::drawings::{Drawing, name};
use super::results::Results;
use super::series::{self, FLUID_PS, OPTIMUM};
use crate::report::headline::headline;
use crate::report::table::describe;
use crate::study::claim::{Figure, Runs};
use crate::study::figures::{BoundFigures, PointFigures, RunFigures, SeedFigures};
use crate::study::point::Point;
use crate::study::stats::Spread;
use shortline_table::{bytes, three_digits, time};

/// With more points than this the points are folded, so that the page stays clear.
const POINTS_OPEN: usize = 3;

/// The whole page. `first` is the picture below the result, and `points` has the plots of each point, in the plan's order.
///
/// # Errors
/// If a plot cannot be drawn.
pub fn render(
    results: &Results<'_>,
    machine: &[String],
    first: Option<&str>,
    across: &[Drawing],
    points: &[Vec<Drawing>],
) -> Result<String, Box<dyn std::error::Error>> {
    let across = drawings(across)?;
    let mut sections = Vec::new();
    for ((point, figures), plots) in results
        .plan
        .points
        .iter()
        .zip(&results.figures.points)
        .zip(points)
    {
        sections.push(section(results, point, figures, &drawings(plots)?));
    }
    let cut_short = results.plan.cut_short(results.whole);
    let main = html! {
        @if let Some(headline) = headline(results.figures) {
            p.headline { (headline) }
        }
        @if let Some(svg) = first {
            figure.first { div.drawing role="img" aria-label="visitors waiting over time" { (PreEscaped(svg)) } }
        }
        (claims(results))
        @if results.plan.points.len() > 1 {
            section {
                h2 { "All points" }
                (legend(results))
                div.plots { (across) }
                (means(results))
            }
        }
        @for section in &sections { (section) }
        (footnotes(machine))
    };
    let page = document(&results.experiment.id, cut_short.as_deref(), &main);
    Ok(page.into_string())
}

fn claims(results: &Results<'_>) -> Markup {
    let judged = |figure: &Figure| figure.judge(Runs::Link(results.figures));
    html! {
        section {
            h2 { "What is claimed, and what came out" }
            @for figure in &results.experiment.figures { (claim(figure, &judged(figure))) }
        }
    }
}

fn legend(results: &Results<'_>) -> Markup {
    let bounds = [FLUID_PS, OPTIMUM].into_iter();
    let names = bounds.chain(results.plan.servers.iter().map(String::as_str));
    html! {
        ul.legend {
            @for name in names {
                li { (PreEscaped(swatch(series::style(results.plan, name)))) (name) }
            }
        }
    }
}

fn drawings(drawings: &[Drawing]) -> Result<Markup, Box<dyn std::error::Error>> {
    let mut all = Vec::new();
    for drawing in drawings {
        all.push((drawing, drawing.svg()?));
    }
    Ok(html! {
        @for (drawing, svg) in &all {
            figure id=(figure_id(drawing)) {
                figcaption { (drawing.title()) }
                div.drawing role="img" aria-label=(drawing.title()) { (PreEscaped(svg)) }
                p.data { "data: " code { "report/" (drawing.file()) } }
            }
        }
    })
}

/// The anchor of a plot in the page.
fn figure_id(drawing: &Drawing) -> String {
    let name = name(drawing.plot);
    drawing
        .part
        .as_ref()
        .map_or(name.to_owned(), |part| format!("{part}-{name}"))
}

fn means(results: &Results<'_>) -> Markup {
    let servers = &results.plan.servers;
    html! {
        div.scroll {
            table {
                caption { "Mean response time, and as a multiple of the optimum" }
                thead {
                    tr {
                        th { (if results.axis.is_empty() { "point" } else { results.axis }) }
                        th { "optimum" }
                        @for server in servers { th { (server) } }
                    }
                }
                tbody {
                    @for point in &results.figures.points {
                        tr {
                            th { (point.x.map_or(point.label.clone(), drawing::number)) }
                            td { (optimum_of(point)) }
                            @for server in servers { td { (mean_of(point, server)) } }
                        }
                    }
                }
            }
        }
    }
}

fn optimum_of(point: &PointFigures) -> String {
    let bounds = point.seeds.iter().filter_map(|seed| seed.bounds);
    let spread = Spread::of(bounds.map(|bounds| bounds.optimum.mean_s));
    spread.map_or("–".into(), |spread| time(spread.median))
}

fn mean_of(point: &PointFigures, server: &str) -> String {
    let runs = || {
        let runs = point.seeds.iter().flat_map(|seed| &seed.runs);
        runs.filter(|run| run.server == server)
    };
    let Some(mean) = Spread::of(runs().map(|run| run.summary.response_time.mean)) else {
        return "–".into();
    };
    match Spread::of(runs().filter_map(|run| run.over_optimum)) {
        Some(over) => format!("{} ({}×)", time(mean.median), three_digits(over.median)),
        None => time(mean.median),
    }
}

fn section(results: &Results<'_>, point: &Point, figures: &PointFigures, plots: &Markup) -> Markup {
    let open = results.plan.points.len() <= POINTS_OPEN;
    html! {
        section id=(point.label) {
            details open[open] {
                summary { h2 { (point.label) } }
                p { (describe(point, figures)) "." }
                @if figures.seeds.is_empty() {
                    p.warning { "Nothing of this point is kept." }
                }
                @for seed in &figures.seeds { (seed_table(seed)) }
                @if !figures.seeds.is_empty() && !plots.0.is_empty() { (legend(results)) }
                div.plots { (plots) }
            }
        }
    }
}

/// The columns of a seed's table behind the server's name, with what they mean.
const COLUMNS: [(&str, &str); 14] = [
    ("mean", "mean response time of all requests"),
    ("× optimum", "how many times the mean of the fluid optimum"),
    ("median", "half of the requests took no longer"),
    ("p99", "99 of 100 requests took no longer"),
    (
        "largest 1 %",
        "mean response time of the largest hundredth of the responses",
    ),
    ("× optimum", "how many times that of the fluid optimum"),
    (
        "C²",
        "squared coefficient of variation of the response times: variance over squared mean",
    ),
    (
        "stretch > 1",
        "share of requests that took longer than under FAIR (nginx)",
    ),
    (
        "largest’s",
        "the most that one request took, in multiples of its time under FAIR",
    ),
    ("failed", "requests without a whole response"),
    ("on wire", "bytes that the link carried"),
    ("drops", "packets dropped in front of the link"),
    (
        "SYN drops",
        "connections that the server's kernel did not take at first",
    ),
    ("late", "requests that the generator started late"),
];

fn seed_table(seed: &SeedFigures) -> Markup {
    html! {
        div.scroll {
            table {
                caption {
                    "Seed " (seed.seed)
                    @if let Some(bounds) = seed.bounds {
                        ", " (bounds.per_request_bytes) " bytes a request beside its body"
                    }
                }
                thead {
                    tr {
                        th { "server" }
                        @for (name, meaning) in COLUMNS { th title=(meaning) { (name) } }
                    }
                }
                tbody {
                    @if let Some(bounds) = seed.bounds {
                        (bound_row("optimum (fluid SRPT)", bounds.optimum, bounds.optimum))
                        (bound_row("fluid PS", bounds.fair, bounds.optimum))
                    }
                    @for run in &seed.runs { (run_row(run)) }
                }
            }
        }
        @if let Some(offered) = &seed.offered {
            p.warning[!offered.is_reached()] { (offered) "." }
        }
        @if let Some(reason) = seed.no_bound { p { "No bound here: " (reason) "." } }
        @for run in &seed.runs { (notes(run)) }
    }
}

fn bound_row(name: &str, bound: BoundFigures, optimum: BoundFigures) -> Markup {
    html! {
        tr.bound {
            th { (name) }
            td { (time(bound.mean_s)) }
            td { (three_digits(bound.mean_s / optimum.mean_s)) }
            td { (time(bound.p50_s)) }
            td { (time(bound.p99_s)) }
            td { (time(bound.largest_mean_s)) }
            td { (three_digits(bound.largest_mean_s / optimum.largest_mean_s)) }
            @for _ in 0..8 { td {} }
        }
    }
}

fn run_row(run: &RunFigures) -> Markup {
    let summary = &run.summary;
    let multiple = |value: Option<f64>| value.map_or("–".into(), three_digits);
    let stretch = run.stretch.as_ref();
    let above = stretch.map(|stretch| format!("{:.1} %", 100.0 * stretch.share_above_1));
    html! {
        tr {
            th { (run.server) }
            td { (time(summary.response_time.mean)) }
            td { (multiple(run.over_optimum)) }
            td { (time(summary.response_time.p50)) }
            td { (time(summary.response_time.p99)) }
            td { (time(summary.largest.response_time.mean)) }
            td { (multiple(run.largest_over_optimum)) }
            td { (three_digits(summary.response_time.c2)) }
            td { (above.unwrap_or("–".into())) }
            td { (multiple(stretch.map(|stretch| stretch.largest))) }
            td { (summary.requests - summary.finished) }
            td { (bytes(run.wire_bytes as f64)) }
            td { (run.drops) }
            td { (run.seen.map_or("–".into(), |seen| format!("{:.0}", seen.syn_drops))) }
            td { (summary.late_starts) }
        }
    }
}

/// Notes for the reader beside the table.
fn notes(run: &RunFigures) -> Markup {
    let summary = &run.summary;
    let kinds = summary
        .failures
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"));
    let kinds: Vec<String> = kinds.collect();
    html! {
        @if let Some(void) = &summary.void {
            p.warning { (run.server) " is void: " (void) "." }
        }
        @if let Some(network) = &run.network {
            p.note { (run.server) ": " (network) "." }
        }
        @if !kinds.is_empty() {
            p.note {
                (run.server) " failed: " (kinds.join(", "))
                @if let Some(mean_s) = summary.response_time_mean_finished_s {
                    "; mean of the others " (time(mean_s))
                }
                "."
            }
        }
    }
}

fn footnotes(machine: &[String]) -> Markup {
    html! {
        section.footnotes {
            h2 { "How to read this" }
            p {
                "The optimum is what a fluid link would do that always served the request with the least "
                "work left, for the very same arrivals and bytes on the wire; fluid PS shares the link evenly. "
                "A request that failed counts with the time until it did. Starvation stretch is a request’s "
                "response time over that of the same request under FAIR, which nginx stands for. "
                "All figures: " code { "report/figures.csv" } "; every request: " code { "*/seed-*/*.csv.zst" } "."
            }
            @if !machine.is_empty() {
                ul { @for line in machine { li { (line) } } }
            }
        }
    }
}
