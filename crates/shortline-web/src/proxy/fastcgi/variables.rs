//! The variables of a request (RFC 3875, 4.1), and those that PHP programs expect besides.
//!
//! A client's field `Name` becomes `HTTP_NAME`. Fields whose names have other marks than `-` are left out, because `X_A` and `X-A`
//! would be one variable. So is `Proxy`: many programs take `HTTP_PROXY` for the proxy of their own requests (httpoxy).
//! What the route's configuration sets goes before all that the client says.
//!
//! `HTTPS` is `on` if the client's connection has TLS, or if a proxy says so that the route trusts.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::Version;
use http::header;
use http::request::Parts;

use super::super::head::host_name;
use super::record::pair;

/// What a program is told besides the request's head.
#[derive(Clone, Debug)]
pub struct Call {
    /// The folder of the programs, as the backend names it.
    pub root: Arc<str>,
    /// The program's path below it, from a slash.
    pub script: String,
    /// What follows the program in the request's path: nothing, or a path.
    pub path_info: String,
    /// The target as the client sent it.
    pub target: String,
    /// The version that the client speaks.
    pub version: Version,
    /// The client, as a trusted proxy names it.
    pub client: IpAddr,
    /// The other end of the client's connection.
    pub peer: SocketAddr,
    /// Our end of it.
    pub local: SocketAddr,
    /// What the configuration sets.
    pub set: Arc<[(String, String)]>,
}

/// The variables of a request as FastCGI sends them. A request without a [`Call`] is a health check's.
pub fn encode(head: &Parts) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(2048);
    for (name, value) in variables(head) {
        pair(&mut encoded, name.as_bytes(), &value);
    }
    encoded
}

type Variable<'a> = (Cow<'a, str>, Cow<'a, [u8]>);

/// The variables of a request.
pub fn variables(head: &Parts) -> Vec<Variable<'_>> {
    let call = head.extensions.get::<Call>();
    let set = call.map_or(&[][..], |call| &call.set);
    let mut all: Vec<Variable<'_>> = Vec::with_capacity(32 + head.headers.len());
    all.extend(
        set.iter()
            .map(|(name, value)| (name.as_str().into(), value.as_bytes().into())),
    );
    let mut of_the_request = fixed(head);
    match call {
        Some(call) => of_the_request.extend(of_call(call)),
        None => of_the_request.extend([
            text("SCRIPT_NAME", head.uri.path()),
            text("SCRIPT_FILENAME", head.uri.path()),
        ]),
    }
    of_the_request.extend(fields(head));
    let is_set = |name: &str| set.iter().any(|(set, _)| set == name);
    all.extend(of_the_request.into_iter().filter(|(name, _)| !is_set(name)));
    all
}

fn text<'a>(name: &'static str, value: impl Into<Cow<'a, str>>) -> Variable<'a> {
    let value = match value.into() {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    };
    (name.into(), value)
}

fn fixed(head: &Parts) -> Vec<Variable<'_>> {
    let field = |name| head.headers.get(name).map(|value| value.as_bytes());
    // Ours, or that of a proxy that the route trusts.
    let is_secure =
        field("x-forwarded-proto").is_some_and(|proto| proto.eq_ignore_ascii_case(b"https"));
    let mut all = vec![
        text("GATEWAY_INTERFACE", "CGI/1.1"),
        text(
            "SERVER_SOFTWARE",
            concat!("shortline/", env!("CARGO_PKG_VERSION")),
        ),
        text("REQUEST_METHOD", head.method.as_str()),
        text("REQUEST_SCHEME", if is_secure { "https" } else { "http" }),
        text("QUERY_STRING", head.uri.query().unwrap_or("")),
        text("SERVER_NAME", host_name(head).unwrap_or("")),
        // PHP's command for the web refuses to run without it.
        text("REDIRECT_STATUS", "200"),
        (
            "CONTENT_TYPE".into(),
            field(header::CONTENT_TYPE.as_str()).unwrap_or(b"").into(),
        ),
        (
            "CONTENT_LENGTH".into(),
            field(header::CONTENT_LENGTH.as_str()).unwrap_or(b"").into(),
        ),
    ];
    if is_secure {
        all.push(text("HTTPS", "on"));
    }
    all
}

fn of_call(call: &Call) -> Vec<Variable<'_>> {
    let Call {
        root,
        script,
        path_info,
        ..
    } = call;
    let mut all = vec![
        text("DOCUMENT_ROOT", &**root),
        text("DOCUMENT_URI", format!("{script}{path_info}")),
        text(
            "SCRIPT_FILENAME",
            format!("{}{script}", root.trim_end_matches('/')),
        ),
        text("SCRIPT_NAME", &**script),
        text("REQUEST_URI", &*call.target),
        text("SERVER_PROTOCOL", protocol(call.version)),
        text("REMOTE_ADDR", call.client.to_string()),
        text("SERVER_ADDR", call.local.ip().to_canonical().to_string()),
        text("SERVER_PORT", call.local.port().to_string()),
    ];
    if !path_info.is_empty() {
        all.push(text("PATH_INFO", &**path_info));
        let translated = format!("{}{path_info}", root.trim_end_matches('/'));
        all.push(text("PATH_TRANSLATED", translated));
    }
    // The port belongs to the address of the peer alone.
    if call.client == call.peer.ip().to_canonical() {
        all.push(text("REMOTE_PORT", call.peer.port().to_string()));
    }
    all
}

fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}

fn fields(head: &Parts) -> Vec<Variable<'_>> {
    let mut all = Vec::with_capacity(head.headers.len());
    for name in head.headers.keys() {
        let text = name.as_str();
        let is_plain = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let is_other = [
            header::CONTENT_TYPE,
            header::CONTENT_LENGTH,
            header::TRANSFER_ENCODING,
        ]
        .contains(name);
        if !is_plain || is_other || text == "proxy" {
            continue;
        }
        let variable = format!("HTTP_{}", text.to_ascii_uppercase().replace('-', "_"));
        let between: &[u8] = if *name == header::COOKIE {
            b"; "
        } else {
            b", "
        };
        let mut values = head
            .headers
            .get_all(name)
            .iter()
            .map(|value| value.as_bytes());
        let first = values.next().unwrap_or_default();
        let value = match values.next() {
            None => Cow::Borrowed(first),
            Some(second) => {
                let all: Vec<&[u8]> = [first, second].into_iter().chain(values).collect();
                Cow::Owned(all.join(between))
            }
        };
        all.push((variable.into(), value));
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn call() -> Call {
        Call {
            root: "/srv/www/".into(),
            script: "/blog/index.php".into(),
            path_info: "/a b".into(),
            target: "/blog/index.php/a%20b?x=1".into(),
            version: Version::HTTP_2,
            client: "192.0.2.7".parse().unwrap(),
            peer: "10.0.0.1:4711".parse().unwrap(),
            local: "10.0.0.2:443".parse().unwrap(),
            set: Arc::new([
                ("APP".to_owned(), "1".to_owned()),
                ("HTTP_X_SET".to_owned(), "ours".to_owned()),
            ]),
        }
    }

    fn told(fields: &[(&str, &str)], call: Call) -> impl Fn(&str) -> Option<String> + use<> {
        let mut request = http::Request::builder().uri("/blog/index.php/a%20b?x=1");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let head = request.extension(call).body(()).unwrap().into_parts().0;
        let all: Vec<(String, Vec<u8>)> = variables(&head)
            .into_iter()
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        move |wanted| {
            let mut found = all.iter().filter(|(name, _)| name == wanted);
            let value = found
                .next()
                .map(|(_, value)| String::from_utf8(value.clone()).unwrap());
            assert!(found.next().is_none(), "{wanted} is there twice");
            value
        }
    }

    #[test]
    fn a_program_is_told_where_it_is_and_what_is_asked() {
        let told = told(
            &[
                ("host", "shop.example:8443"),
                ("x-forwarded-proto", "https"),
            ],
            call(),
        );
        for (name, value) in [
            ("SCRIPT_FILENAME", "/srv/www/blog/index.php"),
            ("SCRIPT_NAME", "/blog/index.php"),
            ("PATH_INFO", "/a b"),
            ("PATH_TRANSLATED", "/srv/www/a b"),
            ("DOCUMENT_ROOT", "/srv/www/"),
            ("DOCUMENT_URI", "/blog/index.php/a b"),
            ("REQUEST_URI", "/blog/index.php/a%20b?x=1"),
            ("QUERY_STRING", "x=1"),
            ("SERVER_NAME", "shop.example"),
            ("SERVER_PORT", "443"),
            ("SERVER_PROTOCOL", "HTTP/2.0"),
            ("REMOTE_ADDR", "192.0.2.7"),
            ("HTTPS", "on"),
            ("HTTP_HOST", "shop.example:8443"),
            ("CONTENT_LENGTH", ""),
            ("APP", "1"),
        ] {
            assert_eq!(told(name).as_deref(), Some(value), "{name}");
        }
        // Nobody knows the client's port behind a proxy.
        assert_eq!(told("REMOTE_PORT"), None);
    }

    #[test]
    fn a_client_cannot_set_what_is_not_its_own() {
        let fields = [
            ("proxy", "evil:80"),
            ("x_forwarded_for", "10.0.0.9"),
            ("x.y", "1"),
            ("x-set", "theirs"),
            ("content-length", "3"),
            ("content-type", "text/x"),
            ("x-two", "a"),
            ("x-two", "b"),
            ("cookie", "a=1"),
            ("cookie", "b=2"),
        ];
        let told = told(&fields, call());
        for name in [
            "HTTP_PROXY",
            "HTTP_X_FORWARDED_FOR",
            "HTTP_X_Y",
            "HTTP_CONTENT_LENGTH",
            "HTTPS",
        ] {
            assert_eq!(told(name), None, "{name}");
        }
        assert_eq!(told("HTTP_X_SET").as_deref(), Some("ours"));
        assert_eq!(told("CONTENT_LENGTH").as_deref(), Some("3"));
        assert_eq!(told("HTTP_X_TWO").as_deref(), Some("a, b"));
        assert_eq!(told("HTTP_COOKIE").as_deref(), Some("a=1; b=2"));
    }
}
