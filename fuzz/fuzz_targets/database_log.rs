//! See the entry `database_log` in crates/shortline-fuzz.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shortline_fuzz::run("database_log", bytes));
