//! Which responses of backends are kept, and who gets them: no client gets what is meant for another (RFC 9111).
//!
//! The input is lines of a request's fields, an empty line, the response's status and lines of its fields. Those that no field can
//! have are left out, as they come from parsers that refuse them.

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Request, StatusCode};
use shortline_base::clock;
use shortline_web::response_cache::{Found, Recorder, ResponseCache, ResponseCacheOptions, Sought};

const FIELDS_MAX: usize = 60;
const TARGET: &str = "/a?b";

/// A request, and the response to it.
pub fn exchange(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (asked, answered) = text.split_once("\n\n").unwrap_or((&text, ""));
    let (status, answered) = answered.split_once('\n').unwrap_or((answered, ""));
    let status = status
        .parse()
        .ok()
        .and_then(|status| StatusCode::from_u16(status).ok());
    let (asked, answered) = (fields(asked), fields(answered));
    let head = head(&asked);
    let Some(sought) = Sought::of(&head, false, TARGET, false) else {
        return;
    };
    assert!(!asked.contains_key(header::AUTHORIZATION) && !asked.contains_key(header::RANGE));
    let cache = ResponseCache::new(ResponseCacheOptions::default());
    let recorder = Recorder::new(&cache, sought.clone(), None);
    let recording = recorder.begin(status.unwrap_or(StatusCode::OK), &answered, None);
    let Some(mut recording) = recording else {
        return;
    };
    hold(&answered);
    assert!(recording.push(&Bytes::from_static(b"body")));
    recording.finish();
    let found = cache.find(&sought, clock::date());
    assert!(matches!(found, Found::Fresh(_) | Found::Stale(_)));
    of_another(&cache, &asked, &answered);
}

/// What is kept may be: nothing in it says otherwise.
fn hold(answered: &HeaderMap) {
    assert!(!answered.contains_key(header::SET_COOKIE));
    for forbids in ["private", "no-store", "no-cache"] {
        assert!(!says(answered, forbids), "{forbids}: {answered:?}");
    }
    // A field's name may have a star, too (RFC 9110, 5.6.2).
    let varies = answered.get_all(header::VARY).iter();
    let mut names = varies.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    assert!(names.all(|name| name.trim_ascii() != b"*"));
}

/// Other requests get it only if they are alike.
fn of_another(cache: &ResponseCache, asked: &HeaderMap, answered: &HeaderMap) {
    let finds = |headers: &HeaderMap| {
        let sought = Sought::of(&head(headers), false, TARGET, false);
        sought.is_some_and(|sought| !matches!(cache.find(&sought, clock::date()), Found::Nothing))
    };
    let names = answered.get_all(header::VARY).iter();
    let names = names.filter_map(|value| value.to_str().ok());
    let names: Vec<HeaderName> = names
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .collect();
    for name in &names {
        let mut other = asked.clone();
        other.append(name, HeaderValue::from_static("another"));
        assert!(!finds(&other), "it varies by {name}");
    }
    let mut other = asked.clone();
    other.insert(header::COOKIE, HeaderValue::from_static("a=another"));
    let is_public = says(answered, "public") || says(answered, "s-maxage");
    assert!(is_public || !finds(&other) || asked.get(header::COOKIE) == other.get(header::COOKIE));
    let mut other = asked.clone();
    other.insert(
        header::AUTHORIZATION,
        HeaderValue::from_static("Basic eDp5"),
    );
    assert!(!finds(&other));
}

/// Whether `Cache-Control` has a directive.
fn says(headers: &HeaderMap, directive: &str) -> bool {
    let values = headers.get_all(header::CACHE_CONTROL).iter();
    let texts = values.map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase());
    let all = texts.collect::<Vec<_>>().join(",");
    let mut names = all
        .split(',')
        .map(|part| part.split('=').next().unwrap_or_default().trim());
    names.any(|name| name == directive)
}

fn head(headers: &HeaderMap) -> Parts {
    let mut request = Request::new(());
    *request.uri_mut() = http::Uri::from_static(TARGET);
    *request.headers_mut() = headers.clone();
    let host = HeaderValue::from_static("a.example");
    request.headers_mut().entry(header::HOST).or_insert(host);
    request.into_parts().0
}

fn fields(text: &str) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for (name, value) in text
        .lines()
        .take(FIELDS_MAX)
        .filter_map(|line| line.split_once(':'))
    {
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_bytes(value.trim().as_bytes());
        if let (Ok(name), Ok(value)) = (name, value) {
            fields.append(name, value);
        }
    }
    fields
}
