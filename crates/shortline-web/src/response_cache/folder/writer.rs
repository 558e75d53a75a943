//! The thread that writes, removes, and finds what is there at the start.
//!
//! It holds the folder's lock while it does that. Without the lock it asks for it every second and writes nothing. What is there is
//! read a few files at a time, between which it does what has come meanwhile. Files with names of ours that are no whole response are
//! removed then, others are left alone.
//!
//! When something cannot be written, the log says so once, and nothing is written for [`PAUSE_NS`].

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use bytes::Bytes;
use flate2::Crc;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use shortline_base::clock::{self, now_ns};

use super::entry::{BodyMark, Head, boot};
use super::index::{Found, Id};
use super::read::{file_of, open_regular, read_head};
use super::{Shared, ms_of};
use crate::response_cache::Flight;

/// How often the lock is asked for.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// How long nothing is written after a failure.
const PAUSE_NS: u64 = 10_000_000_000;
/// Files that are looked at between messages.
const FILES_AT_ONCE: usize = 64;
/// The lock's name.
const LOCK: &str = "lock";

/// What the thread is told.
pub enum Message {
    /// A response begins.
    Begin(Id),
    /// A piece of its body.
    Piece(Id, Bytes),
    /// It is whole.
    Finish(Id, Box<Head>, Option<Arc<Flight>>),
    /// It is not to be kept.
    Abort(Id),
    /// A response has another head.
    Renew(Box<Head>),
    /// Something else has changed.
    Wake,
}

/// Writes until the last sender is gone.
pub fn run(shared: Arc<Shared>, messages: &Receiver<Message>) {
    let mut writer = Writer {
        shared,
        lock: None,
        scan: None,
        writes: HashMap::new(),
        paused_until_ns: 0,
        trouble: None,
    };
    loop {
        writer.take_or_leave_lock();
        writer.scan_some();
        writer.remove_unwanted();
        match writer.next(messages) {
            Next::Message(message) => writer.obey(message),
            Next::Nothing => {}
            Next::End => return,
        }
    }
}

enum Next {
    Message(Message),
    Nothing,
    End,
}

struct Writer {
    shared: Arc<Shared>,
    /// The kernel lets go of the lock when it closes this.
    lock: Option<File>,
    scan: Option<Scan>,
    writes: HashMap<Id, Output>,
    paused_until_ns: u64,
    /// What the log was told, until it works again.
    trouble: Option<String>,
}

/// The folder is being read.
struct Scan {
    files: fs::ReadDir,
    bodies: Vec<Id>,
}

/// A body that is being written.
struct Output {
    /// `None`: that has failed.
    file: Option<File>,
    crc: Crc,
    bytes: u64,
}

