//! A connection to a backend while a request has it: all of one in HTTP/1.1 and FastCGI, a stream in HTTP/2.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Request, Response};
use parking_lot::Mutex;

use super::super::backend_socket::{BackendSocket, Dialed};
use super::super::fastcgi::{self, Complaints};
use super::super::http1::Http1;
use super::super::http2;
use super::super::options::UpstreamOptions;
use super::super::places::Place;
use super::super::response::{BodyError, ResponseBody};
use super::super::sender::{Sender, may_be_sent_again};
use super::super::upload::{RequestBody, Timer};
use crate::proxy_header::Ends;

/// How long a connection may take to become ready again after a response.
const READY_TIME_MAX: Duration = Duration::from_secs(1);

/// A connection to a backend.
pub struct Lease {
    channel: Channel,
    /// Whether it has carried another request.
    pub reused: bool,
    worker: usize,
    /// The client that it has announced, if it has (PROXY protocol).
    announced: Option<Ends>,
    /// The place of the client that uses the connection. If it has all of it, the socket holds it too.
    /// Empty while idle.
    place: Arc<Mutex<Option<Place>>>,
    /// That of the waits for its answers, from one request to the next.
    pub timer: Timer,
}

enum Channel {
    Alone {
        sender: Sender,
        received: Arc<AtomicU64>,
        received_before: u64,
    },
    Http2(http2::Stream),
}

/// Why a request has no response.
pub struct Unanswered {
    /// The request, if it may be sent again: the backend has certainly not processed it, or the connection was used before,
    /// nothing of a response came, and to process the request twice does no harm.
    pub request: Option<Box<Request<RequestBody>>>,
    /// Whether the backend has refused the request and would refuse it again.
    pub refused: bool,
    /// The reason.
    pub error: BodyError,
}

impl Lease {
    /// A new connection for one request at a time: FastCGI, whose programs' complaints go there, or HTTP/1.1. It has announced
    /// this client.
    pub fn alone(
        stream: Dialed,
        worker: usize,
        place: Option<Place>,
        announced: Option<Ends>,
        options: &Arc<UpstreamOptions>,
        complaints: Option<&Arc<Complaints>>,
    ) -> Box<Self> {
        let received = Arc::new(AtomicU64::new(0));
        let place = Arc::new(Mutex::new(place));
        let socket = BackendSocket::new(stream, Arc::clone(&received), Arc::clone(&place));
        let sender = match complaints {
            Some(complaints) => {
                let (options, complaints) = (Arc::clone(options), Arc::clone(complaints));
                Sender::FastCgi(fastcgi::start(socket, options, complaints))
            }
            None => Sender::Http1(Http1::new(socket, options)),
        };
        Box::new(Self {
            channel: Channel::Alone {
                sender,
                received,
                received_before: 0,
            },
            reused: false,
            worker,
            announced,
            place,
            timer: Timer::default(),
        })
    }

    /// A stream of a connection that speaks HTTP/2.
    pub fn http2(
        stream: http2::Stream,
        worker: usize,
        reused: bool,
        place: Option<Place>,
    ) -> Box<Self> {
        Box::new(Self {
            channel: Channel::Http2(stream),
            reused,
            worker,
            announced: None,
            place: Arc::new(Mutex::new(place)),
            timer: Timer::default(),
        })
    }

    /// Sends `request` and waits for the response's head.
    ///
    /// # Errors
    /// [`Unanswered`]
    pub async fn send(
        &mut self,
        request: Box<Request<RequestBody>>,
    ) -> Result<Response<ResponseBody>, Unanswered> {
        let may_be_repeated = self.reused && may_be_sent_again(&request);
        match &mut self.channel {
            Channel::Alone {
                sender,
                received,
                received_before,
            } => {
                let sent = sender.send(request, may_be_repeated).await;
                sent.map_err(|unsent| {
                    let is_silent = received.load(Ordering::Relaxed) == *received_before;
                    let may_be_sent = !unsent.has_begun || may_be_repeated && is_silent;
                    Unanswered {
                        request: unsent.request.filter(|_| may_be_sent),
                        refused: false,
                        error: unsent.error,
                    }
                })
            }
            Channel::Http2(stream) => {
                let sent = Box::pin(stream.send(request)).await;
                sent.map_err(|unanswered| {
                    let connection_ends = unanswered.connection_ends;
                    let may_be_sent = !unanswered.has_begun || may_be_repeated && connection_ends;
                    Unanswered {
                        request: unanswered.request.filter(|_| may_be_sent),
                        refused: !connection_ends,
                        error: unanswered.error,
                    }
                })
            }
        }
    }

    /// Notes that an answer is late.
    pub fn doubt(&self) {
        if let Channel::Http2(stream) = &self.channel {
            stream.doubt();
        }
    }

    /// Whether it is a stream of HTTP/2.
    pub fn is_http2(&self) -> bool {
        matches!(self.channel, Channel::Http2(_))
    }

    /// The connection whose stream it is.
    pub fn http2_connection(&self) -> Option<&Arc<http2::Connection>> {
        match &self.channel {
            Channel::Alone { .. } => None,
            Channel::Http2(stream) => Some(stream.connection()),
        }
    }

    /// Who uses it, or did last.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// Whether it can carry a request.
    pub fn is_ready(&self) -> bool {
        match &self.channel {
            Channel::Alone { sender, .. } => sender.is_ready(),
            Channel::Http2(stream) => stream.connection().is_open(),
        }
    }

    /// Whether it is certainly of no more use.
    pub fn is_closed(&self) -> bool {
        match &self.channel {
            Channel::Alone { sender, .. } => sender.is_closed(),
            Channel::Http2(stream) => !stream.connection().is_open(),
        }
    }

    /// Waits until the connection has ended its exchange.
    pub async fn becomes_ready(&mut self) -> bool {
        let Channel::Alone { sender, .. } = &mut self.channel else {
            return true;
        };
        let ready = tokio::time::timeout(READY_TIME_MAX, sender.ready()).await;
        ready == Ok(true)
    }

    /// Makes it ready for the next request, by `worker`.
    pub fn begin_again(&mut self, worker: usize) {
        if let Channel::Alone {
            received,
            received_before,
            ..
        } = &mut self.channel
        {
            *received_before = received.load(Ordering::Relaxed);
        }
        self.reused = true;
        self.worker = worker;
    }

    /// The client that it has announced.
    pub fn announced(&self) -> Option<Ends> {
        self.announced
    }

    /// Gives it to the holder of `place`.
    pub fn give_place(&self, place: Place) {
        *self.place.lock() = Some(place);
    }

    /// Takes its place from it.
    pub fn take_place(&self) -> Option<Place> {
        self.place.lock().take()
    }
}
