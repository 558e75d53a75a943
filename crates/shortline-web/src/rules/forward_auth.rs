//! Another server decides who may ask, request by request (Traefik's ForwardAuth, Caddy's `forward_auth`, nginx's `auth_request`).
//!
//! It gets `GET` with the chosen fields of the request, without its body, and what the request is:
//!
//! | field | |
//! |---|---|
//! | `X-Forwarded-Method`, `-Uri` | the method, and the target as the client sent it |
//! | `X-Forwarded-Host`, `-Proto`, `-For`, `Forwarded`, `X-Client-Cert-*` | as backends get them |
//!
//! | its answer | the request |
//! |---|---|
//! | 2xx | goes on, with the named fields of the answer; what the client says in fields of these names, in any spelling, is dropped. The client gets the named cookies of it, in the place of a backend's of these names |
//! | any other | is answered by it: status, fields (`Set-Cookie`, `Location`) and body |
//! | none, none in time, or one that is too long | gets 502, 503 or 504 |
//!
//! So whoever is not let in never is. A request whose path can be read in two ways is refused before: the two servers might read it
//! differently. An answer's body is held whole, in memory, until the response is a job of the link.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, SET_COOKIE};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Method, Request, Response, StatusCode, Uri};
use shortline_tls::ClientIdentity;

use super::fields::remove_alike;
use super::pattern::Pattern;
use crate::files::{Plan, PlanBody};
use crate::identity::Identity;
use crate::place::{Answer, AnswerKind};
use crate::proxy::fetch::{Bounds, fetch};
use crate::proxy::head::{self, Forwarding};
use crate::proxy::upstream::Upstream;
use crate::proxy::{Addressee, Caller, ProxyError, Trail, UpstreamOptions};
use crate::shared_fields::SharedFields;

const X_FORWARDED_METHOD: HeaderName = HeaderName::from_static("x-forwarded-method");
const X_FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
/// What the log calls it.
const LABEL: &str = "forward-auth";

/// The server that decides, and what it is told.
#[derive(Clone, Debug, PartialEq)]
pub struct ForwardAuthOptions {
    /// The server.
    pub upstream: UpstreamOptions,
    /// What is asked for there.
    pub target: PathAndQuery,
    /// How it is called there.
    pub host: HeaderValue,
    /// The fields of the request that it gets.
    pub sent: Vec<HeaderName>,
    /// The fields of its answer that a backend gets.
    pub copied: Vec<HeaderName>,
    /// The names of cookies of its answer that the client gets.
    pub cookies: Vec<Pattern>,
    /// Bytes of its answer's body.
    pub answer_bytes_max: usize,
    /// Time for a connection, for the head of its answer, and for the body.
    pub time_max: Duration,
}

/// Who may ask, by another server.
#[derive(Clone)]
pub struct ForwardAuth {
    options: Arc<ForwardAuthOptions>,
    /// Nobody is let in until it is open.
    upstream: Option<Arc<Upstream>>,
}

/// What the server says of a request that goes on.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// Fields for its backend.
    pub fields: HeaderMap,
    /// Cookies for its client: values of `Set-Cookie`.
    pub cookies: Vec<HeaderValue>,
}

/// What is asked about.
pub struct About<'a> {
    /// Whose request it is.
    pub caller: Caller,
    /// The client's address, as a trusted proxy names it.
    pub client: IpAddr,
    /// The address at the other end of its connection.
    pub peer: IpAddr,
    /// Whether that has TLS.
    pub secure: bool,
    /// Who the client is, by the certificate that the site wanted.
    pub certificate: Option<&'a ClientIdentity>,
    /// Which request it is.
    pub identity: Option<&'a Identity>,
    /// Its head.
    pub head: &'a Parts,
    /// Its target as the client sent it.
    pub sent: &'a Uri,
}

impl ForwardAuth {
    /// One whose server is not open yet.
    pub fn new(options: ForwardAuthOptions) -> Self {
        Self {
            options: Arc::new(options),
            upstream: None,
        }
    }

    /// The server.
    pub fn options(&self) -> &UpstreamOptions {
        &self.options.upstream
    }

    /// Takes the server, once it is open.
    pub fn set_upstream(&mut self, upstream: Arc<Upstream>) {
        self.upstream = Some(upstream);
    }

    /// The server, if it is open.
    pub fn upstream(&self) -> Option<&Arc<Upstream>> {
        self.upstream.as_ref()
    }

    /// The fields of its answer that a backend gets.
    pub fn copied(&self) -> &[HeaderName] {
        &self.options.copied
    }

