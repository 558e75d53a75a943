//! docs/moving.md shows the configurations that are tested, and no others.

use std::path::Path;

/// Whether the page has the text of each file.
#[test]
fn the_page_shows_what_is_tested() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = std::fs::read_to_string(docs.join("moving.md")).unwrap();
    let files = std::fs::read_dir(docs.join("moving")).unwrap();
    for file in files.map(|file| file.unwrap().path()) {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            page.contains(&format!("\n{text}```")),
            "docs/moving.md lacks {}",
            file.display()
        );
    }
}
