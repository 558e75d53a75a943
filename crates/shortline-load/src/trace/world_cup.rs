//! The World Cup 98 archive's binary format (Arlitt and Jin, "1998 World Cup Web Site Access Logs",
//! The Internet Traffic Archive). A request takes 20 bytes, big-endian: u32 timestamp (s), u32
//! client, u32 object, u32 size, u8 method, u8 status, u8 type, u8 server. A size of 0xFFFFFFFF
//! means that nothing was sent and counts as 0.
//!
//! Object n becomes the path `/wc/n`. Timestamps are whole seconds: the requests of one second are
//! spread over it as [`super::Spread`] says, by default evenly. Client, method, status, type and
//! server are not used: every record becomes a GET for its object.

use std::io::{BufRead, Read};

use super::log_line::Entry;
use super::spread::{NS_PER_S, Spreader};
use super::{Request, SECONDS_MAX, TraceOptions, TraceProblem};

const RECORD_BYTES: usize = 20;
const SIZE_NONE: u32 = u32::MAX;

/// Reads records, a second at a time.
pub(super) struct Reader<R> {
    input: R,
    spreader: Spreader,
    requests_max: usize,
    /// How many records were read.
    records: usize,
    first_timestamp: Option<u32>,
    /// The first record of the next second.
    ahead: Option<Record>,
    /// What is wrong with a truncated last record, until it has been reported.
    cut: Option<TraceProblem>,
    /// The second being handed out.
    second: std::vec::IntoIter<Request>,
}

impl<R: BufRead> Reader<R> {
    pub(super) fn new(input: R, options: &TraceOptions) -> Self {
        Self {
            input,
            spreader: Spreader::new(options.spread),
            requests_max: options.requests_max,
            records: 0,
            first_timestamp: None,
            ahead: None,
            cut: None,
            second: Vec::new().into_iter(),
        }
    }

    /// The next request; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Request>, TraceProblem> {
        if let Some(request) = self.second.next() {
            return Ok(Some(request));
        }
        self.second = self.read_second()?.into_iter();
        match (self.second.next(), self.cut.take()) {
            (None, Some(problem)) => Err(problem),
            (request, cut) => {
                self.cut = cut;
                Ok(request)
            }
        }
    }

    /// All requests of the next second, spread over it; none at the end.
    fn read_second(&mut self) -> Result<Vec<Request>, TraceProblem> {
        let mut second = Vec::new();
        let Some(begin) = (match self.ahead.take() {
            Some(record) => Some(record),
            None => self.read()?,
        }) else {
            return Ok(second);
        };
        let first = *self.first_timestamp.get_or_insert(begin.timestamp);
        second.push(begin.request(self.records, first)?);
        while let Some(record) = self.read()? {
            if record.timestamp < begin.timestamp {
                return Err(TraceProblem::RecordUnsorted {
                    record: self.records,
                    value: record.timestamp,
                    previous: begin.timestamp,
                });
            }
            if record.timestamp > begin.timestamp {
                self.ahead = Some(record);
                break;
            }
            if second.len() == self.requests_max {
                return Err(TraceProblem::TooMany {
                    limit: self.requests_max,
                });
            }
            second.push(record.request(self.records, first)?);
        }
        self.spreader.spread(&mut second);
        Ok(second)
    }

    fn read(&mut self) -> Result<Option<Record>, TraceProblem> {
        let record = match next_record(&mut self.input, self.records + 1) {
            Err(cut @ TraceProblem::Truncated { .. }) => {
                self.cut = Some(cut);
                None
            }
            read => read?,
        };
        self.records += usize::from(record.is_some());
        Ok(record)
    }
}

/// When the archive's site was open, in seconds since 1970: from 30 April to 26 July 1998.
const SEASON: std::ops::Range<u32> = 893_800_000..901_600_000;

/// Whether something that begins so is the archive's: its first record has a time of that season.
pub(super) fn begins(head: &[u8]) -> bool {
    let first = head.first_chunk().map(|time| u32::from_be_bytes(*time));
    first.is_some_and(|time| SEASON.contains(&time))
}

/// The next record as an entry of a log; `None` at the end.
pub(super) fn next_entry(
    input: &mut impl BufRead,
    number: usize,
) -> Result<Option<Entry>, TraceProblem> {
    let record = next_record(input, number)?;
    Ok(record.map(|record| Entry {
        unix_s: record.timestamp.into(),
        after_ns: 0,
        request: Ok((String::new(), record.bytes())),
    }))
}

struct Record {
    timestamp: u32,
    object: u32,
    size: u32,
}

impl Record {
    /// The request, at the start of its second, counted from the first record's.
    fn request(&self, number: usize, first: u32) -> Result<Request, TraceProblem> {
        let after = self.timestamp - first;
        if f64::from(after) > SECONDS_MAX {
            return Err(TraceProblem::RecordTooLate {
                record: number,
                value: self.timestamp,
                after,
            });
        }
        Ok(Request {
            at_ns: u64::from(after) * NS_PER_S,
            path: format!("/wc/{}", self.object),
            bytes: self.bytes(),
        })
    }

    fn bytes(&self) -> u64 {
        match self.size {
            SIZE_NONE => 0,
            size => u64::from(size),
        }
    }
}

