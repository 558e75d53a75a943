//! Whole responses, from a request's head to the bytes of the body, on real files.
#![allow(clippy::unwrap_used)]

mod compressed;
mod memory;

use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tempfile::TempDir;

use super::*;

struct Bed {
    dir: TempDir,
    files: Files,
}

const MTIME_S: u64 = 784_111_777;
const MTIME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

impl Bed {
    fn new(options: FilesOptions) -> Self {
        Self::with_cache(options, &CacheOptions::default())
    }

    fn with_cache(options: FilesOptions, cache: &CacheOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::open(dir.path(), options, &FileCache::new(cache)).unwrap();
        let bed = Self { dir, files };
        bed.write("file.txt", b"0123456789");
        bed
    }

    fn write(&self, name: &str, content: &[u8]) {
        self.write_at(name, content, MTIME_S);
    }

    fn write_at(&self, name: &str, content: &[u8], mtime_s: u64) {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(mtime_s);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_times(FileTimes::new().set_modified(modified))
            .unwrap();
    }

    fn ask(&self, method: &Method, target: &str, fields: &[(HeaderName, &str)]) -> Plan {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        let headers = &headers;
        let head = RequestHead {
            method,
            target,
            headers,
            compress: true,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(self.files.respond(&head, shortline_base::clock::now_ns()))
    }

    fn get(&self, target: &str) -> Plan {
        self.ask(&Method::GET, target, &[])
    }

    fn get_with(&self, target: &str, name: HeaderName, value: &str) -> Plan {
        self.ask(&Method::GET, target, &[(name, value)])
    }
}

fn open(root: &Path, options: FilesOptions) -> Result<Files, FilesError> {
    Files::open(root, options, &FileCache::new(&CacheOptions::default()))
}

fn bed() -> Bed {
    Bed::new(FilesOptions::default())
}

fn body(plan: &Plan) -> Vec<u8> {
    let PlanBody::Segments(segments) = &plan.body else {
        return Vec::new();
    };
    let read = |segment: &Segment| match segment {
        Segment::Bytes(bytes) => bytes.clone(),
        Segment::File { file, offset, len } => file
            .read_blocking(*offset, usize::try_from(*len).unwrap())
            .unwrap(),
    };
    segments.iter().flat_map(read).collect()
}

/// Status and body. Checks that the length promised is the length sent.
fn answer(plan: &Plan) -> (u16, String) {
    let body = body(plan);
    assert_eq!(field(plan, header::CONTENT_LENGTH), body.len().to_string());
    (plan.status.as_u16(), String::from_utf8(body).unwrap())
}

fn field(plan: &Plan, name: HeaderName) -> &str {
    plan.headers
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

#[test]
fn a_file_is_sent_with_all_it_needs() {
    let bed = bed();
    let plan = bed.get("/file.txt?query");
    assert_eq!(answer(&plan), (200, "0123456789".into()));
    assert_eq!(
        field(&plan, header::CONTENT_TYPE),
        "text/plain; charset=utf-8"
    );
    assert_eq!(field(&plan, header::LAST_MODIFIED), MTIME);
    assert_eq!(field(&plan, header::ACCEPT_RANGES), "bytes");
    assert_eq!(field(&plan, header::X_CONTENT_TYPE_OPTIONS), "nosniff");
    assert!(field(&plan, header::ETAG).starts_with('"'));
    assert!(!plan.headers.contains_key(header::VARY));
    assert_eq!(plan.headers, bed.get("http://any/file%2etxt").headers);
}

#[test]
fn head_says_what_get_would() {
    let bed = bed();
    let head = bed.ask(&Method::HEAD, "/file.txt", &[(header::RANGE, "bytes=0-1")]);
    assert_eq!(head.headers, bed.get("/file.txt").headers);
    assert!(matches!(head.body, PlanBody::Empty));
    let absent = bed.ask(&Method::HEAD, "/absent", &[]);
    assert_eq!((absent.status.as_u16(), absent.body.len()), (404, 0));
}

#[test]
fn other_methods_are_told_which_there_are() {
    let bed = bed();
    for target in ["*", "/file.txt", "/absent"] {
        let plan = bed.ask(&Method::OPTIONS, target, &[]);
        assert_eq!(plan.status, StatusCode::NO_CONTENT);
        assert_eq!(field(&plan, header::ALLOW), "GET, HEAD, OPTIONS");
        assert!(!plan.headers.contains_key(header::CONTENT_LENGTH));
    }
    for method in [
        Method::POST,
        Method::CONNECT,
        Method::from_bytes(b"BREW").unwrap(),
    ] {
        let plan = bed.ask(&method, "/file.txt", &[]);
        assert_eq!(answer(&plan).0, 405);
        assert_eq!(field(&plan, header::ALLOW), "GET, HEAD, OPTIONS");
    }
}

#[test]
fn nothing_outside_is_served() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("root")).unwrap();
    fs::write(dir.path().join("secret"), "secret").unwrap();
    symlink("../secret", dir.path().join("root/link")).unwrap();
    fs::write(dir.path().join("root/.htaccess"), "secret").unwrap();
    let files = open(&dir.path().join("root"), FilesOptions::default()).unwrap();
    let bed = Bed { dir, files };
    for target in ["/../secret", "/%2e%2e/secret", "/a/%00", "*", "/a%ff", "no"] {
        assert_eq!(answer(&bed.get(target)).0, 400, "{target}");
    }
    for target in [
        "/..%2fsecret",
        "/..\\secret",
        "/link",
        "/.htaccess",
        "/absent",
        "/absent/",
    ] {
        assert_eq!(answer(&bed.get(target)).0, 404, "{target}");
    }
    assert_eq!(answer(&bed.get(&format!("/{}", "a".repeat(5000)))).0, 400);
    assert_eq!(answer(&bed.get(&format!("/{}", "a".repeat(300)))).0, 404);
}

