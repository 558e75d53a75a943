//! A pass: several experiments' results, a folder each in one folder, as `scripts/bench` and
//! `lab run ID --out PASS/ID` leave them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::bookstore;
use super::catalogue::Experiment;
use super::figures::Figures;
use super::plan::Plan;
use super::results::{Told, beds, has_results, is_of_experiment, tell};
use super::verdicts::{self, KeptClaims};
use super::{cut_short, kept};
use crate::LabError;

/// An experiment of a pass.
pub struct Ran {
    /// Its folder's name in the pass.
    pub folder: String,
    /// Which experiment.
    pub experiment: Experiment,
    /// What came out; nothing without an uplink.
    pub figures: Option<Figures>,
    /// What came out of runs with the bookstore.
    pub shop: Option<Vec<bookstore::Outcome>>,
    /// What the pass keeps of an experiment whose runs are elsewhere.
    pub kept: Option<KeptClaims>,
    /// How it was run.
    pub conditions: Conditions,
}

/// How an experiment was run, in words; nothing where that does not apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Which kernel had the bed: native, uml, virtual.
    pub bed: String,
    /// That kernel's version, and congestion control at both ends.
    pub kernel: String,
    /// How long requests arrived at each point, in seconds.
    pub seconds: String,
    /// The seeds of the arrivals.
    pub seeds: String,
    /// What is missing, if anything is.
    pub cut_short: Option<String>,
}

/// The pass in `folder`, sorted by the folders' names; the report of each is written again. Of an
/// experiment whose runs are elsewhere what the pass keeps of its claims is told; one that nothing has
/// been measured in yet is left out.
///
/// # Errors
/// If no folder in it holds results, or one holds something wrong.
pub fn read(folder: &Path) -> Result<Vec<Ran>, LabError> {
    let mut all = Vec::new();
    for folder in folders(folder)? {
        if has_results(&folder)? {
            all.push(Ran::of(&folder)?);
        }
    }
    for (name, kept) in verdicts::read(folder)? {
        if !all.iter().any(|ran: &Ran| ran.folder == name) {
            all.push(Ran::told_before(name, kept)?);
        }
    }
    all.sort_by(|one, other| one.folder.cmp(&other.folder));
    if all.is_empty() {
        let problem = "neither it nor a folder in it holds results";
        return Err(LabError::kept(folder)(problem));
    }
    Ok(all)
}

/// The folders in `folder` that an experiment wrote.
fn folders(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    let entries = fs::read_dir(folder).map_err(LabError::file(folder))?;
    let paths = entries.map(|entry| Ok(entry.map_err(LabError::file(folder))?.path()));
    let mut paths = paths.collect::<Result<Vec<PathBuf>, LabError>>()?;
    paths.retain(|path| is_of_experiment(path));
    paths.sort();
    Ok(paths)
}

impl Ran {
    fn told_before(folder: String, kept: KeptClaims) -> Result<Self, LabError> {
        Ok(Self {
            folder,
            experiment: Experiment::by_id(&kept.experiment)?,
            figures: None,
            shop: None,
            conditions: kept.conditions.clone(),
            kept: Some(kept),
        })
    }

    fn of(folder: &Path) -> Result<Self, LabError> {
        let Told {
            experiment,
            uplink,
            shop,
            ..
        } = tell(folder)?;
        let conditions = match (&uplink, &shop) {
            (Some((plan, _)), _) => Conditions::of(folder, plan)?,
            (None, Some(runs)) => Conditions::of_shop(runs),
            (None, None) => Conditions::default(),
        };
        Ok(Self {
            folder: name_of(folder),
            experiment,
            figures: uplink.map(|(_, figures)| figures),
            shop,
            kept: None,
            conditions,
        })
    }
}

impl Conditions {
    fn of(folder: &Path, plan: &Plan) -> Result<Self, LabError> {
        let carried = kept::carried(folder, plan)?;
        let kernel =
            |run: &kept::Carried| format!("Linux {}, {}", run.kernel, run.congestion_control);
        let kernels: BTreeSet<String> = carried.iter().map(kernel).collect();
        let seconds: BTreeSet<u64> = plan.points.iter().map(|point| point.seconds).collect();
        Ok(Self {
            bed: beds(folder)?,
            kernel: joined(kernels, "; "),
            seconds: joined(seconds, ", "),
            seeds: joined(&plan.seeds, ", "),
            cut_short: cut_short(plan, carried.len()),
        })
    }
}

impl Conditions {
    fn of_shop(runs: &[bookstore::Outcome]) -> Self {
        let seconds: BTreeSet<u64> = runs.iter().map(|one| one.run.seconds).collect();
        let seeds: BTreeSet<u64> = runs.iter().map(|one| one.run.seed).collect();
        let databases: BTreeSet<String> = runs
            .iter()
            .map(|one| one.run.database.to_string())
            .collect();
        Self {
            bed: joined(databases, ", "),
            seconds: joined(seconds, ", "),
            seeds: joined(seeds, ", "),
            ..Self::default()
        }
    }
}

fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn joined<T: ToString>(values: impl IntoIterator<Item = T>, between: &str) -> String {
    let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    values.join(between)
}
