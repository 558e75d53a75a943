//! Frames of HTTP/2 after the client's preface. However the bytes are cut, the same streams must be
//! reported.

use shortline_web::trailers::Frames;

/// Frames after a byte that says into how many pieces they are cut.
pub fn frames(bytes: &[u8]) {
    let Some((cut, frames)) = bytes.split_first() else {
        return;
    };
    let piece = usize::from(*cut).max(1);
    assert_eq!(told(frames, piece), told(frames, frames.len().max(1)));
}

fn told(bytes: &[u8], piece: usize) -> Vec<u32> {
    let mut frames = Frames::default();
    let mut streams = Vec::new();
    let preface = &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..];
    for bytes in std::iter::once(preface).chain(bytes.chunks(piece)) {
        let read = frames.read(bytes, |stream| {
            streams.push(stream);
            Ok(())
        });
        read.expect("who is told takes it");
    }
    streams
}
