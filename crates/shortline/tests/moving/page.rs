//! docs/moving.md shows the configurations that are tested, and no others. `SHORTLINE_WRITE=1 cargo test -p shortline
//! --test moving page` puts them into the page.

use std::path::Path;

/// Where a configuration begins; its language and its file follow.
const START: &str = "<!-- file: ";
const END: &str = "<!-- end of file -->";

#[test]
fn the_page_shows_what_is_tested() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let path = docs.join("moving.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let filled = filled(&page, &docs.join("moving"));
    if std::env::var_os("SHORTLINE_WRITE").is_some() {
        std::fs::write(&path, &filled).unwrap();
    }
    assert!(page == filled, "write the page anew: SHORTLINE_WRITE=1");
    for file in std::fs::read_dir(docs.join("moving")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(
            page.contains(&format!(" {name} -->")),
            "docs/moving.md lacks {name}"
        );
    }
}

/// The page with the text of each file that it names.
fn filled(page: &str, folder: &Path) -> String {
    let mut filled = String::new();
    let mut parts = page.split(START);
    filled += parts.next().unwrap();
    for part in parts {
        let (named, rest) = part.split_once(" -->").unwrap();
        let (language, name) = named.split_once(' ').unwrap();
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        filled += &format!("{START}{named} -->\n```{language}\n{text}```\n{END}{after}");
    }
    filled
}
