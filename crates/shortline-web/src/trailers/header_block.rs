//! Finds out whether a header block of HTTP/2 (HPACK, RFC 7541) has a pseudo-header field, and
//! nothing else. Blocks are read byte by byte. h2 decodes what they say.
//!
//! A field may give its name as an index into the table that both ends keep (2.3). So the table is
//! kept here too: for each entry, whether its name is a pseudo-header field's, and its size, which
//! decides when entries leave (4.1). It has no more than h2 allows: 4096 bytes (4.2), so at most
//! 128 entries. A Huffman-coded string (5.2) is measured where its size counts. The code is
//! canonical, so the lengths of its words are all one needs to know (Appendix B).
//!
//! If the bytes are not a header block, this module says nothing. h2 finds out and ends the
//! connection.

use std::collections::VecDeque;

/// The default size of a table (RFC 9113 6.5.2). h2 never sets another one.
const TABLE_BYTES_MAX: u64 = 4096;
/// What an entry counts in addition to its name and value (4.1).
const ENTRY_BYTES: u64 = 32;
/// The static table (Appendix A): its first 14 names are pseudo-header fields. Then the lengths of
/// all names.
const STATIC_PSEUDO: u64 = 14;
const STATIC_NAME_BYTES: [u8; 61] = [
    10, 7, 7, 5, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 14, 15, 15, 13, 6, 27, 3, 5, 13, 13, 19, 16, 16, 14,
    16, 13, 12, 6, 4, 4, 6, 7, 4, 4, 8, 17, 13, 8, 19, 13, 4, 8, 12, 18, 19, 5, 7, 7, 11, 6, 10,
    25, 17, 10, 4, 3, 16,
];
/// The number of words of each length in the Huffman code, from 5 bits on (Appendix B).
const CODE_WORDS: [u32; 26] = [
    10, 26, 32, 6, 0, 5, 3, 2, 6, 2, 3, 0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19, 29, 0, 4,
];
const CODE_BITS_MIN: u32 = 5;
/// The Huffman word for a colon, and its length.
const COLON: (u32, u32) = (0x5c, 7);
/// The most bits of an integer in a header block. h2 accepts none as large (5.1).
const INTEGER_BITS_MAX: u32 = 28;

/// The header blocks of a connection, one after the other.
#[derive(Default)]
pub struct HeaderBlocks {
    table: Table,
    step: Step,
    field: Field,
    /// The current block has a pseudo-header field.
    has_pseudo: bool,
}

/// What the next byte is.
#[derive(Default)]
enum Step {
    /// The first byte of a field.
    #[default]
    Field,
    /// More of the integer that a field begins with.
    Index(Kind, Integer),
    /// The first byte of a string's length.
    Length(Part),
    MoreLength(Part, bool, Integer),
    Text(Part, Text),
    /// Not part of a header block. The connection ends.
    Lost,
}

/// What a field does (6).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It is an entry of the table.
    Indexed,
    /// It is added to the table.
    Added,
    /// It is not added to the table.
    Literal,
    /// It is not a field, but the table's new size.
    Resize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Name,
    Value,
}

/// The current field.
#[derive(Default)]
struct Field {
    name: Name,
    is_added: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Name {
    is_pseudo: bool,
    bytes: u64,
}

#[derive(Clone, Copy)]
struct Integer {
    value: u64,
    bits: u32,
}

/// The state of a string that is being read.
#[derive(Default)]
struct Text {
    left_bytes: u64,
    is_coded: bool,
    begins_with_colon: bool,
    /// The bytes it stands for so far, and the bits of the next one.
    bytes: u64,
    word: u32,
    word_bits: u32,
}

/// The table of both ends, the newest entry first (2.3.2).
struct Table {
    entries: VecDeque<(Name, u64)>,
    bytes: u64,
    bytes_max: u64,
}

impl HeaderBlocks {
    /// Reads on in a block.
    pub fn read(&mut self, mut bytes: &[u8]) {
        while let Some((first, rest)) = bytes.split_first() {
            let step = std::mem::take(&mut self.step);
            let next = match step {
                Step::Field => self.begin(*first),
                Step::Index(kind, integer) => match integer.with(*first) {
                    Some(Ok(value)) => self.go_on(kind, value),
                    Some(Err(integer)) => Some(Step::Index(kind, integer)),
                    None => None,
                },
                Step::Length(part) => {
                    let is_coded = first & 0x80 != 0;
                    match Integer::begin(*first, 7) {
                        Ok(length) => Some(self.text(part, is_coded, length)),
                        Err(integer) => Some(Step::MoreLength(part, is_coded, integer)),
                    }
                }
                Step::MoreLength(part, is_coded, integer) => match integer.with(*first) {
                    Some(Ok(length)) => Some(self.text(part, is_coded, length)),
                    Some(Err(integer)) => Some(Step::MoreLength(part, is_coded, integer)),
                    None => None,
                },
                Step::Text(part, mut text) => {
                    let taken = bytes.len().min(text.left_bytes as usize);
                    text.take(&bytes[..taken]);
                    self.step = self.after(part, text);
                    bytes = &bytes[taken..];
                    continue;
                }
                Step::Lost => None,
            };
            self.step = next.unwrap_or(Step::Lost);
            bytes = rest;
        }
    }

