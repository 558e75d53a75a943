//! Virtual time: a heap of events, and a driver that fires the next one when every task is at rest.
//!
//! The tasks run on tokio's single-threaded scheduler, with its clock paused. Tokio's timers have a
//! precision of a millisecond, and a network needs better. So events have their own clock, in
//! nanoseconds. An event at `t` fires once tokio's clock has reached the millisecond that contains
//! `t`. The time is the later of the two clocks. Between two events, all tasks run until none can.
//!
//! Everything that happens goes into a digest, in order. Two runs of a seed are the same if their
//! digests are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use shortline_base::alarm::Alarm;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use crate::verdict::Fault;

/// The nanoseconds of a tick of tokio's clock.
const TICK_NS: u64 = 1_000_000;
/// The time that tokio's timers get in one step while no event is due.
const NAP_NS: u64 = 50_000_000;
/// The most events at one time. More are an alarm that goes off again and again.
const AT_ONCE_MAX: u32 = 10_000;
/// The most that an alarm may be late.
const ALARM_LATE_NS_MAX: u64 = 80_000;

/// The clock and the events to come.
pub struct World {
    state: Mutex<State>,
    began: Instant,
    rest: Arc<Rest>,
}

struct State {
    now_ns: u64,
    numbered: u64,
    events: BinaryHeap<Reverse<Event>>,
    random: ChaCha8Rng,
    /// The driver sleeps until this time.
    sleeps_until_ns: u64,
    driver: Option<Waker>,
    digest: u64,
    fired: u64,
    /// The first fault found.
    fault: Option<Fault>,
    /// The trace for people. `None`: not recorded.
    trace: Option<Vec<String>>,
}

struct Event {
    at_ns: u64,
    number: u64,
    fire: Box<dyn FnOnce() + Send>,
}

/// Tells the driver when every task is at rest, which is when the runtime is about to park.
#[derive(Default)]
pub struct Rest {
    state: Mutex<(Option<Waker>, bool)>,
}

impl Rest {
    /// Notes that the runtime is about to park.
    fn reached(&self) {
        let mut state = self.state.lock();
        if let Some(waker) = state.0.take() {
            state.1 = true;
            waker.wake();
        }
    }

