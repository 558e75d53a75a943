//! The Huffman code of strings (RFC 7541 5.2, Appendix B).
//!
//! The code is canonical: words of one length are in the order of what they stand for, and follow
//! the shorter ones. So the lengths tell it, and both directions' tables are made of them when this
//! is compiled. Words are read in steps of four bits: a state is an inner node of the code's tree.

use super::NoBlock;

/// The length of each byte's word, in bits.
#[rustfmt::skip]
const WORD_BITS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];
const WORD_BITS_MIN: u8 = 5;
const WORD_BITS_MAX: u8 = 30;
/// The inner nodes of the code's tree: one fewer than its 257 words.
const NODES: usize = 256;

/// The word of each byte.
const WORDS: [u32; 256] = words();
/// For each node and each four bits that follow: where they lead.
static STEPS: [[Step; 16]; NODES] = steps();

/// What four bits do.
#[derive(Clone, Copy)]
struct Step {
    node: u8,
    /// They end the word of this byte. A word has five bits at least, so they end one at most.
    byte: u8,
    has_byte: bool,
    /// The end of the string itself: it may not occur (5.2).
    is_refused: bool,
    /// A string may end here: what is begun of a word is the beginning of the end's, and shorter
    /// than eight bits.
    may_end: bool,
}

const fn words() -> [u32; 256] {
    let mut words = [0; 256];
    let mut next = 0;
    let mut bits = WORD_BITS_MIN;
    while bits <= WORD_BITS_MAX {
        let mut byte = 0;
        while byte < 256 {
            if WORD_BITS[byte] == bits {
                words[byte] = next;
                next += 1;
            }
            byte += 1;
        }
        next <<= 1;
        bits += 1;
    }
    words
}

/// A child of a node: 0 is none yet, then nodes, then [`LEAF`] and the byte, or [`END`].
type Child = u16;
const LEAF: Child = 0x1000;
const END: Child = 0x2000;

const fn tree() -> ([[Child; 2]; NODES], [u8; NODES]) {
    let mut nodes = [[0; 2]; NODES];
    // The length of the ones that lead to a node, or more than seven if others do too.
    let mut ones = [u8::MAX; NODES];
    ones[0] = 0;
    let mut count = 1;
    let mut symbol = 0;
    while symbol <= 256 {
        let (word, bits) = if symbol < 256 {
            (WORDS[symbol], WORD_BITS[symbol])
        } else {
            ((1 << WORD_BITS_MAX) - 1, WORD_BITS_MAX)
        };
        let mut at = 0;
        let mut left = bits;
        while left > 1 {
            left -= 1;
            let side = (word >> left & 1) as usize;
            if nodes[at][side] == 0 {
                nodes[at][side] = count as Child;
                if side == 1 && ones[at] < 7 {
                    ones[count] = ones[at] + 1;
                }
                count += 1;
            }
            at = nodes[at][side] as usize;
        }
        let leaf = if symbol < 256 {
            LEAF | symbol as Child
        } else {
            END
        };
        nodes[at][(word & 1) as usize] = leaf;
        symbol += 1;
    }
    (nodes, ones)
}

const fn steps() -> [[Step; 16]; NODES] {
    let (nodes, ones) = tree();
    let nothing = Step {
        node: 0,
        byte: 0,
        has_byte: false,
        is_refused: false,
        may_end: false,
    };
    let mut steps = [[nothing; 16]; NODES];
    let mut node = 0;
    while node < NODES {
        let mut four = 0;
        while four < 16 {
            let mut step = nothing;
            let mut at = node;
            let mut left = 4;
            while left > 0 && !step.is_refused {
                left -= 1;
                let child = nodes[at][four >> left & 1];
                if child == END {
                    step.is_refused = true;
                } else if child >= LEAF {
                    step.byte = (child & 0xff) as u8;
                    step.has_byte = true;
                    at = 0;
                } else {
                    at = child as usize;
                }
            }
            step.node = at as u8;
            step.may_end = ones[at] <= 7;
            steps[node][four] = step;
            four += 1;
        }
        node += 1;
    }
    steps
}

/// Appends the string that `coded` stands for.
///
/// # Errors
/// It has the word for the end, or does not end with the beginning of that.
pub fn decode(coded: &[u8], into: &mut Vec<u8>) -> Result<(), NoBlock> {
    let (mut node, mut may_end) = (0, true);
    for byte in coded {
        for four in [byte >> 4, byte & 0xf] {
            let step = STEPS[usize::from(node)][usize::from(four)];
            if step.is_refused {
                return Err(NoBlock);
            }
            if step.has_byte {
                into.push(step.byte);
            }
            (node, may_end) = (step.node, step.may_end);
        }
    }
    if may_end { Ok(()) } else { Err(NoBlock) }
}

/// The bytes that `text` takes in the code.
pub fn coded_bytes(text: &[u8]) -> usize {
    let bits = |byte: &u8| usize::from(WORD_BITS[usize::from(*byte)]);
    text.iter().map(bits).sum::<usize>().div_ceil(8)
}

/// Appends `text` in the code.
pub fn encode(text: &[u8], into: &mut Vec<u8>) {
    let (mut word, mut bits) = (0u64, 0);
    for byte in text {
        let byte = usize::from(*byte);
        word = word << WORD_BITS[byte] | u64::from(WORDS[byte]);
        bits += u32::from(WORD_BITS[byte]);
        if bits >= 32 {
            bits -= 32;
            into.extend_from_slice(&((word >> bits) as u32).to_be_bytes());
        }
    }
    let whole = bits.next_multiple_of(8);
    // The rest of the last byte is the beginning of the end's word: ones.
    let padded = word << (whole - bits) | ((1 << (whole - bits)) - 1);
    for byte in (0..whole / 8).rev() {
        into.push((padded >> (8 * byte)) as u8);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(text, &mut bytes);
        bytes
    }

    fn decoded(coded: &[u8]) -> Result<Vec<u8>, NoBlock> {
        let mut bytes = Vec::new();
        decode(coded, &mut bytes).map(|()| bytes)
    }

    #[test]
    fn the_examples_of_the_rfc() {
        // C.4.1 to C.4.3
        let examples: [(&[u8], &[u8]); 3] = [
            (
                b"www.example.com",
                b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
            ),
            (b"no-cache", b"\xa8\xeb\x10\x64\x9c\xbf"),
            (b"custom-value", b"\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf"),
        ];
        for (text, coded) in examples {
            assert_eq!(encoded(text), coded);
            assert_eq!(decoded(coded).unwrap(), text);
        }
    }

    #[test]
    fn the_end_is_refused_and_so_is_padding_that_is_none() {
        // The word of the end; eight ones; zeros as padding.
        for coded in [&[0xff, 0xff, 0xff, 0xff][..], &[0x1f, 0xff], &[0x18]] {
            assert_eq!(decoded(coded), Err(NoBlock), "{coded:x?}");
        }
        assert_eq!(decoded(&[0x1f]), Ok(b"a".to_vec()));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(text: Vec<u8>) {
            let coded = encoded(&text);
            prop_assert_eq!(coded.len(), coded_bytes(&text));
            prop_assert_eq!(decoded(&coded), Ok(text));
        }

        #[test]
        fn what_is_decoded_is_encoded_alike(coded: Vec<u8>) {
            if let Ok(text) = decoded(&coded) {
                prop_assert_eq!(encoded(&text), coded);
            }
        }
    }
}
