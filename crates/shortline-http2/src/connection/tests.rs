//! Conversations, frame by frame.

#![allow(clippy::unwrap_used)]

mod mistakes;

use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::{Body as _, Frame};
use proptest::prelude::*;

use crate::frame::{self, HEAD_BYTES, Head};
use crate::{Answer, Body, ConnectionError, Limits, Reason, Request, Room, Server, StreamOver};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// `GET http://a/`, and the same as `POST`.
const GET: &[u8] = b"\x82\x86\x84\x01\x01a";
const POST: &[u8] = b"\x83\x86\x84\x01\x01a";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = payload.len();
    let mut bytes = Head {
        length,
        kind,
        flags,
        stream,
    }
    .bytes()
    .to_vec();
    bytes.extend_from_slice(payload);
    bytes
}

fn get(stream: u32) -> Vec<u8> {
    frame(
        frame::HEADERS,
        frame::END_HEADERS | frame::END_STREAM,
        stream,
        GET,
    )
}

fn post(stream: u32) -> Vec<u8> {
    frame(frame::HEADERS, frame::END_HEADERS, stream, POST)
}

fn reset(stream: u32) -> Vec<u8> {
    frame(frame::RST_STREAM, 0, stream, &8u32.to_be_bytes())
}

fn settings(setting: u16, value: u32) -> Vec<u8> {
    let setting = [&setting.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(frame::SETTINGS, 0, 0, &setting)
}

fn limits() -> Limits {
    Limits {
        streams_max: 4,
        header_bytes_max: 1000,
        resets_max: 3,
    }
}

/// A server whose client has said hello, and whose answer to that is written.
fn server() -> Server {
    let server = Server::new(limits());
    let hello = [PREFACE, &frame(frame::SETTINGS, 0, 0, &[])].concat();
    server.receive(&hello).unwrap();
    written(&server);
    server
}

/// What is to be written: kind, stream and payload of each frame.
fn written(server: &Server) -> Vec<(u8, u32, Vec<u8>)> {
    let mut bytes = Vec::new();
    let all = server.poll_write(Waker::noop(), |slices: &[IoSlice<'_>]| {
        let before = bytes.len();
        slices
            .iter()
            .for_each(|slice| bytes.extend_from_slice(slice));
        Poll::Ready(Ok(bytes.len() - before))
    });
    assert!(matches!(all, Poll::Ready(Ok(()))));
    let mut frames = Vec::new();
    let mut rest = &bytes[..];
    while let Some((head, after)) = rest.split_first_chunk::<HEAD_BYTES>() {
        let head = Head::read(head);
        let (payload, after) = after.split_at(head.length);
        frames.push((head.kind, head.stream, payload.to_vec()));
        rest = after;
    }
    assert!(rest.is_empty());
    frames
}

fn resets(server: &Server) -> Vec<(u32, Reason)> {
    let frames = written(server).into_iter();
    let resets = frames.filter(|(kind, ..)| *kind == frame::RST_STREAM);
    let reason = |payload: Vec<u8>| Reason::new(u32::from_be_bytes(payload.try_into().unwrap()));
    resets
        .map(|(_, stream, payload)| (stream, reason(payload)))
        .collect()
}

fn ended_by(server: &Server, bytes: &[u8]) -> Reason {
    let ConnectionError { reason, .. } = server.receive(bytes).unwrap_err();
    let (kind, _, payload) = written(server).pop().unwrap();
    assert_eq!(
        (kind, &payload[4..]),
        (frame::GOAWAY, &reason.code().to_be_bytes()[..])
    );
    reason
}

fn next(body: &mut Body) -> Poll<Option<Result<Frame<Bytes>, StreamOver>>> {
    Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop()))
}

/// All that has come of a body: its data and trailers.
fn taken(body: &mut Body) -> (Vec<u8>, Option<HeaderMap>) {
    let mut data = Vec::new();
    while let Poll::Ready(Some(frame)) = next(body) {
        match frame.unwrap().into_data() {
            Ok(piece) => data.extend_from_slice(&piece),
            Err(frame) => return (data, frame.into_trailers().ok()),
        }
    }
    (data, None)
}

