//! From a request's head to a plan: method, target, file, coding, conditions, ranges, in that order
//! (RFC 9110 13.2.1, 14.2).
//!
//! | request | answer |
//! |---|---|
//! | any method except GET, HEAD, OPTIONS | 405 with Allow |
//! | OPTIONS of any well-formed target, or of `*` | 204 with Allow |
//! | a directory without its slash | 301 to the path with it, relative to the host, query kept |
//! | a directory without index file | the listing, or 404 |
//! | no coding acceptable, not even none | 406 |
//! | a file that gains by compression, for a client that takes a coding of which there is no sibling | what is made of it (`made`) |
//! | ranges | 206 or 416, GET only; a coded sibling gets 200 instead of several ranges, which is clearer |
//! | no descriptors or memory left | 503 with Retry-After |
//!
//! The common case (GET of a file in memory) is a map lookup and a copy of ready headers.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, HeaderValue, LAST_MODIFIED, LOCATION, RANGE, RETRY_AFTER, VARY,
};
use http::{HeaderMap, Method, StatusCode};
use shortline_base::clock;
use shortline_base::world::run_blocking;

use super::conditional::{Verdict, evaluate, if_range_holds};
use super::encoding::Coding;
use super::entry::{Entry, Variant};
use super::lookup::{Found, Lookup};
use super::multipart;
use super::open::{OpenError, Wait};
use super::paths::{FilePath, Target, TargetError, parse_target};
use super::plan::{Plan, PlanBody, RequestHead};
use super::range::{Piece, Ranges, parse_range};
use crate::shared_fields::SharedFields;

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

/// See [`super::Files::respond`].
pub(super) async fn respond(lookup: &Arc<Lookup>, head: &RequestHead<'_>, now_ns: u64) -> Plan {
    let (path, query) = match accept(head) {
        Ok(accepted) => accepted,
        Err(plan) => return *plan,
    };
    let found = match lookup.find(now_ns, &path, Wait::Never) {
        Err(OpenError::WouldBlock) => find_patiently(lookup, head, now_ns).await,
        found => found,
    };
    let Ok(Found::Resource(entry)) = &found else {
        return plan_found(found, head, &path, query);
    };
    match select(lookup, entry, head, &path) {
        Selected::Unmade(coding) => {
            if let Some(plan) = plan_unmade(&entry.identity, coding, head) {
                return plan;
            }
            let made = lookup.make(&path, coding, &entry.identity).await;
            plan_selected(entry.or_made(made.as_deref(), head.headers), head)
        }
        Selected::Variant(variant) => plan_selected(variant.as_ref(), head),
    }
}

/// Looks a file up on a thread that may wait for a disk.
async fn find_patiently(
    lookup: &Arc<Lookup>,
    head: &RequestHead<'_>,
    now_ns: u64,
) -> Result<Found, OpenError> {
    let looking = Arc::clone(lookup);
    let target = head.target.to_owned();
    let found = run_blocking(move || match parse_target(&target) {
        Ok(Target::Resource { path, .. }) => looking.find(now_ns, &path, Wait::Allowed),
        // A target that names no path was answered without waiting.
        Ok(Target::Asterisk) | Err(_) => Err(OpenError::Broken),
    });
    // The task fails only if the runtime is shutting down.
    found.await.unwrap_or(Err(OpenError::Broken))
}

/// See [`super::Files::respond_now`].
pub(super) fn respond_now(lookup: &Lookup, head: &RequestHead<'_>, now_ns: u64) -> Option<Plan> {
    let (path, query) = match accept(head) {
        Ok(accepted) => accepted,
        Err(plan) => return Some(*plan),
    };
    match lookup.find(now_ns, &path, Wait::Never) {
        Err(OpenError::WouldBlock) => None,
        Ok(Found::Resource(entry)) => match select(lookup, &entry, head, &path) {
            Selected::Variant(variant) => Some(plan_selected(variant.as_ref(), head)),
            Selected::Unmade(coding) => plan_unmade(&entry.identity, coding, head).or_else(|| {
                // Where the file would have to wait, it leaves as it is.
                let waits = lookup.would_make(&path, coding, &entry.identity);
                (!waits).then(|| plan_selected(entry.select(head.headers), head))
            }),
        },
        found => Some(plan_found(found, head, &path, query)),
    }
}

