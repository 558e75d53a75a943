//! What is asked, what comes back, and what of it must be alike.
//!
//! Compared are the status, the body, and all header fields except:
//!
//! - those of one connection or one moment: `connection`, `keep-alive`, `transfer-encoding`, `date`, `server`, `alt-svc`;
//! - the text of `etag`, which each server makes in its own way: both must have one, and must know it again;
//! - `content-length` where one server has chunks instead;
//! - validators of anything but a success;
//! - the port in `location`, because a test has no port 443; a path is taken for the URL that it stands for;
//! - `vary` where the body has no encoding: a server may say that it could have had one;
//! - what a server itself says of a redirect or an error, in its own words: the body and what describes it;
//! - the status of a redirect from HTTP to HTTPS, which is 308 here and 301 or 308 there;
//! - `charset=utf-8` of text, which ours always says;
//! - what ours says in addition: [`ADDED`].

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// Fields of one connection or one moment.
const OF_THE_MOMENT: &[&str] = &[
    "connection",
    "keep-alive",
    "transfer-encoding",
    "date",
    "server",
    "alt-svc",
];
/// Fields of the text that a server itself makes.
const OF_THE_TEXT: &[&str] = &["content-type", "content-length"];
/// Validators. Those of an error's page are of no use.
const VALIDATORS: &[&str] = &["etag", "last-modified"];
/// Fields that ours adds: a type is no guess, ranges are to be had, a listing is not kept and runs no scripts.
const ADDED: &[&str] = &[
    "accept-ranges",
    "cache-control",
    "content-security-policy",
    "last-modified",
    "x-content-type-options",
];

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The host that it names.
    pub host: &'static str,
    /// Whether it goes over TLS.
    pub is_secure: bool,
    method: &'static str,
    target: &'static str,
    fields: Vec<(&'static str, String)>,
    /// An error has a page of the site's own.
    has_own_page: bool,
    body: Vec<u8>,
    /// Each server lists a folder in its own way.
    is_listing: bool,
    /// It is sent again with the validator that came.
    pub is_revalidated: bool,
}

impl Request {
    fn new(host: &'static str, target: &'static str, is_secure: bool) -> Self {
        Self {
            host,
            is_secure,
            method: "GET",
            target,
            fields: Vec::new(),
            has_own_page: false,
            body: Vec::new(),
            is_listing: false,
            is_revalidated: false,
        }
    }

    /// GET over HTTP.
    pub fn plain(host: &'static str, target: &'static str) -> Self {
        Self::new(host, target, false)
    }

    /// GET over HTTPS.
    pub fn secure(host: &'static str, target: &'static str) -> Self {
        Self::new(host, target, true)
    }

    /// With another method.
    pub fn method(self, method: &'static str) -> Self {
        Self { method, ..self }
    }

    /// With a field.
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.fields.push((name, value.to_owned()));
        self
    }

    /// An error's or a redirect's page is the site's own, and is compared.
    pub fn own_page(self) -> Self {
        Self {
            has_own_page: true,
            ..self
        }
    }

    /// POST of a form.
    pub fn form(mut self, body: &[u8]) -> Self {
        self.fields.push(("Content-Length", body.len().to_string()));
        let form = "application/x-www-form-urlencoded".to_owned();
        self.fields.push(("Content-Type", form));
        Self {
            method: "POST",
            body: body.to_vec(),
            ..self
        }
    }

    /// The body is not compared.
    pub fn listing(self) -> Self {
        Self {
            is_listing: true,
            ..self
        }
    }

    /// Sent again with the validator that came.
    pub fn revalidated(self) -> Self {
        Self {
            is_revalidated: true,
            ..self
        }
    }

    /// As it is sent.
    pub fn bytes(&self) -> Vec<u8> {
        let mut text = format!(
            "{} {} HTTP/1.1\r\nHost: {}\r\n",
            self.method, self.target, self.host
        );
        for (name, value) in &self.fields {
            text += &format!("{name}: {value}\r\n");
        }
        text += "Connection: close\r\n\r\n";
        [text.as_bytes(), &self.body].concat()
    }

    /// The URL that a redirect leads to, without a port.
    fn resolved(&self, location: &str) -> String {
        let scheme = if self.is_secure { "https" } else { "http" };
        let Some((scheme, rest)) = location.split_once("://") else {
            return format!("{scheme}://{}{location}", self.host);
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = authority.split(':').next().unwrap();
        format!("{scheme}://{host}{path}")
    }

    /// Whether the server's own words are the body.
    fn is_answered_in_own_words(&self, status: u16) -> bool {
        self.is_listing || status >= 300 && !self.has_own_page
    }
}