fn finish(answer: Answer) {
    answer
        .send_head(StatusCode::OK, &HeaderMap::new(), None, true)
        .unwrap();
}

proptest! {
    #[test]
    fn requests_come_however_they_are_cut(piece in 1usize..200, padding in 0u8..20) {
        let padded = [&[padding][..], b"lo", &vec![0; usize::from(padding)]].concat();
        let bytes = [
            get(1),
            frame(frame::HEADERS, 0, 3, &POST[..2]),
            frame(frame::CONTINUATION, frame::END_HEADERS, 3, &POST[2..]),
            frame(frame::DATA, 0, 3, b"hel"),
            frame(77, 0, 3, b"of a kind that nobody knows"),
            frame(frame::DATA, frame::PADDED, 3, &padded),
            frame(frame::HEADERS, frame::END_HEADERS | frame::END_STREAM, 3, b"\x00\x01t\x01v"),
        ];
        let server = server();
        for bytes in bytes.concat().chunks(piece) {
            server.receive(bytes).unwrap();
        }
        let Request { head, body, answer } = server.next_request().unwrap();
        prop_assert_eq!((head.method.as_str(), head.uri.to_string()), ("GET", "http://a/".to_owned()));
        prop_assert!(body.is_end_stream());
        finish(answer);
        let Request { head, mut body, answer } = server.next_request().unwrap();
        prop_assert_eq!(head.method.as_str(), "POST");
        prop_assert!(server.next_request().is_none());
        let (data, trailers) = taken(&mut body);
        prop_assert_eq!(data, b"hello");
        prop_assert_eq!(&trailers.unwrap()["t"], "v");
        prop_assert!(body.is_end_stream());
        finish(answer);
        drop(body);
        let frames: Vec<_> = written(&server).into_iter().map(|(kind, stream, _)| (kind, stream)).collect();
        prop_assert_eq!(frames, [(frame::HEADERS, 1), (frame::HEADERS, 3)]);
    }

    #[test]
    fn no_bytes_are_too_odd(frames in proptest::collection::vec(
        (0u8..11, any::<u8>(), 0u32..12, proptest::collection::vec(any::<u8>(), 0..40)), 0..40)
    ) {
        let server = server();
        let mut held = Vec::new();
        for (kind, flags, stream, payload) in frames {
            if server.receive(&frame(kind, flags, stream, &payload)).is_err() {
                break;
            }
            while let Some(Request { mut body, answer, .. }) = server.next_request() {
                let _ = next(&mut body);
                held.push((body, answer));
            }
            if held.len() > 3 {
                held.remove(0);
            }
        }
        drop(held);
        written(&server);
    }
}

#[test]
fn what_is_dropped_is_reset_and_what_is_unread_is_given_back() {
    let server = server();
    server
        .receive(&[get(1), post(3), post(5)].concat())
        .unwrap();
    let [first, second, third] = [(); 3].map(|()| server.next_request().unwrap());
    drop(first.answer);
    assert_eq!(resets(&server), [(1, Reason::CANCEL)]);
    // An answer before the end of the body: the client need not send the rest.
    finish(second.answer);
    assert_eq!(resets(&server), []);
    drop(second.body);
    assert_eq!(resets(&server), [(3, Reason::NO_ERROR)]);
    // 40,000 bytes that nobody reads are not the connection's loss, nor those that come later.
    let data: Vec<u8> = (0..4)
        .flat_map(|_| frame(frame::DATA, 0, 5, &[0; 10_000]))
        .collect();
    server.receive(&data).unwrap();
    assert_eq!(written(&server), []);
    drop(third.body);
    let more = 40_000u32.to_be_bytes().to_vec();
    assert_eq!(written(&server), [(frame::WINDOW_UPDATE, 0, more)]);
    server.receive(&data[..2 * 10_009]).unwrap();
    // But the stream's own window is not opened again.
    assert_eq!(
        ended_or_reset(&server, &frame(frame::DATA, 0, 5, &[0; 10_000])),
        [(5, Reason::FLOW_CONTROL_ERROR)]
    );
}

fn ended_or_reset(server: &Server, bytes: &[u8]) -> Vec<(u32, Reason)> {
    server.receive(bytes).unwrap();
    resets(server)
}

