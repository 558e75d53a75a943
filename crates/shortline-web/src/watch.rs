//! Who is connected, in which stage, and since when. One sweep over all connections enforces the
//! time limits. A timer in each connection would cost a seventh of the throughput of small
//! responses.
//!
//! | stage | left when | limit |
//! |---|---|---|
//! | idle | the first byte of a request arrives | `idle_time_max`; parked after [`PARK_AFTER`]. Once told to finish, `stall_time_max` |
//! | head | the request is complete (or the TLS handshake is) | `header_time_max` |
//! | response | the response is handed over | `stall_time_max` in which the socket takes nothing, and the client hardly anything of what is in there ([`stall`]) |
//! | tunnel | either side closes | the route's own, kept by the tunnel |
//!
//! A response is handed over before the socket has taken its end. Until it has, the limit of a response holds in the first two stages, too.
//!
//! The sweep also finds clients that have gone while bytes of a next request wait unread. Those
//! bytes keep a read from seeing the end of the stream.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use serde::Serialize;
use shortline_base::clock::now_ns;
use shortline_base::roster::{Place, Roster};
use shortline_base::socket::HangUp;
use shortline_link::TransportHandle;
use tokio::sync::Notify;

pub mod stall;

use crate::files::KernelCopy;
use crate::limits::Limits;
use crate::piped::Piped;

/// How often the connections are checked: the precision of all time limits.
pub const SWEEP_EVERY: Duration = Duration::from_millis(250);
/// An idle connection drops its parser after this time, to free its memory.
pub const PARK_AFTER: Duration = Duration::from_secs(1);

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// No request.
    Idle = 0,
    /// Part of a request's head, or of a TLS handshake.
    Head = 1,
    /// A response waits or is being sent.
    Response = 2,
    /// Another protocol passes through.
    Tunnel = 3,
}

/// An order to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Order {
    /// Nothing.
    None = 0,
    /// Keep only the socket until the next request.
    Park = 1,
    /// Finish what is under way, then close.
    Drain = 2,
    /// Close at once.
    Close = 3,
}

/// What the limits call for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Nothing,
    Order(Order),
    /// The responses that wait for their client's windows are given up.
    GiveUp,
}

/// One connection in the registry.
pub struct Watch {
    transport: TransportHandle,
    stage: AtomicU8,
    parked: AtomicBool,
    /// HTTP/2 and HTTP/3: incoming bytes need not be part of a request.
    multiplexed: AtomicBool,
    /// Responses under way.
    responses: AtomicU32,
    /// When a sweep first saw the connection without progress. Only the sweep sets it, so that a
    /// request need not read the clock.
    since_ns: AtomicU64,
    progress_seen: AtomicU64,
    /// The bytes the client had acknowledged halfway through the time that a response may stall.
    acknowledged_bytes: Mutex<Option<u64>>,
    /// Responses that wait for the client's window.
    windows_closed: AtomicU32,
    /// Tells them to look again.
    windows: Notify,
    /// The progress at which they were given up. `u64::MAX`: never.
    given_up_at: AtomicU64,
    /// Counts reads and writes that moved bytes.
    moves: AtomicU64,
    /// Counts writes and changes of the stage. Reads do not count, since a head that comes byte by
    /// byte must not take forever.
    progress: AtomicU64,
    order: AtomicU8,
    waker: Mutex<Option<Waker>>,
    /// The kernel's copy of the file of which a piece was last handed to the protocol.
    copy: Mutex<Option<Arc<KernelCopy>>>,
    /// The pipe of the response that passes through the kernel only, or of the last one that did.
    piped: Mutex<Option<Arc<Piped>>>,
}

impl Watch {
    /// The connection's transport.
    pub fn transport(&self) -> &TransportHandle {
        &self.transport
    }

