//! What is known about a resource: the file and its precompressed siblings. Each has the header
//! fields of its responses ready.
//!
//! - The entity tag is `"MTIME_NS-SIZE"` in hexadecimal, with the coding's name for siblings. It is
//!   strong, and the same on every host that got the file with its time. One change goes unnoticed:
//!   rewriting a file with as many bytes within one tick of the kernel's file clock (at most 10
//!   ms).
//!   What is compressed on the fly has a weak tag, with its coding's name.
//! - A modification time in the future or before 1970 gives no `Last-Modified` (RFC 9110 8.8.2.1).
//! - A sibling older than its original, in whole seconds, is stale and ignored.
//! - Types come from the name (`mime_guess`). Text is declared as UTF-8, except XML, which declares
//!   its own encoding.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG,
    HeaderMap, HeaderValue, IF_MATCH, LAST_MODIFIED, RANGE, VARY, X_CONTENT_TYPE_OPTIONS,
};
use rustix::fs::{Stat, fstat};

use super::conditional::Validators;
use super::encoding::{Choice, Coding, choose};
use super::file::OpenFile;
use super::kernel_copy::KernelCopies;
use super::made::Made;
use crate::shared_fields::SharedFields;

/// After this long without a change, a file's times identify its content. The clocks of file
/// systems tick as slowly as every two seconds.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// A resource as of its last check.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) identity: Arc<Variant>,
    siblings: Vec<(Coding, Arc<Variant>)>,
    /// Whether it may be compressed on the fly.
    is_compressible: bool,
    /// When the file system was last asked, on the caller's clock.
    checked_ns: AtomicU64,
}

/// One representation of a resource.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    pub(super) file: Arc<OpenFile>,
    pub(super) validators: Validators,
    /// The header fields of a 200.
    pub(super) headers: SharedFields,
    pub(super) is_coded: bool,
    stamp: Stamp,
    /// Whether the stamp proves the content.
    settled: bool,
}

/// Properties of a file of which at least one changes whenever its content does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    pub(super) len: u64,
    modified: (i64, u32),
    changed: (i64, u32),
}

/// What a variant depends on besides its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind<'a> {
    /// The original's name, which determines the type.
    pub(super) name: &'a str,
    pub(super) coding: Option<Coding>,
    /// Whether the resource has siblings, or may be compressed.
    pub(super) varies: bool,
}

impl Entry {
    pub(super) fn new(
        identity: Arc<Variant>,
        siblings: Vec<(Coding, Arc<Variant>)>,
        is_compressible: bool,
        checked_ns: u64,
    ) -> Self {
        Self {
            identity,
            siblings,
            is_compressible,
            checked_ns: AtomicU64::new(checked_ns),
        }
    }

    /// The variant for a request. `None` if the client accepts none.
    pub(super) fn select(&self, headers: &HeaderMap) -> Option<&Arc<Variant>> {
        if !headers.contains_key(ACCEPT_ENCODING) {
            return Some(&self.identity);
        }
        match choose(headers, |coding| self.sibling(coding).is_some()) {
            Choice::Identity => Some(&self.identity),
            Choice::Coded(coding) => self.sibling(coding),
            Choice::NotAcceptable => None,
        }
    }

    /// The coding to make for a request. `None`: what is there serves it as well. A sibling that the client takes goes before
    /// what would be made, and the file as it is where a part of it or these very bytes are asked for.
    pub(super) fn to_make(&self, headers: &HeaderMap) -> Option<Coding> {
        let asks_for_bytes = || headers.contains_key(RANGE) || headers.contains_key(IF_MATCH);
        if !self.is_compressible || !headers.contains_key(ACCEPT_ENCODING) || asks_for_bytes() {
            return None;
        }
        let takes_sibling = !self.siblings.is_empty()
            && matches!(
                choose(headers, |coding| self.sibling(coding).is_some()),
                Choice::Coded(_)
            );
        match choose(headers, |_| true) {
            Choice::Coded(coding) if !takes_sibling => Some(coding),
            _ => None,
        }
    }

