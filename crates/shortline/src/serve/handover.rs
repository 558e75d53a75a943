//! A new process takes the place of a running one (`--handover`): the listening sockets go over, and connections
//! stay where they are. The old process ends when its connections have.
//!
//! ```text
//! new                              old
//! asks for the sockets   ->
//!                        <-        gives them: addresses, admin, this door
//! accepts connections    ->        accepts no more; each connection ends as soon as no request is lost by it
//! waits                            ends
//! ```
//!
//! If the new process ends first, the old one accepts again.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;

use shortline_command::CommandError;
use shortline_daemon::admin::AdminSocket;
use shortline_gate::handover::{GiveError, Giver, Listening, Taker};
use tokio::net::UnixStream;

use super::ports::Port;
use super::settings::Settings;
use super::sockets::Before;
use crate::handover::{self, Door};

/// What both processes must serve.
const KIND: &str = "serve";

/// What comes from the process whose place this one takes.
#[derive(Default)]
pub struct Inherited {
    /// Where clients connect.
    pub sockets: Before,
    /// Where the admin's do.
    pub admin: Option<AdminSocket>,
    /// Where the next process comes.
    pub door: Option<UnixListener>,
    /// The next step, if there is such a process.
    pub taker: Option<Taker>,
}

/// Asks the process that runs for its sockets, if there is one.
///
/// # Errors
/// [`CommandError`]: it is another user's, or hands nothing over.
pub async fn inherit(settings: &Settings) -> Result<Inherited, CommandError> {
    let mut inherited = Inherited::default();
    let Some(path) = &settings.handover_path else {
        return Ok(inherited);
    };
    let Some((taker, files)) = handover::inherit(path, KIND).await? else {
        return Ok(inherited);
    };
    inherited.taker = Some(taker);
    for (listening, file) in files {
        match listening {
            Listening::Tcp => inherited.sockets.named.push(file.into()),
            Listening::Unnamed => inherited.sockets.unnamed.push(file.into()),
            Listening::Admin => inherited.admin = Some(file.into()),
            Listening::Handover => inherited.door = Some(file.into()),
            Listening::Unix(path) => inherited.sockets.unix.push((file.into(), path)),
        }
    }
    Ok(inherited)
}

/// The process that comes to take the place of this one.
pub async fn knock(door: Option<&Door>) -> UnixStream {
    match door {
        Some(door) => door.next().await,
        None => std::future::pending().await,
    }
}

/// Gives the sockets to a process that has come, and waits until it accepts connections.
///
/// # Errors
/// [`GiveError`]
pub async fn give(
    heir: UnixStream,
    ports: &[Port],
    admin: Option<&AdminSocket>,
    door: Option<&Door>,
) -> Result<Giver, GiveError> {
    let mut giver = Giver::greet(heir, KIND).await?;
    let clients = ports.iter().map(|port| {
        let listening = match (port.path(), port.is_unnamed) {
            (Some(path), _) => Listening::Unix(path.to_owned()),
            (None, true) => Listening::Unnamed,
            (None, false) => Listening::Tcp,
        };
        (listening, port.socket().as_fd())
    });
    let mut files: Vec<(Listening, BorrowedFd<'_>)> = clients.collect();
    files.extend(admin.map(|socket| (Listening::Admin, socket.as_fd())));
    files.extend(door.map(|door| (Listening::Handover, door.as_fd())));
    giver.give_sockets(files, None).await?;
    Ok(giver)
}
