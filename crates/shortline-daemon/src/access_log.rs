//! The access logs: one line per response, written by one thread for all of them.
//!
//! The server sends records to a bounded channel and never waits. If the disk is slower than the
//! responses, lines are dropped and counted. Lines gather for a moment and are written together, so
//! that a busy server does not wake the thread with every response. The files are reopened on
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
/// What gathers in memory before it is written: of the only file, and of each of several.
const BUFFER_BYTES: usize = 64 << 10;
const BUFFER_BYTES_OF_SEVERAL: usize = 8 << 10;

/// An open access log. Dropping the last handle to all that were opened with it writes what is left.
pub struct LogWriter {
    fields: Fields,
    /// Its place among the files of the thread.
    file: usize,
    shared: Arc<Shared>,
}

/// The thread that writes, and the way to it.
struct Shared {
    sender: Option<SyncSender<Message>>,
    dropped: Arc<AtomicU64>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Message {
    Record(usize, Box<AccessRecord>),
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
    /// Opens files (`-`: standard output) for appending lines of these formats. At most `lines_max` lines of all wait.
    ///
    /// # Errors
    /// [`LogError`] if one cannot be opened or no thread can be started.
    pub fn open_all(
        files: &[(PathBuf, LineFormat)],
        lines_max: usize,
    ) -> Result<Vec<Arc<Self>>, LogError> {
        let dropped = Arc::new(AtomicU64::new(0));
        let buffer_bytes = match files.len() {
            0 | 1 => BUFFER_BYTES,
            _ => BUFFER_BYTES_OF_SEVERAL,
        };
        let opened = files
            .iter()
            .map(|(path, format)| LogFile::open(path, format, buffer_bytes, &dropped));
        let writing = Writing {
            files: opened.collect::<Result<_, _>>()?,
            dirty: Vec::new(),
        };
        let (sender, receiver) = sync_channel(lines_max);
        let thread = std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || writing.write_all_of(&receiver));
        let failed = |source| LogError {
            path: files
                .first()
                .map(|(path, _)| path.clone())
                .unwrap_or_default(),
            source,
        };
        let shared = Arc::new(Shared {
            sender: Some(sender),
            dropped,
            thread: Mutex::new(Some(thread.map_err(failed)?)),
        });
        let handles = files.iter().enumerate().map(|(file, (_, format))| {
            Arc::new(Self {
                fields: format.fields(),
                file,
                shared: Arc::clone(&shared),
            })
        });
        Ok(handles.collect())
    }

    /// Reopens all files once all earlier lines are written.
    pub fn reopen(&self) {
        if let Some(sender) = &self.shared.sender {
            // Waits for room in the channel. It is gone only if the thread and its files are.
            let _ = sender.send(Message::Reopen);
        }
    }

    /// Lines of all files lost because the disk was slow or full.
    pub fn dropped_total(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }
}

impl AccessLog for LogWriter {
    fn fields(&self) -> &Fields {
        &self.fields
    }

