//! See the entry `log_format` in crates/shortline-fuzz.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shortline_fuzz::run("log_format", bytes));
