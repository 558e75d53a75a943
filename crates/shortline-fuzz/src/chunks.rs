//! Chunked bodies. The result does not depend on how the bytes are cut, and what is accepted is
//! exactly what its sizes say.

use shortline_web::chunked::{ChunkError, Chunked};

/// A body after a byte that says into how many pieces it is cut.
pub fn body(bytes: &[u8]) {
    let Some((cut, body)) = bytes.split_first() else {
        return;
    };
    let whole = read(&mut Chunked::default(), body);
    let mut pieces = Chunked::default();
    let mut passed = 0;
    for piece in body.chunks(usize::from(*cut).max(1)) {
        match read(&mut pieces, piece) {
            Ok(None) => passed += piece.len(),
            Ok(Some(bytes)) => {
                assert_eq!(whole, Ok(Some(passed + bytes)));
                return hold(&body[..passed + bytes]);
            }
            Err(error) => return assert_eq!(whole, Err(error)),
        }
    }
    assert_eq!(whole, Ok(None));
}

/// Reads on. `Some(n)`: the body ends after `n` of `bytes`.
fn read(chunked: &mut Chunked, bytes: &[u8]) -> Result<Option<usize>, ChunkError> {
    let mut at = 0;
    while at < bytes.len() && !chunked.has_ended() {
        at += chunked.next(&bytes[at..])?.bytes();
    }
    Ok(chunked.has_ended().then_some(at))
}

/// Decodes a body in the plainest way, to check that it ends where it was said to.
fn hold(body: &[u8]) {
    let mut rest = body;
    loop {
        let line = line(&mut rest);
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit());
        let digits: String = digits.map(|byte| char::from(*byte)).collect();
        let size = u64::from_str_radix(&digits, 16).expect("a size is a number");
        let extensions = &line[digits.len()..];
        assert!(!extensions.ends_with(b";") && !extensions.ends_with(b" "));
        if size == 0 {
            break;
        }
        let (_data, after) = rest.split_at(size as usize);
        rest = after.strip_prefix(b"\r\n").expect("data ends with CRLF");
    }
    while !line(&mut rest).is_empty() {}
    assert!(rest.is_empty(), "the body ends where it was said to");
}

/// The next line. Only CRLF ends it.
fn line<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let end = rest.windows(2).position(|window| window == b"\r\n");
    let (line, after) = rest.split_at(end.expect("a line ends with CRLF"));
    assert!(!line.contains(&b'\r') && !line.contains(&b'\n'));
    *rest = &after[2..];
    line
}
