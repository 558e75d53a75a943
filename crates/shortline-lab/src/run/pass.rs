//! A pass: several experiments' results, a folder each in one folder, as `scripts/bench` and
//! `lab run ID --out PASS/ID` leave them.

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

/// Says again what the results in `folder` say: as text, which is returned, and as a page
/// with its data beside it. Of a folder without results of its own the same for each folder in
/// it that has some, and then, beside these, what became of the papers' claims.
///
/// # Errors
/// If neither holds what `lab run` keeps.
pub fn report(folder: &Path) -> Result<String, LabError> {
    if is_of_experiment(folder) {
        return Ok(folder::report(folder)?.1.text);
    }
    Ok(claims::write(folder, &read(folder)?)?)
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
    for (name, kept) in kept_claims::read(folder)? {
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
        let (experiment, told) = folder::report(folder)?;
        let (conditions, figures, shop) = match told.data {
            Data::Uplink(plan, figures) => {
                let conditions = Conditions::of(folder, &plan, beds(folder)?)?;
                (conditions, Some(figures), None)
            }
            Data::Shop(runs) => (Conditions::of_shop(&runs), None, Some(runs)),
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
