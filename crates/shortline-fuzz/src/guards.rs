//! What rules about who may ask read: files of users, origins, credentials.

use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use shortline_web::rules::auth::credentials;
use shortline_web::rules::auth::users::Users;
use shortline_web::rules::cors::{AllowedOrigin, Origin};

/// A file of users. Nobody may be known before a check, and an error must name its line.
pub fn users(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match Users::parse(text) {
        Ok(users) => {
            assert!(users.len() <= text.lines().count());
            for line in text.lines() {
                assert!(users.known(line.as_bytes()).is_none());
            }
        }
        Err(error) => {
            crate::assert_one_line(&error);
            assert!(error.to_string().starts_with("line "), "{error}");
        }
    }
}

/// An origin. Its host is that of no other URL, and one that is allowed is read again as the same.
pub fn origin(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Some(origin) = Origin::parse(text) {
        let port = origin.port.map(|port| format!(":{port}"));
        assert!(text.starts_with(&format!("{}://{}", origin.scheme, origin.host)));
        assert!(!origin.host.contains(['/', '@', '?', '#', '\\', ' ']));
        assert!(port.is_none() || text.contains(':'));
    }
    if let Ok(allowed) = text.parse::<AllowedOrigin>() {
        let again = allowed.to_string().parse::<AllowedOrigin>();
        assert_eq!(again.as_ref(), Ok(&allowed));
        let itself = allowed.to_string();
        let is_wild = itself.contains('*');
        let origin = Origin::parse(&itself);
        assert!(is_wild || origin.is_some_and(|origin| allowed.allows(&origin)));
    }
}

/// The field `Authorization`. What is read of it has a colon, and is not longer than the field.
pub fn authorization(bytes: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(bytes) else {
        return;
    };
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, value);
    if let Some(read) = credentials(&headers) {
        assert!(read.contains(&b':') && read.len() < bytes.len());
        assert!(bytes[..6].eq_ignore_ascii_case(b"basic "));
    }
}
