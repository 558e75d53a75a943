//! The fuzz targets. Each gives bytes to a parser of outside input and checks the result against
//! what the parser promises. It panics if a promise is broken.
//!
//! The same entries are driven in two ways: by libFuzzer, through the programs in
//! `fuzz/fuzz_targets` (`scripts/fuzz`), and by `tests/corpus.rs`, which replays the kept corpus
//! `fuzz/corpus` on every test run.
//!
//! Backends' HTTP/2, TLS and PEM are parsed by h2 and rustls, which have their own fuzzing.
//! What we parse in addition is here. What the kernel says (netlink, `/proc`) is not outside input.

#![forbid(unsafe_code)]

mod answers;
mod authority;
mod chunks;
mod config;
mod database_logs;
mod dns;
mod exchanges;
mod fastcgi;
mod forwarded;
mod guards;
mod http1;
mod http2;
mod kept;
mod log_lines;
mod mysql;
mod ocsp;
mod pool;
mod postgres;
mod proxied;
mod records;
mod requests;
mod simulations;
mod statements;
mod traces;
mod words;

/// An entry: a parser and its promises.
pub type Entry = fn(&[u8]);

/// All targets: the name of the folder in `fuzz/corpus` and of the program, and the entry.
pub const TARGETS: &[(&str, Entry)] = &[
    ("answer", answers::answer),
    ("authority", authority::said),
    ("authorization", guards::authorization),
    ("chunks", chunks::body),
    ("conditional", requests::conditional),
    ("config", config::file),
    ("database_log", database_logs::log),
    ("dns", dns::answer),
    ("distribution", simulations::distribution),
    ("clients", simulations::client_class),
    ("encoding", requests::encoding),
    ("fastcgi", fastcgi::records),
    ("forwarded", forwarded::field),
    ("http1", http1::client),
    ("http2", http2::client),
    ("kept_head", kept::head),
    ("kept", exchanges::exchange),
    ("log_format", log_lines::format),
    ("mysql", mysql::mysql),
    ("ocsp", ocsp::answer),
    ("origin", guards::origin),
    ("pgbouncer", pool::pgbouncer),
    ("policy", words::policy),
    ("pool_state", pool::state),
    ("pool_users", pool::users),
    ("postgres", postgres::postgres),
    ("proxied", proxied::head),
    ("proxy", pool::proxy),
    ("range", requests::range),
    ("records", records::result_csv),
    ("route", statements::route),
    ("scram", pool::scram),
    ("statement", statements::statement),
    ("target", requests::target),
    ("trace", traces::trace),
    ("trace_parent", log_lines::trace_parent),
    ("units", words::units),
    ("users", guards::users),
    ("workload", words::workload),
];

/// Gives `bytes` to the target called `name`.
///
/// # Panics
/// There is no such target, or its parser breaks a promise.
pub fn run(name: &str, bytes: &[u8]) {
    let named = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, entry) = named.unwrap_or_else(|| panic!("no target `{name}`"));
    entry(bytes);
}

/// Checks that an error is one line.
fn assert_one_line(error: &impl std::fmt::Display) {
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text:?}");
}
