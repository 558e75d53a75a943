//! A request of a route with a cache: answered from there, or by the backend, whose response is then kept if it may be.
//!
//! | what is kept | the request |
//! |---|---|
//! | a fresh response | is answered by it, once it has been read if it is in the folder alone |
//! | a stale one that may be given meanwhile | is answered by it, and one such request fetches it anew in the background |
//! | a stale one | asks the backend whether it still holds; if the backend fails, it may stand in |
//! | nothing | fetches the response, and others like it wait for that, up to a limit |
//!
//! A request of a client with a certificate asks the backend, and its response is not kept.
//!
//! How it came about is in `Cache-Status` (RFC 9211).

use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, StatusCode};
use shortline_base::clock;

use super::decide::{Answer, Asks, Decided, ask_backend};
use crate::context::Connection;
use crate::files::conditional::{Validators, Verdict, evaluate, parse_date};
use crate::files::{Plan, PlanBody};
use crate::outgoing::Content;
use crate::proxy::routes::Route;
use crate::proxy::{Proxied, ProxyError, Received};
use crate::response_cache::{
    Flight, Found, Outcome, Recorder, ResponseCache, Sought, Stored, Turn,
};

const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
/// Fields by which a client asks for less than the whole. What is kept is whole.
const CONDITIONS: [HeaderName; 5] = [
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
    header::IF_RANGE,
];
/// Fields of a body, which a 304 does not have.
const OF_THE_BODY: [HeaderName; 3] = [
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::CONTENT_TYPE,
];

/// A request, and the cache of its route.
#[derive(Clone)]
struct Request {
    connection: Arc<Connection>,
    asks: Box<Asks>,
    route: Route,
    cache: Arc<ResponseCache>,
    asked: Sought,
}

/// The answer, if a fresh response is kept.
pub fn now(
    connection: &Connection,
    route: &Route,
    head: &Parts,
    body: &Received,
    sent: &str,
) -> Option<Decided> {
    let cache = route.cache.as_ref()?;
    let asked = asked(connection, route, head, body, sent)?;
    let now = clock::date();
    match cache.find(&asked, now) {
        Found::Fresh(stored) => Some(hit(cache, &stored, head, now)),
        _ => None,
    }
}

/// The answer from the cache or the backend of `route`.
pub async fn ask(
    connection: &Arc<Connection>,
    asks: Box<Asks>,
    route: &Route,
    (head, body): (Box<Parts>, Received),
    sent: &str,
) -> Decided {
    let method = head.method.clone();
    let Some(cache) = &route.cache else {
        let answer = ask_backend(connection, asks, route, (head, body), None).await;
        return answer.decided(route, &method);
    };
    let asked = match asks.certificate {
        None => asked(connection, route, &head, &body, sent),
        // The backend is told who asks, and nobody else may get what it answers.
        Some(_) => None,
    };
    let Some(asked) = asked else {
        cache.count(Outcome::Passed, 0);
        let answer = ask_backend(connection, asks, route, (head, body), None).await;
        return answer
            .decided(route, &method)
            .noted("Shortline; fwd=bypass");
    };
    let request = Request {
        connection: Arc::clone(connection),
        asks,
        route: route.clone(),
        cache: Arc::clone(cache),
        asked,
    };
    Box::pin(request.answer(head, body)).await
}

fn asked(
    connection: &Connection,
    route: &Route,
    head: &Parts,
    body: &Received,
    sent: &str,
) -> Option<Sought> {
    let trusts = route.upstream.options.trust_forwarded;
    match body.is_empty() {
        true => Sought::of(head, connection.secure, sent, trusts),
        // The response may depend on it.
        false => None,
    }
}

fn hit(cache: &ResponseCache, stored: &Stored, head: &Parts, now: SystemTime) -> Decided {
    let seconds = stored.terms.fresh_for(now).as_secs();
    let status = format!("Shortline; hit; ttl={seconds}");
    answered(cache, Outcome::Hit, stored, head, now, &status)
}

