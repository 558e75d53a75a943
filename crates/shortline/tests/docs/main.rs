//! The pages for operators: README.md and all of `docs` but the builders' page. Their sentences are short, each command
//! in them runs, each configuration is sound, and what the README is to tell stands in it. `make docs-test` runs this.
//!
//! What cannot be run says why in a comment of the page's source, and is counted: see [`commands`].
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod commands;
mod configurations;
mod page;
mod place;
mod readers;
mod recipes;
mod sentences;
mod serving;
mod watching;
