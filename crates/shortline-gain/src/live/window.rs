//! The busiest minute: the window of the logs with most bytes of the link.

use std::collections::VecDeque;
use std::time::Duration;

use shortline_load::trace::Request;

use super::site::MadeUp;
use super::{GRACE, REQUESTS_MAX};
use crate::GainError;
use crate::past::Past;

const NS_PER_S: u64 = 1_000_000_000;

/// What visitors asked for in it.
pub(super) struct Window {
    pub(super) from_unix_s: u32,
    length_s: u64,
    /// Nanoseconds after its beginning, and the body's bytes, in the order of time.
    pub(super) asked: Vec<(u64, u64)>,
    /// How many there were in all.
    pub(super) requests: u64,
}

impl Past {
    /// The `length_s` seconds with most bytes.
    pub(super) fn window(&self, length_s: u64) -> Result<Window, GainError> {
        let begin_s = self.busiest_second(length_s)?;
        let mut window = Window {
            from_unix_s: u32::try_from(begin_s).unwrap_or(u32::MAX),
            length_s,
            asked: Vec::new(),
            requests: 0,
        };
        let (from_ns, to_ns) = (begin_s * NS_PER_S, (begin_s + length_s) * NS_PER_S);
        for sent in self.kept.in_order() {
            let sent = sent.map_err(GainError::kept)?;
            if sent.unix_ns >= to_ns {
                break;
            }
            if sent.unix_ns >= from_ns {
                window.requests += 1;
                if window.asked.len() < REQUESTS_MAX {
                    window.asked.push((sent.unix_ns - from_ns, sent.bytes));
                }
            }
        }
        Ok(window)
    }

    /// The second, since 1970, at which the busiest window begins.
    fn busiest_second(&self, length_s: u64) -> Result<u64, GainError> {
        let mut recent: VecDeque<(u64, u64)> = VecDeque::new();
        let (mut sum, mut most, mut begin_s) = (0u64, 0, u64::from(self.from_unix_s));
        for sent in self.kept.in_order() {
            let sent = sent.map_err(GainError::kept)?;
            let second = sent.unix_ns / NS_PER_S;
            let bytes = self.wire.wire_bytes(sent.bytes);
            while let Some((at, gone)) = recent.front().copied()
                && at + length_s <= second
            {
                sum -= gone;
                recent.pop_front();
            }
            match recent.back_mut() {
                Some((at, of_second)) if *at == second => *of_second += bytes,
                _ => recent.push_back((second, bytes)),
            }
            sum += bytes;
            if sum > most {
                most = sum;
                begin_s = recent.front().map_or(second, |(at, _)| *at);
            }
        }
        Ok(begin_s)
    }
}

impl Window {
    /// From its beginning to its end.
    pub(super) fn length(&self) -> Duration {
        Duration::from_secs(self.length_s)
    }

    /// What has not ended by then is left out.
    pub(super) fn deadline(&self) -> Duration {
        2 * self.length() + GRACE
    }

    /// How much of it is replayed.
    pub(super) fn replayed(&self) -> Duration {
        match self.asked.last() {
            Some((last_ns, _)) if self.is_cut() => Duration::from_nanos(*last_ns),
            _ => self.length(),
        }
    }

    /// Whether there were more requests than are replayed.
    pub(super) fn is_cut(&self) -> bool {
        self.requests > self.asked.len() as u64
    }

    /// The sizes of all bodies.
    pub(super) fn sizes(&self) -> impl Iterator<Item = u64> {
        self.asked.iter().map(|(_, bytes)| *bytes)
    }

    /// The requests of the replay.
    pub(super) fn requests(&self, site: &MadeUp) -> Vec<Request> {
        let request = |(at_ns, bytes): &(u64, u64)| Request {
            at_ns: *at_ns,
            path: site.path(*bytes),
            bytes: *bytes,
        };
        self.asked.iter().map(request).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use shortline_load::trace::LogInput;
    use shortline_sim::wire::WireModel;

    use super::*;

    fn window(lines: &[(u32, u64)], length_s: u64) -> Window {
        let mut log = tempfile::NamedTempFile::new().unwrap();
        for (second, bytes) in lines {
            let (minute, second) = (second / 60, second % 60);
            writeln!(
                log,
                "h - - [21/Nov/2026:10:{minute:02}:{second:02} +0000] \"GET /a HTTP/1.1\" 200 {bytes}"
            )
            .unwrap();
        }
        let past = Past::read(
            vec![LogInput::open(log.path()).unwrap()],
            WireModel::default(),
            |_| {},
        )
        .unwrap();
        past.window(length_s).unwrap()
    }

    #[test]
    fn the_busiest_window_has_the_most_bytes() {
        let lines = [
            (0, 50_000),
            (100, 30_000),
            (109, 30_000),
            (110, 30_000),
            (300, 1),
        ];
        let window = window(&lines, 10);
        assert_eq!(window.from_unix_s % 3_600, 100);
        assert_eq!(window.asked, [(0, 30_000), (9_000_000_000, 30_000)]);
        assert!(!window.is_cut());
        assert_eq!(window.replayed(), Duration::from_secs(10));
    }

    #[test]
    fn a_busier_one_is_cut() {
        let lines = vec![(7, 10); REQUESTS_MAX + 3];
        let window = window(&lines, 60);
        assert_eq!(window.asked.len(), REQUESTS_MAX);
        assert!(window.is_cut());
        assert!(window.replayed() < Duration::from_secs(1));
    }
}
