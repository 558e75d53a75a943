//! The body of a request that nobody wants, such as one for a file: read and passed over before the
//! answer where it can only be told at its end whether the request is well formed.
//!
//! That is so in HTTP/2 (RFC 9113 8.1.1) and for chunks in HTTP/1.1. No more is read than
//! [`BODY_BYTES_MAX`], and for no longer than a request's head may take.

use std::time::Duration;

use h2::RecvStream;
use http::header::EXPECT;
use http::request::Parts;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

/// Bytes of a body that are read and passed over; a longer one is answered without the rest.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Why a body was not passed over.
pub enum Unsound {
    /// It is none.
    Malformed,
    /// It does not come.
    Late,
}

/// Whether a request of HTTP/1.1 has chunks, which are to be looked at. Who waits for a word before
/// sending them gets the answer instead.
pub fn has_chunks(head: &Parts, body: &Incoming) -> bool {
    body.size_hint().exact().is_none() && !head.headers.contains_key(EXPECT)
}

/// Passes over the chunks of a request of HTTP/1.1.
///
/// # Errors
/// [`Unsound`]
pub async fn pass_over_chunks(body: &mut Incoming, time_max: Duration) -> Result<(), Unsound> {
    let passed = async {
        let mut left_bytes = BODY_BYTES_MAX;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Unsound::Malformed)?;
            let bytes = frame.data_ref().map_or(0, bytes::Bytes::len);
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

/// Passes over the data and trailers of a stream of HTTP/2.
///
/// # Errors
/// [`Unsound`]
pub async fn pass_over_stream(body: &mut RecvStream, time_max: Duration) -> Result<(), Unsound> {
    let passed = async {
        let mut left_bytes = BODY_BYTES_MAX;
        while let Some(data) = body.data().await {
            let bytes = data?.len();
            if bytes > left_bytes {
                // The client is told to stop when the stream ends.
                return Ok(());
            }
            left_bytes -= bytes;
            body.flow_control().release_capacity(bytes)?;
        }
        body.trailers().await?;
        Ok::<_, h2::Error>(())
    };
    let passed = tokio::time::timeout(time_max, passed).await;
    passed.map_or(Err(Unsound::Late), |passed| {
        passed.map_err(|_| Unsound::Malformed)
    })
}