    /// Decides about a request. Returns what is for its backend and for its client.
    ///
    /// # Errors
    /// The answer to whoever may not.
    pub async fn ask(&self, about: &About<'_>) -> Result<Said, Answer> {
        let method = &about.head.method;
        let refused = |error: &ProxyError| Answer::new(error.plan(method), AnswerKind::Refusal);
        head::refuse_ambiguous(about.head).map_err(|error| refused(&error.into()))?;
        let Some(upstream) = &self.upstream else {
            return Err(refused(&ProxyError::NoneUp));
        };
        let addressee = Addressee {
            label: LABEL,
            upstream,
        };
        let bounds = Bounds {
            bytes_max: self.options.answer_bytes_max,
            time_max: self.options.time_max,
        };
        let mut trail = Trail::begin(about.identity.cloned());
        let request = self.request(about);
        match fetch(upstream, about.caller, request, bounds, &mut trail).await {
            Ok(answer) if answer.status().is_success() => Ok(self.said(answer.headers())),
            Ok(answer) => {
                trail.log_passed_on(addressee, answer.status());
                Err(Answer::new(passed_on(answer, method), AnswerKind::Wanted))
            }
            Err(error) => {
                trail.log_failed(addressee, &error);
                Err(refused(&error))
            }
        }
    }

    /// Gives the backend what the server says, and drops what the client says in its place.
    pub fn tell(&self, said: &HeaderMap, headers: &mut HeaderMap) {
        for name in self.copied() {
            remove_alike(headers, name);
            for value in said.get_all(name) {
                headers.append(name, value.clone());
            }
        }
    }

    fn request(&self, about: &About<'_>) -> Request<()> {
        let head = about.head;
        let trust = self.options.upstream.trust_forwarded;
        let mut headers = HeaderMap::with_capacity(16);
        let forwarded = head::FORWARDED;
        let forwarded = forwarded.iter().filter(|_| trust);
        for name in self.options.sent.iter().chain(forwarded) {
            for value in head.headers.get_all(name) {
                headers.append(name, value.clone());
            }
        }
        head::join_cookies(&mut headers);
        let host = head::host(&head.uri, &head.headers);
        let forwarding = Forwarding {
            // With trust the proxy's own fields name the client, and here is the proxy.
            peer: if trust { about.peer } else { about.client },
            secure: about.secure,
            trust,
            certificate: about.certificate,
            last: None,
        };
        head::forward(&mut headers, &host, &forwarding);
        headers.insert(HOST, self.options.host.clone());
        let target = about.sent.path_and_query();
        let target = target.map_or("*", |target| target.as_str());
        for (name, text) in [
            (X_FORWARDED_METHOD, head.method.as_str()),
            (X_FORWARDED_URI, target),
        ] {
            match HeaderValue::from_str(text) {
                Ok(value) => headers.insert(name, value),
                Err(_) => headers.remove(name),
            };
        }
        if let Some(identity) = about.identity {
            identity.tell(&mut headers);
        }
        let mut request = Request::new(());
        *request.uri_mut() = Uri::from(self.options.target.clone());
        *request.headers_mut() = headers;
        request
    }

    fn said(&self, headers: &HeaderMap) -> Said {
        let mut said = Said::default();
        for name in self.copied() {
            for value in headers.get_all(name) {
                said.fields.append(name, value.clone());
            }
        }
        let wanted = &self.options.cookies;
        let is_wanted = |value: &&HeaderValue| {
            let name = cookie_name(value);
            name.is_some_and(|name| wanted.iter().any(|pattern| pattern.matches(name)))
        };
        let cookies = headers.get_all(SET_COOKIE).iter().filter(is_wanted);
        said.cookies = cookies.cloned().collect();
        said
    }
}

impl Said {
    /// Gives the client the cookies, in the place of those of the same names.
    pub fn set_cookies(&self, headers: &mut SharedFields) {
        if self.cookies.is_empty() {
            return;
        }
        let ours: Vec<_> = self.cookies.iter().filter_map(cookie_name).collect();
        let is_other =
            |value: &&HeaderValue| cookie_name(value).is_none_or(|name| !ours.contains(&name));
        let others = headers.get_all(SET_COOKIE).iter().filter(is_other);
        let all: Vec<_> = others.chain(&self.cookies).cloned().collect();
        let headers = headers.change();
        headers.remove(SET_COOKIE);
        for cookie in all {
            headers.append(SET_COOKIE, cookie);
        }
    }
}

/// The name in a value of `Set-Cookie` (RFC 6265, 5.2).
fn cookie_name(value: &HeaderValue) -> Option<&str> {
    let pair = value.as_bytes().split(|byte| *byte == b';').next()?;
    let name = pair.split(|byte| *byte == b'=').next()?;
    str::from_utf8(name).ok().map(str::trim)
}

/// The server's answer as the client gets it.
fn passed_on(answer: Response<Bytes>, method: &Method) -> Plan {
    let (parts, body) = answer.into_parts();
    let mut headers = parts.headers;
    head::strip(&mut headers);
    headers.remove(CONTENT_LENGTH);
    let has_body = ![StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&parts.status);
    if has_body {
        headers.insert(CONTENT_LENGTH, body.len().into());
    }
    Plan {
        status: parts.status,
        headers: headers.into(),
        body: match has_body {
            true => PlanBody::of_bytes(method, body),
            false => PlanBody::Empty,
        },
    }
}