    /// Registers the task that obeys orders, and returns the current one. `Park` is returned once.
    pub fn order(&self, context: &Context<'_>) -> Order {
        let mut waker = self.waker.lock();
        if !waker
            .as_ref()
            .is_some_and(|known| known.will_wake(context.waker()))
        {
            *waker = Some(context.waker().clone());
        }
        match self.order.load(Ordering::Acquire) {
            1 => {
                // If a stronger order comes in between, it stands.
                let _ = self
                    .order
                    .compare_exchange(1, 0, Ordering::AcqRel, Ordering::Acquire);
                Order::Park
            }
            2 => Order::Drain,
            3 => Order::Close,
            _ => Order::None,
        }
    }

    /// Notes that bytes came from the client.
    pub fn bytes_read(&self) {
        self.moves.fetch_add(1, Ordering::Relaxed);
        let idle = self.stage.load(Ordering::Relaxed) == Stage::Idle as u8;
        if idle && !self.multiplexed.load(Ordering::Relaxed) {
            self.enter(Stage::Head);
        }
    }

    /// Notes that the connection speaks HTTP/2 or HTTP/3 from now on.
    pub fn set_multiplexed(&self) {
        self.multiplexed.store(true, Ordering::Relaxed);
        self.enter(Stage::Idle);
    }

    /// Notes that the client's socket took bytes.
    pub fn bytes_written(&self) {
        self.moves.fetch_add(1, Ordering::Relaxed);
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that the next bytes are a piece of the file of this kernel copy.
    pub fn offer_copy(&self, copy: &Arc<KernelCopy>) {
        *self.copy.lock() = Some(Arc::clone(copy));
    }

    /// Takes the copy that was offered.
    pub fn take_copy(&self) -> Option<Arc<KernelCopy>> {
        self.copy.lock().take()
    }

    /// Lets the next response pass through the pipe that `make` makes, if the socket can do that and the one before has left.
    pub fn begin_pipe(&self, make: impl FnOnce() -> Option<Arc<Piped>>) -> Option<Arc<Piped>> {
        let mut piped = self.piped.lock();
        let is_free = piped.as_ref().is_none_or(|last| last.has_ended());
        if !is_free || !self.transport.socket().takes_pipes() {
            return None;
        }
        *piped = make();
        piped.clone()
    }

    /// The pipe whose bytes were promised.
    pub fn piped(&self) -> Option<Arc<Piped>> {
        self.piped.lock().clone()
    }

    /// A number that changes whenever bytes were read or written.
    pub fn moves(&self) -> u64 {
        self.moves.load(Ordering::Relaxed)
    }

    /// Notes that a TLS handshake begins.
    pub fn handshake_begins(&self) {
        self.enter(Stage::Head);
    }

    /// Notes that nothing of a request has come yet.
    pub fn waits_for_request(&self) {
        self.enter(Stage::Idle);
    }

    /// Notes that a request is complete. Its response waits from now on.
    pub fn response_begins(&self) {
        self.responses.fetch_add(1, Ordering::AcqRel);
        self.enter(Stage::Response);
    }

    /// Notes that a response was handed over or given up.
    pub fn response_ends(&self) {
        if self.responses.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.enter(Stage::Idle);
        }
    }

    /// Notes that another protocol passes through from now on.
    pub fn tunnel_begins(&self) {
        self.enter(Stage::Tunnel);
    }

    /// Ends the connection with a reset, now, so that its client does not take what it has for the
    /// whole. Closing would not do: the sending half says goodbye when it is dropped.
    pub fn reset(&self) {
        self.transport.socket().reset();
    }

    /// Notes that the connection keeps only its socket (`true`), or has a parser again.
    pub fn set_parked(&self, parked: bool) {
        self.parked.store(parked, Ordering::Release);
        if parked {
            // An idle connection must not hold a copy that nobody asked for.
            drop(self.take_copy());
            drop(self.piped.lock().take_if(|last| last.has_ended()));
        }
    }

