//! The head of a program's response (RFC 3875, 6): fields, an empty line, the body.
//!
//! `Status` is the status, else it is 302 with a `Location` and 200 without. A `Location` without a host is passed on as it is:
//! clients resolve it (RFC 9110 10.2.2), and the redirect inside the server of RFC 3875 6.2.2 is not made, as nginx does not.
//! Lines may end in LF alone.

use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};

const STATUS: HeaderName = HeaderName::from_static("status");

/// A head, and how many bytes it took.
#[derive(Debug)]
pub struct Head {
    /// The status.
    pub status: StatusCode,
    /// The fields, without `Status`.
    pub headers: HeaderMap,
    /// Its length with the empty line.
    pub bytes: usize,
}

/// What is no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// Not fields.
    #[error("the program's output begins with no header fields: {0}")]
    Fields(httparse::Error),
    /// A name or value that HTTP does not allow.
    #[error("a header field of the program's output is malformed")]
    Field,
    /// A status that a response does not have.
    #[error("the program's Status is none: want 200 to 599, such as Status: 404 Not Found")]
    Status,
    /// A length that is none, or two of them.
    #[error("the program's Content-Length is not one number")]
    Length,
}

/// The head at the beginning of a program's output. `None`: it has not all come.
///
/// # Errors
/// [`HeadError`]
pub fn parse(output: &[u8], fields_max: usize) -> Result<Option<Head>, HeadError> {
    let Some(bytes) = end(output) else {
        return Ok(None);
    };
    let mut fields = vec![httparse::EMPTY_HEADER; fields_max];
    let parsed = httparse::parse_headers(&output[..bytes], &mut fields);
    let httparse::Status::Complete((_, fields)) = parsed.map_err(HeadError::Fields)? else {
        return Err(HeadError::Field);
    };
    let mut headers = HeaderMap::with_capacity(fields.len());
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| HeadError::Field)?;
        let value = HeaderValue::from_bytes(field.value).map_err(|_| HeadError::Field)?;
        headers
            .try_append(name, value)
            .map_err(|_| HeadError::Field)?;
    }
    let status = status(&mut headers)?;
    length(&headers)?;
    Ok(Some(Head {
        status,
        headers,
        bytes,
    }))
}

/// Where the empty line ends.
fn end(output: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'\n', output).find_map(|at| {
        let line = output[..at].rsplit(|byte| *byte == b'\n').next()?;
        (line.is_empty() || line == b"\r").then_some(at + 1)
    })
}

fn status(headers: &mut HeaderMap) -> Result<StatusCode, HeadError> {
    let Some(value) = headers.remove(STATUS) else {
        return Ok(match headers.contains_key(header::LOCATION) {
            true => StatusCode::FOUND,
            false => StatusCode::OK,
        });
    };
    let code = value.as_bytes().split(|byte| *byte == b' ').next();
    let status = code.and_then(|code| StatusCode::from_bytes(code).ok());
    // Nothing is under way that 100 could be for, and a program cannot switch protocols.
    status
        .filter(|status| (200..600).contains(&status.as_u16()))
        .ok_or(HeadError::Status)
}

/// The length that the head promises.
///
/// # Errors
/// [`HeadError::Length`]
pub fn length(headers: &HeaderMap) -> Result<Option<u64>, HeadError> {
    let mut values = headers.get_all(header::CONTENT_LENGTH).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let digits = value.as_bytes().iter().all(u8::is_ascii_digit);
    let length = value.to_str().ok().and_then(|text| text.parse().ok());
    match length.filter(|_| digits && values.next().is_none()) {
        Some(length) => Ok(Some(length)),
        None => Err(HeadError::Length),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn status_of(output: &str) -> Result<u16, HeadError> {
        parse(output.as_bytes(), 100).map(|head| head.unwrap().status.as_u16())
    }

    #[test]
    fn a_head_is_fields_and_an_empty_line() {
        for output in [
            "Content-Type: text/html\r\nX-A: 1\r\n\r\nbody\n\n",
            "Content-Type: text/html\nX-A: 1\n\nbody\n\n",
        ] {
            let head = parse(output.as_bytes(), 100).unwrap().unwrap();
            assert_eq!(&output[head.bytes..], "body\n\n");
            assert_eq!(head.headers["x-a"], "1");
            for cut in 0..head.bytes {
                assert!(parse(&output.as_bytes()[..cut], 100).unwrap().is_none());
            }
        }
        assert!(parse(b"A: 1\r\nB: 2\r\n\r\n", 1).is_err());
        for output in ["<html>\n\n", "A: 1\n b\n\n", "A b: 1\n\n"] {
            assert!(parse(output.as_bytes(), 100).is_err(), "{output}");
        }
    }

    #[test]
    fn the_status_is_said_or_follows() {
        assert_eq!(status_of("Status: 404 Not Found\r\n\r\n"), Ok(404));
        assert_eq!(status_of("Status: 204\n\n"), Ok(204));
        assert_eq!(status_of("Location: /x\n\n"), Ok(302));
        assert_eq!(status_of("Status: 301 Moved\nLocation: /x\n\n"), Ok(301));
        assert_eq!(status_of("A: b\n\n"), Ok(200));
        assert_eq!(status_of("\n"), Ok(200));
        for status in ["", "100 Continue", "101 x", "600", "abc", "20", "-200"] {
            let told = status_of(&format!("Status: {status}\n\n"));
            assert_eq!(told, Err(HeadError::Status), "{status}");
        }
    }

    #[test]
    fn the_length_is_one_number() {
        assert_eq!(status_of("Content-Length: 12\n\n"), Ok(200));
        for length in [
            "Content-Length: +1",
            "Content-Length: 1, 1",
            "Content-Length: 1\nContent-Length: 1",
            "Content-Length: ",
        ] {
            assert_eq!(status_of(&format!("{length}\n\n")), Err(HeadError::Length));
        }
    }

    proptest! {
        #[test]
        fn any_output_has_a_head_or_none(output in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(Some(head)) = parse(&output, 10) {
                prop_assert!(head.bytes <= output.len() && output[head.bytes - 1] == b'\n');
                prop_assert!(!head.headers.contains_key("status"));
            }
        }
    }
}
