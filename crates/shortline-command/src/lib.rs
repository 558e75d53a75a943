//! What `shortline` and `shortline-lab` have in common on the command line: how a command line is
//! read, exit codes, errors of one line, and where results go.
//!
//! Exit codes: 0 success, 2 bad usage, 3 a void run, 1 anything else. An error is one line on
//! standard error that begins with `shortline: `.
#![forbid(unsafe_code)]

mod error;
pub mod log;
pub mod output;
mod parse;
pub mod toml_text;

pub use error::CommandError;
pub use parse::{Ended, Meant, Unknown, exit_code, in_one_line, parse};
