//! The report on the runs of `adversary`: a Markdown table, what was left out, and the [`verdicts`].

mod verdicts;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use self::verdicts::verdicts;
use crate::report::ReportError;
use crate::study::adversary::attacks::{ATTACKS, DOWNLOAD};
use crate::study::adversary::results::{LOAD, Measured, RESULTS, Results, USERS};
use crate::study::plan::read_json;
use crate::study::stats::Spread;
use shortline_table::time;
use shortline_testbed::attacker::AttackReport;

/// The report on the results in `folder`. It is also written there, as `report.md`.
///
/// # Errors
/// If `adversary.json` is missing or wrong.
pub fn report(folder: &Path) -> Result<String, ReportError> {
    let results: Results = read_json(&folder.join(RESULTS))?;
    let text = text(&results);
    let path = folder.join("report.md");
    fs::write(&path, &text).map_err(ReportError::file(&path))?;
    Ok(text)
}

/// How many of the runs in `folder` are void.
///
/// # Errors
/// As [`report`].
pub fn void_runs(folder: &Path) -> Result<usize, ReportError> {
    let results: Results = read_json(&folder.join(RESULTS))?;
    let void = results.runs.iter().filter(|run| run.void.is_some());
    Ok(void.count())
}

/// The figures of a server under an attack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figures {
    /// Medians over the seeds.
    pub mean_s: f64,
    median_s: f64,
    /// Sums over the seeds.
    requests: usize,
    pub failed: usize,
    pub void: usize,
    attacker: Option<Attacker>,
}

/// The attacker's figures.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Attacker {
    /// The median over the seeds.
    goodput_bps: f64,
    /// Sums over the seeds.
    answered: u64,
    refused: u64,
    lost: u64,
}

impl Results {
    pub(super) fn figures(&self, server: &str, attack: &str) -> Option<Figures> {
        let these = |run: &&Measured| run.server == server && run.attack == attack;
        let runs: Vec<&Measured> = self.runs.iter().filter(these).collect();
        let median = |of: fn(&Measured) -> f64| {
            let spread = Spread::of(runs.iter().map(|run| of(run)));
            spread.map(|spread| spread.median)
        };
        let reports = runs.iter().filter_map(|run| run.attacker.as_ref());
        let sum = |of: fn(&AttackReport) -> u64| reports.clone().map(of).sum();
        let goodput = Spread::of(reports.clone().map(AttackReport::goodput_bps));
        Some(Figures {
            mean_s: median(|run| run.mean_s)?,
            median_s: median(|run| run.median_s)?,
            requests: runs.iter().map(|run| run.requests).sum(),
            failed: runs.iter().map(|run| run.failed).sum(),
            void: runs.iter().filter(|run| run.void.is_some()).count(),
            attacker: goodput.map(|goodput| Attacker {
                goodput_bps: goodput.median,
                answered: sum(|report| report.answered),
                refused: sum(|report| report.refused),
                lost: sum(|report| report.lost),
            }),
        })
    }

    /// The servers in the order they ran.
    pub(super) fn servers(&self) -> Vec<&str> {
        let mut servers = Vec::new();
        for run in &self.runs {
            if !servers.contains(&run.server.as_str()) {
                servers.push(run.server.as_str());
            }
        }
        servers
    }
}

impl Figures {
    fn goodput_bps(&self) -> Option<f64> {
        self.attacker.map(|attacker| attacker.goodput_bps)
    }

    pub(super) fn goodput_ratio(&self, download: &Self) -> Option<f64> {
        Some(self.goodput_bps()? / download.goodput_bps()?)
    }
}

fn text(results: &Results) -> String {
    let mut text = format!(
        "# One client that attacks beside honest users\n\n\
         10 Mbit/s; users at a load of {LOAD} from {USERS} addresses for {} s, the attacker from one \
         further address; {}. Response times are the users', medians over the seeds; a request that failed \
         counts with the time until it did.\n\n",
        results.seconds,
        results.surface.describe()
    );
    text += &table(results);
    if !results.left_out.is_empty() {
        text.push('\n');
    }
    for left_out in &results.left_out {
        let attack = left_out.attack.as_deref().unwrap_or("all attacks");
        let (server, why) = (&left_out.server, &left_out.why);
        writeln!(text, "- left out: `{server}`, {attack}: {why}").ok();
    }
    text + &verdicts(results)
}

