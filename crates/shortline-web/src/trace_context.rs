//! The field `traceparent` (W3C Trace Context, level 1, 3.2):
//!
//! ```text
//! 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
//! version, trace, parent, flags: lower-case hexadecimal
//! ```
//!
//! A trace or parent of zeros is invalid, and so is version `ff`. Of a later version only these four fields are read, and more
//! may follow them behind a dash (4.3). `tracestate` is for others: it is passed on whole, as long as `traceparent` is valid.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The field that names the trace.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// What the parts of the trace have added.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The bytes of the four fields and the dashes between them.
const BYTES: usize = 55;
const DASHES: [usize; 3] = [2, 35, 52];

/// The flag `sampled` (3.2.2.5.1).
const SAMPLED: u8 = 1;

/// A valid `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    trace: u128,
    parent: u64,
    flags: u8,
}

impl TraceParent {
    /// The one that a request has. `None`: it has none, several, or one that is not valid.
    pub fn sent(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(&TRACEPARENT).iter();
        let value = values.next()?;
        match values.next() {
            None => Self::read(value.as_bytes()),
            Some(_) => None,
        }
    }

    /// Reads the value of the field.
    pub fn read(value: &[u8]) -> Option<Self> {
        let fields = value.get(..BYTES)?;
        let version = hex(&fields[..2])?;
        let ends = match value.get(BYTES) {
            None => true,
            Some(next) => version > 0 && *next == b'-',
        };
        let parted = DASHES.iter().all(|at| fields[*at] == b'-');
        let read = Self {
            trace: hex(&fields[3..35])?,
            parent: hex(&fields[36..52])? as u64,
            flags: hex(&fields[53..])? as u8,
        };
        let sound = parted && ends && version < 0xff && read.trace != 0 && read.parent != 0;
        sound.then_some(read)
    }

    /// The beginning of a trace that nobody records.
    pub fn begin(random: u128) -> Self {
        Self {
            trace: random | 1,
            // Any other number would do: it is unique together with the trace.
            parent: (random >> 64) as u64 | 1,
            flags: 0,
        }
    }

    /// The same trace, of which `span` is the last part.
    pub fn child(&self, span: u64, is_sampled: bool) -> Self {
        Self {
            trace: self.trace,
            parent: span,
            flags: u8::from(is_sampled),
        }
    }

    /// The trace's number.
    pub fn trace(&self) -> u128 {
        self.trace
    }

    /// The number of the part that the request comes from.
    pub fn parent(&self) -> u64 {
        self.parent
    }

    /// Whether who sent it may have recorded it.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// As the value of the field.
    pub fn field(&self) -> HeaderValue {
        let Self {
            trace,
            parent,
            flags,
        } = self;
        let text = format!("00-{trace:032x}-{parent:016x}-{flags:02x}");
        HeaderValue::try_from(text).expect("invariant: digits are visible ASCII")
    }

    /// The trace's id, as 32 digits.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace)
    }
}

/// Which traces are recorded: this part of all of them, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling(pub u32);

impl Sampling {
    /// Whether this trace is. The same trace is everywhere.
    pub fn takes(self, trace: u128) -> bool {
        // Its last 64 bits are random (Trace Context, level 2, 3.2.2.3.1).
        let place = (u128::from(trace as u64) * 1_000_000) >> 64;
        place < u128::from(self.0)
    }
}

/// A number of lower-case hexadecimal digits, at most 32.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_example_of_the_specification_is_read() {
        let read = TraceParent::read(VALID.as_bytes()).unwrap();
        assert_eq!(read.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(read.field(), VALID);
    }

    #[test]
    fn what_the_specification_refuses_is_refused() {
        for invalid in [
            "",
            "00",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
            " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceParent::read(invalid.as_bytes()), None, "{invalid}");
        }
    }

    #[test]
    fn a_later_version_may_have_more() {
        for later in [
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-follows",
        ] {
            assert!(TraceParent::read(later.as_bytes()).is_some(), "{later}");
        }
    }

    #[test]
    fn all_none_or_a_part_is_recorded() {
        let traces = || (0..1000u64).map(|at| u128::from(at.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let taken = |millionths| {
            traces()
                .filter(|trace| Sampling(millionths).takes(*trace))
                .count()
        };
        assert_eq!((taken(0), taken(1_000_000)), (0, 1000));
        assert!((230..270).contains(&taken(250_000)), "{}", taken(250_000));
        let child = TraceParent::read(VALID.as_bytes()).unwrap().child(7, true);
        assert_eq!(
            child.field(),
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000007-01"
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_valid(random in any::<u128>()) {
            let begun = TraceParent::begin(random);
            prop_assert_eq!(TraceParent::read(begun.field().as_bytes()), Some(begun));
        }

        #[test]
        fn nothing_panics(value in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = TraceParent::read(&value).is_some();
        }
    }
}
