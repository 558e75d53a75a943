//! What a relay allows its clients.

use std::time::Duration;

/// The limits of a relay; the defaults are what the command line documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections of clients. One more is told so in its protocol and closed.
    pub connections_max: usize,
    /// From the acceptance to the end of authentication, the connection to the backend included.
    pub authentication_time_max: Duration,
    /// To connect to the backend, each of its addresses together.
    pub connect_time_max: Duration,
    /// How long connections with a transaction under way may go on after the end was asked for.
    pub drain_time_max: Duration,
    /// How long a client may keep a transaction open without asking for anything; `None` sets no limit.
    pub idle_transaction_time_max: Option<Duration>,
    /// A message, in bytes of its body.
    pub message_bytes_max: u32,
    /// What is kept of a client whose transaction waits for admission, in bytes; the rest stays in
    /// its socket. A statement is classified by what fits.
    pub held_bytes_max: usize,
    /// Answers a client may be owed before no more is taken from it. So a client that pipelines
    /// without end comes to the end of a unit too.
    pub pipelined_max: usize,
    /// Prepared statements per connection whose type is remembered.
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
            // PostgreSQL's own: MaxAllocSize - 1.
            message_bytes_max: 0x3fff_fffe,
            held_bytes_max: 16 * 1024,
            pipelined_max: 1024,
            statements_max: 512,
            // A thread relays tens of thousands of transactions a second. With fewer of them each
            // finds more to do when it wakes, so that one transaction costs less.
            workers: std::thread::available_parallelism()
                .map_or(1, |processors| processors.get().div_ceil(2)),
        }
    }
}
