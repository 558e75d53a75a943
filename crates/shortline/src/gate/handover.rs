//! A restart without dropping a client (`--handover`): where the sockets of a running gate come from, and where
//! the next gate comes. What the two say to each other is `shortline_gate::handover`'s.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

use shortline_gate::handover::{GiveError, Given, Giver, Listening, Taker, Taking};
use shortline_gate::pool::Shown;
use shortline_gate::relay::Registry;
use tokio::net::UnixStream;

use super::relays::Bound;
use super::settings::Settings;
use super::status::View;
use crate::handover::{self, Door};
use shortline_command::CommandError;
use shortline_daemon::admin::AdminSocket;

/// The gate before: what takes its clients over, and where the next gate comes.
pub type Before = (Taker, Option<UnixListener>);

/// What comes from a running gate.
pub struct Inherited {
    /// Where clients connect.
    sockets: Vec<Bound>,
    /// The admin endpoint.
    admin: Option<AdminSocket>,
    door: Option<UnixListener>,
    taker: Taker,
}

/// Asks the gate that runs for its sockets. `None` if none does, or nothing is to be handed over.
///
/// # Errors
/// [`CommandError`]: it is another user's, or hands nothing over.
pub async fn inherit(settings: &Settings) -> Result<Option<Inherited>, CommandError> {
    let Some(path) = &settings.handover else {
        return Ok(None);
    };
    let Some((taker, sockets)) = handover::inherit(path, settings.kind.name()).await? else {
        return Ok(None);
    };
    let mut inherited = Inherited {
        sockets: Vec::new(),
        admin: None,
        door: None,
        taker,
    };
    for (listening, file) in sockets {
        inherited.add(listening, file);
    }
    Ok(Some(inherited))
}

impl Inherited {
    fn add(&mut self, listening: Listening, file: OwnedFd) {
        match listening {
            Listening::Tcp | Listening::Unnamed => self.sockets.push(Bound::Tcp(file.into())),
            Listening::Unix(path) => self.sockets.push(Bound::Unix(file.into(), path)),
            Listening::Admin => self.admin = Some(file.into()),
            Listening::Handover => self.door = Some(file.into()),
        }
    }

    /// The connections of the other's pool go over one by one.
    pub fn has_pool(&self) -> bool {
        self.taker.pool_size().is_some()
    }

    /// Where clients connect, where the admin's do, and what belongs to the handover itself.
    pub fn split(self) -> (Vec<Bound>, Option<AdminSocket>, Option<Before>) {
        (self.sockets, self.admin, Some((self.taker, self.door)))
    }
}

/// Takes the clients over, until the other gate has ended.
pub async fn take(
    taker: Taker,
    clients: Arc<Registry>,
    pool: Option<Arc<dyn Shown>>,
    pool_size: usize,
) {
    let taking = Taking {
        clients: &clients,
        pool: pool.as_deref(),
        pool_size,
    };
    let (taken, ended) = taker.take(&taking).await;
    match ended {
        Ok(()) => tracing::info!("the other gate has ended; {taken} sessions came from it"),
        Err(error) => tracing::error!("{taken} sessions came, and no more: {error}"),
    }
}

/// Where the next gate comes, and what it gets.
pub struct Handover {
    door: Door,
    sockets: Vec<Bound>,
    admin: Option<AdminSocket>,
}

impl Handover {
    /// Listens at `path`, or where the gate before did.
    ///
    /// # Errors
    /// [`CommandError`]: the path cannot be used.
    pub fn open(
        path: &Path,
        door: Option<UnixListener>,
        sockets: Vec<Bound>,
        admin: Option<AdminSocket>,
    ) -> Result<Self, CommandError> {
        Ok(Self {
            door: Door::open(path, door)?,
            sockets,
            admin,
        })
    }

    /// The next gate of our user.
    pub async fn next(&self) -> UnixStream {
        self.door.next().await
    }

    /// The admin endpoint's socket.
    pub fn admin(&self) -> Option<&AdminSocket> {
        self.admin.as_ref()
    }

    /// Gives the sockets to the next gate, and waits until it accepts clients.
    ///
    /// # Errors
    /// [`GiveError`]
    pub async fn give_sockets(&self, giver: &mut Giver, view: &View) -> Result<(), GiveError> {
        let clients = self.sockets.iter().map(|socket| match socket {
            Bound::Tcp(socket) => (Listening::Tcp, socket.as_fd()),
            Bound::Unix(socket, path) => (Listening::Unix(path.clone()), socket.as_fd()),
        });
        let mut files: Vec<(Listening, BorrowedFd<'_>)> = clients.collect();
        let admin = self.admin.iter();
        files.extend(admin.map(|socket| (Listening::Admin, socket.as_fd())));
        files.push((Listening::Handover, self.door.as_fd()));
        giver
            .give_sockets(files, view.pool().map(|pool| pool.size()))
            .await
    }
}

/// Lets the clients go, until none is left or the next gate has died.
pub async fn give(
    mut giver: Giver,
    clients: Arc<Registry>,
    pool: Option<Arc<dyn Shown>>,
) -> Result<(), GiveError> {
    let given = Given {
        clients: &clients,
        pool: pool.as_deref(),
    };
    giver.give(&given).await
}
