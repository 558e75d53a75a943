//! `multipart/byteranges` (RFC 9110 14.6): several pieces of a file in one body.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;

use super::file::OpenFile;
use super::kernel_copy::KERNEL_COPY_BYTES_MIN;
use super::plan::Segment;
use super::range::Piece;

/// The segments of the body, and its content type.
pub(super) fn segments(
    file: &Arc<OpenFile>,
    part_type: &HeaderValue,
    pieces: &[Piece],
) -> (Vec<Segment>, HeaderValue) {
    let boundary = boundary();
    let mut segments = Vec::with_capacity(2 * pieces.len() + 1);
    for piece in pieces {
        segments.push(Segment::Bytes(part_head(
            &boundary,
            part_type,
            *piece,
            file.len(),
        )));
        segments.push(piece_of(file, piece.first, piece.len()));
    }
    segments.push(Segment::Bytes(Bytes::from(format!(
        "\r\n--{boundary}--\r\n"
    ))));
    let content_type = format!("multipart/byteranges; boundary={boundary}");
    let content_type = HeaderValue::try_from(content_type);
    (segments, content_type.expect("invariant: plain ASCII"))
}

/// A piece of a file: as bytes if they are in memory, unless it is long enough to be sent from the
/// kernel's copy.
pub(super) fn piece_of(file: &Arc<OpenFile>, offset: u64, len: u64) -> Segment {
    let short = len < KERNEL_COPY_BYTES_MIN as u64;
    let bytes = file.in_memory().filter(|_| short).and_then(|bytes| {
        let first = usize::try_from(offset).ok()?;
        let end = usize::try_from(offset + len).ok()?;
        Some(bytes.slice(first..end))
    });
    match bytes {
        Some(bytes) => Segment::Bytes(bytes),
        None => Segment::File {
            file: Arc::clone(file),
            offset,
            len,
        },
    }
}

/// The value of `Content-Range` for a piece.
pub(super) fn content_range(piece: Piece, file_bytes: u64) -> String {
    format!("bytes {}-{}/{file_bytes}", piece.first, piece.last)
}

fn part_head(boundary: &str, part_type: &HeaderValue, piece: Piece, file_bytes: u64) -> Bytes {
    let mut head = format!("\r\n--{boundary}\r\ncontent-type: ").into_bytes();
    head.extend_from_slice(part_type.as_bytes());
    let range = content_range(piece, file_bytes);
    head.extend_from_slice(format!("\r\ncontent-range: {range}\r\n\r\n").as_bytes());
    head.into()
}

/// 128 bits nobody can guess, so that no file can be made to contain its own boundary.
/// `RandomState` has random keys; the standard library offers no other source.
fn boundary() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}
