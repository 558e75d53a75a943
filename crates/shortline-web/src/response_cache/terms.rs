//! Which responses may be kept, and on which terms. How long one is fresh is the library's to say (http-cache-semantics).
//!
//! The library compares directives as they are written, reads only the first value of a field, and adds to an `Age` however large. So it
//! is given fields that have been checked and written as it reads them. What it has no word for is decided here.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, StatusCode, Uri};
use http_cache_semantics::{
    AfterResponse, BeforeRequest, CacheOptions, CachePolicy, RequestLike, ResponseLike,
};

use super::ResponseCacheOptions;

/// The most fields that a response may vary by.
const VARY_NAMES_MAX: usize = 16;
/// The greatest age that is believed, in seconds: ten years.
const AGE_S_MAX: u64 = 10 * 365 * 86_400;
/// The statuses that are fresh for the configured time if they say nothing.
const BY_DEFAULT: [StatusCode; 3] = [
    StatusCode::OK,
    StatusCode::MOVED_PERMANENTLY,
    StatusCode::PERMANENT_REDIRECT,
];
/// Fields that say how long a response is fresh.
const OF_FRESHNESS: [HeaderName; 3] = [header::CACHE_CONTROL, header::EXPIRES, header::PRAGMA];
/// Fields that the library looks at, besides `Cache-Control` and `Age`.
const READ: [HeaderName; 5] = [
    header::EXPIRES,
    header::PRAGMA,
    header::DATE,
    header::ETAG,
    header::LAST_MODIFIED,
];

/// The terms on which a response is kept.
#[derive(Clone, Debug)]
pub struct Terms {
    policy: CachePolicy,
    /// When the response came, or was confirmed last.
    received: SystemTime,
    /// The age up to which it is fresh.
    fresh_until_age: Duration,
    /// It says that all may have it.
    is_public: bool,
    stale_while_revalidate: Duration,
    stale_if_error: Duration,
}

impl Terms {
    /// The terms of a response that has come now, and the fields that it varies by. `None`: it may not be kept.
    pub fn of(
        status: StatusCode,
        headers: &HeaderMap,
        options: &ResponseCacheOptions,
        now: SystemTime,
    ) -> Option<(Self, Arc<[HeaderName]>)> {
        if headers.contains_key(header::SET_COOKIE) {
            return None;
        }
        let names = varies_by(headers)?;
        let fields = readable(status, headers, options.default_time)?;
        let text = fields.get(header::CACHE_CONTROL);
        let text = text.map_or(Ok(""), HeaderValue::to_str).ok()?;
        let directives = Directives(text);
        if directives.has("private") || directives.has("no-cache") || directives.has("no-store") {
            return None;
        }
        let answered = Answered(status, fields.clone());
        let policy = CachePolicy::new_options(&Anybody, &answered, now, of_the_library());
        if !policy.is_storable() || policy.time_to_live(now).is_zero() {
            return None;
        }
        let terms = Self {
            received: now,
            fresh_until_age: policy.time_to_live(now) + policy.age(now),
            is_public: directives.has("public") || directives.has("s-maxage"),
            stale_while_revalidate: directives
                .stale("stale-while-revalidate", options.stale_while_revalidate),
            stale_if_error: directives.stale("stale-if-error", options.stale_if_error),
            policy,
        };
        Some((terms, names))
    }

    /// When the response came, or was confirmed last.
    pub fn received(&self) -> SystemTime {
        self.received
    }

    /// Whether it is fresh.
    pub fn is_fresh(&self, now: SystemTime) -> bool {
        !self.policy.is_stale(now)
    }

    /// How long it is fresh yet.
    pub fn fresh_for(&self, now: SystemTime) -> Duration {
        self.policy.time_to_live(now)
    }

    /// Its age.
    pub fn age(&self, now: SystemTime) -> Duration {
        self.policy.age(now)
    }

    /// Whether requests with cookies may have it. If it varies by cookies, it is the one for theirs.
    pub fn is_for_cookies(&self, varies_by: &[HeaderName]) -> bool {
        self.is_public || varies_by.contains(&header::COOKIE)
    }

