//! A connection to a FastCGI backend: one request after the other, each sent and answered at the same time.
//!
//! A task has the socket. It reads no more of a response than its reader takes, and no more of a request's body than the backend
//! takes. When whoever asked has gone, it closes the connection: that tells the backend that nobody waits any more.
//!
//! If the whole response is there when its head is, which is so for most pages, its length is known, though its head does not say.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt;
use shortline_base::world::Stream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::{mpsc, oneshot, watch};

use super::super::options::UpstreamOptions;
use super::super::upload::RequestBody;
use super::answer::{self, Head};
use super::body::{Body, Piece};
use super::complaints::{Complaint, Complaints};
use super::record::{self, CONTENT_BYTES_MAX, Decoder, Ending, Event};
use super::{Call, FastCgiError, variables};

/// Bytes read at a time.
const READ_BYTES: usize = 32 * 1024;
/// The most bytes of a body that are looked through for its end before the response begins.
const FIRST_BYTES_MAX: usize = 128 * 1024;
/// How often others are let go first while the first bytes of a body are on their way.
const SETTLE_TURNS: usize = 3;
/// Pieces of a body that are read ahead of whoever relays it.
const PIECES_MAX: usize = 2;

/// Sends requests on a connection.
pub struct Sender {
    jobs: mpsc::Sender<Job>,
    idle: watch::Receiver<bool>,
}

/// A request without an answer.
pub struct Unanswered {
    /// The request, if nothing of it was sent.
    pub request: Option<Box<Request<RequestBody>>>,
    /// Why there is no answer.
    pub error: FastCgiError,
}

struct Job {
    request: Box<Request<RequestBody>>,
    answer: oneshot::Sender<Result<Response<Body>, Unanswered>>,
}

/// Starts the task of a connection. It ends with its [`Sender`], or after one request if connections are not kept.
pub fn start(
    stream: impl Stream + 'static,
    options: Arc<UpstreamOptions>,
    complaints: Arc<Complaints>,
) -> Sender {
    let (jobs, incoming) = mpsc::channel(1);
    let (idle_sender, idle) = watch::channel(true);
    let connection = Connection {
        stream,
        options,
        complaints,
    };
    tokio::spawn(connection.run(incoming, idle_sender));
    Sender { jobs, idle }
}

impl Sender {
    /// Whether it takes a request now.
    pub fn is_ready(&self) -> bool {
        *self.idle.borrow() && !self.jobs.is_closed()
    }

    /// Whether it will never take one again.
    pub fn is_closed(&self) -> bool {
        self.jobs.is_closed()
    }

    /// Waits until it takes a request. `false`: it never will.
    pub async fn ready(&mut self) -> bool {
        self.idle.wait_for(|idle| *idle).await.is_ok()
    }

    /// Sends a request, and waits for the head of its response.
    ///
    /// # Errors
    /// `Unanswered`
    pub async fn send(
        &self,
        request: Box<Request<RequestBody>>,
    ) -> Result<Response<Body>, Unanswered> {
        let cut_short = |request| Unanswered {
            request,
            error: FastCgiError::CutShort,
        };
        let (answer, answered) = oneshot::channel();
        if let Err(unsent) = self.jobs.send(Job { request, answer }).await {
            return Err(cut_short(Some(unsent.0.request)));
        }
        answered.await.unwrap_or_else(|_| Err(cut_short(None)))
    }
}

struct Connection<S> {
    stream: S,
    options: Arc<UpstreamOptions>,
    complaints: Arc<Complaints>,
}

impl<S: Stream> Connection<S> {
    async fn run(mut self, mut jobs: mpsc::Receiver<Job>, idle: watch::Sender<bool>) {
        loop {
            let job = tokio::select! {
                biased;
                // An idle backend that closes, or says something unasked, is done with.
                () = stirs(&mut self.stream) => return give_back(jobs).await,
                job = jobs.recv() => job,
            };
            let Some(job) = job else { return };
            idle.send_replace(false);
            if !self.exchange(job).await || !self.keeps() {
                return;
            }
            idle.send_replace(true);
        }
    }

    fn keeps(&self) -> bool {
        self.options.idle_connections_max > 0
    }

