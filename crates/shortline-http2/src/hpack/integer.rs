//! Integers with a prefix (RFC 7541 5.1).

use super::NoBlock;

/// The most bytes that follow the first. So an integer has at most 28 bits and those of its prefix,
/// which no length or index of ours reaches.
const MORE_BYTES_MAX: usize = 4;

/// Reads an integer whose first byte, already taken, has `prefix_bits` of it.
///
/// # Errors
/// It does not end, or is too large.
pub fn read(first: u8, prefix_bits: u32, rest: &mut &[u8]) -> Result<usize, NoBlock> {
    let mask = (1 << prefix_bits) - 1;
    let mut value = usize::from(first) & mask;
    if value < mask {
        return Ok(value);
    }
    for index in 0..MORE_BYTES_MAX {
        let (byte, left) = rest.split_first().ok_or(NoBlock)?;
        *rest = left;
        value += usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(NoBlock)
}

/// Writes an integer behind the bits of `pattern`.
pub fn write(pattern: u8, prefix_bits: u32, value: usize, into: &mut Vec<u8>) {
    let mask = (1 << prefix_bits) - 1;
    if value < mask {
        into.push(pattern | value as u8);
        return;
    }
    into.push(pattern | mask as u8);
    let mut left = value - mask;
    while left >= 0x80 {
        into.push(0x80 | (left & 0x7f) as u8);
        left >>= 7;
    }
    into.push(left as u8);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_the_rfc() {
        // C.1.1 to C.1.3
        for (value, bits, bytes) in [
            (10, 5, &[10][..]),
            (1337, 5, &[31, 154, 10]),
            (42, 8, &[42]),
        ] {
            let mut written = Vec::new();
            write(0, bits, value, &mut written);
            assert_eq!(written, bytes);
            let mut rest = &bytes[1..];
            assert_eq!(read(bytes[0], bits, &mut rest), Ok(value));
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn an_integer_that_goes_on_and_on_is_refused() {
        for end in [
            &[][..],
            &[0x80],
            &[0x80; 4],
            &[0xff, 0xff, 0xff, 0xff, 0x7f],
        ] {
            assert_eq!(read(0xff, 7, &mut &*end), Err(NoBlock));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in 0usize..1 << 28, bits in 1u32..=8) {
            let mut written = Vec::new();
            write(0, bits, value, &mut written);
            let mut rest = &written[1..];
            prop_assert_eq!(read(written[0], bits, &mut rest), Ok(value));
            prop_assert!(rest.is_empty());
        }
    }
}