fn next_record(input: &mut impl BufRead, number: usize) -> Result<Option<Record>, TraceProblem> {
    let mut bytes = Vec::with_capacity(RECORD_BYTES);
    input
        .by_ref()
        .take(RECORD_BYTES as u64)
        .read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let Ok(bytes) = <[u8; RECORD_BYTES]>::try_from(bytes.as_slice()) else {
        return Err(TraceProblem::Truncated {
            record: number,
            bytes: bytes.len(),
        });
    };
    let field =
        |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Ok(Some(Record {
        timestamp: field(0),
        object: field(8),
        size: field(12),
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::trace::{Spread, parse_trace, read_trace};
    use proptest::prelude::*;
    use std::collections::HashSet;
    use std::path::Path;

    fn record(timestamp: u32, object: u32, size: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        for field in [timestamp, 7, object, size, 0x0002_0304] {
            bytes.extend(field.to_be_bytes());
        }
        bytes
    }

    fn parsed(records: &[Vec<u8>], spread: Spread) -> Result<Vec<Request>, TraceProblem> {
        let options = TraceOptions {
            spread,
            ..TraceOptions::default()
        };
        parse_trace(records.concat().as_slice(), &options)
    }

    #[test]
    fn a_second_is_spread_evenly() {
        let records = [
            record(100, 1, 10),
            record(100, 2, SIZE_NONE),
            record(102, 3, 30),
        ];
        let requests = parsed(&records, Spread::Even).unwrap();
        let got: Vec<_> = requests
            .iter()
            .map(|request| (request.at_ns, request.path.as_str(), request.bytes))
            .collect();
        assert_eq!(
            got,
            [
                (0, "/wc/1", 10),
                (500_000_000, "/wc/2", 0),
                (2_000_000_000, "/wc/3", 30)
            ]
        );
    }

    #[test]
    fn a_random_spread_depends_on_the_seed_alone() {
        let records = vec![record(100, 1, 10); 50];
        let spread = |seed| parsed(&records, Spread::Random { seed }).unwrap();
        assert_eq!(spread(1), spread(1));
        assert_ne!(spread(1), spread(2));
    }

    #[test]
    fn errors_name_the_record() {
        let mut cut = [record(100, 1, 10), record(100, 1, 10)].concat();
        cut.truncate(33);
        let error = parsed(&[cut], Spread::Even).unwrap_err().to_string();
        assert!(
            error.starts_with("record 2: cut short after 13 of 20 bytes"),
            "{error}"
        );
        let backwards = [record(100, 1, 10), record(99, 1, 10)];
        assert_eq!(
            parsed(&backwards, Spread::Even).unwrap_err().to_string(),
            "record 2: timestamp 99 is before 100, the record before: want them sorted"
        );
        let late = [record(100, 1, 10), record(2_000_000_000, 1, 10)];
        assert_eq!(
            parsed(&late, Spread::Even).unwrap_err().to_string(),
            "record 2: timestamp 2000000000 is 1999999900 s after the first: want 10000000 at most"
        );
    }

    #[test]
    fn the_number_of_requests_is_bounded() {
        let options = TraceOptions {
            requests_max: 1,
            ..TraceOptions::default()
        };
        let two = [record(100, 1, 10), record(100, 1, 10)].concat();
        assert!(matches!(
            parse_trace(two.as_slice(), &options),
            Err(TraceProblem::TooMany { limit: 1 })
        ));
    }

    /// The totals that come with the archive's sample. The project may not include the sample
    /// itself.
    #[test]
    fn the_archives_sample_adds_up() {
        let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
        let sample = traces.join("wc_day50_4.head");
        if !sample.exists() {
            println!(
                "SKIPPED the_archives_sample_adds_up: no {}",
                sample.display()
            );
            return;
        }
        let requests = read_trace(&sample, &TraceOptions::default()).unwrap();
        assert_eq!(requests.len(), 10_000);
        assert_eq!(
            requests.iter().map(|request| request.bytes).sum::<u64>(),
            47_458_780
        );
        assert_eq!(
            requests.iter().map(|request| request.bytes).max(),
            Some(1_590_480)
        );
        let objects: HashSet<_> = requests.iter().map(|request| &request.path).collect();
        assert_eq!(objects.len(), 1244);
        assert_eq!(requests[0].at_ns, 0);
        assert_eq!(requests[9999].at_ns / NS_PER_S, 897_861_265 - 897_861_223);
    }

    proptest! {
        #[test]
        fn spreading_keeps_order_and_second(
            steps in proptest::collection::vec(0u32..3, 1..60), seed: Option<u64>
        ) {
            let mut timestamp = 1000;
            let mut records = Vec::new();
            for step in &steps {
                timestamp += step;
                records.push(record(timestamp, 1, 1));
            }
            let spread = seed.map_or(Spread::Even, |seed| Spread::Random { seed });
            let requests = parsed(&records, spread).unwrap();
            prop_assert!(requests.is_sorted_by_key(|request| request.at_ns));
            let mut second = 1000;
            for (step, request) in steps.iter().zip(&requests) {
                second += u64::from(*step);
                prop_assert_eq!(request.at_ns / NS_PER_S, second - 1000 - u64::from(steps[0]));
            }
        }
    }
}
