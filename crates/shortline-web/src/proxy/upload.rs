//! A request's body on its way to the backend: pulled from the client only as fast as the backend
//! takes it, so that nothing but the sockets' buffers holds it.
//!
//! - `Expect: 100-continue` is the backend's to answer: nothing is read from the client, so that it
//!   is not told to go on, before the backend has said so, or for a second has said nothing.
//! - While the client is awaited the permit is paused (`admission`).
//! - It ends as an error, never as a short body, when it is too large, when the client is silent
//!   for too long, or when the response is over before it: then the backend's connection closes.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use http::header;
use http::request::Parts;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use parking_lot::Mutex;
use shortline_link::clock::now_ns;
use tokio::sync::Notify;

use super::admission::{Held, Side};
use super::error::ProxyError;
use super::upstream::UpstreamOptions;

/// How long a backend may leave `Expect: 100-continue` unanswered (curl waits as long).
const CONTINUE_WAIT_MAX: Duration = Duration::from_secs(1);

/// A request's body as its protocol gives it.
pub enum Received {
    /// HTTP/1.1: reading it tells the client to go on, if it waits for that.
    Http1(Incoming),
    /// HTTP/2, and whom to tell that the client shall go on.
    Http2(RecvStream, ContinueWanted),
}

/// Says when an HTTP/2 client that waits for `100 Continue` shall get it.
#[derive(Clone, Default)]
pub struct ContinueWanted(Arc<Notify>);

impl ContinueWanted {
    /// Waits for that moment.
    pub async fn wanted(&self) {
        self.0.notified().await;
    }
}

/// Why a request's body did not reach the backend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UploadError {
    /// It is larger than the route allows.
    #[error("the request's body has more than {bytes_max} bytes, the most allowed")]
    TooLarge {
        /// The most allowed.
        bytes_max: u64,
    },
    /// The client sends nothing more.
    #[error("the client stopped in the middle of the request's body")]
    Stalled,
    /// The response was over before it.
    #[error("the response was over before the request's body")]
    Abandoned,
    /// What came from the client is no body.
    #[error("the request's body is broken: {0}")]
    Client(String),
}

/// A request's body; see the module's text.
pub struct RequestBody {
    source: Option<Received>,
    length: Option<u64>,
    left_bytes_max: u64,
    bytes_max: u64,
    upload: Arc<Upload>,
    held: Held,
    waits_for_client: bool,
    said_continue: bool,
}

/// What others know of a body under way.
pub struct Upload(Mutex<State>);

struct State {
    phase: Phase,
    waker: Option<Waker>,
    moved_ns: u64,
    waits_for_client: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The backend has not said that it wants it.
    AwaitsContinue,
    Open,
    Ended,
    Failed(UploadError),
}

/// What a wait for the backend has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Look again after so long.
    Again(Duration),
    /// The client is silent.
    ClientStalled,
    /// The backend is silent.
    BackendLate,
}

impl RequestBody {
    /// The body of `head`'s request.
    ///
    /// # Errors
    /// It says that it is too large.
    pub fn new(
        received: Received,
        head: &Parts,
        held: &Held,
        options: &UpstreamOptions,
    ) -> Result<Self, ProxyError> {
        let bytes_max = options.request_bytes_max;
        let length = match &received {
            Received::Http1(body) => body.size_hint().exact(),
            Received::Http2(stream, _) if stream.is_end_stream() => Some(0),
            Received::Http2(..) => head
                .headers
                .get(header::CONTENT_LENGTH)
                .and_then(|value| value.to_str().ok()?.parse().ok()),
        };
        if length.is_some_and(|bytes| bytes > bytes_max) {
            return Err(UploadError::TooLarge { bytes_max }.into());
        }
        let expects = head.headers.get(header::EXPECT);
        let expects =
            expects.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        let phase = match length {
            Some(0) => Phase::Ended,
            _ if expects => Phase::AwaitsContinue,
            _ => Phase::Open,
        };
        Ok(Self {
            source: (length != Some(0)).then_some(received),
            length,
            left_bytes_max: bytes_max,
            bytes_max,
            upload: Upload::new(phase),
            held: held.clone(),
            waits_for_client: false,
            said_continue: !expects,
        })
    }