impl PartialEq for ForwardAuth {
    fn eq(&self, other: &Self) -> bool {
        self.options == other.options
    }
}

impl fmt::Debug for ForwardAuth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.options.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn auth() -> ForwardAuth {
        let name = HeaderName::from_static;
        ForwardAuth::new(ForwardAuthOptions {
            upstream: UpstreamOptions::default(),
            target: PathAndQuery::from_static("/check"),
            host: HeaderValue::from_static("auth.internal:4180"),
            sent: vec![name("cookie"), name("authorization")],
            copied: vec![name("x-user"), name("x-groups")],
            cookies: vec!["session*".parse().unwrap(), "exact".parse().unwrap()],
            answer_bytes_max: 1000,
            time_max: Duration::from_secs(1),
        })
    }

    fn about<'a>(head: &'a Parts, sent: &'a Uri) -> About<'a> {
        let ends = |port| std::net::SocketAddr::from(([192, 0, 2, 1], port));
        About {
            caller: Caller {
                worker: 0,
                client: 0,
                ends: crate::proxy_header::Ends {
                    client: ends(1),
                    proxy: ends(2),
                },
            },
            client: "198.51.100.7".parse().unwrap(),
            peer: "192.0.2.1".parse().unwrap(),
            secure: true,
            certificate: None,
            identity: None,
            head,
            sent,
        }
    }

    fn head(fields: &[(&'static str, &'static str)]) -> Parts {
        let mut request = Request::post("/changed").header("host", "app.example");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn the_server_is_told_what_is_asked_for_and_the_chosen_fields() {
        let head = head(&[
            ("cookie", "a=b"),
            ("cookie", "c=d"),
            ("x-secret", "1"),
            ("x-forwarded-for", "10.0.0.1"),
            ("x-forwarded-uri", "/public"),
        ]);
        let sent = Uri::from_static("/as/sent?x=1");
        let (asked, ()) = auth().request(&about(&head, &sent)).into_parts();
        assert_eq!((asked.method, asked.uri.path()), (Method::GET, "/check"));
        for (name, value) in [
            ("host", "auth.internal:4180"),
            ("cookie", "a=b; c=d"),
            ("x-forwarded-for", "198.51.100.7"),
            ("x-forwarded-host", "app.example"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-method", "POST"),
            ("x-forwarded-uri", "/as/sent?x=1"),
        ] {
            assert_eq!(asked.headers[name], value, "{name}");
            assert_eq!(asked.headers.get_all(name).iter().count(), 1, "{name}");
        }
        assert!(!asked.headers.contains_key("x-secret"));
    }

    #[test]
    fn what_the_client_says_in_the_servers_place_is_dropped() {
        let auth = auth();
        let mut answered = HeaderMap::new();
        answered.insert("x-user", HeaderValue::from_static("bob"));
        answered.insert("x-other", HeaderValue::from_static("kept back"));
        let said = auth.said(&answered);
        let mut headers = head(&[
            ("x-user", "admin"),
            ("x_user", "admin"),
            ("x_groups", "admins"),
            ("x-groups", "admins"),
        ])
        .headers;
        auth.tell(&said.fields, &mut headers);
        assert_eq!(headers.len(), 2, "{headers:?}");
        assert_eq!(headers["x-user"], "bob");
    }

    #[test]
    fn the_client_gets_the_named_cookies_in_the_place_of_a_backends() {
        let set = |cookies: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for cookie in cookies {
                headers.append(SET_COOKIE, HeaderValue::from_static(cookie));
            }
            headers
        };
        let said = auth().said(&set(&[
            "session=1; Path=/",
            "session_1 = 2",
            "exact=3",
            "exacter=4",
            "other=session=5",
            "; session=6",
        ]));
        let old = ["exact=old; Secure", "own=1", "session_1=old", "a"];
        let mut headers = set(&old).into();
        said.set_cookies(&mut headers);
        let sent: Vec<_> = headers.get_all(SET_COOKIE).iter().collect();
        assert_eq!(
            sent,
            [
                "own=1",
                "a",
                "session=1; Path=/",
                "session_1 = 2",
                "exact=3"
            ]
        );
        let mut untouched = set(&["session=1", "session=2"]).into();
        Said::default().set_cookies(&mut untouched);
        assert_eq!(untouched.get_all(SET_COOKIE).iter().count(), 2);
    }

    #[tokio::test]
    async fn before_its_server_is_open_nobody_may_ask() {
        let head = head(&[]);
        let refused = auth().ask(&about(&head, &head.uri)).await.unwrap_err();
        assert_eq!(refused.plan.status, 503);
        assert_eq!(refused.kind, AnswerKind::Refusal);
    }
}
