//! Responses written by hand from the documentation. Those of a real server are in
//! `tests/mysql*.rs`.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::mysql::packet::packet;

const OK_IDLE: &[u8] = b"\0\0\0\x02\0\0\0";
const OK_OPEN: &[u8] = b"\0\x01\0\x03\0\0\0";
const OK_MORE: &[u8] = b"\0\0\0\x0a\0\0\0";
const EOF_IDLE: &[u8] = b"\xfe\0\0\x02\0";
const EOF_MORE: &[u8] = b"\xfe\0\0\x0a\0";
const EOF_CURSOR: &[u8] = b"\xfe\0\0\x42\0";
/// An OK packet in place of EOF.
const END_IDLE: &[u8] = b"\xfe\0\0\x02\0\0\0";
const END_OPEN: &[u8] = b"\xfe\0\0\x03\0\0\0";
const ERR_ANY: &[u8] = b"\xff\x7a\x04#42S02no such table";
const PROGRESS: &[u8] = b"\xff\xff\xff\x01\x01\x02\0\0\0\x05stage";
const COLUMN: &[u8] = b"\x03def\0\0\0\x01a\0\x0c\x3f\0\x01\0\0\0\x03\x81\0\0\0\0";
const ROW: &[u8] = b"\x011";
const PREPARED: &[u8] = b"\0\x07\0\0\0\x01\0\x02\0\0\0\0";

/// The status after a response. `None` unless the last message of `response` is the first that ends
/// it.
fn play(capabilities: Capabilities, shape: Shape, response: &[&[u8]]) -> Option<Follower> {
    let mut follower = Follower::new(capabilities, Status::default());
    follower.expect(shape);
    for (number, message) in response.iter().enumerate() {
        if follower.is_done() {
            return None;
        }
        // Cut in the middle, to check that nothing ends too early.
        let bytes = packet(number as u8 + 1, message);
        let (front, back) = bytes.split_at(bytes.len() / 2);
        follower.follow(front);
        if follower.is_done() {
            return None;
        }
        follower.follow(back);
    }
    follower.is_done().then_some(follower)
}

#[test]
fn responses_end_where_they_end() {
    const NEW: Capabilities = DEPRECATE_EOF;
    let cases: &[(Capabilities, Shape, &[&[u8]])] = &[
        (0, Shape::Single, &[OK_IDLE]),
        (0, Shape::Single, &[EOF_IDLE]),
        (0, Shape::Single, &[ERR_ANY]),
        (0, Shape::Single, &[b"Uptime: 1"]),
        (0, Shape::Results, &[OK_IDLE]),
        (0, Shape::Results, &[ERR_ANY]),
        (
            0,
            Shape::Results,
            &[b"\x01", COLUMN, EOF_IDLE, ROW, ROW, EOF_IDLE],
        ),
        (
            0,
            Shape::Results,
            &[b"\x02", COLUMN, COLUMN, EOF_IDLE, EOF_IDLE],
        ),
        (
            0,
            Shape::Results,
            &[b"\x01", COLUMN, EOF_IDLE, ROW, ERR_ANY],
        ),
        (0, Shape::Results, &[b"\x01", COLUMN, EOF_CURSOR]),
        (NEW, Shape::Results, &[b"\x01", COLUMN, ROW, END_IDLE]),
        (NEW, Shape::Results, &[b"\x01", COLUMN, END_IDLE]),
        // A row of nine bytes or more that begins like an EOF packet.
        (
            0,
            Shape::Results,
            &[b"\x01", COLUMN, EOF_IDLE, b"\xfe12345678", EOF_IDLE],
        ),
        // Two results; a call of a procedure ends with an OK.
        (0, Shape::Results, &[OK_MORE, OK_IDLE]),
        (
            0,
            Shape::Results,
            &[b"\x01", COLUMN, EOF_IDLE, ROW, EOF_MORE, OK_IDLE],
        ),
        (0, Shape::Results, &[OK_MORE, ERR_ANY]),
        // A file from the client.
        (0, Shape::Results, &[b"\xfb/tmp/a", OK_IDLE]),
        // Columns that the client has cached.
        (
            NEW | MARIADB_CACHE_METADATA,
            Shape::Results,
            &[b"\x01\x01", COLUMN, ROW, END_IDLE],
        ),
        (
            NEW | MARIADB_CACHE_METADATA,
            Shape::Results,
            &[b"\x01\0", ROW, END_IDLE],
        ),
        (
            MARIADB_CACHE_METADATA,
            Shape::Results,
            &[b"\x01\0", EOF_IDLE, ROW, EOF_IDLE],
        ),
        (
            MARIADB_PROGRESS,
            Shape::Results,
            &[PROGRESS, PROGRESS, OK_IDLE],
        ),
        (0, Shape::Results, &[PROGRESS]),
        (NEW, Shape::Prepare, &[PREPARED, COLUMN, COLUMN, COLUMN]),
        (
            0,
            Shape::Prepare,
            &[PREPARED, COLUMN, COLUMN, EOF_IDLE, COLUMN, EOF_IDLE],
        ),
        (0, Shape::Prepare, &[b"\0\x07\0\0\0\0\0\0\0\0\0\0"]),
        (0, Shape::Prepare, &[ERR_ANY]),
        (0, Shape::UntilEnd, &[b"\0\0\x01", b"\0\0\x01", EOF_IDLE]),
        (NEW, Shape::UntilEnd, &[END_IDLE]),
        (0, Shape::UntilEnd, &[ERR_ANY]),
        (
            0,
            Shape::Authentication,
            &[b"\xfemysql_native_password\0", OK_IDLE],
        ),
        (
            0,
            Shape::Authentication,
            &[b"\x01\x04", b"\x01key", ERR_ANY],
        ),
    ];
    for (capabilities, shape, response) in cases {
        let followed = play(*capabilities, *shape, response);
        assert!(
            followed.is_some(),
            "{capabilities:x} {shape:?} {response:?}"
        );
    }
}

