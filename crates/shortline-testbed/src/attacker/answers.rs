//! Reads the responses of a pipelined connection as far as the attacker needs: where each begins and
//! ends (RFC 9112, 6.3), its status, and the length of its body.
//!
//! It understands only bodies with a `Content-Length`, which is how servers send files and ranges.

use thiserror::Error;

/// A longer head is an error.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// What a piece of the stream contained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Bytes of bodies with status 200 or 206.
    pub body_bytes: u64,
    /// Responses that ended in this piece.
    pub answered: u64,
    /// Responses with another status that began in this piece.
    pub refused: u64,
}

/// Why bytes are not a response.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AnswerError {
    /// A head that does not end.
    #[error("a head of more than {HEAD_BYTES_MAX} bytes")]
    LongHead,
    /// A head that cannot be understood.
    #[error("a head without status or length: {0}")]
    Head(String),
}

/// The position within the responses of a connection.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// The head so far, while one is read.
    head: Vec<u8>,
    body: Option<Body>,
}

#[derive(Clone, Copy, Debug)]
struct Body {
    left: u64,
    counts: bool,
}

impl Answers {
    /// Takes the next bytes of the connection and returns what they contained.
    ///
    /// # Errors
    /// If they are not responses.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<Counted, AnswerError> {
        let mut counted = Counted::default();
        while !bytes.is_empty() {
            if self.body.is_none() {
                bytes = self.take_head(bytes, &mut counted)?;
            }
            if let Some(body) = &mut self.body {
                let here = body.left.min(bytes.len() as u64);
                body.left -= here;
                counted.body_bytes += if body.counts { here } else { 0 };
                bytes = &bytes[here as usize..];
                if body.left == 0 {
                    counted.answered += 1;
                    self.body = None;
                }
            }
        }
        Ok(counted)
    }

    /// Consumes the bytes of a head and leaves those after it.
    fn take_head<'a>(
        &mut self,
        bytes: &'a [u8],
        counted: &mut Counted,
    ) -> Result<&'a [u8], AnswerError> {
        const END: &[u8] = b"\r\n\r\n";
        let before = self.head.len();
        self.head.extend_from_slice(bytes);
        // The empty line may have begun in earlier bytes.
        let from = before.saturating_sub(END.len() - 1);
        let end = self.head[from..]
            .windows(END.len())
            .position(|window| window == END)
            .map(|place| from + place + END.len());
        let Some(end) = end else {
            return if self.head.len() > HEAD_BYTES_MAX {
                Err(AnswerError::LongHead)
            } else {
                Ok(&[])
            };
        };
        self.head.truncate(end);
        let (status, left) = parse(&self.head)?;
        self.head.clear();
        let counts = matches!(status, 200 | 206);
        counted.refused += u64::from(!counts);
        self.body = Some(Body { left, counts });
        Ok(&bytes[end - before..])
    }
}

/// The status, and the length of the body.
fn parse(head: &[u8]) -> Result<(u16, u64), AnswerError> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let status = first
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3)?.parse().ok());
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse().ok()).flatten()
    });
    let wrong = || AnswerError::Head(first.chars().take(60).collect());
    status.zip(length).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const THREE: &[u8] = b"HTTP/1.1 206 Partial Content\r\nContent-Length: 3\r\n\r\nabc\
        HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy\
        HTTP/1.1 200 OK\r\nContent-Length: 2\r\nServer: x\r\n\r\nde";

    #[test]
    fn responses_are_told_apart_however_they_are_cut() {
        let whole = Counted {
            body_bytes: 5,
            answered: 3,
            refused: 1,
        };
        for length in 1..=THREE.len() {
            let mut answers = Answers::default();
            let mut sum = Counted::default();
            for bytes in THREE.chunks(length) {
                let counted = answers.take(bytes).unwrap();
                sum.body_bytes += counted.body_bytes;
                sum.answered += counted.answered;
                sum.refused += counted.refused;
            }
            assert_eq!(sum, whole, "cut to {length}");
        }
    }

    #[test]
    fn an_empty_body_ends_with_its_head() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nH";
        let counted = Answers::default().take(head).unwrap();
        assert_eq!(counted.answered, 1);
    }

    #[test]
    fn what_is_no_response_is_refused() {
        let take = |bytes: &[u8]| Answers::default().take(bytes).unwrap_err().to_string();
        assert!(take(b"HTTP/1.1 200 OK\r\n\r\n").contains("HTTP/1.1 200 OK"));
        assert!(take(b"hello\r\nContent-Length: 1\r\n\r\n").contains("hello"));
        assert!(take(&vec![b'x'; HEAD_BYTES_MAX + 1]).contains("a head of more"));
    }
}
