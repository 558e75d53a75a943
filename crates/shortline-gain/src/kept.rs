//! Keeps the responses of any number of logs in a temporary file, and gives them back in the order of time.
//!
//! External merge sort (Knuth, The Art of Computer Programming 3, 5.4): runs of a bounded number of responses are sorted in
//! memory and written, then merged. Responses of one time keep the order in which they came. Where a log has whole seconds only,
//! the i-th of n responses of a second is at i/n of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use shortline_load::trace::Sent;

/// The responses of a run.
const RUN: usize = 1 << 18;
/// The responses of a run that are in memory while runs are merged.
const AHEAD: usize = 1 << 10;
/// Milliseconds of a second, beside the upper bits of the bytes.
const MS_BITS: u32 = 10;
/// Bytes above that are kept as that: 18 TB.
const BYTES_MAX: u64 = (1 << (64 - MS_BITS)) - 1;
const NS_PER_S: u64 = 1_000_000_000;

/// A response in the file: seconds since 1970; milliseconds and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    unix_s: u32,
    packed: u64,
}

/// A response in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InOrder {
    /// Nanoseconds since 1970.
    pub unix_ns: u64,
    /// The body's bytes.
    pub bytes: u64,
}

/// All responses.
pub struct Kept {
    file: File,
    run: Vec<Entry>,
    /// How many responses each run in the file has.
    runs: Vec<usize>,
}

impl Kept {
    /// An empty temporary file, which has no name.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            file: tempfile::tempfile()?,
            run: Vec::new(),
            runs: Vec::new(),
        })
    }

    /// Keeps one.
    pub fn keep(&mut self, sent: Sent) -> io::Result<()> {
        self.run.push(Entry::of(sent));
        if self.run.len() == RUN {
            self.write_run()?;
        }
        Ok(())
    }

    /// Ends the last run. Nothing is kept after that.
    pub fn close(&mut self) -> io::Result<()> {
        if self.run.is_empty() {
            return Ok(());
        }
        self.write_run()?;
        self.run = Vec::new();
        Ok(())
    }

    /// All of them in the order of time, after `close`.
    pub fn in_order(&self) -> Merged<'_> {
        let mut begin = 0;
        let runs = self.runs.iter().map(|count| {
            let run = Run {
                next: begin,
                end: begin + count,
                ahead: Vec::new().into_iter(),
            };
            begin = run.end;
            run
        });
        Merged {
            file: &self.file,
            runs: runs.collect(),
            heads: BinaryHeap::new(),
            begun: false,
            after: None,
            second: Vec::new().into_iter(),
        }
    }

    fn write_run(&mut self) -> io::Result<()> {
        self.run.sort_by_key(|entry| entry.time());
        let bytes: Vec<u8> = self.run.iter().flat_map(|entry| entry.to_bytes()).collect();
        self.file.write_all(&bytes)?;
        self.runs.push(self.run.len());
        self.run.clear();
        Ok(())
    }
}

impl Entry {
    const BYTES: usize = 12;

    fn of(sent: Sent) -> Self {
        Self {
            unix_s: sent.unix_s,
            packed: u64::from(sent.after_ms) << (64 - MS_BITS) | sent.bytes.min(BYTES_MAX),
        }
    }

    fn after_ms(self) -> u64 {
        self.packed >> (64 - MS_BITS)
    }

    fn time(&self) -> (u32, u64) {
        (self.unix_s, self.after_ms())
    }

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.unix_s.to_le_bytes());
        bytes[4..].copy_from_slice(&self.packed.to_le_bytes());
        bytes
    }

    /// # Panics
    /// If there are fewer bytes than an entry has.
    fn from_bytes(bytes: &[u8]) -> Self {
        let (time, packed) = bytes.split_at(4);
        Self {
            unix_s: u32::from_le_bytes(time.try_into().expect("invariant: 4 bytes")),
            packed: u64::from_le_bytes(packed.try_into().expect("invariant: 8 bytes")),
        }
    }
}

/// The responses in the order of time; an error of the file ends them.
pub struct Merged<'a> {
    file: &'a File,
    runs: Vec<Run>,
    /// The next time of each run, the earliest first, and of one time that of the first run.
    heads: BinaryHeap<Reverse<((u32, u64), usize)>>,
    begun: bool,
    /// The first response of the next second.
    after: Option<Entry>,
    /// What is left of a second.
    second: std::vec::IntoIter<InOrder>,
}

/// A sorted run: its places in the file, and those read ahead.
struct Run {
    next: usize,
    end: usize,
    ahead: std::vec::IntoIter<Entry>,
}

impl Run {
    fn head(&mut self, file: &File) -> io::Result<Option<(u32, u64)>> {
        if self.ahead.as_slice().is_empty() && self.next < self.end {
            let count = AHEAD.min(self.end - self.next);
            let mut bytes = vec![0; count * Entry::BYTES];
            file.read_exact_at(&mut bytes, (self.next * Entry::BYTES) as u64)?;
            self.next += count;
            let entries: Vec<Entry> = bytes
                .chunks_exact(Entry::BYTES)
                .map(Entry::from_bytes)
                .collect();
            self.ahead = entries.into_iter();
        }
        Ok(self.ahead.as_slice().first().map(Entry::time))
    }
}

