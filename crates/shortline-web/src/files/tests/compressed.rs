//! Files compressed on the fly.

use std::io::Read;
use std::sync::Arc;

use super::*;
use crate::files::conditional::entity_tags;
use crate::files::encoding::Coding;
use crate::files::lookup::Found;
use crate::files::open::Wait;
use crate::files::paths::{Target, parse_target};

/// A text that becomes much shorter.
fn text() -> Vec<u8> {
    let lines = (0..2000).map(|line| format!("line {line} of a text\n"));
    lines.collect::<String>().into_bytes()
}

/// A plan for a client that accepts `codings`. What nobody has made yet is made; on a busy machine that may take more than one
/// request.
fn coded(bed: &Bed, target: &str, codings: &str) -> Plan {
    for _ in 0..1000 {
        let plan = bed.get_with(target, header::ACCEPT_ENCODING, codings);
        if plan.headers.contains_key(header::CONTENT_ENCODING) {
            return plan;
        }
    }
    panic!("{target} is never compressed");
}

fn decoded(plan: &Plan) -> Vec<u8> {
    let body = body(plan);
    assert_eq!(field(plan, header::CONTENT_LENGTH), body.len().to_string());
    let mut text = Vec::new();
    match field(plan, header::CONTENT_ENCODING) {
        "zstd" => zstd::stream::read::Decoder::new(&body[..])
            .unwrap()
            .read_to_end(&mut text),
        "br" => brotli::Decompressor::new(&body[..], 4096).read_to_end(&mut text),
        "gzip" => flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut text),
        other => panic!("`{other}`"),
    }
    .unwrap();
    text
}

fn is_as_it_is(plan: &Plan) -> bool {
    plan.status.is_success() && !plan.headers.contains_key(header::CONTENT_ENCODING)
}

#[test]
fn a_text_comes_in_the_coding_that_the_client_wants() {
    let bed = bed();
    bed.write("page.html", &text());
    for (accepted, coding) in [
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip, deflate, br", "br"),
        ("gzip", "gzip"),
        ("br;q=0.5, gzip;q=0.9", "gzip"),
        ("*", "zstd"),
        ("identity;q=0, gzip", "gzip"),
    ] {
        let plan = coded(&bed, "/page.html", accepted);
        assert_eq!(field(&plan, header::CONTENT_ENCODING), coding, "{accepted}");
        assert_eq!(decoded(&plan), text());
        assert!(plan.body.len() < text().len() as u64 / 2);
        assert_eq!(field(&plan, header::VARY), "accept-encoding");
        assert!(field(&plan, header::ETAG).starts_with("W/\""));
        assert!(!plan.headers.contains_key(header::ACCEPT_RANGES));
        assert_eq!(field(&plan, header::LAST_MODIFIED), MTIME);
        let head = [(header::ACCEPT_ENCODING, accepted)];
        let head = bed.ask(&Method::HEAD, "/page.html", &head);
        assert_eq!(head.headers, plan.headers);
    }
    for accepted in ["identity", "deflate", "gzip;q=0", "gzip;q=0.1, identity"] {
        let plan = bed.get_with("/page.html", header::ACCEPT_ENCODING, accepted);
        assert!(is_as_it_is(&plan), "{accepted}");
        assert_eq!(field(&plan, header::VARY), "accept-encoding");
        assert_eq!(body(&plan), text());
    }
    assert!(is_as_it_is(&bed.get("/page.html")));
}

#[test]
fn what_gains_nothing_stays_as_it_is() {
    let bed = bed();
    // What cannot become shorter, by an easy generator of bytes that look random.
    let mut state = 1u64;
    let random: Vec<u8> = (0..5000)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    bed.write("random.txt", &random);
    bed.write("short.txt", &text()[..1023]);
    bed.write("picture.png", &text());
    for target in ["/random.txt", "/short.txt", "/picture.png"] {
        // The second time it is known.
        for _ in 0..2 {
            let plan = bed.get_with(target, header::ACCEPT_ENCODING, "gzip");
            assert!(is_as_it_is(&plan), "{target}");
            let etag = field(&plan, header::ETAG).to_owned();
            let known = [
                (header::ACCEPT_ENCODING, "gzip"),
                (header::IF_NONE_MATCH, &*etag),
            ];
            assert_eq!(bed.ask(&Method::GET, target, &known).status, 304);
        }
    }
    assert_eq!(
        field(&bed.get("/picture.png"), header::VARY),
        "",
        "it never differs"
    );
}

#[test]
fn a_sibling_goes_before_what_would_be_made() {
    let bed = bed();
    bed.write("page.html", &text());
    bed.write("page.html.gz", b"sibling");
    let plan = bed.get_with("/page.html", header::ACCEPT_ENCODING, "gzip, br, zstd");
    assert_eq!(field(&plan, header::CONTENT_ENCODING), "gzip");
    assert_eq!(body(&plan), b"sibling");
    // A client that does not take the sibling's coding gets what is made.
    let plan = coded(&bed, "/page.html", "br");
    assert_eq!(decoded(&plan), text());
}