#[test]
fn directories_redirect_to_their_slash_on_the_same_host() {
    let bed = bed();
    bed.write("dir ü/index.html", b"index");
    let plan = bed.get("//dir%20%C3%BC?a=b&c");
    assert_eq!(answer(&plan).0, 301);
    assert_eq!(field(&plan, header::LOCATION), "/dir%20%C3%BC/?a=b&c");
    assert_eq!(answer(&bed.get("/dir%20%C3%BC/")), (200, "index".into()));
    assert_eq!(answer(&bed.get("/file.txt/")).0, 404);
    bed.write("example.org/x", b"");
    assert_eq!(
        field(&bed.get("//example.org"), header::LOCATION),
        "/example.org/"
    );
}

#[test]
fn index_names_are_tried_in_order() {
    let index = vec!["a.html".into(), "b.html".into()];
    let bed = Bed::new(FilesOptions {
        index,
        ..FilesOptions::default()
    });
    assert_eq!(answer(&bed.get("/")).0, 404);
    bed.write("b.html", b"b");
    assert_eq!(answer(&bed.get("/")).1, "b");
    fs::create_dir_all(bed.dir.path().join("sub/a.html")).unwrap();
    assert_eq!(answer(&bed.get("/sub/")).0, 404);
    for name in ["", "..", "a/b"] {
        let options = FilesOptions {
            index: vec![name.into()],
            ..FilesOptions::default()
        };
        assert!(matches!(
            open(bed.dir.path(), options),
            Err(FilesError::Index { .. })
        ));
    }
}

