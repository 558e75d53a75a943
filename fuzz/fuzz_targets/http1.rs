//! See the entry `http1` in crates/shortline-fuzz.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shortline_fuzz::run("http1", bytes));
