//! Header blocks of requests, read (RFC 7541 3.2, 6).
//!
//! A block is decoded whole, also where its request is refused: the table must be the client's.

use std::collections::VecDeque;

use super::field::{FIXED, Field, Name};
use super::{ENTRY_BYTES, NoBlock, TABLE_BYTES, huffman, integer};

/// What the client's blocks refer to.
#[derive(Debug)]
pub struct Decoder {
    /// The newest first.
    entries: VecDeque<Entry>,
    bytes: usize,
    bytes_max: usize,
}

/// A field, and the bytes of its name and value.
#[derive(Debug)]
struct Entry {
    field: Field,
    bytes: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            bytes_max: TABLE_BYTES,
        }
    }
}

impl Decoder {
    /// Gives `each` the fields of a block, and the size of each as a header list counts it (RFC 9113 6.5.2).
    ///
    /// # Errors
    /// The bytes are not a header block. The connection cannot go on (RFC 7541 4).
    pub fn decode(
        &mut self,
        mut block: &[u8],
        mut each: impl FnMut(&Field, usize),
    ) -> Result<(), NoBlock> {
        let mut text = Vec::new();
        let mut may_resize = true;
        while let Some((first, rest)) = block.split_first() {
            block = rest;
            match first.leading_zeros() {
                0 => {
                    let index = integer::read(*first, 7, &mut block)?;
                    let (field, bytes) = self.entry(index)?;
                    each(field, bytes + ENTRY_BYTES);
                }
                1 => {
                    let entry = self.literal(*first, 6, &mut block, &mut text)?;
                    each(&entry.field, entry.bytes + ENTRY_BYTES);
                    self.add(entry);
                }
                2 => {
                    if !may_resize {
                        return Err(NoBlock);
                    }
                    self.resize(integer::read(*first, 5, &mut block)?)?;
                    continue;
                }
                _ => {
                    let entry = self.literal(*first, 4, &mut block, &mut text)?;
                    each(&entry.field, entry.bytes + ENTRY_BYTES);
                }
            }
            may_resize = false;
        }
        Ok(())
    }

    fn entry(&self, index: usize) -> Result<(&Field, usize), NoBlock> {
        let index = index.checked_sub(1).ok_or(NoBlock)?;
        if let Some(fixed) = FIXED.get(index) {
            return Ok((&fixed.field, fixed.bytes));
        }
        let entry = self.entries.get(index - FIXED.len()).ok_or(NoBlock)?;
        Ok((&entry.field, entry.bytes))
    }

    /// A field of which at least the value is spelt out.
    fn literal(
        &self,
        first: u8,
        prefix_bits: u32,
        rest: &mut &[u8],
        text: &mut Vec<u8>,
    ) -> Result<Entry, NoBlock> {
        let name = match integer::read(first, prefix_bits, rest)? {
            0 => Name::new(string(rest, text)?),
            index => self.entry(index)?.0.name(),
        };
        let value = string(rest, text)?;
        let bytes = name.len() + value.len();
        let field = Field::new(name, value);
        Ok(Entry { field, bytes })
    }

    fn add(&mut self, entry: Entry) {
        let bytes = entry.bytes + ENTRY_BYTES;
        self.evict(self.bytes_max.saturating_sub(bytes));
        if bytes <= self.bytes_max {
            self.bytes += bytes;
            self.entries.push_front(entry);
        }
    }

    fn resize(&mut self, bytes_max: usize) -> Result<(), NoBlock> {
        if bytes_max > TABLE_BYTES {
            return Err(NoBlock);
        }
        self.bytes_max = bytes_max;
        self.evict(bytes_max);
        Ok(())
    }

    /// Drops the oldest until the others have at most so many bytes.
    fn evict(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max {
            let oldest = self.entries.pop_back();
            self.bytes -= oldest.map_or(self.bytes, |entry| entry.bytes + ENTRY_BYTES);
        }
    }
}

