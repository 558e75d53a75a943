//! Reads the session changes in an OK packet (MySQL's source documentation, "OK_Packet", "Session State
//! Information"). Also makes the packet without them, for clients that have not asked for them.

use crate::mysql::value;

/// The status flag for changes. [`Tracked`] follows.
const STATE_CHANGED: u16 = 0x4000;
const VARIABLES: u8 = 0;
const SCHEMA: u8 = 1;
const STATE: u8 = 2;
const CHARACTERISTICS: u8 = 4;
const TRANSACTION: u8 = 5;
/// The last letter of a transaction's state if tables are locked.
const LOCKED: u8 = b'L';

/// The changes of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tracked {
    /// The names of the variables that were set.
    pub variables: Vec<Box<[u8]>>,
    /// The database that the session is in now, if it changed. An empty name means no database.
    pub schema: Option<Box<[u8]>>,
    /// Whether any state has changed, reported by name or not.
    pub state: bool,
    /// Whether the next or open transaction has properties of its own, if that changed.
    pub has_characteristics: Option<bool>,
    /// Whether tables are locked, if the state of the transaction changed.
    pub has_locks: Option<bool>,
}

/// An OK packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ok {
    /// The number from AUTO_INCREMENT, or 0.
    pub insert_id: u64,
    /// The changes that it reports.
    pub tracked: Tracked,
    /// The same payload without the changes.
    pub plain: Vec<u8>,
}

impl Ok {
    /// Reads the payload of an OK packet, also of one that ends rows. None if it is malformed.
    pub fn read(payload: &[u8]) -> Option<Self> {
        let rest = &mut payload.get(1..)?;
        value::length_encoded(rest)?;
        let insert_id = value::length_encoded(rest)?;
        let status_at = payload.len() - rest.len();
        let status = value::integer(rest, 2)? as u16;
        // Warnings.
        value::integer(rest, 2)?;
        let mut plain = payload[..payload.len() - rest.len()].to_vec();
        plain[status_at..status_at + 2].copy_from_slice(&(status & !STATE_CHANGED).to_le_bytes());
        let mut tracked = Tracked::default();
        if !rest.is_empty() {
            let before = *rest;
            let info = value::length_encoded_bytes(rest)?;
            if !info.is_empty() {
                plain.extend_from_slice(&before[..before.len() - rest.len()]);
            }
            if status & STATE_CHANGED != 0 {
                tracked = Tracked::read(value::length_encoded_bytes(rest)?)?;
            }
        }
        Some(Self {
            insert_id,
            tracked,
            plain,
        })
    }
}

impl Tracked {
    fn read(mut data: &[u8]) -> Option<Self> {
        let mut tracked = Self::default();
        while !data.is_empty() {
            let kind = value::byte(&mut data)?;
            let body = &mut value::length_encoded_bytes(&mut data)?;
            match kind {
                VARIABLES => {
                    while !body.is_empty() {
                        tracked
                            .variables
                            .push(value::length_encoded_bytes(body)?.into());
                        value::length_encoded_bytes(body)?;
                    }
                }
                SCHEMA => tracked.schema = Some(value::length_encoded_bytes(body)?.into()),
                STATE => tracked.state = true,
                CHARACTERISTICS => {
                    let text = value::length_encoded_bytes(body)?;
                    tracked.has_characteristics = Some(!text.is_empty());
                }
                TRANSACTION => {
                    let state = value::length_encoded_bytes(body)?;
                    tracked.has_locks = Some(state.last() == Some(&LOCKED));
                }
                _ => {}
            }
        }
        Some(tracked)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// A packet as MariaDB 10.11 sends it.
    #[test]
    fn changes_are_read_and_left_out() {
        let packet = b"\0\0\x07\x02\x40\x01\0\0\x25\
            \0\x0f\x0aautocommit\x03OFF\
            \x01\x05\x04shop\
            \x02\x01\x31\
            \x05\x09\x08_______L\
            \x04\x01\0";
        let mut packet = packet.to_vec();
        packet[8] = (packet.len() - 9) as u8;
        let ok = Ok::read(&packet).unwrap();
        assert_eq!(ok.insert_id, 7);
        assert_eq!(ok.plain, b"\0\0\x07\x02\0\x01\0");
        let tracked = Tracked {
            variables: vec![b"autocommit".as_slice().into()],
            schema: Some(b"shop".as_slice().into()),
            state: true,
            has_characteristics: Some(false),
            has_locks: Some(true),
        };
        assert_eq!(ok.tracked, tracked);
    }

    #[test]
    fn a_packet_without_changes_keeps_its_text() {
        let packet = b"\0\x01\0\x02\0\0\0\x03abc";
        assert_eq!(Ok::read(packet).unwrap().plain, packet);
        assert_eq!(
            Ok::read(b"\0\x01\0\x02\0\0\0\0").unwrap().plain,
            b"\0\x01\0\x02\0\0\0"
        );
        assert_eq!(Ok::read(b"\0\x01"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(ok) = Ok::read(&bytes) {
                prop_assert!(ok.plain.len() <= bytes.len());
                prop_assert_eq!(Ok::read(&ok.plain).unwrap().plain, ok.plain);
            }
            let changed = [b"\0\0\0\0\x40\0\0\0\x40", &bytes[..]].concat();
            Ok::read(&changed);
        }
    }
}
