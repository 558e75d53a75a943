//! What every relay between a client and its database needs, whatever they speak.
//!
//! A relay is one to one: a connection of a client has a connection to the backend of its own, and
//! one task serves both. The parts:
//!
//! | part | what it does |
//! |---|---|
//! | [`serve`] | accepts on several threads, counts connections, ends them |
//! | [`RelayConfig`], [`Limits`] | what a relay is told |
//! | [`Stream`], [`Socket`] | a socket with TLS or without; the kernel's, or a simulated one |
//! | [`Side`] | one of the two of a session, with what it has not taken yet |
//! | [`proxy`] | who the client is, as a proxy before us says |
//! | [`tls`] | certificates towards clients, checks of the backend's |
//! | [`Upstream`] | connects to the backend within a limit of time |
//! | [`Outbox`], [`with_scratch`] | bytes from one side to the other: read into the thread's one buffer, written from there, kept only where the receiver does not take them |
//! | [`Session`], [`Protocol`] | relays between the two, and what they say to each other |
//! | [`Work`] | the unit of work: there is none, it waits for admission, or it runs |
//! | [`Waits`] | whose wait a cancel request or a KILL ends |
//! | [`Registry`], [`Handle`] | the open connections, and what they are told from outside |
//!
//! So an idle connection holds no buffer, and a slow one holds one read's worth at most.

mod config;
mod handle;
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
pub use handle::{About, ClientState, ClientView, Handle, Order};
pub use limits::Limits;
pub use listener::{Listener, serve};
pub use outbox::{Outbox, SCRATCH_BYTES, with_scratch};
pub use registry::{ConnectionCounts, Registration, Registry};
pub use session::{End, Exchange, Protocol, Session, open_in_time};
pub use side::{LINGER_TIME_MAX, Side, lingering_close};
pub use socket::Socket;
pub use stream::Stream;
pub use task::AbortOnDrop;
pub use upstream::{ConnectError, Upstream};
pub use waits::{Entry, Waits};
pub use work::{Denied, Work};
