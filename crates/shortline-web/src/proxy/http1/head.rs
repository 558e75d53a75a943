//! The heads of HTTP/1.1 with a backend: a request's as it is written, a response's as it is read, and what that says of its
//! body (RFC 9112, 6.3) and of the connection (9.3).

use bytes::BytesMut;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Request, StatusCode, Version};

use super::super::head::says;
use crate::message::head::{
    HeadError, Place, ends_chunked, field_bytes, fields, may_have_body, number, places, with_room,
    write_fields,
};
use crate::message::memory::Memory;

/// A response's head.
#[derive(Debug)]
pub struct Head {
    /// Its status.
    pub status: StatusCode,
    /// HTTP/1.0 or 1.1.
    pub version: Version,
    /// Its fields, as they came.
    pub headers: HeaderMap,
    /// How far its body goes.
    pub extent: Extent,
    /// Whether the connection may take another request.
    pub keeps: bool,
}

/// How far a response's body goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many bytes.
    Length(u64),
    /// To the last chunk.
    Chunks,
    /// To the end of the connection.
    Rest,
}

impl Head {
    /// Whether another head follows (RFC 9110, 15.2).
    pub fn is_interim(&self) -> bool {
        self.status.is_informational() && self.status != StatusCode::SWITCHING_PROTOCOLS
    }
}

/// A request's head as bytes.
pub fn write<B>(request: &Request<B>) -> Vec<u8> {
    let target = request.uri().path_and_query();
    let target = target.map_or("/", |target| target.as_str());
    let line = [request.method().as_str(), " ", target, " HTTP/1.1\r\n"];
    let fields = request.headers();
    let line_bytes: usize = line.iter().map(|part| part.len()).sum();
    let fields_bytes: usize = fields
        .iter()
        .map(|(name, value)| field_bytes(name, value))
        .sum();
    let mut text = Vec::with_capacity(line_bytes + fields_bytes + 2);
    for part in line {
        text.extend_from_slice(part.as_bytes());
    }
    write_fields(&mut text, fields);
    text.extend_from_slice(b"\r\n");
    text
}

/// Takes a response's head from what was read. `None`: it is not whole yet.
///
/// # Errors
/// [`HeadError`]
pub fn read(
    input: &mut BytesMut,
    method: &Method,
    (bytes_max, fields_max): (usize, usize),
    memory: &mut Memory,
) -> Result<Option<Head>, HeadError> {
    if input.is_empty() {
        return Ok(None);
    }
    let Some((bytes, found)) = find(input, fields_max)? else {
        return match input.len() > bytes_max {
            true => Err(HeadError::TooLarge(bytes_max)),
            false => Ok(None),
        };
    };
    if bytes > bytes_max {
        return Err(HeadError::TooLarge(bytes_max));
    }
    let text = input.split_to(bytes).freeze();
    let mut headers = fields(&text, &found.fields, memory)?;
    let extent = extent(method, found.status, found.version, &mut headers)?;
    Ok(Some(Head {
        status: found.status,
        version: found.version,
        keeps: keeps(found.version, &headers) && extent != Extent::Rest,
        headers,
        extent,
    }))
}

/// What was found in a head.
struct Found {
    status: StatusCode,
    version: Version,
    fields: Vec<Place>,
}

/// The length of the head, and what is in it.
fn find(input: &[u8], fields_max: usize) -> Result<Option<(usize, Found)>, HeadError> {
    with_room(fields_max, |room| {
        let mut response = httparse::Response::new(&mut []);
        let parser = httparse::ParserConfig::default();
        let parsed = parser
            .parse_response_with_uninit_headers(&mut response, input, room)
            .map_err(|error| HeadError::of(error, fields_max))?;
        let httparse::Status::Complete(bytes) = parsed else {
            return Ok(None);
        };
        let found = Found {
            status: response
                .code
                .and_then(|code| StatusCode::from_u16(code).ok())
                .ok_or(HeadError::Malformed(httparse::Error::Status))?,
            version: match response.version {
                Some(0) => Version::HTTP_10,
                _ => Version::HTTP_11,
            },
            fields: places(input, response.headers),
        };
        Ok(Some((bytes, found)))
    })
}