    /// Ready once every other task is at rest.
    async fn wait(&self) {
        self.state.lock().1 = false;
        poll_fn(|context: &mut Context<'_>| {
            let mut state = self.state.lock();
            if state.1 {
                return Poll::Ready(());
            }
            state.0 = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// A runtime whose clock stands still while a task can run, and the object that learns when it
/// parks.
pub fn runtime() -> (Runtime, Arc<Rest>) {
    let rest: Arc<Rest> = Arc::default();
    let parking = Arc::clone(&rest);
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .on_thread_park(move || parking.reached())
        .build()
        .expect("a runtime of one thread needs nothing of the machine");
    (runtime, rest)
}

impl World {
    /// A world at time 0, in a runtime whose parking `rest` notes.
    pub fn new(random: ChaCha8Rng, rest: Arc<Rest>, traced: bool) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                now_ns: 0,
                numbered: 0,
                events: BinaryHeap::new(),
                random,
                sleeps_until_ns: 0,
                driver: None,
                digest: 0xcbf2_9ce4_8422_2325,
                fired: 0,
                fault: None,
                trace: traced.then(Vec::new),
            }),
            began: Instant::now(),
            rest,
        })
    }

    /// Nanoseconds since the world began.
    pub fn now_ns(&self) -> u64 {
        self.state.lock().now_ns.max(self.ticked_ns())
    }

    fn ticked_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Fires an event after `delay_ns`.
    pub fn after(&self, delay_ns: u64, fire: impl FnOnce() + Send + 'static) {
        let at_ns = self.now_ns() + delay_ns;
        let mut state = self.state.lock();
        state.numbered += 1;
        let number = state.numbered;
        state.events.push(Reverse(Event {
            at_ns,
            number,
            fire: Box::new(fire),
        }));
        if at_ns < state.sleeps_until_ns
            && let Some(driver) = state.driver.take()
        {
            driver.wake();
        }
    }

    /// Drops all events that have not fired. What they hold holds the world.
    pub fn end(&self) {
        loop {
            let events = std::mem::take(&mut self.state.lock().events);
            if events.is_empty() {
                return;
            }
        }
    }

    /// Waits for this time.
    pub async fn sleep(self: &Arc<Self>, delay_ns: u64) {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.after(delay_ns, move || {
            let _ = sender.send(());
        });
        let _ = receiver.await;
    }

    /// Draws a random value.
    pub fn draw<T>(&self, draw: impl FnOnce(&mut ChaCha8Rng) -> T) -> T {
        draw(&mut self.state.lock().random)
    }

    /// True with this probability.
    pub fn chance(&self, probability: f64) -> bool {
        probability > 0.0 && self.draw(|random| random.random_bool(probability))
    }

    /// Adds an event to the digest, and to the trace if there is one.
    pub fn note(&self, what: fmt::Arguments<'_>) {
        let now_ns = self.now_ns();
        let mut state = self.state.lock();
        let state = &mut *state;
        let mut digest = Digest(state.digest);
        digest.add(&now_ns.to_le_bytes());
        // Writing to a digest never fails.
        let _ = fmt::write(&mut digest, what);
        state.digest = digest.0;
        if let Some(trace) = &mut state.trace {
            let (ms, ns) = (now_ns / TICK_NS, now_ns % TICK_NS);
            trace.push(format!("{ms:>7}.{ns:06} ms  {what}"));
        }
    }

    /// A number that two runs share if and only if they went the same way.
    pub fn digest(&self) -> u64 {
        self.state.lock().digest
    }

    /// How many events have fired.
    pub fn fired(&self) -> u64 {
        self.state.lock().fired
    }

    /// Reports a fault. Only the first counts.
    pub fn report(&self, fault: Fault) {
        self.note(format_args!("FAULT: {fault}"));
        self.state.lock().fault.get_or_insert(fault);
    }

    /// The fault reported so far.
    pub fn fault(&self) -> Option<Fault> {
        self.state.lock().fault.clone()
    }

    /// Takes the trace so far, if there is one.
    pub fn take_trace(&self) -> Vec<String> {
        self.state.lock().trace.take().unwrap_or_default()
    }

    /// Fires one event after another, with all tasks at rest between them, until `look` has a
    /// result. `look` is called each time that all is at rest.
    pub async fn drive<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        let (mut last_ns, mut at_once) = (0, 0);
        loop {
            self.rest.wait().await;
            let now_ns = self.now_ns();
            at_once = if now_ns == last_ns { at_once + 1 } else { 0 };
            last_ns = now_ns;
            if at_once > AT_ONCE_MAX {
                self.report(Fault::Spins);
            }
            if let Some(result) = look() {
                return result;
            }
            let next_ns = self.next_ns().unwrap_or(u64::MAX);
            let tick_ns = next_ns / TICK_NS * TICK_NS;
            let ticked_ns = self.ticked_ns();
            if tick_ns > ticked_ns {
                self.nap(tick_ns.min(ticked_ns + NAP_NS)).await;
                continue;
            }
            if let Some(fire) = self.take_next() {
                fire();
            }
        }
    }

    fn next_ns(&self) -> Option<u64> {
        self.state.lock().events.peek().map(|next| next.0.at_ns)
    }

    fn take_next(&self) -> Option<Box<dyn FnOnce() + Send>> {
        let mut state = self.state.lock();
        let Reverse(event) = state.events.pop()?;
        state.now_ns = state.now_ns.max(event.at_ns);
        state.fired += 1;
        Some(event.fire)
    }

    /// Sleeps until then, or until an earlier event is added.
    async fn nap(&self, until_ns: u64) {
        let sleep = tokio::time::sleep_until(self.began + Duration::from_nanos(until_ns));
        let mut sleep = std::pin::pin!(sleep);
        let mut slept = false;
        poll_fn(|context| {
            let mut state = self.state.lock();
            if slept && state.driver.is_none() {
                return Poll::Ready(());
            }
            slept = true;
            state.sleeps_until_ns = until_ns;
            state.driver = Some(context.waker().clone());
            drop(state);
            sleep.as_mut().poll(context)
        })
        .await;
        let mut state = self.state.lock();
        state.driver = None;
        state.sleeps_until_ns = 0;
    }

    /// An alarm that is not set.
    pub fn alarm(self: &Arc<Self>) -> Box<dyn Alarm> {
        Box::new(SimulatedAlarm {
            world: Arc::clone(self),
            state: Arc::default(),
        })
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.number).cmp(&(other.at_ns, other.number))
    }
}

/// FNV-1a.
struct Digest(u64);

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text.as_bytes());
        Ok(())
    }
}

/// An alarm that goes off a little late, like the kernel's.
struct SimulatedAlarm {
    world: Arc<World>,
    state: Arc<Mutex<Set>>,
}

#[derive(Default)]
struct Set {
    /// Counts how often it was set. Earlier settings are void.
    times: u64,
    went_off: bool,
    waker: Option<Waker>,
}

impl Alarm for SimulatedAlarm {
    fn set(&self, delay: Duration) -> io::Result<()> {
        let times = {
            let mut set = self.state.lock();
            set.times += 1;
            set.went_off = false;
            set.times
        };
        let late_ns = self
            .world
            .draw(|random| random.random_range(0..ALARM_LATE_NS_MAX));
        let state = Arc::clone(&self.state);
        self.world
            .after(delay.as_nanos() as u64 + late_ns, move || {
                let mut set = state.lock();
                if set.times == times {
                    set.went_off = true;
                    if let Some(waker) = set.waker.take() {
                        waker.wake();
                    }
                }
            });
        Ok(())
    }

    fn poll_wait(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut set = self.state.lock();
        if std::mem::take(&mut set.went_off) {
            return Poll::Ready(Ok(()));
        }
        set.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
