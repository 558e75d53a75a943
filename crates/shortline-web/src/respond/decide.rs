//! What the response to a request is: a file, a backend's answer, or what a rule or an error says.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header;
use http::request::Parts;
use http::{Method, StatusCode};
use shortline_tls::ClientIdentity;

use super::asked::{page_head, sent_target, with_query, with_target};
use super::limits::Deadline;
use super::{Tunnel, cached, refusal, target};
use crate::compress::{self, Compress, Passing};
use crate::context::Connection;
use crate::files::{Plan, PlanBody};
use crate::identity::Identity;
use crate::outgoing::Content;
use crate::pace::Bandwidth;
use crate::place::{self, AnswerKind, Place, Spot};
use crate::programs::{Found, Programs};
use crate::proxy::routes::Route;
use crate::proxy::{self, AtBackend, Proxied, ProxyError, Received, Trail};
use crate::response_cache::Recorder;
use crate::rules::Granted;
use crate::rules::auth::Access;
use crate::rules::pages::Page;
use crate::shared_fields::SharedFields;
use crate::sites::Site;
use crate::unwanted::{self, Unsound};

/// A response that is decided.
pub struct Decided {
    pub status: StatusCode,
    pub headers: SharedFields,
    pub content: Content,
    pub tunnel: Option<Box<Tunnel>>,
    /// The most bandwidth it gets, if that is limited.
    pub bandwidth: Option<Bandwidth>,
    /// A backend's part in it, if one was asked.
    pub at_backend: Option<AtBackend>,
    /// Whether a page may stand for it: it is this server's own, and nobody asked for it.
    pub is_own: bool,
}

/// Who asks, and when.
#[derive(Clone)]
pub struct Asks {
    /// The client's name.
    pub client: u128,
    /// Which request it is.
    pub identity: Option<Identity>,
    /// Who the client is, by the certificate that the site wanted.
    pub certificate: Option<Arc<ClientIdentity>>,
    /// When the request was complete.
    pub now_ns: u64,
    /// What may become of a backend's response.
    pub passing: Passing,
}

/// The answer, if it need not wait for a backend, a disk or the client.
pub fn now(
    connection: &Connection,
    place: &Place,
    head: &Parts,
    body: &Received,
    now_ns: u64,
) -> Option<Decided> {
    if let Place::Malformed(malformed) = place {
        return Some(refusal(StatusCode::BAD_REQUEST, head, malformed).into());
    }
    if matches!(body, Received::Http1(body) if unwanted::has_chunks(head, body)) {
        return None;
    }
    let spot = match place {
        Place::At(spot) => spot,
        Place::Nowhere(plan) => return Some(Plan::clone(plan).into()),
        Place::Malformed(_) => return None,
    };
    let decided = at_spot_now(connection, spot, head, body, now_ns)?;
    let decided = match decided.page(connection, spot) {
        None => decided,
        Some(Page::Text(text)) => decided.with_text(&head.method, text),
        Some(Page::File(target)) => {
            let files = spot.site(connection).files.as_ref();
            let asked = page_head(&head.method, target);
            match files.map(|files| files.respond_now(&asked, now_ns)) {
                Some(page) => decided.with_page(page?),
                None => decided,
            }
        }
    };
    Some(decided.at(connection, spot))
}