    /// Carries one request. Returns whether the connection may carry another.
    async fn exchange(&mut self, Job { request, answer }: Job) -> bool {
        let keeps = self.keeps();
        let (head, body) = request.into_parts();
        // No backend says that it wants the body.
        body.upload().go_on();
        let mut begin = record::begin(&variables::encode(&head), keeps);
        if body.is_end_stream() {
            begin.extend_from_slice(&record::input_head(0));
        }
        let script = head.extensions.get::<Call>();
        let exchange = Exchange {
            options: &self.options,
            method: &head.method,
            decoder: Decoder::default(),
            received: BytesMut::new(),
            complaint: Complaint::default(),
        };
        let (reading, writing) = tokio::io::split(&mut self.stream);
        let mut receiving = pin!(receive(exchange, reading, answer));
        let mut sending = pin!(send(writing, begin, body));
        let mut sent = None;
        let (is_whole, complaint) = loop {
            tokio::select! {
                biased;
                received = &mut receiving => break received,
                result = &mut sending, if sent.is_none() => match result {
                    // The backend may have answered all the same.
                    Ok(()) | Err(Unsent::ByBackend) => sent = Some(result.is_ok()),
                    // The client has broken off its request: there is nothing to wait for.
                    Err(Unsent::ByClient) => return false,
                },
            }
        };
        let script = script.map_or(head.uri.path(), |call| &call.script);
        self.complaints.log(script, complaint);
        is_whole && sent == Some(true)
    }
}

/// Gives back a request that came as the connection ended.
async fn give_back(mut jobs: mpsc::Receiver<Job>) {
    jobs.close();
    while let Some(Job { request, answer }) = jobs.recv().await {
        // Nobody may wait any more.
        let _ = answer.send(Err(Unanswered {
            request: Some(request),
            error: FastCgiError::CutShort,
        }));
    }
}

/// Ready when the backend has closed, or has said something.
async fn stirs(stream: &mut (impl AsyncRead + Unpin)) {
    poll_fn(|context| {
        let mut space = [0];
        let mut buffer = ReadBuf::new(&mut space);
        Pin::new(&mut *stream)
            .poll_read(context, &mut buffer)
            .map(drop)
    })
    .await;
}

/// Who is to blame for a request that was not sent.
enum Unsent {
    ByBackend,
    ByClient,
}

/// Sends the variables, and the body as it comes.
async fn send(
    mut socket: impl AsyncWrite + Unpin,
    begin: BytesMut,
    mut body: RequestBody,
) -> Result<(), Unsent> {
    let has_body = !body.is_end_stream();
    let by_backend = |_| Unsent::ByBackend;
    socket.write_all(&begin).await.map_err(by_backend)?;
    drop(begin);
    if has_body {
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Unsent::ByClient)?;
            // Trailers are for HTTP only.
            let Ok(mut data) = frame.into_data() else {
                continue;
            };
            while !data.is_empty() {
                let piece = data.split_to(data.len().min(CONTENT_BYTES_MAX));
                let head = record::input_head(piece.len());
                let mut record = Buf::chain(&head[..], piece);
                socket
                    .write_all_buf(&mut record)
                    .await
                    .map_err(by_backend)?;
            }
        }
        let end = record::input_head(0);
        socket.write_all(&end).await.map_err(by_backend)?;
    }
    socket.flush().await.map_err(by_backend)
}

/// A response under way.
struct Exchange<'a> {
    options: &'a UpstreamOptions,
    method: &'a Method,
    decoder: Decoder,
    received: BytesMut,
    complaint: Complaint,
}

/// What the program says next.
enum Said {
    Output(Bytes),
    End(Ending),
}

type Answer = oneshot::Sender<Result<Response<Body>, Unanswered>>;

/// Receives a response for whoever waits for `answer`. Returns whether it was whole, and what the program complained about.
async fn receive(
    mut exchange: Exchange<'_>,
    mut socket: impl AsyncRead + Unpin,
    mut answer: Answer,
) -> (bool, Complaint) {
    let begun = tokio::select! {
        begun = exchange.begin(&mut socket) => begun,
        () = answer.closed() => return (false, exchange.complaint),
    };
    let begun = match begun {
        Ok(begun) => begun,
        Err(error) => {
            let request = None;
            // Nobody may wait any more.
            let _ = answer.send(Err(Unanswered { request, error }));
            return (false, exchange.complaint);
        }
    };
    let Begun {
        head,
        first,
        has_ended,
    } = begun;
    let has_body = *exchange.method != Method::HEAD
        && ![StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&head.status);
    let length = answer::length(&head.headers).unwrap_or_default();
    let (sender, rest) = mpsc::channel(PIECES_MAX);
    let body = match (has_body, has_ended) {
        (false, _) => Body::none(),
        (true, true) => Body::whole(first),
        (true, false) => Body::begun(first, rest, length),
    };
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    if answer.send(Ok(response)).is_err() {
        return (false, exchange.complaint);
    }
    let is_whole = match (has_body, has_ended) {
        (_, true) => exchange.is_between_requests(),
        // Nobody wants what would follow.
        (false, false) => false,
        (true, false) => exchange.relay(&mut socket, &sender).await,
    };
    (is_whole, exchange.complaint)
}

