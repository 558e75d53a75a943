//! MySQL's protocol, from clients and from servers.

use shortline_gate::mysql::ask::row;
use shortline_gate::mysql::command::{Command, wanted_bytes};
use shortline_gate::mysql::compress::{Decoder, Sequence};
use shortline_gate::mysql::control;
use shortline_gate::mysql::greeting::{Answer, Greeting, offered};
use shortline_gate::mysql::login::error_of;
use shortline_gate::mysql::packet::{Found, Renumbering, Scanner};
use shortline_gate::mysql::pool;
use shortline_gate::mysql::reply::{Follower, Shape, Status};

const SHAPES: [Shape; 5] = [
    Shape::Single,
    Shape::Results,
    Shape::Prepare,
    Shape::UntilEnd,
    Shape::Authentication,
];
/// The most bytes decoded at once.
const PLAIN_BYTES_MAX: usize = 4096;

/// A connection's opening, commands, responses and frames.
pub fn mysql(bytes: &[u8]) {
    opening(bytes);
    control::read(bytes);
    if let Some(&command) = bytes.first() {
        assert!(wanted_bytes(command, 100) <= 100);
    }
    for has_attributes in [false, true] {
        Command::read(bytes, has_attributes);
    }
    pooled(bytes);
    let columns = u64::from(bytes.len().is_multiple_of(4));
    if let Some(values) = row(bytes, columns) {
        assert_eq!(values.len() as u64, columns);
    }
    assert!(!error_of(bytes).1.contains('\n'));
    assert_eq!(messages(bytes, bytes.len()), messages(bytes, 3));
    for shape in SHAPES {
        let capabilities = bytes
            .iter()
            .fold(0, |sum, byte| sum << 3 ^ u64::from(*byte));
        let whole = followed(shape, capabilities, bytes, bytes.len());
        assert_eq!(whole, followed(shape, capabilities, bytes, 5));
    }
    assert_eq!(decoded(bytes, bytes.len()), decoded(bytes, 2));
}

/// What a pool reads: OK packets that tell of changes, statements that may leave something, and values of variables.
fn pooled(bytes: &[u8]) {
    for packet in [bytes, &[b"\0\0\0\x02\x40\0\0", bytes].concat()] {
        if let Some(read) = pool::track::Ok::read(packet) {
            assert!(read.plain.len() <= packet.len());
            let again = pool::track::Ok::read(&read.plain).expect("it is an OK packet still");
            assert_eq!(again.tracked, pool::track::Tracked::default());
        }
    }
    // Nothing before it hides a variable, where no quote is open.
    let before: Vec<u8> = bytes
        .iter()
        .copied()
        .filter(|byte| !b"'\"`".contains(byte))
        .collect();
    assert!(pool::leaving::reason_to_keep(&[&before, b" ,@a:=1".as_slice()].concat()).is_some());
    let name = pool::settings::followed(b"time_zone").expect("it is followed");
    let (names, base) = (
        [name].into_iter().collect(),
        pool::settings::Settings::default(),
    );
    let mut settings = pool::settings::Settings::default();
    if settings
        .follow(&names, vec![Some(bytes.to_vec())], &base)
        .is_some()
    {
        let set = settings.changes_from(&base, &base).expect("it differs");
        assert_eq!(set.matches('\'').count(), 2);
    }
}

fn opening(bytes: &[u8]) {
    match Greeting::parse(bytes.to_vec()) {
        Ok(mut greeting) => {
            let capabilities = offered(greeting.capabilities(), true);
            greeting.set_capabilities(capabilities);
            assert_eq!(greeting.payload().len(), bytes.len());
            assert!(greeting.nonce().len() + greeting.method().len() < bytes.len());
        }
        Err(error) => crate::assert_one_line(&error),
    }
    match Answer::parse(bytes.to_vec()) {
        Ok(answer) => {
            answer.names();
            answer.proof();
            assert!(answer.ssl_request().is_ssl_request());
        }
        Err(error) => crate::assert_one_line(&error),
    }
}

/// The messages in a stream that comes in pieces of this many bytes, and the renumbered stream.
fn messages(bytes: &[u8], piece_bytes: usize) -> (Vec<(u64, Vec<u8>)>, Vec<u8>) {
    let (mut scanner, mut renumbering) = (Scanner::default(), Renumbering::default());
    let (mut found, mut renumbered) = (Vec::new(), bytes.to_vec());
    let mut shown = Vec::new();
    for piece in renumbered.chunks_mut(piece_bytes.max(1)) {
        let mut at = 0;
        while let Some(part) = scanner.next(piece, &mut at) {
            match part {
                Found::Start { start, .. } => shown = start.to_vec(),
                Found::End => found.push((scanner.message_bytes(), std::mem::take(&mut shown))),
            }
        }
        assert_eq!(at, piece.len());
        renumbering.apply(piece);
    }
    (found, renumbered)
}

/// What is known after a response that comes in pieces of this many bytes.
fn followed(
    shape: Shape,
    capabilities: u64,
    bytes: &[u8],
    piece_bytes: usize,
) -> (bool, bool, Status, Option<u32>) {
    let mut follower = Follower::new(capabilities, Status::default());
    follower.expect(shape);
    for piece in bytes.chunks(piece_bytes.max(1)) {
        follower.follow(piece);
    }
    let is_done = follower.is_done();
    (
        is_done,
        follower.has_failed(),
        follower.status(),
        follower.prepared(),
    )
}

/// The content of frames that come in pieces of this many bytes. `None` if they are not frames.
fn decoded(bytes: &[u8], piece_bytes: usize) -> Option<Vec<u8>> {
    let (mut decoder, mut sequence) = (Decoder::default(), Sequence::default());
    let mut whole = Vec::new();
    for piece in bytes.chunks(piece_bytes.max(1)) {
        decoder.take(piece);
        let mut plain = Vec::new();
        while decoder
            .decode(&mut plain, PLAIN_BYTES_MAX, &mut sequence)
            .ok()?
        {
            assert!(plain.len() <= PLAIN_BYTES_MAX);
            whole.append(&mut plain);
        }
    }
    Some(whole)
}
