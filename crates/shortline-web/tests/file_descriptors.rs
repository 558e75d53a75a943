//! No file descriptors left: 503 with Retry-After, and normal service once some are free. It runs
//! alone in its process, because the limit is per process.
#![allow(clippy::unwrap_used)]

use std::fs::File;

use http::{HeaderMap, Method, StatusCode, header};
use rustix::process::{Resource, getrlimit, setrlimit};
use shortline_web::files::{CacheOptions, FileCache, Files, FilesOptions, Plan, RequestHead};

async fn get(files: &Files, target: &str) -> Plan {
    let headers = &HeaderMap::new();
    let head = RequestHead {
        method: &Method::GET,
        target,
        headers,
        compress: true,
    };
    files.respond(&head, shortline_base::clock::now_ns()).await
}

#[tokio::test]
async fn without_descriptors_clients_are_asked_to_come_back() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["known", "unknown"] {
        std::fs::write(dir.path().join(name), name).unwrap();
    }
    let cache = FileCache::new(&CacheOptions::default());
    let files = Files::open(dir.path(), FilesOptions::default(), &cache).unwrap();
    assert_eq!(get(&files, "/known").await.status, StatusCode::OK);

    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(64);
    setrlimit(Resource::Nofile, limit).unwrap();
    let hoard: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let plan = get(&files, "/unknown").await;
    assert_eq!(plan.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(plan.headers[header::RETRY_AFTER], "1");

    drop(hoard);
    assert_eq!(get(&files, "/unknown").await.status, StatusCode::OK);
}
