//! The link's state at one moment, for people and metrics.

use serde::Serialize;

use crate::config::LinkMode;
use crate::driver::discovery::Discovered;

/// Upper bounds (inclusive) and names of the size classes of the status page, in bytes of the
/// whole response: 1, 10 and 100 KB, 1 MB, and above.
pub const SIZE_CLASSES: [(u64, &str); 5] = [
    (1_000, "up to 1 KB"),
    (10_000, "up to 10 KB"),
    (100_000, "up to 100 KB"),
    (1_000_000, "up to 1 MB"),
    (u64::MAX, "above 1 MB"),
];

/// Jobs of one size class.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SizeClass {
    /// The class's name.
    pub name: &'static str,
    /// Jobs of this class on the link.
    pub jobs: usize,
    /// Bytes they still have to send.
    pub remaining_bytes: u64,
}

/// The link at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct LinkSnapshot {
    /// How the kernel's queue is kept short.
    pub mode: LinkMode,
    /// The policy's name.
    pub policy: String,
    /// The aging factor, if any.
    pub aging: Option<f64>,
    /// The growing factor, if any.
    pub growing: Option<f64>,
    /// The sizes that part the bands at present, in bytes, learnt ones included; `None` for
    /// policies without bands.
    pub cutoffs_bytes: Option<Vec<u64>>,
    /// The rate that grants follow now, in bits per second: the one given, or the one found out.
    pub rate_bps: Option<u64>,
    /// What was found out of the uplink (`auto`).
    pub discovered: Option<Discovered>,
    /// The interface whose counters correct the pacer, if any.
    pub device: Option<String>,
    /// Jobs on the link, in every stage.
    pub jobs: usize,
    /// Jobs that wait for a grant.
    pub jobs_waiting: usize,
    /// Jobs passed over because their connection cannot send.
    pub jobs_blocked: usize,
    /// Jobs that hold a grant or hand its bytes over.
    pub jobs_sending: usize,
    /// The jobs by size.
    pub size_classes: Vec<SizeClass>,
    /// The modelled queue of the uplink in bytes (`paced`).
    pub queue_bytes: Option<u64>,
    /// Responses that hold bytes in the kernel (`slots`), or writers that are busy (`writers`).
    pub slots_held: Option<usize>,
    /// Times that a connection was moved to another band, a system call each (`bands`).
    pub band_changes_total: Option<u64>,
    /// Payload bytes of a grant now.
    pub quantum_bytes: u32,
    /// Grants made since the start.
    pub grants_total: u64,
    /// Grants given back unused or late.
    pub refunds_total: u64,
    /// Bytes on the wire since the start: the device's count where it is read, else what was
    /// charged, corrected by the sockets' own counts.
    pub wire_bytes_total: u64,
}
