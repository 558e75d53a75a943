//! The result CSV, written and read; its columns are in [`crate::record`].

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

use super::{RequestRecord, Turn};
use crate::input;
use crate::trace::csv_field;

const HEADER: &str = "at,path,size,received,ok,tries,lag,connect,first_byte,response_time,error";
/// The additional column of runs with sources.
const SOURCE: &str = ",source";
/// The additional columns of closed loops, after that.
const TURN: &str = ",user,request";
const FIELDS_AFTER_PATH: usize = 9;
/// The extension of a file of packed records.
pub const PACKED: &str = "zst";
/// zstd's own default.
const PACKED_LEVEL: i32 = 3;
/// The longest line read, in bytes. The longest path of a trace is far below it.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// A result CSV that could not be read or written.
#[derive(Debug, Error)]
#[error("{}: {problem}", file.display())]
pub struct RecordError {
    file: PathBuf,
    #[source]
    problem: RecordProblem,
}

/// What is wrong with a result CSV. Lines count from 1.
#[derive(Debug, Error)]
pub enum RecordProblem {
    /// The system could not read or write it.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The first line is not the header.
    #[error("line 1: want the header `{HEADER}`, or with `{SOURCE}`, `{TURN}` or both after it")]
    Header,
    /// A field is not what its column wants.
    #[error("line {line}: {column} `{value}`: want {want}")]
    Field {
        /// Line number.
        line: usize,
        /// The column's name.
        column: &'static str,
        /// What stands there.
        value: String,
        /// What would be right.
        want: &'static str,
    },
}

/// Writes records as CSV with the header, packed if the file's name says so.
///
/// # Errors
/// [`RecordError`] with the file's name.
pub fn write_records(path: &Path, records: &[RequestRecord]) -> Result<(), RecordError> {
    let write = || {
        let mut out = BufWriter::new(File::create(path)?);
        write_records_as(path, &mut out, records)?;
        out.flush()
    };
    write().map_err(|error| RecordError {
        file: path.to_owned(),
        problem: error.into(),
    })
}

/// Reads what [`write_records`] wrote, packed or not.
///
/// # Errors
/// [`RecordError`] with file, line, column, value and what would be right.
pub fn read_records(path: &Path) -> Result<Vec<RequestRecord>, RecordError> {
    File::open(path)
        .map_err(RecordProblem::from)
        .and_then(|file| read_records_from(input::unpacked(BufReader::new(file))?))
        .map_err(|problem| RecordError {
            file: path.to_owned(),
            problem,
        })
}

/// Writes records to any stream, as [`write_records`] does to a file of this name: packed with zstd (RFC 8878) if that ends in `.zst`.
///
/// # Errors
/// The stream's error.
pub fn write_records_as(
    name: &Path,
    out: &mut impl Write,
    records: &[RequestRecord],
) -> io::Result<()> {
    if name.extension().is_none_or(|extension| extension != PACKED) {
        return write_records_to(out, records);
    }
    let packer = zstd::stream::write::Encoder::new(out, PACKED_LEVEL)?;
    let mut packer = BufWriter::new(packer);
    write_records_to(&mut packer, records)?;
    packer.into_inner()?.finish().map(drop)
}

