//! Finds the messages in a stream of bytes, in place (MySQL's source documentation, "MySQL
//! Packets"). A packet is a three-byte length, a sequence number and a payload. A payload of 2^24 -
//! 1 bytes continues in the next packet, and all such packets are one message.
//!
//! The scanner returns the length of a message's first packet and its first bytes, at most
//! [`START_BYTES`]. It only counts the rest.

/// Length and sequence number.
pub const HEADER_BYTES: usize = 4;
/// The payload of a packet that continues in the next one.
pub const PAYLOAD_BYTES_MAX: u32 = 0xff_ffff;
/// The most bytes of a message that are shown: an OK packet up to its status flags.
pub const START_BYTES: usize = 24;

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The length of the payload.
    pub payload_bytes: u32,
    /// The number of the packet in its exchange, modulo 256.
    pub sequence: u8,
}

impl Header {
    /// Reads a header.
    pub fn parse(bytes: [u8; HEADER_BYTES]) -> Self {
        let [low, middle, high, sequence] = bytes;
        Self {
            payload_bytes: u32::from_le_bytes([low, middle, high, 0]),
            sequence,
        }
    }

    /// The header at the front of `bytes`, if it is whole.
    pub fn first_of(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().map(|header| Self::parse(*header))
    }

    /// The header as bytes.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let [low, middle, high, _] = self.payload_bytes.to_le_bytes();
        [low, middle, high, self.sequence]
    }
}

/// A packet with this payload.
pub fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    debug_assert!(payload.len() < PAYLOAD_BYTES_MAX as usize);
    let header = Header {
        payload_bytes: payload.len() as u32,
        sequence,
    };
    [&header.to_bytes(), payload].concat()
}

/// What a [`Scanner`] has found.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// A message begins.
    Start {
        /// The length of its first packet's payload.
        payload_bytes: u32,
        /// The first bytes of that payload: [`START_BYTES`] of them, or all.
        start: &'a [u8],
    },
    /// The message is complete.
    End,
}

/// Scans a stream that comes in pieces, cut anywhere.
#[derive(Debug, Default)]
pub struct Scanner {
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    start: [u8; START_BYTES],
    start_bytes: usize,
    state: State,
    /// The sequence number of the last packet.
    sequence: u8,
    message_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// A message has ended. The header of the next one is incomplete.
    #[default]
    Between,
    /// The header of a message's further packet is incomplete.
    Further,
    /// The first bytes of a message are still to be shown.
    Start(u32),
    /// Payload that is only counted.
    Rest { left: u32, goes_on: bool },
}

impl Scanner {
    /// Whether everything so far was complete messages.
    pub fn is_between_messages(&self) -> bool {
        self.state == State::Between && self.header_bytes == 0
    }

    /// The sequence number of the last packet.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// The bytes of the current message's payload that its packets have announced so far.
    pub fn message_bytes(&self) -> u64 {
        self.message_bytes
    }

    /// Moves `at` past the next start of a message whose first bytes have come, or to the next end.
    /// Returns `None` when `bytes` end before that; `at` is then their end.
    pub fn next<'a>(&'a mut self, bytes: &'a [u8], at: &mut usize) -> Option<Found<'a>> {
        loop {
            match self.state {
                State::Between | State::Further => {
                    let header = self.take_header(bytes, at)?;
                    self.begin_packet(header);
                }
                State::Start(payload_bytes) => return self.take_start(bytes, at, payload_bytes),
                State::Rest { left, goes_on } => {
                    let taken = (bytes.len() - *at).min(left as usize);
                    *at += taken;
                    let left = left - taken as u32;
                    self.state = State::Rest { left, goes_on };
                    if left > 0 {
                        return None;
                    }
                    if !goes_on {
                        self.state = State::Between;
                        return Some(Found::End);
                    }
                    self.state = State::Further;
                }
            }
        }
    }

    fn take_header(&mut self, bytes: &[u8], at: &mut usize) -> Option<Header> {
        let taken = (bytes.len() - *at).min(HEADER_BYTES - self.header_bytes);
        self.header[self.header_bytes..self.header_bytes + taken]
            .copy_from_slice(&bytes[*at..*at + taken]);
        self.header_bytes += taken;
        *at += taken;
        (self.header_bytes == HEADER_BYTES).then(|| Header::parse(self.header))
    }

    fn begin_packet(&mut self, header: Header) {
        self.header_bytes = 0;
        self.sequence = header.sequence;
        if self.state == State::Further {
            self.message_bytes += u64::from(header.payload_bytes);
            self.state = rest(header.payload_bytes, 0);
        } else {
            self.message_bytes = u64::from(header.payload_bytes);
            self.start_bytes = 0;
            self.state = State::Start(header.payload_bytes);
        }
    }

