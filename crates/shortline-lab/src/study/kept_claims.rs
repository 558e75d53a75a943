//! The verdicts on the claims of a pass's experiments, kept in its folder as `claims.json`. The file is
//! small enough for a repository, unlike the runs. The page uses it for experiments whose runs are
//! elsewhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::KeptError;
use super::conditions::Conditions;
use super::plan::read_json;
use super::verdict::Compared;

/// The file in a pass's folder.
const FILE: &str = "claims.json";

/// The content of the file, by the names of the experiments' folders.
pub type KeptPass = BTreeMap<String, KeptClaims>;

/// The kept verdicts of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptClaims {
    /// Which experiment.
    pub experiment: String,
    /// How it was run.
    pub conditions: Conditions,
    /// The comparisons, by the figure's name.
    pub figures: BTreeMap<String, Vec<KeptCheck>>,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptCheck {
    /// The paper's finding, in its words.
    pub paper: String,
    /// Whether the claim is the paper's.
    pub is_papers: bool,
    /// Our results beside it.
    #[serde(flatten)]
    pub compared: Compared,
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

/// Writes the file with one figure per line, so that a repository shows what changed.
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
        let mut figures = Vec::new();
        for (name, checks) in &kept.figures {
            let (name, checks) = (serde_json::to_string(name)?, serde_json::to_string(checks)?);
            figures.push(format!("      {name}: {checks}"));
        }
        folders.push(format!(
            "  {}: {{\n    \"experiment\": {},\n    \"conditions\": {},\n    \"figures\": {{\n{}\n    }}\n  }}",
            serde_json::to_string(folder)?,
            serde_json::to_string(&kept.experiment)?,
            serde_json::to_string(&kept.conditions)?,
            figures.join(",\n"),
        ));
    }
    Ok(format!("{{\n{}\n}}\n", folders.join(",\n")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::verdict::Verdict;
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), KeptPass::new());
        let check = KeptCheck {
            paper: "8".into(),
            is_papers: true,
            compared: Compared {
                what: "mean".into(),
                ours: vec![("w1".into(), 43.5)],
                verdict: Verdict::Holds,
            },
        };
        let kept = KeptClaims {
            experiment: "w1".into(),
            figures: [("000 Fig. 8".to_owned(), vec![check])].into(),
            ..KeptClaims::default()
        };
        let without = KeptClaims::default();
        let pass = KeptPass::from([("again".into(), kept), ("w1 \"old\"".into(), without)]);
        write(folder.path(), &pass).unwrap();
        assert_eq!(read(folder.path()).unwrap(), pass);
        let text = fs::read_to_string(folder.path().join(FILE)).unwrap();
        let line = "      \"000 Fig. 8\": [{\"paper\":\"8\",\"is_papers\":true,\"what\":\"mean\"";
        assert!(text.lines().any(|found| found.starts_with(line)), "{text}");
        fs::write(folder.path().join(FILE), "{").unwrap();
        assert!(read(folder.path()).is_err());
    }
}
