//! Values of the protocol at the front of bytes that may be cut (MySQL's source documentation,
//! "Protocol Basics"). Each function removes its value from `bytes`. It returns `None` if the
//! value is incomplete.

/// A fixed number of bytes.
pub fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

/// One byte.
pub fn byte(bytes: &mut &[u8]) -> Option<u8> {
    take(bytes, 1).map(|taken| taken[0])
}

/// An integer of this many bytes, at most eight.
pub fn integer(bytes: &mut &[u8], count: usize) -> Option<u64> {
    let mut whole = [0; 8];
    whole[..count].copy_from_slice(take(bytes, count)?);
    Some(u64::from_le_bytes(whole))
}

/// A length-encoded integer. NULL (0xfb) and 0xff are not integers.
pub fn length_encoded(bytes: &mut &[u8]) -> Option<u64> {
    match byte(bytes)? {
        0xfc => integer(bytes, 2),
        0xfd => integer(bytes, 3),
        0xfe => integer(bytes, 8),
        0xfb | 0xff => None,
        small => Some(small.into()),
    }
}

/// Bytes after their length-encoded length.
pub fn length_encoded_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = length_encoded(bytes)?;
    take(bytes, usize::try_from(length).ok()?)
}

/// Bytes up to a zero byte, which is also taken.
pub fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let text = take(bytes, end)?;
    take(bytes, 1)?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_or_cut() {
        let integers: [(&[u8], Option<u64>); 8] = [
            (&[0xfa], Some(250)),
            (&[0xfc, 1, 2], Some(0x201)),
            (&[0xfd, 1, 2, 3], Some(0x3_0201)),
            (&[0xfe, 1, 0, 0, 0, 0, 0, 0, 1], Some(1 + (1 << 56))),
            (&[0xfb], None),
            (&[0xff, 1, 1], None),
            (&[0xfc, 1], None),
            (&[], None),
        ];
        for (mut bytes, expected) in integers {
            assert_eq!(length_encoded(&mut bytes), expected);
        }
        let mut bytes: &[u8] = b"ab\0\x02cde";
        assert_eq!(text(&mut bytes), Some(&b"ab"[..]));
        assert_eq!(length_encoded_bytes(&mut bytes), Some(&b"cd"[..]));
        assert_eq!(text(&mut bytes), None);
        assert_eq!(bytes, b"e");
    }
}