#[test]
fn the_last_status_counts() {
    let is_open = |capabilities, response: &[&[u8]]| {
        let follower = play(capabilities, Shape::Results, response).unwrap();
        follower.status().is_in_transaction()
    };
    assert!(is_open(0, &[OK_OPEN]));
    assert!(!is_open(0, &[OK_IDLE]));
    assert!(is_open(DEPRECATE_EOF, &[b"\x01", COLUMN, ROW, END_OPEN]));
    assert!(is_open(
        0,
        &[b"\0\xfc\x01\x01\xfe\x01\0\0\0\0\0\0\0\x03\0\0\0"]
    ));
    let mut follower = play(0, Shape::Results, &[OK_OPEN]).unwrap();
    follower.expect(Shape::Results);
    follower.follow(&packet(1, ERR_ANY));
    assert!(follower.is_done() && follower.has_failed());
    // An error has no status, so the old one stays.
    assert!(follower.status().is_in_transaction());
}

#[test]
fn what_else_a_response_tells() {
    let follower = play(
        DEPRECATE_EOF,
        Shape::Prepare,
        &[PREPARED, COLUMN, COLUMN, COLUMN],
    )
    .unwrap();
    assert_eq!(follower.prepared(), Some(7));
    let mut follower = Follower::new(0, Status::default());
    follower.expect(Shape::Results);
    follower.follow(&packet(1, b"\xfb/tmp/a"));
    assert!(follower.take_file_wanted() && !follower.take_file_wanted());
    assert!(!follower.is_done());
    assert_eq!(follower.sequence(), 1);
    // An unexpected response changes nothing.
    let mut follower = Follower::new(0, Status::default());
    follower.follow(&packet(0, ERR_ANY));
    assert!(follower.is_done() && !follower.has_failed());
}

proptest! {
    #[test]
    fn any_bytes_are_followed(
        capabilities: u64,
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        cut in 0..300_usize,
    ) {
        for shape in [Shape::Single, Shape::Results, Shape::Prepare, Shape::UntilEnd, Shape::Authentication] {
            let mut whole = Follower::new(capabilities, Status::default());
            whole.expect(shape);
            whole.follow(&bytes);
            let mut pieces = Follower::new(capabilities, Status::default());
            pieces.expect(shape);
            let (front, back) = bytes.split_at(cut.min(bytes.len()));
            pieces.follow(front);
            pieces.follow(back);
            prop_assert_eq!((whole.next, whole.status), (pieces.next, pieces.status));
        }
    }
}
