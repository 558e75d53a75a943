//! Frames (RFC 9113 4.1, 6): their heads, and what ours look like.

use super::error::Reason;

/// The length of a frame's head.
pub const HEAD_BYTES: usize = 9;
/// The longest payload: we never allow a longer one (6.5.2).
pub const PAYLOAD_BYTES_MAX: usize = 16_384;
/// The largest stream, window and setting.
pub const LARGEST: u32 = 0x7fff_ffff;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const ACK: u8 = 0x1;
pub const END_STREAM: u8 = 0x1;
pub const END_HEADERS: u8 = 0x4;
pub const PADDED: u8 = 0x8;
pub const HAS_PRIORITY: u8 = 0x20;

pub const HEADER_TABLE_SIZE: u16 = 1;
pub const ENABLE_PUSH: u16 = 2;
pub const MAX_CONCURRENT_STREAMS: u16 = 3;
pub const INITIAL_WINDOW_SIZE: u16 = 4;
pub const MAX_FRAME_SIZE: u16 = 5;
pub const MAX_HEADER_LIST_SIZE: u16 = 6;

/// A frame's head.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
    /// 0: the connection.
    pub stream: u32,
}

impl Head {
    pub fn read(bytes: &[u8; HEAD_BYTES]) -> Self {
        let [high, middle, low, kind, flags, stream @ ..] = *bytes;
        Self {
            length: u32::from_be_bytes([0, high, middle, low]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & LARGEST,
        }
    }

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub fn bytes(&self) -> [u8; HEAD_BYTES] {
        let [_, high, middle, low] = (self.length as u32).to_be_bytes();
        let [a, b, c, d] = self.stream.to_be_bytes();
        [high, middle, low, self.kind, self.flags, a, b, c, d]
    }

    pub fn write(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.bytes());
    }
}

/// Writes a frame of four bytes: a reset, or more window.
fn write_four(kind: u8, stream: u32, payload: u32, into: &mut Vec<u8>) {
    let head = Head {
        length: 4,
        kind,
        flags: 0,
        stream,
    };
    head.write(into);
    into.extend_from_slice(&payload.to_be_bytes());
}

pub fn write_reset(stream: u32, reason: Reason, into: &mut Vec<u8>) {
    write_four(RST_STREAM, stream, reason.code(), into);
}

pub fn write_window_update(stream: u32, bytes: u32, into: &mut Vec<u8>) {
    write_four(WINDOW_UPDATE, stream, bytes, into);
}

pub fn write_settings(settings: &[(u16, u32)], into: &mut Vec<u8>) {
    let head = Head {
        length: 6 * settings.len(),
        kind: SETTINGS,
        flags: 0,
        stream: 0,
    };
    head.write(into);
    for (setting, value) in settings {
        into.extend_from_slice(&setting.to_be_bytes());
        into.extend_from_slice(&value.to_be_bytes());
    }
}

pub fn write_settings_ack(into: &mut Vec<u8>) {
    let head = Head {
        length: 0,
        kind: SETTINGS,
        flags: ACK,
        stream: 0,
    };
    head.write(into);
}

pub fn write_ping(flags: u8, payload: [u8; 8], into: &mut Vec<u8>) {
    let head = Head {
        length: payload.len(),
        kind: PING,
        flags,
        stream: 0,
    };
    head.write(into);
    into.extend_from_slice(&payload);
}

pub fn write_go_away(last_stream: u32, reason: Reason, into: &mut Vec<u8>) {
    let head = Head {
        length: 8,
        kind: GOAWAY,
        flags: 0,
        stream: 0,
    };
    head.write(into);
    into.extend_from_slice(&last_stream.to_be_bytes());
    into.extend_from_slice(&reason.code().to_be_bytes());
}
