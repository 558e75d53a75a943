//! The fields of the heads before on a connection. Most come again, byte by byte and in their place: such a field is not parsed again,
//! which takes some 450 instructions, but compared.
//!
//! Nothing is remembered of a connection's first head, since many have no second one. A field whose value has changed is
//! expected to change again, such as a date or a validator, and is not remembered any more.

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};

use super::head::{HeadError, Place};

/// So many fields are remembered, of so many bytes at most, so that a connection holds 4 KiB at most for it.
const FIELDS_MAX: usize = 16;
const FIELD_BYTES_MAX: usize = 256;

/// What is remembered of a connection's heads.
#[derive(Default)]
pub struct Memory {
    heads: u64,
    fields: Vec<Known>,
}

/// What is known of a place in the head.
enum Known {
    /// This was there last.
    Field {
        /// As it was written.
        text: Bytes,
        name: HeaderName,
        value: HeaderValue,
    },
    /// The field of this name, with changing values.
    Changing(HeaderName),
}

impl Memory {
    /// A head begins.
    pub fn begins(&mut self) {
        self.heads = self.heads.saturating_add(1);
    }

    /// The field in that place of the head, the first in place 0.
    ///
    /// # Errors
    /// [`HeadError::Field`]
    pub fn field(
        &mut self,
        number: usize,
        text: &Bytes,
        place: &Place,
    ) -> Result<(HeaderName, HeaderValue), HeadError> {
        let line = place.line(text);
        if let Some(Known::Field { text, name, value }) = self.fields.get(number)
            && text == line
        {
            return Ok((name.clone(), value.clone()));
        }
        let (name, value) = place.of(text)?;
        if self.heads > 1 && number < FIELDS_MAX {
            self.learn(number, line, &name, &value);
        }
        Ok((name, value))
    }

    fn learn(&mut self, number: usize, line: &[u8], name: &HeaderName, value: &HeaderValue) {
        let changes = match self.fields.get(number) {
            None => false,
            Some(Known::Field { name: last, .. }) => last == name,
            Some(Known::Changing(last)) if last == name => return,
            Some(Known::Changing(_)) => false,
        };
        let known = match HeaderValue::from_bytes(value.as_bytes()) {
            // A copy, so that it does not hold the whole head.
            Ok(value) if !changes && line.len() <= FIELD_BYTES_MAX => Known::Field {
                text: Bytes::copy_from_slice(line),
                name: name.clone(),
                value,
            },
            _ => Known::Changing(name.clone()),
        };
        // Places come in their order: none is left out.
        if number == self.fields.len() {
            self.fields.push(known);
        } else {
            self.fields[number] = known;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::super::head::places;
    use super::*;

    /// The fields of a head of these lines.
    fn read(memory: &mut Memory, lines: &[String]) -> Vec<(HeaderName, HeaderValue)> {
        let text = Bytes::from(lines.concat() + "\r\n");
        let mut space = [httparse::EMPTY_HEADER; 40];
        let parsed = httparse::parse_headers(&text, &mut space).unwrap();
        let places = places(&text, parsed.unwrap().1);
        memory.begins();
        let fields = places.iter().enumerate();
        fields
            .map(|(number, place)| memory.field(number, &text, place).unwrap())
            .collect()
    }

    fn is_known(memory: &Memory, number: usize) -> bool {
        matches!(memory.fields.get(number), Some(Known::Field { .. }))
    }

    #[test]
    fn what_stays_is_remembered_and_what_changes_is_not() {
        let mut memory = Memory::default();
        let head = |date: &str| ["Host: a\r\n".to_owned(), format!("Date: {date}\r\n")];
        read(&mut memory, &head("1"));
        assert!(memory.fields.is_empty(), "of the first head");
        read(&mut memory, &head("1"));
        assert!(is_known(&memory, 0) && is_known(&memory, 1));
        for date in ["2", "2", "3"] {
            let fields = read(&mut memory, &head(date));
            assert_eq!(fields[1].1, date);
            assert!(is_known(&memory, 0) && !is_known(&memory, 1));
        }
        // Another field in that place.
        read(
            &mut memory,
            &["Host: a\r\n".to_owned(), "X: y\r\n".to_owned()],
        );
        assert!(is_known(&memory, 1));
    }

    #[test]
    fn it_is_bounded() {
        let mut memory = Memory::default();
        let lines: Vec<String> = (0..40).map(|n| format!("a{n}: b\r\n")).collect();
        for _ in 0..3 {
            assert_eq!(read(&mut memory, &lines).len(), 40);
        }
        assert_eq!(memory.fields.len(), FIELDS_MAX);
        let long = [format!("a: {}\r\n", "b".repeat(FIELD_BYTES_MAX))];
        read(&mut memory, &long);
        assert!(!is_known(&memory, 0));
    }

    proptest! {
        /// With a memory of other heads and without, a head says the same.
        #[test]
        fn it_changes_nothing(heads in proptest::collection::vec(
            proptest::collection::vec("(a|b|A|X-Y): ?(c|d|[ -~]{0,3})\r\n", 0..6), 1..8,
        )) {
            let mut memory = Memory::default();
            for head in &heads {
                prop_assert_eq!(read(&mut memory, head), read(&mut Memory::default(), head));
            }
        }
    }
}
