//! A study: an experiment as a TOML file, which a person can copy, change and run.
//!
//! ```toml
//! servers = ["srpt", "nginx"]
//!
//! [setup]                    # what all points have
//! trace = "access.log"       # or schedule = "w1", or users = 400
//! time = "100s"
//! rate = "50mbit"
//! ```
//!
//! The file's name without `.toml` is the study's. A `[[point]]` has the keys in which it differs from
//! `[setup]`. A `[[figure]]` says what is drawn and claimed. [`keys`] has all keys, and
//! `docs/lab/measure.md` explains them. An error names file, line and key, and says what would be right.
#![deny(clippy::disallowed_methods)]

mod application;
mod error;
mod figures;
mod keys;
mod names;
mod points;
mod shop;
#[cfg(test)]
mod tests;

use std::fs;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;

use self::error::Source;
pub use self::error::StudyError;
use self::keys::{KindName, StudyKeys};
pub use self::names::Traces;
use self::names::is_name;
use crate::study::claim::Check;
use crate::study::design::{Design, Experiment, IDLE_CONNECTIONS_MAX, Kind, Memory, SEEDS_MAX};
use crate::study::versus::{ROWS, Row, Versus};
use shortline_testbed::server::Server;

/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Whether the command line names a file and not a study of the catalogue.
pub fn is_file(name: &str) -> bool {
    name.ends_with(".toml") || name.contains('/')
}

