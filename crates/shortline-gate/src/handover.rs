//! A gate's restart without a dropped client: a new process takes over the listening sockets and the clients of a
//! running one, over a Unix socket that both name (`--handover`).
//!
//! | part | what it does |
//! |---|---|
//! | `wire` | the connection between the two: frames with file descriptors |
//! | `message` | what they say, and what is known of a session |
//! | `departures` | sessions that rest and wait for their turn to go |
//! | `giver` | the old process's part |
//! | `taker` | the new process's part |
//! | `arrivals` | sessions that have come and wait for a thread |
//! | `cancels` | cancel requests for sessions that are still the old process's |
//!
//! ```text
//! new                                  old
//! Hello(version, kind)        ->           checks both
//!                             <-       Sockets(listening sockets, size of the pool)
//! Ready                       ->           accepts nobody from now on
//!                             <-       Places(connections that the new pool may have)
//!                             <-       Session(state, socket)
//! Taken, or Refused           ->
//!                             <-       Go
//! Cancel(key)                 ->           for a session that is still here
//! ```
//!
//! **Who owns a client.** The old process owns it until it has sent `Go`, and does not read from its socket after it
//! has sent the session. The new process serves it after it has received `Go`. If the new process dies or refuses
//! before that, the old one goes on where it stopped.
//!
//! **How many connections to the backend.** The pool's places move. The old process closes what it does not need,
//! and tells the new one how many places that makes. So there are never more than the pool's size over both.

mod arrivals;
mod cancels;
mod departures;
mod giver;
mod message;
mod taker;
mod wire;

pub use arrivals::{Arrival, ArrivalError, Arrivals};
pub use cancels::Cancels;
pub use departures::{Departures, Offer, Stay, Stays};
pub use giver::{GiveError, Given, Giver};
pub use message::{
    Blob, Listening, Message, MysqlState, PostgresState, PreparedState, ProtocolState,
    SessionState, VERSION, Variable,
};
pub use taker::{TakeError, Taker, Taking};
pub use wire::{Receiver, Sender, WireError, split};