/// How far the body goes (RFC 9112, 6.3). A length beside a transfer coding is dropped: it means nothing.
fn extent(
    method: &Method,
    status: StatusCode,
    version: Version,
    headers: &mut HeaderMap,
) -> Result<Extent, HeadError> {
    if !may_have_body(status) || *method == Method::HEAD {
        return Ok(Extent::Length(0));
    }
    if headers.contains_key(TRANSFER_ENCODING) {
        if version == Version::HTTP_10 {
            return Err(HeadError::Coded);
        }
        headers.remove(CONTENT_LENGTH);
        let last = headers.get_all(TRANSFER_ENCODING).iter().next_back();
        let is_chunked = last.is_some_and(ends_chunked);
        return Ok(if is_chunked {
            Extent::Chunks
        } else {
            Extent::Rest
        });
    }
    let lengths = headers.get_all(CONTENT_LENGTH).iter();
    let lengths = lengths.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let mut length = None;
    for said in lengths {
        let bytes = number(said.trim_ascii()).ok_or(HeadError::Length)?;
        if length.replace(bytes).is_some_and(|before| before != bytes) {
            return Err(HeadError::Length);
        }
    }
    Ok(length.map_or(Extent::Rest, Extent::Length))
}

/// Whether the backend keeps the connection open (RFC 9112, 9.3).
fn keeps(version: Version, headers: &HeaderMap) -> bool {
    let says = |option| says(headers, &CONNECTION, option);
    match version {
        Version::HTTP_10 => says(b"keep-alive") && !says(b"close"),
        _ => !says(b"close"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn head(text: &str) -> Result<Option<Head>, HeadError> {
        read(
            &mut text.as_bytes().into(),
            &Method::GET,
            (1000, 4),
            &mut Memory::default(),
        )
    }

    fn whole(text: &str) -> Head {
        head(text).unwrap().unwrap()
    }

    #[test]
    fn a_body_is_as_long_as_its_head_says() {
        let of = |fields: &str| head(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"));
        for (fields, extent) in [
            ("Content-Length: 12\r\n", Extent::Length(12)),
            (
                "Content-Length: 12\r\nContent-Length: 12\r\n",
                Extent::Length(12),
            ),
            ("Content-Length: 12, 12\r\n", Extent::Length(12)),
            ("Transfer-Encoding: chunked\r\n", Extent::Chunks),
            (
                "Transfer-Encoding: gzip, Chunked\r\nContent-Length: 3\r\n",
                Extent::Chunks,
            ),
            ("Transfer-Encoding: chunked, gzip\r\n", Extent::Rest),
            ("", Extent::Rest),
        ] {
            let head = of(fields).unwrap().unwrap();
            assert_eq!(head.extent, extent, "{fields}");
            let is_coded = head.headers.contains_key(TRANSFER_ENCODING);
            assert!(!(is_coded && head.headers.contains_key(CONTENT_LENGTH)));
        }
        for wrong in ["-1", "+1", "", "1 2", "1, 2", "0x1", "99999999999999999999"] {
            let head = of(&format!("Content-Length: {wrong}\r\n"));
            assert_eq!(head.unwrap_err(), HeadError::Length, "{wrong}");
        }
        let old = head("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!(old.unwrap_err(), HeadError::Coded);
    }

    #[test]
    fn some_responses_have_no_body_whatever_they_say() {
        for status in ["100 Continue", "103 Early", "204 None", "304 Same"] {
            let head = whole(&format!("HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\n"));
            assert_eq!(head.extent, Extent::Length(0), "{status}");
            assert_eq!(head.is_interim(), status.starts_with('1'), "{status}");
        }
        let mut text: BytesMut = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"[..].into();
        let answer = read(&mut text, &Method::HEAD, (1000, 4), &mut Memory::default())
            .unwrap()
            .unwrap();
        assert_eq!(answer.extent, Extent::Length(0));
        assert_eq!(answer.headers[CONTENT_LENGTH], "5");
        assert!(!whole("HTTP/1.1 101 Switching\r\n\r\n").is_interim());
    }

    #[test]
    fn a_connection_is_kept_as_both_versions_say() {
        let length = "Content-Length: 0\r\n";
        for (version, fields, keeps) in [
            ("1.1", length, true),
            (
                "1.1",
                "Content-Length: 0\r\nConnection: x, Close\r\n",
                false,
            ),
            ("1.0", length, false),
            (
                "1.0",
                "Content-Length: 0\r\nConnection: Keep-Alive\r\n",
                true,
            ),
            ("1.1", "", false),
        ] {
            let head = whole(&format!("HTTP/{version} 200 OK\r\n{fields}\r\n"));
            assert_eq!(head.keeps, keeps, "{version} {fields}");
        }
    }

    #[test]
    fn what_is_too_large_or_malformed_is_refused() {
        assert_eq!(
            head(&"a".repeat(3)).unwrap_err(),
            HeadError::Malformed(httparse::Error::Version)
        );
        let long = format!("HTTP/1.1 200 OK\r\nA: {}\r\n", "a".repeat(1000));
        assert_eq!(head(&long).unwrap_err(), HeadError::TooLarge(1000));
        assert_eq!(
            head(&format!("{long}\r\n")).unwrap_err(),
            HeadError::TooLarge(1000)
        );
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(5));
        assert_eq!(head(&many).unwrap_err(), HeadError::TooMany(4));
        for wrong in [
            "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/2 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\na b: c\r\n\r\n",
            "HTTP/1.1 200 OK\r\na: \0\r\n\r\n",
        ] {
            assert!(
                matches!(head(wrong), Err(HeadError::Malformed(_))),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn a_request_is_written_as_it_is() {
        let request = http::Request::put("http://a.example/b?c=d")
            .header("host", "a.example")
            .header("x-a", "b")
            .header("x-a", "c")
            .body(())
            .unwrap();
        assert_eq!(
            String::from_utf8(write(&request)).unwrap(),
            "PUT /b?c=d HTTP/1.1\r\nhost: a.example\r\nx-a: b\r\nx-a: c\r\n\r\n"
        );
    }

    proptest! {
        /// Whatever comes, in whatever pieces: a head is found when it is whole, and what follows stays.
        #[test]
        fn the_pieces_do_not_matter(cut in 0usize..60, value in "[ -~]{0,20}", after in any::<[u8; 4]>()) {
            let value = value.trim();
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: 7\r\nX-A: {value}\r\n\r\n");
            let all = [text.as_bytes(), &after].concat();
            let mut input = BytesMut::new();
            let cut = cut.min(text.len() - 1);
            input.extend_from_slice(&all[..cut]);
            let limits = (1000, 4);
            prop_assert!(read(&mut input, &Method::GET, limits, &mut Memory::default()).unwrap().is_none());
            input.extend_from_slice(&all[cut..]);
            let head = read(&mut input, &Method::GET, limits, &mut Memory::default()).unwrap().unwrap();
            prop_assert_eq!(head.headers["x-a"].as_bytes(), value.as_bytes());
            prop_assert_eq!(head.extent, Extent::Length(7));
            prop_assert_eq!(&input[..], &after[..]);
        }

        #[test]
        fn anything_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut input = BytesMut::from(&bytes[..]);
            let before = input.len();
            let head = read(&mut input, &Method::GET, (100, 4), &mut Memory::default());
            match head {
                Ok(Some(head)) => prop_assert!(head.headers.len() <= 4 && before - input.len() <= 100),
                Ok(None) => prop_assert!(input.len() == before && before <= 100),
                Err(_) => {}
            }
        }
    }
}
