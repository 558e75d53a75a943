//! One request and the head of its response: which connection carries it, and how often it is
//! tried.
//!
//! | what happened | the request is |
//! |---|---|
//! | no connection to a backend | sent to the next, as long as there are not too many retries; each is tried once |
//! | the connection was found closed before any of the request was written | sent on a new one, or else to the next backend |
//! | a reused connection was closed before a byte of the response came | sent on a new one if its method is idempotent (RFC 9110 9.2.2) and it has no body, or else to the next backend |
//! | the backend says that it has not processed the request (HTTP/2, `GOAWAY`) | sent on a new connection, or else to the next backend |
//! | the backend has refused the request (HTTP/2, `REFUSED_STREAM`) | sent to the next backend, or else 503 |
//! | anything else | not sent again: 502, or 504 if the backend was silent |
//!
//! Dropping the future closes the connection or, in HTTP/2, resets the stream. That tells the backend
//! that nobody waits any more.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use http::{Request, Response, header};
use shortline_base::clock::now_ns;

use super::choice::Wish;
use super::error::ProxyError;
use super::error::UploadError;
use super::pool::{Backend, Caller, Lease, Outstanding};
use super::response::ResponseBody;
use super::trail::Trail;
use super::upload::{RequestBody, Timer, Upload, Wait};
use super::upstream::Upstream;

/// The head of a response, and what is needed to end the exchange.
pub struct Answer {
    /// The head, with the body to come.
    pub response: Response<ResponseBody>,
    /// What to do when the body has come.
    pub ending: Ending,
}

/// An exchange under way.
pub struct Ending {
    /// The group of backends.
    pub upstream: Arc<Upstream>,
    outstanding: Outstanding,
    lease: Box<Lease>,
    upload: Arc<Upload>,
}

/// Sends `request` of `caller` to one of `upstream`'s backends and waits for the response's head.
///
/// # Errors
/// [`ProxyError`], when no backend has answered.
pub async fn exchange(
    upstream: &Arc<Upstream>,
    caller: &Caller,
    wish: Wish,
    mut request: Box<Request<RequestBody>>,
    trail: &mut Trail,
) -> Result<Answer, ProxyError> {
    let upload = Arc::clone(request.body().upload());
    let upgrade = request.headers().contains_key(header::UPGRADE);
    let mut tried = Vec::new();
    let mut failure = ProxyError::NoneUp;
    upstream.knows_backends().await;
    let mut tried_ns = now_ns();
    upstream.has_request(tried_ns);
    while let Some(backend) = &upstream.pick(&tried, wish, tried_ns) {
        if !tried.is_empty() {
            if !upstream.may_retry() {
                break;
            }
            backend.retried();
        }
        let outstanding = backend.begin();
        trail.turns_to(backend, tried_ns);
        let connected = backend.connection(caller, upgrade).await;
        trail.has_connected(&connected, tried_ns);
        let error = match connected {
            Ok(lease) => {
                let attempt = Attempt {
                    upstream: Arc::clone(upstream),
                    outstanding,
                    upload: Arc::clone(&upload),
                };
                match Box::pin(attempt.send(lease, request, trail)).await? {
                    Sent::Answered(answer) => return Ok(answer),
                    Sent::Unsent(whole, error) => {
                        request = whole;
                        error
                    }
                }
            }
            Err(error) => error,
        };
        if !matches!(
            error,
            ProxyError::Busy { .. } | ProxyError::StreamRefused { .. }
        ) {
            backend.failed();
        }
        tried.push(Arc::clone(backend));
        failure = error;
        tried_ns = now_ns();
    }
    Err(failure)
}

/// The result of sending a request to a backend over an available connection.
enum Sent {
    Answered(Answer),
    /// The backend has not processed the request, and takes it over no other connection. Another
    /// backend may have it.
    Unsent(Box<Request<RequestBody>>, ProxyError),
}

/// A request at its backend.
struct Attempt {
    upstream: Arc<Upstream>,
    outstanding: Outstanding,
    upload: Arc<Upload>,
}

