//! Where a process that serves meets the next one (`--handover`): a Unix socket by which the next gets the
//! listening sockets. What the two say to each other is `shortline_gate::handover`'s.

use std::fmt::Display;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use shortline_command::CommandError;
use shortline_daemon::sockets::bind_private;
use shortline_gate::handover::{Listening, Taker};
use tokio::net::{UnixListener as Listener, UnixStream};

/// How long nobody is let in after an error of accept(2).
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What a running process has given: the next step, and its sockets.
pub type Inherited = (Taker, Vec<(Listening, OwnedFd)>);

/// Asks the process that serves at `path` for its sockets. `None` if none does.
///
/// # Errors
/// [`CommandError`]: it is another user's, or hands nothing over.
pub async fn inherit(path: &Path, kind: &str) -> Result<Option<Inherited>, CommandError> {
    let failure = |reason: &dyn Display| {
        CommandError::failure(format!("handover unix:{}: {reason}", path.display()))
    };
    let stream = match UnixStream::connect(path).await {
        Ok(stream) => stream,
        Err(error) if is_nobody(&error) => return Ok(None),
        Err(error) => return Err(failure(&error)),
    };
    if let Err(stranger) = check(&stream) {
        return Err(failure(&stranger));
    }
    let asked = Taker::ask(stream, kind).await;
    asked.map(Some).map_err(|error| failure(&error))
}

fn is_nobody(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, NotFound};
    matches!(error.kind(), ConnectionRefused | NotFound)
}

/// A process of another user.
#[derive(Debug, thiserror::Error)]
#[error("its process is of user {0}, and this one is not")]
struct Stranger(u32);

/// Whether the process at the other end is of our user.
fn check(stream: &UnixStream) -> Result<(), Stranger> {
    const NOBODY: u32 = u32::MAX;
    let uid = stream.peer_cred().map_or(NOBODY, |peer| peer.uid());
    match uid == rustix::process::geteuid().as_raw() {
        true => Ok(()),
        false => Err(Stranger(uid)),
    }
}

/// Where the next process comes.
#[derive(Debug)]
pub struct Door(Listener);

impl Door {
    /// Listens at `path`, or where the process before did.
    ///
    /// # Errors
    /// [`CommandError`]: the path cannot be used.
    pub fn open(path: &Path, inherited: Option<UnixListener>) -> Result<Self, CommandError> {
        let door = inherited.map_or_else(|| bind_private(path), Ok)?;
        let opened = || {
            door.set_nonblocking(true)?;
            Listener::from_std(door)
        };
        opened().map(Self).map_err(CommandError::failure)
    }

    /// The next process of our user.
    pub async fn next(&self) -> UnixStream {
        loop {
            match self.0.accept().await {
                Ok((stream, _)) => match check(&stream) {
                    Ok(()) => return stream,
                    Err(stranger) => tracing::warn!("handover: {stranger}"),
                },
                Err(error) => {
                    tracing::warn!("handover: {error}");
                    tokio::time::sleep(AGAIN_AFTER).await;
                }
            }
        }
    }
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