#[test]
fn listings_show_what_can_be_asked_for() {
    let bed = Bed::new(FilesOptions {
        listing: true,
        ..FilesOptions::default()
    });
    bed.write("z/inner", b"");
    bed.write("<b>&.txt", b"12345");
    bed.write(".hidden", b"");
    symlink("/etc/passwd", bed.dir.path().join("out")).unwrap();
    let plan = bed.get("/");
    let (status, page) = answer(&plan);
    assert_eq!(
        (status, field(&plan, header::CONTENT_TYPE)),
        (200, "text/html; charset=utf-8")
    );
    assert!(!page.contains("<b>") && !page.contains("hidden") && !page.contains("out"));
    let place = |text: &str| {
        page.find(text)
            .unwrap_or_else(|| panic!("{text} in {page}"))
    };
    assert!(place("\"z/\"") < place("\"%3Cb%3E%26.txt\""));
    assert!(place("%3Cb") < place("\"file.txt\""));
    assert!(answer(&bed.get("/z/")).1.contains("inner"));
    assert_eq!(bed.ask(&Method::HEAD, "/", &[]).headers, plan.headers);
    let options = FilesOptions {
        listing: true,
        listing_entries_max: 1,
        ..FilesOptions::default()
    };
    let files = open(bed.dir.path(), options).unwrap();
    let (_, page) = answer(
        &Bed {
            dir: bed.dir,
            files,
        }
        .get("/"),
    );
    assert!(page.contains("Only 1 names"));
}

#[test]
fn conditions() {
    let bed = bed();
    let etag = field(&bed.get("/file.txt"), header::ETAG).to_owned();
    let plan = bed.get_with("/file.txt", header::IF_NONE_MATCH, &etag);
    assert_eq!((plan.status.as_u16(), plan.body.len()), (304, 0));
    assert_eq!(field(&plan, header::ETAG), etag);
    assert!(!plan.headers.contains_key(header::CONTENT_LENGTH));
    assert_eq!(
        bed.get_with("/file.txt", header::IF_MODIFIED_SINCE, MTIME)
            .status,
        304
    );
    assert_eq!(
        answer(&bed.get_with("/file.txt", header::IF_MATCH, "\"x\"")).0,
        412
    );
    assert_eq!(
        bed.get_with("/absent", header::IF_MATCH, "\"x\"").status,
        404
    );
}

#[test]
fn one_range() {
    let bed = bed();
    let plan = bed.get_with("/file.txt", header::RANGE, "bytes=2-4");
    assert_eq!(answer(&plan), (206, "234".into()));
    assert_eq!(field(&plan, header::CONTENT_RANGE), "bytes 2-4/10");
    assert_eq!(
        answer(&bed.get_with("/file.txt", header::RANGE, "bytes=-3")).1,
        "789"
    );
    let plan = bed.get_with("/file.txt", header::RANGE, "bytes=10-");
    assert_eq!(answer(&plan).0, 416);
    assert_eq!(field(&plan, header::CONTENT_RANGE), "bytes */10");
    assert_eq!(
        answer(&bed.get_with("/file.txt", header::RANGE, "lines=1")).0,
        200
    );
    let twice = [(header::RANGE, "bytes=0-1"), (header::RANGE, "bytes=0-1")];
    assert_eq!(bed.ask(&Method::GET, "/file.txt", &twice).status, 200);
}

#[test]
fn if_range_decides_whether_a_range_counts() {
    let bed = bed();
    let etag = field(&bed.get("/file.txt"), header::ETAG).to_owned();
    for (value, status) in [
        (&*etag, 206),
        (MTIME, 206),
        ("\"x\"", 200),
        (&format!("W/{etag}"), 200),
    ] {
        let fields = [(header::RANGE, "bytes=0-0"), (header::IF_RANGE, value)];
        assert_eq!(
            bed.ask(&Method::GET, "/file.txt", &fields).status,
            status,
            "{value}"
        );
    }
}