#[test]
fn windows_bound_what_is_sent() {
    let server = server();
    server
        .receive(&[get(1), settings(frame::INITIAL_WINDOW_SIZE, 10)].concat())
        .unwrap();
    let Request { answer, .. } = server.next_request().unwrap();
    answer
        .send_head(StatusCode::OK, &HeaderMap::new(), None, false)
        .unwrap();
    assert_eq!(answer.room(), Ok(Room::Bytes(10)));
    answer
        .send_data(Bytes::from_static(b"12345678"), false)
        .unwrap();
    assert_eq!(answer.room(), Ok(Room::Bytes(2)));
    // Less than nothing (6.9.2).
    server
        .receive(&settings(frame::INITIAL_WINDOW_SIZE, 0))
        .unwrap();
    assert_eq!(answer.room(), Ok(Room::NoWindow));
    server
        .receive(&frame(frame::WINDOW_UPDATE, 0, 1, &9u32.to_be_bytes()))
        .unwrap();
    assert_eq!(answer.room(), Ok(Room::Bytes(1)));
    server.receive(&reset(1)).unwrap();
    assert_eq!(answer.room(), Err(StreamOver(Reason::CANCEL)));
}

#[test]
fn a_full_output_is_for_one_after_the_other() {
    let server = server();
    let wide = settings(frame::INITIAL_WINDOW_SIZE, 100_000);
    let wider = frame(frame::WINDOW_UPDATE, 0, 0, &1_000_000u32.to_be_bytes());
    server
        .receive(&[wide, wider, get(1), get(3), get(5)].concat())
        .unwrap();
    let requests = [(); 3].map(|()| server.next_request().unwrap());
    let [first, second, third] = requests.map(|request| request.answer);
    first.send_data(vec![1; 70_000].into(), false).unwrap();
    second.send_data(vec![2; 70_000].into(), false).unwrap();
    assert_eq!(third.room(), Ok(Room::NoOutput));
    let mut context = Context::from_waker(Waker::noop());
    let mut waits = [&third, &first].map(|answer| Box::pin(answer.output()));
    for wait in &mut waits {
        assert!(wait.as_mut().poll(&mut context).is_pending());
    }
    assert!(!server.wake_next());
    written(&server);
    assert!(server.wake_next());
    assert!(waits[0].as_mut().poll(&mut context).is_ready());
    assert!(waits[1].as_mut().poll(&mut context).is_pending());
    assert!(server.wake_next() && !server.wake_next());
    assert!(waits[1].as_mut().poll(&mut context).is_ready());
}

#[test]
fn an_end_in_good_order() {
    let server = server();
    server.receive(&get(1)).unwrap();
    let request = server.next_request().unwrap();
    server.end_gracefully();
    server.end_gracefully();
    let frames = written(&server);
    assert_eq!(
        frames[0],
        (
            frame::GOAWAY,
            0,
            [&frame::LARGEST.to_be_bytes()[..], &[0; 4]].concat()
        )
    );
    let (kind, _, farewell) = &frames[1];
    assert_eq!((*kind, frames.len()), (frame::PING, 2));
    // A request that was under way is answered, a later one is not.
    server.receive(&get(3)).unwrap();
    server
        .receive(&frame(frame::PING, frame::ACK, 0, farewell))
        .unwrap();
    assert_eq!(
        written(&server),
        [(frame::GOAWAY, 0, vec![0, 0, 0, 3, 0, 0, 0, 0])]
    );
    server.receive(&get(5)).unwrap();
    finish(server.next_request().unwrap().answer);
    assert!(server.next_request().is_none() && !server.has_ended());
    finish(request.answer);
    assert!(server.has_ended());
}

#[test]
fn single_bytes_are_kept_together() {
    let server = server();
    let bytes = frame(frame::DATA, 0, 1, b"a").repeat(2000);
    server.receive(&[post(1), bytes].concat()).unwrap();
    let mut request = server.next_request().unwrap();
    let body = &mut request.body;
    let Poll::Ready(Some(Ok(first))) = next(body) else {
        panic!("nothing has come");
    };
    assert_eq!(first.data_ref().unwrap().len(), 512);
    assert_eq!(taken(body).0.len(), 2000 - 512);
}
