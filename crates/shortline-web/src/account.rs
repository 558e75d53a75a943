//! The account of one response: how long it waited, how long it took to send, and how it ended.
//!
//! It is kept while the response is sent. When the response ends, however it ends, it is counted
//! (`ledger`) and logged.
//!
//! | time | from | until |
//! |---|---|---|
//! | wait | the request is complete | the first grant |
//! | queue, the last part of it | the response is decided: a backend has sent its head, or a file is open | the first grant |
//! | send | the first grant | the last byte is handed over |

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Version, header};
use shortline_base::clock::{self, now_ns};
use shortline_sched::Client;

use crate::clients::Asks;
use crate::comparison::Compared;
use crate::context::Connection;
use crate::files::OpenFile;
use crate::identity::Identity;
use crate::ledger::Ended;
use crate::log::{AccessLog, AccessRecord, FieldValues, values_of};
use crate::proxy::AtBackend;
use crate::proxy::head::host_name;
use crate::respond::{Presence, target};
use crate::sites::{Site, SiteNumber};

/// What only the log needs of a request and its response.
struct Logged {
    log: Arc<dyn AccessLog>,
    method: String,
    target: String,
    version: &'static str,
    host: Option<String>,
    user: Option<Vec<u8>>,
    fields: FieldValues,
    time: SystemTime,
    decided_ns: Option<u64>,
    at_backend: Option<AtBackend>,
}

/// One response; see the module's text.
pub struct Account {
    connection: Arc<Connection>,
    asks: Asks,
    site: Option<SiteNumber>,
    logged: Option<Box<Logged>>,
    /// Known where something tells it: the log, a backend, the response.
    identity: Option<Identity>,
    status: u16,
    begun_ns: u64,
    granted_ns: Option<u64>,
    body_bytes: u64,
    complete: bool,
    /// What the comparison with fair sharing knows it by.
    compared: Option<Compared>,
    /// Its place among the requests of its site, if those have a limit.
    pub presence: Option<Presence>,
}

impl Account {
    /// Opens the account of a request on `connection` that is complete: its response begins. `site`
    /// answers it.
    pub fn open(connection: &Arc<Connection>, head: &Parts, site: Option<SiteNumber>) -> Self {
        connection.watch.response_begins();
        let log = connection.server.ledger.access_log(|| {
            let site = connection.settings.sites.get(site?);
            Some(site.label())
        });
        Self {
            connection: Arc::clone(connection),
            asks: connection.asks(&head.headers),
            site,
            logged: log.map(|log| Box::new(Logged::of(log, head))),
            identity: None,
            status: 0,
            begun_ns: now_ns(),
            granted_ns: None,
            body_bytes: 0,
            complete: false,
            compared: None,
            presence: None,
        }
    }

    /// The connection that carries the response.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Has the disk read `length` bytes of a file for the response. `remaining_bytes`: what it still has to send, if that is known.
    ///
    /// # Errors
    /// The disk's, which are logged.
    pub fn read(
        &self,
        file: Arc<OpenFile>,
        offset: u64,
        length: usize,
        remaining_bytes: Option<u64>,
    ) -> impl Future<Output = io::Result<Bytes>> + Send + use<> {
        let disk = Arc::clone(&self.connection.settings.disk);
        let remaining_bytes = remaining_bytes.unwrap_or(length as u64);
        disk.read(file, offset, length, remaining_bytes, self.client())
    }

    /// The client, as the order sees it.
    pub fn client(&self) -> Client {
        self.connection.settings.clients.client(self.asks)
    }

    /// When the request was complete, on the link's clock.
    pub fn begun_ns(&self) -> u64 {
        self.begun_ns
    }

    /// Which request it is, once something has asked for that.
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// Finds out which request it is, if the log tells that or `is_told`.
    pub fn identify(&mut self, headers: &HeaderMap, is_told: bool) {
        if is_told || self.logged.is_some() {
            let is_trusted = self
                .connection
                .settings
                .clients
                .trusts(self.connection.peer);
            let sampling = self.connection.settings.sampling;
            self.identity = Some(Identity::of(headers, is_trusted, sampling));
        }
    }

    /// Notes what the response is.
    pub fn decided(&mut self, status: u16, headers: &HeaderMap, at_backend: Option<AtBackend>) {
        self.status = status;
        if let Some(logged) = &mut self.logged {
            logged.decided_ns = Some(now_ns());
            logged.fields.response = values_of(&logged.log.fields().response, headers);
            logged.at_backend = at_backend;
        }
    }

