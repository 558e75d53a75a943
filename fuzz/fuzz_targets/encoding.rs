//! Accept-Encoding: never a panic, never a coding that is not at hand.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shortline_web::site::encoding::{Accepted, Choice};

fuzz_target!(|input: (u8, &[u8])| {
    let (mask, field) = input;
    let mut accepted = Accepted::default();
    accepted.add(field);
    if let Choice::Coded(coding) = accepted.choose(|coding| mask >> (coding as u8) & 1 == 1) {
        assert_eq!(mask >> (coding as u8) & 1, 1);
    }
});