    /// Whether a stale one may be given while it is fetched anew.
    pub fn may_revalidate_later(&self, now: SystemTime) -> bool {
        self.stale_for(now) < self.stale_while_revalidate
    }

    /// Whether a stale one may be given because the backend fails.
    pub fn may_stand_in(&self, now: SystemTime) -> bool {
        self.stale_for(now) < self.stale_if_error
    }

    /// For how long it has been stale.
    pub fn stale_for(&self, now: SystemTime) -> Duration {
        self.policy.age(now).saturating_sub(self.fresh_until_age)
    }

    /// Makes a request ask whether it still holds.
    pub fn ask_whether_it_holds(&self, headers: &mut HeaderMap, now: SystemTime) {
        if let BeforeRequest::Stale { request, .. } = self.policy.before_request(&Anybody, now) {
            for name in [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE] {
                if let Some(value) = request.headers.get(&name) {
                    headers.insert(name, value.clone());
                }
            }
        }
    }

    /// Whether a 304 with these fields is about it.
    pub fn is_confirmed_by(&self, headers: &HeaderMap, now: SystemTime) -> bool {
        let answered = Answered(StatusCode::NOT_MODIFIED, headers.clone());
        let after = self.policy.after_response(&Anybody, &answered, now);
        matches!(after, AfterResponse::NotModified(..))
    }
}

fn of_the_library() -> CacheOptions {
    CacheOptions {
        // Nothing is guessed.
        cache_heuristic: 0.0,
        immutable_min_time_to_live: Duration::ZERO,
        ..CacheOptions::default()
    }
}

/// The fields that a response varies by, in order. `None`: by something else, too, or by too many.
fn varies_by(headers: &HeaderMap) -> Option<Arc<[HeaderName]>> {
    let mut names = Vec::new();
    for value in headers.get_all(header::VARY) {
        for name in value.to_str().ok()?.split(',').map(str::trim) {
            match name {
                "" => {}
                "*" => return None,
                name => names.push(HeaderName::from_bytes(name.as_bytes()).ok()?),
            }
        }
    }
    names.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    names.dedup();
    (names.len() <= VARY_NAMES_MAX).then(|| names.into())
}

/// The fields as the library reads them. `None`: something about freshness cannot be read, so it is not kept.
fn readable(status: StatusCode, headers: &HeaderMap, default_time: Duration) -> Option<HeaderMap> {
    let mut fields = HeaderMap::new();
    for name in READ {
        let mut values = headers.get_all(&name).iter();
        if let Some(value) = values.next() {
            if values.next().is_some() || value.to_str().is_err() {
                return None;
            }
            fields.insert(name, value.clone());
        }
    }
    let mut directives = Vec::new();
    for value in headers.get_all(header::CACHE_CONTROL) {
        directives.push(value.to_str().ok()?.to_ascii_lowercase());
    }
    let says_nothing = OF_FRESHNESS.iter().all(|name| !headers.contains_key(name));
    if says_nothing && !default_time.is_zero() && BY_DEFAULT.contains(&status) {
        directives.push(format!("max-age={}", default_time.as_secs().max(1)));
    }
    if !directives.is_empty() {
        let value = HeaderValue::try_from(directives.join(", ")).ok()?;
        fields.insert(header::CACHE_CONTROL, value);
    }
    let mut ages = headers.get_all(header::AGE).iter();
    if let Some(age) = ages.next() {
        let age: u64 = age.to_str().ok()?.trim().parse().ok()?;
        if age > AGE_S_MAX || ages.next().is_some() {
            return None;
        }
        fields.insert(header::AGE, age.into());
    }
    Some(fields)
}

/// `Cache-Control` in small letters.
struct Directives<'a>(&'a str);

