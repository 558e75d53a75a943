//! `shortline gate import pgbouncer.ini`: translates the file to a configuration of the gate, on standard output.
//!
//! A setting without a counterpart becomes a comment with the reason. If one of these makes the gate behave
//! differently from PgBouncer, the exit status is 1.

mod accounts;
mod settings;
mod text;
mod translate;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use shortline_command::CommandError;
use shortline_gate::postgres::pgbouncer::{self, Line};

use translate::Entry;

/// The largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// The deepest nesting of included files, as in PgBouncer.
const DEPTH_MAX: usize = 10;
/// The most keys of all files together.
const ENTRIES_MAX: usize = 100_000;

/// Translates the file.
///
/// # Errors
/// [`CommandError`]: the file cannot be read, or a setting that matters is lost.
pub fn run(path: &Path) -> Result<(), CommandError> {
    let mut reading = Reading::default();
    reading.read(path, 0)?;
    let translated = translate::translate(&path.display().to_string(), &reading.entries);
    let translated = translated.map_err(CommandError::failure)?;
    print!("{}", translated.text);
    match translated.lost {
        0 => Ok(()),
        lost => Err(CommandError::failure(format!(
            "{lost} settings that matter have no counterpart: see the lines with LOST"
        ))),
    }
}

#[derive(Default)]
struct Reading {
    entries: Vec<Entry>,
    section: String,
}

impl Reading {
    fn read(&mut self, path: &Path, depth: usize) -> Result<(), CommandError> {
        let text = content(path)?;
        let named = path.display().to_string();
        let lines = pgbouncer::lines(&text).map_err(|error| {
            CommandError::failure(format!(
                "{named}: {error}; is it PgBouncer's pgbouncer.ini?"
            ))
        })?;
        for (number, line) in lines {
            let place = format!("{named}:{number}");
            match line {
                Line::Section(name) => self.section = name.to_owned(),
                Line::Pair(key, value) if self.entries.len() < ENTRIES_MAX => {
                    self.entries.push(Entry {
                        place,
                        section: self.section.clone(),
                        key,
                        value: value.to_owned(),
                    });
                }
                Line::Pair(..) => {
                    return Err(CommandError::failure(format!(
                        "{place}: more than {ENTRIES_MAX} keys"
                    )));
                }
                Line::Include(_) if depth + 1 >= DEPTH_MAX => {
                    return Err(CommandError::failure(format!(
                        "{place}: files stand in one another {DEPTH_MAX} deep"
                    )));
                }
                Line::Include(file) => self.read(&beside(path, file), depth + 1)?,
            }
        }
        Ok(())
    }
}

/// The path of an included file: relative to the current folder, as in PgBouncer, or else to the including file.
fn beside(path: &Path, named: &str) -> PathBuf {
    let named = Path::new(named);
    let beside = path.parent().unwrap_or(Path::new("")).join(named);
    if named.exists() || !beside.exists() {
        named.to_owned()
    } else {
        beside
    }
}

fn content(path: &Path) -> Result<String, CommandError> {
    let read = || {
        let mut bytes = Vec::new();
        let mut file = File::open(path)?.take(FILE_BYTES_MAX + 1);
        file.read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(bytes)
    };
    let named = path.display();
    if path.is_dir() {
        return Err(CommandError::failure(format!(
            "{named}: is a folder: name the file in it, such as pgbouncer.ini"
        )));
    }
    let bytes = read().map_err(|error| CommandError::failure(format!("{named}: {error}")))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(CommandError::failure(format!(
            "{named}: larger than {FILE_BYTES_MAX} bytes"
        )));
    }
    // Bytes that are not UTF-8 are replaced.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
