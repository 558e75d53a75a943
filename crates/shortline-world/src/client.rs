//! Clients. They ask, read the answer in their own manner, and check every byte of it.

mod http1;
mod http2;
mod taking;

use std::sync::Arc;

use crate::arena::Arena;
use crate::content::Checked;
use crate::network::End;
use crate::requests::Requests;
use crate::scenario::{Ask, ClientPlan, FILES, Manner, What};
use crate::verdict::Fault;
use crate::{backend, content};

/// How long a client stays that takes nothing or whose network is gone, in nanoseconds.
const PATIENCE_NS: u64 = 30_000_000_000;

/// One client's life.
pub async fn live(arena: Arc<Arena>, index: usize, plan: ClientPlan) {
    arena.world.sleep(plan.begins_ns).await;
    let end = arena.connect(index, &plan).await;
    let asking = async {
        if plan.http2 {
            http2::ask(&arena.requests, index, &plan, end).await;
        } else {
            http1::ask(&arena.requests, index, &plan, end).await;
        }
    };
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

/// What a response's body should be, by its status. `None`: its bytes are not known.
fn expected(ask: &Ask, status: u16) -> Option<Checked> {
    let file = |file: usize| file as u64;
    match (ask.what, status) {
        (What::File(at), 200) => Some(Checked::new(file(at), 0, FILES[at])),
        (What::Head(_), _) => Some(Checked::new(0, 0, 0)),
        (What::Range(at, first, last), 206) => Some(Checked::new(file(at), first, last + 1)),
        (What::Range(at, ..), 200) => Some(Checked::new(file(at), 0, FILES[at])),
        (What::Relayed { bytes, .. }, 200) => {
            Some(Checked::new(backend::RELAYED_KEY + bytes, 0, bytes))
        }
        _ => None,
    }
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

/// Checks bytes of a body and reports what is wrong with them.
fn look(requests: &Requests, whose: &str, body: Option<&mut Checked>, bytes: &[u8]) -> Option<()> {
    let Some(body) = body else {
        return Some(());
    };
    if let Err(what) = body.take(bytes) {
        requests.world.report(Fault::Wrong {
            whose: whose.to_owned(),
            what,
        });
        return None;
    }
    Some(())
}

/// A description of a request for people.
fn whose(index: usize, ask: &Ask) -> String {
    format!("client {index}, {}", ask.what.target(ask.number))
}

/// An end whose client reads in its own manner.
type Taken = taking::Taking<End>;