impl Directives<'_> {
    fn all(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.0
            .split(',')
            .map(|directive| match directive.split_once('=') {
                Some((name, value)) => (name.trim(), Some(value.trim().trim_matches('"'))),
                None => (directive.trim(), None),
            })
    }

    fn has(&self, wanted: &str) -> bool {
        self.all().any(|(name, _)| name == wanted)
    }

    /// For how long a stale response may be given: what it says, or else what is configured, unless it forbids that.
    fn stale(&self, wanted: &str, configured: Duration) -> Duration {
        let seconds = |value: Option<&str>| value?.parse::<u32>().ok();
        let said = self.all().find(|(name, _)| *name == wanted);
        let forbidden = ["must-revalidate", "proxy-revalidate"];
        match said {
            _ if forbidden.iter().any(|name| self.has(name)) => Duration::ZERO,
            Some((_, value)) => Duration::from_secs(seconds(value).unwrap_or(0).into()),
            // `s-maxage` forbids it as well, unless the response itself says otherwise (RFC 9111, 5.2.2.10).
            None if self.has("s-maxage") => Duration::ZERO,
            None => configured,
        }
    }
}

/// A request by nobody in particular: what a response varies by is compared elsewhere.
struct Anybody;

impl RequestLike for Anybody {
    fn uri(&self) -> Uri {
        Uri::default()
    }

    fn is_same_uri(&self, _other: &Uri) -> bool {
        true
    }

    fn method(&self) -> &Method {
        &Method::GET
    }

    fn headers(&self) -> &HeaderMap {
        static NONE: std::sync::LazyLock<HeaderMap> = std::sync::LazyLock::new(HeaderMap::new);
        &NONE
    }
}

/// A response as the library is given it.
struct Answered(StatusCode, HeaderMap);

impl ResponseLike for Answered {
    fn status(&self) -> StatusCode {
        self.0
    }

    fn headers(&self) -> &HeaderMap {
        &self.1
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn now() -> SystemTime {
        NOW + Duration::from_secs(1_800_000_000)
    }

    fn after(seconds: u64) -> SystemTime {
        now() + Duration::from_secs(seconds)
    }

    fn fields(fields: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        };
        fields.iter().map(pair).collect()
    }

    fn terms(status: u16, given: &[(&str, &str)]) -> Option<Terms> {
        let status = StatusCode::from_u16(status).unwrap();
        let options = ResponseCacheOptions {
            stale_if_error: Duration::from_secs(60),
            ..ResponseCacheOptions::default()
        };
        let kept = Terms::of(status, &fields(given), &options, now());
        kept.map(|(terms, _)| terms)
    }

    #[test]
    fn what_is_private_or_says_nothing_is_not_kept() {
        let fresh = ("cache-control", "max-age=60");
        for given in [
            &[][..],
            &[("last-modified", "Thu, 01 Jan 2015 00:00:00 GMT")],
            &[fresh, ("set-cookie", "a=1")],
            &[
                ("cache-control", "public, max-age=60"),
                ("set-cookie", "a=1"),
            ],
            &[("cache-control", "private, max-age=60")],
            &[("cache-control", "Private, Max-Age=60")],
            &[("cache-control", "max-age=60, private=\"x-a\"")],
            &[fresh, ("cache-control", "PRIVATE")],
            &[("cache-control", "No-Store, max-age=60")],
            &[("cache-control", "no-cache, max-age=60")],
            &[("cache-control", "max-age=0")],
            &[("cache-control", "max-age=x")],
            &[fresh, ("vary", "*")],
            &[fresh, ("vary", "accept, *")],
            &[fresh, ("age", "60")],
            &[fresh, ("age", "18446744073709551615")],
            &[fresh, ("age", "-1")],
            &[("expires", "0")],
            &[("expires", "Thu, 01 Jan 2015 00:00:00 GMT")],
        ] {
            assert!(terms(200, given).is_none(), "{given:?}");
        }
        for status in [206, 304, 403, 500, 503] {
            assert!(terms(status, &[fresh]).is_none(), "{status}");
        }
        let mut odd = fields(&[fresh]);
        let value = HeaderValue::from_bytes(b"private\xff").unwrap();
        odd.append(header::CACHE_CONTROL, value);
        let options = ResponseCacheOptions::default();
        assert!(Terms::of(StatusCode::OK, &odd, &options, now()).is_none());
    }

