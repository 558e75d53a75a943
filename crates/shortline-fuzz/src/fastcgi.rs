//! What a FastCGI backend sends: records, and the head of a response in them.

use bytes::BytesMut;
use shortline_web::proxy::fastcgi::answer;
use shortline_web::proxy::fastcgi::record::{Decoder, Event, RecordError};

const FIELDS_MAX: usize = 100;

/// All that a connection brings. However it is cut, it is read as the same.
pub fn records(bytes: &[u8]) {
    let whole = read(bytes, bytes.len().max(1));
    assert_eq!(whole, read(bytes, 1));
    assert_eq!(whole, read(bytes, 7));
    let output = match whole {
        Ok((output, _)) => output,
        Err(error) => return crate::assert_one_line(&error),
    };
    match answer::parse(&output, FIELDS_MAX) {
        Ok(Some(head)) => {
            assert!(head.bytes <= output.len() && output[head.bytes - 1] == b'\n');
            assert!((200..600).contains(&head.status.as_u16()));
            assert!(head.headers.len() <= FIELDS_MAX && !head.headers.contains_key("status"));
            assert!(answer::length(&head.headers).is_ok());
        }
        Ok(None) => {}
        Err(error) => crate::assert_one_line(&error),
    }
}

/// The output, and how often the request ended.
fn read(bytes: &[u8], step: usize) -> Result<(Vec<u8>, usize), RecordError> {
    let (mut decoder, mut received) = (Decoder::default(), BytesMut::new());
    let (mut output, mut ends, mut said) = (Vec::new(), 0, 0);
    for piece in bytes.chunks(step) {
        received.extend_from_slice(piece);
        while let Some(event) = decoder.next(&mut received)? {
            match event {
                Event::Output(piece) => {
                    said += piece.len();
                    output.extend_from_slice(&piece);
                }
                Event::Complaint(piece) => said += piece.len(),
                Event::End(_) => ends += 1,
            }
        }
        assert!(received.len() < 8, "no more than a head is kept");
    }
    assert!(said <= bytes.len());
    Ok((output, ends))
}
