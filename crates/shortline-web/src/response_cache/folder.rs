//! Responses that are kept in a folder, so that they outlast a restart and need no memory.
//!
//! ```text
//! lock                whoever writes here holds it (flock)
//! ID.body             a body; written once
//! ID.head             what is known of the response (`entry`); there once the body is whole, by renaming ID.tmp
//! ```
//!
//! | module | |
//! |---|---|
//! | `entry` | the head's bytes |
//! | `index` | which file answers which request, and which goes first; in memory |
//! | `read` | a head and a body, as far as they are whole |
//! | `writer` | the thread that writes, removes, and finds what is there at the start |
//!
//! No worker's thread waits for the folder: pieces of bodies go to the writer by a bounded queue, and what it cannot take is not kept. A
//! response is opened on a thread that may block. Its body is then sent as a static file's is.
//!
//! Two processes may have one folder while one takes the other's place: only the holder of the lock writes and removes. The other goes on
//! answering by what it knows, and fetches anew what is there no more.

pub mod entry;
mod index;
mod read;
mod writer;

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::SystemTime;

use bytes::Bytes;
use http::header::HeaderName;
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use serde::Serialize;

use self::entry::Head;
pub use self::index::Id;
use self::index::Index;
pub use self::read::Loaded;
use self::writer::Message;
use super::Flight;
use super::store::Stored;

/// Bytes of bodies on their way to the writer.
const QUEUED_BYTES_MAX: usize = 32 << 20;
/// Messages on their way to it.
const MESSAGES_MAX: usize = 8192;
/// Responses that are written at the same time.
const WRITES_MAX: usize = 128;
/// Responses whose files are open.
const OPEN_MAX: usize = 256;

/// Where the folder is, and how much it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderOptions {
    /// The folder.
    pub path: PathBuf,
    /// Bytes of all files together. Default 1 GiB.
    pub bytes_max: u64,
    /// Responses. Default 100,000.
    pub responses_max: usize,
    /// Bytes of one response's body. Default 64 MiB.
    pub response_bytes_max: u64,
}

impl FolderOptions {
    /// The defaults, in this folder.
    pub fn at(path: PathBuf) -> Self {
        Self {
            path,
            bytes_max: 1 << 30,
            responses_max: 100_000,
            response_bytes_max: 64 << 20,
        }
    }
}

/// A folder at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct FolderSnapshot {
    /// Responses that are kept there.
    pub responses: usize,
    /// Bytes of their files, in whole blocks.
    pub bytes: u64,
    /// Whether it can be written now.
    pub is_writable: bool,
    /// Responses written since the start.
    pub written_total: u64,
    /// Responses that were not, because the disk was slow, full or failed.
    pub dropped_total: u64,
    /// Responses that went for others.
    pub evicted_total: u64,
}

/// See the module's text.
pub struct Folder {
    shared: Arc<Shared>,
    sender: Sender<Message>,
    /// For the writer, until it is started.
    receiver: Mutex<Option<Receiver<Message>>>,
    next_id: AtomicU64,
}

/// What the writer has, too.
struct Shared {
    options: FolderOptions,
    index: Index,
    /// Responses whose file is open.
    open: Cache<Id, Arc<Stored>>,
    is_writable: AtomicBool,
    is_resting: AtomicBool,
    queued_bytes: AtomicUsize,
    messages: AtomicUsize,
    writes: AtomicUsize,
    written: AtomicU64,
    dropped: AtomicU64,
}

/// A response in the folder.
pub enum Kept {
    /// Its file is open.
    Open(Arc<Stored>),
    /// It must be read.
    Closed(Id),
}

/// A response that is being written.
#[derive(Debug)]
pub struct Writing {
    id: Id,
    bytes: u64,
}

impl Folder {
    /// A folder that nothing is done with yet.
    pub fn new(options: FolderOptions) -> Self {
        let (sender, receiver) = channel();
        Self {
            shared: Arc::new(Shared {
                index: Index::new(&options),
                options,
                open: Cache::new(OPEN_MAX),
                is_writable: AtomicBool::new(false),
                is_resting: AtomicBool::new(false),
                queued_bytes: AtomicUsize::new(0),
                messages: AtomicUsize::new(0),
                writes: AtomicUsize::new(0),
                written: AtomicU64::new(0),
                dropped: AtomicU64::new(0),
            }),
            sender,
            receiver: Mutex::new(Some(receiver)),
            next_id: AtomicU64::new(RandomState::new().hash_one(())),
        }
    }

    /// Starts to read what is there, and to write, or goes on with that. It ends with the last handle.
    pub fn start(&self) {
        self.shared.is_resting.store(false, Ordering::Relaxed);
        let Some(receiver) = self.receiver.lock().take() else {
            return self.send(Message::Wake);
        };
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("cache-folder".to_owned());
        if let Err(error) = thread.spawn(move || writer::run(shared, &receiver)) {
            let path = self.shared.options.path.display();
            tracing::error!("cache folder {path}: {error}; nothing is written there");
        }
    }

    /// Leaves the folder to others. What is known to be there is still read.
    pub fn rest(&self) {
        self.shared.is_resting.store(true, Ordering::Relaxed);
        self.shared.is_writable.store(false, Ordering::Relaxed);
        self.send(Message::Wake);
    }

    /// The fields that the responses with this name vary by, if there are some.
    pub fn varies(&self, name: &str) -> Option<Arc<[HeaderName]>> {
        self.shared.index.varies(name)
    }

