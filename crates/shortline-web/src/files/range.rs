//! The `Range` field (RFC 9110 14.2).
//!
//! A field is ignored, as the RFC allows, if it cannot be parsed, names another unit, asks for more
//! than [`RANGES_MAX`] ranges, or asks for more bytes than the file has. Then the whole file is
//! sent. Ranges that overlap or touch are joined and sent in ascending order. Others are sent in
//! the order asked for. Every range of an empty file is ignored, since no `Content-Range` could
//! describe it.

/// A field with more ranges than this is ignored (RFC 9110 17.15).
pub const RANGES_MAX: usize = 16;

/// A piece of a file: `first..=last`, both inside the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    /// First byte.
    pub first: u64,
    /// Last byte, included.
    pub last: u64,
}

/// What a `Range` field means for a file of a certain length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// Send all of it: 200.
    Whole,
    /// Send one piece: 206.
    Single(Piece),
    /// Send several pieces: 206, multipart.
    Several(Vec<Piece>),
    /// No range lies in the file: 416.
    Unsatisfiable,
}

impl Piece {
    /// Length in bytes; never 0.
    #[allow(clippy::len_without_is_empty, reason = "a piece is never empty")]
    pub fn len(self) -> u64 {
        self.last - self.first + 1
    }
}

/// Reads a `Range` field for a file of `file_bytes`.
pub fn parse_range(value: &[u8], file_bytes: u64) -> Ranges {
    let Some(pieces) = parse_pieces(value, file_bytes) else {
        return Ranges::Whole;
    };
    if file_bytes == 0 {
        return Ranges::Whole;
    }
    let asked: u64 = pieces
        .iter()
        .fold(0, |sum, piece| sum.saturating_add(piece.len()));
    if pieces.len() > 1 && asked > file_bytes {
        return Ranges::Whole;
    }
    let pieces = joined(pieces);
    match pieces[..] {
        [] => Ranges::Unsatisfiable,
        [piece] => Ranges::Single(piece),
        _ => Ranges::Several(pieces),
    }
}

/// The pieces that lie in the file. `None` if the field is to be ignored.
fn parse_pieces(value: &[u8], file_bytes: u64) -> Option<Vec<Piece>> {
    let (unit, set) = value.split_at_checked(6)?;
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return None;
    }
    let mut pieces = Vec::new();
    let mut ranges = 0;
    for spec in set.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
        // Empty list members are allowed and mean nothing (RFC 9110 5.6.1.2).
        if spec.is_empty() {
            continue;
        }
        ranges += 1;
        if ranges > RANGES_MAX {
            return None;
        }
        pieces.extend(parse_spec(spec, file_bytes)?);
    }
    (ranges > 0).then_some(pieces)
}

/// Parses one range. `None`: malformed. `Some(None)`: outside of the file.
fn parse_spec(spec: &[u8], file_bytes: u64) -> Option<Option<Piece>> {
    let dash = spec.iter().position(|byte| *byte == b'-')?;
    let (first, last) = (&spec[..dash], &spec[dash + 1..]);
    if first.is_empty() {
        let suffix = parse_position(last)?.min(file_bytes);
        return Some((suffix > 0).then(|| Piece {
            first: file_bytes - suffix,
            last: file_bytes - 1,
        }));
    }
    let first = parse_position(first)?;
    let last = if last.is_empty() {
        u64::MAX
    } else {
        parse_position(last)?
    };
    if last < first {
        return None;
    }
    Some((first < file_bytes).then(|| Piece {
        first,
        last: last.min(file_bytes - 1),
    }))
}

/// A number of any length. One beyond u64 lies beyond every file, and saturates.
fn parse_position(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |sum: u64, digit: &u8| {
        sum.saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    };
    Some(digits.iter().fold(0, add))
}