/// What a site answers without waiting.
fn at_spot_now(
    connection: &Connection,
    spot: &Spot,
    head: &Parts,
    body: &Received,
    now_ns: u64,
) -> Option<Decided> {
    if let Some(answer) = spot.answer() {
        return Some(answer.clone().into());
    }
    match spot.ask_now(connection, head) {
        None | Some(Access::Granted) => {}
        Some(Access::Refused(plan)) => return Some(Decided::from(*plan)),
        Some(Access::Unchecked) => return None,
    }
    let site = spot.site(connection);
    let targets = spot.targets(connection, head);
    let compress = spot.compress(connection);
    let asked = |target| with_target(head, target, compress);
    if let Some(files) = &site.files {
        for target in &targets {
            if program_route(site, target).is_some() {
                return None;
            }
            let plan = files.respond_now(&asked(target), now_ns)?;
            if plan.status != StatusCode::NOT_FOUND {
                return Some(plan.into());
            }
        }
    }
    if let Some(route) = spot.route(connection, head) {
        if let Some(programs) = &route.programs
            && let Found::Answer(plan) =
                programs.find_now(head, target(head), compress.files, now_ns)?
        {
            return Some(plan.into());
        }
        // What is kept may depend on fields that the rule changes, and so on who asks.
        if spot.changes_fields(connection) || connection.identity_for(site).is_some() {
            return None;
        }
        return cached::now(connection, route, head, body, sent_target(spot, head));
    }
    let plan = match &site.files {
        Some(files) if targets.is_empty() => files.respond_now(&asked(target(head)), now_ns)?,
        _ => without_files(head),
    };
    Some(plan.into())
}

/// The answer of a backend, or of a file that must be looked up on the disk.
pub async fn later(
    connection: Arc<Connection>,
    place: Box<Place>,
    asks: Box<Asks>,
    head: Box<Parts>,
    body: Received,
) -> Decided {
    let now_ns = asks.now_ns;
    // What is left of it is dropped once the answer is ready; see `Responding::body`.
    let mut body = Some(body);
    let spot = match &*place {
        Place::At(spot) => spot,
        Place::Nowhere(plan) => {
            let unsound = pass_over(&connection, &head, &mut body).await;
            return unsound.unwrap_or_else(|| Plan::clone(plan)).into();
        }
        Place::Malformed(malformed) => {
            return refusal(StatusCode::BAD_REQUEST, &head, malformed).into();
        }
    };
    let method = head.method.clone();
    let deadline = Deadline::of(&connection, spot, asks.identity.as_ref()).map(Box::new);
    let deciding = pin!(at_spot(&connection, spot, asks, head, &mut body));
    let decided = match deadline {
        None => deciding.await,
        Some(deadline) => Box::pin(deadline.keep(&connection, spot, &method, deciding)).await,
    };
    let decided = match decided.page(&connection, spot) {
        None => decided,
        Some(Page::Text(text)) => decided.with_text(&method, text),
        Some(Page::File(target)) => match &spot.site(&connection).files {
            None => decided,
            Some(files) => {
                let page = page_head(&method, target);
                let page = Box::pin(files.respond(&page, now_ns)).await;
                decided.with_page(page)
            }
        },
    };
    decided.at(&connection, spot)
}

/// What a site answers.
async fn at_spot(
    connection: &Arc<Connection>,
    spot: &Spot,
    asks: Box<Asks>,
    head: Box<Parts>,
    body: &mut Option<Received>,
) -> Decided {
    if let Some(answer) = spot.answer() {
        let unsound = pass_over(connection, &head, body).await;
        return unsound.map_or_else(|| answer.clone().into(), Decided::from);
    }
    let granted = match spot.ask(connection, asks.identity.as_ref(), &head).await {
        Ok(granted) => granted,
        Err(answer) => return answer.into(),
    };
    let mut decided = answer_granted(connection, spot, &granted, asks, head, body).await;
    granted.said.set_cookies(&mut decided.headers);
    decided
}