    fn log(&self, record: AccessRecord) {
        let message = Message::Record(self.file, Box::new(record));
        let sent = self
            .shared
            .sender
            .as_ref()
            .map(|sender| sender.try_send(message));
        if !matches!(sent, Some(Ok(()))) {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.lock().take() {
            // A panic there has already been reported.
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct Writing {
    files: Vec<LogFile>,
    /// Those with lines that have gathered.
    dirty: Vec<usize>,
}

struct LogFile {
    format: LineFormat,
    out: BufWriter<Box<dyn Write + Send>>,
    path: PathBuf,
    buffer_bytes: usize,
    dropped: Arc<AtomicU64>,
    is_dirty: bool,
    /// Whether the last write failed.
    failing: bool,
}

impl Writing {
    fn write_all_of(mut self, messages: &Receiver<Message>) {
        let mut line = String::new();
        while let Some(message) = self.next(messages) {
            match message {
                Message::Record(file, record) => {
                    line.clear();
                    if self.files[file].write(&mut line, &record) {
                        self.dirty.push(file);
                    }
                }
                Message::Reopen => self.files.iter_mut().for_each(LogFile::reopen),
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

    fn flush(&mut self) {
        for file in self.dirty.drain(..) {
            self.files[file].flush();
        }
    }
}

impl LogFile {
    fn open(
        path: &Path,
        format: &LineFormat,
        buffer_bytes: usize,
        dropped: &Arc<AtomicU64>,
    ) -> Result<Self, LogError> {
        let failed = |source| LogError {
            path: path.to_owned(),
            source,
        };
        Ok(Self {
            format: format.clone(),
            out: open(path, buffer_bytes).map_err(failed)?,
            path: path.to_owned(),
            buffer_bytes,
            dropped: Arc::clone(dropped),
            is_dirty: false,
            failing: false,
        })
    }

    /// Writes a line, with `line` as space for it. Returns whether it is the first that gathers.
    fn write(&mut self, line: &mut String, record: &AccessRecord) -> bool {
        self.format.write_line(line, record);
        // Into memory, unless it is full.
        if let Err(error) = self.out.write_all(line.as_bytes()) {
            self.log_lost(&error);
        }
        !std::mem::replace(&mut self.is_dirty, true)
    }

    fn reopen(&mut self) {
        self.flush();
        match open(&self.path, self.buffer_bytes) {
            Ok(out) => self.out = out,
            Err(error) => tracing::error!(
                "access log {}: {error}; the old one is kept",
                self.path.display()
            ),
        }
    }

    /// Writes what has gathered. Logs when lines begin to be lost, and when that ends.
    fn flush(&mut self) {
        self.is_dirty = false;
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

fn open(path: &Path, buffer_bytes: usize) -> io::Result<BufWriter<Box<dyn Write + Send>>> {
    let out: Box<dyn Write + Send> = if path == Path::new("-") {
        Box::new(io::stdout())
    } else {
        Box::new(OpenOptions::new().append(true).create(true).open(path)?)
    };
    Ok(BufWriter::with_capacity(buffer_bytes, out))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::log_line::testing::record;

    fn opened(paths: &[&Path], format: &LineFormat) -> Vec<Arc<LogWriter>> {
        let files: Vec<_> = paths
            .iter()
            .map(|path| (path.to_path_buf(), format.clone()))
            .collect();
        LogWriter::open_all(&files, 16).unwrap()
    }

    #[test]
    fn lines_reach_their_file_and_a_new_one_after_reopening() {
        let folder = tempfile::tempdir().unwrap();
        let (path, rotated) = (folder.path().join("log"), folder.path().join("log.1"));
        let other = folder.path().join("other");
        let logs = opened(&[&path, &other], &LineFormat::Json);
        logs[0].log(record());
        std::fs::rename(&path, &rotated).unwrap();
        logs[1].reopen();
        logs[0].log(record());
        logs[1].log(record());
        logs[1].log(record());
        assert_eq!(logs[0].dropped_total(), 0);
        drop(logs);
        let lines = |path| std::fs::read_to_string(path).unwrap().lines().count();
        assert_eq!((lines(&rotated), lines(&path), lines(&other)), (1, 1, 2));
    }

    #[test]
    fn a_full_disk_is_counted() {
        let logs = opened(&[Path::new("/dev/full")], &LineFormat::Combined);
        logs[0].log(record());
        let dropped = Arc::clone(&logs[0].shared.dropped);
        drop(logs);
        assert!(dropped.load(Ordering::Relaxed) >= 1);
    }

    #[test]
    fn a_folder_that_does_not_exist_is_told() {
        let files = [("/nowhere/log".into(), LineFormat::Combined)];
        let error = LogWriter::open_all(&files, 1).err().unwrap().to_string();
        assert!(error.starts_with("access log /nowhere/log: "), "{error}");
    }
}
