//! What protocols have in common in which a connection carries one request at a time.

use http::{Method, Request, Response};
use http_body::Body;

use super::fastcgi::{self, Call};
use super::http1::Http1;
use super::response::{BodyError, ResponseBody};
use super::upload::RequestBody;

/// Sends requests on one connection.
pub enum Sender {
    /// HTTP/1.1.
    Http1(Http1),
    /// FastCGI.
    FastCgi(fastcgi::Sender),
}

/// A request that was not answered.
pub struct Unsent {
    /// The request, as it is now, if it is still there.
    pub request: Option<Box<Request<RequestBody>>>,
    /// Whether something of it was sent.
    pub has_begun: bool,
    /// Why there is no answer.
    pub error: BodyError,
}

impl Unsent {
    /// Nothing was sent.
    pub fn whole(request: Box<Request<RequestBody>>, error: impl Into<BodyError>) -> Box<Self> {
        Box::new(Self {
            request: Some(request),
            has_begun: false,
            error: error.into(),
        })
    }
}

impl Sender {
    /// Whether it takes a request now.
    pub fn is_ready(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_ready(),
            Self::FastCgi(sender) => sender.is_ready(),
        }
    }

    /// Whether it will never take one again.
    pub fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::FastCgi(sender) => sender.is_closed(),
        }
    }

    /// Waits until it takes a request. `false`: it never will.
    pub async fn ready(&mut self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_ready(),
            Self::FastCgi(sender) => sender.ready().await,
        }
    }

    /// Sends a request, and waits for the head of its response. One that `may_be_repeated` is there afterwards.
    ///
    /// # Errors
    /// [`Unsent`], in a box since it may hold the request.
    pub async fn send(
        &mut self,
        request: Box<Request<RequestBody>>,
        may_be_repeated: bool,
    ) -> Result<Response<ResponseBody>, Box<Unsent>> {
        match self {
            Self::Http1(sender) => sender.send(request).await,
            Self::FastCgi(sender) => {
                let again = may_be_repeated.then(|| copy(&request));
                match Box::pin(sender.send(request)).await {
                    Ok(response) => Ok(response.map(ResponseBody::FastCgi)),
                    Err(unanswered) => Err(Box::new(Unsent {
                        has_begun: unanswered.request.is_none(),
                        request: unanswered.request.or(again),
                        error: unanswered.error.into(),
                    })),
                }
            }
        }
    }
}

/// Whether a backend may process the request twice (RFC 9110, 9.2.2), and all of it is still there when it was sent.
pub fn may_be_sent_again(request: &Request<RequestBody>) -> bool {
    let idempotent = [
        Method::GET,
        Method::HEAD,
        Method::OPTIONS,
        Method::PUT,
        Method::DELETE,
        Method::TRACE,
    ];
    request.body().is_end_stream() && idempotent.contains(request.method())
}

/// A copy of the request, which must have no body.
fn copy(request: &Request<RequestBody>) -> Box<Request<RequestBody>> {
    let mut copy = Box::new(Request::new(RequestBody::none()));
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    if let Some(call) = request.extensions().get::<Call>() {
        copy.extensions_mut().insert(call.clone());
    }
    copy
}
