//! From a request's head to a plan: method, target, file, coding, conditions, ranges, in that
//! order (RFC 9110 13.2.1, 14.2).
//!
//! | request | answer |
//! |---|---|
//! | a method but GET, HEAD, OPTIONS | 405 with Allow |
//! | OPTIONS of any well-formed target, or of `*` | 204 with Allow |
//! | a directory without its slash | 301 to the path with it, relative to the host, query kept |
//! | a directory without index file | the listing, or 404 |
//! | no coding acceptable, not even none | 406 |
//! | ranges | 206 or 416, GET only; several not of a coded sibling, where 200 is clearer |
//! | no descriptors or memory left | 503 with Retry-After |
//!
//! The common case (GET of a file in memory) is a map look-up and a copy of ready headers.

use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, HeaderValue, LAST_MODIFIED, LOCATION, RANGE, RETRY_AFTER, VARY,
};
use http::{HeaderMap, Method, StatusCode};

use super::cache::{BELIEVED_NS, EntryCache};
use super::conditional::{Verdict, evaluate, if_range_holds};
use super::encoding::Coding;
use super::entry::{Entry, Kind, Stamp, Variant};
use super::file::OpenFile;
use super::open::{OpenError, Opened, Root, Wait};
use super::paths::{SitePath, Target, TargetError, parse_target};
use super::plan::{Plan, PlanBody, RequestHead};
use super::range::{Piece, Ranges, parse_range};
use super::{SiteError, SiteOptions, listing, multipart};

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

/// What a [`super::Site`] and its clones share.
#[derive(Debug)]
pub(super) struct Responder {
    root: Root,
    options: SiteOptions,
    cache: EntryCache,
    opened_at: Instant,
}

/// What a path names.
enum Found {
    Resource(Arc<Entry>),
    /// The path lacks its final slash.
    Directory,
    Listing(String),
}

/// See [`super::Site::respond`].
pub(super) async fn respond(responder: &Arc<Responder>, head: &RequestHead<'_>) -> Plan {
    if let Some(plan) = responder.respond_now(head) {
        return plan;
    }
    let looking = Arc::clone(responder);
    let target = head.target.to_owned();
    let found = tokio::task::spawn_blocking(move || match parse_target(&target) {
        Ok(Target::Resource { path, .. }) => looking.find(&path, Wait::Allowed),
        // Whatever names no path was answered without waiting.
        Ok(Target::Asterisk) | Err(_) => Err(OpenError::Broken),
    });
    // The task fails only if the runtime is shutting down.
    let found = found.await.unwrap_or(Err(OpenError::Broken));
    match accept(head) {
        Ok((path, query)) => plan_found(found, head, &path, query),
        Err(plan) => *plan,
    }
}

impl Responder {
    pub(super) fn open(root: &Path, options: SiteOptions) -> Result<Self, SiteError> {
        let is_plain = |name: &str| !name.contains(['/', '\0']) && !["", ".", ".."].contains(&name);
        if let Some(name) = options.index.iter().find(|name| !is_plain(name)) {
            return Err(SiteError::Index { name: name.clone() });
        }
        let cache = EntryCache::new(&options);
        Ok(Self {
            root: Root::open(root)?,
            options,
            cache,
            opened_at: Instant::now(),
        })
    }

    /// See [`super::Site::respond_now`].
    pub(super) fn respond_now(&self, head: &RequestHead<'_>) -> Option<Plan> {
        let (path, query) = match accept(head) {
            Ok(accepted) => accepted,
            Err(plan) => return Some(*plan),
        };
        match self.find(&path, Wait::Never) {
            Err(OpenError::WouldBlock) => None,
            found => Some(plan_found(found, head, &path, query)),
        }
    }

