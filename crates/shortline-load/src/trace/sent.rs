//! What a site has sent, by its log: when, and how many bytes, in the order of the lines.
//!
//! A trace for `load` and `sim` must be in the order of time, and a fault in it ends it. Somebody's log of a week is not so:
//! lines are torn or run back in time, formats change in the middle, an archive is cut short. Here each line stands for itself,
//! whatever surrounds it: Common and Combined Log Format and JSON in any mixture, or the World Cup archive's records. A line
//! that cannot be read is passed over and counted, and who reads puts the rest in order. What is told of it shows nothing that stands
//! in the line: a report goes from hand to hand, and lines name clients.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::json_line;
use super::lines::Lines;
use super::log::LINE_BYTES_BESIDE_PATH;
use super::log_line::{self, Entry, parse_line};
use super::world_cup;
use super::{PassedOver, TraceError, TraceOptions, TraceProblem};
use crate::input;

/// A response with a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Seconds since 1970 in UTC.
    pub unix_s: u32,
    /// Milliseconds after that; 0 if the log has whole seconds.
    pub after_ms: u16,
    /// The body's bytes.
    pub bytes: u64,
}

/// The responses of one log, one at a time; nothing follows an error.
pub struct SentLog {
    name: PathBuf,
    input: Box<dyn BufRead>,
    form: Form,
    path_bytes_max: usize,
    passed: PassedOver,
    /// How many bytes of the file have been read, before unpacking.
    read: Arc<AtomicU64>,
    ended: bool,
}

enum Form {
    Lines(Lines),
    /// The archive's records, and how many have been read.
    WorldCup(usize),
}

/// A log that was opened and unpacked, and of which nothing has been taken.
pub struct LogInput {
    name: PathBuf,
    input: Box<dyn BufRead>,
    read: Arc<AtomicU64>,
}

impl LogInput {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    /// It cannot be opened, or its beginning cannot be read.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let name = input::name_of(path);
        let read = Arc::new(AtomicU64::new(0));
        let input = open(path, &read).map_err(|error| TraceError::new(name, error.into()))?;
        Self::of(name, input, read)
    }

    /// Reads from memory.
    ///
    /// # Errors
    /// It is packed, and its beginning cannot be unpacked.
    pub fn of_bytes(bytes: Vec<u8>) -> Result<Self, TraceError> {
        Self::of(Path::new("memory"), Cursor::new(bytes), Arc::default())
    }

    fn of(
        name: &Path,
        input: impl BufRead + 'static,
        read: Arc<AtomicU64>,
    ) -> Result<Self, TraceError> {
        let unpacked = input::unpacked(input);
        Ok(Self {
            name: name.to_owned(),
            input: unpacked.map_err(|error| TraceError::new(name, error.into()))?,
            read,
        })
    }

    /// Its name in errors.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// How many bytes of the file have been read, before unpacking.
    pub fn read_bytes(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Its first bytes, which stay in it; fewer if it ends or breaks off there.
    pub fn head(&mut self, bytes: u64) -> Vec<u8> {
        let mut head = Vec::new();
        // An error comes again when the rest is read.
        let _ = self.input.by_ref().take(bytes).read_to_end(&mut head);
        let rest = std::mem::replace(&mut self.input, Box::new(io::empty()));
        self.input = Box::new(Cursor::new(head.clone()).chain(rest));
        head
    }

    /// The next line of at most `bytes_max` bytes into `line`, with its end. False at the end. What is longer is cut, and the
    /// rest of it passed over.
    ///
    /// # Errors
    /// It cannot be read or unpacked any further.
    pub fn next_line(&mut self, line: &mut Vec<u8>, bytes_max: usize) -> Result<bool, TraceError> {
        line.clear();
        let limited = self.input.by_ref().take(bytes_max as u64);
        let read = read_line(limited, line).and_then(|count| {
            if count == bytes_max && line.last() != Some(&b'\n') {
                self.input.skip_until(b'\n')?;
            }
            Ok(count > 0)
        });
        read.map_err(|error| TraceError::new(&self.name, error.into()))
    }
}