/// The next string, as it is in the block or decoded into `text`.
fn string<'t, 'b: 't>(rest: &mut &'b [u8], text: &'t mut Vec<u8>) -> Result<&'t [u8], NoBlock> {
    let (first, left) = rest.split_first().ok_or(NoBlock)?;
    *rest = left;
    let length = integer::read(*first, 7, rest)?;
    let (string, left) = rest.split_at_checked(length).ok_or(NoBlock)?;
    *rest = left;
    if first & 0x80 == 0 {
        return Ok(string);
    }
    text.clear();
    huffman::decode(string, text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::hpack::Encoder;
    use http::header::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    fn text(field: &Field) -> String {
        match field {
            Field::Method(method) => format!(":method: {method}"),
            Field::Scheme(scheme) => format!(":scheme: {scheme}"),
            Field::Authority(authority) => format!(":authority: {authority}"),
            Field::Path(path) => format!(":path: {path}"),
            Field::Regular(name, value) => format!("{name}: {}", value.to_str().unwrap()),
            Field::Malformed(name) => format!("malformed {name:?}"),
        }
    }

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<String>, NoBlock> {
        let mut fields = Vec::new();
        decoder.decode(block, |field, _| fields.push(text(field)))?;
        Ok(fields)
    }

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte =
            |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    /// RFC 7541 C.3 and C.4: the same requests without and with the Huffman code.
    #[test]
    fn the_examples_of_the_rfc() {
        let plain = [
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ];
        let coded = [
            "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
            "8286 84be 5886 a8eb 1064 9cbf",
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        ];
        for blocks in [plain, coded] {
            let mut decoder = Decoder::default();
            let fields =
                blocks.map(|block| decode(&mut decoder, &bytes(block)).unwrap().join("\n"));
            assert_eq!(
                fields,
                [
                    ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com",
                    ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n\
                     cache-control: no-cache",
                    ":method: GET\n:scheme: https\n:path: /index.html\n\
                     :authority: www.example.com\ncustom-key: custom-value",
                ]
            );
            assert_eq!((decoder.entries.len(), decoder.bytes), (3, 164));
        }
    }

    #[test]
    fn what_is_no_block_is_refused() {
        let refused = [
            &b"\x80"[..],                // index 0
            b"\xbe",                     // an entry that is not there
            b"\x41\x03ab",               // a string longer than the block
            b"\x00",                     // a name that is not there
            b"\x82\x20",                 // a size behind a field
            b"\x3f\xe2\x1f",             // a size of 4097
            b"\xff\xff\xff\xff\xff\x7f", // an index beyond all
        ];
        for block in refused {
            assert_eq!(
                decode(&mut Decoder::default(), block),
                Err(NoBlock),
                "{block:x?}"
            );
        }
    }

    #[test]
    fn a_smaller_table_forgets_and_a_large_field_empties_it() {
        let mut decoder = Decoder::default();
        decode(&mut decoder, b"\x41\x01a\x41\x01b").unwrap();
        assert_eq!(decode(&mut decoder, b"\xbf").unwrap(), [":authority: a"]);
        // Room for one of two; then none for a field of 5000 bytes.
        decode(&mut decoder, b"\x3f\x1f").unwrap();
        assert_eq!(decode(&mut decoder, b"\xbe").unwrap(), [":authority: b"]);
        assert_eq!(decode(&mut decoder, b"\xbf"), Err(NoBlock));
        let large = [&b"\x41\x7f\x89\x26"[..], &[b'a'; 5000]].concat();
        decode(&mut decoder, &large).unwrap();
        assert_eq!((decoder.entries.len(), decoder.bytes), (0, 0));
    }

    #[test]
    fn a_malformed_field_is_told_and_may_be_named() {
        let mut decoder = Decoder::default();
        let block = b"\x40\x02:a\x01b\x7e\x01c\x40\x01A\x01b\x43\x00";
        let told = decode(&mut decoder, block).unwrap();
        assert!(
            told.iter().all(|field| field.starts_with("malformed")),
            "{told:?}"
        );
        assert_eq!(told.len(), 4);
    }

    proptest! {
        /// Few names and values, so that many come again, in the same memory or not, and a table that is often full.
        #[test]
        fn what_we_write_is_read(
            blocks in proptest::collection::vec(
                (proptest::collection::vec((0usize..40, 0usize..30, any::<bool>()), 0..12), 0usize..5000), 0..20),
        ) {
            let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
            let same_memory: Vec<_> = (0..30).map(|value| HeaderValue::try_from("v".repeat(value * value)).unwrap()).collect();
            for (fields, allowed) in blocks {
                if allowed % 3 == 0 {
                    encoder.allow(allowed);
                }
                let mut block = Vec::new();
                encoder.begin(&mut block);
                encoder.status(http::StatusCode::IM_A_TEAPOT, &mut block);
                let mut expected = vec!["malformed Other(b\":status\")".to_owned()];
                for (name, value, is_same_memory) in fields {
                    let name = match name {
                        0..10 => ["date", "etag", "server", "vary", "age", "link", "via", "allow", "location", "expires"][name].to_owned(),
                        name => format!("x-{name}"),
                    };
                    let header = HeaderName::try_from(&name).unwrap();
                    let text = match is_same_memory {
                        true => same_memory[value].clone(),
                        false => HeaderValue::from_bytes(same_memory[value].as_bytes()).unwrap(),
                    };
                    encoder.field(&header, &text, &mut block);
                    expected.push(format!("{name}: {}", text.to_str().unwrap()));
                }
                prop_assert_eq!(decode(&mut decoder, &block).unwrap(), expected);
            }
        }

        #[test]
        fn no_bytes_are_too_odd(blocks: Vec<Vec<u8>>) {
            let mut decoder = Decoder::default();
            for block in blocks {
                if decode_any(&mut decoder, &block).is_err() {
                    break;
                }
                prop_assert!(decoder.bytes <= decoder.bytes_max);
            }
        }
    }

    fn decode_any(decoder: &mut Decoder, block: &[u8]) -> Result<(), NoBlock> {
        decoder.decode(block, |_, bytes| assert!(bytes >= ENTRY_BYTES))
    }
}
