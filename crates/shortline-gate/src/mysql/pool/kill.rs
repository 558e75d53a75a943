//! KILL by the numbers that clients were given. The server knows its connections by others.
//!
//! A statement that waits here is ended here. One that runs is killed at the server, by a connection of its own
//! that is logged in as whoever asks, so that the server decides whether they may. The killed one's connection is
//! lent to nobody until that is over.

use std::sync::Arc;

use super::Pool;
use super::backend::Login;
use crate::mysql::Shared;
use crate::mysql::ask::ask;
use crate::mysql::complaint::Complaint;
use crate::mysql::login::{self, Account, Way, Wishes};

/// Who is to be killed, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    /// The number that the session was given.
    pub thread_id: u32,
    /// Its statement alone.
    pub is_of_statement: bool,
}

/// Kills for this user.
///
/// # Errors
/// What the user is told instead of OK.
pub async fn kill(
    shared: Arc<Shared>,
    pool: Arc<Pool>,
    user: String,
    login: Login,
    what: Kill,
) -> Result<(), Complaint> {
    let id = what.thread_id;
    let target = pool.targets.lock().get(&id).cloned();
    let target =
        target.ok_or_else(|| Complaint::new(1094, "HY000", format!("Unknown thread id: {id}")))?;
    if target.user != user {
        let message = format!("You are not owner of thread {id}");
        return Err(Complaint::new(1095, "HY000", message));
    }
    if what.is_of_statement && shared.waits.cancel(&id) {
        return Ok(());
    }
    // Its task ends behind this one's turn: the server hears of it first.
    let closing = Closing(&shared, (!what.is_of_statement).then_some(id));
    let (thread_id, _under_way) = {
        let current = target.current.lock();
        match current.as_ref() {
            Some((thread_id, cancels)) => (*thread_id, cancels.begin()),
            // It has no connection, and so no statement.
            None => return Ok(()),
        }
    };
    let way = Way {
        upstream: &shared.config.upstream,
        tls: &shared.config.upstream_tls,
        time_max: shared.config.limits.connect_time_max,
    };
    let account = Account {
        user,
        secret: login.secret,
        database: None,
    };
    let statement = match what.is_of_statement {
        true => format!("KILL QUERY {thread_id}"),
        false => format!("KILL {thread_id}"),
    };
    let killing = async {
        let opened = login::open(way, &account, Wishes::default()).await;
        let ready = opened.map_err(Complaint::unreachable)?;
        let killed = ask(ready.stream, ready.capabilities, &statement).await;
        killed.map(|_| ()).map_err(Complaint::unreachable)
    };
    let killed = tokio::time::timeout(shared.config.limits.connect_time_max, killing).await;
    drop(closing);
    killed.unwrap_or_else(|_| Err(Complaint::unreachable("it does not answer")))
}

/// Ends a session when dropped.
struct Closing<'a>(&'a Shared, Option<u32>);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.1 {
            self.0.waits.close(&id);
        }
    }
}
