//! A pass: one folder with a folder of results for each of several experiments, as `scripts/bench` and
//! `lab run ID --out PASS/ID` make it.

use std::fs;
use std::path::{Path, PathBuf};

use super::folder::{self, beds, has_results, is_of_experiment};
use super::study::Data;
use crate::LabError;
use crate::report::claims;
use crate::study::conditions::Conditions;
use crate::study::design::Experiment;
use crate::study::kept_claims::{self, KeptClaims};
use crate::study::ran::Ran;

/// Reports again on the results in `folder`: as text, which is returned, and as a page with its data
/// beside it. If the folder has no results of its own, it reports on each folder in it that has some,
/// and adds the verdicts on the papers' claims.
///
/// # Errors
/// If the content is not that of `lab run`.
pub fn report(folder: &Path) -> Result<String, LabError> {
    if is_of_experiment(folder) {
        return Ok(folder::report(folder)?.1.text);
    }
    Ok(claims::write(folder, &read(folder)?)?)
}

/// The pass in `folder`, sorted by the folders' names. Writes the report of each experiment again. An
/// experiment whose runs are elsewhere is represented by its kept claims. One without any results is left
/// out.
///
/// # Errors
/// If no folder in it has results, or the results of one are wrong.
pub fn read(folder: &Path) -> Result<Vec<Ran>, LabError> {
    let mut all = Vec::new();
    for folder in folders(folder)? {
        if has_results(&folder)? {
            all.push(Ran::of(&folder)?);
        }
    }
    for (name, kept) in kept_claims::read(folder)? {
        if !all.iter().any(|ran: &Ran| ran.folder == name) {
            all.push(Ran::from_kept(name, kept)?);
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
    fn from_kept(folder: String, kept: KeptClaims) -> Result<Self, LabError> {
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
        let (experiment, told) = folder::report(folder)?;
        let (conditions, figures, shop) = match told.data {
            Data::Uplink(plan, figures) => {
                let conditions = Conditions::of(folder, &plan, beds(folder)?)?;
                (conditions, Some(figures), None)
            }
            Data::Shop(runs) => (Conditions::of_shop(folder, &runs)?, None, Some(runs)),
            Data::Text => (Conditions::default(), None, None),
        };
        Ok(Self {
            folder: name_of(folder),
            experiment,
            figures,
            shop,
            kept: None,
            conditions,
        })
    }
}

fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
