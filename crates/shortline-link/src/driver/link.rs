//! The link: one queue behind one lock, and one pacer task. It drives the queue: has the lock, the alarm, the sockets, the
//! device and discovery, and carries out what the queue answers.
//!
//! The path of a response: [`TransportHandle::submit`] puts a job into the queue;
//! [`JobHandle::poll_grant`] is ready when it may send a quantum; [`JobHandle::hand_over`] says how
//! many bytes went to the connection, [`JobHandle::finish`] that they were the last;
//! [`Transport::drained`] that they are in the socket. Dropping the handle ends the job, finished
//! or not.
//!
//! Where no grant has to wait, all this takes no system call but the clock's (which is none on
//! Linux), and the lock once: the grant is made inside `submit`, and a response that it covers whole
//! never enters the queue.
//!
//! [`TransportHandle::submit`]: crate::TransportHandle::submit
//! [`Transport::drained`]: crate::Transport::drained
//! [`JobHandle::poll_grant`]: crate::JobHandle::poll_grant
//! [`JobHandle::hand_over`]: crate::JobHandle::hand_over
//! [`JobHandle::finish`]: crate::JobHandle::finish

use std::future::poll_fn;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use shortline_base::alarm::{self, Alarm};
use shortline_base::clock::now_ns;
use shortline_base::socket::SendHalf;
use shortline_sched::{Aging, Growing, Needs, PathView, Policy};
use socket2::SockRef;
use tokio::time::MissedTickBehavior;

use super::device::{Device, Reading};
use super::discovery::{Discovery, Facts, LOOK_NS};
use super::socket::{Socket, SocketTable};
use crate::bands::qdisc::shaper_of;
use crate::bands::{BandMap, control_priority};
use crate::config::{LinkConfig, LinkError, LinkMode};
use crate::connections::{ConnectionId, Marks, Report};
use crate::queue::{Actions, Queue};
use crate::regulator::Pacing;
use crate::snapshot::{LinkSnapshot, SIZE_CLASSES, SizeClass};

/// The send buffer of 001's Linux 2.0: 32 KiB with the kernel's own overhead, which today's doubles for. Today's
/// grow to megabytes, so that no write blocks and there is nothing left to order.
const WRITER_BUFFER_BYTES: usize = 16 * 1024;
/// The device's counters are read at most this often.
const READING_NS_MIN: u64 = 1_000_000;
/// After so many looks at nothing none is made until something is sent: an idle server sleeps.
const IDLE_LOOKS_MAX: u32 = 100;

/// The uplink that all responses share.
pub struct Link {
    config: LinkConfig,
    /// In mode `bands`.
    bands: Option<Arc<BandMap>>,
    /// What SYN-ACKs have for their priority.
    control_priority: u32,
    pub(crate) state: Mutex<State>,
    device: Mutex<DeviceState>,
    /// In mode `auto`.
    discovery: Option<Mutex<Discovery>>,
    /// Whether a pacer waits to hear what is written: always in mode `paced`, at times in `auto`.
    paces: AtomicBool,
    /// What new connections inherit.
    unsent_bytes_max: u32,
    alarm: Box<dyn Alarm>,
    /// When the alarm goes off; in the past: it is not set. 0 once [`Link::run`] has seen it.
    pub(crate) armed_ns: AtomicU64,
}

/// What the link's lock guards.
pub(crate) struct State {
    pub queue: Queue,
    pub sockets: SocketTable,
}

enum DeviceState {
    Unknown,
    None,
    Known {
        device: Device,
        enqueued_at_start: u64,
    },
}

impl Link {
    /// A link as `config` says; call inside a runtime, and run [`Link::run`] beside the server.
    pub fn new(config: LinkConfig) -> Result<Arc<Self>, LinkError> {
        config.check()?;
        let bands = match config.mode {
            LinkMode::Bands => Some(Arc::new(BandMap::open(&config)?)),
            LinkMode::Auto
            | LinkMode::Paced
            | LinkMode::Slots
            | LinkMode::Writers
            | LinkMode::Off => None,
        };
        let banded_device = bands.as_ref().map(|bands| &bands.device);
        let device = match config.device.as_ref().or(banded_device) {
            Some(name) => DeviceState::open(name)?,
            None => DeviceState::Unknown,
        };
        let queue = Queue::new(&config, bands.clone(), now_ns());
        Ok(Arc::new(Self {
            unsent_bytes_max: queue.regulator.unsent_bytes_max(),
            state: Mutex::new(State {
                queue,
                sockets: SocketTable::default(),
            }),
            control_priority: control_priority(config.mode, bands.as_deref()),
            bands,
            device: Mutex::new(device),
            discovery: (config.mode == LinkMode::Auto)
                .then(|| Mutex::new(Discovery::new(config.rate_min))),
            paces: AtomicBool::new(config.mode == LinkMode::Paced),
            alarm: alarm::alarm().map_err(LinkError::Timer)?,
            armed_ns: AtomicU64::new(0),
            config,
        }))
    }

