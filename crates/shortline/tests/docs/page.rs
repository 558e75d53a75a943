//! A page of Markdown as a reader sees it: its sentences, and its blocks of code with what a comment says of them.

use std::path::{Path, PathBuf};

/// Pages of `docs` that are for developers, or for researchers: python/tests runs the code of python.md.
const NOT_FOR_OPERATORS: [&str; 2] = ["python.md", "rooms.md"];
/// What a block of code may be in. `text` is what a program prints, or a file of no language.
const LANGUAGES: [&str; 9] = [
    "sh", "toml", "text", "nginx", "ini", "sql", "mermaid", "yaml", "json",
];

/// A page for operators.
pub struct Page {
    /// Its path from the project's folder.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// A block of code.
pub struct Block {
    /// The page and the line at which it begins.
    pub place: String,
    /// Its language.
    pub language: String,
    /// What the comment before it says, if there is one.
    pub mark: Option<String>,
    /// Its text, with a line feed behind each line.
    pub text: String,
}

/// The project's folder.
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

/// The pages for operators, by name.
pub fn pages() -> Vec<Page> {
    let mut names = vec!["README.md".to_owned()];
    for file in std::fs::read_dir(root().join("docs")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") && !NOT_FOR_OPERATORS.contains(&name.as_str()) {
            names.push(format!("docs/{name}"));
        }
    }
    names.sort();
    let page = |name: String| Page {
        text: std::fs::read_to_string(root().join(&name)).unwrap(),
        name,
    };
    names.into_iter().map(page).collect()
}

impl Page {
    /// The blocks of code, in order.
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        let (mut open, mut mark) = (None, None);
        for (number, line) in (1..).zip(self.text.lines()) {
            let text = line.trim_start();
            let indent = line.len() - text.len();
            match (open, text.strip_prefix("```")) {
                (None, Some(language)) => {
                    open = Some(indent);
                    blocks.push(Block {
                        place: format!("{}:{number}", self.name),
                        language: language.to_owned(),
                        mark: mark.take(),
                        text: String::new(),
                    });
                }
                (Some(_), Some("")) => open = None,
                (Some(indent), _) => {
                    let block = blocks.last_mut().unwrap();
                    block.text += line.get(indent..).unwrap_or(text);
                    block.text.push('\n');
                }
                (None, None) => {
                    let comment = text.strip_prefix("<!-- ");
                    let comment = comment.and_then(|text| text.strip_suffix(" -->"));
                    mark = comment.map(str::to_owned);
                }
            }
        }
        blocks
    }

    /// What is written in sentences: paragraphs and items of lists, without links' targets, with `X` for code.
    pub fn paragraphs(&self) -> Vec<String> {
        let (mut all, mut now) = (Vec::new(), Vec::new());
        let mut in_code = false;
        for line in self.text.lines().map(str::trim) {
            let fence = line.starts_with("```");
            in_code ^= fence;
            let between = in_code || fence || line.is_empty() || line.starts_with(['#', '|', '<']);
            let item = item(line);
            if between || item.is_some() {
                all.push(std::mem::take(&mut now).join(" "));
            }
            if !between {
                now.push(item.unwrap_or(line));
            }
        }
        all.push(now.join(" "));
        all.retain(|text| !text.is_empty());
        all.iter().map(|text| without_code(text)).collect()
    }
}

/// The text of an item of a list.
fn item(line: &str) -> Option<&str> {
    let (mark, text) = line.split_once(' ')?;
    let number = mark.strip_suffix('.');
    let numbered = number.is_some_and(|number| number.parse::<u8>().is_ok());
    (numbered || mark == "-" || mark == "*").then_some(text.trim_start())
}

/// The text with `X` for code, and of links and pictures only their words.
fn without_code(text: &str) -> String {
    let mut plain = String::new();
    for (place, part) in text.split('`').enumerate() {
        plain += if place % 2 == 0 { part } else { "X" };
    }
    let mut words = String::new();
    let mut rest = plain.as_str();
    while let Some((before, link)) = rest.split_once("](") {
        words += before;
        rest = link.split_once(')').map_or("", |(_, after)| after);
    }
    words + rest
}

#[test]
fn each_block_of_code_has_its_language() {
    let mut wrong = Vec::new();
    for page in pages() {
        let blocks = page.blocks();
        let unknown = |block: &&Block| !LANGUAGES.contains(&block.language.as_str());
        wrong.extend(blocks.iter().filter(unknown).map(|block| {
            format!(
                "{}: `{}`: want one of {LANGUAGES:?}",
                block.place, block.language
            )
        }));
        // A block that is only indented has none.
        let (mut before, mut fenced) = ("", false);
        for (number, line) in (1..).zip(page.text.lines()) {
            fenced ^= line.trim_start().starts_with("```");
            if !fenced && before.is_empty() && line.starts_with("    ") {
                wrong.push(format!(
                    "{}:{number}: a block without a language",
                    page.name
                ));
            }
            before = line;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn blocks_and_paragraphs_are_told_apart() {
    let page = Page {
        name: "a.md".into(),
        text: "# Title\n\nOne `a b` [two](c.md).\nThree.\n\n1. Item:\n\n   <!-- serves -->\n   ```sh\n   ls\n     -l\n   ```\n\n\
               | a | b |\n- last\n"
            .into(),
    };
    assert_eq!(page.paragraphs(), ["One X [two. Three.", "Item:", "last"]);
    let blocks = page.blocks();
    let block = &blocks[0];
    assert_eq!(blocks.len(), 1);
    assert_eq!(
        (
            block.place.as_str(),
            block.language.as_str(),
            block.mark.as_deref()
        ),
        ("a.md:9", "sh", Some("serves"))
    );
    assert_eq!(block.text, "ls\n  -l\n");
}