/// What a request gets of a resource.
enum Selected {
    /// This, or nothing that the client accepts.
    Variant(Option<Arc<Variant>>),
    /// What would have to be made.
    Unmade(Coding),
}

fn select(lookup: &Lookup, entry: &Entry, head: &RequestHead<'_>, path: &FilePath<'_>) -> Selected {
    let coding = match head.compress {
        true => entry.to_make(head.headers),
        false => None,
    };
    let Some(coding) = coding else {
        return Selected::Variant(entry.select(head.headers).cloned());
    };
    match lookup.made(path, coding, &entry.identity) {
        Some(made) => Selected::Variant(entry.or_made(Some(&made), head.headers).cloned()),
        None => Selected::Unmade(coding),
    }
}

/// The answer that needs nothing made: the client has what would be.
fn plan_unmade(original: &Variant, coding: Coding, head: &RequestHead<'_>) -> Option<Plan> {
    let validators = original.validators_coded(coding);
    match evaluate(head.headers, &validators) {
        Verdict::NotModified => {
            let mut plan = plan_not_modified(original);
            plan.headers.change().insert(ETAG, validators.etag);
            Some(plan)
        }
        Verdict::Proceed | Verdict::Failed => None,
    }
}

/// The path and query of a request, or the answer to a request that names none.
fn accept<'a>(head: &RequestHead<'a>) -> Result<(FilePath<'a>, Option<&'a str>), Box<Plan>> {
    let method = head.method;
    let is_options = *method == Method::OPTIONS;
    if !is_options && *method != Method::GET && *method != Method::HEAD {
        let plan = Plan::text(StatusCode::METHOD_NOT_ALLOWED, method).with(ALLOW, METHODS);
        return Err(Box::new(plan));
    }
    match parse_target(head.target) {
        Ok(_) if is_options => Err(Box::new(
            Plan {
                status: StatusCode::NO_CONTENT,
                headers: SharedFields::default(),
                body: PlanBody::Empty,
            }
            .with(ALLOW, METHODS),
        )),
        Ok(Target::Resource { path, query }) => Ok((path, query)),
        Ok(Target::Asterisk) | Err(TargetError::Malformed(_)) => {
            Err(Box::new(Plan::text(StatusCode::BAD_REQUEST, method)))
        }
        Err(TargetError::Hidden(_)) => Err(Box::new(Plan::text(StatusCode::NOT_FOUND, method))),
    }
}

fn plan_found(
    found: Result<Found, OpenError>,
    head: &RequestHead<'_>,
    path: &FilePath<'_>,
    query: Option<&str>,
) -> Plan {
    match found {
        Ok(Found::Resource(entry)) => plan_selected(entry.select(head.headers), head),
        Ok(Found::Directory) => plan_redirect(head.method, path, query),
        Ok(Found::Listing(page)) => plan_listing(head.method, page),
        Err(error) => {
            let plan = Plan::text(error.status(), head.method);
            if plan.status == StatusCode::SERVICE_UNAVAILABLE {
                plan.with(RETRY_AFTER, HeaderValue::from_static("1"))
            } else {
                plan
            }
        }
    }
}

/// The new location cannot name another host, because a canonical path has no empty segment.
fn plan_redirect(method: &Method, path: &FilePath<'_>, query: Option<&str>) -> Plan {
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let location = HeaderValue::try_from(format!("{}/{query}", path.encoded()));
    let location = location.expect("invariant: an accepted target has no control characters");
    Plan::text(StatusCode::MOVED_PERMANENTLY, method).with(LOCATION, location)
}