    /// Runs `work` to its end, or gives it up (`None`) when the connection must close.
    pub async fn obeying<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|context| match self.order(context) {
            Order::Close | Order::Drain => Poll::Ready(None),
            Order::None | Order::Park => work.as_mut().poll(context).map(Some),
        })
        .await
    }

    fn enter(&self, stage: Stage) {
        self.progress.fetch_add(1, Ordering::Relaxed);
        self.stage.store(stage as u8, Ordering::Release);
    }

    fn give(&self, order: Order) {
        self.order.fetch_max(order as u8, Ordering::AcqRel);
        if let Some(waker) = self.waker.lock().take() {
            waker.wake();
        }
    }

    /// What the limits call for at `now_ns`.
    fn due(&self, limits: &Limits, now_ns: u64) -> Due {
        let since = Duration::from_nanos(now_ns.saturating_sub(self.unchanged_since_ns(now_ns)));
        match self.stage.load(Ordering::Acquire) {
            2 => self.due_of_stalled(since, limits.stall_time_max, now_ns),
            // The end of the last response does not fit into the socket yet.
            0 | 1 if self.transport.is_full() => {
                self.due_of_stalled(since, limits.stall_time_max, now_ns)
            }
            // The client may still have to take the last response.
            0 if since > limits.idle_time_max + limits.stall_time_max => Due::Order(Order::Close),
            // The connection has said goodbye, and its client has not taken even that.
            0 if since > limits.stall_time_max && self.is_draining() => Due::Order(Order::Close),
            0 if since > limits.idle_time_max => Due::Order(Order::Drain),
            0 if since > PARK_AFTER && !self.parked.load(Ordering::Acquire) => {
                Due::Order(Order::Park)
            }
            1 if since > limits.header_time_max => Due::Order(Order::Close),
            _ => Due::Nothing,
        }
    }

    fn is_draining(&self) -> bool {
        self.order.load(Ordering::Acquire) == Order::Drain as u8
    }

    fn unchanged_since_ns(&self, now_ns: u64) -> u64 {
        let progress = self.progress.load(Ordering::Relaxed);
        if self.progress_seen.swap(progress, Ordering::Relaxed) != progress {
            self.since_ns.store(now_ns, Ordering::Relaxed);
            *self.acknowledged_bytes.lock() = None;
        }
        self.since_ns.load(Ordering::Relaxed)
    }
}

/// Connections by stage.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ConnectionCounts {
    /// Open connections.
    pub open: usize,
    /// Without a request.
    pub idle: usize,
    /// With part of a request's head, or of a TLS handshake.
    pub head: usize,
    /// With a response under way.
    pub response: usize,
    /// Carrying another protocol.
    pub tunnel: usize,
}

/// All connections.
#[derive(Default)]
pub struct Registry {
    roster: Arc<Roster<Watch>>,
    per_address: Mutex<HashMap<IpAddr, usize>>,
}

/// A connection's place in the registry. Dropping it frees the place.
pub struct Registration {
    registry: Arc<Registry>,
    peer: IpAddr,
    /// The connection's watch.
    pub watch: Place<Watch>,
}

impl Registry {
    /// Connections open now.
    pub fn open(&self) -> usize {
        self.roster.open()
    }

    /// Connections of an address.
    pub fn open_of(&self, peer: IpAddr) -> usize {
        self.per_address.lock().get(&peer).copied().unwrap_or(0)
    }

    /// Registers a connection from `peer`, unless that address has its share already.
    pub fn register(
        self: &Arc<Self>,
        peer: IpAddr,
        per_address_max: usize,
        transport: impl FnOnce() -> TransportHandle,
    ) -> Option<Registration> {
        {
            let mut per_address = self.per_address.lock();
            let count = per_address.entry(peer).or_insert(0);
            if *count >= per_address_max {
                return None;
            }
            *count += 1;
        }
        let (watch, _) = self.roster.enter(Watch {
            transport: transport(),
            stage: AtomicU8::new(Stage::Idle as u8),
            parked: AtomicBool::new(true),
            multiplexed: AtomicBool::new(false),
            responses: AtomicU32::new(0),
            since_ns: AtomicU64::new(now_ns()),
            windows_closed: AtomicU32::new(0),
            windows: Notify::new(),
            given_up_at: AtomicU64::new(u64::MAX),
            moves: AtomicU64::new(0),
            progress: AtomicU64::new(0),
            progress_seen: AtomicU64::new(0),
            acknowledged_bytes: Mutex::new(None),
            order: AtomicU8::new(Order::None as u8),
            waker: Mutex::new(None),
            copy: Mutex::new(None),
            piped: Mutex::new(None),
        });
        Some(Registration {
            registry: Arc::clone(self),
            peer,
            watch,
        })
    }