    /// The response enters the link, with so many bytes if that is known.
    pub fn enters_link(&mut self, client: Client, bytes: Option<u64>) {
        let connection = &self.connection;
        if let Some(comparison) = connection.server.ledger.comparison() {
            let (worker, begun_ns) = (connection.worker, self.begun_ns);
            self.compared = Some(comparison.enters(worker, client, bytes, begun_ns, now_ns()));
        }
    }

    /// Notes when the backend was done. `None`: that never came.
    pub fn backend_ended(&mut self, ended_ns: Option<u64>) {
        let logged = self.logged.as_mut();
        if let Some(at_backend) = logged.and_then(|logged| logged.at_backend.as_mut()) {
            at_backend.ended_ns = ended_ns;
        }
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
        let ledger = &connection.server.ledger;
        ledger.count(&Ended {
            worker: connection.worker,
            row: connection.settings.row(self.site),
            status: self.status,
            body_bytes: self.body_bytes,
            times_ns,
        });
        if let (Some(compared), Some(comparison)) = (self.compared, ledger.comparison()) {
            comparison.ends(compared, ended_ns, self.complete);
        }
        if let Some(logged) = self.logged.take() {
            let log = Arc::clone(&logged.log);
            log.log(self.record(*logged, granted_ns, ended_ns));
        }
    }
}

impl Account {
    fn record(&self, logged: Logged, granted_ns: u64, ended_ns: u64) -> AccessRecord {
        let between = |from: u64, to: u64| Duration::from_nanos(to.saturating_sub(from));
        let connection = &self.connection;
        let identity = self.identity.as_ref();
        let site = self.site.map(|site| connection.settings.sites.get(site));
        let tls = connection.tls_version.get().copied().flatten();
        AccessRecord {
            peer: self.asks.address,
            user: logged.user,
            host: logged.host,
            site: site.map(Site::label),
            method: logged.method,
            target: logged.target,
            version: logged.version,
            tls: tls.and_then(|version| version.as_str()),
            certificate: site.and_then(|site| connection.identity_for(site).cloned()),
            request_id: identity.map_or_else(String::new, |identity| identity.id.to_string()),
            trace_id: identity.and_then(|identity| Some(identity.trace.as_ref()?.trace_id())),
            span: identity.and_then(|identity| identity.span),
            status: self.status,
            body_bytes: self.body_bytes,
            fields: logged.fields,
            wait: between(self.begun_ns, granted_ns),
            queue: between(logged.decided_ns.unwrap_or(ended_ns), granted_ns),
            send: between(granted_ns, ended_ns),
            backend: logged.at_backend.map(|backend| backend.record()),
            time: logged.time,
            complete: self.complete,
        }
    }
}

impl Logged {
    fn of(log: Arc<dyn AccessLog>, head: &Parts) -> Self {
        let fields = FieldValues {
            request: values_of(&log.fields().request, &head.headers),
            response: Vec::new(),
        };
        Self {
            log,
            method: head.method.to_string(),
            target: target(head).to_owned(),
            version: match head.version {
                Version::HTTP_10 => "HTTP/1.0",
                Version::HTTP_2 => "HTTP/2.0",
                Version::HTTP_3 => "HTTP/3.0",
                _ => "HTTP/1.1",
            },
            host: host_name(head).map(str::to_owned),
            user: user(&head.headers),
            fields,
            time: clock::date(),
            decided_ns: None,
            at_backend: None,
        }
    }
}

/// The user that `Authorization: Basic` names (RFC 7617, 2).
fn user(headers: &HeaderMap) -> Option<Vec<u8>> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, sealed) = value.split_at_checked("Basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let mut both = BASE64_STANDARD.decode(sealed.trim_ascii()).ok()?;
    both.truncate(both.iter().position(|byte| *byte == b':')?);
    Some(both)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_user_is_what_stands_before_the_colon() {
        let user = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            user(&headers)
        };
        // The example of RFC 7617: Aladdin:open sesame.
        let aladdin = Some(b"Aladdin".to_vec());
        assert_eq!(user("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), aladdin);
        assert_eq!(user("basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), aladdin);
        for other in [
            "Basic",
            "Basic %%",
            "Basic QWxhZGRpbg==",
            "Bearer QWxhZGRpbjo=",
        ] {
            assert_eq!(user(other), None, "{other}");
        }
    }
}
