//! HTTP/2 application servers, on the h2 crate. The requests of a connection are answered side by side.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use tokio::sync::Notify;

use super::{LATE_NS, NUMBER_FIELD, WHO_FIELD, Wanted, piece_bytes};
use crate::network::{Connection, End, reset_by_backend};
use crate::world::World;

/// The share of answers behind which the connection closes, as soon as nothing else is under way and all is written.
const CLOSINGS: f64 = 0.1;

/// Serves one connection until it ends.
pub async fn serve(world: Arc<World>, end: End) {
    let socket = Arc::clone(end.connection());
    let streams_max = world.draw(|random| rand::Rng::random_range(random, 1..10));
    let shaken = server::Builder::new()
        .max_concurrent_streams(streams_max)
        .handshake::<_, Bytes>(end)
        .await;
    let Ok(mut connection) = shaken else {
        return;
    };
    let state = Arc::new(State {
        world,
        socket,
        open: AtomicUsize::new(0),
        says_goodbye: AtomicBool::new(false),
        closes: AtomicBool::new(false),
        changed: Notify::new(),
    });
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = poll_fn(|context| state.poll_accept(&mut connection, context)) => accepted,
            () = state.changed.notified() => {
                if state.says_goodbye.swap(false, Ordering::Relaxed) {
                    connection.graceful_shutdown();
                }
                continue;
            }
        };
        let Some((request, respond)) = accepted else {
            return;
        };
        state.open.fetch_add(1, Ordering::Relaxed);
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            // Whoever asked may have gone.
            let _ = state.answer(request, respond).await;
            state.open.fetch_sub(1, Ordering::Relaxed);
            if state.world.chance(CLOSINGS) {
                state.closes.store(true, Ordering::Relaxed);
            }
            state.changed.notify_one();
        });
    }
}

/// A request, and the way to answer it.
type Accepted = (Request<RecvStream>, SendResponse<Bytes>);

/// A connection.
struct State {
    world: Arc<World>,
    socket: Arc<Connection>,
    /// Requests under way.
    open: AtomicUsize,
    says_goodbye: AtomicBool,
    closes: AtomicBool,
    changed: Notify,
}

impl State {
    /// The next request. `None`: the connection has ended, or is to be closed now.
    fn poll_accept(
        &self,
        connection: &mut server::Connection<End, Bytes>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Accepted>> {
        let accepted = connection.poll_accept(context);
        let is_idle = self.open.load(Ordering::Relaxed) == 0 && !self.socket.down.has_writer();
        match accepted {
            Poll::Ready(accepted) => Poll::Ready(accepted.and_then(Result::ok)),
            Poll::Pending if is_idle && self.closes.load(Ordering::Relaxed) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }

    async fn answer(
        &self,
        request: Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        let (head, body) = request.into_parts();
        let text = |name| field(&head.headers, name);
        let target = head
            .uri
            .path_and_query()
            .map_or("", |target| target.as_str());
        let (number, who) = (text(NUMBER_FIELD), text(WHO_FIELD));
        let asked = Wanted::new(target, head.method == "POST", number, who);
        if asked.answer == "refuses" {
            respond.send_reset(Reason::REFUSED_STREAM);
            return Ok(());
        }
        let upload = whole(body).await?;
        if asked.check_upload(&self.world, &upload).is_none() {
            return Ok(());
        }
        self.world
            .note(format_args!("a backend answers {}", asked.target));
        match &*asked.answer {
            "never" => {
                poll_fn(|context| respond.poll_reset(context)).await?;
                return Ok(());
            }
            "late" => self.world.sleep(LATE_NS).await,
            "goodbye" => {
                self.says_goodbye.store(true, Ordering::Relaxed);
                self.changed.notify_one();
            }
            _ => {}
        }
        let body = asked.body();
        let has_length =
            !["chunks", "ends-early-in-chunks", "resets-in-chunks"].contains(&&*asked.answer);
        let mut response = Response::builder().status(200);
        if has_length {
            response = response.header("content-length", body.len());
        }
        let Ok(response) = response.body(()) else {
            return Ok(());
        };
        let mut sending = respond.send_response(response, false)?;
        let breaks = matches!(&*asked.answer, "ends-well")
            || asked.answer.starts_with("ends-early")
            || asked.answer.starts_with("resets");
        if !breaks {
            self.send(&mut sending, &body).await?;
            return sending.send_data(Bytes::new(), true);
        }
        self.send(&mut sending, &body[..body.len() / 2]).await?;
        match &*asked.answer {
            "ends-well" => sending.send_reset(Reason::NO_ERROR),
            answer if answer.starts_with("resets") => reset_by_backend(&self.socket),
            _ => sending.send_reset(Reason::INTERNAL_ERROR),
        }
        Ok(())
    }

    async fn send(&self, sending: &mut SendStream<Bytes>, body: &[u8]) -> Result<(), h2::Error> {
        let mut rest = body;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(piece_bytes(&self.world, rest.len()).await);
            let mut piece = Bytes::copy_from_slice(piece);
            while !piece.is_empty() {
                sending.reserve_capacity(piece.len());
                let room = poll_fn(|context| sending.poll_capacity(context)).await;
                let Some(room) = room.transpose()? else {
                    return Ok(());
                };
                let part = piece.split_to(room.min(piece.len()));
                sending.send_data(part, false)?;
            }
            rest = after;
        }
        Ok(())
    }
}

async fn whole(mut body: RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut bytes = Vec::new();
    while let Some(data) = body.data().await {
        let data = data?;
        // It fails only for a stream that is gone.
        let _ = body.flow_control().release_capacity(data.len());
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

fn field<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
