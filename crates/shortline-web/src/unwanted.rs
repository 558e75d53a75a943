//! The body of a request that nobody wants, such as a request for a file. It is read and dropped
//! before the answer if only its end shows whether the request is well formed.
//!
//! That is so in HTTP/2 (RFC 9113 8.1.1) and for chunks in HTTP/1.1. At most [`BODY_BYTES_MAX`] are
//! read, and for no longer than a request's head may take.

use std::time::Duration;

use bytes::Bytes;
use http::header::EXPECT;
use http::request::Parts;
use http_body::Body;
use http_body_util::BodyExt;

use crate::http1;

/// The most bytes of a body that are read and dropped. A longer body is answered without reading
/// the rest.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Why reading a body was given up.
pub enum Unsound {
    /// It is malformed.
    Malformed,
    /// It does not come in time.
    Late,
}

/// Whether an HTTP/1.1 request has chunks that must be checked. A client that waits for `100
/// Continue` before it sends them gets the answer instead.
pub fn has_chunks(head: &Parts, body: &http1::Body) -> bool {
    body.size_hint().exact().is_none() && !head.headers.contains_key(EXPECT)
}

/// Reads and drops a body. Its client is told to stop, where that can be told, when the answer has been sent.
///
/// # Errors
/// [`Unsound`]
pub async fn pass_over(
    body: &mut (impl Body<Data = Bytes> + Unpin),
    time_max: Duration,
) -> Result<(), Unsound> {
    let passed = async {
        let mut left_bytes = BODY_BYTES_MAX;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Unsound::Malformed)?;
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            if bytes > left_bytes {
                return Ok(());
            }
            left_bytes -= bytes;
        }
        Ok(())
    };
    let passed = tokio::time::timeout(time_max, passed).await;
    passed.unwrap_or(Err(Unsound::Late))
}