/// A response that is kept, for this request.
fn answered(
    cache: &ResponseCache,
    outcome: Outcome,
    stored: &Stored,
    head: &Parts,
    now: SystemTime,
    cache_status: &str,
) -> Decided {
    let mut headers = stored.fields(now, cache_status);
    let (status, is_sent) = match verdict(stored, head) {
        Verdict::Proceed => (stored.status, head.method == Method::GET),
        Verdict::NotModified => (StatusCode::NOT_MODIFIED, false),
        Verdict::Failed => {
            cache.count(outcome, 0);
            return Plan::text(StatusCode::PRECONDITION_FAILED, &head.method).into();
        }
    };
    match status {
        StatusCode::NOT_MODIFIED => OF_THE_BODY
            .iter()
            .for_each(|name| drop(headers.remove(name))),
        StatusCode::NO_CONTENT => {}
        _ => drop(headers.insert(header::CONTENT_LENGTH, stored.body.len().into())),
    }
    let body = match is_sent {
        true => stored.body.plan(),
        false => PlanBody::Empty,
    };
    cache.count(outcome, body.len());
    Decided::from(Plan {
        status,
        headers: headers.into(),
        body,
    })
    .of_backend()
}

/// What the request's conditions say of a response with a tag.
fn verdict(stored: &Stored, head: &Parts) -> Verdict {
    match stored.headers.get(header::ETAG) {
        Some(etag) if stored.status == StatusCode::OK => {
            let modified = stored.headers.get(header::LAST_MODIFIED);
            let validators = Validators {
                etag: etag.clone(),
                modified: modified.and_then(|modified| parse_date(modified.as_bytes())),
            };
            evaluate(&head.headers, &validators)
        }
        _ => Verdict::Proceed,
    }
}

impl Request {
    async fn answer(self, head: Box<Parts>, body: Received) -> Decided {
        let mut has_waited = false;
        loop {
            let now = clock::date();
            let found = match self.cache.find(&self.asked, now) {
                Found::Unread(unread) => self.cache.load(&self.asked, unread, now).await,
                found => found,
            };
            let stale = match found {
                Found::Fresh(stored) => return hit(&self.cache, &stored, &head, now),
                Found::Stale(stored) if stored.terms.may_revalidate_later(now) => {
                    self.fetch_later(&stored, &head);
                    return self.stale(&stored, &head, now);
                }
                Found::Stale(stored) => Some(stored),
                Found::Nothing | Found::Unread(_) => None,
                Found::NotKept => return self.pass(head, body).await,
            };
            if head.method != Method::GET {
                return self.pass(head, body).await;
            }
            if self.asked.is_personal() {
                return self.fetch(stale, None, head, body).await;
            }
            match self.cache.turn(&self.asked) {
                Turn::Fetches(flight) => return self.fetch(stale, Some(flight), head, body).await,
                Turn::Waits(_) if has_waited => return self.pass(head, body).await,
                Turn::Waits(mut landing) => {
                    has_waited = true;
                    let time_max = self.cache.options.wait_time_max;
                    // Landed or not: what is kept is looked at again.
                    let _ = tokio::time::timeout(time_max, landing.changed()).await;
                }
            }
        }
    }

    fn stale(&self, stored: &Stored, head: &Parts, now: SystemTime) -> Decided {
        let seconds = stored.terms.stale_for(now).as_secs();
        let status = format!("Shortline; hit; ttl=-{seconds}");
        answered(&self.cache, Outcome::Stale, stored, head, now, &status)
    }

    /// Asks the backend for this request alone.
    async fn pass(self, head: Box<Parts>, body: Received) -> Decided {
        self.cache.count(Outcome::Miss, 0);
        let method = head.method.clone();
        let (connection, route) = (&self.connection, &self.route);
        let answer = ask_backend(connection, self.asks, route, (head, body), None).await;
        answer
            .decided(route, &method)
            .noted("Shortline; fwd=uri-miss")
    }

