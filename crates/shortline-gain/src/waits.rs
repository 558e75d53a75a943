//! How long responses were on the link: what each of the servers makes of it.

use std::fmt;

use serde::Serialize;
use shortline_link::LinkConfig;
use shortline_sched::Policy;
use shortline_sim::results::Quantiles;

/// What is compared: an order in which the link serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Server {
    /// First come, first served: a server as it is found, behind the kernel's FIFO, is between this and fair sharing.
    Fifo,
    /// Fair sharing: behind fq_codel or cake.
    Fair,
    /// Shortline, by its default policy.
    Shortline,
}

/// All of them, in the order of tables.
pub const SERVERS: [Server; 3] = [Server::Fifo, Server::Fair, Server::Shortline];

impl Server {
    /// The order in which it serves.
    pub fn policy(self) -> Policy {
        match self {
            Self::Fifo => Policy::Fifo,
            Self::Fair => Policy::Fair,
            Self::Shortline => Policy::Shares,
        }
    }

    /// What a client may get in a row before it stands back, where the order has that: Shortline's default.
    pub fn burst_bytes(self) -> u64 {
        match self {
            Self::Fifo | Self::Fair => 0,
            Self::Shortline => LinkConfig::default().burst_bytes,
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fifo => "FIFO",
            Self::Fair => "fq_codel",
            Self::Shortline => "Shortline",
        })
    }
}

/// Mean and tail of some responses, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Waits {
    /// The mean.
    pub mean_s: f64,
    /// The 99th percentile.
    pub p99_s: f64,
}

/// Collects the waits of some responses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collected {
    count: u64,
    sum_s: f64,
    all: Quantiles,
}

impl Collected {
    pub(crate) fn add(&mut self, wait_s: f64) {
        self.count += 1;
        self.sum_s += wait_s;
        self.all.add(wait_s);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_s += other.sum_s;
        self.all.merge(&other.all);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn waits(&self) -> Waits {
        if self.count == 0 {
            return Waits::default();
        }
        let [p99_s] = self.all.at([0.99]);
        Waits {
            mean_s: self.sum_s / self.count as f64,
            p99_s,
        }
    }
}