#[test]
fn a_part_and_the_very_bytes_are_those_of_the_file() {
    let bed = bed();
    bed.write("page.html", &text());
    let zstd = (header::ACCEPT_ENCODING, "zstd");
    let range = bed.ask(
        &Method::GET,
        "/page.html",
        &[zstd.clone(), (header::RANGE, "bytes=5-9")],
    );
    assert_eq!(range.status, 206);
    assert_eq!(body(&range), text()[5..10]);
    assert!(!range.headers.contains_key(header::CONTENT_ENCODING));
    let strong = field(&bed.get("/page.html"), header::ETAG).to_owned();
    let matching = bed.ask(
        &Method::GET,
        "/page.html",
        &[zstd.clone(), (header::IF_MATCH, &*strong)],
    );
    assert!(is_as_it_is(&matching));
    // A tag of what was made says nothing about parts of the file.
    let weak = field(&coded(&bed, "/page.html", "zstd"), header::ETAG).to_owned();
    let resumed = bed.ask(
        &Method::GET,
        "/page.html",
        &[
            zstd,
            (header::RANGE, "bytes=5-9"),
            (header::IF_RANGE, &*weak),
        ],
    );
    assert_eq!(resumed.status, 200);
}

#[test]
fn a_client_that_has_it_gets_304_whether_it_is_still_kept_or_not() {
    let bed = bed();
    bed.write("page.html", &text());
    let etag = field(&coded(&bed, "/page.html", "br"), header::ETAG).to_owned();
    assert!(entity_tags(etag.as_bytes()).all(|tag| tag.weak));
    // Another server of the same file has made nothing yet.
    let other = Bed {
        files: open(bed.dir.path(), FilesOptions::default()).unwrap(),
        dir: bed.dir,
    };
    for _ in 0..2 {
        let known = [
            (header::ACCEPT_ENCODING, "br"),
            (header::IF_NONE_MATCH, &*etag),
        ];
        let plan = other.ask(&Method::GET, "/page.html", &known);
        assert_eq!(plan.status, 304);
        assert_eq!(field(&plan, header::ETAG), etag);
        assert_eq!(field(&plan, header::VARY), "accept-encoding");
        coded(&other, "/page.html", "br");
    }
}

#[test]
fn a_file_that_changes_is_made_anew() {
    let bed = bed();
    bed.write("page.html", &text());
    assert_eq!(decoded(&coded(&bed, "/page.html", "gzip")), text());
    let changed = [text(), b"more".to_vec()].concat();
    bed.write_at("page.html", &changed, MTIME_S + 10);
    for _ in 0..1000 {
        let plan = coded(&bed, "/page.html", "gzip");
        if decoded(&plan) == changed {
            return;
        }
        // It is believed for a second.
        assert_eq!(decoded(&plan), text());
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the old text is sent for ever");
}

#[test]
fn it_may_be_off_for_a_site_or_a_request_and_for_large_files() {
    let options = FilesOptions {
        compress: false,
        ..FilesOptions::default()
    };
    let bed = Bed::new(options);
    bed.write("page.html", &text());
    let plan = bed.get_with("/page.html", header::ACCEPT_ENCODING, "gzip");
    assert!(is_as_it_is(&plan) && !plan.headers.contains_key(header::VARY));
    let options = FilesOptions {
        compress_bytes_max: text().len() as u64 - 1,
        ..FilesOptions::default()
    };
    let bed = Bed::new(options);
    bed.write("page.html", &text());
    assert!(is_as_it_is(&bed.get_with(
        "/page.html",
        header::ACCEPT_ENCODING,
        "gzip"
    )));
    // A cache that cannot keep what would be made.
    let cache = CacheOptions {
        bytes_max: text().len() as u64,
        ..CacheOptions::default()
    };
    let bed = Bed::with_cache(FilesOptions::default(), &cache);
    bed.write("page.html", &text());
    assert!(is_as_it_is(&bed.get_with(
        "/page.html",
        header::ACCEPT_ENCODING,
        "gzip"
    )));
}

#[tokio::test]
async fn many_requests_at_once_have_it_made_once() {
    let bed = bed();
    bed.write("page.html", &text().repeat(20));
    let headers: HeaderMap = [(header::ACCEPT_ENCODING, HeaderValue::from_static("br"))]
        .into_iter()
        .collect();
    let none = HeaderMap::new();
    let head = |headers| RequestHead {
        method: &Method::GET,
        target: "/page.html",
        headers,
        compress: true,
    };
    // All know the same open file. What is made of one that has just been written holds for that alone.
    assert_eq!(bed.files.respond(&head(&none), 0).await.status, 200);
    let head = head(&headers);
    let asked = (0..20).map(|_| bed.files.respond(&head, 0));
    let plans = futures_util::future::join_all(asked).await;
    // All that were compressed are the same bytes at the same place in memory.
    let places: std::collections::BTreeSet<usize> = plans
        .iter()
        .filter(|plan| plan.headers.contains_key(header::CONTENT_ENCODING))
        .map(|plan| {
            let PlanBody::Segments(segments) = &plan.body else {
                panic!("no body")
            };
            match &segments[0] {
                Segment::Bytes(bytes) => bytes.as_ptr().addr(),
                Segment::File { file, .. } => file.in_memory().unwrap().as_ptr().addr(),
            }
        })
        .collect();
    assert!(places.len() <= 1);
    assert!(plans.iter().all(|plan| plan.status == 200));
}

#[tokio::test]
async fn what_became_ready_since_a_request_looked_is_not_made_again() {
    let bed = bed();
    bed.write("page.html", &text());
    let Ok(Target::Resource { path, .. }) = parse_target("/page.html") else {
        panic!("no path");
    };
    let lookup = &bed.files.inner;
    let Ok(Found::Resource(entry)) = lookup.find(0, &path, Wait::Allowed) else {
        panic!("no file");
    };
    let make = || lookup.make(&path, Coding::Gzip, &entry.identity);
    let mut first = None;
    // On a busy machine it may take longer than a request waits.
    while first.is_none() {
        first = make().await;
    }
    let second = make().await;
    assert!(Arc::ptr_eq(&first.unwrap(), &second.unwrap()));
}