    /// Fetches what is stale, if nobody does yet.
    fn fetch_later(&self, stored: &Arc<Stored>, head: &Parts) {
        let Turn::Fetches(flight) = self.cache.turn(&self.asked) else {
            return;
        };
        let (request, stored) = (self.clone(), Arc::clone(stored));
        let mut head = Box::new(head.clone());
        head.method = Method::GET;
        tokio::spawn(async move {
            let fetching = request.fetch(Some(stored), Some(flight), head, Received::none());
            let fetching: Pin<Box<dyn Future<Output = Decided> + Send>> = Box::pin(fetching);
            if let Content::Relayed(mut relayed) = fetching.await.content {
                relayed.pass_over().await;
            }
        });
    }

    /// Asks the backend, for all who wait for `flight`.
    async fn fetch(
        self,
        stale: Option<Arc<Stored>>,
        flight: Option<Flight>,
        head: Box<Parts>,
        body: Received,
    ) -> Decided {
        let flight = flight.map(Arc::new);
        let mut sent = head.clone();
        for name in CONDITIONS {
            sent.headers.remove(name);
        }
        let now = clock::date();
        if let Some(stored) = &stale {
            stored.terms.ask_whether_it_holds(&mut sent.headers, now);
        }
        let purges = self.cache.purges();
        let recorder = Recorder::new(&self.cache, self.asked.clone(), flight.clone()).into();
        let (asks, route) = (self.asks.clone(), &self.route);
        let asking = ask_backend(&self.connection, asks, route, (sent, body), Some(recorder));
        let Answer {
            answer, at_backend, ..
        } = asking.await;
        let at_backend = Some(at_backend);
        let decided = self.made_of(answer, stale, head, purges).await;
        Decided {
            at_backend,
            ..decided
        }
    }

    /// The response that a backend's answer and what was kept before make.
    async fn made_of(
        self,
        answer: Result<Proxied, ProxyError>,
        stale: Option<Arc<Stored>>,
        head: Box<Parts>,
        purges: u64,
    ) -> Decided {
        let proxied = match answer {
            Ok(proxied) => proxied,
            Err(error) => return self.failed(&error, stale, &head),
        };
        let now = clock::date();
        match stale {
            Some(stored) if proxied.status == StatusCode::NOT_MODIFIED => {
                match stored.terms.is_confirmed_by(&proxied.headers, now) {
                    true => self.renewed(&stored, &proxied.headers, &head, now, purges),
                    // Of something else that was here before.
                    false => self.pass(head, Received::none()).await,
                }
            }
            Some(stored) if proxied.status.is_server_error() && stored.terms.may_stand_in(now) => {
                self.stale(&stored, &head, now)
            }
            _ => {
                self.cache.count(Outcome::Miss, 0);
                let fwd = ["Shortline; fwd=uri-miss", "Shortline; fwd=stale"]
                    [usize::from(stale.is_some())];
                Decided::proxied(proxied, &self.route).noted(fwd)
            }
        }
    }

    fn failed(&self, error: &ProxyError, stale: Option<Arc<Stored>>, head: &Parts) -> Decided {
        let now = clock::date();
        let may = |stored: &Arc<Stored>| {
            error.status().is_server_error() && stored.terms.may_stand_in(now)
        };
        match stale.filter(may) {
            Some(stored) => self.stale(&stored, head, now),
            None => {
                self.cache.count(Outcome::Miss, 0);
                error.plan(&head.method).into()
            }
        }
    }

    /// A response that its backend has confirmed.
    fn renewed(
        &self,
        stored: &Arc<Stored>,
        confirmed: &http::HeaderMap,
        head: &Parts,
        now: SystemTime,
        purges: u64,
    ) -> Decided {
        let renewed = self
            .cache
            .renew(&self.asked, stored, confirmed, now, purges);
        let stored = renewed.as_ref().unwrap_or(stored);
        let status = "Shortline; fwd=stale; fwd-status=304";
        answered(&self.cache, Outcome::Miss, stored, head, now, status)
    }
}

impl Decided {
    /// With how it came about.
    fn noted(mut self, cache_status: &'static str) -> Self {
        let value = HeaderValue::from_static(cache_status);
        self.headers.change().append(CACHE_STATUS, value);
        self
    }
}
