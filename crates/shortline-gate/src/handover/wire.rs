//! The connection between the two processes of a handover: frames of JSON with a length in front (four bytes,
//! most significant first), and file descriptors beside them (`SCM_RIGHTS`, unix(7)).
//!
//! JSON, so that a process of another version can read at least which version it is. Bytes of clients are base64.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::Interest;
use tokio::net::UnixStream;

use super::Message;

/// The largest frame, in bytes. A session with more prepared statements than that stays where it is.
pub const FRAME_BYTES_MAX: usize = 16 << 20;
/// The most file descriptors of one frame.
pub const FILES_MAX: usize = 64;
/// Descriptors that have come and belong to no frame yet: those of one frame, and of the next.
const FILES_WAITING_MAX: usize = 2 * FILES_MAX;
const LENGTH_BYTES: usize = 4;
/// What one read takes.
const READ_BYTES: usize = 64 << 10;

/// What goes wrong on the connection.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The socket's.
    #[error("the connection of the handover: {0}")]
    Io(#[from] io::Error),
    /// The other process has left.
    #[error("the other process has left")]
    Left,
    /// It says something that is no message.
    #[error("the other process says something that is no message of a handover: {0}")]
    Message(#[from] serde_json::Error),
    /// A frame that is too large.
    #[error("a frame of {0} bytes; at most {FRAME_BYTES_MAX} are read")]
    TooLarge(usize),
    /// More descriptors than anybody has a use for.
    #[error("more than {FILES_MAX} files in a frame")]
    TooManyFiles,
}

/// The two directions of a connection.
pub fn split(stream: UnixStream) -> (Sender, Receiver) {
    let stream = Arc::new(stream);
    let receiver = Receiver {
        stream: Arc::clone(&stream),
        received: Vec::new(),
        files: VecDeque::new(),
    };
    (Sender { stream }, receiver)
}

/// Sends frames.
#[derive(Debug)]
pub struct Sender {
    stream: Arc<UnixStream>,
}

impl Sender {
    /// Sends a message, and these files with it.
    ///
    /// # Errors
    /// [`WireError`]
    pub async fn send(
        &mut self,
        message: &Message,
        files: &[BorrowedFd<'_>],
    ) -> Result<(), WireError> {
        let frame = frame(message)?;
        if files.len() > FILES_MAX {
            return Err(WireError::TooManyFiles);
        }
        let (mut at, mut files) = (0, files);
        while at < frame.len() {
            let sending = || send_some(&self.stream, &frame[at..], files);
            at += self.stream.async_io(Interest::WRITABLE, sending).await?;
            files = &[];
        }
        Ok(())
    }
}

/// A message as it is sent.
///
/// # Errors
/// It is too large.
pub fn frame(message: &Message) -> Result<Vec<u8>, WireError> {
    let mut frame = vec![0; LENGTH_BYTES];
    serde_json::to_writer(&mut frame, message)?;
    let body_bytes = frame.len() - LENGTH_BYTES;
    let length = u32::try_from(body_bytes).unwrap_or(u32::MAX);
    if body_bytes > FRAME_BYTES_MAX {
        return Err(WireError::TooLarge(body_bytes));
    }
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
    Ok(frame)
}

fn send_some(socket: &UnixStream, bytes: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let sent = sendmsg(
        socket.as_fd(),
        &[IoSlice::new(bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    Ok(sent)
}

/// Receives frames.
#[derive(Debug)]
pub struct Receiver {
    stream: Arc<UnixStream>,
    received: Vec<u8>,
    files: VecDeque<OwnedFd>,
}

impl Receiver {
    /// The next message and the files that came with it. Dropped before it is ready it loses nothing.
    ///
    /// # Errors
    /// [`WireError`]
    pub async fn receive(&mut self) -> Result<(Message, Vec<OwnedFd>), WireError> {
        loop {
            if let Some(message) = take_frame(&mut self.received)? {
                // Descriptors come with a frame's first byte, and no read goes beyond a frame that has some.
                return Ok((message, self.files.drain(..).collect()));
            }
            let (received, files) = (&mut self.received, &mut self.files);
            let mut receiving = || receive_some(&self.stream, received, files);
            let read = self.stream.async_io(Interest::READABLE, &mut receiving);
            if read.await? == 0 {
                return Err(WireError::Left);
            }
            if self.files.len() > FILES_WAITING_MAX {
                return Err(WireError::TooManyFiles);
            }
        }
    }
}

/// The first message of what has come, once it has come whole.
///
/// # Errors
/// It is none.
pub fn take_frame(received: &mut Vec<u8>) -> Result<Option<Message>, WireError> {
    let Some((length, rest)) = received.split_first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let body_bytes = u32::from_be_bytes(*length) as usize;
    if body_bytes > FRAME_BYTES_MAX {
        return Err(WireError::TooLarge(body_bytes));
    }
    let Some(body) = rest.get(..body_bytes) else {
        return Ok(None);
    };
    let message = serde_json::from_slice(body)?;
    received.drain(..LENGTH_BYTES + body_bytes);
    Ok(Some(message))
}

/// How much more is to be read for the first frame: never more, so that the files of the next stay with it.
fn wanted(received: &[u8]) -> usize {
    let length = received.first_chunk::<LENGTH_BYTES>();
    let whole = length.map_or(LENGTH_BYTES, |length| {
        LENGTH_BYTES + u32::from_be_bytes(*length) as usize
    });
    whole.saturating_sub(received.len()).min(READ_BYTES)
}

fn receive_some(
    socket: &UnixStream,
    received: &mut Vec<u8>,
    files: &mut VecDeque<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = vec![0; wanted(received)];
    let read = recvmsg(
        socket.as_fd(),
        &mut [IoSliceMut::new(&mut bytes)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            files.extend(rights);
        }
    }
    received.extend_from_slice(&bytes[..read.bytes]);
    Ok(read.bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{Read, Write};

    use proptest::prelude::*;

    use super::*;

    fn pair() -> ((Sender, Receiver), (Sender, Receiver)) {
        let (one, other) = UnixStream::pair().unwrap();
        (split(one), split(other))
    }

    #[tokio::test]
    async fn each_frame_comes_with_its_own_files() {
        let ((mut sender, _), (_, mut receiver)) = pair();
        let (mut near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        sender.send(&Message::Ready, &[]).await.unwrap();
        sender.send(&Message::Go, &[far.as_fd()]).await.unwrap();
        sender.send(&Message::Taken, &[]).await.unwrap();
        drop((sender, far));
        let (message, files) = receiver.receive().await.unwrap();
        assert_eq!((message, files.len()), (Message::Ready, 0));
        let (message, mut files) = receiver.receive().await.unwrap();
        assert_eq!((message, files.len()), (Message::Go, 1));
        let mut came = std::os::unix::net::UnixStream::from(files.remove(0));
        came.write_all(b"x").unwrap();
        let mut byte = [0];
        near.read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"x");
        assert_eq!(receiver.receive().await.unwrap().0, Message::Taken);
        assert!(matches!(receiver.receive().await, Err(WireError::Left)));
    }

    #[test]
    fn what_is_no_frame_is_an_error_of_one_line() {
        let huge = (FRAME_BYTES_MAX as u32 + 1).to_be_bytes();
        for (bytes, says) in [
            (huge.to_vec(), "at most"),
            (b"\0\0\0\x03{}x".to_vec(), "no message"),
            (b"\0\0\0\x06\"Nope\"".to_vec(), "no message"),
        ] {
            let error = take_frame(&mut bytes.clone()).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_harm(bytes in prop::collection::vec(any::<u8>(), 0..300), length in 0..300_u32) {
            let mut framed = length.to_be_bytes().to_vec();
            framed.extend(&bytes);
            let _ = take_frame(&mut framed);
            let mut bytes = bytes;
            let _ = take_frame(&mut bytes);
            prop_assert!(wanted(&bytes) <= READ_BYTES);
        }
    }
}