impl Display for Request {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{} {scheme}://{}{}", self.method, self.host, self.target)?;
        self.fields
            .iter()
            .try_for_each(|(name, value)| write!(f, " [{name}: {value}]"))
    }
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The header fields, names in small letters. Those that come more than once are joined.
    pub fields: BTreeMap<String, String>,
    /// The body, without chunks.
    pub body: Vec<u8>,
}

impl Answer {
    /// Reads what came over a connection until its end.
    pub fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let end =
            end.unwrap_or_else(|| panic!("no response: {:?}", String::from_utf8_lossy(bytes)));
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.lines();
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let mut fields = BTreeMap::<String, String>::new();
        for line in lines {
            let (name, value) = line.split_once(':').unwrap();
            let value = value.trim().to_owned();
            let known = fields.entry(name.to_ascii_lowercase());
            known
                .and_modify(|before| *before += &format!(", {value}"))
                .or_insert(value);
        }
        let body = &bytes[end + 4..];
        let is_chunked = fields
            .get("transfer-encoding")
            .is_some_and(|coding| coding == "chunked");
        Self {
            status,
            body: if is_chunked {
                unchunked(body)
            } else {
                body.to_vec()
            },
            fields,
        }
    }

    /// The validator.
    pub fn etag(&self) -> Option<&str> {
        self.fields.get("etag").map(String::as_str)
    }

    /// What must be alike.
    fn comparable(&self, request: &Request) -> Self {
        let mut alike = self.clone();
        let in_own_words = request.is_answered_in_own_words(self.status);
        let is_left_out = |name: &str| {
            in_own_words && OF_THE_TEXT.contains(&name)
                || self.status >= 300 && VALIDATORS.contains(&name)
        };
        let is_encoded = self.fields.contains_key("content-encoding");
        alike.fields.retain(|name, _| {
            let name = name.as_str();
            let is_empty_promise = name == "vary" && !is_encoded;
            !OF_THE_MOMENT.contains(&name) && !is_left_out(name) && !is_empty_promise
        });
        if in_own_words {
            alike.body.clear();
        }
        for (name, value) in &mut alike.fields {
            match name.as_str() {
                "etag" => "some".clone_into(value),
                "location" => *value = request.resolved(value),
                "vary" => value.make_ascii_lowercase(),
                "content-type" => *value = value.replace("; charset=utf-8", ""),
                _ => {}
            }
        }
        let leads_to_https = |field: &String| field.starts_with("https:");
        if !request.is_secure && alike.fields.get("location").is_some_and(leads_to_https) {
            alike.status = 308;
        }
        alike
    }
}

fn unchunked(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = chunks.windows(2).position(|pair| pair == b"\r\n").unwrap();
        let size = std::str::from_utf8(&chunks[..end]).unwrap();
        let size = usize::from_str_radix(size.split(';').next().unwrap(), 16).unwrap();
        if size == 0 {
            return body;
        }
        body.extend(&chunks[end + 2..end + 2 + size]);
        chunks = &chunks[end + 2 + size + 2..];
    }
}

/// What two answers to a request do not have alike.
pub fn differences(request: &Request, theirs: &Answer, ours: &Answer) -> Vec<String> {
    let (theirs, ours) = (theirs.comparable(request), ours.comparable(request));
    let mut told = Vec::new();
    if theirs.status != ours.status {
        told.push(format!(
            "status {} there, {} here",
            theirs.status, ours.status
        ));
    }
    for name in theirs.fields.keys().chain(ours.fields.keys()) {
        let (there, here) = (theirs.fields.get(name), ours.fields.get(name));
        let line = format!("{name}: {there:?} there, {here:?} here");
        let is_framing = name == "content-length" && (there.is_none() || here.is_none());
        let is_added = is_framing || there.is_none() && ADDED.contains(&name.as_str());
        if there != here && !is_added && !told.contains(&line) {
            told.push(line);
        }
    }
    if theirs.body != ours.body {
        let (there, here) = (theirs.body.len(), ours.body.len());
        told.push(format!("another body: {there} bytes there, {here} here"));
    }
    told
}
