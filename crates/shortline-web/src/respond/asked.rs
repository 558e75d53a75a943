//! How a file or a backend is asked for: what of a request's head it gets, and which target.

use std::sync::LazyLock;

use http::request::Parts;
use http::{HeaderMap, Method, Uri};

use crate::compress::Compress;
use crate::files::RequestHead;
use crate::place::Spot;

/// The target as the client sent it.
pub fn sent_target<'a>(spot: &'a Spot, head: &'a Parts) -> &'a str {
    let target = spot.sent(head).path_and_query();
    target.map_or("/", |target| target.as_str())
}

/// Another target, with the query of the present one if it has none.
pub fn with_query(target: &str, uri: &Uri) -> Uri {
    let query = uri.query().filter(|_| !target.contains('?'));
    let target = query.map_or_else(|| target.to_owned(), |query| format!("{target}?{query}"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = target.parse().ok();
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

/// The head of a request, for a file at another target.
pub fn with_target<'a>(head: &'a Parts, target: &'a str, compress: Compress) -> RequestHead<'a> {
    RequestHead {
        method: &head.method,
        target,
        headers: &head.headers,
        compress: compress.files,
    }
}

/// How a page is asked for: whatever the client says about the file that it asked for is not about this.
pub fn page_head<'a>(method: &Method, target: &'a str) -> RequestHead<'a> {
    static NONE: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);
    RequestHead {
        method: match *method {
            Method::HEAD => &Method::HEAD,
            _ => &Method::GET,
        },
        target,
        headers: &NONE,
        compress: false,
    }
}
