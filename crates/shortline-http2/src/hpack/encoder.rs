//! Header blocks of responses, written (RFC 7541 6).
//!
//! Fields that come again are entries of the table. There are few, so that one is found by looking at the hashes of all.
//! A string is in the Huffman code where that is shorter (5.2). Sensitive values are never in the table (7.1.3).

use std::collections::VecDeque;

use http::StatusCode;
use http::header::{HeaderName, HeaderValue};

use super::names::{index_of, is_unlike_the_last};
use super::{ENTRY_BYTES, TABLE_BYTES, huffman, integer};

/// The first index of the table (RFC 7541 2.3.3).
const FIRST: usize = 62;
/// The static table's `:status 200`.
const STATUS: usize = 8;

const INDEXED: u8 = 0x80;
const ADDED: u8 = 0x40;
const RESIZED: u8 = 0x20;
const NEVER_ADDED: u8 = 0x10;
const NOT_ADDED: u8 = 0;

/// What our blocks may refer to.
#[derive(Debug)]
pub struct Encoder {
    /// The newest first. The hashes stand alone, so that all of them are in a line or two of the processor's cache.
    hashes: VecDeque<u32>,
    entries: VecDeque<(HeaderName, HeaderValue)>,
    bytes: usize,
    bytes_max: usize,
    /// Where the next field is, if it is the one that came next in the last head.
    expected: usize,
    /// The smallest size since the last block, and that it must say the size.
    resized: Option<usize>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            hashes: VecDeque::new(),
            entries: VecDeque::new(),
            bytes: 0,
            bytes_max: TABLE_BYTES,
            expected: 0,
            resized: None,
        }
    }
}

impl Encoder {
    /// The client allows a table of so many bytes. We use [`TABLE_BYTES`] at most.
    pub fn allow(&mut self, bytes: usize) {
        let bytes_max = bytes.min(TABLE_BYTES);
        if bytes_max != self.bytes_max {
            let smallest = self.resized.unwrap_or(bytes_max).min(bytes_max);
            self.resized = Some(smallest);
            self.bytes_max = bytes_max;
            self.evict(bytes_max);
        }
    }

    /// Begins a block.
    pub fn begin(&mut self, into: &mut Vec<u8>) {
        let Some(smallest) = self.resized.take() else {
            return;
        };
        // 4.2: the smallest size there was, and the one that is.
        if smallest < self.bytes_max {
            integer::write(RESIZED, 5, smallest, into);
        }
        integer::write(RESIZED, 5, self.bytes_max, into);
    }

    /// Writes `:status`.
    pub fn status(&self, status: StatusCode, into: &mut Vec<u8>) {
        let index = match status.as_u16() {
            200 => STATUS,
            204 => 9,
            206 => 10,
            304 => 11,
            400 => 12,
            404 => 13,
            500 => 14,
            _ => {
                integer::write(NOT_ADDED, 4, STATUS, into);
                string(status.as_str().as_bytes(), into);
                return;
            }
        };
        integer::write(INDEXED, 7, index, into);
    }

    /// Writes a field.
    pub fn field(&mut self, name: &HeaderName, value: &HeaderValue, into: &mut Vec<u8>) {
        let known = index_of(name);
        if value.is_sensitive() {
            return self.literal(NEVER_ADDED, 4, known, name, value, into);
        }
        if is_unlike_the_last(name) {
            return self.literal(NOT_ADDED, 4, known, name, value, into);
        }
        if let Some(index) = self.find_copy(name, value) {
            return integer::write(INDEXED, 7, FIRST + index, into);
        }
        let bytes = name.as_str().len() + value.len() + ENTRY_BYTES;
        // One that takes most of the table would push the others out.
        if 2 * bytes > self.bytes_max {
            return self.literal(NOT_ADDED, 4, known, name, value, into);
        }
        let hash = hash(known, name, value);
        if let Some(index) = self.find(hash, name, value) {
            return integer::write(INDEXED, 7, FIRST + index, into);
        }
        self.literal(ADDED, 6, known, name, value, into);
        self.evict(self.bytes_max - bytes);
        self.bytes += bytes;
        self.hashes.push_front(hash);
        self.entries.push_front((name.clone(), value.clone()));
    }

    /// The place of an entry whose value is the same memory, as a file's are and those that never change. It is not read.
    /// The fields of a head mostly come as those of the last, and an entry stands before the one that came before it.
    fn find_copy(&mut self, name: &HeaderName, value: &HeaderValue) -> Option<usize> {
        let same = |(its_name, its_value): &(HeaderName, HeaderValue)| {
            std::ptr::eq(its_value.as_bytes(), value.as_bytes()) && its_name == name
        };
        let index = match self.entries.get(self.expected) {
            Some(entry) if same(entry) => self.expected,
            Some(_) | None => self.entries.iter().position(same)?,
        };
        self.expected = index.checked_sub(1).unwrap_or(self.entries.len() - 1);
        Some(index)
    }

    fn find(&self, hash: u32, name: &HeaderName, value: &HeaderValue) -> Option<usize> {
        let same = |index: &usize| {
            let (its_name, its_value) = &self.entries[*index];
            self.hashes[*index] == hash && its_name == name && its_value == value
        };
        (0..self.hashes.len()).find(same)
    }

    fn literal(
        &self,
        pattern: u8,
        prefix_bits: u32,
        known: Option<usize>,
        name: &HeaderName,
        value: &HeaderValue,
        into: &mut Vec<u8>,
    ) {
        let added = || self.entries.iter().position(|(added, _)| added == name);
        let index = known.or_else(|| added().map(|index| FIRST + index));
        integer::write(pattern, prefix_bits, index.unwrap_or(0), into);
        if index.is_none() {
            string(name.as_str().as_bytes(), into);
        }
        string(value.as_bytes(), into);
    }

    /// Drops the oldest until the others have at most so many bytes.
    fn evict(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max {
            self.hashes.pop_back();
            let oldest = self.entries.pop_back();
            let bytes = oldest.map(|(name, value)| name.as_str().len() + value.len() + ENTRY_BYTES);
            self.bytes -= bytes.unwrap_or(self.bytes);
        }
    }
}

/// Not a hash to rely on against who chooses the fields: entries of one hash are compared.
fn hash(known: Option<usize>, name: &HeaderName, value: &HeaderValue) -> u32 {
    let mix =
        |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    let fold = |hash: u64, text: &[u8]| {
        let (words, rest) = text.as_chunks::<8>();
        let whole = words
            .iter()
            .fold(hash, |hash, word| mix(hash, u64::from_le_bytes(*word)));
        let rest = rest
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
        mix(whole, rest)
    };
    let of_name = match known {
        Some(index) => index as u64,
        None => fold(0, name.as_str().as_bytes()),
    };
    (fold(of_name, value.as_bytes()) >> 32) as u32
}

fn string(text: &[u8], into: &mut Vec<u8>) {
    let coded_bytes = huffman::coded_bytes(text);
    if coded_bytes < text.len() {
        integer::write(0x80, 7, coded_bytes, into);
        huffman::encode(text, into);
    } else {
        integer::write(0, 7, text.len(), into);
        into.extend_from_slice(text);
    }
}
