//! The page on an experiment with the bookstore, and its data as CSV beside it.

use std::fs;
use std::path::{Path, PathBuf};

use maud::{Markup, PreEscaped, html};
use shortline_plot::PlotError;

use super::drawings::{self, Drawing};
use super::tables;
use crate::report::ReportError;
use crate::report::document::{claim, document, swatch};
use crate::study::claim::{Figure, Runs};
use crate::study::design::Experiment;
use crate::study::shop::Outcome;
use crate::study::shop::figures::Figures;

const HOW_IT_WAS_RUN: &str = "Browsers, bookstore and gate share one processor, the database has the \
other for itself. “Finished” is 002's count: what ended well. “All” also counts what failed, with the \
time until it did, and what was under way when a closed run ended, with the time it had had. Intervals \
are at 90 % over the seeds, by Student's t.";

/// Writes `report.html` and, in `report`, a CSV for each plot and one for all runs. Returns the path of the
/// page.
///
/// # Errors
/// If a file cannot be written.
pub fn write(
    folder: &Path,
    experiment: &Experiment,
    all: &[Outcome],
) -> Result<PathBuf, ReportError> {
    let data = folder.join("report");
    fs::create_dir_all(&data).map_err(ReportError::file(&data))?;
    let sets = Figures::by_database(all);
    let mut sections = Vec::new();
    let path = folder.join("report.html");
    let failed = |problem: String| PlotError {
        path: path.clone(),
        problem,
    };
    for set in &sets {
        let drawings = drawings::of_database(set);
        for drawing in &drawings {
            drawing.write(&data)?;
        }
        let section = section(set, &drawings).map_err(|error| failed(error.to_string()))?;
        sections.push(section);
    }
    let runs = data.join("runs.csv");
    fs::write(&runs, csv(all)).map_err(ReportError::file(&runs))?;
    let main = html! {
        (claims(experiment, all))
        @for section in &sections { (section) }
        p.note { (HOW_IT_WAS_RUN) }
        p.data { "data of all runs: " code { "report/runs.csv" } }
    };
    let page = document(&experiment.id, None, &main).into_string();
    fs::write(&path, page).map_err(ReportError::file(&path))?;
    Ok(path)
}

fn claims(experiment: &Experiment, all: &[Outcome]) -> Markup {
    let judged = |figure: &Figure| figure.judge(Runs::Shop(all));
    html! {
        section {
            h2 { "What is claimed, and what came out" }
            @for figure in &experiment.figures { (claim(figure, &judged(figure))) }
        }
    }
}

fn section(set: &Figures<'_>, drawings: &[Drawing]) -> Result<Markup, Box<dyn std::error::Error>> {
    let mut plots = Vec::new();
    for drawing in drawings {
        plots.push((drawing, drawing.svg()?));
    }
    Ok(html! {
        section id=(set.database) {
            h2 { (set.database) }
            div.plots {
                @for (drawing, svg) in &plots { (plot(drawing, svg)) }
            }
            @for captioned in tables::of_database(set) { (table(&captioned)) }
        }
    })
}

fn plot(drawing: &Drawing, svg: &str) -> Markup {
    html! {
        figure id=(drawing.id) {
            figcaption { (drawing.caption) }
            div.drawing role="img" aria-label=(drawing.caption) { (PreEscaped(svg)) }
            ul.legend {
                @for line in &drawing.lines {
                    li { (PreEscaped(swatch(line.style))) (line.name) }
                }
            }
            p.data { "data: " code { "report/" (drawing.id) ".csv" } }
        }
    }
}

fn table(captioned: &tables::Captioned) -> Markup {
    let (head, rows) = captioned
        .rows
        .split_first()
        .expect("invariant: every table has a head");
    html! {
        div.scroll {
            table {
                caption { (captioned.caption) }
                thead { tr { @for cell in head { th { (cell) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (place, cell) in row.iter().enumerate() {
                                @if place == 0 { th { (cell) } } @else { td { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A line for each run. No field contains a comma.
fn csv(all: &[Outcome]) -> String {
    let mut text = String::from(
        "database,load,door,seed,seconds,per_minute,count,failed,unfinished,mean_s,mean_finished_s,\
         p50_s,p99_s,database_user,database_system,others,memory_mb,processes,switches_per_s,\
         late_mean_s,turned_away\n",
    );
    for one in all {
        let (run, counters) = (one.run, one.counters);
        let seen = one.summary.all.as_ref();
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let fields = [
            run.database.to_string(),
            run.load.to_string(),
            run.door.to_string(),
            run.seed.to_string(),
            run.seconds.to_string(),
            one.summary.throughput_per_min.to_string(),
            number(seen.map(|all| all.count as f64)),
            number(seen.map(|all| all.failed as f64)),
            number(seen.map(|all| all.unfinished as f64)),
            number(seen.map(|all| all.mean_s.mean)),
            number(seen.and_then(|all| all.mean_finished_s)),
            number(seen.map(|all| all.p50_s)),
            number(seen.map(|all| all.p99_s)),
            counters.database_user_share.to_string(),
            counters.database_system_share.to_string(),
            counters.others_share.to_string(),
            counters.database_memory_mb.to_string(),
            counters.database_processes.to_string(),
            counters.context_switches_per_s.to_string(),
            one.late_mean_s.to_string(),
            one.turned_away.to_string(),
        ];
        text += &fields.join(",");
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::study::shop::outcome::made_up::run;
    use crate::study::shop::{Door, Load};

    #[test]
    fn the_page_has_claims_plots_and_tables_and_links_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let experiment = crate::papers::catalogue::all()
            .iter()
            .find(|experiment| experiment.id == "002-application")
            .unwrap();
        let mut all = Vec::new();
        for browsers in [150, 300] {
            for door in [Door::None, Door::FIFO, Door::SJF] {
                all.push(run(door, Load::Browsers(browsers), 1, 50, 0.01));
            }
        }
        let path = write(folder.path(), experiment, &all).unwrap();
        let page = fs::read_to_string(path).unwrap();
        for said in [
            "002 Fig. 5",
            "postgres-throughput",
            "Table 2",
            "best_sellers",
            "<svg",
        ] {
            assert!(page.contains(said), "{said}");
        }
        let page = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for outside in ["http", "src=", "url(", "@import", "<script", "href="] {
            assert!(!page.contains(outside), "{outside}");
        }
        let data = folder.path().join("report");
        let runs = fs::read_to_string(data.join("runs.csv")).unwrap();
        let widths: Vec<usize> = runs.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(widths.len(), 7);
        assert!(widths.iter().all(|width| *width == widths[0]), "{runs}");
        let plot = fs::read_to_string(data.join("postgres-throughput.csv")).unwrap();
        assert_eq!(plot.lines().count(), 7);
    }
}
