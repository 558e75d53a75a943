//! A message of several packets whose head has become longer on the way (MySQL's source documentation, "MySQL
//! Packets"). Each full packet stays full, so what no longer fits in it begins the next one.

use crate::mysql::packet::{Header, PAYLOAD_BYTES_MAX};

/// The message behind its head.
#[derive(Debug)]
pub struct Longer {
    /// By how many bytes it is longer.
    grows: usize,
    /// The bytes of the current packet that pass, and those behind them that begin the next one.
    passes: usize,
    stays: usize,
    carried: Vec<u8>,
    header: Vec<u8>,
}

/// The last packet would be full, and another one follow it. The server's answer would not have the number that the
/// client expects.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

impl Longer {
    /// Behind a head that replaces the first bytes of a full packet, and is longer by `grows`.
    pub fn new(replaced: usize, grows: usize) -> Self {
        Self {
            grows,
            passes: PAYLOAD_BYTES_MAX as usize - replaced - grows,
            stays: grows,
            carried: Vec::new(),
            header: Vec::new(),
        }
    }

    /// What goes to the server for the message's next bytes.
    ///
    /// # Errors
    /// [`TooLong`]
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<Vec<u8>, TooLong> {
        let mut said = Vec::with_capacity(bytes.len());
        while !bytes.is_empty() {
            let (left, to) = if self.passes > 0 {
                (&mut self.passes, &mut said)
            } else if self.stays > 0 {
                (&mut self.stays, &mut self.carried)
            } else {
                self.header.push(bytes[0]);
                bytes = &bytes[1..];
                self.begin(&mut said)?;
                continue;
            };
            let (taken, rest) = bytes.split_at(bytes.len().min(*left));
            *left -= taken.len();
            to.extend_from_slice(taken);
            bytes = rest;
        }
        Ok(said)
    }

    /// Begins the next packet, if its header has come whole.
    fn begin(&mut self, said: &mut Vec<u8>) -> Result<(), TooLong> {
        let Some(header) = Header::first_of(&self.header) else {
            return Ok(());
        };
        let payload_bytes = header.payload_bytes as usize;
        let (longer, stays) = match header.payload_bytes {
            PAYLOAD_BYTES_MAX => (payload_bytes, self.grows),
            _ => (payload_bytes + self.grows, 0),
        };
        if stays == 0 && longer >= PAYLOAD_BYTES_MAX as usize {
            return Err(TooLong);
        }
        let there = Header {
            payload_bytes: longer as u32,
            ..header
        };
        said.extend(there.to_bytes());
        said.append(&mut self.carried);
        self.passes = payload_bytes - stays;
        self.stays = stays;
        self.header.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::mysql::packet::HEADER_BYTES;

    const FULL: usize = PAYLOAD_BYTES_MAX as usize;

    /// The packets of a payload.
    fn packets(payload: &[u8]) -> Vec<u8> {
        let mut stream = Vec::new();
        for number in 0..=payload.len() / FULL {
            let part = &payload[number * FULL..payload.len().min((number + 1) * FULL)];
            let header = Header {
                payload_bytes: part.len() as u32,
                sequence: number as u8,
            };
            stream.extend(header.to_bytes());
            stream.extend(part);
        }
        stream
    }

    #[test]
    fn what_does_not_fit_any_more_begins_the_next_packet() {
        let (head, longer_head) = (b"head".as_slice(), b"longer head".as_slice());
        let grows = longer_head.len() - head.len();
        for length in [FULL - 4, FULL, 2 * FULL - 4, 2 * FULL + 7] {
            let body: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let before = packets(&[head, &body].concat());
            let after = packets(&[longer_head, &body].concat());
            for piece in [1000, 65_536, before.len()] {
                let mut longer = Longer::new(head.len(), grows);
                let mut said = after[..HEADER_BYTES + longer_head.len()].to_vec();
                for bytes in before[HEADER_BYTES + head.len()..].chunks(piece) {
                    said.extend(longer.take(bytes).unwrap());
                }
                assert!(said == after, "{length} bytes in pieces of {piece}");
            }
        }
        let body = vec![0; 2 * FULL - 5];
        let before = packets(&[head, &body].concat());
        let mut longer = Longer::new(head.len(), grows);
        let said = longer.take(&before[HEADER_BYTES + head.len()..]);
        assert_eq!(said, Err(TooLong));
    }
}
