//! The pictures: a thumbnail and an image of each item, and the buttons of the pages.
//!
//! An image has the size that clause 4.7.1 asks for. It begins as a valid GIF of one pixel. What
//! follows the GIF's end is padding, which every GIF reader skips. So no files are needed, and a
//! picture costs the application as much as a file in the page cache would.

use bytes::Bytes;
use rand::Rng;
use std::sync::LazyLock;

/// A thumbnail's size, in bytes.
pub(crate) const THUMBNAIL_BYTES: u32 = 5 * 1024;
/// The size of a button or banner, in bytes.
pub(crate) const BUTTON_BYTES: u32 = 1024;
/// The largest image's size, in bytes.
pub(crate) const IMAGE_BYTES_MAX: u32 = 250 * 1024;

/// Sizes in bytes, and how many images in a hundred have each.
const SIZES: [(u32, u32); 5] = [
    (5 * 1024, 45),
    (10 * 1024, 35),
    (50 * 1024, 15),
    (100 * 1024, 4),
    (IMAGE_BYTES_MAX, 1),
];

/// A GIF of one transparent pixel.
const PIXEL: &[u8] = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\x00\x00\x00\x21\xf9\x04\x01\
\x00\x00\x00\x00\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00\x3b";

static PADDED: LazyLock<Bytes> = LazyLock::new(|| {
    let mut bytes = PIXEL.to_vec();
    bytes.resize(IMAGE_BYTES_MAX as usize, 0x5a);
    bytes.into()
});

/// A picture of that size. `None` if no picture has that size.
pub(crate) fn picture(bytes: u32) -> Option<Bytes> {
    let length = bytes as usize;
    (PIXEL.len()..=IMAGE_BYTES_MAX as usize)
        .contains(&length)
        .then(|| PADDED.slice(..length))
}

/// The size of a random item's image, in bytes.
pub(crate) fn draw_size(rng: &mut impl Rng) -> u32 {
    let mut drawn = rng.random_range(0..100);
    for (bytes, share) in SIZES {
        if drawn < share {
            return bytes;
        }
        drawn -= share;
    }
    IMAGE_BYTES_MAX
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_shares_of_the_sizes_are_a_whole() {
        assert_eq!(SIZES.iter().map(|(_, share)| share).sum::<u32>(), 100);
    }

    #[test]
    fn pictures_have_the_size_asked_for() {
        assert_eq!(picture(THUMBNAIL_BYTES).unwrap().len(), 5 * 1024);
        assert!(picture(3).is_none());
        assert!(picture(IMAGE_BYTES_MAX + 1).is_none());
        assert!(picture(2000).unwrap().starts_with(b"GIF89a"));
    }
}
