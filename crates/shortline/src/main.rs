//! The `shortline` command.
#![forbid(unsafe_code)]
fn main() {}