    /// No body.
    pub fn none() -> Self {
        Self {
            source: None,
            length: Some(0),
            left_bytes_max: 0,
            bytes_max: 0,
            upload: Upload::new(Phase::Ended),
            held: Held::new(None),
            waits_for_client: false,
            said_continue: true,
        }
    }

    /// What others know of it.
    pub fn upload(&self) -> &Arc<Upload> {
        &self.upload
    }

    fn poll_source(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        match &mut self.source {
            None => Poll::Ready(None),
            Some(Received::Http1(body)) => Pin::new(body)
                .poll_frame(context)
                .map_err(|error| UploadError::Client(error.to_string())),
            Some(Received::Http2(stream, wanted)) => {
                if !std::mem::replace(&mut self.said_continue, true) {
                    wanted.0.notify_one();
                }
                poll_stream(stream, context).map_err(|error| UploadError::Client(error.to_string()))
            }
        }
    }

    /// Takes note of what was polled: how the body goes on.
    fn note(
        &mut self,
        polled: Option<Result<Frame<Bytes>, UploadError>>,
    ) -> Option<Result<Frame<Bytes>, UploadError>> {
        let polled = match polled {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                match self.left_bytes_max.checked_sub(bytes) {
                    Some(left) => {
                        self.left_bytes_max = left;
                        Ok(frame)
                    }
                    None => Err(UploadError::TooLarge {
                        bytes_max: self.bytes_max,
                    }),
                }
            }
            Some(Err(error)) => Err(error),
            None => {
                self.upload.end(Phase::Ended);
                return None;
            }
        };
        if let Err(error) = &polled {
            self.upload.end(Phase::Failed(error.clone()));
        } else if self.is_end_stream() {
            self.upload.end(Phase::Ended);
        }
        Some(polled)
    }

    fn wait_for_client(&mut self, waits: bool) {
        if std::mem::replace(&mut self.waits_for_client, waits) != waits {
            self.held.waits(Side::Upload, waits);
        }
    }
}

/// HTTP/2: window is given back as bytes are taken, so that the client sends as fast as the backend
/// takes them.
fn poll_stream(
    stream: &mut RecvStream,
    context: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
    match stream.poll_data(context) {
        Poll::Pending => Poll::Pending,
        Poll::Ready(Some(data)) => Poll::Ready(Some(data.and_then(|data| {
            stream.flow_control().release_capacity(data.len())?;
            Ok(Frame::data(data))
        }))),
        Poll::Ready(None) => stream
            .poll_trailers(context)
            .map(|trailers| Some(trailers.transpose()?.map(Frame::trailers))),
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let this = self.get_mut();
        match this.upload.admit(context) {
            Phase::AwaitsContinue => return Poll::Pending,
            Phase::Failed(error) => return Poll::Ready(Some(Err(error))),
            Phase::Open | Phase::Ended => {}
        }
        let polled = this.poll_source(context);
        this.upload.moved(polled.is_pending());
        this.wait_for_client(polled.is_pending());
        polled.map(|polled| this.note(polled))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            None => true,
            Some(Received::Http1(body)) => body.is_end_stream(),
            Some(Received::Http2(stream, _)) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.length
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.wait_for_client(false);
    }
}

