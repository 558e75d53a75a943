//! How much was compressed since the start, by coding: what went in, and what came out.
//!
//! A file is counted once, when it is compressed, however often the result is sent. A backend's response is counted as it passes.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use super::encoder::Effort;
use crate::files::encoding::Coding;

/// What was compressed in one coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CompressedBytes {
    /// The coding.
    pub coding: &'static str,
    /// `files` or `backends`.
    pub what: &'static str,
    /// Bytes before.
    pub in_total: u64,
    /// Bytes after.
    pub out_total: u64,
}

struct Counter {
    coding: Coding,
    effort: Effort,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

/// All that this process compresses. It works for one server.
static COUNTERS: [Counter; 6] = [
    Counter::new(Coding::Zstd, Effort::Kept),
    Counter::new(Coding::Brotli, Effort::Kept),
    Counter::new(Coding::Gzip, Effort::Kept),
    Counter::new(Coding::Zstd, Effort::Passing),
    Counter::new(Coding::Brotli, Effort::Passing),
    Counter::new(Coding::Gzip, Effort::Passing),
];

/// Where an encoder counts.
#[derive(Clone, Copy)]
pub struct Counts(&'static Counter);

impl Counts {
    /// Of bodies in this coding.
    pub fn of(coding: Coding, effort: Effort) -> Self {
        let is_one = |counter: &&Counter| counter.coding == coding && counter.effort == effort;
        let found = COUNTERS.iter().find(is_one);
        Self(found.expect("invariant: each coding has a counter for each effort"))
    }

    /// So many bytes went in.
    pub fn add_in(self, bytes: usize) {
        self.0.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// So many came out.
    pub fn add_out(self, bytes: usize) {
        self.0.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// The counts now.
pub fn snapshot() -> Vec<CompressedBytes> {
    let told = |counter: &Counter| CompressedBytes {
        coding: counter.coding.name(),
        what: match counter.effort {
            Effort::Kept => "files",
            Effort::Passing => "backends",
        },
        in_total: counter.bytes_in.load(Ordering::Relaxed),
        out_total: counter.bytes_out.load(Ordering::Relaxed),
    };
    COUNTERS.iter().map(told).collect()
}

impl Counter {
    const fn new(coding: Coding, effort: Effort) -> Self {
        Self {
            coding,
            effort,
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
        }
    }
}