    /// What was made for a request, or else what [`Self::select`] finds.
    pub(super) fn or_made<'a>(
        &'a self,
        made: Option<&'a Made>,
        headers: &HeaderMap,
    ) -> Option<&'a Arc<Variant>> {
        let variant = made.and_then(|made| made.variant.as_ref());
        variant.or_else(|| self.select(headers))
    }

    pub(super) fn sibling(&self, coding: Coding) -> Option<&Arc<Variant>> {
        self.siblings
            .iter()
            .find(|sibling| sibling.0 == coding)
            .map(|sibling| &sibling.1)
    }

    /// Whether the last check is at most `age_ns_max` old and no file that is still open has
    /// changed.
    pub(super) fn is_fresh(&self, now_ns: u64, age_ns_max: u64) -> bool {
        let age_ns = now_ns.saturating_sub(self.checked_ns.load(Ordering::Relaxed));
        age_ns <= age_ns_max && self.variants().all(|variant| variant.is_unchanged())
    }

    /// All variants.
    pub(super) fn variants(&self) -> impl Iterator<Item = &Arc<Variant>> {
        std::iter::once(&self.identity).chain(self.siblings.iter().map(|sibling| &sibling.1))
    }

    /// Notes a check that found the same variants. Returns false if the variants differ.
    pub(super) fn confirm(&self, other: &Entry, now_ns: u64) -> bool {
        let same = self.variants().count() == other.variants().count()
            && self
                .variants()
                .zip(other.variants())
                .all(|(one, two)| Arc::ptr_eq(one, two));
        if same {
            self.checked_ns.fetch_max(now_ns, Ordering::Relaxed);
        }
        same
    }
}

impl Variant {
    pub(super) fn new(file: OpenFile, stamp: Stamp, kind: Kind<'_>, now: SystemTime) -> Self {
        let validators = Validators {
            etag: stamp.etag(kind.coding),
            modified: stamp.date(now),
        };
        let headers = headers_of(stamp.len, kind, &validators).into();
        let is_coded = kind.coding.is_some();
        let settled = stamp.is_settled(now);
        Self {
            file: Arc::new(file),
            validators,
            headers,
            is_coded,
            stamp,
            settled,
        }
    }

    /// What is made of this in a coding.
    pub(super) fn coded(&self, coding: Coding, bytes: Bytes, copies: Arc<KernelCopies>) -> Self {
        let validators = self.validators_coded(coding);
        let mut headers = self.headers.clone();
        let changed = headers.change();
        changed.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
        changed.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
        changed.insert(ETAG, validators.etag.clone());
        changed.remove(ACCEPT_RANGES);
        Self {
            file: Arc::new(OpenFile::of_bytes(bytes, copies)),
            validators,
            headers,
            is_coded: true,
            stamp: self.stamp,
            settled: self.settled,
        }
    }

    /// What a client may compare with what is made of this in a coding.
    pub(super) fn validators_coded(&self, coding: Coding) -> Validators {
        let strong = self.stamp.etag(Some(coding));
        let weak = HeaderValue::try_from([b"W/", strong.as_bytes()].concat());
        Validators {
            etag: weak.expect("invariant: a tag with W/ before it"),
            modified: self.validators.modified,
        }
    }

    /// What another with the same bytes has, and none with others. `None`: nothing proves that yet.
    pub(super) fn proof(&self) -> Option<Stamp> {
        self.settled.then_some(self.stamp)
    }

    /// The properties of its file.
    pub(super) fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Whether this is still right for a file with `stamp`, and for a resource that varies or not.
    pub(super) fn holds_for(&self, stamp: Stamp, varies: bool) -> bool {
        self.settled && self.stamp == stamp && self.headers.contains_key(VARY) == varies
    }

    /// The same variant without a descriptor, if the file has been read into memory since it was
    /// opened.
    pub(super) fn released(self: &Arc<Self>) -> Arc<Self> {
        match self.file.released() {
            Some(file) => Arc::new(Self {
                file: Arc::new(file),
                ..Self::clone(self)
            }),
            None => Arc::clone(self),
        }
    }

    /// Whether an open file is unchanged. A file in memory stays as it is until it is checked by
    /// name.
    fn is_unchanged(&self) -> bool {
        self.file.in_memory().is_some()
            || self
                .file
                .disk()
                .is_none_or(|disk| fstat(disk).is_ok_and(|stat| Stamp::new(&stat) == self.stamp))
    }
}

