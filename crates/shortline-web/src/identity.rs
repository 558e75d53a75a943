//! Which request it is, for logs and for the backends: an id of its own, and the trace that it belongs to.
//!
//! The id is the field `X-Request-Id`. That of a trusted proxy is kept. Any other is replaced, because whoever could choose it
//! could make two requests look like one in every log behind us. A made id has 128 bits, as 32 hexadecimal digits.
//!
//! The trace is the field `traceparent` with `tracestate` (W3C Trace Context, level 1): see `trace_context`. A valid
//! one goes on as it came, whoever sent it. An invalid one is replaced by a new trace, and its `tracestate` is dropped (4.3). A
//! request without one gets none: this server is not a part of the trace, it passes it on.
//!
//! Where spans are exported, the server is a part: the backend gets the same trace with the number of our span, and a request
//! without a trace begins one. Whether it is recorded a trusted proxy says, and for all others the share that is set.

use std::cell::Cell;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderName, HeaderValue};
use shortline_base::world;

use crate::proxy::head::remove_where;
use crate::trace_context::{Sampling, TRACEPARENT, TRACESTATE, TraceParent};

/// The field of the id.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Spellings of it that CGI treats as the same.
const DISGUISED: [&str; 3] = ["x_request_id", "x-request_id", "x_request-id"];
/// The longest id of a proxy that is kept.
const ID_BYTES_MAX: usize = 128;
const DIGITS: &[u8; 16] = b"0123456789abcdef";
/// Ids that a thread takes from the shared counter at a time.
const IDS_AT_ONCE: u64 = 1 << 16;

/// A request's id: visible ASCII, at most 128 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(HeaderValue);

/// Which request it is; see the module's text.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its id.
    pub id: RequestId,
    /// The trace that it belongs to, as the backend gets it.
    pub trace: Option<TraceParent>,
    /// Our own part of the trace, if it is recorded.
    pub span: Option<Span>,
    /// Whether the client has named a valid trace.
    is_continued: bool,
}

/// A part of a trace that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The trace.
    pub trace: u128,
    /// Its number.
    pub span: u64,
    /// That of the part that it belongs to. `None`: it begins the trace.
    pub parent: Option<u64>,
}

impl Identity {
    /// Of a request with these fields. Its id is kept if it is of a trusted proxy. `sampling` says which spans are recorded,
    /// if any are exported.
    pub fn of(headers: &HeaderMap, is_trusted: bool, sampling: Option<Sampling>) -> Self {
        let kept = is_trusted.then(|| RequestId::sent(headers)).flatten();
        let named = headers.contains_key(&TRACEPARENT);
        let sent = named.then(|| TraceParent::sent(headers)).flatten();
        let begins = named || sampling.is_some();
        let trace = sent.or_else(|| begins.then(|| TraceParent::begin(random())));
        let identity = Self {
            id: kept.unwrap_or_else(RequestId::new),
            trace,
            span: None,
            is_continued: sent.is_some(),
        };
        match (sampling, trace) {
            (Some(sampling), Some(trace)) => identity.with_span(trace, is_trusted, sampling),
            _ => identity,
        }
    }

    fn with_span(self, trace: TraceParent, is_trusted: bool, sampling: Sampling) -> Self {
        let is_sampled = match self.is_continued && is_trusted {
            true => trace.is_sampled(),
            false => sampling.takes(trace.trace()),
        };
        // 0 is no number of a span.
        let span = random() as u64 | 1;
        Self {
            trace: Some(trace.child(span, is_sampled)),
            span: is_sampled.then(|| Span {
                trace: trace.trace(),
                span,
                parent: self.is_continued.then(|| trace.parent()),
            }),
            ..self
        }
    }

    /// Names the request to its backend.
    pub fn tell(&self, headers: &mut HeaderMap) {
        remove_where(headers, |name| {
            DISGUISED.contains(&name.as_str()) || TRACESTATE == *name && !self.is_continued
        });
        headers.insert(X_REQUEST_ID, self.id.0.clone());
        // The field of a later version goes on as it is where nothing is added to it.
        if let Some(trace) = &self.trace
            && TraceParent::sent(headers) != Some(*trace)
        {
            headers.insert(TRACEPARENT, trace.field());
        }
    }
}

impl RequestId {
    /// A new one.
    fn new() -> Self {
        let text = hexadecimal(random());
        Self(HeaderValue::from_bytes(&text).expect("invariant: digits are visible ASCII"))
    }

    /// The one that a request has, if it is sound: one field of visible ASCII.
    fn sent(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(&X_REQUEST_ID).iter();
        let value = values.next().filter(|value| {
            let bytes = value.as_bytes();
            (1..=ID_BYTES_MAX).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
        })?;
        values.next().is_none().then(|| Self(value.clone()))
    }

    /// As the value of a field.
    pub fn field(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_str().unwrap_or_default())
    }
}

