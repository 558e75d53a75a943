//! HTTP/2 to backends, on the h2 crate: several requests share a connection, each on a stream of its
//! own (RFC 9113).
//!
//! - A connection carries as many requests as the backend allows (`SETTINGS_MAX_CONCURRENT_STREAMS`)
//!   and the route does. It is used when the backend's settings have come, so the number is known. What
//!   comes instead of them is not HTTP/2, and nothing was sent yet.
//! - Each stream has a window of its own, and the connection's is as large as all of them. So a client
//!   that takes nothing holds up its own stream only. h2 holds at most a window of each stream.
//! - After `GOAWAY` no stream is begun. A request that the backend has certainly not processed (6.8,
//!   8.7) is given back, with its body if no more than `upload::KEPT_BYTES_MAX` of it were read.
//! - `RST_STREAM` with `NO_ERROR` ends a response that is complete (8.1). Any other reset breaks it off.
//! - A connection whose streams are silent for too long is asked for a sign of life by `PING`, and is
//!   closed without one.

mod signs;
mod upload;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::{self, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream};
use http::header::{self, HeaderName};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use http_body::{Frame, SizeHint};
use shortline_base::clock::now_ns;
use shortline_base::world::Stream as Socket;
use tokio::sync::Notify;
use tokio_util::io::InspectReader;

use super::options::UpstreamOptions;
use super::response::{BodyError, ResponseBody};
use super::upload::{RequestBody, Upload};
use upload::Sending;

/// The least window of a stream: RFC 9113's own.
const WINDOW_BYTES_MIN: usize = 65_535;
/// The largest window there is (RFC 9113 6.9.1).
const WINDOW_BYTES_MAX: usize = (1 << 31) - 1;
/// Bytes of one request's body that h2 holds.
const SEND_BUFFER_BYTES_MAX: usize = 64 * 1024;
/// The host for a request whose own cannot be written as an authority.
const AUTHORITY_DEFAULT: &str = "localhost";
/// Fields that HTTP/2 does not have (RFC 9113 8.2.2). `TE` stays: it asks for trailers.
const NOT_IN_HTTP_2: [HeaderName; 4] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::HOST,
];

/// A connection to a backend.
pub struct Connection {
    sender: SendRequest<Bytes>,
    secure: bool,
    streams_max: usize,
    fields_max: usize,
    state: Arc<State>,
}

/// What is known of a connection.
#[derive(Default)]
struct State {
    /// Streams under way.
    streams: AtomicUsize,
    idle_since_ns: AtomicU64,
    received_bytes: AtomicU64,
    ended: AtomicBool,
    /// Told when an answer is late.
    doubts: Notify,
}

/// A request's place on a connection.
pub struct Stream(Arc<Connection>);

/// Why there is no response.
pub struct Unanswered {
    /// The request, if all of it is still there.
    pub request: Option<Box<Request<RequestBody>>>,
    /// Whether the backend may have processed it.
    pub has_begun: bool,
    /// Whether the connection can carry no further request.
    pub connection_ends: bool,
    /// The reason.
    pub error: BodyError,
}

