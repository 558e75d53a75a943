//! Files compressed on the fly: made once, kept in the cache like a sibling, and so of a known length when they are sent.
//!
//! | who asks | gets |
//! |---|---|
//! | while nothing is made of the file | waits until it is made, [`WAIT_MAX`] at most; then the file as it is |
//! | while it is being made | waits for the same |
//! | while more than [`BACKLOG_BYTES_MAX`] are to be made before it | the file as it is, at once |
//! | for a file that hardly becomes shorter | the file as it is; that is kept, too |
//!
//! The work is done by threads that may block, half as many as there are processors, the shortest file first. So a busy server
//! is held up by nothing that it would not do without compression. What was made holds as long as its original does
//! ([`Variant::proof`]).

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread::available_parallelism;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use shortline_base::world::run_blocking;
use tokio::sync::oneshot;

use super::cache::{EntryCache, Key};
use super::encoding::Coding;
use super::entry::{Stamp, Variant};
use super::file::OpenFile;
use crate::compress::encoder::{Effort, Encoder};

/// How long a response waits for the first of its kind.
const WAIT_MAX: Duration = Duration::from_millis(250);
/// Bytes of files that are being made or wait for it. A single file may have more.
const BACKLOG_BYTES_MAX: u64 = 16 << 20;
/// What is read of a file at a time.
const READ_BYTES: usize = 256 << 10;
/// What is made must be shorter than its original by this part of it.
const GAIN_PART: u64 = 20;

/// What was made of a file.
#[derive(Debug)]
pub(super) struct Made {
    /// What it was made of. It is not kept for this.
    original: Weak<Variant>,
    /// What proves that another has the same bytes.
    proof: Option<Stamp>,
    /// `None`: nothing that would be worth it.
    pub(super) variant: Option<Arc<Variant>>,
}

/// A file that is to be compressed.
#[derive(Debug)]
pub(super) struct Order {
    /// Where it is kept.
    pub(super) key: Key,
    /// The file.
    pub(super) original: Arc<Variant>,
    /// How.
    pub(super) coding: Coding,
}

/// The files that are being compressed.
#[derive(Debug)]
pub(super) struct Makers {
    state: Mutex<State>,
    running_max: usize,
}

#[derive(Debug, Default)]
struct State {
    /// Who waits for each.
    waiters: HashMap<Key, Vec<Waiter>>,
    /// Those that nobody works at, the shortest first, and then in turn.
    waiting: BTreeMap<(u64, u64), Order>,
    orders: u64,
    backlog_bytes: u64,
    running: usize,
}

type Waiter = oneshot::Sender<Option<Arc<Made>>>;

/// What becomes of an order.
enum Entered {
    /// It has been made.
    Made(Arc<Made>),
    Waits(oneshot::Receiver<Option<Arc<Made>>>),
    /// Too much is to be made before it.
    Full,
}

impl Made {
    /// Whether it is right for the file as it is now.
    pub(super) fn holds_for(&self, original: &Arc<Variant>) -> bool {
        self.original.as_ptr() == Arc::as_ptr(original)
            || self.proof.is_some_and(|proof| proof == original.stamp())
    }

    /// Bytes of memory.
    pub(super) fn kept_bytes(&self) -> u64 {
        let made = self.variant.as_ref();
        made.map_or(0, |variant| variant.file.kept_bytes())
    }
}

impl Makers {
    pub(super) fn new() -> Arc<Self> {
        let processors = available_parallelism().map_or(1, usize::from);
        Arc::new(Self {
            state: Mutex::default(),
            running_max: (processors / 2).max(1),
        })
    }

    /// Whether a file of this length would be made soon.
    pub(super) fn has_room(&self, key: &Key, bytes: u64) -> bool {
        let state = self.state.lock();
        state.waiters.contains_key(key) || state.has_room(bytes)
    }