/// Reads a study that is to be run, and returns its text too. Its name must not be that of another study.
///
/// # Errors
/// If there is no such file, or it is not a study.
pub fn read(
    path: &Path,
    is_taken: impl Fn(&str) -> bool,
) -> Result<(Experiment, String), StudyError> {
    let unreadable = |source| StudyError::File {
        path: path.into(),
        source,
    };
    let bytes = fs::metadata(path).map_err(unreadable)?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(StudyError::TooLarge {
            path: path.into(),
            bytes,
            most: FILE_BYTES_MAX,
        });
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let Some(id) = stem.filter(|stem| is_name(stem)) else {
        return Err(StudyError::Name { path: path.into() });
    };
    if is_taken(id) {
        return Err(StudyError::Taken {
            path: path.into(),
            id: id.into(),
        });
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let experiment = parse(path, id, &text, Traces::Beside(folder))?;
    Ok((experiment, text))
}

/// Parses the text of a study. The path is for errors.
///
/// # Errors
/// The first error in the text.
pub fn parse(
    path: &Path,
    id: &str,
    text: &str,
    traces: Traces<'_>,
) -> Result<Experiment, StudyError> {
    let source = Source { path, text };
    let keys: StudyKeys = toml::from_str(text).map_err(|error| source.syntax(&error))?;
    keys.refuse_of_other_kinds(source)?;
    let (figures, kind) = match keys.kind {
        KindName::Uplink => {
            let points = points::points(source, id, &keys, traces)?;
            let has_http3 = points.iter().any(|point| point.setup.speech.http3);
            let design = Design {
                axis: keys.axis.as_ref().map_or("", |axis| axis.get_ref()).into(),
                servers: servers(source, &keys, has_http3)?,
                seeds: seeds(source, &keys)?,
                points,
            };
            let figures = figures::figures(source, id, &keys, |check| {
                figures::check(source, &design, check).map(Check::Link)
            });
            (figures, Kind::Uplink(design))
        }
        KindName::Bookstore => {
            let design = shop::design(source, &keys)?;
            let figures = figures::figures(source, id, &keys, |check| {
                shop::check(source, &design, check).map(Check::Shop)
            });
            (figures, Kind::Bookstore(design))
        }
        KindName::Adversary
        | KindName::Throughput
        | KindName::Versus
        | KindName::Memory
        | KindName::Application => {
            let figures = figures::figures(source, id, &keys, |check| {
                let want = "checks in a study over an uplink or of a bookstore";
                Err(source.wrong(check, "has no points to check", want))
            });
            let surface = keys.surface.as_ref().map(|surface| *surface.get_ref());
            let kind = match keys.kind {
                KindName::Throughput => Kind::Throughput,
                KindName::Versus => Kind::Versus(versus(source, &keys)?),
                KindName::Memory => Kind::Memory(memory(source, &keys)?),
                KindName::Application => Kind::Application(application::design(source, &keys)?),
                _ => Kind::Adversary(surface.unwrap_or_default()),
            };
            (figures, kind)
        }
    };
    Ok(Experiment {
        id: id.into(),
        figures: figures?,
        kind,
    })
}

/// The rows of a comparison.
fn versus(source: Source<'_>, keys: &StudyKeys) -> Result<Versus, StudyError> {
    let Some(names) = &keys.rows else {
        return Ok(Versus { rows: ROWS.into() });
    };
    let row = |name: &Spanned<String>| {
        Row::named(name.get_ref()).ok_or_else(|| {
            let names = ROWS.map(|row| format!("{:?}", row.name)).join(", ");
            source.wrong(name, name.get_ref(), format!("one of {names}"))
        })
    };
    let rows = names.get_ref().iter().map(row);
    Ok(Versus {
        rows: rows.collect::<Result<_, _>>()?,
    })
}

/// How many connections are idle.
fn memory(source: Source<'_>, keys: &StudyKeys) -> Result<Memory, StudyError> {
    let Some(connections) = &keys.connections else {
        return Ok(Memory::default());
    };
    match *connections.get_ref() {
        connections @ 1..=IDLE_CONNECTIONS_MAX => Ok(Memory { connections }),
        number => {
            let want = format!("1 to {IDLE_CONNECTIONS_MAX}");
            Err(source.wrong(connections, number, want))
        }
    }
}

fn servers(
    source: Source<'_>,
    keys: &StudyKeys,
    has_http3: bool,
) -> Result<Vec<String>, StudyError> {
    let want = "the servers in turn, such as [\"srpt\", \"nginx\"]";
    let Some(servers) = &keys.servers else {
        return Err(source.lacks(0..0, "servers", want));
    };
    if servers.get_ref().is_empty() {
        return Err(source.wrong(servers, "no server", want));
    }
    let mut names: Vec<String> = Vec::new();
    for server in servers.get_ref() {
        let name = server.get_ref().0.to_string();
        if has_http3 && !matches!(server.get_ref().0, Server::Ours(_)) {
            let problem = format!("`{name}` at a point with http3");
            return Err(source.wrong(server, problem, "our server's modes alone"));
        }
        if names.contains(&name) {
            let problem = format!("`{name}` for the second time");
            return Err(source.wrong(server, problem, "each server once"));
        }
        names.push(name);
    }
    Ok(names)
}

fn seeds(source: Source<'_>, keys: &StudyKeys) -> Result<u64, StudyError> {
    let Some(seeds) = &keys.seeds else {
        return Ok(1);
    };
    match *seeds.get_ref() {
        number @ 1..=SEEDS_MAX => Ok(number),
        number => Err(source.wrong(seeds, number, format!("1 to {SEEDS_MAX}"))),
    }
}

impl StudyKeys {
    /// Keys that have no meaning for a study of this kind.
    fn refuse_of_other_kinds(&self, source: Source<'_>) -> Result<(), StudyError> {
        fn place<T>(key: Option<&Spanned<T>>) -> Option<Range<usize>> {
            key.map(Spanned::span)
        }
        let of_kinds = [
            (KindName::Uplink, place(self.axis.as_ref())),
            (KindName::Uplink, place(self.servers.as_ref())),
            (KindName::Uplink, place(self.seeds.as_ref())),
            (KindName::Uplink, place(self.setup.as_ref())),
            (KindName::Uplink, place(self.point.first())),
            (KindName::Adversary, place(self.surface.as_ref())),
            (KindName::Versus, place(self.rows.as_ref())),
            (KindName::Memory, place(self.connections.as_ref())),
            (KindName::Bookstore, place(self.locking.as_ref())),
            (KindName::Bookstore, place(self.stage.first())),
            (KindName::Bookstore, place(self.step.first())),
            (KindName::Application, place(self.doors.as_ref())),
            (KindName::Application, place(self.application.as_ref())),
        ];
        for (kind, place) in of_kinds {
            if let Some(place) = place.filter(|_| kind != self.kind) {
                let (of, this) = (kind.word(), self.kind.word());
                let problem = format!("is of a study of kind {of}: want none in one of {this}");
                return Err(source.error_at(place, problem));
            }
        }
        Ok(())
    }
}

impl KindName {
    fn word(self) -> &'static str {
        match self {
            Self::Uplink => "uplink",
            Self::Adversary => "adversary",
            Self::Throughput => "throughput",
            Self::Versus => "versus",
            Self::Memory => "memory",
            Self::Bookstore => "bookstore",
            Self::Application => "application",
        }
    }
}
