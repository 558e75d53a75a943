//! Packets of MySQL's protocol, and what stands in them.

use std::io;

use tokio::io::AsyncReadExt;

use crate::network::End;

/// The contents of a packet.
pub type Payload = Vec<u8>;
/// A row. `None` is NULL.
pub type Row = Vec<Option<Vec<u8>>>;
/// An error: its number, its SQLSTATE and its text.
pub type Failed = (u16, &'static str, String);

/// The first bytes of packets.
pub const OK: u8 = 0;
/// Of an error.
pub const ERR: u8 = 0xff;
/// Of the end of rows.
pub const EOF: u8 = 0xfe;

/// Capabilities: the protocol, transactions, methods of authentication.
const OPENING: u32 = 1 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 19;
/// A database follows in the client's answer.
pub const CONNECT_WITH_DB: u32 = 1 << 3;
/// Several statements in one text.
pub const MULTI_STATEMENTS: u32 = 1 << 16;
/// Several results of one command.
const MULTI_RESULTS: u32 = 1 << 17;
/// The method's answer has a length of any size before it.
const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
/// OK packets report what has changed.
pub const SESSION_TRACK: u32 = 1 << 23;
/// Rows end with an OK packet.
pub const DEPRECATE_EOF: u32 = 1 << 24;
/// What a client has besides what it chooses.
pub const OF_CLIENT: u32 = OPENING | MULTI_RESULTS | PLUGIN_AUTH_LENENC;
/// What the server has.
pub const OF_SERVER: u32 =
    OF_CLIENT | CONNECT_WITH_DB | MULTI_STATEMENTS | SESSION_TRACK | DEPRECATE_EOF;

/// A number of any size.
pub fn length_encoded(number: u64) -> Vec<u8> {
    let bytes = number.to_le_bytes();
    match number {
        0..=250 => vec![bytes[0]],
        251..=0xffff => [&[0xfc], &bytes[..2]].concat(),
        0x1_0000..=0xff_ffff => [&[0xfd], &bytes[..3]].concat(),
        _ => [&[0xfe], &bytes[..]].concat(),
    }
}

/// A text with its length before it.
pub fn text(bytes: &[u8]) -> Vec<u8> {
    [&length_encoded(bytes.len() as u64), bytes].concat()
}

/// An error's packet.
pub fn err((code, state, text): &Failed) -> Payload {
    let code = code.to_le_bytes();
    [
        &[ERR, code[0], code[1], b'#'],
        state.as_bytes(),
        text.as_bytes(),
    ]
    .concat()
}

/// The number of columns, and their definitions.
pub fn columns(count: usize) -> Vec<Payload> {
    let mut says = vec![length_encoded(count as u64)];
    says.extend(vec![definition(); count]);
    says
}

/// The definition of a column or of a parameter.
pub fn definition() -> Payload {
    b"\x03def\0\0\0\x01x\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0".to_vec()
}

/// A row of the text protocol, or of the binary one.
pub fn row(values: &Row, is_binary: bool) -> Payload {
    let mut payload = Vec::new();
    if is_binary {
        let mut nulls = vec![0; (values.len() + 9) / 8];
        for (at, _) in values
            .iter()
            .enumerate()
            .filter(|(_, value)| value.is_none())
        {
            nulls[(at + 2) / 8] |= 1 << ((at + 2) % 8);
        }
        payload.push(0);
        payload.extend(nulls);
    }
    for value in values {
        match value {
            Some(value) => payload.extend(text(value)),
            None if is_binary => {}
            None => payload.push(0xfb),
        }
    }
    payload
}

/// Packets with their headers, the first of them with this number.
pub fn framed(mut sequence: u8, payloads: &[Payload]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for payload in payloads {
        bytes.extend(shortline_gate::mysql::packet::packet(sequence, payload));
        sequence = sequence.wrapping_add(1);
    }
    bytes
}

/// Reads a packet: its number and its contents.
pub async fn read(end: &mut End) -> io::Result<(u8, Payload)> {
    let mut header = [0; 4];
    end.read_exact(&mut header).await?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
    let mut payload = vec![0; length as usize];
    end.read_exact(&mut payload).await?;
    Ok((header[3], payload))
}
