//! A small answer of a backend that is held whole: what a server says of somebody else's request. It is bounded in bytes and
//! in time, and no part of it has left when it turns out to be too long.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::choice::Wish;
use super::error::{ProxyError, with_sources};
use super::exchange::{self, Answer};
use super::pool::Caller;
use super::response::{BodyError, ResponseBody};
use super::trail::Trail;
use super::upload::RequestBody;
use super::upstream::Upstream;

/// How much of an answer is taken.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of its body.
    pub bytes_max: usize,
    /// Time from its head to its last byte.
    pub time_max: Duration,
}

/// Asks a backend without a body, and takes the whole answer.
///
/// # Errors
/// [`ProxyError`], also for an answer beyond the bounds.
pub async fn fetch(
    upstream: &Arc<Upstream>,
    caller: Caller,
    request: Request<()>,
    bounds: Bounds,
    trail: &mut Trail,
) -> Result<Response<Bytes>, ProxyError> {
    let request = Box::new(request.map(|()| RequestBody::none()));
    let wish = Wish::default();
    let answer = exchange::exchange(upstream, &caller, wish, request, trail).await?;
    trail.is_answered();
    if answer.response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(ProxyError::UpgradeUnasked);
    }
    let Answer { response, ending } = answer;
    let (head, body) = response.into_parts();
    let error = match timeout(bounds.time_max, taken(body, bounds.bytes_max)).await {
        Ok(Ok(body)) => {
            ending.complete();
            tokio::spawn(ending.keep_connection());
            return Ok(Response::from_parts(head, body));
        }
        Ok(Err(error)) => ProxyError::Broken(error),
        Err(_elapsed) => ProxyError::Late {
            backend: ending.backend().label().to_owned(),
        },
    };
    ending.broke_off(io::ErrorKind::TimedOut, &with_sources(&error));
    Err(error)
}

async fn taken(mut body: ResponseBody, bytes_max: usize) -> Result<Bytes, BodyError> {
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else {
            continue;
        };
        if all.len() + piece.len() > bytes_max {
            let why = format!("the answer has more than {bytes_max} bytes, the most allowed");
            return Err(why.into());
        }
        all.extend_from_slice(&piece);
    }
    Ok(all.freeze())
}