    /// Gives every connection the order that the limits call for. Returns how many connections ran
    /// out of time.
    pub fn sweep(&self, limits: &Limits) -> u64 {
        let now_ns = now_ns();
        let mut expired = 0;
        let mut responding = Vec::new();
        let mut dues: Vec<(Arc<Watch>, Due)> = Vec::new();
        self.roster
            .for_each(|watch| match watch.due(limits, now_ns) {
                Due::Nothing if watch.stage.load(Ordering::Acquire) == Stage::Response as u8 => {
                    responding.push(Arc::clone(watch));
                }
                Due::Nothing => {}
                due => dues.push((Arc::clone(watch), due)),
            });
        for (watch, due) in dues {
            expired += u64::from(due != Due::Order(Order::Park));
            match due {
                Due::Order(order) => {
                    if order == Order::Close {
                        // Otherwise the bytes for a client that takes nothing would stay in the kernel for
                        // minutes.
                        watch.transport.socket().reset_on_close();
                    }
                    watch.give(order);
                }
                Due::GiveUp => watch.give_up(),
                Due::Nothing => {}
            }
        }
        close_abandoned(&responding);
        expired
    }

    /// Tells every connection to finish and close.
    pub fn drain(&self) {
        self.roster.for_each(|watch| watch.give(Order::Drain));
    }

    /// Lets every connection look again at what the server wants.
    pub fn wake(&self) {
        self.roster.for_each(|watch| watch.give(Order::None));
    }

    /// Ends every connection at once.
    pub fn close(&self) {
        self.roster.for_each(|watch| watch.give(Order::Close));
    }

    /// Waits until no connection is left.
    pub async fn empty(&self) {
        self.roster.empty().await;
    }

    /// Connections by stage now.
    pub fn counts(&self) -> ConnectionCounts {
        let mut counts = ConnectionCounts::default();
        self.roster.for_each(|watch| {
            counts.open += 1;
            match watch.stage.load(Ordering::Acquire) {
                0 => counts.idle += 1,
                1 => counts.head += 1,
                2 => counts.response += 1,
                _ => counts.tunnel += 1,
            }
        });
        counts
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.watch.transport.settle();
        let mut per_address = self.registry.per_address.lock();
        if let Some(count) = per_address.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                per_address.remove(&self.peer);
            }
        }
    }
}

fn close_abandoned(watches: &[Arc<Watch>]) {
    let mut asked = Vec::with_capacity(watches.len());
    let mut interest = Vec::with_capacity(watches.len());
    for watch in watches {
        match watch.transport.socket().hang_up() {
            HangUp::Known(true) => watch.give(Order::Close),
            HangUp::Known(false) => {}
            HangUp::Ask(descriptor) => {
                asked.push(watch);
                interest.push(PollFd::from_borrowed_fd(descriptor, PollFlags::RDHUP));
            }
        }
    }
    let at_once = Timespec::default();
    match rustix::event::poll(&mut interest, Some(&at_once)) {
        Ok(0) => {}
        Ok(_) => {
            let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
            for (watch, found) in asked.into_iter().zip(&interest) {
                if found.revents().intersects(gone) {
                    watch.give(Order::Close);
                }
            }
        }
        Err(error) => tracing::warn!(
            "cannot look for closed connections: {}",
            io::Error::from(error)
        ),
    }
}
