//! Which requests may be answered by what was kept for others, and the names under which that is.

use http::header::{self, HeaderName};
use http::request::Parts;
use http::{HeaderMap, Method};

/// The longest name. A longer one is not worth its place.
const NAME_BYTES_MAX: usize = 8192;

/// Fields by which some backends choose another target or method than the request has.
const STEERING: [&str; 6] = [
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-url",
    "x-original-uri",
    "x-rewrite-url",
];
/// Fields about the client's URL that a backend is given as they come where the route trusts them.
const FORWARDED: [HeaderName; 5] = [
    header::FORWARDED,
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-port"),
    HeaderName::from_static("x-forwarded-prefix"),
    HeaderName::from_static("x-forwarded-proto"),
];

/// A request that may be answered from a cache.
#[derive(Clone, Debug)]
pub struct Sought {
    /// Its URL as sent, then a line with its target as rules have changed it, if they have.
    name: Box<str>,
    headers: HeaderMap,
    is_personal: bool,
}

/// Set where another server has let a request in, by whatever it was told.
#[derive(Clone, Copy, Debug)]
pub struct LetIn;

impl Sought {
    /// The request with this head, which a client has sent with another target perhaps. `None`: it is for its backend alone.
    /// With `trusts_forwarded` the response may depend on what it says of the client's URL.
    pub fn of(head: &Parts, is_secure: bool, sent: &str, trusts_forwarded: bool) -> Option<Self> {
        let has = |name: HeaderName| head.headers.contains_key(name);
        let is_read = [Method::GET, Method::HEAD].contains(&head.method);
        let is_alone = has(header::AUTHORIZATION)
            || has(header::RANGE)
            || has(header::UPGRADE)
            || has(header::CONTENT_LENGTH)
            || has(header::TRANSFER_ENCODING)
            || STEERING.iter().any(|name| head.headers.contains_key(*name))
            || says_no_store(&head.headers);
        if !is_read || is_alone {
            return None;
        }
        let mut name = name(head, is_secure, sent)?;
        if trusts_forwarded {
            name.push_str(&values(&head.headers, &FORWARDED));
        }
        if name.len() > NAME_BYTES_MAX {
            return None;
        }
        Some(Self {
            name: name.into(),
            headers: head.headers.clone(),
            is_personal: has(header::COOKIE) || head.extensions.get::<LetIn>().is_some(),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether its response may be for this client alone, unless it says `public`: it has a cookie, or was let in.
    pub fn is_personal(&self) -> bool {
        self.is_personal
    }

    /// Its name among responses that vary by these fields: with all their values, which cannot have a line feed.
    pub fn variant(&self, names: &[HeaderName]) -> String {
        format!("{}{}", self.name, values(&self.headers, names))
    }
}

/// All values of some fields, each on a line of its own.
fn values(headers: &HeaderMap, names: &[HeaderName]) -> String {
    let mut text = String::new();
    for name in names {
        text.push('\n');
        text.push_str(name.as_str());
        for value in headers.get_all(name) {
            text.push_str("\n ");
            text.push_str(&value.as_bytes().escape_ascii().to_string());
        }
    }
    text
}

fn says_no_store(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CACHE_CONTROL).iter();
    let mut directives = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    directives.any(|directive| directive.trim_ascii().eq_ignore_ascii_case(b"no-store"))
}

fn name(head: &Parts, is_secure: bool, sent: &str) -> Option<String> {
    let authority = match head.uri.authority() {
        Some(authority) => authority.as_str(),
        None => head.headers.get(header::HOST)?.to_str().ok()?,
    };
    let scheme = if is_secure { "https" } else { "http" };
    let mut name = format!("{scheme}://{}{sent}", authority.to_ascii_lowercase());
    let target = head
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    if target != sent {
        name.push('\n');
        name.push_str(target);
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn head(method: &str, target: &str, fields: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().method(method).uri(target);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn asked(fields: &[(&str, &str)]) -> Option<Sought> {
        let fields = [&[("host", "A.example")], fields].concat();
        Sought::of(&head("GET", "/x?y", &fields), false, "/x?y", false)
    }

    #[test]
    fn what_is_for_one_client_is_not_asked_for() {
        for (name, value) in [
            ("authorization", "Basic eDp5"),
            ("range", "bytes=0-1"),
            ("upgrade", "websocket"),
            ("content-length", "0"),
            ("cache-control", "max-age=0, No-Store"),
            ("x-original-url", "/admin"),
        ] {
            assert!(asked(&[(name, value)]).is_none(), "{name}");
        }
        let post = head("POST", "/", &[("host", "a")]);
        assert!(Sought::of(&post, false, "/", false).is_none());
        assert!(asked(&[("cookie", "a=1")]).unwrap().is_personal());
    }

    #[test]
    fn names_differ_by_all_that_a_response_may_depend_on() {
        let get = |target: &str, host: &str| head("GET", target, &[("host", host)]);
        let name = |head: &Parts, is_secure, sent| {
            Sought::of(head, is_secure, sent, false)
                .unwrap()
                .name()
                .to_owned()
        };
        assert_eq!(name(&get("/x?y", "A:1"), false, "/x?y"), "http://a:1/x?y");
        assert_eq!(name(&get("/x", "a"), true, "/x"), "https://a/x");
        assert_eq!(
            name(&get("/index.php", "a"), true, "/x"),
            "https://a/x\n/index.php"
        );
    }

    #[test]
    fn what_a_trusted_proxy_says_of_the_url_is_a_part_of_the_name() {
        let name = |host, trusts| {
            let fields = [("host", "a"), ("x-forwarded-host", host)];
            let head = head("GET", "/", &fields);
            Sought::of(&head, false, "/", trusts)
                .unwrap()
                .name()
                .to_owned()
        };
        assert_ne!(name("b", true), name("c", true));
        assert_eq!(name("b", false), name("c", false));
    }

    #[test]
    fn variants_differ_by_all_values_of_their_fields() {
        let names = [HeaderName::from_static("x-user"), header::ACCEPT_LANGUAGE];
        let variant = |fields: &[(&str, &str)]| asked(fields).unwrap().variant(&names);
        let all = [
            variant(&[]),
            variant(&[("x-user", "")]),
            variant(&[("x-user", "a")]),
            variant(&[("x-user", "a"), ("x-user", "b")]),
            variant(&[("x-user", "b"), ("x-user", "a")]),
            variant(&[("x-user", "a, b")]),
            variant(&[("accept-language", "a")]),
        ];
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "{all:?}");
        assert_eq!(variant(&[("x-other", "1")]), variant(&[]));
    }
}