    /// Sets on a socket that listens already what its connections inherit: how much unsent data the
    /// kernel takes before the socket counts as not writable (what it took can no longer be
    /// reordered), and that acknowledgements may wait for a response to leave with.
    /// And what they do not inherit, but its SYN-ACKs have: the priority.
    pub fn prepare_listener(&self, socket: impl AsFd) -> std::io::Result<()> {
        let socket = SockRef::from(&socket);
        // The acknowledgement of a connection's first request may then leave with the response, as
        // those of later ones do, instead of by itself, 66 bytes on the link.
        socket.set_tcp_quickack(false)?;
        socket.set_priority(self.control_priority)?;
        if self.config.mode == LinkMode::Writers {
            socket.set_send_buffer_size(WRITER_BUFFER_BYTES)?;
        }
        socket.set_tcp_notsent_lowat(self.unsent_bytes_max)
    }

    /// The order of the responses.
    pub fn policy(&self) -> Policy {
        self.config.policy
    }

    pub(crate) fn new_socket(&self, socket: Box<dyn SendHalf>, peer: IpAddr) -> Socket {
        Socket::new(socket, peer, self.config.packet_header_bytes)
    }

    /// Enters a new connection to the address `local` into the queue, if its jobs are to wait for grants.
    pub(crate) fn enter(
        &self,
        socket: &Arc<Socket>,
        local: IpAddr,
    ) -> Option<(ConnectionId, Arc<Marks>)> {
        let loopback = socket.address.to_canonical().is_loopback();
        if self.config.mode == LinkMode::Off || (loopback && !self.config.schedule_loopback) {
            return None;
        }
        let follows_device = matches!(self.config.mode, LinkMode::Paced | LinkMode::Auto);
        if !loopback && follows_device {
            self.find_device(local);
        }
        if let Some(bands) = &self.bands
            && bands.tell_new
        {
            socket.half().set_priority(bands.control);
        }
        let packets = socket.packets();
        let mut state = self.state.lock();
        let (id, marks) = state.queue.open(packets, self.unsent_bytes_max);
        state.sockets.insert(id, Arc::clone(socket));
        Some((id, marks))
    }

    /// The connection's path now, if the order goes by paths: no system call else.
    pub(crate) fn path(&self, socket: &Socket, has_sent: bool) -> Option<PathView> {
        (self.config.policy.needs() == Needs::Path).then(|| socket.path(has_sent))
    }

    /// Makes the grants that have to wait, and in mode `auto` looks at the uplink, until the process
    /// ends.
    pub async fn run(self: Arc<Self>) -> std::io::Result<()> {
        match &self.discovery {
            None => self.grant_when_due().await,
            Some(discovery) => tokio::select! {
                failed = self.grant_when_due() => failed,
                () = self.discover(discovery) => Ok(()),
            },
        }
    }

