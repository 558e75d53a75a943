//! What became of the claims behind one experiment, kept in its folder as `claims.json`: small enough
//! for a repository, where the requests themselves are not. A folder that has nothing else left tells
//! this on the page.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::claim::Compared;
use super::pass::Conditions;
use super::plan::read_json;
use crate::LabError;

/// The file in an experiment's folder.
const FILE: &str = "claims.json";

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptClaims {
    /// How it was run.
    pub conditions: Conditions,
    /// What was compared, by the figure's name.
    pub figures: BTreeMap<String, Vec<KeptCheck>>,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptCheck {
    /// What the paper found, in its words.
    pub paper: String,
    /// Whether the claim is the paper's.
    pub is_papers: bool,
    /// Ours beside it.
    #[serde(flatten)]
    pub compared: Compared,
}

/// Reads what a folder keeps, if it does.
///
/// # Errors
/// If it is wrong or cannot be read.
pub fn read(folder: &Path) -> Result<Option<KeptClaims>, LabError> {
    let path = folder.join(FILE);
    path.exists().then(|| read_json(&path)).transpose()
}

/// Keeps it, a comparison a line, so that a repository shows what changed.
///
/// # Errors
/// If it cannot be written.
pub fn write(folder: &Path, kept: &KeptClaims) -> Result<(), LabError> {
    let path = folder.join(FILE);
    let text = serde_json::to_string_pretty(kept).map_err(LabError::kept(&path))?;
    fs::write(&path, text + "\n").map_err(LabError::file(&path))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::claim::Verdict;
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), None);
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
            figures: [("000 Fig. 8".to_owned(), vec![check])].into(),
            ..KeptClaims::default()
        };
        write(folder.path(), &kept).unwrap();
        assert_eq!(read(folder.path()).unwrap(), Some(kept));
        fs::write(folder.path().join(FILE), "{").unwrap();
        assert!(read(folder.path()).is_err());
    }
}