impl Upload {
    fn new(phase: Phase) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            phase,
            waker: None,
            moved_ns: now_ns(),
            waits_for_client: false,
        })))
    }

    /// The backend wants the body.
    pub fn go_on(&self) {
        let mut state = self.0.lock();
        if state.phase == Phase::AwaitsContinue {
            state.phase = Phase::Open;
            state.moved_ns = now_ns();
            state.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    /// The exchange is over: a body that has not ended fails.
    pub fn abandon(&self, error: UploadError) {
        let mut state = self.0.lock();
        if matches!(state.phase, Phase::AwaitsContinue | Phase::Open) {
            state.phase = Phase::Failed(error);
            state.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Why the body failed, if it did.
    pub fn failure(&self) -> Option<UploadError> {
        match &self.0.lock().phase {
            Phase::Failed(error) => Some(error.clone()),
            _ => None,
        }
    }

    /// Waits for the backend's answer `sent`, as long as the limits let either side be silent.
    ///
    /// # Errors
    /// What the wait has come to instead.
    pub async fn awaiting<T>(
        &self,
        options: &UpstreamOptions,
        sent: impl Future<Output = T>,
    ) -> Result<T, Wait> {
        let mut sent = pin!(sent);
        let begun_ns = now_ns();
        let mut wait = self.look(begun_ns, begun_ns, options);
        loop {
            let Wait::Again(delay) = wait else {
                return Err(wait);
            };
            match tokio::time::timeout(delay, &mut sent).await {
                Ok(answer) => return Ok(answer),
                Err(_elapsed) => wait = self.look(begun_ns, now_ns(), options),
            }
        }
    }

    fn look(&self, begun_ns: u64, now_ns: u64, options: &UpstreamOptions) -> Wait {
        let (awaits_continue, waits_for_client, moved_ns) = {
            let state = self.0.lock();
            let awaits = state.phase == Phase::AwaitsContinue;
            (awaits, state.waits_for_client, state.moved_ns)
        };
        let silent = Duration::from_nanos(now_ns.saturating_sub(moved_ns.max(begun_ns)));
        if awaits_continue {
            if silent < CONTINUE_WAIT_MAX {
                return Wait::Again(CONTINUE_WAIT_MAX - silent);
            }
            self.go_on();
            return Wait::Again(options.upload_time_max);
        }
        let (limit, over) = if waits_for_client {
            (options.upload_time_max, Wait::ClientStalled)
        } else {
            (options.first_byte_time_max, Wait::BackendLate)
        };
        if silent >= limit {
            return over;
        }
        // The other side may fall silent in the meantime, with less time.
        let least = options.upload_time_max.min(options.first_byte_time_max);
        Wait::Again((limit - silent).min(least))
    }

    /// Where the body stands; its reader is woken when that changes.
    fn admit(&self, context: &Context<'_>) -> Phase {
        let mut state = self.0.lock();
        if !state
            .waker
            .as_ref()
            .is_some_and(|known| known.will_wake(context.waker()))
        {
            state.waker = Some(context.waker().clone());
        }
        state.phase.clone()
    }

    fn moved(&self, waits_for_client: bool) {
        let mut state = self.0.lock();
        if !(waits_for_client && state.waits_for_client) {
            state.moved_ns = now_ns();
        }
        state.waits_for_client = waits_for_client;
    }

    fn end(&self, phase: Phase) {
        let mut state = self.0.lock();
        state.phase = phase;
        state.waits_for_client = false;
        state.waker = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn options() -> UpstreamOptions {
        UpstreamOptions {
            first_byte_time_max: Duration::from_secs(60),
            upload_time_max: Duration::from_secs(20),
            ..UpstreamOptions::default()
        }
    }

    fn upload(phase: Phase) -> Arc<Upload> {
        let upload = Upload::new(phase);
        upload.0.lock().moved_ns = 0;
        upload
    }

    #[test]
    fn a_backend_that_does_not_ask_for_the_body_gets_it_after_a_second() {
        let upload = upload(Phase::AwaitsContinue);
        let half = Wait::Again(Duration::from_millis(500));
        assert_eq!(upload.look(0, SECOND / 2, &options()), half);
        assert_eq!(
            upload.look(0, SECOND, &options()),
            Wait::Again(Duration::from_secs(20))
        );
        assert_eq!(upload.0.lock().phase, Phase::Open);
    }

    #[test]
    fn either_side_may_be_silent_for_its_own_time() {
        let upload = upload(Phase::Open);
        let look = |seconds| upload.look(0, seconds * SECOND, &options());
        assert_eq!(look(30), Wait::Again(Duration::from_secs(20)));
        assert_eq!(look(60), Wait::BackendLate);
        upload.0.lock().waits_for_client = true;
        assert_eq!(look(19), Wait::Again(Duration::from_secs(1)));
        assert_eq!(look(20), Wait::ClientStalled);
    }

    #[test]
    fn only_a_body_under_way_can_be_abandoned() {
        let ended = upload(Phase::Ended);
        ended.abandon(UploadError::Abandoned);
        assert_eq!(ended.failure(), None);
        let open = upload(Phase::Open);
        open.abandon(UploadError::Abandoned);
        assert_eq!(open.failure(), Some(UploadError::Abandoned));
    }
}