/// The beginning of a response.
struct Begun {
    head: Head,
    /// What came of the body.
    first: VecDeque<Bytes>,
    /// Whether that is all.
    has_ended: bool,
}

impl Exchange<'_> {
    /// The head, and what has come with it.
    async fn begin(
        &mut self,
        socket: &mut (impl AsyncRead + Unpin),
    ) -> Result<Begun, FastCgiError> {
        let mut output = BytesMut::new();
        let head = loop {
            match self.next(socket).await? {
                Said::Output(piece) => output.extend_from_slice(&piece),
                Said::End(Ending::Complete) => return Err(FastCgiError::NoResponse),
                Said::End(refused) => return Err(FastCgiError::Refused(refused)),
            }
            let bytes_max = self.options.response_head_bytes_max;
            let head = answer::parse(&output, self.options.response_fields_max)?;
            let bytes = head.as_ref().map_or(output.len(), |head| head.bytes);
            if bytes > bytes_max {
                return Err(FastCgiError::HeadTooLong(bytes_max));
            }
            if let Some(head) = head {
                break head;
            }
        };
        let mut first_bytes = output.len() - head.bytes;
        let mut first = VecDeque::from([output.split_off(head.bytes).freeze()]);
        first.retain(|piece| !piece.is_empty());
        let has_ended = loop {
            match self.next_at_hand(socket, first_bytes).await? {
                None => break false,
                Some(Said::Output(piece)) => {
                    first_bytes += piece.len();
                    first.push_back(piece);
                }
                Some(Said::End(Ending::Complete)) => break true,
                Some(Said::End(refused)) => return Err(FastCgiError::Refused(refused)),
            }
        };
        let promised = answer::length(&head.headers)?;
        let is_other = promised.is_some_and(|bytes| bytes != first_bytes as u64);
        if has_ended && is_other && *self.method != Method::HEAD {
            return Err(FastCgiError::Length);
        }
        Ok(Begun {
            head,
            first,
            has_ended,
        })
    }

    /// Passes the rest of the body on. Returns whether all of it came and the connection can be used again.
    async fn relay(
        &mut self,
        socket: &mut (impl AsyncRead + Unpin),
        reader: &mpsc::Sender<Piece>,
    ) -> bool {
        loop {
            let said = tokio::select! {
                said = self.next(socket) => said,
                () = reader.closed() => return false,
            };
            let (piece, is_last) = match said {
                Ok(Said::Output(piece)) => (Ok(Some(piece)), false),
                Ok(Said::End(Ending::Complete)) => (Ok(None), true),
                Ok(Said::End(refused)) => (Err(FastCgiError::Refused(refused)), true),
                Err(error) => (Err(error), true),
            };
            let is_sound = piece.is_ok();
            if reader.send(piece).await.is_err() {
                return false;
            }
            if is_last {
                return is_sound && self.is_between_requests();
            }
        }
    }

    /// What the program says next.
    async fn next(&mut self, socket: &mut (impl AsyncRead + Unpin)) -> Result<Said, FastCgiError> {
        loop {
            if let Some(said) = self.decoded()? {
                return Ok(said);
            }
            self.received.reserve(READ_BYTES);
            if socket.read_buf(&mut self.received).await? == 0 {
                return Err(FastCgiError::CutShort);
            }
        }
    }

    /// What the program says next, if that is there or comes at once. `None` also if there is much already.
    async fn next_at_hand(
        &mut self,
        socket: &mut (impl AsyncRead + Unpin),
        bytes: usize,
    ) -> Result<Option<Said>, FastCgiError> {
        if bytes >= FIRST_BYTES_MAX {
            return Ok(None);
        }
        for _ in 0..SETTLE_TURNS {
            let next = {
                let mut next = pin!(self.next(socket));
                poll_fn(|context: &mut Context<'_>| Poll::Ready(next.as_mut().poll(context))).await
            };
            match next {
                Poll::Ready(said) => return said.map(Some),
                Poll::Pending => tokio::task::yield_now().await,
            }
        }
        Ok(None)
    }

    fn decoded(&mut self) -> Result<Option<Said>, FastCgiError> {
        loop {
            match self.decoder.next(&mut self.received)? {
                None => return Ok(None),
                Some(Event::Output(piece)) => return Ok(Some(Said::Output(piece))),
                Some(Event::End(ending)) => return Ok(Some(Said::End(ending))),
                Some(Event::Complaint(piece)) => self.complaint.push(&piece),
            }
        }
    }

    fn is_between_requests(&self) -> bool {
        self.received.is_empty() && self.decoder.is_between_records()
    }
}
