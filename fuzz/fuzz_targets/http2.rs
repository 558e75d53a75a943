//! See the entry `http2` in crates/shortline-fuzz.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shortline_fuzz::run("http2", bytes));