    /// What is made of a file. `None`: it takes too long, or fails.
    pub(super) async fn make(
        self: &Arc<Self>,
        cache: &EntryCache,
        order: Order,
    ) -> Option<Arc<Made>> {
        let waits = match self.enter(cache, order) {
            Entered::Made(made) => return Some(made),
            Entered::Full => return None,
            Entered::Waits(waits) => waits,
        };
        let made = tokio::time::timeout(WAIT_MAX, waits).await;
        made.ok()?.ok()?
    }

    fn enter(self: &Arc<Self>, cache: &EntryCache, order: Order) -> Entered {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        if let Some(waiters) = state.waiters.get_mut(&order.key) {
            waiters.push(sender);
            return Entered::Waits(receiver);
        }
        // Another may have become ready since this request looked. It was kept before its waiters were answered.
        let made = cache.made_for(&order.key);
        if let Some(made) = made.filter(|made| made.holds_for(&order.original)) {
            return Entered::Made(made);
        }
        let bytes = order.original.file.len();
        if !state.has_room(bytes) {
            return Entered::Full;
        }
        state.backlog_bytes += bytes;
        state.orders += 1;
        let turn = (bytes, state.orders);
        state.waiters.insert(order.key.clone(), vec![sender]);
        state.waiting.insert(turn, order);
        if state.running < self.running_max {
            state.running += 1;
            let (makers, cache) = (Arc::clone(self), cache.clone());
            // The work goes on when those who asked for it have gone.
            tokio::spawn(run_blocking(move || makers.work(&cache)));
        }
        Entered::Waits(receiver)
    }

    /// Makes what is ordered until nothing is.
    fn work(&self, cache: &EntryCache) {
        while let Some(order) = self.next() {
            let compressed = AssertUnwindSafe(|| compressed(&order.original.file, order.coding));
            // A fault in a library must not leave its waiters and its place behind.
            let made = match catch_unwind(compressed) {
                Ok(Ok(bytes)) => Some(Arc::new(order.made(cache, bytes))),
                Ok(Err(_)) | Err(_) => None,
            };
            if let Some(made) = &made {
                cache.keep_made(order.key.clone(), Arc::clone(made));
            }
            self.answer(&order, &made);
        }
    }

    fn next(&self) -> Option<Order> {
        let mut state = self.state.lock();
        let next = state.waiting.pop_first();
        if next.is_none() {
            state.running -= 1;
        }
        next.map(|(_, order)| order)
    }

    fn answer(&self, order: &Order, made: &Option<Arc<Made>>) {
        let mut state = self.state.lock();
        state.backlog_bytes -= order.original.file.len();
        let waiters = state.waiters.remove(&order.key).unwrap_or_default();
        for waiter in waiters {
            // Whoever has waited long enough is gone.
            let _ = waiter.send(made.clone());
        }
    }
}

impl State {
    fn has_room(&self, bytes: u64) -> bool {
        self.backlog_bytes == 0 || self.backlog_bytes + bytes <= BACKLOG_BYTES_MAX
    }
}

impl Order {
    fn made(&self, cache: &EntryCache, bytes: Bytes) -> Made {
        let length = self.original.file.len();
        let gains = bytes.len() as u64 <= length - length / GAIN_PART;
        let copies = Arc::clone(&cache.shared().copies);
        let variant = gains.then(|| Arc::new(self.original.coded(self.coding, bytes, copies)));
        Made {
            original: Arc::downgrade(&self.original),
            proof: self.original.proof(),
            variant,
        }
    }
}

/// The whole file in a coding.
fn compressed(file: &OpenFile, coding: Coding) -> io::Result<Bytes> {
    let mut encoder = Encoder::new(coding, Effort::Kept, Some(file.len()))?;
    let mut offset = 0;
    let mut made = Vec::new();
    while offset < file.len() {
        let left = usize::try_from(file.len() - offset).unwrap_or(usize::MAX);
        let piece = file.read_blocking(offset, left.min(READ_BYTES))?;
        encoder.write(&piece)?;
        made.extend_from_slice(&encoder.take());
        offset += piece.len() as u64;
    }
    made.extend_from_slice(&encoder.finish()?);
    made.shrink_to_fit();
    Ok(made.into())
}