impl Merged<'_> {
    /// The next of all runs.
    fn next_entry(&mut self) -> io::Result<Option<Entry>> {
        if !self.begun {
            self.begun = true;
            for index in 0..self.runs.len() {
                self.offer(index)?;
            }
        }
        let Some(Reverse((_, index))) = self.heads.pop() else {
            return Ok(None);
        };
        let entry = self.runs[index].ahead.next();
        self.offer(index)?;
        Ok(entry)
    }

    fn offer(&mut self, index: usize) -> io::Result<()> {
        if let Some(time) = self.runs[index].head(self.file)? {
            self.heads.push(Reverse((time, index)));
        }
        Ok(())
    }

    /// All of the next second, spread over it if none says when in it.
    fn next_second(&mut self) -> io::Result<Vec<InOrder>> {
        let first = match self.after.take() {
            Some(entry) => Some(entry),
            None => self.next_entry()?,
        };
        let Some(first) = first else {
            return Ok(Vec::new());
        };
        let mut entries = vec![first];
        while let Some(entry) = self.next_entry()? {
            if entry.unix_s != first.unix_s {
                self.after = Some(entry);
                break;
            }
            entries.push(entry);
        }
        let count = entries.len() as u64;
        let is_whole = entries.iter().all(|entry| entry.after_ms() == 0);
        let in_order = |(index, entry): (u64, &Entry)| {
            let after_ns = if is_whole {
                index * NS_PER_S / count
            } else {
                entry.after_ms() * 1_000_000
            };
            InOrder {
                unix_ns: u64::from(entry.unix_s) * NS_PER_S + after_ns,
                bytes: entry.packed & BYTES_MAX,
            }
        };
        Ok((0..).zip(&entries).map(in_order).collect())
    }
}

impl Iterator for Merged<'_> {
    type Item = io::Result<InOrder>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(next) = self.second.next() {
            return Some(Ok(next));
        }
        match self.next_second() {
            Ok(second) => {
                self.second = second.into_iter();
                self.second.next().map(Ok)
            }
            Err(error) => Some(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn sent(unix_s: u32, after_ms: u16, bytes: u64) -> Sent {
        Sent {
            unix_s,
            after_ms,
            bytes,
        }
    }

    fn in_order(all: impl IntoIterator<Item = Sent>) -> Vec<(u64, u64)> {
        let mut kept = Kept::new().unwrap();
        for each in all {
            kept.keep(each).unwrap();
        }
        kept.close().unwrap();
        let each = |each: io::Result<InOrder>| each.map(|each| (each.unix_ns, each.bytes)).unwrap();
        let first: Vec<_> = kept.in_order().map(each).collect();
        // It can be read again.
        assert_eq!(kept.in_order().map(each).collect::<Vec<_>>(), first);
        first
    }

    #[test]
    fn whole_seconds_are_spread_and_others_are_not() {
        let all = [sent(7, 0, 1), sent(5, 250, 2), sent(7, 0, 3), sent(5, 0, 4)];
        let want = [
            (5_000_000_000, 4),
            (5_250_000_000, 2),
            (7_000_000_000, 1),
            (7_500_000_000, 3),
        ];
        assert_eq!(in_order(all), want);
        assert_eq!(in_order([]), []);
        let huge = [sent(u32::MAX, 999, u64::MAX)];
        assert_eq!(in_order(huge), [(4_294_967_295_999_000_000, BYTES_MAX)]);
    }

    #[test]
    fn runs_are_merged() {
        let count = RUN as u32 * 2 + AHEAD as u32 / 2;
        let second = |n: u32| (u64::from(n) * 7919 % 100_003) as u32;
        let got = in_order((0..count).map(|n| sent(second(n), 1, u64::from(n))));
        assert_eq!(got.len(), count as usize);
        assert!(got.is_sorted_by_key(|(at, _)| *at));
        // Of one time, first what came first.
        assert!(
            got.windows(2)
                .all(|two| two[0].0 != two[1].0 || two[0].1 < two[1].1)
        );
        let bytes: u64 = got.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(bytes, (0..u64::from(count)).sum::<u64>());
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_time_never_goes_back(
            all in prop::collection::vec((0..20u32, 0..1000u16, 0..1u64 << 54), 0..80)
        ) {
            let got = in_order(all.iter().map(|(unix_s, ms, bytes)| sent(*unix_s, *ms, *bytes)));
            prop_assert!(got.is_sorted_by_key(|(at, _)| *at));
            let mut want: Vec<_> = all.iter().map(|(_, _, bytes)| *bytes).collect();
            let mut bytes: Vec<_> = got.iter().map(|(_, bytes)| *bytes).collect();
            want.sort_unstable();
            bytes.sort_unstable();
            prop_assert_eq!(bytes, want);
        }
    }
}
