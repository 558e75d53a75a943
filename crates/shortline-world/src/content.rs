//! The content of files and responses. Each byte depends on whose it is and where it is, so that
//! none can be lost, duplicated or taken from elsewhere unnoticed.

/// The bytes of a word. They are computed together.
const WORD_BYTES: u64 = 8;

/// The word of this number of the content named `key`.
fn word(key: u64, number: u64) -> [u8; WORD_BYTES as usize] {
    let mixed = (number ^ key.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The lower bits of a product depend on the lower bits of its factors alone.
    (mixed ^ mixed >> 32)
        .wrapping_mul(0xd6e8_feb8_6659_fd93)
        .to_le_bytes()
}

/// `length` bytes from `offset` on.
pub fn piece(key: u64, offset: u64, length: usize) -> Vec<u8> {
    let first = offset / WORD_BYTES;
    let skipped = (offset % WORD_BYTES) as usize;
    let words = (skipped + length).div_ceil(WORD_BYTES as usize) as u64;
    let mut bytes = Vec::with_capacity(words as usize * WORD_BYTES as usize);
    for number in first..first + words {
        bytes.extend_from_slice(&word(key, number));
    }
    bytes.truncate(skipped + length);
    bytes.drain(..skipped);
    bytes
}

/// What a body consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The bytes of [`piece`] for this key.
    Bytes(u64),
    /// The same in hexadecimal digits, which compress to half.
    Text(u64),
    /// Always this byte, which compresses to nothing.
    Same(u8),
}

impl Content {
    /// `length` bytes from `offset` on.
    pub fn piece(self, offset: u64, length: usize) -> Vec<u8> {
        match self {
            Self::Bytes(key) => piece(key, offset, length),
            Self::Text(key) => {
                let skipped = (offset % 2) as usize;
                let bytes = piece(key, offset / 2, (skipped + length).div_ceil(2));
                let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
                let digits = digits.map(|digit| b"0123456789abcdef"[usize::from(digit)]);
                digits.skip(skipped).take(length).collect()
            }
            Self::Same(byte) => vec![byte; length],
        }
    }
}

/// Checks a body against the expected content.
#[derive(Clone, Debug)]
pub struct Checked {
    content: Content,
    /// The position of the next byte.
    at: u64,
    /// Where it ends.
    end: u64,
}

impl Checked {
    /// The bytes `first..end` of the content named `key`.
    pub fn new(key: u64, first: u64, end: u64) -> Self {
        Self::of(Content::Bytes(key), first, end)
    }

    /// The bytes `first..end` of this content.
    pub fn of(content: Content, first: u64, end: u64) -> Self {
        Self {
            content,
            at: first,
            end,
        }
    }

    /// Checks the next bytes.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        let room = self.missing().min(bytes.len() as u64) as usize;
        let wanted = self.content.piece(self.at, room);
        let differs = bytes
            .iter()
            .zip(&wanted)
            .position(|(found, wanted)| found != wanted);
        if let Some(at) = differs {
            let (found, wanted, at) = (bytes[at], wanted[at], self.at + at as u64);
            return Err(format!("{found:#04x} at {at} for {wanted:#04x}"));
        }
        if room < bytes.len() {
            return Err(format!("more than {} bytes", self.end));
        }
        self.at += room as u64;
        Ok(())
    }

    /// How many bytes are missing.
    pub fn missing(&self) -> u64 {
        self.end - self.at
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_are_parts_of_one_content(key: u64, first in 0..200_u64, lengths in prop::collection::vec(0..50_usize, 1..8)) {
            let whole = piece(key, 0, 600);
            let mut checked = Checked::new(key, first, 600);
            let mut at = first as usize;
            for length in lengths {
                let part = piece(key, at as u64, length);
                prop_assert_eq!(&whole[at..at + length], &part[..]);
                prop_assert!(checked.take(&part).is_ok());
                at += length;
            }
            prop_assert_eq!(checked.missing(), 600 - at as u64);
        }

        #[test]
        fn pieces_of_a_text_are_parts_of_it(key: u64, first in 0..200_usize, length in 0..200_usize) {
            let text = Content::Text(key);
            prop_assert_eq!(&text.piece(0, 400)[first..first + length], &text.piece(first as u64, length)[..]);
        }

        #[test]
        fn what_is_elsewhere_is_noticed(key: u64, at in 0..10_000_u64, away in 1..10_000_u64, flipped in 0..32_usize) {
            let wrong = piece(key, at + away, 32);
            prop_assert!(Checked::new(key, at, u64::MAX).take(&wrong).is_err());
            let mut wrong = piece(key, at, 32);
            wrong[flipped] ^= 1;
            prop_assert!(Checked::new(key, at, u64::MAX).take(&wrong).is_err());
            let wrong = piece(key.wrapping_add(away), at, 32);
            prop_assert!(Checked::new(key, at, u64::MAX).take(&wrong).is_err());
        }
    }
}
