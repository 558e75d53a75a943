//! When a request may go to its backend. This crate decides no order: it asks an [`Admission`],
//! which keeps a queue in front of the backend. `shortline-gate` implements the trait.
//!
//! A permit is held from admission until the response's last byte has come from the backend. Then
//! the backend's work is done, even if a slow client has not read all of it. What the client has
//! not read waits in a bounded buffer (`relay`). A response larger than the buffer keeps its
//! backend waiting. While it does, and while the client is slow to send its request's body, the
//! permit is paused: it is held, but the backend is not working.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use http::{HeaderMap, Method};
use parking_lot::Mutex;
use shortline_sched::admission::Refusal;

/// The request that asks an [`Admission`].
pub struct Applicant<'a> {
    /// The path prefix of the route.
    pub route: &'a str,
    /// The request's method.
    pub method: &'a Method,
    /// The host it names, without a port.
    pub host: Option<&'a str>,
    /// Its path as received, with the query.
    pub target: &'a str,
    /// Where its connection comes from: the client, or the last proxy.
    pub peer: IpAddr,
    /// Its header fields as received.
    pub headers: &'a HeaderMap,
}

impl<'a> Applicant<'a> {
    /// The value of a header field that it has once. Of two values nobody knows which one a proxy has set.
    pub fn only(&self, name: &str) -> Option<&'a str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next()?;
        values.next().is_none().then(|| value.to_str().ok())?
    }
}

/// The future answer to an [`Applicant`].
pub type Admitting<'a> =
    Pin<Box<dyn Future<Output = Result<Box<dyn Permit>, Refusal>> + Send + 'a>>;

/// Lets requests through to a backend, in an order of its own.
pub trait Admission: Send + Sync {
    /// Waits until the request may go. Dropping the future gives up its place in the queue.
    fn admit<'a>(&'a self, applicant: &'a Applicant<'a>) -> Admitting<'a>;
}

/// Leave for a request to use its backend. Dropping it means that the request failed.
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

/// A permit in use. It is paused while either side waits for the client.
#[derive(Clone)]
pub struct Held(Option<Arc<Mutex<State>>>);

struct State {
    permit: Option<Box<dyn Permit>>,
    waits: [bool; 2],
}

impl Held {
    /// Holds the permit, if one was needed.
    pub fn new(permit: Option<Box<dyn Permit>>) -> Self {
        Self(permit.map(|permit| {
            Arc::new(Mutex::new(State {
                permit: Some(permit),
                waits: [false; 2],
            }))
        }))
    }

    /// Notes that a side starts or stops waiting for the client.
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

    /// Finishes the exchange. Later calls do nothing.
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
    use http::HeaderValue;
    use std::net::Ipv4Addr;

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
    fn a_field_counts_if_it_is_there_once() {
        let mut headers = HeaderMap::new();
        headers.append("x-priority", HeaderValue::from_static("high"));
        let only = |headers: &HeaderMap| {
            let applicant = Applicant {
                route: "/",
                method: &Method::GET,
                host: None,
                target: "/",
                peer: Ipv4Addr::LOCALHOST.into(),
                headers,
            };
            applicant.only("X-Priority").map(str::to_owned)
        };
        assert_eq!(only(&headers).as_deref(), Some("high"));
        headers.append("x-priority", HeaderValue::from_static("low"));
        assert_eq!(only(&headers), None);
        assert_eq!(only(&HeaderMap::new()), None);
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