impl Connection {
    /// Begins HTTP/2 on `socket`, and waits for the backend's settings.
    ///
    /// # Errors
    /// The backend speaks something else, or has closed the socket.
    pub async fn begin(
        socket: impl Socket + 'static,
        secure: bool,
        options: &UpstreamOptions,
    ) -> io::Result<Arc<Self>> {
        let window = options.buffer_bytes_max;
        let window = window.clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX);
        let all_windows = window.saturating_mul(options.streams_max);
        let state: Arc<State> = Arc::default();
        let counted = Arc::clone(&state);
        let socket = InspectReader::new(socket, move |bytes: &[u8]| {
            let received = &counted.received_bytes;
            received.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        });
        let begun = client::Builder::new()
            .enable_push(false)
            .initial_window_size(window as u32)
            .initial_connection_window_size(all_windows.min(WINDOW_BYTES_MAX) as u32)
            .max_header_list_size(options.response_head_bytes_max as u32)
            .max_send_buffer_size(SEND_BUFFER_BYTES_MAX)
            .handshake(socket)
            .await;
        let (sender, mut h2) = begun.map_err(is_not_http2)?;
        // h2 has read the settings when it has read all that came and waits for more.
        poll_fn(|context| match Pin::new(&mut h2).poll(context) {
            Poll::Ready(Ok(())) => Poll::Ready(Err(is_not_http2("it has closed the connection"))),
            Poll::Ready(Err(error)) => Poll::Ready(Err(is_not_http2(error))),
            Poll::Pending if state.received_bytes.load(Ordering::Relaxed) > 0 => {
                Poll::Ready(Ok(()))
            }
            Poll::Pending => Poll::Pending,
        })
        .await?;
        let ping = h2.ping_pong();
        let watch = signs::watch(
            ping.expect("invariant: nobody else pings"),
            Arc::clone(&state),
            options.ping_every,
            options.connect_time_max,
        );
        state.idle_since_ns.store(now_ns(), Ordering::Relaxed);
        let known = Arc::clone(&state);
        tokio::spawn(async move {
            tokio::select! {
                // Whoever waits for a response gets the error.
                _ended = h2 => {}
                () = watch => {}
            }
            known.ended.store(true, Ordering::Relaxed);
        });
        Ok(Arc::new(Self {
            sender,
            secure,
            streams_max: options.streams_max,
            fields_max: options.response_fields_max,
            state,
        }))
    }

    /// A place for one more request, if there is one.
    pub fn place(self: &Arc<Self>) -> Option<Stream> {
        let allowed = self.sender.current_max_send_streams();
        let streams_max = allowed.min(self.streams_max);
        let more = |streams| (streams < streams_max).then_some(streams + 1);
        let order = Ordering::AcqRel;
        let taken = self
            .state
            .streams
            .fetch_update(order, Ordering::Acquire, more);
        taken.is_ok().then(|| Stream(Arc::clone(self)))
    }

    /// Whether it takes further requests.
    pub fn is_open(&self) -> bool {
        let mut sender = self.sender.clone();
        let mut context = Context::from_waker(std::task::Waker::noop());
        let refuses = matches!(sender.poll_ready(&mut context), Poll::Ready(Err(_)));
        !refuses && !self.state.ended.load(Ordering::Relaxed)
    }

    /// Requests under way.
    pub fn streams(&self) -> usize {
        self.state.streams.load(Ordering::Acquire)
    }

    /// When it last had a request.
    pub fn idle_since_ns(&self) -> u64 {
        self.state.idle_since_ns.load(Ordering::Relaxed)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let state = &self.0.state;
        state.idle_since_ns.store(now_ns(), Ordering::Relaxed);
        state.streams.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Stream {
    /// Its connection.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.0
    }

    /// Sends `request` and waits for the response's head. Dropping the future resets the stream.
    ///
    /// # Errors
    /// [`Unanswered`], perhaps with the request.
    pub async fn send(
        &self,
        request: Box<Request<RequestBody>>,
    ) -> Result<Response<ResponseBody>, Unanswered> {
        let (head, body) = request.into_parts();
        let is_head = head.method == Method::HEAD;
        let sent_head = to_http2(head.clone(), self.0.secure);
        let has_body = !http_body::Body::is_end_stream(&body);
        let upload = Arc::clone(body.upload());
        let mut sender = self.0.sender.clone();
        let sent = match poll_fn(|context| sender.poll_ready(context)).await {
            Ok(()) => sender.send_request(Request::from_parts(sent_head, ()), !has_body),
            Err(error) => Err(error),
        };
        let (response, stream) = match sent {
            Ok(sent) => sent,
            Err(error) => return Err(self.unanswered(error, false, Some((head, body)))),
        };
        let sending = if has_body {
            Sending::begin(body, stream)
        } else {
            Sending::none(body)
        };
        let error = match heads(response, &upload).await {
            Ok(response) => return self.answered(response, sending, is_head),
            Err(error) => error,
        };
        let has_begun = !is_unprocessed(&error);
        // A body that is under way is no longer whole.
        let body = match has_begun && has_body {
            true => None,
            false => sending.given_back().await,
        };
        Err(self.unanswered(error, has_begun, body.map(|body| (head, body))))
    }

    fn answered(
        &self,
        response: Response<RecvStream>,
        sending: Sending,
        is_head: bool,
    ) -> Result<Response<ResponseBody>, Unanswered> {
        let (head, stream) = response.into_parts();
        let fields_max = self.0.fields_max;
        if head.headers.len() > fields_max {
            return Err(Unanswered {
                request: None,
                has_begun: true,
                connection_ends: false,
                error: format!("more than {fields_max} fields in the head of its response").into(),
            });
        }
        let has_none =
            is_head || [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&head.status);
        let said = head.headers.get(header::CONTENT_LENGTH);
        let length = said.and_then(|length| length.to_str().ok()?.parse().ok());
        let body = StreamBody {
            length: if has_none || stream.is_end_stream() {
                Some(0)
            } else {
                length
            },
            stream: (!has_none).then_some(stream),
            _sending: sending.answered(),
        };
        Ok(Response::from_parts(
            head,
            ResponseBody::Http2(Box::new(body)),
        ))
    }

    fn unanswered(
        &self,
        error: h2::Error,
        has_begun: bool,
        request: Option<(Parts, RequestBody)>,
    ) -> Unanswered {
        Unanswered {
            request: request.map(|(head, body)| Box::new(Request::from_parts(head, body))),
            has_begun,
            connection_ends: !self.0.is_open(),
            error: error.into(),
        }
    }

    /// Asks for a sign of life: an answer is late.
    pub fn doubt(&self) {
        self.0.state.doubts.notify_one();
    }
}