/// Writes records to any stream. There is a source column if a
/// record has a source, and those of a user's request if a record has them.
///
/// # Errors
/// The stream's error.
pub fn write_records_to(out: &mut impl Write, records: &[RequestRecord]) -> io::Result<()> {
    let columns = Columns {
        sources: records.iter().any(|record| record.source.is_some()),
        turns: records.iter().any(|record| record.turn.is_some()),
    };
    writeln!(out, "{}", columns.header())?;
    for record in records {
        write!(
            out,
            "{:.6},{},{},{},{},{},{:.6},{},{},{:.6},{}",
            record.at_s,
            csv_field(&record.path),
            record.size,
            record.received,
            u8::from(record.ok()),
            record.tries,
            record.lag_s,
            optional(record.connect_s),
            optional(record.first_byte_s),
            record.response_time_s,
            record.failure.map(|f| f.to_string()).unwrap_or_default(),
        )?;
        match record.source {
            Some(address) => write!(out, ",{address}")?,
            None if columns.sources => write!(out, ",")?,
            None => {}
        }
        match record.turn {
            Some(Turn { user, request }) => write!(out, ",{user},{request}")?,
            None if columns.turns => write!(out, ",,")?,
            None => {}
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The columns that not all files have.
#[derive(Clone, Copy)]
struct Columns {
    sources: bool,
    turns: bool,
}

impl Columns {
    fn header(self) -> String {
        let with = |column: &'static str, has| if has { column } else { "" };
        let (source, turn) = (with(SOURCE, self.sources), with(TURN, self.turns));
        format!("{HEADER}{source}{turn}")
    }

    fn of(header: &str) -> Option<Self> {
        let all = [(false, false), (true, false), (false, true), (true, true)];
        let mut all = all
            .map(|(sources, turns)| Self { sources, turns })
            .into_iter();
        all.find(|columns| columns.header() == header)
    }

    /// The number of fields after the path.
    fn after_path(self) -> usize {
        FIELDS_AFTER_PATH + usize::from(self.sources) + 2 * usize::from(self.turns)
    }
}

fn optional(seconds: Option<f64>) -> String {
    seconds.map(|s| format!("{s:.6}")).unwrap_or_default()
}

/// Reads records from any stream, as [`read_records`] does from a file.
///
/// # Errors
/// As [`read_records`], without the file's name.
pub fn read_records_from(mut input: impl BufRead) -> Result<Vec<RequestRecord>, RecordProblem> {
    let mut records = Vec::new();
    let mut text = String::new();
    let mut columns = None;
    for line in 1.. {
        text.clear();
        if input.by_ref().take(LINE_BYTES_MAX).read_line(&mut text)? == 0 {
            break;
        }
        match (columns, text.trim_end()) {
            (None, header) => {
                columns = Some(Columns::of(header).ok_or(RecordProblem::Header)?);
            }
            (Some(_), "") => {}
            (Some(columns), text) => records.push(parse_line(line, text, columns)?),
        }
    }
    Ok(records)
}

fn parse_line(line: usize, text: &str, columns: Columns) -> Result<RequestRecord, RecordProblem> {
    // The path may contain commas, and no later field does: count from the end.
    let fields_after_path = columns.after_path();
    let mut after_path: Vec<&str> = text.rsplitn(fields_after_path + 1, ',').collect();
    let Some((at, path)) = after_path.pop().and_then(|rest| rest.split_once(',')) else {
        return Err(RecordProblem::Field {
            line,
            column: "line",
            value: text.chars().take(60).collect(),
            want: match (columns.sources, columns.turns) {
                (false, false) => "eleven fields",
                (true, false) => "twelve fields",
                (false, true) => "thirteen fields",
                (true, true) => "fourteen fields",
            },
        });
    };
    let mut fields = Fields {
        line,
        left: after_path,
    };
    let at_s = fields.seconds("at", at)?;
    let size = fields.next("size", "bytes")?;
    let received = fields.next("received", "bytes")?;
    let ok: u8 = fields.next("ok", "0 or 1")?;
    let tries = fields.next("tries", "a whole number")?;
    let lag_s = fields.next_seconds("lag")?;
    let connect_s = fields.next_optional("connect")?;
    let first_byte_s = fields.next_optional("first_byte")?;
    let response_time_s = fields.next_seconds("response_time")?;
    let failure = match (ok, fields.take()) {
        (1, "") => None,
        (_, name) => Some(fields.parse("error", name, "a kind of failure where ok is 0")?),
    };
    let source = match if columns.sources { fields.take() } else { "" } {
        "" => None,
        address => Some(fields.parse("source", address, "an IP address")?),
    };
    let turn = match (fields.take(), fields.take()) {
        ("", "") => None,
        (user, request) => Some(Turn {
            user: fields.parse("user", user, "a whole number")?,
            request: fields.parse("request", request, "a whole number")?,
        }),
    };
    Ok(RequestRecord {
        at_s,
        path: path.trim_matches('"').to_owned(),
        size,
        received,
        tries,
        lag_s,
        connect_s,
        first_byte_s,
        response_time_s,
        failure,
        source,
        turn,
    })
}

/// The fields of a line from `size` on, the last first.
struct Fields<'a> {
    line: usize,
    left: Vec<&'a str>,
}

impl<'a> Fields<'a> {
    fn take(&mut self) -> &'a str {
        self.left.pop().unwrap_or_default()
    }

    fn parse<T: FromStr>(
        &self,
        column: &'static str,
        value: &str,
        want: &'static str,
    ) -> Result<T, RecordProblem> {
        value.parse().map_err(|_| RecordProblem::Field {
            line: self.line,
            column,
            value: value.into(),
            want,
        })
    }

    fn next<T: FromStr>(
        &mut self,
        column: &'static str,
        want: &'static str,
    ) -> Result<T, RecordProblem> {
        let value = self.take();
        self.parse(column, value, want)
    }

    fn seconds(&self, column: &'static str, value: &str) -> Result<f64, RecordProblem> {
        let want = "seconds";
        let seconds: f64 = self.parse(column, value, want)?;
        if seconds.is_finite() {
            return Ok(seconds);
        }
        Err(RecordProblem::Field {
            line: self.line,
            column,
            value: value.into(),
            want,
        })
    }

    fn next_seconds(&mut self, column: &'static str) -> Result<f64, RecordProblem> {
        let value = self.take();
        self.seconds(column, value)
    }

    fn next_optional(&mut self, column: &'static str) -> Result<Option<f64>, RecordProblem> {
        match self.take() {
            "" => Ok(None),
            value => self.seconds(column, value).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::record::Failure;
    use proptest::prelude::*;

    fn record() -> RequestRecord {
        RequestRecord {
            received: 4000,
            tries: 2,
            lag_s: 0.000_021,
            first_byte_s: Some(0.25),
            failure: Some(Failure::Status(503)),
            ..RequestRecord::finished(1.5, "/a,b", 5000, 7.000_001)
        }
    }

    #[test]
    fn the_columns_are_the_designs() {
        let mut text = Vec::new();
        write_records_to(&mut text, &[record()]).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "at,path,size,received,ok,tries,lag,connect,first_byte,response_time,error\n\
             1.500000,\"/a,b\",5000,4000,0,2,0.000021,,0.250000,7.000001,status-503\n"
        );
    }

    /// The lines that records are written as. They are read as the same records.
    fn read_back(records: &[RequestRecord]) -> Vec<String> {
        let mut text = Vec::new();
        write_records_to(&mut text, records).unwrap();
        assert_eq!(read_records_from(&text[..]).unwrap(), records);
        let text = String::from_utf8(text).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn sources_are_a_column_after_the_others_if_there_are_any() {
        let from = |source: Option<&str>| RequestRecord {
            source: source.map(|address| address.parse().unwrap()),
            ..record()
        };
        let records = [from(None), from(Some("10.92.3.1"))];
        let lines = read_back(&records);
        assert_eq!(lines[0], format!("{HEADER},source"));
        assert!(lines[1].ends_with(",status-503,"), "{}", lines[1]);
        assert!(lines[2].ends_with(",status-503,10.92.3.1"), "{}", lines[2]);

        let wrong = format!("{HEADER},source\n1,/a,1,0,1,1,0,0,0,0,,here\n");
        assert_eq!(
            read_records_from(wrong.as_bytes()).unwrap_err().to_string(),
            "line 2: source `here`: want an IP address"
        );
    }

    #[test]
    fn the_name_says_whether_a_file_is_packed_and_its_content_when_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, packed) = (folder.path().join("a.csv"), folder.path().join("a.csv.zst"));
        let records = vec![record(); 200];
        write_records(&plain, &records).unwrap();
        write_records(&packed, &records).unwrap();
        let unpacked = zstd::stream::decode_all(File::open(&packed).unwrap()).unwrap();
        assert_eq!(unpacked, std::fs::read(&plain).unwrap());
        std::fs::rename(&packed, &plain).unwrap();
        assert_eq!(read_records(&plain).unwrap(), records);
        // Its end is missing.
        let whole = std::fs::read(&plain).unwrap();
        std::fs::write(&plain, &whole[..whole.len() / 2]).unwrap();
        let told = read_records(&plain).unwrap_err().to_string();
        assert!(
            told.ends_with("zstd is cut short: want all of it"),
            "{told}"
        );
    }

    #[test]
    fn requests_of_users_have_their_numbers() {
        let of = |turn| RequestRecord { turn, ..record() };
        let records = [
            of(Some(Turn {
                user: 7,
                request: 12,
            })),
            of(None),
        ];
        let lines = read_back(&records);
        assert_eq!(lines[0], format!("{HEADER},user,request"));
        assert!(lines[1].ends_with(",status-503,7,12"), "{}", lines[1]);
        assert!(lines[2].ends_with(",status-503,,"), "{}", lines[2]);

        let wrong = format!("{HEADER},source,user,request\n1,/a,1,0,1,1,0,0,0,0,,,7,x\n");
        assert_eq!(
            read_records_from(wrong.as_bytes()).unwrap_err().to_string(),
            "line 2: request `x`: want a whole number"
        );
    }

    #[test]
    fn a_file_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("r.csv");
        write_records(&file, &[record()]).unwrap();
        assert_eq!(read_records(&file).unwrap(), [record()]);
    }

    #[test]
    fn errors_name_line_column_and_value() {
        let error = |line: &str| {
            let text = format!("{HEADER}\n{line}\n");
            read_records_from(text.as_bytes()).unwrap_err().to_string()
        };
        assert_eq!(
            error("1,/a,x,0,1,1,0,0,0,0,"),
            "line 2: size `x`: want bytes"
        );
        assert_eq!(
            error("NaN,/a,1,0,1,1,0,0,0,0,"),
            "line 2: at `NaN`: want seconds"
        );
        assert_eq!(
            error("1,/a,1,0,0,1,0,0,0,0,"),
            "line 2: error ``: want a kind of failure where ok is 0"
        );
        assert_eq!(error("1,2,3"), "line 2: line `1,2,3`: want eleven fields");
        assert!(matches!(
            read_records_from(&b"a,b\n"[..]),
            Err(RecordProblem::Header)
        ));
    }

    fn any_failure() -> impl Strategy<Value = Option<Failure>> {
        prop_oneof![
            Just(None),
            Just(Some(Failure::Connect)),
            Just(Some(Failure::Tls)),
            Just(Some(Failure::Reset)),
            Just(Some(Failure::Timeout)),
            (100u16..600).prop_map(|code| Some(Failure::Status(code))),
            Just(Some(Failure::Short)),
            Just(Some(Failure::Protocol)),
            Just(Some(Failure::Unfinished)),
        ]
    }

    proptest! {
        #[test]
        fn any_record_reads_back(
            times in proptest::collection::vec(0u32..2_000_000_000, 5),
            path in "/[a-z,%?=]{0,12}", size: u64, received: u64, tries: u32,
            connected: bool, failure in any_failure(), source in any::<Option<std::net::IpAddr>>(),
            turn in any::<Option<(u64, u64)>>(),
        ) {
            // Six places are kept.
            let s = |i: usize| f64::from(times[i]) / 1e6;
            let record = RequestRecord {
                at_s: s(0), path, size, received, tries, lag_s: s(1),
                connect_s: connected.then(|| s(2)), first_byte_s: connected.then(|| s(3)),
                response_time_s: s(4), failure, source,
                turn: turn.map(|(user, request)| Turn { user, request }),
            };
            let mut text = Vec::new();
            write_records_to(&mut text, std::slice::from_ref(&record)).unwrap();
            prop_assert_eq!(read_records_from(text.as_slice()).unwrap(), vec![record]);
        }

        #[test]
        fn no_line_panics(line in "[0-9a-z,./\" -]{0,80}") {
            let _ = read_records_from(format!("{HEADER}\n{line}\n").as_bytes()).is_ok();
        }
    }
}
