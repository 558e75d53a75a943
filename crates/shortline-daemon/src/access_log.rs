//! The access log: one line per response, written by its own thread.
//!
//! The server sends records to a bounded channel and never waits. If the disk is slower than the
//! responses, lines are dropped and counted. Lines gather for a moment and are written together, so
//! that a busy server does not wake the thread with every response. The file is reopened on
//! request, as `logrotate` needs.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use shortline_web::{AccessLog, AccessRecord, Fields};

use crate::log_line::LineFormat;

/// How long lines gather after the first one.
const GATHER: Duration = Duration::from_millis(20);

/// An open access log. Dropping the last handle writes what is left.
pub struct LogWriter {
    fields: Fields,
    sender: Option<SyncSender<Message>>,
    dropped: Arc<AtomicU64>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Message {
    Record(Box<AccessRecord>),
    Reopen,
}

/// An access log that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("access log {}: {source}", path.display())]
pub struct LogError {
    path: PathBuf,
    source: io::Error,
}

impl LogWriter {
    /// Opens `path` (`-`: standard output) for appending lines of this format. At most `lines_max` lines wait.
    ///
    /// # Errors
    /// [`LogError`] if it cannot be opened or no thread can be started.
    pub fn open(path: &Path, format: LineFormat, lines_max: usize) -> Result<Arc<Self>, LogError> {
        let failed = |source| LogError {
            path: path.to_owned(),
            source,
        };
        let (sender, receiver) = sync_channel(lines_max);
        let dropped = Arc::new(AtomicU64::new(0));
        let fields = format.fields();
        let file = LogFile {
            format,
            out: open(path).map_err(failed)?,
            path: path.to_owned(),
            dropped: Arc::clone(&dropped),
            failing: false,
        };
        let thread = std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || file.write_all_of(&receiver))
            .map_err(failed)?;
        Ok(Arc::new(Self {
            fields,
            sender: Some(sender),
            dropped,
            thread: Mutex::new(Some(thread)),
        }))
    }

    /// Reopens the file once all earlier lines are written.
    pub fn reopen(&self) {
        if let Some(sender) = &self.sender {
            // Waits for room in the channel. It is gone only if the thread and its file are.
            let _ = sender.send(Message::Reopen);
        }
    }

    /// Lines lost because the disk was slow or full.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl AccessLog for LogWriter {
    fn fields(&self) -> &Fields {
        &self.fields
    }

    fn log(&self, record: AccessRecord) {
        let sent = self
            .sender
            .as_ref()
            .map(|sender| sender.try_send(Message::Record(Box::new(record))));
        if !matches!(sent, Some(Ok(()))) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.lock().take() {
            // A panic there has already been reported.
            let _ = thread.join();
        }
    }
}

struct LogFile {
    format: LineFormat,
    out: BufWriter<Box<dyn Write + Send>>,
    path: PathBuf,
    dropped: Arc<AtomicU64>,
    /// Whether the last write failed.
    failing: bool,
}

impl LogFile {
    fn write_all_of(mut self, messages: &Receiver<Message>) {
        let mut line = String::new();
        while let Some(message) = self.next(messages) {
            match message {
                Message::Record(record) => {
                    line.clear();
                    self.format.write_line(&mut line, &record);
                    // Into memory, unless it is full.
                    if let Err(error) = self.out.write_all(line.as_bytes()) {
                        self.log_lost(&error);
                    }
                }
                Message::Reopen => self.reopen(),
            }
        }
        self.flush();
    }

    /// The next message. Before it waits for one, it writes what has gathered.
    fn next(&mut self, messages: &Receiver<Message>) -> Option<Message> {
        match messages.try_recv() {
            Ok(message) => Some(message),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => {
                self.flush();
                let first = messages.recv().ok()?;
                std::thread::sleep(GATHER);
                Some(first)
            }
        }
    }

    fn reopen(&mut self) {
        self.flush();
        match open(&self.path) {
            Ok(out) => self.out = out,
            Err(error) => tracing::error!(
                "access log {}: {error}; the old one is kept",
                self.path.display()
            ),
        }
    }

    /// Writes what has gathered. Logs when lines begin to be lost, and when that ends.
    fn flush(&mut self) {
        match self.out.flush() {
            Err(error) => self.log_lost(&error),
            Ok(()) if std::mem::replace(&mut self.failing, false) => tracing::info!(
                "access log {}: written again; {} lines or more were lost since the start",
                self.path.display(),
                self.dropped.load(Ordering::Relaxed)
            ),
            Ok(()) => {}
        }
    }

    fn log_lost(&mut self, error: &io::Error) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        if !std::mem::replace(&mut self.failing, true) {
            tracing::error!(
                "access log {}: {error}; lines are lost",
                self.path.display()
            );
        }
    }
}

fn open(path: &Path) -> io::Result<BufWriter<Box<dyn Write + Send>>> {
    let out: Box<dyn Write + Send> = if path == Path::new("-") {
        Box::new(io::stdout())
    } else {
        Box::new(OpenOptions::new().append(true).create(true).open(path)?)
    };
    Ok(BufWriter::with_capacity(64 << 10, out))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::log_line::testing::record;

    #[test]
    fn lines_reach_the_file_and_a_new_one_after_reopening() {
        let folder = tempfile::tempdir().unwrap();
        let (path, rotated) = (folder.path().join("log"), folder.path().join("log.1"));
        let log = LogWriter::open(&path, LineFormat::Json, 16).unwrap();
        log.log(record());
        std::fs::rename(&path, &rotated).unwrap();
        log.reopen();
        log.log(record());
        assert_eq!(log.dropped_total(), 0);
        drop(log);
        let lines = |path| std::fs::read_to_string(path).unwrap().lines().count();
        assert_eq!((lines(&rotated), lines(&path)), (1, 1));
    }

    #[test]
    fn a_full_disk_is_counted() {
        let log = LogWriter::open(Path::new("/dev/full"), LineFormat::Combined, 16).unwrap();
        log.log(record());
        let dropped = Arc::clone(&log.dropped);
        drop(log);
        assert!(dropped.load(Ordering::Relaxed) >= 1);
    }

    #[test]
    fn a_folder_that_does_not_exist_is_told() {
        let error = LogWriter::open(Path::new("/nowhere/log"), LineFormat::Combined, 1)
            .err()
            .unwrap()
            .to_string();
        assert!(error.starts_with("access log /nowhere/log: "), "{error}");
    }
}
