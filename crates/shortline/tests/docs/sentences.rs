//! How long the sentences of the operators' pages are. A busy person reads them once.
//!
//! Counted are words, a piece of code as one. Headings, tables and blocks of code are left out.

use crate::page::{Page, pages};

const WORDS_MEAN_MAX: f64 = 16.0;
const WORDS_MAX: usize = 35;

/// The sentences of a page, and a list's introduction before its colon.
fn sentences(page: &Page) -> Vec<String> {
    page.paragraphs()
        .iter()
        .flat_map(|text| split(text))
        .collect()
}

fn split(paragraph: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut words = paragraph.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let sentence = all.last_mut().unwrap();
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
        let ends = word.trim_end_matches(['"', '*', ')', ']', '_']);
        let begins = |next: &&str| {
            let first = next
                .trim_start_matches(['"', '*', '(', '[', '_'])
                .chars()
                .next();
            first.is_some_and(|first| first.is_uppercase() || first.is_ascii_digit())
        };
        if ends.ends_with(['.', '!', '?', ':']) && words.peek().is_some_and(begins) {
            all.push(String::new());
        }
    }
    all
}

/// The words of a sentence: what has a letter or a digit in it.
fn words(sentence: &str) -> usize {
    let is_word = |word: &&str| word.contains(char::is_alphanumeric);
    sentence.split_whitespace().filter(is_word).count()
}

#[test]
fn sentences_are_short() {
    let (mut long, mut count, mut sum) = (Vec::new(), 0, 0);
    for page in pages() {
        for sentence in sentences(&page) {
            let words = words(&sentence);
            if words > WORDS_MAX {
                long.push(format!("{}: {words} words: {sentence}", page.name));
            }
            sum += words;
            count += usize::from(words > 0);
        }
    }
    let mean = sum as f64 / count as f64;
    println!("{count} sentences of {mean:.1} words in the mean");
    assert!(
        long.is_empty(),
        "sentences of more than {WORDS_MAX} words:\n{}",
        long.join("\n")
    );
    assert!(
        mean <= WORDS_MEAN_MAX,
        "{mean:.1} words in the mean, want {WORDS_MEAN_MAX}"
    );
}

#[test]
fn a_sentence_ends_where_the_next_begins() {
    let told = split(
        "It takes 1.5 s (see X). **Then** it ends: no more, e.g. of `x`. Two things: A list.",
    );
    assert_eq!(
        told,
        [
            "It takes 1.5 s (see X).",
            "**Then** it ends: no more, e.g. of `x`.",
            "Two things:",
            "A list."
        ]
    );
    assert_eq!(words("a – b, `c` 12."), 4);
}
