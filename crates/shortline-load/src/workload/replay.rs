//! A trace as requests to a fresh server: its requests, and a site that has what they ask for.
//!
//! A trace's paths are not file names: they contain queries, end with `/`, lead out of a folder,
//! and mean different things at different times. So each pair of path and size becomes a file of
//! that size, numbered in the order of its first request. The times stay.

use std::collections::HashMap;

use shortline_sched::units::Size;
use thiserror::Error;

use super::{FILES_MAX, SiteFile, SiteFiles};
use crate::trace::Request;

/// The most bytes that the files of a trace may have together.
pub const SITE_BYTES_MAX: Size = Size::from_bytes(16 << 30);

/// A trace whose files are too many or too large.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ReplayError {
    /// The trace asks for nothing.
    #[error("no request: want one at least")]
    Empty,
    /// Too many files.
    #[error("more than {FILES_MAX} different files: want a shorter part of the trace")]
    Files,
    /// Too many bytes.
    #[error("files of more than {SITE_BYTES_MAX} in all: want a shorter part of the trace")]
    Bytes,
}

/// The requests, with the files' paths, and the site that has these files.
///
/// # Errors
/// If the site would be empty or too large.
pub fn replay(requests: Vec<Request>) -> Result<(Vec<Request>, SiteFiles), ReplayError> {
    let mut places: HashMap<(String, u64), usize> = HashMap::new();
    let mut files: Vec<SiteFile> = Vec::new();
    let mut asked: Vec<u64> = Vec::new();
    let mut site_bytes: u64 = 0;
    let mut renamed = Vec::with_capacity(requests.len());
    for Request { at_ns, path, bytes } in requests {
        let next = files.len();
        let place = *places.entry((path, bytes)).or_insert(next);
        if place == next {
            if next == FILES_MAX {
                return Err(ReplayError::Files);
            }
            site_bytes = site_bytes.saturating_add(bytes);
            if site_bytes > SITE_BYTES_MAX.bytes() {
                return Err(ReplayError::Bytes);
            }
            let path = format!("/trace/{:03}/{next:06}.bin", next / 1_000);
            files.push(SiteFile { path, bytes });
            asked.push(0);
        }
        asked[place] += 1;
        let path = files[place].path.clone();
        renamed.push(Request { at_ns, path, bytes });
    }
    if renamed.is_empty() {
        return Err(ReplayError::Empty);
    }
    let all = renamed.len() as f64;
    let shares = asked.into_iter().map(|requests| requests as f64 / all);
    let site = SiteFiles::popular(files, shares.collect());
    Ok((renamed, site))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn request(at_ns: u64, path: &str, bytes: u64) -> Request {
        Request {
            at_ns,
            path: path.into(),
            bytes,
        }
    }

    #[test]
    fn each_path_and_size_is_a_file_under_the_root() {
        let requests = vec![
            request(5, "/a?b=1", 100),
            request(6, "/../../etc/passwd", 7),
            request(9, "/a?b=1", 100),
            request(9, "/a?b=1", 200),
            request(10, "/", 0),
        ];
        let (renamed, site) = replay(requests.clone()).unwrap();
        let kept = |request: &Request| (request.at_ns, request.bytes);
        assert_eq!(
            renamed.iter().map(kept).collect::<Vec<_>>(),
            requests.iter().map(kept).collect::<Vec<_>>()
        );
        let sizes: Vec<u64> = site.files().iter().map(|file| file.bytes).collect();
        assert_eq!(sizes, [100, 7, 200, 0]);
        for request in &renamed {
            let file = site.files().iter().find(|file| file.path == request.path);
            assert_eq!(file.unwrap().bytes, request.bytes);
            assert!(request.path.starts_with("/trace/000/") && !request.path.contains(".."));
        }
        assert_eq!(site.shares().collect::<Vec<_>>(), [0.4, 0.2, 0.2, 0.2]);
    }

    #[test]
    fn what_no_disk_should_hold_is_refused() {
        assert_eq!(replay(Vec::new()).unwrap_err(), ReplayError::Empty);
        let large = |n: u64| request(n, &format!("/{n}"), 9 << 30);
        let error = replay(vec![large(1), large(2)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "files of more than 16GiB in all: want a shorter part of the trace"
        );
        assert!(replay(vec![large(1), request(2, "/1", 9 << 30)]).is_ok());
    }
}
