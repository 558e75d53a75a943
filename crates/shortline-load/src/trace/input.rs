//! The bytes of a trace: a file's or standard input's, unpacked if they are gzip (RFC 1952),
//! which its two magic bytes tell. Nothing is read ahead but these two, nothing seeks: a pipe
//! will do. Memory is for the window of the packing, however much comes out of it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

/// What begins gzip.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// How much is unpacked at a time, in bytes.
const UNPACKED_BYTES: usize = 64 * 1024;

/// The name that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Opens a file, or standard input for `-`.
pub(super) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    Ok(if is_standard_input(path) {
        Box::new(BufReader::new(io::stdin()))
    } else {
        Box::new(BufReader::new(File::open(path)?))
    })
}

/// What errors and titles call it.
pub fn name_of(path: &Path) -> &Path {
    if is_standard_input(path) {
        Path::new("standard input")
    } else {
        path
    }
}

fn is_standard_input(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT)
}

/// The stream as it is, or what is packed in it.
pub(super) fn unpacked<'a>(mut input: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let mut head = Vec::new();
    input
        .by_ref()
        .take(GZIP_MAGIC.len() as u64)
        .read_to_end(&mut head)?;
    let packed = head == GZIP_MAGIC;
    let whole = Cursor::new(head).chain(input);
    Ok(if packed {
        let members = Unpacked(MultiGzDecoder::new(whole));
        Box::new(BufReader::with_capacity(UNPACKED_BYTES, members))
    } else {
        Box::new(whole)
    })
}

/// Says of damaged gzip that it is.
struct Unpacked<R>(R);

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        self.0.read(buffer).map_err(|error| match error.kind() {
            UnexpectedEof => io::Error::new(UnexpectedEof, "gzip is cut short: want all of it"),
            InvalidData | InvalidInput => io::Error::new(
                error.kind(),
                format!("gzip is damaged ({error}): want what `gzip -t` takes"),
            ),
            _ => error,
        })
    }
}
