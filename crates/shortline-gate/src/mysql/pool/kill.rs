//! KILL by the numbers that clients got from the gate. The server has other numbers for its connections.
//!
//! A statement that waits at the gate is ended there. A running statement is killed at the server, over a separate
//! connection that is logged in as the client's user, who is the victim's. So the server decides whether the user may do
//! this. The victim's connection is not lent to another session until the KILL is done.
//!
//! In a handover the victim may be another process's still ([`crate::handover`]). That process gets the KILL, and the
//! client does not learn what becomes of it.

use std::sync::Arc;

use super::Pool;
use crate::mysql::Shared;
use crate::mysql::ask::ask;
use crate::mysql::complaint::Complaint;
use crate::mysql::login::{self, Account, Way, Wishes};

/// A KILL command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    /// The number that the victim's client got.
    pub thread_id: u32,
    /// Whether only its statement is killed.
    pub is_of_statement: bool,
}

impl Kill {
    /// For another process, with the user whose it is.
    fn pack(self, user: &str) -> Vec<u8> {
        let id = self.thread_id.to_le_bytes();
        [&[u8::from(self.is_of_statement)], &id[..], user.as_bytes()].concat()
    }

    /// Of another process. None if it is none.
    fn unpack(packed: &[u8]) -> Option<(Self, &str)> {
        let (&is_of_statement, rest) = packed.split_first()?;
        let (id, user) = rest.split_first_chunk()?;
        let kill = Self {
            thread_id: u32::from_le_bytes(*id),
            is_of_statement: is_of_statement != 0,
        };
        Some((kill, std::str::from_utf8(user).ok()?))
    }
}

/// Runs the KILLs that another process passes on, for ever.
pub async fn serve_passed_on(shared: &Arc<Shared>, pool: &Arc<Pool>) {
    loop {
        let packed = shared.config.registry.cancels().next().await;
        let Some((what, user)) = Kill::unpack(&packed) else {
            continue;
        };
        let killing = kill(Arc::clone(shared), Arc::clone(pool), user.to_owned(), what);
        if let Err(error) = killing.await {
            tracing::debug!("a KILL that was passed on: {error}");
        }
    }
}

/// Runs a KILL for this user.
///
/// # Errors
/// The error for the client, instead of OK.
pub async fn kill(
    shared: Arc<Shared>,
    pool: Arc<Pool>,
    user: String,
    what: Kill,
) -> Result<(), Complaint> {
    let id = what.thread_id;
    let target = pool.targets.lock().get(&id).cloned();
    let Some(target) = target else {
        let elsewhere = shared.config.registry.cancels();
        return match elsewhere.pass_on(&what.pack(&user)) {
            true => Ok(()),
            false => Err(Complaint::new(
                1094,
                "HY000",
                format!("Unknown thread id: {id}"),
            )),
        };
    };
    if target.user != user {
        let message = format!("You are not owner of thread {id}");
        return Err(Complaint::new(1095, "HY000", message));
    }
    if what.is_of_statement && shared.waits.cancel(&id) {
        return Ok(());
    }
    // Dropped at the end, so the session closes after the server got the KILL.
    let closing = Closing(&shared, (!what.is_of_statement).then_some(id));
    let (thread_id, node, _under_way) = {
        let current = target.current.lock();
        match current.as_ref() {
            Some(meant) => (meant.thread_id, meant.node, meant.cancels.begin()),
            // It has no connection, so no statement runs.
            None => return Ok(()),
        }
    };
    let way = Way {
        upstream: pool.common.nodes.upstream(node),
        tls: &shared.config.upstream_tls,
        time_max: shared.config.limits.connect_time_max,
    };
    let account = Account {
        user,
        secret: target.secret.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_arrives_as_it_left() {
        for is_of_statement in [false, true] {
            let kill = Kill {
                thread_id: 0x8765_4321,
                is_of_statement,
            };
            assert_eq!(Kill::unpack(&kill.pack("user")), Some((kill, "user")));
        }
        assert_eq!(Kill::unpack(b"\0\0\0\0"), None);
    }
}