    /// The response of a variant, which is used now.
    pub fn find(&self, variant: &str, now: SystemTime) -> Option<Kept> {
        let id = self.shared.index.used(variant, ms_of(now))?;
        Some(
            self.shared
                .open
                .get(&id)
                .map_or(Kept::Closed(id), Kept::Open),
        )
    }

    /// Begins to write a response with a body of this length, if it is known. `None`: it cannot be.
    pub fn begin(&self, bytes: Option<u64>) -> Option<Writing> {
        let shared = &self.shared;
        let fits = bytes.is_none_or(|bytes| bytes <= shared.response_bytes_max());
        if !fits || !shared.is_writable.load(Ordering::Relaxed) {
            return None;
        }
        if shared.writes.fetch_add(1, Ordering::Relaxed) >= WRITES_MAX {
            shared.writes.fetch_sub(1, Ordering::Relaxed);
            shared.count_dropped();
            return None;
        }
        let id = Id(self.next_id.fetch_add(1, Ordering::Relaxed));
        self.send(Message::Begin(id));
        Some(Writing { id, bytes: 0 })
    }

    /// Writes a piece of its body. `false`: it is too much.
    pub fn push(&self, writing: &mut Writing, piece: &Bytes) -> bool {
        let shared = &self.shared;
        writing.bytes += piece.len() as u64;
        if writing.bytes > shared.response_bytes_max() {
            return false;
        }
        let queued = shared.queued_bytes.load(Ordering::Relaxed) + piece.len();
        if queued > QUEUED_BYTES_MAX || shared.messages.load(Ordering::Relaxed) >= MESSAGES_MAX {
            shared.count_dropped();
            return false;
        }
        shared
            .queued_bytes
            .fetch_add(piece.len(), Ordering::Relaxed);
        self.send(Message::Piece(writing.id, piece.clone()));
        true
    }

    /// Its body is whole. Those who wait for `flight` are told once the response is here.
    pub fn finish(&self, writing: Writing, head: Head, flight: Option<Arc<Flight>>) {
        self.shared.index.expect(&head.variant, writing.id);
        self.send(Message::Finish(writing.id, Box::new(head), flight));
    }

    /// It is not to be kept.
    pub fn abort(&self, writing: Writing) {
        self.send(Message::Abort(writing.id));
    }

    /// A response has been confirmed, with another head. `stored` is what it is now, if its file is open.
    pub fn renew(&self, head: Head, stored: Option<Arc<Stored>>) {
        let Some(id) = self.shared.index.get(&head.variant) else {
            return;
        };
        if let Some(stored) = stored {
            self.if_still(id, &head.variant, || self.shared.open.insert(id, stored));
        }
        if self.shared.messages.load(Ordering::Relaxed) < MESSAGES_MAX {
            self.send(Message::Renew(Box::new(head)));
        }
    }

    /// Gives a variant's response up.
    pub fn forget(&self, variant: &str) {
        self.shared.index.forget(variant);
        self.wake_to_remove();
    }

    /// Gives up all that are meant. Returns their variants.
    pub fn purge(&self, is_meant: impl Fn(&str) -> bool) -> Vec<Arc<str>> {
        let purged = self.shared.index.purge(is_meant);
        self.wake_to_remove();
        purged
    }

    /// Reads a response, on a thread that may block. A body up to `memory_bytes_max` is read whole. `None`: it is not there, or damaged.
    pub fn read(&self, id: Id, variant: &str, memory_bytes_max: u64) -> Option<Loaded> {
        let folder = &self.shared.options.path;
        match read::load(folder, id, variant, memory_bytes_max) {
            Ok(loaded) => Some(loaded),
            Err(error) => {
                tracing::debug!("cache folder {}: {variant:?}: {error}", folder.display());
                self.drop_if(id, variant);
                None
            }
        }
    }

    /// Does something with a response that was read, unless there is another by now.
    pub fn if_still(&self, id: Id, variant: &str, then: impl FnOnce()) {
        self.shared.index.if_still(variant, id, then);
    }

    /// Keeps a response whose file is open.
    pub fn hold(&self, id: Id, variant: &str, stored: Arc<Stored>) {
        self.if_still(id, variant, || self.shared.open.insert(id, stored));
    }

    /// Gives a response up that was read and is of no use, unless there is another by now.
    pub fn drop_if(&self, id: Id, variant: &str) {
        self.shared.index.drop_if(variant, id);
        self.wake_to_remove();
    }

    /// Its state now.
    pub fn snapshot(&self) -> FolderSnapshot {
        let shared = &self.shared;
        let (responses, bytes, evicted_total) = shared.index.size();
        FolderSnapshot {
            responses,
            bytes,
            is_writable: shared.is_writable.load(Ordering::Relaxed),
            written_total: shared.written.load(Ordering::Relaxed),
            dropped_total: shared.dropped.load(Ordering::Relaxed),
            evicted_total,
        }
    }

    fn wake_to_remove(&self) {
        if self.shared.messages.load(Ordering::Relaxed) == 0 {
            self.send(Message::Wake);
        }
    }

    fn send(&self, message: Message) {
        self.shared.messages.fetch_add(1, Ordering::Relaxed);
        // The writer may not have started. It is gone only with its thread.
        let _ = self.sender.send(message);
    }
}

impl Shared {
    fn response_bytes_max(&self) -> u64 {
        self.options.response_bytes_max.min(self.options.bytes_max)
    }

    fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

fn ms_of(time: SystemTime) -> u64 {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
