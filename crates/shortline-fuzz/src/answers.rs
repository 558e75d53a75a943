//! What a backend answers over HTTP/1.1. The result does not depend on how the bytes are cut into pieces, no more is taken than
//! the head, and its framing fields say one thing.

use bytes::BytesMut;
use http::Method;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use shortline_web::chunked::{Chunked, Part};
use shortline_web::message::memory::Memory;
use shortline_web::proxy::http1::head::{Extent, Head, read};

const LIMITS: (usize, usize) = (2048, 32);

/// Where to cut, and then what the backend sends.
pub fn answer(bytes: &[u8]) {
    let Some((cut, sent)) = bytes.split_first() else {
        return;
    };
    let cut = usize::from(*cut).min(sent.len());
    let mut whole = BytesMut::from(sent);
    let at_once = read(&mut whole, &Method::GET, LIMITS, &mut Memory::default());
    if let Err(error) = &at_once {
        super::assert_one_line(error);
    }
    let mut pieces = BytesMut::from(&sent[..cut]);
    let in_pieces = match read(&mut pieces, &Method::GET, LIMITS, &mut Memory::default()) {
        Ok(None) => {
            pieces.extend_from_slice(&sent[cut..]);
            read(&mut pieces, &Method::GET, LIMITS, &mut Memory::default())
        }
        Ok(Some(head)) => {
            pieces.extend_from_slice(&sent[cut..]);
            Ok(Some(head))
        }
        Err(error) => Err(error),
    };
    let (Ok(Some(head)), Ok(Some(again))) = (at_once, in_pieces) else {
        return;
    };
    assert_eq!(whole, pieces, "what follows the head stays");
    assert_eq!(head.headers, again.headers);
    hold(&head);
    if head.extent == Extent::Chunks {
        assert_eq!(data(&whole, whole.len()), data(&whole, cut));
    }
}

fn hold(head: &Head) {
    assert!(head.headers.len() <= LIMITS.1);
    let lengths = head.headers.get_all(CONTENT_LENGTH).iter().count();
    match head.extent {
        Extent::Chunks => assert!(head.headers.contains_key(TRANSFER_ENCODING) && lengths == 0),
        Extent::Rest => assert!(lengths == 0 && !head.keeps),
        Extent::Length(_) => {}
    }
}

/// The data of a chunked body, and whether it has ended. `None`: it is malformed.
fn data(body: &[u8], piece_bytes: usize) -> Option<(Vec<u8>, bool)> {
    let (mut grammar, mut data) = (Chunked::of_backend(), Vec::new());
    for piece in body.chunks(piece_bytes.max(1)) {
        let mut left = piece;
        while !left.is_empty() && !grammar.has_ended() {
            let part = grammar.next(left).ok()?;
            let (taken, rest) = left.split_at(part.bytes());
            if let Part::Data(_) = part {
                data.extend_from_slice(taken);
            }
            left = rest;
        }
    }
    Some((data, grammar.has_ended()))
}
