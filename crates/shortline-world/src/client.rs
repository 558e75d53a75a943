//! Clients. They ask, read the answer in their own manner, and check every byte of it.

mod body;
mod http1;
mod http2;
mod http3;
mod taking;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use shortline_web::proxy_header::{Version, announcement};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::arena::{Arena, announced_ends};
use crate::network::End;
use crate::requests::Requests;
use crate::scenario::{Announced, Ask, ClientPlan, Manner, Speaks, What};
use crate::verdict::Fault;
use crate::{backend, content};

/// How long a client stays that takes nothing or whose network is gone, in nanoseconds.
const PATIENCE_NS: u64 = 30_000_000_000;

/// One client's life.
pub async fn live(arena: Arc<Arena>, index: usize, plan: ClientPlan) {
    arena.world.sleep(plan.begins_ns).await;
    let asking = ask(&arena, index, &plan);
    if matches!(plan.manner, Manner::Honest | Manner::Slow { .. }) {
        asking.await;
    } else {
        let patience = arena.world.sleep(PATIENCE_NS);
        tokio::select! {
            biased;
            () = asking => {}
            () = patience => {}
        }
    }
}

/// Connects, and asks for everything.
async fn ask(arena: &Arc<Arena>, index: usize, plan: &ClientPlan) {
    if plan.speaks == Speaks::Http3 {
        return http3::ask(arena, index, plan).await;
    }
    let mut end = arena.connect(index, plan).await;
    announce(plan, &mut end).await;
    if plan.announced == Announced::Halfway {
        // It says no more, and waits for the server to close.
        let mut answer = Vec::new();
        let _ = end.read_to_end(&mut answer).await;
    } else if plan.speaks == Speaks::Http2 {
        http2::ask(&arena.requests, index, plan, end).await;
    } else {
        http1::ask(&arena.requests, index, plan, end).await;
    }
}

/// Sends what a proxy says before anything else.
async fn announce(plan: &ClientPlan, end: &mut End) {
    let whole = |version| announcement(version, Some(announced_ends(plan)));
    let bytes = match plan.announced {
        Announced::No => return,
        Announced::By(version) => whole(version),
        Announced::Wrongly => b"PROXY TCP4 198.51.100.7\r\n".to_vec(),
        Announced::Halfway => whole(Version::Two)[..20].to_vec(),
    };
    // The server may have gone.
    let _ = end.write_all(&bytes).await;
}

/// Until each of them has ended.
async fn all_at_once(asks: impl Iterator<Item = impl Future<Output = ()>>) {
    let mut asks: Vec<_> = asks.map(Box::pin).collect();
    poll_fn(|context| {
        asks.retain_mut(|ask| ask.as_mut().poll(context).is_pending());
        match asks.is_empty() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}

/// The request's body.
fn upload(ask: &Ask) -> Vec<u8> {
    match ask.what {
        What::Relayed { upload_bytes, .. } => {
            content::piece(backend::UPLOAD_KEY + ask.number, 0, upload_bytes as usize)
        }
        _ => Vec::new(),
    }
}

/// The request's method.
fn method(ask: &Ask) -> &'static str {
    match ask.what {
        What::Head(_) => "HEAD",
        What::Relayed { upload_bytes, .. } if upload_bytes > 0 => "POST",
        _ => "GET",
    }
}

/// The `Range` field for the first and last byte asked for.
fn range(ask: &Ask) -> Option<String> {
    match ask.what {
        What::Range(_, first, last) => Some(format!("bytes={first}-{last}")),
        _ => None,
    }
}

/// The fields of a request that say who asks for what.
fn fields(index: usize, ask: &Ask) -> Vec<(&'static str, String)> {
    let mut fields = vec![
        (backend::NUMBER_FIELD, ask.number.to_string()),
        (backend::WHO_FIELD, index.to_string()),
    ];
    fields.extend(
        ask.codings
            .map(|codings| ("accept-encoding", codings.to_owned())),
    );
    fields.extend(range(ask).map(|range| ("range", range)));
    fields
}

/// Reports what is wrong with a response.
fn sound<T>(requests: &Requests, whose: &str, looked: Result<T, String>) -> Option<T> {
    let report = |what| {
        requests.world.report(Fault::Wrong {
            whose: whose.to_owned(),
            what,
        });
    };
    looked.map_err(report).ok()
}

/// A description of a request for people.
fn whose(index: usize, ask: &Ask) -> String {
    format!("client {index}, {}", ask.what.target(ask.number))
}

/// An end whose client reads in its own manner.
type Taken = taking::Taking<End>;