impl Writer {
    fn next(&self, messages: &Receiver<Message>) -> Next {
        let is_idle = self.lock.is_some() && self.paused_until_ns == 0;
        let message = if self.scan.is_some() {
            messages.try_recv().map_err(|error| match error {
                TryRecvError::Empty => RecvTimeoutError::Timeout,
                TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
            })
        } else if is_idle {
            messages.recv().map_err(RecvTimeoutError::from)
        } else {
            messages.recv_timeout(ASK_EVERY)
        };
        match message {
            Ok(message) => {
                self.shared.messages.fetch_sub(1, Ordering::Relaxed);
                Next::Message(message)
            }
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }

    fn obey(&mut self, message: Message) {
        match message {
            Message::Begin(id) => self.begin(id),
            Message::Piece(id, piece) => {
                self.write(id, &piece);
                self.shared
                    .queued_bytes
                    .fetch_sub(piece.len(), Ordering::Relaxed);
            }
            Message::Finish(id, head, _flight) => self.finish(id, *head),
            Message::Abort(id) => {
                self.end(id);
                self.shared.index.add_unwanted(id);
            }
            Message::Renew(head) => self.renew(*head),
            Message::Wake => {}
        }
    }

    fn take_or_leave_lock(&mut self) {
        if self.shared.is_resting.load(Ordering::Relaxed) {
            (self.lock, self.scan) = (None, None);
            return;
        }
        if self.paused_until_ns > 0 && now_ns() < self.paused_until_ns {
            return;
        }
        self.paused_until_ns = 0;
        if self.lock.is_none() {
            match take_lock(&self.shared.options.path) {
                Ok(None) => return,
                Ok(Some((lock, files))) => {
                    self.lock = Some(lock);
                    self.scan = Some(Scan {
                        files,
                        bodies: Vec::new(),
                    });
                }
                Err(error) => return self.failed(&error),
            }
        }
        self.shared.is_writable.store(true, Ordering::Relaxed);
    }

    /// Tells of a failure, and writes nothing for a while.
    fn failed(&mut self, error: &io::Error) {
        self.shared.is_writable.store(false, Ordering::Relaxed);
        self.paused_until_ns = now_ns() + PAUSE_NS;
        let error = error.to_string();
        if self.trouble.as_ref() != Some(&error) {
            let path = self.shared.options.path.display();
            tracing::error!("cache folder {path}: {error}; nothing is written there");
            self.trouble = Some(error);
        }
    }

    fn works(&mut self) {
        if self.trouble.take().is_some() {
            tracing::info!(
                "cache folder {}: written again",
                self.shared.options.path.display()
            );
        }
    }

    fn begin(&mut self, id: Id) {
        let file = self
            .lock
            .as_ref()
            .map(|_| create(&file_of(&self.shared.options.path, id, "body")));
        let file = file.and_then(|file| file.inspect_err(|error| self.failed(error)).ok());
        let write = Output {
            file,
            crc: Crc::new(),
            bytes: 0,
        };
        self.writes.insert(id, write);
    }

    fn write(&mut self, id: Id, piece: &Bytes) {
        let Some(write) = self.writes.get_mut(&id) else {
            return;
        };
        let Some(file) = &mut write.file else {
            return;
        };
        write.bytes += piece.len() as u64;
        write.crc.update(piece);
        let has_room = self.shared.index.grow(piece.len() as u64);
        let written = file.write_all(piece);
        if written.is_err() || !has_room {
            write.file = None;
        }
        if let Err(error) = written {
            self.failed(&error);
        }
    }

    /// No more of it is written. Returns it if it is whole so far.
    fn end(&mut self, id: Id) -> Option<Output> {
        let write = self.writes.remove(&id)?;
        self.shared.writes.fetch_sub(1, Ordering::Relaxed);
        self.shared.index.shrink(write.bytes);
        write.file.is_some().then_some(write)
    }

    fn finish(&mut self, id: Id, mut head: Head) {
        let Some(write) = self.end(id) else {
            return self.give_up(id, &head);
        };
        head.body = BodyMark {
            bytes: write.bytes,
            crc: write.crc.sum(),
            boot: boot().to_owned(),
        };
        match self.write_head(id, &head) {
            Some(head_bytes) => {
                let found = Found::of(&head, id, head_bytes);
                self.shared.index.commit(found, ms_of(clock::date()));
                self.shared.written.fetch_add(1, Ordering::Relaxed);
                self.works();
            }
            None => self.give_up(id, &head),
        }
    }

    fn give_up(&self, id: Id, head: &Head) {
        self.shared.index.fail(&head.variant, id);
        self.shared.index.add_unwanted(id);
        self.shared.count_dropped();
    }

    /// Puts a head in its place. Returns its length. `None`: it is too long, or cannot be written.
    fn write_head(&mut self, id: Id, head: &Head) -> Option<u64> {
        let bytes = head.render()?;
        let folder = &self.shared.options.path;
        let temporary = file_of(folder, id, "tmp");
        let written = create(&temporary)
            .and_then(|mut file| file.write_all(&bytes))
            .and_then(|()| fs::rename(&temporary, file_of(folder, id, "head")));
        if let Err(error) = written {
            // What is left is removed when the folder is read next.
            let _ = fs::remove_file(&temporary);
            self.failed(&error);
            return None;
        }
        Some(bytes.len() as u64)
    }

    fn renew(&mut self, mut head: Head) {
        let Some(id) = self
            .shared
            .index
            .get(&head.variant)
            .filter(|_| self.lock.is_some())
        else {
            return;
        };
        let Ok((before, ..)) = read_head(&file_of(&self.shared.options.path, id, "head")) else {
            return self.shared.index.drop_if(&head.variant, id);
        };
        head.body = before.body;
        match self.write_head(id, &head) {
            Some(bytes) => drop(self.shared.index.renew(&Found::of(&head, id, bytes))),
            None => self.shared.index.drop_if(&head.variant, id),
        }
    }

    fn remove_unwanted(&self) {
        for id in self.shared.index.take_unwanted() {
            self.shared.open.remove(&id);
            // Without the lock they are another process's by now.
            if self.lock.is_some() {
                self.remove(id);
            }
        }
    }

    /// Removes a response's files. What cannot be removed now can be when the folder is read next.
    fn remove(&self, id: Id) {
        for ending in ["head", "body"] {
            let _ = fs::remove_file(file_of(&self.shared.options.path, id, ending));
        }
    }

    fn scan_some(&mut self) {
        let Some(mut scan) = self.scan.take() else {
            return;
        };
        for _ in 0..FILES_AT_ONCE {
            match scan.files.next() {
                Some(Ok(file)) => self.look_at(&file.path(), &mut scan.bodies),
                Some(Err(error)) => return self.failed(&error),
                None => return self.remove_bodies(scan.bodies),
            }
        }
        self.scan = Some(scan);
    }

    fn look_at(&self, path: &Path, bodies: &mut Vec<Id>) {
        let Some((id, ending)) = name_of(path) else {
            return;
        };
        match ending {
            "body" => bodies.push(id),
            "tmp" => drop(fs::remove_file(path)),
            _ => match self.find(path, id) {
                Ok((found, used_ms)) => self.shared.index.add(found, used_ms),
                Err(_) => self.remove(id),
            },
        }
    }

    /// The response with this head, if its body is as long as it should be.
    fn find(&self, path: &Path, id: Id) -> io::Result<(Found, u64)> {
        let (head, file, bytes) = read_head(path)?;
        let (_, body_bytes) = open_regular(&file_of(&self.shared.options.path, id, "body"))?;
        if body_bytes != head.body.bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let used = file.metadata()?.modified()?;
        Ok((Found::of(&head, id, bytes), ms_of(used)))
    }

    /// Removes bodies without a head.
    fn remove_bodies(&self, bodies: Vec<Id>) {
        let known = self.shared.index.ids();
        let is_lost = |id: &Id| !known.contains(id) && !self.writes.contains_key(id);
        bodies
            .into_iter()
            .filter(is_lost)
            .for_each(|id| self.remove(id));
    }
}

/// Makes the folder if there is none, and takes its lock. `None`: another process has it.
fn take_lock(path: &Path) -> io::Result<Option<(File, fs::ReadDir)>> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    if fs::metadata(path)?.permissions().mode() & 0o022 != 0 {
        return Err(io::Error::other(
            "others may write to it: take that from them (chmod go-w)",
        ));
    }
    let mut options = File::options();
    let lock = options
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path.join(LOCK))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some((lock, fs::read_dir(path)?))),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn create(path: &Path) -> io::Result<File> {
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// The response that a file is of, and the ending of its name, if the name is one of ours.
fn name_of(path: &Path) -> Option<(Id, &str)> {
    let (id, ending) = path.file_name()?.to_str()?.split_once('.')?;
    let is_id = id.len() == 16
        && id
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_ours = is_id && ["head", "body", "tmp"].contains(&ending);
    let id = u64::from_str_radix(id, 16).ok()?;
    is_ours.then_some((Id(id), ending))
}
