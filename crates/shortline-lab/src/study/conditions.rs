//! The conditions of an experiment's runs, for the page of a pass.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::KeptError;
use super::plan::Plan;
use super::{kept, shop};

/// The conditions in words. What does not apply is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// The kernel of the bed: native, uml, virtual.
    pub bed: String,
    /// That kernel's version, and the congestion control at both ends.
    pub kernel: String,
    /// How the clients' timeouts of a SYN grow. Empty in results of before this was kept.
    #[serde(default)]
    pub syn_backoff: String,
    /// The commits that the runs were made with. Empty in results of before this was kept.
    #[serde(default)]
    pub commits: String,
    /// The SHA-256 of all records. Empty in results of before this was kept.
    #[serde(default)]
    pub records: String,
    /// How long requests arrived at each point, in seconds.
    pub seconds: String,
    /// The seeds of the arrivals.
    pub seeds: String,
    /// What is missing, if anything.
    pub cut_short: Option<String>,
}

impl Conditions {
    /// Of runs over an uplink, in these beds.
    ///
    /// # Errors
    /// If the kept result of a run is wrong.
    pub fn of(folder: &Path, plan: &Plan, bed: String) -> Result<Self, KeptError> {
        let carried = kept::carried(folder, plan)?;
        let kernel = |run: &kept::Carried| kernel(&run.kernel, &run.congestion_control);
        let kernels: BTreeSet<String> = carried.iter().map(kernel).collect();
        let told = |of: fn(&kept::Carried) -> Option<&String>| -> BTreeSet<&String> {
            carried.iter().filter_map(of).collect()
        };
        let seconds: BTreeSet<u64> = plan.points.iter().map(|point| point.seconds).collect();
        Ok(Self {
            bed,
            kernel: joined(kernels, "; "),
            syn_backoff: joined(told(|run| run.syn_backoff.as_ref()), "; "),
            commits: joined(told(|run| run.commit.as_ref()), ", "),
            records: kept::digest(folder, plan)?,
            seconds: joined(seconds, ", "),
            seeds: joined(&plan.seeds, ", "),
            cut_short: plan.cut_short(carried.len()),
        })
    }

    /// Of runs with the bookstore, whose records are in `folder`.
    ///
    /// # Errors
    /// If a file of records cannot be read.
    pub fn of_shop(folder: &Path, runs: &[shop::Outcome]) -> Result<Self, KeptError> {
        let seconds: BTreeSet<u64> = runs.iter().map(|one| one.run.seconds).collect();
        let seeds: BTreeSet<u64> = runs.iter().map(|one| one.run.seed).collect();
        let database = |one: &shop::Outcome| match &one.made_with {
            Some(made_with) => made_with.database.clone(),
            None => one.run.database.to_string(),
        };
        let databases: BTreeSet<String> = runs.iter().map(database).collect();
        let made_with = || runs.iter().filter_map(|one| one.made_with.as_ref());
        let kernels: BTreeSet<String> = made_with()
            .map(|made_with| kernel(&made_with.kernel, &made_with.congestion_control))
            .collect();
        let commits: BTreeSet<&String> = made_with().map(|made_with| &made_with.commit).collect();
        let records = runs.iter().map(|one| one.run.records_file(folder));
        let records: Vec<PathBuf> = records.collect();
        // A report needs none of them, and they may have been put elsewhere.
        let are_there = records.iter().all(|file| file.exists());
        let digest = are_there.then(|| kept::digest_of(records)).transpose()?;
        Ok(Self {
            bed: joined(databases, ", "),
            kernel: joined(kernels, "; "),
            commits: joined(commits, ", "),
            records: digest.unwrap_or_default(),
            seconds: joined(seconds, ", "),
            seeds: joined(seeds, ", "),
            ..Self::default()
        })
    }
}

fn kernel(release: &str, congestion_control: &str) -> String {
    format!("Linux {release}, {congestion_control}")
}

fn joined<T: ToString>(values: impl IntoIterator<Item = T>, between: &str) -> String {
    let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    values.join(between)
}
