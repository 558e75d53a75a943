//! The limits of a relay's clients.

use std::time::Duration;

/// The limits of a relay. The command line documents the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most open connections of clients. One more gets an error in its protocol and is closed.
    pub connections_max: usize,
    /// The longest time from accepting a connection to the end of its authentication. This includes connecting to
    /// the backend.
    pub authentication_time_max: Duration,
    /// The longest time to connect to the backend, for all its addresses together.
    pub connect_time_max: Duration,
    /// How long transactions under way may go on after shutdown begins.
    pub drain_time_max: Duration,
    /// How long a client may keep a transaction open without asking for anything. `None` sets no limit.
    pub idle_transaction_time_max: Option<Duration>,
    /// The largest message, in bytes of its body.
    pub message_bytes_max: u32,
    /// The most bytes held for a client whose transaction waits for admission. The rest stays in its
    /// socket. A statement is classified by the held bytes.
    pub held_bytes_max: usize,
    /// The most outstanding answers of a client. Then the relay stops reading from it. So the units of
    /// a client that pipelines without end do end.
    pub pipelined_max: usize,
    /// The most prepared statements per connection whose type is remembered.
    pub statements_max: usize,
    /// Threads that serve connections.
    pub workers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            authentication_time_max: Duration::from_secs(60),
            connect_time_max: Duration::from_secs(10),
            drain_time_max: Duration::from_secs(30),
            idle_transaction_time_max: None,
            // PostgreSQL's own limit: MaxAllocSize - 1.
            message_bytes_max: 0x3fff_fffe,
            held_bytes_max: 16 * 1024,
            pipelined_max: 1024,
            statements_max: 512,
            // A thread relays tens of thousands of transactions a second. With fewer threads, each
            // finds more work when it wakes, so a transaction costs less.
            workers: std::thread::available_parallelism()
                .map_or(1, |processors| processors.get().div_ceil(2)),
        }
    }
}
