//! The seam between the program and the machine. Time, alarms, connections, the disk and threads
//! that may block come from the kernel, unless the thread lives in a simulated [`World`]. Then they
//! come from there, and the program above runs unchanged, in virtual time.
//!
//! After FoundationDB's simulation (Zhou and others, SIGMOD 2021, section 4) and TigerBeetle's: the
//! simulated code is the code that is shipped. The world is a thread-local, because a type
//! parameter would run through every room. Outside a simulation it costs a look at one thread-local
//! flag.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::alarm::Alarm;

/// A boxed future.
pub type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Bytes both ways.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// The outcome of reading a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskRead {
    /// The bytes are in memory, or the reader may wait for them.
    There,
    /// They are not in memory.
    NotAtHand,
    /// The disk fails.
    Broken,
}

/// A machine that does not exist.
pub trait World {
    /// Nanoseconds since the world began. Never goes back.
    fn now_ns(&self) -> u64;
    /// An alarm that is not set.
    fn alarm(&self) -> Box<dyn Alarm>;
    /// A connection from this host to a port of another.
    fn connect(&self, host: &str, port: u16) -> Boxed<io::Result<Box<dyn Stream>>>;
    /// Runs work that may block, elsewhere and a little later.
    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>);
    /// The outcome of reading a file, for a reader that may wait or not.
    fn disk_read(&self, may_wait: bool) -> DiskRead;
    /// A random number.
    fn random(&self) -> u64;
}

thread_local! {
    static LIVES_IN_ONE: Cell<bool> = const { Cell::new(false) };
    static WORLD: RefCell<Option<Rc<dyn World>>> = const { RefCell::new(None) };
}

/// While this is held the thread lives in a world.
pub struct Life(());

/// Lets this thread live in `world`.
///
/// # Panics
/// If the thread lives in one already.
pub fn enter(world: Rc<dyn World>) -> Life {
    WORLD.with(|place| {
        let before = place.replace(Some(world));
        assert!(before.is_none(), "a thread lives in one world at a time");
    });
    LIVES_IN_ONE.set(true);
    Life(())
}

impl Drop for Life {
    fn drop(&mut self) {
        LIVES_IN_ONE.set(false);
        let world = WORLD.with(RefCell::take);
        drop(world);
    }
}

/// Asks the world that this thread lives in; `None` in the real world, where the kernel must be
/// asked.
pub(crate) fn here<T>(ask: impl FnOnce(&dyn World) -> T) -> Option<T> {
    if !LIVES_IN_ONE.get() {
        return None;
    }
    let world = WORLD.with(|place| place.borrow().clone());
    world.map(|world| ask(&*world))
}

/// A random number of the world, the same each time; `None` in the real one.
pub fn random() -> Option<u64> {
    here(|world| world.random())
}

/// Connects to a port of a simulated host; `None` in the real world.
pub fn connect(host: &str, port: u16) -> Option<Boxed<io::Result<Box<dyn Stream>>>> {
    here(|world| world.connect(host, port))
}

/// Runs work that may wait for a disk, on a thread that may wait, and returns its result.
///
/// # Errors
/// The runtime is shutting down, or the work has panicked.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    if !LIVES_IN_ONE.get() {
        return tokio::task::spawn_blocking(work)
            .await
            .map_err(io::Error::other);
    }
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let work = move || {
        // The receiver may be gone.
        let _ = sender.send(work());
    };
    here(|world| world.run_blocking(Box::new(work)));
    receiver.await.map_err(io::Error::other)
}
