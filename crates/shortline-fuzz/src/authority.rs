//! What an authority sends, or somebody in its name: times to wait, certificates, paths of challenges. JSON is parsed by
//! `serde_json` and `instant-acme`.

use http::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use shortline_acme::{Challenges, leaf, retry_after_s};

const DAY_S: u64 = 24 * 3600;

/// The first byte says which of them the rest is.
pub fn said(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else {
        return;
    };
    match kind % 3 {
        0 => {
            if let Ok(value) = HeaderValue::from_bytes(rest) {
                let wait_s = retry_after_s(&HeaderMap::from_iter([(RETRY_AFTER, value)]));
                assert!(wait_s.is_none_or(|wait_s| wait_s <= DAY_S));
            }
        }
        1 => {
            if let Err(problem) = leaf::read(&rest.into()) {
                crate::assert_one_line(&problem);
            }
        }
        _ => {
            // Nothing is posted, and no path leads to a file.
            let challenges = Challenges::default();
            challenges.share_in("/".into());
            let path = String::from_utf8_lossy(rest);
            assert!(challenges.text(&path).is_none());
            assert!(
                challenges
                    .text(&format!("/.well-known/acme-challenge/../etc/{path}"))
                    .is_none()
            );
        }
    }
}