/// A number in 32 digits. With `format!` an id took 500 instructions more.
fn hexadecimal(number: u128) -> [u8; 32] {
    let mut digits = [0; 32];
    for (byte, pair) in number
        .to_be_bytes()
        .into_iter()
        .zip(digits.chunks_exact_mut(2))
    {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    digits
}

/// 128 bits that nobody can foresee and that do not come again: a count, hashed with a random key.
fn random() -> u128 {
    if let (Some(high), Some(low)) = (world::random(), world::random()) {
        return u128::from(high) << 64 | u128::from(low);
    }
    static KEYS: LazyLock<(RandomState, RandomState)> = LazyLock::new(Default::default);
    let count = next_count();
    let half = |key: &RandomState| u128::from(key.hash_one(count));
    half(&KEYS.0) << 64 | half(&KEYS.1)
}

/// A number that no thread had before. A thread takes many at a time, so that processors do not take the counter from
/// each other with every request.
fn next_count() -> u64 {
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NEXT: Cell<u64> = const { Cell::new(0) };
    }
    NEXT.with(|next| {
        let mut count = next.get();
        if count % IDS_AT_ONCE == 0 {
            count = TAKEN.fetch_add(IDS_AT_ONCE, Ordering::Relaxed);
        }
        next.set(count + 1);
        count
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::HashSet;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let fields = fields.iter().map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        let mut headers = HeaderMap::new();
        fields.for_each(|(name, value)| {
            headers.append(name, value);
        });
        headers
    }

    fn told(fields: &[(&'static str, &'static str)], is_trusted: bool) -> HeaderMap {
        let mut headers = headers(fields);
        Identity::of(&headers, is_trusted, None).tell(&mut headers);
        headers
    }

    fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
        let mut values = headers.get_all(name).iter();
        let value = values.next().unwrap();
        assert!(values.next().is_none(), "{headers:?}");
        value.to_str().unwrap()
    }

    #[test]
    fn only_a_trusted_proxy_gives_the_id() {
        let sent = [("x-request-id", "abc-1")];
        assert_eq!(text(&told(&sent, true), "x-request-id"), "abc-1");
        let made = told(&sent, false);
        assert_eq!(text(&made, "x-request-id").len(), 32);
        for unsound in [
            &[("x-request-id", "")][..],
            &[("x-request-id", "a b")],
            &[("x-request-id", "a"), ("x-request-id", "b")],
        ] {
            let made = told(unsound, true);
            assert_eq!(text(&made, "x-request-id").len(), 32, "{unsound:?}");
        }
        let disguised = told(&[("x_request_id", "abc"), ("x-request_id", "abc")], true);
        assert_eq!(disguised.len(), 1);
    }

    #[test]
    fn an_id_is_its_number_in_hexadecimal() {
        for number in [
            0,
            0x1f,
            0x0123_4567_89ab_cdef_0fed_cba9_8765_4321,
            u128::MAX,
        ] {
            assert_eq!(hexadecimal(number), format!("{number:032x}").as_bytes());
        }
    }

    #[test]
    fn no_id_comes_twice() {
        let made = || -> Vec<String> {
            let ids = (0..1000).map(|_| RequestId::new().to_string());
            ids.collect()
        };
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(made)).collect();
        let ids = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap());
        assert_eq!(ids.collect::<HashSet<_>>().len(), 4000);
    }

    #[test]
    fn a_valid_trace_goes_on_as_it_came() {
        let told = told(&[("traceparent", PARENT), ("tracestate", "a=1,b=2")], false);
        assert_eq!(text(&told, "traceparent"), PARENT);
        assert_eq!(text(&told, "tracestate"), "a=1,b=2");
    }

    #[test]
    fn an_invalid_trace_is_replaced() {
        for unsound in [
            &[("traceparent", "nonsense"), ("tracestate", "a=1")][..],
            &[
                ("traceparent", PARENT),
                ("traceparent", PARENT),
                ("tracestate", "a=1"),
            ],
        ] {
            let told = told(unsound, true);
            let parent = TraceParent::sent(&told).unwrap();
            assert_ne!(
                parent.trace_id(),
                TraceParent::sent(&headers(&[("traceparent", PARENT)]))
                    .unwrap()
                    .trace_id()
            );
            assert!(!told.contains_key("tracestate"));
        }
    }

    #[test]
    fn a_span_of_ours_stands_between_client_and_backend() {
        let sent = headers(&[("traceparent", PARENT), ("tracestate", "a=1")]);
        let all = Some(Sampling(1_000_000));
        let identity = Identity::of(&sent, false, all);
        let mut told = sent.clone();
        identity.tell(&mut told);
        let (parent, span) = (TraceParent::sent(&told).unwrap(), identity.span.unwrap());
        assert_eq!(parent.trace_id(), PARENT[3..35]);
        assert_eq!(span.parent, Some(0x00f0_67aa_0ba9_02b7));
        assert_eq!((parent.parent(), parent.is_sampled()), (span.span, true));
        assert_eq!(text(&told, "tracestate"), "a=1");
        // Only a trusted proxy says that something is recorded.
        let none = Some(Sampling(0));
        assert!(Identity::of(&sent, false, none).span.is_none());
        assert!(Identity::of(&sent, true, none).span.is_some());
        // Without a trace one begins.
        let begun = Identity::of(&HeaderMap::new(), false, all);
        assert_eq!(begun.span.unwrap().parent, None);
        let mut told = HeaderMap::new();
        begun.tell(&mut told);
        assert!(text(&told, "traceparent").ends_with("-01"));
    }

    #[test]
    fn without_a_trace_there_is_none() {
        let told = told(&[("tracestate", "a=1")], true);
        assert!(!told.contains_key("traceparent") && !told.contains_key("tracestate"));
    }
}
