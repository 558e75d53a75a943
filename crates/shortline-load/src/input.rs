//! What a trace or records are read from: a file or standard input, unpacked if its magic bytes say that it
//! is gzip (RFC 1952) or zstd (RFC 8878). Nothing but these four is read ahead and nothing seeks, so
//! a pipe will do. Memory is bounded by the packer's window, however much is unpacked: 32 KiB, or
//! what zstd takes by default, 128 MiB.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

/// The magic bytes of gzip.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The magic bytes of a frame of zstd.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// How much is unpacked at a time, in bytes.
const UNPACKED_BYTES: usize = 64 * 1024;

/// The name that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Opens a file, or standard input for `-`.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    Ok(if is_standard_input(path) {
        Box::new(BufReader::new(io::stdin()))
    } else {
        Box::new(BufReader::new(File::open(path)?))
    })
}

/// Its name in errors and titles.
pub fn name_of(path: &Path) -> &Path {
    if is_standard_input(path) {
        Path::new("standard input")
    } else {
        path
    }
}

pub(crate) fn is_standard_input(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT)
}

/// The stream itself, or what is packed in it.
///
/// # Errors
/// Its beginning cannot be read or unpacked.
pub fn unpacked<'a>(mut input: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let mut head = Vec::new();
    input
        .by_ref()
        .take(ZSTD_MAGIC.len() as u64)
        .read_to_end(&mut head)?;
    let (is_gzip, is_zstd) = (head.starts_with(&GZIP_MAGIC), head == ZSTD_MAGIC);
    let whole = Cursor::new(head).chain(input);
    Ok(if is_gzip {
        let members = UnpackedGzip(MultiGzDecoder::new(whole));
        Box::new(BufReader::with_capacity(UNPACKED_BYTES, members))
    } else if is_zstd {
        let frames = UnpackedZstd(zstd::stream::read::Decoder::with_buffer(whole)?);
        Box::new(BufReader::with_capacity(UNPACKED_BYTES, frames))
    } else {
        Box::new(whole)
    })
}

/// Says that the gzip is damaged.
struct UnpackedGzip<R>(R);

impl<R: Read> Read for UnpackedGzip<R> {
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

/// Says that the zstd is damaged.
struct UnpackedZstd<R>(R);

impl<R: Read> Read for UnpackedZstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use io::ErrorKind::{Other, UnexpectedEof};
        self.0.read(buffer).map_err(|error| match error.kind() {
            UnexpectedEof => io::Error::new(UnexpectedEof, "zstd is cut short: want all of it"),
            Other => io::Error::other(format!(
                "zstd is damaged ({error}): want what `zstd -t` takes"
            )),
            _ => error,
        })
    }
}