fn plan_listing(method: &Method, page: String) -> Plan {
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'");
    Plan::page(
        StatusCode::OK,
        method,
        "text/html; charset=utf-8",
        Bytes::from(page),
    )
    .with(CONTENT_SECURITY_POLICY, policy)
    .with(CACHE_CONTROL, HeaderValue::from_static("no-cache"))
}

fn plan_selected(variant: Option<&Arc<Variant>>, head: &RequestHead<'_>) -> Plan {
    let Some(variant) = variant else {
        let vary = HeaderValue::from_name(ACCEPT_ENCODING);
        return Plan::text(StatusCode::NOT_ACCEPTABLE, head.method).with(VARY, vary);
    };
    match evaluate(head.headers, &variant.validators) {
        Verdict::Proceed => {}
        Verdict::NotModified => return plan_not_modified(variant),
        Verdict::Failed => return Plan::text(StatusCode::PRECONDITION_FAILED, head.method),
    }
    match ranges(variant, head) {
        Ranges::Whole => plan_whole(variant, head.method),
        Ranges::Single(piece) => plan_piece(variant, piece),
        Ranges::Several(pieces) => plan_pieces(variant, &pieces),
        Ranges::Unsatisfiable => {
            let range = HeaderValue::try_from(format!("bytes */{}", variant.file.len()));
            Plan::text(StatusCode::RANGE_NOT_SATISFIABLE, head.method)
                .with(CONTENT_RANGE, range.expect("invariant: plain ASCII"))
        }
    }
}

/// The ranges of the file that are asked for. Two Range fields count as none.
fn ranges(variant: &Variant, head: &RequestHead<'_>) -> Ranges {
    let mut fields = head.headers.get_all(RANGE).iter();
    let (Some(field), None) = (fields.next(), fields.next()) else {
        return Ranges::Whole;
    };
    if *head.method != Method::GET
        || !if_range_holds(head.headers, &variant.validators, clock::date())
    {
        return Ranges::Whole;
    }
    match parse_range(field.as_bytes(), variant.file.len()) {
        Ranges::Several(_) if variant.is_coded => Ranges::Whole,
        ranges => ranges,
    }
}

fn plan_not_modified(variant: &Variant) -> Plan {
    let mut headers = HeaderMap::with_capacity(3);
    for name in [ETAG, LAST_MODIFIED, VARY] {
        if let Some(value) = variant.headers.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    Plan {
        status: StatusCode::NOT_MODIFIED,
        headers: headers.into(),
        body: PlanBody::Empty,
    }
}

fn plan_whole(variant: &Variant, method: &Method) -> Plan {
    let len = variant.file.len();
    let body = if *method == Method::HEAD || len == 0 {
        PlanBody::Empty
    } else {
        PlanBody::Segments(vec![multipart::piece_of(&variant.file, 0, len)])
    };
    Plan {
        status: StatusCode::OK,
        headers: variant.headers.clone(),
        body,
    }
}

fn plan_piece(variant: &Variant, piece: Piece) -> Plan {
    let mut headers = variant.headers.clone();
    let range = HeaderValue::try_from(multipart::content_range(piece, variant.file.len()));
    let changed = headers.change();
    changed.insert(CONTENT_RANGE, range.expect("invariant: plain ASCII"));
    changed.insert(CONTENT_LENGTH, HeaderValue::from(piece.len()));
    let body = vec![multipart::piece_of(&variant.file, piece.first, piece.len())];
    Plan {
        status: StatusCode::PARTIAL_CONTENT,
        headers,
        body: PlanBody::Segments(body),
    }
}

fn plan_pieces(variant: &Variant, pieces: &[Piece]) -> Plan {
    let mut headers = variant.headers.clone();
    let part_type = &variant.headers[CONTENT_TYPE];
    let (segments, content_type) = multipart::segments(&variant.file, part_type, pieces);
    let body = PlanBody::Segments(segments);
    let changed = headers.change();
    changed.insert(CONTENT_TYPE, content_type);
    changed.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    Plan {
        status: StatusCode::PARTIAL_CONTENT,
        headers,
        body,
    }
}