    /// Ends a block. Returns whether it had a pseudo-header field.
    pub fn end(&mut self) -> bool {
        if !matches!(self.step, Step::Field) {
            self.step = Step::Lost;
        }
        std::mem::take(&mut self.has_pseudo)
    }

    /// The first byte of a field.
    fn begin(&mut self, first: u8) -> Option<Step> {
        let (kind, prefix_bits) = match first {
            0x80.. => (Kind::Indexed, 7),
            0x40.. => (Kind::Added, 6),
            0x20.. => (Kind::Resize, 5),
            _ => (Kind::Literal, 4),
        };
        match Integer::begin(first, prefix_bits) {
            Ok(value) => self.go_on(kind, value),
            Err(integer) => Some(Step::Index(kind, integer)),
        }
    }

    /// Continues after the integer that a field begins with.
    fn go_on(&mut self, kind: Kind, value: u64) -> Option<Step> {
        self.field.is_added = kind == Kind::Added;
        match kind {
            Kind::Resize => {
                self.table.resize(value)?;
                Some(Step::Field)
            }
            Kind::Indexed => {
                self.has_pseudo |= self.table.name(value)?.is_pseudo;
                Some(Step::Field)
            }
            Kind::Added | Kind::Literal if value == 0 => Some(Step::Length(Part::Name)),
            Kind::Added | Kind::Literal => {
                self.field.name = self.table.name(value)?;
                Some(Step::Length(Part::Value))
            }
        }
    }

    fn text(&mut self, part: Part, is_coded: bool, length: u64) -> Step {
        let text = Text {
            left_bytes: length,
            // A value that is not added to the table is skipped.
            is_coded: is_coded && (part == Part::Name || self.field.is_added),
            ..Text::default()
        };
        self.after(part, text)
    }

    /// The step after a string, or after a piece of one.
    fn after(&mut self, part: Part, text: Text) -> Step {
        if text.left_bytes > 0 {
            return Step::Text(part, text);
        }
        if part == Part::Name {
            self.field.name = Name {
                is_pseudo: text.begins_with_colon,
                bytes: text.bytes,
            };
            return Step::Length(Part::Value);
        }
        self.has_pseudo |= self.field.name.is_pseudo;
        if self.field.is_added {
            self.table.add(self.field.name, text.bytes);
        }
        Step::Field
    }
}

impl Integer {
    /// An integer whose first byte has this many bits of it (5.1). It is complete, or goes on.
    fn begin(first: u8, prefix_bits: u32) -> Result<u64, Self> {
        let all = (1u64 << prefix_bits) - 1;
        let value = u64::from(first) & all;
        if value < all {
            Ok(value)
        } else {
            Err(Self { value, bits: 0 })
        }
    }

    /// The integer with another byte. `None`: it is too large.
    fn with(self, byte: u8) -> Option<Result<u64, Self>> {
        if self.bits > INTEGER_BITS_MAX {
            return None;
        }
        let value = self.value + (u64::from(byte & 0x7f) << self.bits);
        let goes_on = byte & 0x80 != 0;
        Some(if goes_on {
            Err(Self {
                value,
                bits: self.bits + 7,
            })
        } else {
            Ok(value)
        })
    }
}

impl Text {
    /// Reads on. `bytes` must be no more than are left.
    fn take(&mut self, bytes: &[u8]) {
        self.left_bytes -= bytes.len() as u64;
        if self.is_coded {
            for byte in bytes {
                self.decode(*byte);
            }
            return;
        }
        if self.bytes == 0 {
            self.begins_with_colon = bytes.first() == Some(&b':');
        }
        self.bytes += bytes.len() as u64;
    }

    /// Decodes words of a canonical code. Words of a length are consecutive. The first one follows
    /// the last word that is one bit shorter.
    fn decode(&mut self, byte: u8) {
        for at in (0..8).rev() {
            self.word = self.word << 1 | u32::from(byte >> at & 1);
            self.word_bits += 1;
            let Some(place) = self.word_bits.checked_sub(CODE_BITS_MIN) else {
                continue;
            };
            let (first, words) = FIRST_WORDS
                .get(place as usize)
                .copied()
                .unwrap_or((0, u32::MAX));
            if self.word.wrapping_sub(first) < words {
                let word = (self.word, self.word_bits);
                self.begins_with_colon |= self.bytes == 0 && word == COLON;
                self.bytes += 1;
                (self.word, self.word_bits) = (0, 0);
            }
        }
    }
}

/// The first word of each length from 5 bits on, and how many there are.
const FIRST_WORDS: [(u32, u32); 26] = {
    let mut firsts = [(0, 0); 26];
    let (mut at, mut next) = (0, 0);
    while at < firsts.len() {
        firsts[at] = (next, CODE_WORDS[at]);
        next = (next + CODE_WORDS[at]) << 1;
        at += 1;
    }
    firsts
};

impl Default for Table {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            bytes_max: TABLE_BYTES_MAX,
        }
    }
}

