//! What others know about a body under way: how far it is, and which side has been silent for too
//! long.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use shortline_base::clock::now_ns;

use super::super::error::UploadError;
use super::super::options::UpstreamOptions;
use super::timer::Timer;

/// How long a backend may leave `Expect: 100-continue` unanswered. curl waits as long.
const CONTINUE_WAIT_MAX: Duration = Duration::from_secs(1);

/// What others know about a body under way.
pub struct Upload(Mutex<State>);

struct State {
    phase: Phase,
    waker: Option<Waker>,
    moved_ns: u64,
    waits_for_client: bool,
}

/// The phase of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The backend has not yet said that it wants the body.
    AwaitsContinue,
    /// It is under way.
    Open,
    /// All of it was read.
    Ended,
    /// It broke off.
    Failed(UploadError),
}

/// The result of checking a wait for the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Check again after this time.
    Again(Duration),
    /// The client is silent for too long.
    ClientStalled,
    /// The backend is silent for too long.
    BackendLate,
}

impl Upload {
    /// A body in this phase.
    pub fn new(phase: Phase) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            phase,
            waker: None,
            moved_ns: now_ns(),
            waits_for_client: false,
        })))
    }

    /// Notes that the backend wants the body.
    pub fn go_on(&self) {
        let mut state = self.0.lock();
        if state.phase == Phase::AwaitsContinue {
            state.phase = Phase::Open;
            state.moved_ns = now_ns();
            state.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Ends the exchange. A body that has not ended fails.
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

    /// Waits by `timer` for the backend's answer `sent`, as long as the limits allow either side to be silent.
    ///
    /// # Errors
    /// Which side was silent for too long.
    pub async fn awaiting<T>(
        &self,
        options: &UpstreamOptions,
        timer: &mut Timer,
        mut sent: Pin<&mut impl Future<Output = T>>,
    ) -> Result<T, Wait> {
        let begun_ns = now_ns();
        let mut wait = self.look(begun_ns, begun_ns, options);
        loop {
            let Wait::Again(delay) = wait else {
                return Err(wait);
            };
            match timer.limit(delay, sent.as_mut()).await {
                Some(answer) => return Ok(answer),
                None => wait = self.look(begun_ns, now_ns(), options),
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
        // The other side may fall silent in the meantime, and its limit may be shorter.
        let least = options.upload_time_max.min(options.first_byte_time_max);
        Wait::Again((limit - silent).min(least))
    }

    /// The phase of the body. Its reader is woken when the phase changes.
    pub fn admit(&self, context: &Context<'_>) -> Phase {
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

    /// Notes that the body was polled, and whether it waits for the client.
    pub fn moved(&self, waits_for_client: bool) {
        let mut state = self.0.lock();
        if !(waits_for_client && state.waits_for_client) {
            state.moved_ns = now_ns();
        }
        state.waits_for_client = waits_for_client;
    }

    /// Notes that no more of the body is read.
    pub fn end(&self, phase: Phase) {
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