    fn find(&self, path: &SitePath<'_>, wait: Wait) -> Result<Found, OpenError> {
        let now_ns = u64::try_from(self.opened_at.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.find_at(now_ns, path, wait)
    }

    /// `now_ns` counts from when the site was opened.
    fn find_at(&self, now_ns: u64, path: &SitePath<'_>, wait: Wait) -> Result<Found, OpenError> {
        let known = self.cache.get(path.as_str());
        if let Some(entry) = known
            .as_ref()
            .filter(|entry| entry.is_fresh(now_ns, BELIEVED_NS))
        {
            return Ok(Found::Resource(Arc::clone(entry)));
        }
        let found = self.look_up(path, known.as_deref(), now_ns, wait);
        match (&found, known) {
            (Ok(Found::Resource(entry)), known) => {
                if !known.is_some_and(|known| known.confirm(entry, now_ns)) {
                    self.cache.insert(path.as_str(), entry);
                }
            }
            (Err(OpenError::WouldBlock), _) | (_, None) => {}
            (_, Some(_)) => self.cache.remove(path.as_str()),
        }
        found
    }

    fn look_up(
        &self,
        path: &SitePath<'_>,
        known: Option<&Entry>,
        now_ns: u64,
        wait: Wait,
    ) -> Result<Found, OpenError> {
        if path.is_directory() {
            return self.look_up_directory(path, known, now_ns, wait);
        }
        match self.root.get(path.relative(), wait)? {
            Opened::Directory(_) => Ok(Found::Directory),
            file => Ok(Found::Resource(self.entry(
                path.relative(),
                file,
                known,
                now_ns,
                wait,
            )?)),
        }
    }

    fn look_up_directory(
        &self,
        path: &SitePath<'_>,
        known: Option<&Entry>,
        now_ns: u64,
        wait: Wait,
    ) -> Result<Found, OpenError> {
        for index in &self.options.index {
            let name = format!("{}/{index}", path.relative());
            match self.root.get(&name, wait) {
                Ok(Opened::Directory(_)) | Err(OpenError::NotFound) => {}
                Ok(file) => {
                    return Ok(Found::Resource(
                        self.entry(&name, file, known, now_ns, wait)?,
                    ));
                }
                Err(error) => return Err(error),
            }
        }
        if !self.options.listing {
            return Err(OpenError::NotFound);
        }
        if wait == Wait::Never {
            return Err(OpenError::WouldBlock);
        }
        match self.root.get(path.relative(), wait)? {
            Opened::Directory(directory) => {
                let entries_max = self.options.listing_entries_max;
                listing::page(&self.root, directory, path, entries_max).map(Found::Listing)
            }
            Opened::File { .. } => Err(OpenError::NotFound),
        }
    }

    /// What there is to know about an open file, taking over from `known` what has not changed.
    fn entry(
        &self,
        name: &str,
        file: Opened,
        known: Option<&Entry>,
        now_ns: u64,
        wait: Wait,
    ) -> Result<Arc<Entry>, OpenError> {
        let Opened::File { fd, stat } = file else {
            return Err(OpenError::NotFound);
        };
        let now = SystemTime::now();
        let stamp = Stamp::new(&stat);
        let siblings = self.siblings(name, &stamp, wait)?;
        let varies = !siblings.is_empty();
        let variant = |fd, stamp: Stamp, coding, before: Option<&Arc<Variant>>| match before {
            Some(before) if before.holds_for(stamp, varies) => before.released(),
            _ => {
                let keep = stamp.len <= self.options.cache_file_bytes_max;
                let kind = Kind {
                    name,
                    coding,
                    varies,
                };
                Arc::new(Variant::new(
                    OpenFile::new(fd, stamp.len, keep),
                    stamp,
                    kind,
                    now,
                ))
            }
        };
        let coded = siblings.into_iter().map(|(coding, fd, stamp)| {
            let before = known.and_then(|known| known.sibling(coding));
            (coding, variant(fd, stamp, Some(coding), before))
        });
        let coded = coded.collect();
        let identity = variant(fd, stamp, None, known.map(|known| &known.identity));
        Ok(Arc::new(Entry::new(identity, coded, now_ns)))
    }

    /// The precompressed siblings that are not older than their original. One that cannot be
    /// opened for a reason of its own does not exist for us.
    fn siblings(
        &self,
        name: &str,
        original: &Stamp,
        wait: Wait,
    ) -> Result<Vec<(Coding, std::os::fd::OwnedFd, Stamp)>, OpenError> {
        let mut siblings = Vec::new();
        if !self.options.precompressed {
            return Ok(siblings);
        }
        for coding in Coding::ALL {
            match self.root.get(&format!("{name}{}", coding.suffix()), wait) {
                Ok(Opened::File { fd, stat }) => {
                    let stamp = Stamp::new(&stat);
                    if !stamp.is_older_than(original) {
                        siblings.push((coding, fd, stamp));
                    }
                }
                Err(error @ (OpenError::WouldBlock | OpenError::Exhausted)) => return Err(error),
                Ok(Opened::Directory(_)) | Err(_) => {}
            }
        }
        Ok(siblings)
    }
}

/// The path and query asked for, or the answer to a request that asks for none.
fn accept<'a>(head: &RequestHead<'a>) -> Result<(SitePath<'a>, Option<&'a str>), Box<Plan>> {
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
                headers: HeaderMap::new(),
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
    path: &SitePath<'_>,
    query: Option<&str>,
) -> Plan {
    match found {
        Ok(Found::Resource(entry)) => plan_resource(&entry, head),
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

/// The canonical path has no empty segment, so the new location cannot name another host.
fn plan_redirect(method: &Method, path: &SitePath<'_>, query: Option<&str>) -> Plan {
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

fn plan_resource(entry: &Entry, head: &RequestHead<'_>) -> Plan {
    let Some(variant) = entry.select(head.headers) else {
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

/// What of the file is asked for. Two Range fields are no Range field.
fn ranges(variant: &Variant, head: &RequestHead<'_>) -> Ranges {
    let mut fields = head.headers.get_all(RANGE).iter();
    let (Some(field), None) = (fields.next(), fields.next()) else {
        return Ranges::Whole;
    };
    if *head.method != Method::GET
        || !if_range_holds(head.headers, &variant.validators, SystemTime::now())
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
        headers,
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
    headers.insert(CONTENT_RANGE, range.expect("invariant: plain ASCII"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(piece.len()));
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
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    Plan {
        status: StatusCode::PARTIAL_CONTENT,
        headers,
        body,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn content(responder: &Responder, now_ns: u64) -> Result<Bytes, OpenError> {
        let Ok(Target::Resource { path, .. }) = parse_target("/file") else {
            panic!("a path")
        };
        let Found::Resource(entry) = responder.find_at(now_ns, &path, Wait::Allowed)? else {
            panic!("a file")
        };
        let file = &entry.identity.file;
        Ok(file
            .read_blocking(0, usize::try_from(file.len()).unwrap())
            .unwrap())
    }

    #[test]
    fn a_small_file_is_believed_for_a_second_and_no_longer() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let responder = Responder::open(dir.path(), SiteOptions::default()).unwrap();
        std::fs::write(&file, "one").unwrap();
        assert_eq!(content(&responder, 0).unwrap(), "one");
        // As long and, on a coarse clock, of the same time.
        std::fs::write(&file, "two").unwrap();
        assert_eq!(content(&responder, BELIEVED_NS).unwrap(), "one");
        assert_eq!(content(&responder, BELIEVED_NS + 1).unwrap(), "two");
        std::fs::remove_file(&file).unwrap();
        assert_eq!(content(&responder, 2 * BELIEVED_NS).unwrap(), "two");
        assert_eq!(
            content(&responder, 3 * BELIEVED_NS).unwrap_err(),
            OpenError::NotFound
        );
        // Gone from the cache at once, not only once it is checked again.
        assert_eq!(
            content(&responder, 3 * BELIEVED_NS).unwrap_err(),
            OpenError::NotFound
        );
    }
}
