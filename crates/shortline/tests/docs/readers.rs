//! What a reader who knows nginx can answer after a minute of README.md. `docs/readers.md` has the questions and, quoted,
//! the lines that answer them.

use crate::page::root;

/// How much of the README is read in a minute: its first words.
const WORDS_OF_A_MINUTE: usize = 400;

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

/// The text in one line, with a blank between words, so that it does not matter where lines are broken.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_readme_answers_five_questions_in_its_first_minute() {
    let page = read("docs/readers.md");
    let readme = flat(&read("README.md"));
    let words: Vec<&str> = readme.split(' ').take(WORDS_OF_A_MINUTE).collect();
    let first = words.join(" ");
    let questions: Vec<&str> = page.split("\n## ").skip(1).collect();
    assert_eq!(questions.len(), 5, "{page}");
    for question in questions {
        let quoted = question.lines().filter_map(|line| line.strip_prefix('>'));
        let quoted = flat(&quoted.collect::<Vec<_>>().join(" "));
        let title = question.lines().next().unwrap();
        assert!(quoted.len() > 20, "{title}: no line answers it");
        assert!(
            first.contains(&quoted),
            "{title}: README.md does not say in its first minute: {quoted}"
        );
    }
}