/// Joins pieces that overlap or touch. If none do, the order stays.
fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut ascending = pieces.clone();
    ascending.sort_unstable();
    let mut merged: Vec<Piece> = Vec::with_capacity(ascending.len());
    for piece in ascending {
        match merged.last_mut() {
            Some(before) if piece.first <= before.last.saturating_add(1) => {
                before.last = before.last.max(piece.last);
            }
            _ => merged.push(piece),
        }
    }
    if merged.len() == pieces.len() {
        pieces
    } else {
        merged
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn single(first: u64, last: u64) -> Ranges {
        Ranges::Single(Piece { first, last })
    }

    fn several(pieces: &[(u64, u64)]) -> Ranges {
        Ranges::Several(
            pieces
                .iter()
                .map(|&(first, last)| Piece { first, last })
                .collect(),
        )
    }

    #[test]
    fn one_range() {
        assert_eq!(parse_range(b"bytes=0-0", 100), single(0, 0));
        assert_eq!(parse_range(b"bytes=10-", 100), single(10, 99));
        assert_eq!(parse_range(b"Bytes=10-1000", 100), single(10, 99));
        assert_eq!(parse_range(b"bytes= , 5-6 ,", 100), single(5, 6));
        assert_eq!(
            parse_range(b"bytes=0-99999999999999999999999", 100),
            single(0, 99)
        );
    }

    #[test]
    fn suffixes() {
        assert_eq!(parse_range(b"bytes=-10", 100), single(90, 99));
        assert_eq!(parse_range(b"bytes=-1000", 100), single(0, 99));
        assert_eq!(parse_range(b"bytes=-0", 100), Ranges::Unsatisfiable);
    }

    #[test]
    fn beyond_the_end_is_unsatisfiable_unless_another_range_is_not() {
        assert_eq!(parse_range(b"bytes=100-", 100), Ranges::Unsatisfiable);
        assert_eq!(
            parse_range(b"bytes=100-,200-300", 100),
            Ranges::Unsatisfiable
        );
        assert_eq!(parse_range(b"bytes=100-,4-5", 100), single(4, 5));
        assert_eq!(
            parse_range(b"bytes=99999999999999999999999-", 100),
            Ranges::Unsatisfiable
        );
    }

    #[test]
    fn an_empty_file_is_sent_whole() {
        assert_eq!(parse_range(b"bytes=0-", 0), Ranges::Whole);
        assert_eq!(parse_range(b"bytes=-5", 0), Ranges::Whole);
    }

    #[test]
    fn what_cannot_be_parsed_is_ignored() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=5",
            "bytes=6-5",
            "bytes=a-b",
            "lines=0-1",
            "bytes=0-1,x",
            "bytes =0-1",
            "bytes=+1-2",
            "bytes=1-2-3",
        ] {
            assert_eq!(parse_range(value.as_bytes(), 100), Ranges::Whole, "{value}");
        }
    }

    #[test]
    fn several_keep_their_order_unless_they_meet() {
        assert_eq!(
            parse_range(b"bytes=50-59,0-9", 100),
            several(&[(50, 59), (0, 9)])
        );
        assert_eq!(
            parse_range(b"bytes=50-59,0-9,5-20", 100),
            several(&[(0, 20), (50, 59)])
        );
        assert_eq!(parse_range(b"bytes=0-9,10-19", 100), single(0, 19));
        assert_eq!(parse_range(b"bytes=0-9,0-9", 100), single(0, 9));
    }

    #[test]
    fn silly_sets_get_the_whole() {
        let many: Vec<_> = (0..=RANGES_MAX)
            .map(|at| format!("{0}-{0}", at * 3))
            .collect();
        assert_eq!(
            parse_range(format!("bytes={}", many.join(",")).as_bytes(), 100),
            Ranges::Whole
        );
        let most = format!("bytes={}", many[1..].join(","));
        assert!(matches!(
            parse_range(most.as_bytes(), 100),
            Ranges::Several(_)
        ));
        assert_eq!(parse_range(b"bytes=0-,1-,2-,3-", 100), Ranges::Whole);
    }

    proptest! {
        #[test]
        fn pieces_lie_in_the_file_and_apart(
            specs in "bytes=[0-9]{0,3}-[0-9]{0,3}(,[0-9]{0,2}-[0-9]{0,2}){0,5}",
            file_bytes in 0u64..200,
        ) {
            let mut pieces = match parse_range(specs.as_bytes(), file_bytes) {
                Ranges::Single(piece) => vec![piece],
                Ranges::Several(pieces) => { prop_assert!(pieces.len() > 1); pieces }
                Ranges::Whole | Ranges::Unsatisfiable => vec![],
            };
            pieces.sort();
            for piece in &pieces {
                prop_assert!(piece.first <= piece.last && piece.last < file_bytes);
            }
            for pair in pieces.windows(2) {
                prop_assert!(pair[0].last + 1 < pair[1].first);
            }
        }

        #[test]
        fn any_bytes_are_judged(value in any::<Vec<u8>>(), file_bytes in any::<u64>()) {
            let mut field = b"bytes=".to_vec();
            field.extend(value);
            if let Ranges::Single(piece) = parse_range(&field, file_bytes) {
                prop_assert!(piece.len() <= file_bytes);
            }
        }
    }
}
