//! What is kept, within a size. Eviction is `quick_cache`'s.
//!
//! By a name it is known what its responses vary by, and by that and the request's values the response. A name whose last response could
//! not be kept has a note, so that requests for it do not wait for each other.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::terms::Terms;
use crate::files::{OpenFile, PlanBody, Segment};

/// What a response takes besides the texts in it.
const RESPONSE_BYTES: usize = 1024;
/// What is known of a name, besides the name.
const KNOWN_BYTES: usize = 128;
/// The part of the size that is for what is known of names.
const KNOWN_PART: u64 = 16;
/// A hint for the first allocation.
const RESPONSES: usize = 256;
/// Fields of the body, which a 304 does not change.
const OF_THE_BODY: [HeaderName; 4] = [
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
];

/// A response that is kept.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its status.
    pub status: StatusCode,
    /// Its fields, without the length.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Body,
    /// The terms on which it is kept.
    pub terms: Terms,
}

/// The body of a response that is kept.
#[derive(Clone, Debug)]
pub enum Body {
    /// In memory.
    Memory(Bytes),
    /// In a file of the folder.
    File(Arc<OpenFile>),
}

/// What is known of a name.
#[derive(Clone, Debug)]
pub enum Known {
    /// Its responses vary by these fields.
    Varies(Arc<[HeaderName]>),
    /// The last could not be kept. That is believed until then.
    NotKept(SystemTime),
}

/// What is kept; see the module's text.
pub struct Store {
    names: Cache<Box<str>, Known, Bytewise>,
    responses: Cache<String, Arc<Stored>, Bytewise>,
    /// How often something was forgotten.
    purges: AtomicU64,
}

/// Weighs by bytes.
#[derive(Clone)]
struct Bytewise;

impl Weighter<Box<str>, Known> for Bytewise {
    fn weight(&self, name: &Box<str>, _known: &Known) -> u64 {
        (name.len() + KNOWN_BYTES) as u64
    }
}

impl Weighter<String, Arc<Stored>> for Bytewise {
    fn weight(&self, variant: &String, stored: &Arc<Stored>) -> u64 {
        let fields = stored.headers.iter();
        let fields: usize = fields
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum();
        let body = match &stored.body {
            Body::Memory(bytes) => bytes.len(),
            Body::File(_) => 0,
        };
        (variant.len() + fields + body + RESPONSE_BYTES) as u64
    }
}

impl Store {
    /// Room for so many bytes.
    pub fn new(bytes_max: u64) -> Self {
        let of_names = bytes_max / KNOWN_PART;
        Self {
            names: Cache::with_weighter(RESPONSES, of_names, Bytewise),
            responses: Cache::with_weighter(RESPONSES, bytes_max - of_names, Bytewise),
            purges: AtomicU64::new(0),
        }
    }

    /// What is known of a name.
    pub fn known(&self, name: &str) -> Option<Known> {
        self.names.get(name)
    }

    /// The response of a variant.
    pub fn get(&self, variant: &str) -> Option<Arc<Stored>> {
        self.responses.get(variant)
    }

    /// How often something was forgotten.
    pub fn purges(&self) -> u64 {
        self.purges.load(Ordering::SeqCst)
    }

    /// Keeps a response to a request that was made when something had been forgotten that often: none from before a purge stays
    /// behind it.
    pub fn put(
        &self,
        name: &str,
        names: Arc<[HeaderName]>,
        variant: String,
        stored: Arc<Stored>,
        purges: u64,
    ) {
        if self.purges() != purges {
            return;
        }
        self.names.insert(name.into(), Known::Varies(names));
        self.responses.insert(variant.clone(), stored);
        // A purge in between may not have met it.
        if self.purges() != purges {
            self.responses.remove(&variant);
        }
    }

    /// Keeps a response whose name is known elsewhere.
    pub fn add(&self, variant: String, stored: Arc<Stored>) {
        self.responses.insert(variant, stored);
    }

    /// The response of a variant is kept elsewhere, and varies by these fields.
    pub fn leave(&self, name: &str, names: Arc<[HeaderName]>, variant: &str) {
        self.names.insert(name.into(), Known::Varies(names));
        self.responses.remove(variant);
    }

    /// Notes that a response could not be kept.
    pub fn note_not_kept(&self, name: &str, until: SystemTime) {
        self.names.insert(name.into(), Known::NotKept(until));
    }

