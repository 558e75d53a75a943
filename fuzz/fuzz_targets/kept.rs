//! See the entry `kept` in crates/shortline-fuzz.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shortline_fuzz::run("kept", bytes));