/// What a site answers to a request that was let in.
async fn answer_granted(
    connection: &Arc<Connection>,
    spot: &Spot,
    granted: &Granted,
    mut asks: Box<Asks>,
    mut head: Box<Parts>,
    body: &mut Option<Received>,
) -> Decided {
    let now_ns = asks.now_ns;
    let site = spot.site(connection);
    let targets = spot.targets(connection, &head);
    let compress = spot.compress(connection);
    asks.passing = passing(compress, &head);
    asks.certificate = connection.identity_for(site).cloned();
    if let Some(files) = &site.files {
        for target in &targets {
            if let Some((route, programs)) = program_route(site, target)
                && let Some(program) = programs.named(target).await
                && let Some(body) = body.take()
            {
                let call = programs.call(connection, &head, program, sent_target(spot, &head));
                head.uri = with_query(target, &head.uri);
                head.extensions.insert(call);
                return pass_on(connection, spot, granted, asks, route, (head, body)).await;
            }
            let asked = with_target(&head, target, compress);
            let plan = Box::pin(files.respond(&asked, now_ns)).await;
            if plan.status != StatusCode::NOT_FOUND {
                return plan.into();
            }
        }
    }
    if let Some(route) = spot.route(connection, &head) {
        if let Some(programs) = &route.programs {
            let finding = programs.find(&head, target(&head), compress.files, now_ns);
            match Box::pin(finding).await {
                Found::Answer(plan) => return plan.into(),
                Found::Program(program) => {
                    let call = programs.call(connection, &head, program, sent_target(spot, &head));
                    head.extensions.insert(call);
                }
            }
        }
        if let Some(body) = body.take() {
            return pass_on(connection, spot, granted, asks, route, (head, body)).await;
        }
    }
    if let Some(refusal) = pass_over(connection, &head, body).await {
        return refusal.into();
    }
    let plan = match &site.files {
        Some(files) if targets.is_empty() => {
            let asked = with_target(&head, target(&head), compress);
            Box::pin(files.respond(&asked, now_ns)).await
        }
        _ => without_files(&head),
    };
    plan.into()
}

/// Passes a request on to a route, with the fields that its rule makes.
async fn pass_on(
    connection: &Arc<Connection>,
    spot: &Spot,
    granted: &Granted,
    asks: Box<Asks>,
    route: &Route,
    (mut head, body): (Box<Parts>, Received),
) -> Decided {
    spot.change_fields(connection, granted, &mut head);
    let sent = sent_target(spot, &head).to_owned();
    // Each caller's future holds this one, and a future is copied as often as it is handed on: all of it, with the room for what it
    // has not begun yet. So the large ones are in boxes, and so is what few requests need.
    Box::pin(cached::ask(connection, asks, route, (head, body), &sent)).await
}

/// What may become of a backend's response.
fn passing(compress: Compress, head: &Parts) -> Passing {
    match compress.backends {
        true => Passing::Negotiated(compress::wanted(&head.headers)),
        false => Passing::AsIs,
    }
}

/// What a backend has answered.
pub struct Answer {
    /// The response, or why there is none.
    pub answer: Result<Proxied, ProxyError>,
    /// The backend's part.
    pub at_backend: AtBackend,
}

/// Asks a backend of `route`. A response that may be kept is by `recorder`.
pub async fn ask_backend(
    connection: &Connection,
    asks: Box<Asks>,
    route: &Route,
    (mut head, body): (Box<Parts>, Received),
    recorder: Option<Box<Recorder>>,
) -> Answer {
    if let Some(identity) = &asks.identity {
        identity.tell(&mut head.headers);
    }
    let mut trail = Trail::begin(asks.identity);
    let asking = proxy::ask(
        connection,
        (asks.client, asks.certificate.as_deref()),
        route,
        (head, body),
        (asks.passing, recorder),
        &mut trail,
    );
    let answer = asking.await;
    let ends = answer.as_ref().is_ok_and(|proxied| proxied.body.is_none());
    match &answer {
        Ok(proxied) => trail.log_passed_on(route.addressee(), proxied.status),
        Err(error) => trail.log_failed(route.addressee(), error),
    }
    Answer {
        answer,
        at_backend: trail.at_backend(ends),
    }
}

impl Answer {
    /// The response to a request with that method.
    pub fn decided(self, route: &Route, method: &Method) -> Decided {
        let decided = match self.answer {
            Ok(proxied) => Decided::proxied(proxied, route),
            Err(error) => error.plan(method).into(),
        };
        Decided {
            at_backend: Some(self.at_backend),
            ..decided
        }
    }
}

