//! The fuzz targets on stable Rust, on every test run. Each gets its kept corpus and [`MUTANTS`]
//! inputs made from it by a seeded generator, the same everywhere.

use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shortline_fuzz::{Entry, TARGETS};

/// The number of inputs made for each target.
const MUTANTS: usize = 30_000;
/// The most changes to one input.
const CHANGES_MAX: usize = 6;
/// The longest input made, in bytes.
const INPUT_BYTES_MAX: usize = 4096;
/// Pieces that parsers stumble over.
const WORDS: [&[u8]; 16] = [
    b"0",
    b"-1",
    b"18446744073709551615",
    b"18446744073709551616",
    b"1e308",
    b"1e-320",
    b"inf",
    b"NaN",
    b"\0",
    b"\r\n",
    b"\"",
    b"%2e%2e/",
    b",,",
    b"=",
    b"\xff\xfe",
    b"\xc3\xa4",
];

#[test]
fn every_target_stands_its_corpus_and_what_is_made_of_it() {
    let fallen: Vec<String> = TARGETS
        .iter()
        .filter_map(|(name, entry)| {
            let input = first_that_fells(name, *entry)?;
            Some(format!("{name}: \"{}\"", input.escape_ascii()))
        })
        .collect();
    assert_eq!(fallen, [""; 0]);
}

#[test]
fn each_target_has_a_program_and_a_corpus_and_they_a_target() {
    let names: BTreeSet<String> = TARGETS.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(names_in("fuzz_targets"), names);
    assert_eq!(names_in("corpus"), names);
}

/// The first input that breaks a promise of the target. Its own message has already been printed.
fn first_that_fells(name: &str, entry: Entry) -> Option<Vec<u8>> {
    let corpus = corpus_of(name);
    assert!(!corpus.is_empty(), "fuzz/corpus/{name} is empty");
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mutants = (0..MUTANTS).map(|_| mutant(&corpus, &mut rng));
    let mut inputs = corpus.iter().cloned().chain(mutants);
    inputs.find(|input| catch_unwind(|| entry(input)).is_err())
}

/// A corpus entry with a few changes.
fn mutant(corpus: &[Vec<u8>], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let pick = |rng: &mut ChaCha8Rng| corpus.choose(rng).cloned().unwrap_or_default();
    let mut input = pick(rng);
    for _ in 0..rng.random_range(1..=CHANGES_MAX) {
        let (from, to) = span(input.len(), rng);
        match rng.random_range(0..6) {
            0 if from < input.len() => input[from] ^= 1 << rng.random_range(0..8),
            1 if from < input.len() => input[from] = rng.random(),
            2 => drop(input.drain(from..to)),
            3 => {
                let piece = input[from..to].to_vec();
                input.splice(to..to, piece);
            }
            4 => {
                let other = pick(rng);
                let (first, last) = span(other.len(), rng);
                input.splice(from..to, other[first..last].iter().copied());
            }
            _ => {
                let word = WORDS.choose(rng).copied().unwrap_or_default();
                input.splice(from..to, word.iter().copied());
            }
        }
        input.truncate(INPUT_BYTES_MAX);
    }
    input
}

/// A piece of an input of `length` bytes, mostly a short one.
fn span(length: usize, rng: &mut ChaCha8Rng) -> (usize, usize) {
    let from = rng.random_range(0..=length);
    let most = if rng.random_ratio(1, 8) { length } else { 4 };
    (from, (from + rng.random_range(0..=most)).min(length))
}

fn corpus_of(name: &str) -> Vec<Vec<u8>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder("corpus").join(name))
        .expect("every target has a corpus")
        .map(|entry| entry.expect("the corpus can be listed").path())
        .collect();
    files.sort();
    let read = |file| std::fs::read(file).expect("the corpus can be read");
    files.iter().map(read).collect()
}

fn names_in(name: &str) -> BTreeSet<String> {
    std::fs::read_dir(folder(name))
        .expect("the folder is in the tree")
        .map(|entry| entry.expect("the folder can be listed").path())
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .collect()
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz")
        .join(name)
}
