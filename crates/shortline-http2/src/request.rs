//! From the fields of a header block to a request's head, or to trailers (RFC 9113 8.1, 8.2, 8.3).

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::uri::{self, Authority, PathAndQuery, Scheme, Uri};
use http::{Method, Request, Version};

use crate::hpack::Field;

/// The fields of a block so far.
#[derive(Default)]
pub struct Fields {
    method: Option<Method>,
    scheme: Option<Scheme>,
    authority: Option<Authority>,
    path: Option<PathAndQuery>,
    regular: HeaderMap,
    /// What `Content-Length` says.
    length: Option<u64>,
    list_bytes: usize,
    is_length_malformed: bool,
    /// A pseudo-header field was among them.
    has_pseudo: bool,
    is_malformed: bool,
    is_too_large: bool,
}

/// Why the fields of a block are no request and no trailers.
pub enum Unsound {
    /// They are malformed: a stream error.
    Malformed,
    /// They are larger than we allow.
    TooLarge,
}

impl Fields {
    /// Adds a field of a list that may have `list_bytes_max`. What is beyond is left out.
    pub fn add(&mut self, field: &Field, bytes: usize, list_bytes_max: usize) {
        self.list_bytes += bytes;
        if self.list_bytes > list_bytes_max {
            self.is_too_large = true;
            return;
        }
        match field {
            Field::Regular(name, value) => self.add_regular(name, value),
            Field::Method(method) => {
                self.pseudo(|fields| fields.method.replace(method.clone()).is_some())
            }
            Field::Scheme(scheme) => {
                self.pseudo(|fields| fields.scheme.replace(scheme.clone()).is_some())
            }
            Field::Authority(authority) => {
                self.pseudo(|fields| fields.authority.replace(authority.clone()).is_some());
            }
            Field::Path(path) => self.pseudo(|fields| fields.path.replace(path.clone()).is_some()),
            Field::Malformed(_) => self.is_malformed = true,
        }
    }

    /// Sets a pseudo-header field: once (8.3), and before all others.
    fn pseudo(&mut self, had: impl FnOnce(&mut Self) -> bool) {
        self.has_pseudo = true;
        self.is_malformed |= !self.regular.is_empty() || had(self);
    }

    fn add_regular(&mut self, name: &HeaderName, value: &HeaderValue) {
        self.is_malformed |= is_of_a_connection(name, value);
        if *name == header::CONTENT_LENGTH {
            let bytes = number(value);
            self.is_length_malformed |=
                bytes.is_none() || self.length.is_some() && self.length != bytes;
            self.length = bytes;
        }
        // It fails for more fields than a map can have, which is more than a list has room for.
        self.is_too_large |= self.regular.try_append(name, value.clone()).is_err();
    }

    /// Whether all of the block may go on.
    ///
    /// # Errors
    /// [`Unsound`]
    pub fn check(&self) -> Result<(), Unsound> {
        if self.is_malformed {
            Err(Unsound::Malformed)
        } else if self.is_too_large {
            Err(Unsound::TooLarge)
        } else {
            Ok(())
        }
    }

    /// The length that a request says its body has. `None`: it says none.
    ///
    /// # Errors
    /// It says no number, or two.
    pub fn content_length(&self) -> Result<Option<u64>, ()> {
        match self.is_length_malformed {
            true => Err(()),
            false => Ok(self.length),
        }
    }

    /// A request's head. `None`: it is malformed.
    pub fn into_head(self) -> Option<Parts> {
        let method = self.method?;
        let mut uri = uri::Parts::default();
        if method == Method::CONNECT {
            // 8.5. We do not allow the `:protocol` of RFC 8441.
            if self.scheme.is_some() || self.path.is_some() {
                return None;
            }
            uri.authority = Some(self.authority?);
        } else {
            // `Uri` has no scheme without an authority, which may be in `Host`.
            let scheme = self.scheme?;
            uri.scheme = self.authority.is_some().then_some(scheme);
            uri.authority = self.authority;
            uri.path_and_query = Some(self.path?);
        }
        let (mut head, ()) = Request::new(()).into_parts();
        head.method = method;
        head.uri = Uri::from_parts(uri).ok()?;
        head.version = Version::HTTP_2;
        head.headers = self.regular;
        Some(head)
    }

    /// Trailers. `None`: they have a pseudo-header field, which is malformed (8.1).
    pub fn into_trailers(self) -> Option<HeaderMap> {
        (!self.has_pseudo).then_some(self.regular)
    }
}

/// Fields of a connection of HTTP/1.1 (8.2.2).
fn is_of_a_connection(name: &HeaderName, value: &HeaderValue) -> bool {
    match *name {
        header::CONNECTION | header::TRANSFER_ENCODING | header::UPGRADE => true,
        header::TE => value != "trailers",
        _ => matches!(name.as_str(), "keep-alive" | "proxy-connection"),
    }
}

fn number(value: &HeaderValue) -> Option<u64> {
    let digits = value.to_str().ok()?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}