impl Stamp {
    #[allow(
        clippy::unnecessary_cast,
        reason = "the widths differ between architectures"
    )]
    pub(super) fn new(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            len: stat.st_size as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u32),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u32),
        }
    }

    /// Whether a sibling was made before its original last changed.
    pub(super) fn is_older_than(&self, original: &Stamp) -> bool {
        self.modified.0 < original.modified.0
    }

    fn etag(&self, coding: Option<Coding>) -> HeaderValue {
        let (seconds, nanoseconds) = self.modified;
        let time_ns = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        let separator = if coding.is_some() { "-" } else { "" };
        let coding = coding.map_or("", Coding::name);
        let etag = format!("\"{time_ns:x}-{:x}{separator}{coding}\"", self.len);
        HeaderValue::try_from(etag).expect("invariant: hexadecimal digits, dashes and a name")
    }

    fn date(&self, now: SystemTime) -> Option<SystemTime> {
        let seconds = u64::try_from(self.modified.0).ok()?;
        let date = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
        (date <= now).then_some(date)
    }

    /// Whether the file's change time is old enough. Unlike the modification time, it cannot be set
    /// back.
    fn is_settled(&self, now: SystemTime) -> bool {
        let changed = Duration::new(u64::try_from(self.changed.0).unwrap_or(0), self.changed.1);
        let now = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        now.checked_sub(changed)
            .is_some_and(|age| age >= SETTLED_AFTER)
    }
}

fn headers_of(len: u64, kind: Kind<'_>, validators: &Validators) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(len));
    headers.insert(CONTENT_TYPE, content_type(kind.name));
    headers.insert(ETAG, validators.etag.clone());
    if let Some(modified) = validators.modified {
        let date = HeaderValue::try_from(httpdate::fmt_http_date(modified));
        headers.insert(
            LAST_MODIFIED,
            date.expect("invariant: dates are plain ASCII"),
        );
    }
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if kind.varies {
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    }
    if let Some(coding) = kind.coding {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    }
    headers
}

/// The type of a file by its name.
pub(super) fn content_type(name: &str) -> HeaderValue {
    let Some(mime) = mime_guess::from_path(name).first_raw() else {
        return HeaderValue::from_static("application/octet-stream");
    };
    // RFC 9239: the other names of this type are obsolete.
    let mime = if mime == "application/javascript" {
        "text/javascript"
    } else {
        mime
    };
    if !mime.starts_with("text/") || mime.ends_with("xml") || mime.contains(';') {
        return HeaderValue::from_static(mime);
    }
    let value = HeaderValue::try_from(format!("{mime}; charset=utf-8"));
    value.expect("invariant: types are plain ASCII")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn stamp(modified: i64, changed: i64) -> Stamp {
        Stamp {
            device: 1,
            inode: 2,
            len: 0x1f,
            modified: (modified, 5),
            changed: (changed, 0),
        }
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn types_have_a_charset_where_they_are_text() {
        for (name, expected) in [
            ("a.html", "text/html; charset=utf-8"),
            ("a.b.CSS", "text/css; charset=utf-8"),
            ("a.js", "text/javascript; charset=utf-8"),
            ("a.mjs", "text/javascript; charset=utf-8"),
            ("a.txt", "text/plain; charset=utf-8"),
            ("a.xml", "text/xml"),
            ("a.svg", "image/svg+xml"),
            ("a.json", "application/json"),
            ("a.wasm", "application/wasm"),
            ("a.png", "image/png"),
            ("a.woff2", "font/woff2"),
            ("a.gz", "application/gzip"),
            ("README", "application/octet-stream"),
            ("a.", "application/octet-stream"),
        ] {
            assert_eq!(content_type(name), expected, "{name}");
        }
    }

    #[test]
    fn tags_tell_time_size_and_coding() {
        let plain = stamp(1, 1).etag(None);
        assert_eq!(plain, "\"3b9aca05-1f\"");
        assert_eq!(stamp(1, 1).etag(Some(Coding::Brotli)), "\"3b9aca05-1f-br\"");
        assert_ne!(stamp(2, 1).etag(None), plain);
        assert_ne!(
            Stamp {
                len: 1,
                ..stamp(1, 1)
            }
            .etag(None),
            plain
        );
        assert!(stamp(i64::MIN, 1).etag(None).to_str().is_ok());
    }

    #[test]
    fn dates_that_cannot_be_are_left_out() {
        assert_eq!(stamp(100, 0).date(at(100)), Some(at(100)));
        assert_eq!(stamp(101, 0).date(at(100)), None);
        assert_eq!(stamp(-1, 0).date(at(100)), None);
        assert_eq!(stamp(i64::MAX, 0).date(at(100)), None);
    }

    #[test]
    fn a_stamp_is_proof_once_settled() {
        assert!(stamp(0, 98).is_settled(at(100)));
        assert!(!stamp(0, 99).is_settled(at(100)));
        assert!(!stamp(0, 101).is_settled(at(100)));
    }

    #[test]
    fn siblings_of_the_same_second_are_not_older() {
        assert!(stamp(1, 0).is_older_than(&stamp(2, 0)));
        assert!(
            !Stamp {
                modified: (2, 0),
                ..stamp(2, 0)
            }
            .is_older_than(&stamp(2, 0))
        );
    }
}