impl Table {
    /// The name at an index. The static table comes first (2.3.3).
    fn name(&self, index: u64) -> Option<Name> {
        let index = usize::try_from(index.checked_sub(1)?).ok()?;
        match STATIC_NAME_BYTES.get(index) {
            Some(bytes) => Some(Name {
                is_pseudo: (index as u64) < STATIC_PSEUDO,
                bytes: u64::from(*bytes),
            }),
            None => {
                let entry = self.entries.get(index - STATIC_NAME_BYTES.len());
                entry.map(|(name, _)| *name)
            }
        }
    }

    fn add(&mut self, name: Name, value_bytes: u64) {
        let bytes = name.bytes + value_bytes + ENTRY_BYTES;
        // An entry that does not fit empties the table (4.4).
        self.make_room(bytes);
        if bytes <= self.bytes_max {
            self.entries.push_front((name, bytes));
            self.bytes += bytes;
        }
    }

    fn resize(&mut self, bytes_max: u64) -> Option<()> {
        self.bytes_max = (bytes_max <= TABLE_BYTES_MAX).then_some(bytes_max)?;
        self.make_room(0);
        Some(())
    }

    fn make_room(&mut self, bytes: u64) {
        while self.bytes + bytes > self.bytes_max {
            let Some((_, gone)) = self.entries.pop_back() else {
                return;
            };
            self.bytes -= gone;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
        digits
            .chunks(2)
            .map(|pair| (pair[0] * 16 + pair[1]) as u8)
            .collect()
    }

    /// Reads a block byte by byte. Returns whether it has a pseudo-header field, and the table
    /// after it.
    fn read(blocks: &mut HeaderBlocks, hex: &str) -> (bool, usize, u64) {
        for byte in bytes(hex) {
            blocks.read(&[byte]);
        }
        let has_pseudo = blocks.end();
        assert!(matches!(blocks.step, Step::Field), "{hex}");
        (has_pseudo, blocks.table.entries.len(), blocks.table.bytes)
    }

    /// RFC 7541, C.3 and C.4: the same three requests without and with the Huffman code.
    #[test]
    fn requests_of_the_rfc_leave_its_tables() {
        let plain = [
            "828684410f7777772e6578616d706c652e636f6d",
            "828684be58086e6f2d6361636865",
            "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
        ];
        let coded = [
            "828684418cf1e3c2e5f23a6ba0ab90f4ff",
            "828684be5886a8eb10649cbf",
            "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
        ];
        for requests in [plain, coded] {
            let mut blocks = HeaderBlocks::default();
            let tables = requests.map(|request| read(&mut blocks, request));
            assert_eq!(tables, [(true, 1, 57), (true, 2, 110), (true, 3, 164)]);
        }
    }

    /// RFC 7541, C.6: responses, in a table of 256 bytes from which entries leave.
    #[test]
    fn entries_leave_the_table_as_in_the_rfc() {
        let mut blocks = HeaderBlocks::default();
        let resized = "3fe101";
        let first = "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff\
                     6e919d29ad171863c78f0b97c8e9ae82ae43d3";
        let told = read(&mut blocks, &format!("{resized}{first}"));
        assert_eq!(told, (true, 4, 222));
        assert_eq!(read(&mut blocks, "4883640effc1c0bf"), (true, 4, 222));
        let third = "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7\
                     821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5\
                     b1063d5007";
        assert_eq!(read(&mut blocks, third), (true, 3, 215));
    }

    #[test]
    fn a_pseudo_header_field_is_told_however_it_is_written() {
        for (block, has_pseudo) in [
            ("84", true),
            ("8e", true),
            ("8f", false),
            ("be", true),
            ("bf", false),
            ("0401 2f", true),
            ("1401 2f", true),
            ("0f00 0161", false),
            ("0005 3a70617468 01 2f", true),
            ("0084 b958d33f 012f", true),
            ("0085 7fffffffff 012f", false),
            ("0003 612d62 01 3a", false),
            ("", false),
        ] {
            let mut blocks = HeaderBlocks::default();
            // A field of no pseudo-header, then one: the newest is 62.
            read(&mut blocks, "4001610162 410161");
            assert_eq!(read(&mut blocks, block).0, has_pseudo, "{block}");
        }
    }

    #[test]
    fn what_is_no_header_block_says_nothing_more() {
        for block in ["80", "ff80808080808001", "3fe11f01", "c0", "04", "0402 61"] {
            let mut blocks = HeaderBlocks::default();
            blocks.read(&bytes(block));
            assert!(!blocks.end(), "{block}");
            blocks.read(&bytes("84"));
            assert!(
                !blocks.end() && matches!(blocks.step, Step::Lost),
                "{block}"
            );
        }
    }
}