impl Attempt {
    /// Sends the request on `lease`, and where that is safe once more on a new connection.
    async fn send(
        self,
        mut lease: Box<Lease>,
        mut request: Box<Request<RequestBody>>,
        trail: &mut Trail,
    ) -> Result<Sent, ProxyError> {
        let backend = Arc::clone(self.outstanding.backend());
        loop {
            let mut timer = std::mem::take(&mut lease.timer);
            let sent = {
                let sent = pin!(lease.send(request));
                let options = &self.upstream.options;
                self.upload.awaiting(options, &mut timer, sent).await
            };
            lease.timer = timer;
            let unanswered = match sent {
                Ok(Ok(response)) => {
                    backend.succeeded();
                    return Ok(Sent::Answered(self.answered(lease, response)));
                }
                Ok(Err(unanswered)) => unanswered,
                Err(wait) => {
                    lease.doubt();
                    return Err(given_up(&backend, &self.upload, wait));
                }
            };
            if let Some(failure) = self.upload.failure() {
                return Err(failure.into());
            }
            request = match unanswered.request {
                Some(request) if unanswered.refused => {
                    let backend = backend.label().to_owned();
                    return Ok(Sent::Unsent(request, ProxyError::StreamRefused { backend }));
                }
                // A fresh connection has no excuse to fail.
                Some(request) if !lease.reused => {
                    return Ok(Sent::Unsent(request, ProxyError::Broken(unanswered.error)));
                }
                Some(request) => request,
                None => {
                    backend.failed();
                    return Err(ProxyError::Broken(unanswered.error));
                }
            };
            let begun_ns = now_ns();
            let connected = Box::pin(backend.reconnect(lease)).await;
            trail.has_connected(&connected, begun_ns);
            lease = match connected {
                Ok(lease) => lease,
                Err(error) => return Ok(Sent::Unsent(request, error)),
            };
        }
    }

    fn answered(self, lease: Box<Lease>, response: Response<ResponseBody>) -> Answer {
        Answer {
            response,
            ending: Ending {
                upstream: self.upstream,
                outstanding: self.outstanding,
                lease,
                upload: self.upload,
            },
        }
    }
}

fn given_up(backend: &Backend, upload: &Upload, wait: Wait) -> ProxyError {
    if wait == Wait::ClientStalled {
        upload.abandon(UploadError::Stalled);
        return UploadError::Stalled.into();
    }
    backend.failed();
    upload.abandon(UploadError::Abandoned);
    ProxyError::Late {
        backend: backend.label().to_owned(),
    }
}

impl Ending {
    /// The response's last byte has come.
    pub fn complete(&self) {
        // A backend that has answered in full does not want the rest.
        self.upload.abandon(UploadError::Abandoned);
    }

    /// The response's last byte will never come.
    pub fn broke_off(&self, kind: io::ErrorKind, reason: &str) {
        if kind == io::ErrorKind::TimedOut {
            self.lease.doubt();
        }
        // The client may have caused this by breaking off its own request.
        if self.upload.failure().is_none() {
            let backend = self.outstanding.backend();
            backend.failed();
            self.upstream.log_broken_off(backend.label(), reason);
        }
        self.upload.abandon(UploadError::Abandoned);
    }

    /// That of the waits for the backend.
    pub fn timer(&mut self) -> &mut Timer {
        &mut self.lease.timer
    }

    /// The backend that has answered.
    pub fn backend(&self) -> &Backend {
        self.outstanding.backend()
    }

    /// The same as [`Self::keep_connection`], in a task of its own if the connection is not ready yet.
    pub fn keep_connection_soon(self) {
        match self.lease.is_ready() {
            true => {
                let backend = Arc::clone(self.outstanding.backend());
                drop(self.outstanding);
                backend.keep_ready(self.lease);
            }
            false => drop(tokio::spawn(self.keep_connection())),
        }
    }

    /// Keeps the connection for the next exchange, once it is ready.
    pub async fn keep_connection(self) {
        let backend = Arc::clone(self.outstanding.backend());
        drop(self.outstanding);
        backend.keep(self.lease).await;
    }
}