/// The route whose program a target may name, and its programs.
fn program_route<'a>(site: &'a Site, target: &str) -> Option<(&'a Route, &'a Arc<Programs>)> {
    let path = target.split('?').next().unwrap_or_default();
    let route = site.routes.find(path)?;
    let programs = route.programs.as_ref()?;
    programs.may_be_program(target).then_some((route, programs))
}

impl Decided {
    /// As what a backend has answered before.
    pub fn of_backend(self) -> Self {
        Self {
            is_own: false,
            ..self
        }
    }

    /// The page that stands for it, if one does.
    fn page<'a>(&self, connection: &'a Connection, spot: &Spot) -> Option<&'a Page> {
        let is_error = self.status.is_client_error() || self.status.is_server_error();
        let may = self.is_own && is_error;
        may.then(|| spot.page(connection, self.status)).flatten()
    }

    fn with_text(self, method: &Method, text: &Bytes) -> Self {
        self.with_page(Plan::with_text(StatusCode::OK, method, text.clone()))
    }

    /// With a page in the place of its text. It stays as it is if there is no such page.
    fn with_page(mut self, page: Plan) -> Self {
        if page.status != StatusCode::OK {
            return self;
        }
        for name in [header::CONTENT_TYPE, header::CONTENT_LENGTH] {
            if let Some(value) = page.headers.get(&name) {
                self.headers.change().insert(name, value.clone());
            }
        }
        self.content = page.body.into();
        self
    }

    /// With what its site and rule say in each response.
    fn at(mut self, connection: &Connection, spot: &Spot) -> Self {
        spot.complete(connection, &mut self.headers);
        self.bandwidth = spot.rule(connection).and_then(|rule| rule.bandwidth);
        self
    }

    pub(super) fn proxied(proxied: Proxied, route: &Route) -> Self {
        Self {
            status: proxied.status,
            headers: proxied.headers.into(),
            content: match proxied.body {
                Some(relayed) => Content::Relayed(relayed),
                None => PlanBody::Empty.into(),
            },
            tunnel: proxied.upgraded.map(|backend| {
                Box::new(Tunnel {
                    backend: *backend,
                    idle_time_max: route.upstream.options.tunnel_idle_time_max,
                })
            }),
            bandwidth: None,
            at_backend: None,
            is_own: false,
        }
    }
}

impl From<place::Answer> for Decided {
    fn from(answer: place::Answer) -> Self {
        Self {
            is_own: answer.kind == AnswerKind::Refusal,
            ..Self::from(*answer.plan)
        }
    }
}

impl From<Plan> for Decided {
    fn from(plan: Plan) -> Self {
        Self {
            status: plan.status,
            headers: plan.headers,
            content: plan.body.into(),
            tunnel: None,
            bandwidth: None,
            at_backend: None,
            is_own: true,
        }
    }
}

/// Reads and drops the chunks of a request for a file. `Some`: they are malformed.
async fn pass_over(
    connection: &Connection,
    head: &Parts,
    body: &mut Option<Received>,
) -> Option<Plan> {
    let Some(Received::Http1(body)) = body else {
        return None;
    };
    if !unwanted::has_chunks(head, body) {
        return None;
    }
    let time_max = connection.settings.limits.header_time_max;
    let (status, why) = match unwanted::pass_over(body, time_max).await {
        Ok(()) => return None,
        Err(Unsound::Malformed) => (StatusCode::BAD_REQUEST, "the body's chunks are malformed"),
        Err(Unsound::Late) => (StatusCode::REQUEST_TIMEOUT, "the body does not come"),
    };
    Some(refusal(status, head, &why))
}

/// The answer if no files are served and no route takes the request: nothing is there, except that
/// the server exists (RFC 9110 9.3.7).
fn without_files(head: &Parts) -> Plan {
    if head.method == Method::OPTIONS && head.uri.path() == "*" {
        return Plan {
            status: StatusCode::NO_CONTENT,
            headers: SharedFields::default(),
            body: PlanBody::Empty,
        };
    }
    Plan::text(StatusCode::NOT_FOUND, &head.method)
}