fn read_line(mut input: impl BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    input.read_until(b'\n', line)
}

impl SentLog {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    /// It cannot be opened, or its beginning cannot be read.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        Ok(Self::of(LogInput::open(path)?))
    }

    /// Reads from memory.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn of_bytes(bytes: Vec<u8>) -> Result<Self, TraceError> {
        Ok(Self::of(LogInput::of_bytes(bytes)?))
    }

    /// Reads what was opened.
    pub fn of(mut input: LogInput) -> Self {
        let path_bytes_max = TraceOptions::default().path_bytes_max;
        let form = if world_cup::begins(&input.head(HEAD_BYTES)) {
            Form::WorldCup(0)
        } else {
            Form::Lines(Lines::new(
                path_bytes_max + LINE_BYTES_BESIDE_PATH,
                log_line::WANT,
            ))
        };
        let LogInput { name, input, read } = input;
        Self {
            name,
            input,
            form,
            path_bytes_max,
            passed: PassedOver::default(),
            read,
            ended: false,
        }
    }

    /// Its name in errors.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// What has not become a response so far.
    pub fn passed_over(&self) -> &PassedOver {
        &self.passed
    }

    /// How many bytes of the file have been read, before unpacking.
    pub fn read_bytes(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    fn read_next(&mut self) -> Result<Option<Sent>, TraceProblem> {
        loop {
            let read = match &mut self.form {
                Form::Lines(lines) => {
                    let Some(line) = lines.next(&mut self.input).transpose() else {
                        return Ok(None);
                    };
                    line.and_then(|line| match line.content {
                        [] => Ok(None),
                        [b'{', ..] => {
                            json_line::parse(line.number, line.content, self.path_bytes_max)
                                .map(Some)
                        }
                        text => parse_line(line.number, text, self.path_bytes_max).map(Some),
                    })
                }
                Form::WorldCup(records) => {
                    *records += 1;
                    match world_cup::next_entry(&mut self.input, *records) {
                        Ok(None) => return Ok(None),
                        read => read,
                    }
                }
            };
            match read {
                Ok(None) => {}
                Ok(Some(entry)) => match sent(&entry) {
                    Ok(sent) => return Ok(Some(sent)),
                    Err(kind) => self.passed.add_left_out(kind),
                },
                Err(problem) if problem.is_of_a_line() => {
                    self.passed.add_bad(problem.without_value());
                }
                Err(problem) => return Err(problem),
            }
        }
    }
}

impl Iterator for SentLog {
    type Item = Result<Sent, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let sent = self.read_next();
        self.ended = !matches!(sent, Ok(Some(_)));
        sent.map_err(|problem| TraceError::new(&self.name, problem))
            .transpose()
    }
}

/// How much is read of the file at a time, in bytes.
const READ_BYTES: usize = 256 * 1024;
/// How much of the file decides its form, in bytes.
const HEAD_BYTES: u64 = 64;

fn open(path: &Path, read: &Arc<AtomicU64>) -> io::Result<impl BufRead + 'static> {
    let input: Box<dyn Read> = if input::is_standard_input(path) {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path)?)
    };
    let counted = Counted {
        input,
        read: Arc::clone(read),
    };
    Ok(BufReader::with_capacity(READ_BYTES, counted))
}

/// Before 1970 there was no site, and seconds beyond 2106 do not fit: such a time is no entry of a log.
fn sent(entry: &Entry) -> Result<Sent, super::LeftOut> {
    let (_, bytes) = entry.request.as_ref().map_err(|kind| *kind)?;
    Ok(Sent {
        unix_s: u32::try_from(entry.unix_s).map_err(|_| super::LeftOut::NoTime)?,
        after_ms: (entry.after_ns / 1_000_000) as u16,
        bytes: *bytes,
    })
}

/// Counts what is read.
struct Counted {
    input: Box<dyn Read>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;
    use crate::trace::LeftOut;