#[test]
fn several_ranges_are_parts_of_one_body() {
    let bed = bed();
    let plan = bed.get_with("/file.txt", header::RANGE, "bytes=7-8,0-1");
    let (status, text) = answer(&plan);
    let boundary = field(&plan, header::CONTENT_TYPE)
        .strip_prefix("multipart/byteranges; boundary=")
        .unwrap();
    let part = |range: &str, bytes: &str| {
        format!(
            "\r\n--{boundary}\r\ncontent-type: text/plain; charset=utf-8\r\n\
             content-range: bytes {range}/10\r\n\r\n{bytes}"
        )
    };
    let expected = part("7-8", "78") + &part("0-1", "01") + &format!("\r\n--{boundary}--\r\n");
    assert_eq!((status, text), (206, expected));
    assert!(!plan.headers.contains_key(header::CONTENT_RANGE));
}

#[test]
fn siblings_are_sent_to_those_who_accept_them() {
    let bed = bed();
    bed.write("file.txt.gz", b"gzip");
    bed.write("file.txt.br", b"brotli!");
    bed.write_at("file.txt.zst", b"stale", MTIME_S - 1);
    let plain = bed.get("/file.txt");
    assert_eq!(answer(&plain).1, "0123456789");
    assert_eq!(field(&plain, header::VARY), "accept-encoding");
    let coded = bed.get_with("/file.txt", header::ACCEPT_ENCODING, "gzip, br, zstd");
    assert_eq!(answer(&coded), (200, "brotli!".into()));
    assert_eq!(field(&coded, header::CONTENT_ENCODING), "br");
    assert_eq!(field(&coded, header::VARY), "accept-encoding");
    assert_eq!(
        field(&coded, header::CONTENT_TYPE),
        "text/plain; charset=utf-8"
    );
    assert_ne!(field(&coded, header::ETAG), field(&plain, header::ETAG));
    let refusing = bed.get_with("/file.txt", header::ACCEPT_ENCODING, "identity;q=0, zstd");
    assert_eq!(answer(&refusing).0, 406);
    assert_eq!(field(&refusing, header::VARY), "accept-encoding");
    let itself = bed.get_with("/file.txt.gz", header::ACCEPT_ENCODING, "gzip");
    assert_eq!(field(&itself, header::CONTENT_TYPE), "application/gzip");
    assert!(!itself.headers.contains_key(header::CONTENT_ENCODING));
}

#[test]
fn ranges_and_conditions_are_those_of_the_coded_sibling() {
    let bed = bed();
    bed.write("file.txt.gz", b"gzip!");
    let coded = (header::ACCEPT_ENCODING, "gzip");
    let one = bed.ask(
        &Method::GET,
        "/file.txt",
        &[coded.clone(), (header::RANGE, "bytes=1-2")],
    );
    assert_eq!(answer(&one), (206, "zi".into()));
    let several = [coded.clone(), (header::RANGE, "bytes=0-0,2-2")];
    assert_eq!(
        answer(&bed.ask(&Method::GET, "/file.txt", &several)),
        (200, "gzip!".into())
    );
    let etag = field(&one, header::ETAG).to_owned();
    let same = bed.ask(
        &Method::GET,
        "/file.txt",
        &[coded, (header::IF_NONE_MATCH, &etag)],
    );
    assert_eq!(
        (same.status.as_u16(), field(&same, header::VARY)),
        (304, "accept-encoding")
    );
    assert_eq!(
        bed.get_with("/file.txt", header::IF_NONE_MATCH, &etag)
            .status,
        200
    );
}

#[test]
fn siblings_can_be_switched_off() {
    let bed = Bed::new(FilesOptions {
        precompressed: false,
        ..FilesOptions::default()
    });
    bed.write("file.txt.gz", b"gzip");
    let plan = bed.get_with("/file.txt", header::ACCEPT_ENCODING, "gzip");
    assert_eq!(answer(&plan).1, "0123456789");
    assert!(!plan.headers.contains_key(header::VARY));
}

#[test]
fn an_empty_file_has_an_empty_body() {
    let bed = bed();
    bed.write("empty", b"");
    let plan = bed.get_with("/empty", header::RANGE, "bytes=0-");
    assert_eq!(answer(&plan), (200, String::new()));
    assert!(matches!(plan.body, PlanBody::Empty));
}
