//! Pieces over one HTTP/2 connection: so many streams at a time, the next where one has ended.

use std::sync::Arc;

use bytes::Bytes;
use h2::client::SendRequest;
use http::header::RANGE;
use http::{Request, StatusCode};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::answers::Counted;
use super::{Attack, Pieces, Problem};

/// Asks over `stream` until the connection or one of its streams fails.
pub(super) async fn ask(
    attack: Arc<Attack>,
    stream: TcpStream,
    pieces: Pieces,
    at_a_time: u32,
) -> Result<(), Problem> {
    let (requests, connection) = h2::client::handshake(stream).await?;
    let pieces = Arc::new(Mutex::new(pieces));
    // Dropped, and ended, with the first that ends.
    let mut all: JoinSet<Result<(), Problem>> = JoinSet::new();
    all.spawn(async move { Ok(connection.await?) });
    for _ in 0..at_a_time {
        let (attack, pieces) = (Arc::clone(&attack), Arc::clone(&pieces));
        let requests = requests.clone();
        all.spawn(async move { one_after_another(&attack, requests, &pieces).await });
    }
    match all.join_next().await {
        Some(ended) => ended?,
        None => Ok(()),
    }
}

/// One stream's place.
async fn one_after_another(
    attack: &Attack,
    mut requests: SendRequest<Bytes>,
    pieces: &Mutex<Pieces>,
) -> Result<(), Problem> {
    let uri = format!("http://{}{}", attack.config.server, attack.config.path);
    loop {
        let range = pieces.lock().await.next_range();
        requests = requests.ready().await?;
        let request = Request::get(&uri).header(RANGE, range).body(())?;
        let (response, _) = requests.send_request(request, true)?;
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
    }
}