fn table(results: &Results) -> String {
    const HEAD: [&str; 11] = [
        "server",
        "attack",
        "mean",
        "over `download`",
        "median",
        "requests",
        "failed",
        "attacker, Mbit/s",
        "over `download`",
        "its answers",
        "its lost connections",
    ];
    let mut text = format!("| {} |\n", HEAD.join(" | "));
    writeln!(text, "|---|---|{}", "---:|".repeat(HEAD.len() - 2)).ok();
    for server in results.servers() {
        let download = results.figures(server, DOWNLOAD);
        for attack in ATTACKS {
            let Some(figures) = results.figures(server, attack.name) else {
                continue;
            };
            let ratio =
                |ratio: Option<f64>| ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"));
            let attacker = figures.attacker;
            let of_attacker = |show: &dyn Fn(Attacker) -> String| attacker.map_or("-".into(), show);
            let void = match figures.void {
                0 => "",
                _ => " (VOID: the generator was late)",
            };
            let cells = [
                server.to_owned(),
                format!("{}{void}", attack.name),
                time(figures.mean_s),
                ratio(download.map(|download| figures.mean_s / download.mean_s)),
                time(figures.median_s),
                figures.requests.to_string(),
                figures.failed.to_string(),
                of_attacker(&|attacker| format!("{:.2}", attacker.goodput_bps / 1e6)),
                ratio(download.and_then(|download| figures.goodput_ratio(&download))),
                of_attacker(&|attacker| match attacker.refused {
                    0 => attacker.answered.to_string(),
                    refused => format!("{} ({refused} refused)", attacker.answered),
                }),
                of_attacker(&|attacker| attacker.lost.to_string()),
            ];
            writeln!(text, "| {} |", cells.join(" | ")).ok();
        }
    }
    text
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::study::adversary::attacks::NONE;
    use crate::study::adversary::results::LeftOut;
    use crate::study::adversary::surface::Surface;

    pub fn measured(attack: &str, seed: u64, mean_s: f64, failed: usize, mbit_s: f64) -> Measured {
        Measured {
            server: "shares".into(),
            version: "1".into(),
            attack: attack.into(),
            seed,
            requests: 100,
            failed,
            mean_s,
            median_s: mean_s / 2.0,
            void: None,
            attacker: (attack != NONE).then(|| AttackReport {
                body_bytes: (mbit_s * 1e6 / 8.0) as u64,
                counted_s: 1.0,
                answered: 7,
                refused: 0,
                lost: 0,
            }),
        }
    }

    pub fn results(runs: Vec<Measured>) -> Results {
        Results {
            seconds: 20,
            surface: Surface::Plain,
            runs,
            left_out: vec![LeftOut {
                server: "nginx-fq_codel".into(),
                attack: None,
                why: "this kernel has no queue fq_codel".into(),
            }],
        }
    }

    #[test]
    fn means_are_medians_over_seeds_beside_the_download_of_the_same_server() {
        let results = results(vec![
            measured(NONE, 1, 0.008, 0, 0.0),
            measured(DOWNLOAD, 1, 0.010, 0, 4.0),
            measured(DOWNLOAD, 2, 0.030, 0, 4.0),
            measured(DOWNLOAD, 3, 0.020, 0, 4.0),
            measured("ranges-1k-1", 1, 0.024, 1, 2.0),
        ]);
        let text = text(&results);
        let line = |begin: &str| {
            let found = text.lines().find(|line| line.starts_with(begin));
            found
                .unwrap_or_else(|| panic!("{begin}: {text}"))
                .to_owned()
        };
        assert_eq!(
            line("| shares | download"),
            "| shares | download | 20.0 ms | 1.00 | 10.0 ms | 300 | 0 | 4.00 | 1.00 | 21 | 0 |"
        );
        assert_eq!(
            line("| shares | none"),
            "| shares | none | 8.00 ms | 0.40 | 4.00 ms | 100 | 0 | - | - | - | - |"
        );
        assert!(
            line("| shares | ranges-1k-1").contains(" 1.20 | 12.0 ms | 100 | 1 | 2.00 | 0.50 |")
        );
        assert!(line("- left out").contains("`nginx-fq_codel`, all attacks: this kernel"));
    }
}
