//! What protocols have in common in which a connection carries one request at a time.

use http::{Request, Response};

use super::fastcgi;
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
    /// The request, if nothing of it was sent.
    pub request: Option<Request<RequestBody>>,
    /// Why there is no answer.
    pub error: BodyError,
}

impl Unsent {
    /// Nothing was sent.
    pub fn whole(request: Request<RequestBody>, error: impl Into<BodyError>) -> Box<Self> {
        Box::new(Self {
            request: Some(request),
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

    /// Sends a request, and waits for the head of its response.
    ///
    /// # Errors
    /// [`Unsent`], in a box since it may hold the request.
    pub async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, Box<Unsent>> {
        match self {
            Self::Http1(sender) => sender.send(request).await,
            Self::FastCgi(sender) => match Box::pin(sender.send(request)).await {
                Ok(response) => Ok(response.map(ResponseBody::FastCgi)),
                Err(unanswered) => Err(Box::new(Unsent {
                    request: unanswered.request.map(|request| *request),
                    error: unanswered.error.into(),
                })),
            },
        }
    }
}
