//! The Range field: never a panic, pieces inside the file and apart, never more than the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shortline_web::site::range::{RANGES_MAX, Ranges, parse_range};

fuzz_target!(|input: (u64, &[u8])| {
    let (file_bytes, field) = input;
    let mut pieces = match parse_range(field, file_bytes) {
        Ranges::Single(piece) => vec![piece],
        Ranges::Several(pieces) => pieces,
        Ranges::Whole | Ranges::Unsatisfiable => return,
    };
    assert!(pieces.len() <= RANGES_MAX);
    pieces.sort();
    assert!(
        pieces
            .iter()
            .all(|piece| piece.first <= piece.last && piece.last < file_bytes)
    );
    assert!(
        pieces
            .windows(2)
            .all(|pair| pair[0].last + 1 < pair[1].first)
    );
});
