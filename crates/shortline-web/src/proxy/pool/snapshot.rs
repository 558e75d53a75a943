//! What an operator sees of a backend.

use std::sync::atomic::Ordering;

use serde::Serialize;
use shortline_base::clock::now_ns;

use super::super::choice::{ONE, Standing};
use super::Backend;

/// A backend at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct BackendSnapshot {
    /// Where it is.
    pub address: String,
    /// Whether it seems to be up.
    pub up: bool,
    /// How likely it is to answer.
    pub state: Standing,
    /// Its weight now: less than that in the configuration after it has come back.
    pub weight: f64,
    /// Whether it is asked only if no other works.
    pub backup: bool,
    /// Requests under way.
    pub outstanding: usize,
    /// Open connections.
    pub connections_open: usize,
    /// How many of them have no request.
    pub connections_idle: usize,
    /// Connections opened since the start.
    pub connections_total: u64,
    /// Requests sent to it, retries included.
    pub requests_total: u64,
    /// How many of them were tried elsewhere before.
    pub retries_total: u64,
    /// How many of them it failed.
    pub failures_total: u64,
}

impl Backend {
    /// Its state now.
    pub fn snapshot(&self) -> BackendSnapshot {
        let streams: Vec<usize> = self.shared.lock().iter().map(|one| one.streams()).collect();
        let shared_idle = streams.iter().filter(|streams| **streams == 0).count();
        let connections_idle = self.idle.lock().len() + shared_idle;
        // A place is a connection of HTTP/1.1 or a stream of HTTP/2.
        let of_http1 = self.places.taken().saturating_sub(streams.iter().sum());
        let shared_busy = streams.len() - shared_idle;
        let now = self.candidate(false, now_ns());
        BackendSnapshot {
            address: self.label.clone(),
            up: now.standing == Standing::Up,
            state: now.standing,
            weight: now.weight as f64 / ONE as f64,
            backup: now.backup,
            outstanding: now.outstanding,
            connections_open: of_http1 + shared_busy + connections_idle,
            connections_idle,
            connections_total: self.connections_total.load(Ordering::Relaxed),
            requests_total: self.requests_total.load(Ordering::Relaxed),
            retries_total: self.retries_total.load(Ordering::Relaxed),
            failures_total: self.failures_total.load(Ordering::Relaxed),
        }
    }
}
