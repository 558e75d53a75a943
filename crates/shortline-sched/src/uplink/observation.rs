//! What the link saw of its uplink since it last looked.

/// What the link saw since the previous observation. It makes one every 5 to 20 ms while anything
/// is sent. After a pause the first one covers only those last milliseconds.
///
/// Every field may be missing or wrong, as each says. Impossible values are not believed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// When it was made, in nanoseconds from an origin of the link's choice. A time that goes back
    /// or jumps forward begins a new measurement.
    pub now_ns: u64,
    /// What left into the network in the interval, in bytes on the wire (by the device's counters
    /// or TCP's).
    pub sent_wire_bytes: u64,
    /// What receivers acknowledged in the interval, over all sampled connections, scaled to
    /// bytes on the wire.
    pub delivered_wire_bytes: u64,
    /// The queueing delay that many paths share: a low quantile, over the recently sampled paths,
    /// of the round-trip time less that path's smallest. `None`: nothing was sampled.
    pub shared_delay_ns: Option<u64>,
    /// A typical round-trip time of the sampled paths, queueing included, which is how long a
    /// change of the rate takes to show. `None`: 100 ms are assumed.
    pub rtt_ns: Option<u64>,
    /// Distinct paths (addresses of peers) behind `shared_delay_ns`.
    pub paths: u32,
    /// What was sent again in the interval, in bytes on the wire; part of `sent_wire_bytes`.
    pub lost_wire_bytes: u64,
    /// What kept us from sending more.
    pub limited_by: Limit,
    /// The queue of our own interface. `None`: not known.
    pub local: Option<LocalQueue>,
}

/// What kept the link from sending more than it did, for most of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Responses that could send waited for the pacing rate.
    Pacing,
    /// There was nothing to send.
    Application,
    /// Every response's connection was full: its windows, or its socket.
    Network,
}

/// The queue of the local interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalQueue {
    /// What waits in the qdisc, in bytes.
    pub backlog_bytes: u64,
    /// The rate at which it drains, as stated by the kernel (HTB, TBF, cake, the link's speed).
    pub rate_bps: Option<u64>,
}
