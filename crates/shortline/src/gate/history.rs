//! Load, capacity and queue over the last minutes, for the live page: one sample per second.

use std::time::{Duration, Instant};

use serde::Serialize;
use shortline_gate::{Gate, GateSnapshot};

use super::opening::Opened;
use super::quiet::Quiet;
use crate::history::History;

/// A sample of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Time since the start, in seconds.
    pub at_seconds: f64,
    /// The sum of the estimates of the running requests, in nanoseconds.
    pub load_ns: u64,
    /// The capacity: the most load that was admitted, in nanoseconds. `None` without a limit.
    pub capacity_ns: Option<u64>,
    /// Requests that waited.
    pub waiting: usize,
    /// Requests that ran.
    pub running: usize,
    /// Requests that had completed so far.
    pub completed: u64,
}

/// Takes a sample of the gate every second from now on. Also logs when the gate has changed nothing for minutes, and when it
/// opens up.
pub fn start(gate: Gate, started: Instant, quiet: Quiet, opened: Opened) -> History<Sample> {
    History::start(started, move |at| {
        let seen = gate.snapshot();
        if let Some(line) = quiet.look(at, &seen) {
            tracing::info!("{line}");
        }
        if let Some(line) = opened.look(at, &seen) {
            tracing::warn!("{line}");
        }
        Sample::new(at, &seen)
    })
}

impl Sample {
    /// The sample of a snapshot.
    pub fn new(at: Duration, snapshot: &GateSnapshot) -> Self {
        Self {
            at_seconds: at.as_secs_f64(),
            load_ns: snapshot.load_ns,
            capacity_ns: snapshot.capacity_ns,
            waiting: snapshot.waiting,
            running: snapshot.running,
            completed: snapshot.totals.completed,
        }
    }
}
