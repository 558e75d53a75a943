//! The common part of the relays between a client and its database.
//!
//! A relay is one to one: each client's connection has its own connection to the backend, and one task
//! serves both. With a pool, the connection to the backend is lent. The parts:
//!
//! | part | what it does |
//! |---|---|
//! | [`serve`] | accepts on several threads, counts connections, ends them |
//! | [`RelayConfig`], [`Limits`] | the settings of a relay |
//! | [`Stream`], [`Socket`] | a socket with TLS or without; the kernel's, or a simulated one |
//! | [`Side`] | a side of a session, with the bytes that it has not taken yet |
//! | [`proxy`] | reads the client's address from a proxy's header |
//! | [`tls`] | certificates towards clients, checks of the backend's |
//! | [`Upstream`] | connects to the backend within a time limit |
//! | [`Outbox`], [`with_scratch`] | relay bytes through one buffer per thread; keep only bytes not taken |
//! | [`Session`], [`Protocol`] | relays between the two sides; parses their messages |
//! | [`Work`] | the unit of work: there is none, it waits for admission, or it runs |
//! | `idle` | limits how long a transaction is open without work |
//! | [`Waits`] | finds the session that a cancel request or a KILL names |
//! | [`Registry`], [`Handle`] | the open connections, and orders to them |
//!
//! So an idle connection holds no buffer, and a slow one holds at most the bytes of one read.

mod config;
mod entry;
mod handle;
mod idle;
mod limits;
mod listener;
mod outbox;
pub mod proxy;
mod registry;
mod session;
mod side;
mod socket;
mod stream;
mod task;
pub mod tls;
mod upstream;
mod waits;
mod work;

pub use config::RelayConfig;
pub use entry::open_in_time;
pub use handle::{About, ClientState, ClientView, Handle, Order};
pub use limits::Limits;
pub use listener::{Incoming, Listener, serve};
pub use outbox::{Outbox, SCRATCH_BYTES, with_scratch};
pub use registry::{Accepting, ConnectionCounts, Registration, Registry};
pub use session::{End, Exchange, Protocol, Session};
pub use side::{LINGER_TIME_MAX, Side, lingering_close};
pub use socket::Socket;
pub use stream::Stream;
pub use task::AbortOnDrop;
pub use upstream::{ConnectError, Upstream, UpstreamError};
pub use waits::{Entry, Waits};
pub use work::{Denied, Work};