    fn take_start<'a>(
        &'a mut self,
        bytes: &'a [u8],
        at: &mut usize,
        payload_bytes: u32,
    ) -> Option<Found<'a>> {
        let wanted = START_BYTES.min(payload_bytes as usize);
        let come = &bytes[*at..];
        if self.start_bytes == 0 && come.len() >= wanted {
            *at += wanted;
            self.state = rest(payload_bytes, wanted as u32);
            return Some(Found::Start {
                payload_bytes,
                start: &come[..wanted],
            });
        }
        let taken = come.len().min(wanted - self.start_bytes);
        self.start[self.start_bytes..self.start_bytes + taken].copy_from_slice(&come[..taken]);
        self.start_bytes += taken;
        *at += taken;
        if self.start_bytes < wanted {
            return None;
        }
        self.state = rest(payload_bytes, wanted as u32);
        Some(Found::Start {
            payload_bytes,
            start: &self.start[..wanted],
        })
    }
}

fn rest(payload_bytes: u32, seen: u32) -> State {
    State::Rest {
        left: payload_bytes - seen,
        goes_on: payload_bytes == PAYLOAD_BYTES_MAX,
    }
}

/// Renumbers the packets of a stream. A client that compresses may count frames, while a server
/// without compression counts packets.
#[derive(Debug, Default)]
pub struct Renumbering {
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    left: u32,
    next: u8,
}

impl Renumbering {
    /// Gives the next packet this number.
    pub fn begin(&mut self, next: u8) {
        self.next = next;
    }

    /// Renumbers the packets in a stream's next bytes.
    pub fn apply(&mut self, bytes: &mut [u8]) {
        let mut at = 0;
        while at < bytes.len() {
            if self.left > 0 {
                let taken = (bytes.len() - at).min(self.left as usize);
                self.left -= taken as u32;
                at += taken;
                continue;
            }
            self.header[self.header_bytes] = bytes[at];
            self.header_bytes += 1;
            if self.header_bytes == HEADER_BYTES {
                bytes[at] = self.next;
                self.next = self.next.wrapping_add(1);
                self.left = Header::parse(self.header).payload_bytes;
                self.header_bytes = 0;
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The length and the shown bytes of each complete message in `pieces`.
    fn found(pieces: &[&[u8]]) -> Vec<(u64, Vec<u8>)> {
        let mut scanner = Scanner::default();
        let (mut messages, mut shown) = (Vec::new(), Vec::new());
        for piece in pieces {
            let mut at = 0;
            while let Some(found) = scanner.next(piece, &mut at) {
                match found {
                    Found::Start { start, .. } => shown = start.to_vec(),
                    Found::End => {
                        messages.push((scanner.message_bytes(), std::mem::take(&mut shown)));
                    }
                }
            }
            assert_eq!(at, piece.len());
        }
        messages
    }

    #[test]
    fn a_message_goes_on_behind_a_full_packet() {
        let full = vec![b'a'; PAYLOAD_BYTES_MAX as usize];
        let header = Header {
            payload_bytes: PAYLOAD_BYTES_MAX,
            sequence: 0,
        };
        let mut stream = [header.to_bytes().as_slice(), &full].concat();
        let whole = u64::from(PAYLOAD_BYTES_MAX);
        assert_eq!(found(&[&stream]), []);
        stream.extend(packet(1, b""));
        assert_eq!(found(&[&stream]), [(whole, vec![b'a'; START_BYTES])]);
        let cut = stream.len() - 2;
        assert_eq!(
            found(&[&stream[..cut], &stream[cut..], &packet(0, b"b")]),
            [(whole, vec![b'a'; START_BYTES]), (1, b"b".to_vec())]
        );
    }

    #[test]
    fn numbers_are_given_anew() {
        let mut stream = [packet(9, b"ab"), packet(9, b""), packet(0, b"c")].concat();
        let mut renumbering = Renumbering::default();
        renumbering.begin(255);
        let (front, back) = stream.split_at_mut(8);
        renumbering.apply(front);
        renumbering.apply(back);
        assert_eq!(
            stream,
            [packet(255, b"ab"), packet(0, b""), packet(1, b"c")].concat()
        );
    }

    proptest! {
        #[test]
        fn messages_are_found_however_the_stream_is_cut(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..12),
            cuts in prop::collection::vec(0..600_usize, 0..12),
        ) {
            let stream: Vec<u8> = payloads.iter().flat_map(|payload| packet(7, payload)).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|ends| &stream[ends[0]..ends[1]]).collect();
            let expected: Vec<(u64, Vec<u8>)> = payloads
                .iter()
                .map(|payload| {
                    let shown = payload[..payload.len().min(START_BYTES)].to_vec();
                    (payload.len() as u64, shown)
                })
                .collect();
            prop_assert_eq!(found(&pieces), expected);
        }

        #[test]
        fn any_bytes_are_walked_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            found(&[&bytes]);
        }
    }
}
