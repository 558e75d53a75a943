//! A folder of results: the experiment that wrote it, its bed, and its report.

use std::fs;
use std::path::Path;

use shortline_testbed::bed::BedKind;

use super::study::Findings;
use crate::LabError;
use crate::study::KeptError;
use crate::study::design::Experiment;
use crate::study::file::{self, Traces};

/// The file with the name of the experiment that wrote a folder.
const NAME_FILE: &str = "experiment.txt";
/// The study itself, if it is not in the catalogue.
const STUDY_FILE: &str = "study.toml";
/// The file with the guest kernels of the runs, one line each. Without it they ran in this kernel.
const BED_FILE: &str = "bed.txt";
/// A guest's output, the only trace of the bed that earlier versions kept.
const CONSOLE_FILE: &str = "console.log";

/// Whether an experiment wrote the folder.
pub fn is_of_experiment(folder: &Path) -> bool {
    folder.join(NAME_FILE).is_file()
}

/// Whether the folder of an experiment has anything to report on.
///
/// # Errors
/// If the experiment or its plan is wrong.
pub fn has_results(folder: &Path) -> Result<bool, LabError> {
    let experiment = experiment_of(folder)?;
    experiment.kind.study().has_results(folder)
}

/// Reports again on an experiment's folder: as text, and as a page with its data beside it.
///
/// # Errors
/// If the folder's content is not that of `lab run`.
pub fn report(folder: &Path) -> Result<(Experiment, Findings), LabError> {
    let experiment = experiment_of(folder)?;
    let told = experiment.kind.study().report(&experiment, folder)?;
    let report_file = folder.join("report.txt");
    fs::write(&report_file, &told.text).map_err(LabError::file(&report_file))?;
    Ok((experiment, told))
}

/// The experiment that wrote the folder.
///
/// # Errors
/// If the folder does not name an experiment, or an unknown one.
pub fn experiment_of(folder: &Path) -> Result<Experiment, LabError> {
    let name_file = folder.join(NAME_FILE);
    let id = fs::read_to_string(&name_file).map_err(LabError::file(&name_file))?;
    let study_file = folder.join(STUDY_FILE);
    if study_file.is_file() {
        let text = fs::read_to_string(&study_file).map_err(LabError::file(&study_file))?;
        return Ok(file::parse(
            &study_file,
            id.trim(),
            &text,
            Traces::AsWritten,
        )?);
    }
    Experiment::by_id(id.trim()).map_err(LabError::kept(&name_file))
}

/// Marks a folder as this experiment's, with the study's text if it is not in the catalogue. A folder
/// with another's results stays unchanged.
///
/// # Errors
/// If the folder is another's, or cannot be written.
pub fn write_name(folder: &Path, id: &str, own: Option<&str>) -> Result<(), LabError> {
    let path = folder.join(NAME_FILE);
    match fs::read_to_string(&path) {
        Ok(other) if other.trim() != id => {
            Err(KeptError::OtherPlan(folder.into(), other.trim().into()).into())
        }
        _ => {
            if let Some(text) = own {
                let study_file = folder.join(STUDY_FILE);
                fs::write(&study_file, text).map_err(LabError::file(&study_file))?;
            }
            fs::write(&path, id).map_err(LabError::file(&path))
        }
    }
}

/// Notes that runs of this folder are made in a guest's kernel.
///
/// # Errors
/// If the note is wrong, or cannot be written.
pub fn write_bed(folder: &Path, bed: BedKind) -> Result<(), LabError> {
    let path = folder.join(BED_FILE);
    let mut beds = read_beds(&path)?;
    if !beds.contains(&bed) {
        beds.push(bed);
    }
    let lines: String = beds.iter().map(|bed| format!("{bed}\n")).collect();
    fs::write(&path, lines).map_err(LabError::file(&path))
}

/// The beds of a folder's runs, in words.
///
/// # Errors
/// If the note is wrong.
pub fn beds(folder: &Path) -> Result<String, LabError> {
    let beds = read_beds(&folder.join(BED_FILE))?;
    let names: Vec<String> = beds.iter().map(ToString::to_string).collect();
    Ok(match &names[..] {
        [] if folder.join(CONSOLE_FILE).exists() => "a guest's".into(),
        [] => BedKind::Native.to_string(),
        names => names.join(", "),
    })
}

fn read_beds(path: &Path) -> Result<Vec<BedKind>, LabError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).map_err(LabError::file(path))?;
    let bed = |line: &str| line.trim().parse().map_err(LabError::kept(path));
    text.lines().map(bed).collect()
}

#[cfg(test)]
mod own_tests;
#[cfg(test)]
pub(super) mod report_tests;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_folder_tells_its_beds() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(beds(folder).unwrap(), "native");
        fs::write(folder.join(CONSOLE_FILE), "lab: w1").unwrap();
        assert_eq!(beds(folder).unwrap(), "a guest's");
        for bed in [BedKind::Virtual, BedKind::Virtual, BedKind::Uml] {
            write_bed(folder, bed).unwrap();
        }
        assert_eq!(beds(folder).unwrap(), "virtual, uml");
        fs::write(folder.join(BED_FILE), "qemu\n").unwrap();
        let error = beds(folder).unwrap_err().to_string();
        assert!(
            error.contains("bed.txt") && error.contains("`qemu`"),
            "{error}"
        );
    }
}
