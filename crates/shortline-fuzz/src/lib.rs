//! What each fuzz target does with bytes: give them to a parser of bytes from outside and hold what
//! it makes of them to what it promises. An entry panics where a promise is broken.
//!
//! Two drive the same entries: libFuzzer, by the programs in `fuzz/fuzz_targets` (`scripts/fuzz`),
//! and `tests/corpus.rs`, which replays the kept corpus `fuzz/corpus` on every test run.
//!
//! Bytes of HTTP/1.1, HTTP/2, TLS and PEM are parsed by hyper, h2 and rustls, which are fuzzed at
//! home; what we look at beside them is here. What the kernel says (netlink, `/proc`) does not come from outside.

#![forbid(unsafe_code)]

mod chunks;
mod config;
mod forwarded;
mod mysql;
mod postgres;
mod proxied;
mod records;
mod requests;
mod simulations;
mod statements;
mod traces;
mod trailers;
mod words;

/// An entry: a parser and its promises.
pub type Entry = fn(&[u8]);

/// All targets: the name of the folder in `fuzz/corpus` and of the program, and the entry.
pub const TARGETS: &[(&str, Entry)] = &[
    ("chunks", chunks::body),
    ("conditional", requests::conditional),
    ("config", config::file),
    ("distribution", simulations::distribution),
    ("clients", simulations::client_class),
    ("encoding", requests::encoding),
    ("forwarded", forwarded::field),
    ("mysql", mysql::mysql),
    ("policy", words::policy),
    ("postgres", postgres::postgres),
    ("proxied", proxied::head),
    ("range", requests::range),
    ("records", records::result_csv),
    ("route", statements::route),
    ("statement", statements::statement),
    ("target", requests::target),
    ("trace", traces::trace),
    ("trailers", trailers::frames),
    ("units", words::units),
    ("workload", words::workload),
];

/// Gives `bytes` to the target called `name`.
///
/// # Panics
/// If there is none of that name, or its parser breaks a promise.
pub fn run(name: &str, bytes: &[u8]) {
    let named = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, entry) = named.unwrap_or_else(|| panic!("no target `{name}`"));
    entry(bytes);
}

/// Holds an error to one line.
fn assert_one_line(error: &impl std::fmt::Display) {
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text:?}");
}