    #[test]
    fn a_response_is_fresh_for_as_long_as_it_says() {
        for (given, seconds) in [
            (&[("cache-control", "max-age=60")][..], 60),
            (&[("cache-control", "Max-Age=60"), ("age", "20")], 40),
            (&[("cache-control", "max-age=60, S-MaxAge=5")], 5),
            (
                &[
                    ("date", "Fri, 15 Jan 2027 08:00:00 GMT"),
                    ("expires", "Fri, 15 Jan 2027 08:01:00 GMT"),
                ],
                60,
            ),
        ] {
            let terms = terms(200, given).unwrap();
            assert!(terms.is_fresh(after(seconds - 1)), "{given:?}");
            assert!(!terms.is_fresh(after(seconds)), "{given:?}");
        }
        assert!(terms(404, &[("cache-control", "max-age=60")]).is_some());
    }

    #[test]
    fn a_configured_time_is_for_what_says_nothing() {
        let options = ResponseCacheOptions {
            default_time: Duration::from_secs(10),
            ..ResponseCacheOptions::default()
        };
        let kept = |status, given: &[(&str, &str)]| {
            Terms::of(status, &fields(given), &options, now()).is_some()
        };
        assert!(kept(StatusCode::OK, &[]));
        assert!(!kept(StatusCode::NOT_FOUND, &[]));
        for given in [
            ("cache-control", "private"),
            ("cache-control", "no-transform"),
            ("pragma", "no-cache"),
            ("expires", "0"),
            ("set-cookie", "a=1"),
        ] {
            assert!(!kept(StatusCode::OK, &[given]), "{given:?}");
        }
    }

    #[test]
    fn a_stale_response_stands_in_as_long_as_it_may() {
        let given = "max-age=10, stale-while-revalidate=5, stale-if-error=20";
        let told = terms(200, &[("cache-control", given)]).unwrap();
        assert!(told.may_revalidate_later(after(14)) && !told.may_revalidate_later(after(15)));
        assert!(told.may_stand_in(after(29)) && !told.may_stand_in(after(30)));
        let configured = terms(200, &[("cache-control", "max-age=10")]).unwrap();
        assert!(configured.may_stand_in(after(69)) && !configured.may_stand_in(after(70)));
        assert!(!configured.may_revalidate_later(after(10)));
        for forbidding in [
            "max-age=10, must-revalidate",
            "s-maxage=10",
            "max-age=10, proxy-revalidate",
        ] {
            let terms = terms(200, &[("cache-control", forbidding)]);
            assert!(
                terms.is_none_or(|terms| !terms.may_stand_in(after(10))),
                "{forbidding}"
            );
        }
    }

    #[test]
    fn requests_with_cookies_get_what_is_for_all_or_for_their_cookie() {
        let kept = |control| terms(200, &[("cache-control", control)]).unwrap();
        assert!(!kept("max-age=60").is_for_cookies(&[]));
        assert!(kept("max-age=60").is_for_cookies(&[header::COOKIE]));
        assert!(kept("public, max-age=60").is_for_cookies(&[]));
        assert!(kept("s-maxage=60").is_for_cookies(&[]));
    }

    #[test]
    fn a_response_is_asked_for_by_its_validators() {
        let given = [("cache-control", "max-age=10"), ("etag", "\"a\"")];
        let kept = terms(200, &given).unwrap();
        let mut headers = HeaderMap::new();
        kept.ask_whether_it_holds(&mut headers, after(20));
        assert_eq!(headers["if-none-match"], "\"a\"");
        assert!(kept.is_confirmed_by(&fields(&[("etag", "\"a\"")]), after(20)));
        assert!(!kept.is_confirmed_by(&fields(&[("etag", "\"b\"")]), after(20)));
    }

    proptest! {
        #[test]
        fn no_fields_harm(
            given in prop::collection::vec(
                (prop::sample::select(vec![
                    "cache-control", "age", "expires", "date", "vary", "etag", "last-modified", "pragma",
                ]), "[ -~]{0,40}"),
                0..6,
            ),
            seconds: u32,
        ) {
            let given: Vec<(&str, &str)> = given.iter().map(|(name, value)| (*name, &**value)).collect();
            if let Some(terms) = terms(200, &given) {
                let later = after(seconds.into());
                terms.is_fresh(later);
                terms.may_stand_in(later);
                terms.ask_whether_it_holds(&mut HeaderMap::new(), later);
                terms.is_confirmed_by(&fields(&given), later);
            }
        }
    }
}
