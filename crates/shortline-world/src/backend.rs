//! Application servers. They check what they are sent, and answer or fail as the target says.
//!
//! | module | speaks |
//! |---|---|
//! | `http1` | HTTP/1.1 |
//! | `http2` | HTTP/2 |
//! | `fastcgi` | FastCGI |
//!
//! What a request is about is in its target, and who makes it in two fields, so that targets can be the same for many.

mod fastcgi;
mod http1;
mod http2;

use std::sync::Arc;

use rand::Rng;

use crate::content::{Checked, Content};
use crate::network::End;
use crate::scenario::{BOMB_BYTES, Behind, KeptKind};
use crate::verdict::Fault;
use crate::world::World;

/// The port of the backend that always listens.
pub const SOUND_PORT: u16 = 1;
/// The port of the backend that sometimes refuses connections.
pub const FLAKY_PORT: u16 = 2;
/// The same for HTTP/2.
pub const SOUND_HTTP2_PORT: u16 = 3;
/// The same for HTTP/2.
pub const FLAKY_HTTP2_PORT: u16 = 4;
/// The port of the backend that is said to speak HTTP/2.
pub const NOT_HTTP2_PORT: u16 = 5;
/// The port of the backend that speaks FastCGI.
pub const FASTCGI_PORT: u16 = 6;
/// The share of connections that a flaky one refuses.
const REFUSALS: f64 = 0.2;
/// A request's body is content named by its number plus this.
pub const UPLOAD_KEY: u64 = 1_000_000;
/// The first key of responses.
const RELAYED_KEY: u64 = 2_000_000;
/// The first key of responses that may be kept.
const KEPT_KEY: u64 = 1 << 40;
/// How long a late backend waits before it answers, in nanoseconds.
const LATE_NS: u64 = 700_000_000;

/// The field with the number of a request.
pub const NUMBER_FIELD: &str = "user-agent";
/// The field with the client of a request.
pub const WHO_FIELD: &str = "x-who";

/// What backends know of the world.
#[derive(Clone, Copy, Debug)]
pub struct Knowledge {
    /// When what may be kept changes.
    pub purge_ns: Option<u64>,
}

impl Knowledge {
    /// The version of what may be kept at that time.
    pub fn version(self, now_ns: u64) -> u64 {
        self.purge_ns.map_or(0, |at_ns| u64::from(now_ns >= at_ns))
    }
}

/// The share of connections that the backend at `port` refuses.
pub fn refusals(port: u16) -> f64 {
    match port {
        FLAKY_PORT | FLAKY_HTTP2_PORT => REFUSALS,
        _ => 0.0,
    }
}

/// Serves one connection until it ends.
pub async fn serve(world: Arc<World>, knows: Knowledge, port: u16, end: End) {
    match port {
        SOUND_HTTP2_PORT | FLAKY_HTTP2_PORT => http2::serve(world, end).await,
        FASTCGI_PORT => fastcgi::serve(world, end).await,
        _ => http1::serve(world, knows, end).await,
    }
}

/// The content of a response that is not kept.
pub fn relayed(behind: Behind, bytes: u64) -> Content {
    let key = RELAYED_KEY * (2 + behind as u64) + bytes;
    match behind {
        Behind::Texts if bytes == BOMB_BYTES => Content::Same(b'a'),
        Behind::Texts => Content::Text(key),
        _ => Content::Bytes(key),
    }
}

/// Whose a response that may be kept is.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// The version of its content.
    pub version: u64,
    /// The client that asks.
    pub who: u64,
    /// The number of the request.
    pub number: u64,
}

/// The content of a response that may be kept.
pub fn kept(kind: KeptKind, name: u64, bytes: u64, owner: Owner) -> Content {
    let whose = match kind {
        KeptKind::Private | KeptKind::Cookie => 1000 + owner.number,
        KeptKind::Varies => owner.who,
        KeptKind::Public | KeptKind::Chunks | KeptKind::Stale | KeptKind::Lies => 0,
    };
    let parts = [kind as u64, name, bytes, owner.version, whose];
    let key = parts
        .into_iter()
        .fold(0, |key, part| key * 1009 + part % 100_000);
    Content::Bytes(KEPT_KEY + key % KEPT_KEY)
}

/// What a request asks for.
struct Wanted {
    target: String,
    number: u64,
    who: u64,
    bytes: u64,
    /// How it is to be answered.
    answer: String,
    /// The name of what may be kept.
    name: u64,
    behind: Option<Behind>,
    has_body: bool,
}

impl Wanted {
    /// The request for a target, of this number and client.
    fn new(target: &str, has_body: bool, number: Option<&str>, who: Option<&str>) -> Self {
        let parsed = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
        let path = target.split('?').next().unwrap_or_default();
        let mut parts = path.trim_start_matches('/').split('/');
        let route = parts.next().unwrap_or_default();
        let all = [
            Behind::Http1,
            Behind::Texts,
            Behind::Http2,
            Behind::NotHttp2,
            Behind::FastCgi,
        ];
        Self {
            number: parsed(number),
            who: parsed(who),
            bytes: parsed(parts.next()),
            answer: parts.next().unwrap_or_default().to_owned(),
            name: parsed(parts.next()),
            behind: all
                .into_iter()
                .find(|behind| behind.route() == format!("/{route}")),
            has_body,
            target: target.to_owned(),
        }
    }

    /// The response's body, where it is not one that may be kept.
    fn body(&self) -> Vec<u8> {
        let behind = self.behind.unwrap_or(Behind::Http1);
        relayed(behind, self.bytes).piece(0, self.bytes as usize)
    }

    /// Reports an upload that is not what was sent.
    fn check_upload(&self, world: &World, body: &[u8]) -> Option<()> {
        if !self.has_body {
            return Some(());
        }
        let mut checked = Checked::new(UPLOAD_KEY + self.number, 0, body.len() as u64);
        let Err(what) = checked.take(body) else {
            return Some(());
        };
        let whose = self.target.clone();
        world.report(Fault::Upload { whose, what });
        None
    }
}

/// How many bytes come next, sometimes after a pause.
async fn piece_bytes(world: &Arc<World>, left: usize) -> usize {
    let (pause_ns, bytes) = world.draw(|random| {
        let pauses = random.random_bool(0.1);
        let pause_ns = random.random_range(0..5_000_000);
        (pauses.then_some(pause_ns), random.random_range(1..60_000))
    });
    if let Some(pause_ns) = pause_ns {
        world.sleep(pause_ns).await;
    }
    left.min(bytes)
}
