//! A running gate takes clients over from the gate before, and hands them over to the next (`--handover`).

use std::sync::atomic::{AtomicUsize, Ordering};

use shortline_gate::handover::{GiveError, Giver, Taker};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::super::admin_pages::AdminPages;
use super::super::console::Request;
use super::super::console::command::End;
use super::super::handover::{self, Handover};
use super::Running;
use shortline_command::CommandError;
use shortline_daemon::admin::{self, AdminSocket, Hosts};
use shortline_daemon::process::{Instruction, Signals, tell_reload};
use shortline_daemon::sockets::Address;

/// The next gate, once it comes.
pub async fn knock(handover: Option<&Handover>) -> UnixStream {
    match handover {
        Some(handover) => handover.next().await,
        None => std::future::pending().await,
    }
}

impl Running {
    /// Answers at the admin address from now on, on the socket of the gate before if it has that. The socket is
    /// returned for the next gate.
    pub(super) fn open_admin(
        &mut self,
        wanted: &Address,
        inherited: Option<AdminSocket>,
    ) -> Result<AdminSocket, CommandError> {
        let socket = AdminSocket::open(wanted, inherited)?;
        self.answer_admin(&socket)?;
        Ok(socket)
    }

    fn answer_admin(&mut self, socket: &AdminSocket) -> Result<(), CommandError> {
        let hosts = Hosts::new(&self.settings.admin_hosts);
        let pages = AdminPages::new(&self.view, &self.console, &self.settings);
        let started = socket.try_clone().and_then(|socket| {
            admin::start(socket, self.settings.admin_connections_max, hosts, pages)
        });
        self.admin = Some(started.map_err(CommandError::failure)?);
        Ok(())
    }

    /// Takes the clients of the gate before from now on.
    pub(super) fn take_over(&mut self, taker: Taker) {
        let (Some(clients), pool) = (self.front.clients(), self.view.shared_pool()) else {
            return;
        };
        let size = self
            .settings
            .pool
            .as_ref()
            .map_or(0, |pool| pool.size.get());
        self.taking = Some(tokio::spawn(handover::take(taker, clients, pool, size)));
    }

    /// Why nothing can be handed over now.
    fn keeps_all(&self) -> Option<&'static str> {
        let closed = self.view.gate().closed();
        if self.takes_over() {
            return Some("it takes over from another gate itself");
        }
        let is_paused = closed.all || !closed.databases.is_empty() || !closed.disabled.is_empty();
        is_paused.then_some("it is paused, or a database is disabled: RESUME and ENABLE first")
    }

    fn takes_over(&self) -> bool {
        let taking = self.taking.as_ref();
        taking.is_some_and(|taking| !taking.is_finished())
    }

    /// Refuses what would change the pool's size while two gates share it.
    pub(super) fn refuse_in_handover(&self) -> Result<(), CommandError> {
        match self.takes_over() || self.has_heir {
            true => Err(CommandError::failure(
                "a handover is under way: try again when the old gate has ended",
            )),
            false => Ok(()),
        }
    }

    /// Hands over to a gate that has come. Returns how this one is to end, if it is.
    pub(super) async fn hand_over(
        &mut self,
        heir: UnixStream,
        signals: &mut Signals,
        asked: &mut mpsc::Receiver<Request>,
    ) -> Option<End> {
        let greeted = tokio::select! {
            greeted = self.greet(heir) => greeted,
            () = signals.end() => return Some(End::WhenServersRest),
        };
        match greeted {
            Ok(giver) => self.give(giver, signals, asked).await,
            Err(error) => {
                tracing::error!("nothing was handed over: {error}");
                if let Some(keeper) = &self.keeper {
                    keeper.take_back();
                }
                None
            }
        }
    }

    /// Gives the next gate everything but the clients.
    async fn greet(&self, heir: UnixStream) -> Result<Giver, GiveError> {
        let pid = heir.peer_cred().ok().and_then(|peer| peer.pid());
        let mut giver = Giver::greet(heir, self.settings.kind.name()).await?;
        if let Some(reason) = self.keeps_all() {
            giver.refuse(&reason).await;
            return Err(GiveError::NotNow(reason));
        }
        tracing::info!("handing over to process {}", pid.unwrap_or_default());
        if let Some(keeper) = &self.keeper {
            keeper.give_away();
        }
        if let Some(handover) = &self.handover {
            handover.give_sockets(&mut giver, &self.view).await?;
        }
        Ok(giver)
    }

    /// Lets the clients go. Those that cannot have as long as transactions have at an end.
    async fn give(
        &mut self,
        giver: Giver,
        signals: &mut Signals,
        asked: &mut mpsc::Receiver<Request>,
    ) -> Option<End> {
        let clients = self.front.clients()?;
        clients.pause_accepting();
        if let Some(admin) = self.admin.take() {
            admin.abort();
        }
        self.has_heir = true;
        let moved = giver.moved();
        let pool = self.view.shared_pool();
        let mut giving = tokio::spawn(handover::give(giver, clients.clone(), pool));
        let limit = sleep(self.settings.limits.drain_time_max);
        tokio::pin!(limit);
        loop {
            tokio::select! {
                given = &mut giving => return self.given(given, &moved),
                told = signals.next() => match told {
                    Instruction::Reload => tell_reload(self.refuse_in_handover()),
                    Instruction::End => return Some(End::WhenServersRest),
                },
                Some(asked) = asked.recv() => match asked {
                    Request::Reload(tell) => {
                        let refused = self.refuse_in_handover().map_err(|error| error.to_string());
                        // Whoever asked may have left.
                        let _ = tell.send(refused);
                    }
                    Request::End(end) => return Some(end),
                },
                () = &mut limit => {
                    let moved = moved.load(Ordering::Relaxed);
                    tracing::info!("{moved} sessions have moved; now end those that stay: {}", clients.stays());
                    return Some(End::WhenServersRest);
                }
            }
        }
    }

    /// The handover has ended: because all have gone, or because the next gate has died.
    fn given(
        &mut self,
        given: Result<Result<(), GiveError>, tokio::task::JoinError>,
        moved: &AtomicUsize,
    ) -> Option<End> {
        let moved = moved.load(Ordering::Relaxed);
        let error = match given {
            Ok(Ok(())) => {
                tracing::info!("{moved} sessions have moved, and none stay");
                return Some(End::WhenServersRest);
            }
            Ok(Err(error)) => error.to_string(),
            Err(panic) => panic.to_string(),
        };
        tracing::error!(
            "{moved} sessions have moved, and this gate goes on with the others: {error}"
        );
        self.has_heir = false;
        if let Some(clients) = self.front.clients() {
            clients.resume_accepting();
        }
        if let Some(keeper) = &self.keeper {
            keeper.take_back();
        }
        let socket = self.handover.as_ref().and_then(Handover::admin);
        let socket = socket.and_then(|socket| socket.try_clone().ok());
        if let Some(Err(error)) = socket.map(|socket| self.answer_admin(&socket)) {
            tracing::error!("admin: {error}");
        }
        None
    }
}
