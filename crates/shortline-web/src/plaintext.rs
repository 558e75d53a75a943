//! Plain HTTP on a TLS port: a request for `http://` at a port of `https://` gets a 400 that says
//! so in plain text, instead of an alert that no browser and no `curl` understands.
//!
//! The first bytes decide: a method and a blank, of which none is the type of a TLS record (RFC
//! 8446 5.1). A TLS client waits no longer than before. Any other bytes are left for TLS to refuse.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::request;

/// How a plain-text request begins, including HTTP/2's preface.
const BEGINNINGS: [&[u8]; 10] = [
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"PUT ",
    b"DELETE ",
    b"OPTIONS ",
    b"PATCH ",
    b"TRACE ",
    b"CONNECT ",
    b"PRI ",
];
/// Bytes of the request that are read and dropped. If they stayed unread when the socket closes,
/// the client would lose the answer.
const PASSED_OVER_BYTES_MAX: u64 = 64 * 1024;

/// Whether these are the first bytes of a plain-text request. `None`: more bytes are needed.
pub fn is_request(first: &[u8]) -> Option<bool> {
    if BEGINNINGS.iter().any(|known| first.starts_with(known)) {
        return Some(true);
    }
    let so_far = BEGINNINGS.iter().any(|known| known.starts_with(first));
    (!so_far).then_some(false)
}

/// Answers a request that begins with `first`, and drops what follows.
///
/// # Errors
/// The client has gone.
pub async fn refuse<S>(mut stream: S, first: Bytes) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(&answer(&first)).await?;
    stream.shutdown().await?;
    let mut rest = stream.take(PASSED_OVER_BYTES_MAX);
    tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
    Ok(())
}

fn answer(first: &[u8]) -> Vec<u8> {
    let host = host(first).unwrap_or("...");
    let body = format!("400 Bad Request\nThis port speaks TLS: ask for https://{host}/ instead.\n");
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n\
         X-Content-Type-Options: nosniff\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let body = if first.starts_with(b"HEAD ") {
        ""
    } else {
        &body
    };
    [head.as_bytes(), body.as_bytes()].concat()
}

/// The host of the request, if it is in the first bytes.
fn host(first: &[u8]) -> Option<&str> {
    let host = first.split(|byte| *byte == b'\n').find_map(|line| {
        // A line without its end may be cut short.
        let (name, value) = line.strip_suffix(b"\r")?.split_at_checked(5)?;
        let value = value.trim_ascii();
        let named = name.eq_ignore_ascii_case(b"host:") && !value.is_empty();
        (named && request::is_host(value)).then_some(value)
    });
    std::str::from_utf8(host?).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_request_is_told_by_its_method() {
        for first in ["GET / HTTP/1.1", "POST ", "PRI * HTTP/2.0\r\n"] {
            assert_eq!(is_request(first.as_bytes()), Some(true), "{first}");
        }
        for first in ["G", "GET", "P", "PAT", "OPTIONS"] {
            assert_eq!(is_request(first.as_bytes()), None, "{first}");
        }
        for first in [
            &b"\x16\x03\x01"[..],
            b"\x80\x2e",
            b"GETS",
            b"get ",
            b"SSH-2.0-x",
            b"\0",
        ] {
            assert_eq!(is_request(first), Some(false), "{first:?}");
        }
    }

    #[test]
    fn the_answer_names_the_host_if_it_is_one() {
        let told = |fields: &str| {
            let first = format!("GET / HTTP/1.1\r\n{fields}\r\n");
            String::from_utf8(answer(first.as_bytes())).unwrap()
        };
        assert!(told("X: y\r\nhost: a.example:81\r\n").contains("https://a.example:81/ instead"));
        for fields in ["", "Host: <b>\r\n", "Host:\r\n", "Host: u@a\r\n"] {
            let told = told(fields);
            assert!(told.contains("https://.../ instead"), "{told}");
        }
        let cut = String::from_utf8(answer(b"GET / HTTP/1.1\r\nHost: a.exa")).unwrap();
        assert!(cut.contains("https://.../ instead"), "{cut}");
        let head = answer(b"HEAD / HTTP/1.1\r\n\r\n");
        assert!(head.ends_with(b"\r\n\r\n"));
    }

    #[tokio::test]
    async fn no_more_is_read_than_a_request_would_have() {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        client.write_all(&vec![b'x'; 100_000]).await.unwrap();
        refuse(server, Bytes::from_static(b"GET / ")).await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 400 "));
    }
}
