//! When a request may go to its backend: asked of whoever keeps a queue in front of it. This room
//! decides no order; `shortline-gate` implements the trait.
//!
//! A permit is held from the moment of admission until the response's last byte has come from the
//! backend: then the backend's work is done, whether or not a slow client has read all of it. What
//! the client has not read waits in a bounded buffer (`relay`); a response larger than that keeps
//! its backend waiting, and while it does, and while the client is slow with its request's body,
//! the permit is paused: it is held, but the backend is not working.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::Method;
use parking_lot::Mutex;
use shortline_sched::admission::Refusal;

/// The request that asks [`Admission`].
pub struct Applicant<'a> {
    /// The path prefix of the route.
    pub route: &'a str,
    /// The request's method.
    pub method: &'a Method,
    /// The host it names, without a port.
    pub host: Option<&'a str>,
    /// Its path as it came, with the query.
    pub target: &'a str,
}

/// The answer to a [`Applicant`], in time.
pub type Admitting<'a> =
    Pin<Box<dyn Future<Output = Result<Box<dyn Permit>, Refusal>> + Send + 'a>>;

/// Lets requests through to a backend, in an order of its own.
pub trait Admission: Send + Sync {
    /// Waits until the request may go. Dropping the future gives its place in the queue up.
    fn admit<'a>(&'a self, applicant: &'a Applicant<'a>) -> Admitting<'a>;
}

/// The leave that a request was given; dropping it says that the request failed.
pub trait Permit: Send {
    /// The backend waits for the client from now on.
    fn pause(&mut self);
    /// The backend works again.
    fn resume(&mut self);
    /// The response's last byte has come (`completed`), or never will.
    fn finish(self: Box<Self>, completed: bool);
}

/// Which part of an exchange waits for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The request's body.
    Upload = 0,
    /// The response's body.
    Download = 1,
}

/// A permit while it is used: paused as long as either side waits for the client.
#[derive(Clone)]
pub struct Held(Option<Arc<Mutex<State>>>);

struct State {
    permit: Option<Box<dyn Permit>>,
    waits: [bool; 2],
}

impl Held {
    /// The permit, if one was needed.
    pub fn new(permit: Option<Box<dyn Permit>>) -> Self {
        Self(permit.map(|permit| {
            Arc::new(Mutex::new(State {
                permit: Some(permit),
                waits: [false; 2],
            }))
        }))
    }

    /// One side begins or ends to wait for the client.
    pub fn waits(&self, side: Side, waits: bool) {
        let Some(state) = &self.0 else { return };
        let mut state = state.lock();
        let before = state.waits != [false; 2];
        state.waits[side as usize] = waits;
        let after = state.waits != [false; 2];
        if let Some(permit) = &mut state.permit {
            match (before, after) {
                (false, true) => permit.pause(),
                (true, false) => permit.resume(),
                _ => {}
            }
        }
    }

    /// The exchange is over; later words do nothing.
    pub fn finish(&self, completed: bool) {
        let Some(state) = &self.0 else { return };
        let permit = state.lock().permit.take();
        if let Some(permit) = permit {
            permit.finish(completed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Recorded(Arc<Mutex<Vec<&'static str>>>);

    impl Permit for Recorded {
        fn pause(&mut self) {
            self.0.lock().push("pause");
        }

        fn resume(&mut self) {
            self.0.lock().push("resume");
        }

        fn finish(self: Box<Self>, completed: bool) {
            self.0
                .lock()
                .push(if completed { "completed" } else { "failed" });
        }
    }

    #[test]
    fn a_permit_is_paused_while_either_side_waits_and_finished_once() {
        let recorded = Recorded::default();
        let held = Held::new(Some(Box::new(recorded.clone())));
        held.waits(Side::Upload, false);
        held.waits(Side::Upload, true);
        held.waits(Side::Download, true);
        held.waits(Side::Upload, false);
        held.waits(Side::Download, false);
        held.finish(true);
        held.finish(false);
        held.waits(Side::Upload, true);
        assert_eq!(*recorded.0.lock(), ["pause", "resume", "completed"]);
    }
}