    /// Forgets all that are meant. Returns the variants of their responses.
    pub fn purge(&self, is_meant: impl Fn(&str) -> bool) -> HashSet<Arc<str>> {
        // Before it looks, so that nothing older comes after it has.
        self.purges.fetch_add(1, Ordering::SeqCst);
        self.names.retain(|name, _| !is_meant(name));
        let variants = self.responses.iter().map(|(variant, _)| variant);
        let purged = variants
            .filter(|variant| is_meant(variant))
            .map(Arc::from)
            .collect();
        self.responses.retain(|variant, _| !is_meant(variant));
        purged
    }

    /// Responses, and their bytes.
    pub fn size(&self) -> (usize, u64) {
        (self.responses.len(), self.responses.weight())
    }
}

impl Body {
    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(file) => file.len(),
        }
    }

    /// All of it, to be sent.
    pub fn plan(&self) -> PlanBody {
        let segment = match self {
            Self::Memory(bytes) => Segment::Bytes(bytes.clone()),
            Self::File(file) => Segment::File {
                file: Arc::clone(file),
                offset: 0,
                len: file.len(),
            },
        };
        match segment.is_empty() {
            true => PlanBody::Empty,
            false => PlanBody::Segments(vec![segment]),
        }
    }
}

impl Stored {
    /// The same with what a 304 says of it, on the terms of both.
    pub fn renewed(&self, confirmed: &HeaderMap) -> (StatusCode, HeaderMap) {
        let mut headers = self.headers.clone();
        // Its age is that of what has just been confirmed.
        headers.remove(header::AGE);
        for name in confirmed.keys().filter(|name| !OF_THE_BODY.contains(name)) {
            headers.remove(name);
            for value in confirmed.get_all(name) {
                headers.append(name, value.clone());
            }
        }
        (self.status, headers)
    }

    /// The fields of a response with this that is so old, and how it came about (RFC 9211).
    pub fn fields(&self, now: SystemTime, cache_status: &str) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(header::AGE, self.terms.age(now).as_secs().into());
        if let Ok(value) = HeaderValue::from_str(cache_status) {
            headers.append(HeaderName::from_static("cache-status"), value);
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::super::ResponseCacheOptions;
    use super::*;

    fn stored(bytes: usize) -> (Arc<Stored>, Arc<[HeaderName]>) {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("max-age=60"),
        );
        headers.append(header::LINK, HeaderValue::from_static("<a>"));
        headers.append(header::LINK, HeaderValue::from_static("<b>"));
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let options = ResponseCacheOptions::default();
        let (terms, names) = Terms::of(StatusCode::OK, &headers, &options, now).unwrap();
        let stored = Stored {
            status: StatusCode::OK,
            headers,
            body: Body::Memory(vec![7; bytes].into()),
            terms,
        };
        (Arc::new(stored), names)
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let store = Store::new(1 << 20);
        for at in 0..1000 {
            let (stored, names) = stored(10_000);
            store.put(&format!("/{at}"), names, format!("/{at}"), stored, 0);
            assert!(store.size().1 <= 1 << 20);
        }
        assert!(store.size().0 > 50);
    }

    #[test]
    fn what_is_meant_is_forgotten_with_all_its_variants() {
        let store = Store::new(1 << 20);
        for (name, variant) in [
            ("http://a/x", "http://a/x\naccept\n 1"),
            ("http://a/x", "http://a/x\naccept\n 2"),
            ("http://a/xy", "http://a/xy"),
        ] {
            let (stored, names) = stored(1);
            store.put(name, names, variant.to_owned(), stored, 0);
        }
        let is_meant = |key: &str| key == "http://a/x" || key.starts_with("http://a/x\n");
        assert_eq!(store.purge(is_meant).len(), 2);
        assert!(store.known("http://a/x").is_none());
        assert!(store.get("http://a/xy").is_some());
    }

    #[test]
    fn a_confirmation_changes_fields_but_not_those_of_the_body() {
        let (stored, _) = stored(1);
        let mut confirmed = HeaderMap::new();
        confirmed.insert(header::LINK, HeaderValue::from_static("<c>"));
        confirmed.insert(header::CONTENT_TYPE, HeaderValue::from_static("x/y"));
        let (_, headers) = stored.renewed(&confirmed);
        let links: Vec<_> = headers.get_all(header::LINK).iter().collect();
        assert_eq!(links, ["<c>"]);
        assert!(!headers.contains_key(header::CONTENT_TYPE));
        let (_, same) = stored.renewed(&HeaderMap::new());
        assert_eq!(same.get_all(header::LINK).iter().count(), 2);
    }
}
