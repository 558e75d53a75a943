//! A response of the folder, as far as it is whole.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use rustix::fs::OFlags;

use super::entry::{HEAD_BYTES_MAX, Head, crc_of};
use super::index::Id;
use crate::files::OpenFile;
use crate::response_cache::store::Body;

/// Bytes read at a time to compare a checksum.
const READ_BYTES: usize = 64 << 10;

/// A response that was read.
pub struct Loaded {
    /// Its head.
    pub head: Head,
    /// Its body.
    pub body: Body,
}

/// The file of a response's head or body.
pub fn file_of(folder: &Path, id: Id, ending: &str) -> PathBuf {
    folder.join(format!("{:016x}.{ending}", id.0))
}

/// Opens a regular file for reading, and says how long it is.
pub fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    // A pipe must not hold the thread.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    match found.is_file() {
        true => Ok((file, found.len())),
        false => Err(io::Error::other("it is no regular file")),
    }
}

/// Reads a head.
pub fn read_head(path: &Path) -> io::Result<(Head, File, u64)> {
    let (file, bytes) = open_regular(path)?;
    let mut text = Vec::new();
    (&file)
        .take(HEAD_BYTES_MAX as u64 + 1)
        .read_to_end(&mut text)?;
    let head = Head::parse(&text).map_err(io::Error::other)?;
    Ok((head, file, bytes))
}

/// Reads the response of a variant, with its body up to so many bytes. A longer one is opened.
pub fn load(folder: &Path, id: Id, variant: &str, memory_bytes_max: u64) -> io::Result<Loaded> {
    let (head, head_file, _) = read_head(&file_of(folder, id, "head"))?;
    if head.variant != variant {
        return Err(io::Error::other("it is another's"));
    }
    let (file, bytes) = open_regular(&file_of(folder, id, "body"))?;
    if bytes != head.body.bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    // The order after a restart. Where it cannot be set, the order is that of writing.
    let _ = head_file.set_modified(SystemTime::now());
    let body = match bytes <= memory_bytes_max {
        true => Body::Memory(read_whole(file, &head)?),
        false => {
            if head.body.is_doubtful() {
                compare(&file, &head)?;
            }
            Body::File(Arc::new(OpenFile::on_disk(file.into(), bytes)))
        }
    };
    Ok(Loaded { head, body })
}

fn read_whole(file: File, head: &Head) -> io::Result<Bytes> {
    let mut body = Vec::new();
    file.take(head.body.bytes).read_to_end(&mut body)?;
    match body.len() as u64 == head.body.bytes && crc_of(&body) == head.body.crc {
        true => Ok(body.into()),
        false => Err(damaged()),
    }
}

fn compare(mut file: &File, head: &Head) -> io::Result<()> {
    let mut crc = flate2::Crc::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => crc.update(&buffer[..read]),
        }
    }
    match crc.sum() == head.body.crc {
        true => Ok(()),
        false => Err(damaged()),
    }
}

fn damaged() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "its body is not the one that was written",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::{HeaderMap, StatusCode};

    use super::super::entry::{BodyMark, boot};
    use super::*;

    /// Writes a response whose body was written after that start of the machine.
    fn write(folder: &Path, body: &[u8], boot: &str) -> Id {
        let head = Head {
            name: "a".to_owned(),
            variant: "a".to_owned(),
            varies: [].into(),
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            received: SystemTime::UNIX_EPOCH,
            body: BodyMark {
                bytes: 4,
                crc: crc_of(b"body"),
                boot: boot.to_owned(),
            },
        };
        std::fs::write(file_of(folder, Id(1), "head"), head.render().unwrap()).unwrap();
        std::fs::write(file_of(folder, Id(1), "body"), body).unwrap();
        Id(1)
    }

    #[test]
    fn a_body_is_compared_where_it_may_not_have_reached_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for (body, written_after, memory_bytes_max, is_whole) in [
            (b"body", "another start", 0, true),
            (b"b\0\0\0", "another start", 0, false),
            (b"b\0\0\0", boot(), 4, false),
            (b"body", boot(), 4, true),
        ] {
            let id = write(folder, body, written_after);
            let loaded = load(folder, id, "a", memory_bytes_max);
            assert_eq!(loaded.is_ok(), is_whole, "{body:?} {written_after}");
        }
        let id = write(folder, b"body", boot());
        assert!(load(folder, id, "b", 0).is_err(), "it is another's");
        write(folder, b"bod", boot());
        assert!(load(folder, id, "a", 0).is_err(), "it is cut");
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_holds_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = file_of(folder.path(), Id(1), "head");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert!(load(folder.path(), Id(1), "a", 0).is_err());
    }
}