    async fn discover(&self, discovery: &Mutex<Discovery>) {
        let mut looks = tokio::time::interval(Duration::from_nanos(LOOK_NS));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut grants_total, mut idle_looks) = (0, 0);
        loop {
            looks.tick().await;
            let now_ns = now_ns();
            self.read_shaper(discovery, now_ns);
            let Some(facts) = self.facts(&mut grants_total, now_ns) else {
                idle_looks += 1;
                if idle_looks == IDLE_LOOKS_MAX {
                    let rest = discovery.lock().rest();
                    self.with_queue(now_ns, |queue| queue.let_go(rest));
                    self.granted_since(grants_total).await;
                    idle_looks = 0;
                }
                continue;
            };
            idle_looks = 0;
            let reading = self.read_device();
            let (pacing, let_go) = discovery.lock().look(Facts { reading, ..facts });
            self.paces
                .store(matches!(pacing, Pacing::Rate(_)), Ordering::Release);
            self.with_queue(now_ns, |queue| {
                queue.let_go(let_go);
                queue.pace(pacing, now_ns);
            });
        }
    }

    /// What discovery goes by, but for the device's counters; none if nothing was sent since `grants_total` grants and
    /// nothing waits to be, for then nothing can be seen.
    fn facts(&self, grants_total: &mut u64, now_ns: u64) -> Option<Facts> {
        let State { queue, sockets } = &mut *self.state.lock();
        let idle = queue.grants_total == *grants_total && queue.scheduler.is_empty();
        *grants_total = queue.grants_total;
        if idle {
            return None;
        }
        let facts = queue.facts();
        let socket_of = |id| sockets.get(id).map(|socket| (id, Arc::clone(socket)));
        Some(Facts {
            now_ns,
            charged_bytes_total: facts.charged_bytes_total,
            limited_by: facts.limited_by,
            recent: facts.recent.into_iter().filter_map(socket_of).collect(),
            reading: None,
        })
    }

    /// Ready once another grant is made after so many.
    async fn granted_since(&self, grants_total: u64) {
        poll_fn(|context| {
            let queue = &mut self.state.lock().queue;
            if queue.grants_total != grants_total {
                return Poll::Ready(());
            }
            queue.waits_for_grant = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Asks what the kernel states of the device, if it is known by now and was not asked lately.
    fn read_shaper(&self, discovery: &Mutex<Discovery>, now_ns: u64) {
        if !discovery.lock().is_shaper_stale(now_ns) {
            return;
        }
        let name = match &*self.device.lock() {
            DeviceState::Known { device, .. } => device.name().to_owned(),
            DeviceState::Unknown | DeviceState::None => return,
        };
        discovery.lock().set_shaper(shaper_of(&name), now_ns);
    }

    fn read_device(&self) -> Option<Reading> {
        match &mut *self.device.lock() {
            DeviceState::Known { device, .. } => device.read().ok(),
            DeviceState::Unknown | DeviceState::None => None,
        }
    }

    async fn grant_when_due(&self) -> std::io::Result<()> {
        let mut read_ns = 0;
        loop {
            alarm::wait(&*self.alarm).await?;
            if self.counts_segments() && now_ns().saturating_sub(read_ns) >= READING_NS_MIN {
                read_ns = now_ns();
                self.observe_device();
            }
            let due_ns = self.armed_ns.swap(0, Ordering::AcqRel);
            let now_ns = now_ns();
            self.with_queue(now_ns, |queue| {
                if due_ns > 0 {
                    queue.regulator.woke_late(now_ns.saturating_sub(due_ns));
                }
            });
        }
    }

    /// The rate that grants follow now, in bits per second, if there is one.
    pub fn rate_bps(&self) -> Option<u64> {
        self.state.lock().queue.rate().map(|rate| rate.bps())
    }

    /// The link's state now.
    pub fn snapshot(&self) -> LinkSnapshot {
        let (device, wire_bytes) = match &mut *self.device.lock() {
            DeviceState::Known {
                device,
                enqueued_at_start,
            } => {
                let sent = device
                    .read()
                    .map_or(0, |reading| reading.enqueued_bytes - reading.backlog_bytes);
                (
                    Some(device.name().to_owned()),
                    Some(sent.saturating_sub(*enqueued_at_start)),
                )
            }
            DeviceState::Unknown | DeviceState::None => (None, None),
        };
        let now_ns = now_ns();
        let queue = &mut self.state.lock().queue;
        let mut size_classes = SIZE_CLASSES
            .map(|(_, name)| SizeClass {
                name,
                ..SizeClass::default()
            })
            .to_vec();
        for (_, job) in queue.scheduler.jobs() {
            let class = SIZE_CLASSES
                .iter()
                .position(|(most, _)| job.work_total <= *most)
                .unwrap_or(0);
            size_classes[class].jobs += 1;
            size_classes[class].remaining_bytes += job.remaining();
        }
        let (jobs, jobs_waiting) = (queue.scheduler.len(), queue.scheduler.waiting());
        let jobs_blocked = queue.blocked();
        LinkSnapshot {
            mode: self.config.mode,
            policy: self.config.policy.to_string(),
            aging: self.config.urgency.aging().map(Aging::factor),
            growing: self.config.urgency.growing().map(Growing::factor),
            cutoffs_bytes: queue.scheduler.cutoffs().map(<[u64]>::to_vec),
            rate_bps: queue.rate().map(|rate| rate.bps()),
            discovered: self
                .discovery
                .as_ref()
                .map(|found| found.lock().discovered()),
            device,
            jobs,
            jobs_waiting,
            jobs_blocked,
            jobs_sending: jobs - jobs_waiting - jobs_blocked,
            size_classes,
            queue_bytes: queue.regulator.queue_bytes(now_ns),
            slots_held: queue.regulator.slots_held(),
            band_changes_total: self.bands.is_some().then_some(queue.band_changes_total),
            quantum_bytes: queue.quantum(),
            grants_total: queue.grants_total,
            refunds_total: queue.refunds_total,
            wire_bytes_total: wire_bytes.unwrap_or(queue.charged_total),
        }
    }

    /// When it is to hear that a connection has drained, whoever wrote the bytes.
    pub(crate) fn listens(&self) -> Report {
        match self.config.mode {
            LinkMode::Writers => Report::Always,
            _ if self.counts_segments() => Report::IfCharged,
            _ => Report::IfAwaited,
        }
    }

    pub(crate) fn counts_segments(&self) -> bool {
        self.paces.load(Ordering::Acquire)
    }

    /// What was charged to the connection is in its socket, which holds so many payload bytes more back than before.
    pub(crate) fn drained(&self, id: ConnectionId, held_back_bytes: u32) {
        let now_ns = now_ns();
        self.with_queue(now_ns, |queue| {
            queue.drained(id, now_ns);
            queue.held_back(id, held_back_bytes);
        });
    }

    pub(crate) fn blocked(&self, id: ConnectionId) {
        self.with_queue(now_ns(), |queue| queue.blocked_by_socket(id));
    }

    pub(crate) fn handshake_done(&self, id: ConnectionId, client: u128) {
        self.with_queue(now_ns(), |queue| queue.handshake_done(id, client));
    }

    pub(crate) fn ended(&self, id: ConnectionId) {
        self.with_queue(now_ns(), |queue| queue.ended(id));
    }

    /// Nobody has a handle of the connection any more.
    pub(crate) fn close(&self, id: ConnectionId) {
        let mut state = self.state.lock();
        let State { queue, sockets } = &mut *state;
        let closed = queue.close(id).then(|| sockets.remove(id));
        drop(state);
        drop(closed);
    }

    /// Changes the queue, then makes the grants that became due.
    pub(crate) fn with_queue<T>(&self, now_ns: u64, change: impl FnOnce(&mut Queue) -> T) -> T {
        let mut state = self.state.lock();
        let State { queue, sockets } = &mut *state;
        let result = change(queue);
        queue.dispatch(sockets, now_ns);
        self.leave(state, now_ns);
        result
    }

    /// Gives the lock back and does what the queue has decided: tells sockets, wakes the jobs that got a grant, and
    /// sets the alarm for the next one unless it will go off before that anyway.
    pub(crate) fn leave(&self, mut state: MutexGuard<'_, State>, now_ns: u64) {
        let look_again_ns = state.queue.take_look_again_ns();
        match state.queue.take_actions() {
            Some(actions) => carry_out(actions, state),
            None => drop(state),
        }
        let Some(delay_ns) = look_again_ns else {
            return;
        };
        let due_ns = now_ns + delay_ns;
        let armed_ns = self.armed_ns.load(Ordering::Acquire);
        if armed_ns <= now_ns || due_ns < armed_ns {
            self.armed_ns.store(due_ns, Ordering::Release);
            // It can only fail for a descriptor that is not a timer.
            let _ = self.alarm.set(Duration::from_nanos(delay_ns));
        }
    }

    fn find_device(&self, local: IpAddr) {
        let mut state = self.device.lock();
        if matches!(*state, DeviceState::Unknown) {
            *state = Device::name_of(local)
                .and_then(|name| DeviceState::open(&name).ok())
                .unwrap_or(DeviceState::None);
        }
    }

    /// Corrects the pacer by the device's counters. The pacer's own task does it and nobody else:
    /// between a write and the word that it is done, the counters are ahead of the model, and a
    /// reading just then holds up the next grant (3 % of the mean at 10 Mbit/s).
    fn observe_device(&self) {
        let mut state = self.device.lock();
        let DeviceState::Known { device, .. } = &mut *state else {
            return;
        };
        // The queue's lock is held over the reading, so that no write falls between the two.
        let mut held = self.state.lock();
        match device.read() {
            Ok(reading) => held.queue.regulator.observe(reading, now_ns()),
            // The interface has vanished: go on with what is charged.
            Err(_) => *state = DeviceState::None,
        }
    }

    pub(crate) fn reads_device(&self) -> bool {
        matches!(*self.device.lock(), DeviceState::Known { .. })
    }

    /// Where no device is read, the socket's own count corrects what was charged for it.
    pub(crate) fn correct_by_socket(&self, id: ConnectionId, socket: &Socket) {
        if !self.counts_segments() || self.reads_device() {
            return;
        }
        if let Ok(sent_bytes) = socket.wire_bytes_sent() {
            // Where less was sent than was charged, the next grant may be due now.
            self.with_queue(now_ns(), |queue| queue.correct(id, sent_bytes));
        }
    }
}

/// Does what the queue has decided, and gives the lock back in between: what can wait until then waits.
fn carry_out(actions: Actions, mut state: MutexGuard<'_, State>) {
    for (id, setting) in actions.set {
        state.sockets.set(id, setting);
    }
    let gone = actions.gone.into_iter();
    let closed: Vec<_> = gone.map(|id| state.sockets.remove(id)).collect();
    drop(state);
    drop(closed);
    actions.wake.into_iter().for_each(Waker::wake);
}

impl DeviceState {
    fn open(name: &str) -> Result<Self, LinkError> {
        let mut device = Device::open(name)?;
        let enqueued_at_start = device.read().map_or(0, |reading| reading.enqueued_bytes);
        Ok(Self::Known {
            device,
            enqueued_at_start,
        })
    }
}
