//! KILL among the clients of MySQL's pool, by the numbers that they were given.

use std::io;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;

use super::super::arena::Arena;
use super::client::enter;
use super::command::Command;
use super::failure::Failure;
use super::packets::{framed, read};
use super::plan::ClientPlan;
use crate::network::End;
use crate::verdict::Fault;

/// Who ends others' statements and sessions, over a connection of its own.
pub struct Killer<'a> {
    /// Everything.
    pub arena: Arc<Arena>,
    /// The index of its client.
    pub index: usize,
    /// Who it is.
    pub plan: &'a ClientPlan,
}

impl Killer<'_> {
    /// Does so as often as this, each time after so long.
    pub async fn kill(&self, which: usize, is_session: bool, after_ns: u64, times: usize) {
        let (arena, index) = (&self.arena, self.index);
        let mut end = arena.connect(index, self.plan.path).await;
        if !matches!(enter(&mut end, self.plan).await, Ok(Ok(_))) {
            return;
        }
        for time in 0..times {
            arena.world.sleep(after_ns).await;
            let Some((other, user, number)) = arena.roster.other(index, which + time) else {
                return;
            };
            arena
                .world
                .note(format_args!("client {index} ends {other}"));
            let is_own = user == self.plan.user;
            if is_own {
                arena.roster.begins_to_end(other, is_session);
            }
            let told = killed(&mut end, number, is_session).await;
            // Whatever the result, it is over.
            if is_own {
                arena.roster.has_ended(other);
            }
            let Ok(told) = told else {
                return;
            };
            let is_due = match &told {
                None => is_own,
                Some(told) if told.code == 1095 => !is_own,
                // It has gone, or something else went wrong.
                Some(told) => told.code == 1094 || arena.scenario.may_keep_out(told),
            };
            if !is_due {
                let told = told.map(|told| told.to_string());
                arena.world.report(Fault::Wrong {
                    whose: format!("client {index}, KILL"),
                    what: format!("{told:?} for a session of {user}"),
                });
            }
        }
    }
}

/// Ends the statement or the session of this number. Returns the error, if there is one.
async fn killed(end: &mut End, number: u32, is_session: bool) -> io::Result<Option<Failure>> {
    let text = match is_session {
        true => format!("kill {number}"),
        false => format!("KILL QUERY {number}"),
    };
    let command = Command::Query(text).encoded(|own| own);
    end.write_all(&framed(0, &[command])).await?;
    let (_, answer) = read(end).await?;
    Ok(Failure::of(&answer))
}
