//! Where the static table (RFC 7541 Appendix A) has the names of a response's fields.

use http::header::{self, HeaderName};

/// The first entry with this name. `None`: there is none, or it is of requests only.
pub fn index_of(name: &HeaderName) -> Option<usize> {
    let index = match *name {
        header::ACCEPT_RANGES => 18,
        header::ACCESS_CONTROL_ALLOW_ORIGIN => 20,
        header::AGE => 21,
        header::ALLOW => 22,
        header::CACHE_CONTROL => 24,
        header::CONTENT_DISPOSITION => 25,
        header::CONTENT_ENCODING => 26,
        header::CONTENT_LANGUAGE => 27,
        header::CONTENT_LENGTH => 28,
        header::CONTENT_LOCATION => 29,
        header::CONTENT_RANGE => 30,
        header::CONTENT_TYPE => 31,
        header::DATE => 33,
        header::ETAG => 34,
        header::EXPIRES => 36,
        header::LAST_MODIFIED => 44,
        header::LINK => 45,
        header::LOCATION => 46,
        header::PROXY_AUTHENTICATE => 48,
        header::REFRESH => 52,
        header::RETRY_AFTER => 53,
        header::SERVER => 54,
        header::SET_COOKIE => 55,
        header::STRICT_TRANSPORT_SECURITY => 56,
        header::VARY => 59,
        header::VIA => 60,
        header::WWW_AUTHENTICATE => 61,
        _ => return None,
    };
    Some(index)
}

/// Whether its values are seldom the same twice. They would only push others out of the table.
pub fn is_unlike_the_last(name: &HeaderName) -> bool {
    matches!(
        *name,
        header::AGE
            | header::CONTENT_LENGTH
            | header::CONTENT_RANGE
            | header::ETAG
            | header::LOCATION
            | header::SET_COOKIE
    )
}
