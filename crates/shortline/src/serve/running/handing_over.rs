//! A running server leaves its place to another process ([`super::super::handover`]).

use shortline_gate::handover::{GiveError, Giver};
use tokio::net::UnixStream;

use super::super::handover;
use super::super::routes::OpenRoutes;
use super::Running;
use shortline_command::CommandError;
use shortline_daemon::process::{Instruction, Signals, tell_reload};

impl Running {
    pub(super) async fn give(&self, heir: UnixStream) -> Result<Giver, GiveError> {
        let pid = heir.peer_cred().ok().and_then(|peer| peer.pid());
        tracing::info!("handing over to process {}", pid.unwrap_or_default());
        let admin = self.admin.as_ref().map(|admin| &admin.socket);
        handover::give(heir, &self.ports, admin, self.door.as_ref()).await
    }

    /// Lets connections end. Returns whether this process is to end too: another has its place, or it is told to.
    pub(super) async fn retire(&mut self, mut giver: Giver, signals: &mut Signals) -> bool {
        self.server.retire();
        // Authorities look at the new process from now on.
        self.kept.rest();
        self.routes.lock().rest_caches();
        if let Some(admin) = &self.admin {
            admin.task.abort();
        }
        let limit = tokio::time::sleep(self.settings.handover_time_max);
        tokio::pin!(limit);
        loop {
            tokio::select! {
                () = self.server.deserted() => return true,
                () = &mut limit => return true,
                () = giver.left() => break,
                told = signals.next() => match told {
                    Instruction::Reload => tell_reload(Err(CommandError::failure(
                        "another process has taken this one's place",
                    ))),
                    Instruction::End => return true,
                },
            }
        }
        tracing::error!("the new process has ended: this one accepts connections again");
        self.server.resume();
        self.kept.go_on();
        self.routes.lock().start_caches(&OpenRoutes::default());
        let answered = self.admin_socket();
        if let Err(error) = answered.and_then(|socket| self.answer_admin(socket)) {
            tracing::error!("admin: {error}");
        }
        false
    }
}
