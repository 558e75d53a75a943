//! The plan of a folder of results: its points, servers and seeds, kept as `plan.json`. Also reads and writes
//! kept JSON files.
#![deny(clippy::disallowed_methods)]

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::KeptError;
use super::point::Point;

/// The plan of all runs that went to a folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The experiment.
    pub experiment: String,
    /// Its points.
    pub points: Vec<Point>,
    /// The servers' names, in the order they run.
    pub servers: Vec<String>,
    /// The seeds. Each server has one run for each.
    pub seeds: Vec<u64>,
}

impl Plan {
    /// The number of runs.
    pub fn runs(&self) -> usize {
        let of_point = |point: &Point| {
            self.servers
                .iter()
                .filter(|server| point.runs(server))
                .count()
        };
        self.points.iter().map(of_point).sum::<usize>() * self.seeds.len()
    }

    /// A note for the reader on incomplete results. `None` if they are complete.
    pub fn cut_short(&self, whole: usize) -> Option<String> {
        let all = self.runs();
        (whole < all).then(|| {
            format!(
                "CUT SHORT: {whole} of {all} runs are kept; the same `lab run` goes on with the others"
            )
        })
    }

    /// The plan kept in `folder`.
    ///
    /// # Errors
    /// If there is none or it cannot be read.
    pub fn read(folder: &Path) -> Result<Self, KeptError> {
        read_json(&folder.join("plan.json"))
    }

    /// Keeps the plan in `folder`, together with the servers and seeds of an earlier plan there, which must
    /// have the same points.
    ///
    /// # Errors
    /// If the folder has results of other points, or cannot be written.
    pub fn add_to(&self, folder: &Path) -> Result<(), KeptError> {
        let path = folder.join("plan.json");
        let mut whole = self.clone();
        if path.exists() {
            let kept = Self::read(folder)?;
            if (&kept.experiment, &kept.points) != (&self.experiment, &self.points) {
                return Err(KeptError::OtherPlan(folder.into(), kept.experiment));
            }
            whole.servers = union(kept.servers, &self.servers);
            whole.seeds = union(kept.seeds, &self.seeds);
            whole.seeds.sort_unstable();
        }
        write_json(&path, &whole)
    }
}

fn union<T: Clone + PartialEq>(mut all: Vec<T>, more: &[T]) -> Vec<T> {
    for each in more {
        if !all.contains(each) {
            all.push(each.clone());
        }
    }
    all
}

/// Reads a kept JSON file.
///
/// # Errors
/// With the file's name.
pub fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, KeptError> {
    let text = std::fs::read_to_string(path).map_err(KeptError::file(path))?;
    serde_json::from_str(&text).map_err(KeptError::content(path))
}

/// Writes a JSON file atomically, so that a file that exists is whole.
///
/// # Errors
/// With the file's name.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), KeptError> {
    let text = serde_json::to_string_pretty(value).map_err(KeptError::content(path))?;
    let half = path.with_extension("json.part");
    std::fs::write(&half, text + "\n").map_err(KeptError::file(&half))?;
    std::fs::rename(&half, path).map_err(KeptError::file(path))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::study::point::Arrivals;

    fn plan(seconds: u64, servers: &[&str], seeds: &[u64]) -> Plan {
        Plan {
            experiment: "w1".into(),
            points: vec![Point::new("w1", Arrivals::table_one("w1"), seconds)],
            servers: servers.iter().map(ToString::to_string).collect(),
            seeds: seeds.to_vec(),
        }
    }

    #[test]
    fn a_point_may_be_for_some_servers() {
        let mut plan = plan(7, &["srpt", "nginx"], &[1, 2]);
        plan.points.push(plan.points[0].clone());
        plan.points[1].only = vec!["srpt".into()];
        assert_eq!(plan.runs(), 6);
    }

    #[test]
    fn a_plan_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(7, &["srpt"], &[1, 2]);
        plan.add_to(folder.path()).unwrap();
        assert_eq!(Plan::read(folder.path()).unwrap(), plan);
    }

    #[test]
    fn more_servers_and_seeds_join_what_is_kept_and_other_points_do_not() {
        let folder = tempfile::tempdir().unwrap();
        plan(7, &["srpt"], &[2]).add_to(folder.path()).unwrap();
        plan(7, &["nginx", "srpt"], &[1])
            .add_to(folder.path())
            .unwrap();
        let kept = Plan::read(folder.path()).unwrap();
        assert_eq!(
            (kept.servers, kept.seeds),
            (vec!["srpt".to_owned(), "nginx".into()], vec![1, 2])
        );
        let other = plan(8, &["srpt"], &[1]).add_to(folder.path()).unwrap_err();
        assert!(other.to_string().contains("another plan"), "{other}");
    }
}
