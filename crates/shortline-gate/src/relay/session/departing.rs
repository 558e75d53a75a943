//! A session that rests goes to another process ([`crate::handover`]).

use super::{Protocol, Session};
use crate::handover::{Blob, SessionState, Stay};

impl<P: Protocol> Session<P> {
    /// Whether the session is to go to another process now, as it rests.
    pub(super) fn departs(&self) -> bool {
        let round = self.handle.departures().round();
        if round.is_none() || round == self.stayed_in {
            return false;
        }
        let rests = self.client.has_taken_all()
            && !self.client.is_ended
            && !self.client.is_broken
            && self.protocol.is_idle(&self.work);
        match self.stays() {
            Some(stay) => {
                self.handle.note_stay(stay);
                false
            }
            None => rests,
        }
    }

    /// Why it stays, however long it rests.
    fn stays(&self) -> Option<Stay> {
        match self.client.is_movable() {
            true => self.protocol.stays(),
            false => Some(Stay::Tls),
        }
    }

    /// Lets it go. False if it stays, and goes on here.
    pub(super) async fn depart(&mut self) -> bool {
        let round = self.handle.departures().round();
        let departed = match (self.state(), self.client.copy_socket()) {
            (Some(state), Some(socket)) => self.handle.departures().offer(state, socket).await,
            _ => Err(Stay::Refused),
        };
        if let Err(stay) = departed {
            self.handle.note_stay(stay);
            self.stayed_in = round;
        }
        departed.is_ok()
    }

    /// What another process needs to go on with it.
    fn state(&self) -> Option<SessionState> {
        let about = self.handle.about()?;
        let name = |name: &Option<Box<str>>| name.as_deref().map(str::to_owned);
        Some(SessionState {
            peer: about.peer,
            local: about.local,
            application_name: name(&about.names.application_name),
            user: name(&about.names.user),
            database: name(&about.names.database),
            ahead: Blob(self.held.clone()),
            protocol: self.protocol.state()?,
        })
    }
}
