//! The values of a pass's experiments that the papers' claims are about, kept in its folder as `claims.json`. The file
//! is small enough for a repository, unlike the runs. The page uses it for experiments whose runs are elsewhere.
//!
//! Verdicts are not kept: the checks of the catalogue judge the values anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::KeptError;
use super::claim::{JudgedFigure, Measured};
use super::conditions::Conditions;
use super::plan::read_json;

/// The file in a pass's folder.
const FILE: &str = "claims.json";

/// The content of the file, by the names of the experiments' folders.
pub type KeptPass = BTreeMap<String, KeptClaims>;

/// The kept values of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptClaims {
    /// Which experiment.
    pub experiment: String,
    /// How it was run.
    pub conditions: Conditions,
    /// The values, by what they are of.
    pub values: BTreeMap<String, Measured>,
}

impl KeptClaims {
    /// Adds what was measured for a figure.
    pub fn add(&mut self, figure: &JudgedFigure) {
        for judged in figure.all() {
            if !judged.measured.values.is_empty() {
                self.values
                    .insert(judged.what.clone(), judged.measured.clone());
            }
        }
    }
}

/// Reads the file of a pass's folder. Empty if there is no such file.
///
/// # Errors
/// If the file is wrong or cannot be read.
pub fn read(folder: &Path) -> Result<KeptPass, KeptError> {
    let path = folder.join(FILE);
    if !path.exists() {
        return Ok(KeptPass::new());
    }
    read_json(&path)
}

/// Writes the file with one value per line, so that a repository shows what changed.
///
/// # Errors
/// If the file cannot be written.
pub fn write(folder: &Path, pass: &KeptPass) -> Result<(), KeptError> {
    let path = folder.join(FILE);
    let text = text_of(pass).map_err(KeptError::content(&path))?;
    fs::write(&path, text).map_err(KeptError::file(&path))
}

fn text_of(pass: &KeptPass) -> Result<String, serde_json::Error> {
    let mut folders = Vec::new();
    for (folder, kept) in pass {
        let mut values = Vec::new();
        for (what, measured) in &kept.values {
            let (what, measured) = (
                serde_json::to_string(what)?,
                serde_json::to_string(measured)?,
            );
            values.push(format!("      {what}: {measured}"));
        }
        folders.push(format!(
            "  {}: {{\n    \"experiment\": {},\n    \"conditions\": {},\n    \"values\": {{\n{}\n    }}\n  }}",
            serde_json::to_string(folder)?,
            serde_json::to_string(&kept.experiment)?,
            serde_json::to_string(&kept.conditions)?,
            values.join(",\n"),
        ));
    }
    Ok(format!("{{\n{}\n}}\n", folders.join(",\n")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::claim::Value;
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), KeptPass::new());
        let measured = Measured {
            values: vec![Value::of("w1", &[43.5]).unwrap()],
            missing: 2,
            note: Some("none finished".into()),
        };
        let kept = KeptClaims {
            experiment: "w1".into(),
            values: [("mean".to_owned(), measured)].into(),
            ..KeptClaims::default()
        };
        let without = KeptClaims::default();
        let pass = KeptPass::from([("again".into(), kept), ("w1 \"old\"".into(), without)]);
        write(folder.path(), &pass).unwrap();
        assert_eq!(read(folder.path()).unwrap(), pass);
        let text = fs::read_to_string(folder.path().join(FILE)).unwrap();
        let line = "      \"mean\": {\"values\":[[\"w1\",43.5,43.5,43.5,1]],\"missing\":2,";
        assert!(text.lines().any(|found| found.starts_with(line)), "{text}");
        fs::write(folder.path().join(FILE), "{").unwrap();
        assert!(read(folder.path()).is_err());
    }
}
