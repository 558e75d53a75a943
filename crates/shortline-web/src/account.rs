//! The account of one response: how long it waited, how long it took to send, and how it ended.
//!
//! It is kept while the response is sent. When the response ends, however it ends, it is counted
//! (`ledger`) and logged.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, Version, header};
use shortline_base::clock::{self, now_ns};
use shortline_sched::Client;

use crate::clients::Asks;
use crate::context::Connection;
use crate::log::{AccessLog, AccessRecord};

/// The part of a request that only the log needs.
struct RequestText {
    method: String,
    target: String,
    version: &'static str,
    referer: Option<String>,
    user_agent: Option<String>,
    time: SystemTime,
}

/// One response; see the module's text.
pub struct Account {
    connection: Arc<Connection>,
    asks: Asks,
    access_log: Option<Box<(Arc<dyn AccessLog>, RequestText)>>,
    status: u16,
    begun_ns: u64,
    granted_ns: Option<u64>,
    body_bytes: u64,
    complete: bool,
}

/// The parts of a request that its account needs.
pub struct RequestFacts<'a> {
    /// The request's method.
    pub method: &'a Method,
    /// Its target, as received.
    pub target: &'a str,
    /// Its version.
    pub version: Version,
    /// Its header fields.
    pub headers: &'a HeaderMap,
}

impl Account {
    /// Opens the account of a request on `connection` that is complete: its response begins.
    pub fn open(connection: &Arc<Connection>, facts: &RequestFacts<'_>) -> Self {
        connection.watch.response_begins();
        let access_log = connection.server.ledger.access_log();
        Self {
            connection: Arc::clone(connection),
            asks: connection.asks(facts.headers),
            access_log: access_log.map(|log| Box::new((log, RequestText::of(facts)))),
            status: 0,
            begun_ns: now_ns(),
            granted_ns: None,
            body_bytes: 0,
            complete: false,
        }
    }

    /// The connection that carries the response.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The client, as the order sees it.
    pub fn client(&self) -> Client {
        self.connection.settings.clients.client(self.asks)
    }

    /// When the request was complete, on the link's clock.
    pub fn begun_ns(&self) -> u64 {
        self.begun_ns
    }

    /// Notes the response's status.
    pub fn set_status(&mut self, status: u16) {
        self.status = status;
    }

    /// Notes a grant. The first one ends the wait.
    pub fn granted(&mut self) {
        self.granted_ns.get_or_insert_with(now_ns);
    }

    /// Counts body bytes given to the connection. `complete` is set with the last ones.
    pub fn handed_over(&mut self, body_bytes: u32, complete: bool) {
        self.body_bytes += u64::from(body_bytes);
        self.complete = complete;
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.connection.watch.response_ends();
        let ended_ns = now_ns();
        let granted_ns = self.granted_ns.unwrap_or(ended_ns);
        let wait_ns = granted_ns.saturating_sub(self.begun_ns);
        let response_ns = ended_ns.saturating_sub(self.begun_ns);
        let times_ns = self.complete.then_some((wait_ns, response_ns));
        let connection = &self.connection;
        connection
            .server
            .ledger
            .count(connection.worker, self.status, self.body_bytes, times_ns);
        let Some(logged) = self.access_log.take() else {
            return;
        };
        let (log, text) = *logged;
        log.log(AccessRecord {
            peer: self.asks.address,
            method: text.method,
            target: text.target,
            version: text.version,
            status: self.status,
            body_bytes: self.body_bytes,
            referer: text.referer,
            user_agent: text.user_agent,
            wait: Duration::from_nanos(wait_ns),
            send: Duration::from_nanos(ended_ns.saturating_sub(granted_ns)),
            time: text.time,
            complete: self.complete,
        });
    }
}

impl RequestText {
    fn of(facts: &RequestFacts<'_>) -> Self {
        let field = |name| {
            let value = facts.headers.get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Self {
            method: facts.method.to_string(),
            target: facts.target.to_owned(),
            version: match facts.version {
                Version::HTTP_10 => "HTTP/1.0",
                Version::HTTP_2 => "HTTP/2.0",
                _ => "HTTP/1.1",
            },
            referer: field(header::REFERER),
            user_agent: field(header::USER_AGENT),
            time: clock::date(),
        }
    }
}
