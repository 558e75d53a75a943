//! The queue for the disk (paper 001 3.1 gives the disk a queue of its own). Reads that must wait
//! for the disk run a few at a time, in the order of the uplink's policy. The others wait here, so
//! that a small response does not wait behind the reads of large ones.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use bytes::Bytes;
use parking_lot::Mutex;
use shortline_base::clock::now_ns;
use shortline_base::world::run_blocking;
use shortline_sched::{Client, JobId, JobSpec, Policy, Scheduler, SchedulerConfig};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::files::OpenFile;
use crate::piped::{PROMISE_BYTES_MAX, Piped};
use shortline_base::throttle::Throttle;

/// The most reads that may wait. One more is refused, and its response ends.
const READS_WAITING_MAX: usize = 100_000;
/// The most responses at a time whose files pass through a pipe. Each has two descriptors; further ones are read and written.
const PIPES_MAX: usize = 256;
/// The room of a pipe: for the longest piece that is handed over at a time, as the next is moved once that has left.
const PIPE_BYTES: usize = PROMISE_BYTES_MAX as usize;

/// The queue in front of the disk.
pub struct Disk {
    queue: Mutex<Queue>,
    /// Those in use.
    pipes: Arc<AtomicUsize>,
    /// Limits the log lines about files that cannot be read.
    failures: Mutex<Throttle>,
}

struct Queue {
    scheduler: Scheduler,
    waiting: Vec<Option<Reader>>,
    reads: usize,
    reads_max: usize,
}

/// A response that waits for the disk.
struct Reader {
    turn: oneshot::Sender<()>,
    bytes: u64,
}

impl Disk {
    /// Runs at most `reads_max` reads at a time, in the order of `policy`.
    pub fn new(policy: Policy, reads_max: usize) -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::new(Queue {
                scheduler: Scheduler::new(SchedulerConfig::new(policy, READS_WAITING_MAX)),
                waiting: Vec::new(),
                reads: 0,
                reads_max,
            }),
            pipes: Arc::default(),
            failures: Mutex::default(),
        })
    }

    /// A pipe for the files of a response. `None`: they are all taken.
    pub fn pipe(&self) -> Option<Arc<Piped>> {
        Piped::new(PIPE_BYTES, &self.pipes, PIPES_MAX)
    }

    /// Responses that wait for the disk or are being read.
    pub fn jobs(&self) -> usize {
        self.queue.lock().scheduler.len()
    }

    /// Reads `length` bytes at `offset` for a response that still has `remaining_bytes` to send.
    pub async fn read(
        self: Arc<Self>,
        file: Arc<OpenFile>,
        offset: u64,
        length: usize,
        remaining_bytes: u64,
        client: Client,
    ) -> io::Result<Bytes> {
        let bytes = self.read_in_turn(file, offset, length, remaining_bytes, client);
        bytes.await.inspect_err(|error| self.log(error))
    }

    /// Logs that a response was reset because its file was cut short or its disk failed.
    pub fn log(&self, error: &io::Error) {
        if let Some(untold) = self.failures.lock().allow(Instant::now()) {
            let reason = error.to_string();
            tracing::warn!(reason, untold, "a file cannot be read to its end");
        }
    }

    async fn read_in_turn(
        self: &Arc<Self>,
        file: Arc<OpenFile>,
        offset: u64,
        length: usize,
        remaining_bytes: u64,
        client: Client,
    ) -> io::Result<Bytes> {
        let (place, turn) = self.enter(remaining_bytes, length, client)?;
        // The sender stays in the queue for as long as the place is held.
        let _ = turn.await;
        // The read owns the place. If the response is aborted, its read still keeps the disk busy.
        run_blocking(move || {
            let bytes = file.read_blocking(offset, length);
            drop(place);
            bytes
        })
        .await?
    }

    fn enter(
        self: &Arc<Self>,
        remaining_bytes: u64,
        length: usize,
        client: Client,
    ) -> io::Result<(Place, oneshot::Receiver<()>)> {
        let (sender, receiver) = oneshot::channel();
        let mut queue = self.queue.lock();
        let id = queue
            .scheduler
            .submit(JobSpec {
                arrival_ns: now_ns(),
                work: remaining_bytes,
                service_ns_expected: remaining_bytes,
                client: Some(client),
                ..JobSpec::default()
            })
            .map_err(io::Error::other)?;
        if queue.waiting.len() <= id.index() {
            queue.waiting.resize_with(id.index() + 1, || None);
        }
        queue.waiting[id.index()] = Some(Reader {
            turn: sender,
            bytes: length as u64,
        });
        queue.start_next();
        let disk = Arc::clone(self);
        Ok((Place { disk, id }, receiver))
    }
}

impl Queue {
    fn start_next(&mut self) {
        while self.reads < self.reads_max {
            let Some(id) = self.scheduler.take(now_ns()) else {
                return;
            };
            self.reads += 1;
            if let Some(reader) = self.waiting[id.index()].take() {
                self.scheduler.record(id, reader.bytes);
                // The reader may have given up. Dropping its place frees it.
                let _ = reader.turn.send(());
            }
        }
    }
}

/// A response's place in front of the disk.
struct Place {
    disk: Arc<Disk>,
    id: JobId,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut queue = self.disk.queue.lock();
        if queue
            .scheduler
            .remove(self.id)
            .is_some_and(|job| job.started)
        {
            queue.reads -= 1;
        }
        queue.waiting[self.id.index()] = None;
        queue.start_next();
    }
}