    fn read(content: &[u8]) -> (Vec<Sent>, Vec<String>) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content).unwrap();
        let mut log = SentLog::open(file.path()).unwrap();
        let mut sent = Vec::new();
        let mut told = Vec::new();
        for each in log.by_ref() {
            match each {
                Ok(each) => sent.push(each),
                Err(error) => told.push(error.problem().to_string()),
            }
        }
        assert_eq!(log.read_bytes(), content.len() as u64);
        told.extend(log.passed_over().told());
        (sent, told)
    }

    fn common(second: u32, bytes: u64) -> String {
        format!("h - - [21/Nov/2026:10:00:{second:02} +0000] \"GET /a HTTP/1.1\" 200 {bytes}\n")
    }

    const JSON: &str = "{\"ts\":1795255201.5,\"request\":{\"method\":\"GET\",\"uri\":\"/\"},\"size\":9,\"status\":200}\n";
    const BEGIN: u32 = 1_795_255_200;

    fn at(second: u32, after_ms: u16, bytes: u64) -> Sent {
        Sent {
            unix_s: BEGIN + second,
            after_ms,
            bytes,
        }
    }

    #[test]
    fn lines_of_two_formats_out_of_order_and_torn_are_read() {
        let torn = &common(3, 8)[..40];
        let text = [
            &common(5, 7),
            JSON,
            torn,
            "\n",
            &common(1, 3).replace("GET", "HEAD"),
            &common(0, 2),
        ]
        .concat();
        let (sent, told) = read(text.as_bytes());
        assert_eq!(sent, [at(5, 0, 7), at(1, 500, 9), at(0, 0, 2)]);
        assert!(
            told[0].starts_with("1 line could not be read; the first: line 3: "),
            "{told:?}"
        );
        assert_eq!(
            told[1],
            "1 line left out that are no GET answered 200: 1 HEAD"
        );
    }

    #[test]
    fn a_packed_log_is_read_and_one_cut_short_as_far_as_it_goes() {
        // More than zstd packs into one block.
        let lines =
            (0..9_000u64).map(|n| common((n % 60) as u32, n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let text: String = lines.collect();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        assert_eq!(read(&gzip).0.len(), 9_000);
        let (sent, told) = read(&gzip[..gzip.len() - 9]);
        assert!(sent.len() > 1_000);
        assert_eq!(told[0], "gzip is cut short: want all of it");
        let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
        assert_eq!(read(&zstd).0.len(), 9_000);
        let (sent, told) = read(&zstd[..zstd.len() - 9]);
        assert!(sent.len() > 1_000);
        assert_eq!(told[0], "zstd is cut short: want all of it");
    }

    #[test]
    fn records_of_the_world_cup_are_known_by_their_time() {
        let record =
            |seconds: u32, bytes: u32| [seconds, 1, 2, bytes, 3].map(u32::to_be_bytes).concat();
        let begin = 894_000_000;
        let text = [
            record(begin + 2, 10),
            record(begin, u32::MAX),
            vec![1, 2, 3],
        ]
        .concat();
        let (sent, told) = read(&text);
        let bytes: Vec<_> = sent
            .iter()
            .map(|sent| (sent.unix_s - begin, sent.bytes))
            .collect();
        assert_eq!(bytes, [(2, 10), (0, 0)]);
        assert!(
            told[0].starts_with("1 record could not be read"),
            "{told:?}"
        );
    }

    #[test]
    fn a_time_before_1970_is_left_out() {
        let text = common(0, 1).replace("2026", "1969");
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let mut log = SentLog::open(file.path()).unwrap();
        assert!(log.next().is_none());
        assert_eq!(log.passed_over().left_out()[&LeftOut::NoTime], 1);
    }

    proptest! {
        #[test]
        fn no_input_panics_and_garbage_is_counted(input in proptest::collection::vec(any::<u8>(), 0..300)) {
            read(&input);
        }
    }
}
