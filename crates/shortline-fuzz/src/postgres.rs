//! PostgreSQL's protocol, from clients.

use shortline_gate::postgres::control::is_transaction_control;
use shortline_gate::postgres::conversation::{Conversation, Status};
use shortline_gate::postgres::frame::Scanner;
use shortline_gate::postgres::opening::{Opening, Reader};
use shortline_gate::postgres::startup::Startup;
use shortline_gate::postgres::statements::Statements;

const BODY_BYTES_MAX: u32 = 1 << 16;
const HELD_BYTES_MAX: usize = 512;

/// A startup packet, and a session's messages.
pub fn postgres(bytes: &[u8]) {
    match Startup::parse(bytes.to_vec()) {
        Ok(startup) => {
            startup.is_replication();
            startup.parameter("application_name");
        }
        Err(complaint) => crate::assert_one_line(&complaint),
    }
    is_transaction_control(bytes);
    openings(bytes);
    assert_eq!(messages(bytes, bytes.len()), messages(bytes, 3));
}

/// Reads openings one after the other. Each says how far it goes or what it lacks.
fn openings(bytes: &[u8]) {
    let reader = Reader {
        statements: &Statements::new(1),
        body_bytes_max: BODY_BYTES_MAX,
        held_bytes_max: HELD_BYTES_MAX,
        is_open: false,
    };
    let mut at = 0;
    while let Some(rest) = bytes.get(at..) {
        match reader.read(rest) {
            Ok(Opening::Passes(length)) => {
                assert!(length >= 5);
                at += length;
            }
            Ok(Opening::Incomplete) => {
                assert!(rest.len() < HELD_BYTES_MAX);
                return;
            }
            Ok(Opening::Work(_)) => at += 1,
            Err(error) => return crate::assert_one_line(&error),
        }
    }
}

/// A message's letter and the beginning of its body.
type Found = (u8, Vec<u8>);

/// The messages in a stream that comes in pieces of this many bytes, and whether nothing is owed
/// after them. `None` if the stream breaks. Neither depends on the pieces.
fn messages(bytes: &[u8], piece_bytes: usize) -> Option<(Vec<Found>, bool)> {
    let mut scanner = Scanner::new(BODY_BYTES_MAX);
    let mut conversation = Conversation::new(10);
    let mut found = Vec::new();
    for piece in bytes.chunks(piece_bytes.max(1)) {
        let mut at = 0;
        let wanted = |tag| usize::from(tag % 16);
        while let Some(message) = scanner.next(piece, &mut at, wanted).ok()? {
            found.push((message.tag, message.start.to_vec()));
            conversation.sent(message.tag).ok()?;
            // The backend answers with the clients' letters: any order will do.
            match message.tag {
                b'Z' => conversation.received_ready(Status::Idle),
                tag => conversation.received(tag),
            }
        }
        assert_eq!(at, piece.len());
    }
    Some((found, conversation.is_over()))
}
