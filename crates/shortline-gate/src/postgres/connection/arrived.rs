//! A client whose session comes from another process ([`crate::handover`]).

use std::sync::Arc;

use super::super::Shared;
use super::super::pool::Pooled;
use super::{Opened, account_of, run};
use crate::handover::{Arrival, ArrivalError, ProtocolState, SessionState};
use crate::relay::{About, Registration, Session, Side, Socket, Stream, Work};

/// Goes on with a session once it is this process's, to its end.
pub async fn go_on(shared: Arc<Shared>, arrival: Arrival, registration: Registration) {
    let opened = arrival.enter(|state, socket| reopen(&shared, state, socket, &registration));
    // Boxed, so that its memory is freed before the session.
    if let Some(opened) = Box::pin(opened).await {
        Box::pin(run(&shared, opened)).await;
    }
    drop(registration);
}

fn reopen(
    shared: &Arc<Shared>,
    state: SessionState,
    socket: Socket,
    registration: &Registration,
) -> Result<Opened<Pooled>, ArrivalError> {
    let pool = shared.config.pool.as_ref().ok_or(ArrivalError::NoPool)?;
    if registration.is_too_many {
        return Err(ArrivalError::TooMany);
    }
    let names = Arc::new(state.names());
    let mut account = account_of(shared, &names);
    shared.join(&mut account, &names)?;
    let idle_time_max = shared
        .config
        .relay
        .idle_transaction_time_max(&names.client());
    let ProtocolState::Postgres(of_protocol) = state.protocol else {
        return Err(ArrivalError::Protocol);
    };
    let key: Box<[u8]> = of_protocol.key.0.clone().into();
    let protocol = Pooled::unpack(shared, pool, Arc::clone(&names), of_protocol)?;
    let handle = registration.handle.member();
    handle.introduce(About {
        peer: state.peer,
        local: state.local,
        is_secure: false,
        names,
    });
    let work = Work::new(&shared.gate, handle, Some(account));
    let (client, server) = (Stream::Plain(socket), Side::detached());
    let session = Session::new(protocol, handle, work, client, server, state.ahead.0)
        .limit_idle_transactions(idle_time_max);
    Ok(Opened {
        session: Box::new(session),
        ahead: Vec::new(),
        entry: Some(shared.waits.register(key, handle)),
        cancelling: None,
    })
}
