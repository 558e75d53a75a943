//! What an HTTP/2 client sends after its preface and its settings. However the bytes are cut, there are the same requests,
//! the same bodies and the same answers at the end, or the connection ends for the same reason.

use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use http::{HeaderMap, StatusCode};
use http_body::Body;
use shortline_http2::{ConnectionError, Limits, Request, Room, Server};

/// Frames after a byte that says into how many pieces they are cut.
pub fn client(bytes: &[u8]) {
    let Some((cut, frames)) = bytes.split_first() else {
        return;
    };
    let piece = usize::from(*cut).max(1);
    assert_eq!(outcome(frames, piece), outcome(frames, frames.len().max(1)));
}

/// What comes of frames in pieces of this size: what requests say, why the connection ends, and what is written.
type Outcome = (Vec<String>, Option<ConnectionError>, Vec<u8>);

fn outcome(frames: &[u8], piece: usize) -> Outcome {
    let server = Server::new(Limits {
        streams_max: 8,
        header_bytes_max: 500,
        resets_max: 4,
    });
    let hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    server.receive(hello).expect("a sound preface");
    let error = frames
        .chunks(piece)
        .find_map(|bytes| server.receive(bytes).err());
    let mut requests = Vec::new();
    while error.is_none()
        && let Some(request) = server.next_request()
    {
        requests.push(answer(request));
    }
    let mut written = Vec::new();
    let all = server.poll_write(Waker::noop(), |slices: &[IoSlice<'_>]| {
        let before = written.len();
        slices
            .iter()
            .for_each(|slice| written.extend_from_slice(slice));
        Poll::Ready(Ok(written.len() - before))
    });
    assert!(matches!(all, Poll::Ready(Ok(()))), "the writer takes all");
    (requests, error, written)
}

/// Reads what has come of a request, and answers it as far as its windows allow.
fn answer(request: Request) -> String {
    let Request {
        head,
        mut body,
        answer,
    } = request;
    let mut said = format!("{} {} {:?}", head.method, head.uri, head.headers);
    let mut context = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut context) {
        said += &format!(" {frame:?}");
    }
    let begun = answer.send_head(StatusCode::OK, &HeaderMap::new(), None, false);
    if begun.is_ok()
        && let Ok(Room::Bytes(bytes)) = answer.room()
    {
        let data = vec![b'a'; (bytes as usize).min(100)].into();
        answer.send_data(data, true).expect("there was room");
    }
    said
}
