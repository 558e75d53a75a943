//! docs/features.md names tests that there are, and a test for each feature that is there.

use std::path::{Path, PathBuf};

#[test]
fn each_feature_has_a_test() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(package.join("../../docs/features.md")).unwrap();
    let mut features = 0;
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let row = row.trim_matches('|');
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (feature, here, test) = (cells[0], cells[1], cells[2]);
        if feature == "feature" {
            continue;
        }
        features += 1;
        assert_eq!(cells.len(), 7, "{row}");
        assert!(
            here.contains("](") || here.contains("**no**"),
            "{feature}: {here}"
        );
        let Some(name) = test
            .strip_prefix('`')
            .and_then(|test| test.strip_suffix('`'))
        else {
            assert!(
                test.is_empty() && here.contains("**no**"),
                "{feature}: no test"
            );
            continue;
        };
        let (module, name) = name.split_once("::").unwrap();
        let source = text_of(&package.join("tests/serve"), module);
        let found = name.is_empty() || source.contains(&format!("fn {name}("));
        assert!(
            found && source.contains("#[test]"),
            "{feature}: no test {module}::{name}"
        );
    }
    assert!(features > 0);
}

/// The source of a module of tests, with those below it.
fn text_of(folder: &Path, module: &str) -> String {
    let mut files: Vec<PathBuf> = vec![folder.join(format!("{module}.rs"))];
    let below = std::fs::read_dir(folder.join(module)).into_iter().flatten();
    files.extend(below.map(|entry| entry.unwrap().path()));
    let texts = files
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap_or_default());
    texts.collect()
}