/// Waits for the head of the response. Until then the backend may ask for the body.
async fn heads(
    mut response: ResponseFuture,
    upload: &Upload,
) -> Result<Response<RecvStream>, h2::Error> {
    poll_fn(|context| {
        while let Poll::Ready(Some(Ok(interim))) = response.poll_informational(context) {
            if interim.status() == StatusCode::CONTINUE {
                upload.go_on();
            }
        }
        Pin::new(&mut response).poll(context)
    })
    .await
}

/// Whether the backend says that it has not processed the request. h2 gives the error of a `GOAWAY` to
/// the streams above its last one only.
fn is_unprocessed(error: &h2::Error) -> bool {
    let refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    error.is_remote() && (refused || error.is_go_away())
}

/// What a backend that does not speak HTTP/2 is told of, with the remedy.
pub fn is_not_http2(error: impl Into<BodyError>) -> io::Error {
    let error = error.into();
    io::Error::other(format!(
        "it does not speak HTTP/2 ({error}): give http = \"1\", or http:// instead of h2c://"
    ))
}

/// The head of a request in HTTP/2, from that in HTTP/1.1.
fn to_http2(mut head: Parts, secure: bool) -> Parts {
    let host = head.headers.get(header::HOST);
    let authority = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
    let target = head.uri.path_and_query().cloned();
    let uri = Uri::builder()
        .scheme(if secure { Scheme::HTTPS } else { Scheme::HTTP })
        .authority(authority.unwrap_or_else(|| Authority::from_static(AUTHORITY_DEFAULT)))
        .path_and_query(target.unwrap_or_else(|| PathAndQuery::from_static("/")));
    head.uri = uri.build().expect("invariant: all parts are given");
    for name in &NOT_IN_HTTP_2 {
        head.headers.remove(name);
    }
    head.version = Version::HTTP_2;
    head
}

/// A response's body. Dropping it resets the stream, unless both sides have ended it.
pub struct StreamBody {
    /// Empty if the response has no body, whatever its fields say.
    stream: Option<RecvStream>,
    length: Option<u64>,
    _sending: Sending,
}

impl StreamBody {
    /// The next frame. Taking it gives its window back.
    pub fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(None);
        };
        if let Some(data) = ready!(stream.poll_data(context)) {
            return Poll::Ready(match data {
                Ok(data) => {
                    // It fails only for a stream that is gone.
                    let _ = stream.flow_control().release_capacity(data.len());
                    Some(Ok(Frame::data(data)))
                }
                Err(error) => unless_complete(error),
            });
        }
        Poll::Ready(match ready!(stream.poll_trailers(context)) {
            Ok(trailers) => trailers.map(|trailers| Ok(Frame::trailers(trailers))),
            Err(error) => unless_complete(error),
        })
    }

    /// Whether nothing follows.
    pub fn is_end_stream(&self) -> bool {
        self.stream.as_ref().is_none_or(RecvStream::is_end_stream)
    }

    /// Its length, if the head told it.
    pub fn size_hint(&self) -> SizeHint {
        self.length
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// The end of a response whose stream was reset.
fn unless_complete<T>(error: h2::Error) -> Option<Result<T, h2::Error>> {
    let complete = error.is_reset() && error.reason() == Some(Reason::NO_ERROR);
    (!complete).then_some(Err(error))
}
