//! What clients send: request targets, and the header fields that matter to files.

use shortline_web::files::conditional::{entity_tags, parse_date};
use shortline_web::files::encoding::{Accepted, Choice};
use shortline_web::files::paths::{PATH_BYTES_MAX, Target, parse_target};
use shortline_web::files::range::{Piece, RANGES_MAX, Ranges, parse_range};

/// Request targets. None may become a path that could leave the root.
pub fn target(bytes: &[u8]) {
    let Ok(raw) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(Target::Resource { path, .. }) = parse_target(raw) else {
        return;
    };
    let text = path.as_str();
    assert!(text.starts_with('/') && text.len() <= PATH_BYTES_MAX);
    assert!(!text.contains("//") && !text.contains('\\') && !text.chars().any(char::is_control));
    assert!(!path.relative().starts_with('/'));
    for (index, segment) in text.split('/').skip(1).enumerate() {
        assert!(!segment.starts_with('.') || (index == 0 && segment == ".well-known"));
    }
    // The canonical spelling names the same path.
    let url = path.encoded();
    match parse_target(&url) {
        Ok(Target::Resource {
            path: again,
            query: None,
        }) => assert_eq!(again.as_str(), text),
        other => panic!("{url}: {other:?}"),
    }
}

/// A Range field after eight bytes for the file's length. Pieces must lie inside the file and not
/// overlap. Together they must not exceed the file.
pub fn range(bytes: &[u8]) {
    let Some((length, field)) = bytes.split_first_chunk() else {
        return;
    };
    let file_bytes = u64::from_le_bytes(*length);
    let mut pieces = match parse_range(field, file_bytes) {
        Ranges::Single(piece) => vec![piece],
        Ranges::Several(pieces) => pieces,
        Ranges::Whole | Ranges::Unsatisfiable => return,
    };
    assert!(pieces.len() <= RANGES_MAX);
    pieces.sort();
    let inside = |piece: &Piece| piece.first <= piece.last && piece.last < file_bytes;
    assert!(pieces.iter().all(inside));
    let apart = |pair: &[Piece]| pair[0].last + 1 < pair[1].first;
    assert!(pieces.windows(2).all(apart));
}

/// Accept-Encoding after a byte that says which codings are available. No other may be chosen.
pub fn encoding(bytes: &[u8]) {
    let Some((mask, field)) = bytes.split_first() else {
        return;
    };
    let mut accepted = Accepted::default();
    accepted.add(field);
    let at_hand = |coding| mask >> (coding as u8) & 1 == 1;
    if let Choice::Coded(coding) = accepted.choose(at_hand) {
        assert!(at_hand(coding));
    }
}

/// If-None-Match and the fields with dates. Tags must be quoted.
pub fn conditional(field: &[u8]) {
    for tag in entity_tags(field) {
        let [b'"', inner @ .., b'"'] = tag.opaque else {
            panic!("{tag:?} is not quoted")
        };
        assert!(!inner.contains(&b'"'));
    }
    let _date = parse_date(field);
}
