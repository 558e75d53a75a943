//! A client whose session comes from another process ([`crate::handover`]).

use std::sync::Arc;

use super::protocol::Pooled;
use crate::handover::{Arrival, ArrivalError, ProtocolState, SessionState};
use crate::mysql::{Newcomer, Shared, join, relay_to_end};
use crate::relay::{Registration, Socket, Stream};

/// Goes on with a session once it is this process's, to its end.
pub async fn go_on(shared: &Arc<Shared>, arrival: Arrival, registration: &Registration) {
    let opened = arrival.enter(|state, socket| reopen(shared, state, socket, registration));
    // Boxed, so that its memory is freed before the session.
    if let Some((newcomer, ahead)) = Box::pin(opened).await {
        let opened = newcomer.begin(shared, registration, ahead);
        Box::pin(relay_to_end(shared, opened)).await;
    }
}

fn reopen(
    shared: &Arc<Shared>,
    state: SessionState,
    socket: Socket,
    registration: &Registration,
) -> Result<(Newcomer, Vec<u8>), ArrivalError> {
    let pool = shared.pool.as_ref().ok_or(ArrivalError::NoPool)?;
    if registration.is_too_many {
        return Err(ArrivalError::TooMany);
    }
    let names = state.names();
    let (account, joined) = join(shared, &names);
    joined?;
    let ProtocolState::Mysql(of_protocol) = state.protocol else {
        return Err(ArrivalError::Protocol);
    };
    let thread_id = of_protocol.thread_id;
    let newcomer = Newcomer {
        protocol: Pooled::unpack(shared, pool, names, of_protocol)?,
        client: Stream::Plain(socket),
        entry: shared
            .waits
            .register(thread_id, registration.handle.member()),
        account: Some(account),
        peer: state.peer,
        local: state.local,
    };
    Ok((newcomer, state.ahead.0))
}
