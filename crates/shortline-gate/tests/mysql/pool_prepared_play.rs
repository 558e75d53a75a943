//! Random commands of the binary protocol, byte by byte: types left out, long data, cursors, resets and numbers that
//! nobody has. Each answer through the pool is compared with that of a connection of one's own.

use std::collections::BTreeSet;

use rand::Rng;
use rand::SeedableRng;
use rand::seq::{IndexedMutRandom, IndexedRandom};
use rand_chacha::ChaCha8Rng;
use shortline_gate::pool::{PoolMode, Shown};

use crate::gated::{Gated, PATIENCE, limits};
use crate::raw::{DEPRECATE_EOF, MYSQL, PLAIN, Raw, code};
use crate::server::shared;

const SESSIONS: usize = 3;
/// Each session may keep one, and one is for the others.
const CONNECTIONS: usize = SESSIONS + 1;
/// Fewer than texts, so that connections give some up.
const STATEMENTS_MAX: usize = 2;
const STEPS: usize = 150;
const SEEDS: u64 = 12;

/// What a session may prepare, and the number of its parameters.
const TEXTS: &[(&str, usize)] = &[
    ("SELECT ?", 1),
    ("SELECT CONCAT(?, '!'), ?", 2),
    ("SELECT n, ? FROM shop.raw_rows WHERE n < ?", 2),
    ("SELECT n FROM shop.raw_rows", 0),
    ("DO ?", 1),
    ("SELECT nothing, ?", 1),
];

/// What is known of a statement that a session has prepared.
#[derive(Default)]
struct Known {
    parameters: usize,
    types: Option<Vec<u8>>,
    /// Parameters that have got long data.
    long: BTreeSet<usize>,
    /// It once had. MariaDB's definitions of its columns then depend on all that it was executed with before.
    has_had_long: bool,
    /// The number that the pool gave, and that the server gave.
    numbers: [u32; 2],
}

/// A session through the pool, and on a connection of its own.
struct Play {
    both: [Raw; 2],
    known: Vec<Known>,
    said: Vec<String>,
}

const TEXT: u8 = 0xfd;
/// Types of parameters: a long, a text, a tiny.
const TYPES: [u8; 3] = [0x08, TEXT, 0x01];

fn value(random: &mut ChaCha8Rng, kind: u8) -> Vec<u8> {
    let number: u8 = random.random_range(b'1'..b'5');
    match kind {
        0x08 => u64::from(number - b'0').to_le_bytes().to_vec(),
        0x01 => vec![number - b'0'],
        _ => vec![1, number],
    }
}

/// An execution behind the number of iterations.
fn parameters(random: &mut ChaCha8Rng, known: &mut Known) -> Vec<u8> {
    let count = known.parameters;
    if count == 0 {
        return Vec::new();
    }
    // Whether types must be known for long data depends on the server.
    let may_leave_out = known.types.is_some() || known.long.is_empty();
    let leaves_out = may_leave_out && random.random_bool(0.5);
    let types = match &known.types {
        Some(types) if leaves_out => types.clone(),
        _ => (0..count).map(|_| *TYPES.choose(random).unwrap()).collect(),
    };
    let mut nulls = 0;
    let mut values = Vec::new();
    for (at, kind) in types.iter().enumerate() {
        if known.long.contains(&at) {
            continue;
        }
        match random.random_bool(0.2) {
            true => nulls |= 1 << at,
            false => values.extend(value(random, *kind)),
        }
    }
    let mut bytes = vec![nulls, u8::from(!leaves_out)];
    if !leaves_out {
        bytes.extend(types.iter().flat_map(|kind| [*kind, 0]));
        known.types = Some(types);
    }
    bytes.extend(values);
    bytes
}

/// Sends a command. Returns all that is answered, with what is the pool's own taken out.
async fn answer(raw: &mut Raw, payload: &[u8]) -> (Vec<(u8, Vec<u8>)>, Option<u32>) {
    raw.write(0, payload).await;
    let answered = tokio::time::timeout(PATIENCE, raw.read_all()).await;
    let mut packets = answered.unwrap_or_else(|_| panic!("no answer to {payload:?}"));
    let mut prepared = None;
    for (number, packet) in &mut packets {
        if let Some(code) = code(packet) {
            *packet = format!("error {code}").into_bytes();
        }
        if payload[0] == 0x16 && *number == 1 && packet[0] == 0 {
            prepared = Some(u32::from_le_bytes(packet[1..5].try_into().unwrap()));
            packet[1..5].fill(0);
        }
    }
    (packets, prepared)
}

impl Play {
    /// Sends a command about a statement to both, and compares the answers.
    async fn say(&mut self, command: u8, numbers: [u32; 2], rest: &[u8]) {
        let has_had_long = self
            .known
            .iter()
            .any(|known| known.numbers == numbers && known.has_had_long);
        let mut answers = Vec::new();
        for (raw, number) in self.both.iter_mut().zip(numbers) {
            let payload = [&[command], &number.to_le_bytes()[..], rest].concat();
            let mut packets = answer(raw, &payload).await.0;
            if has_had_long {
                packets.retain(|(_, packet)| !packet.starts_with(b"\x03def"));
            }
            answers.push(packets);
        }
        assert_eq!(answers[0], answers[1], "{:#?}", self.said);
    }

    async fn prepare(&mut self, random: &mut ChaCha8Rng) {
        let (text, parameters) = *TEXTS.choose(random).unwrap();
        self.said.push(format!("PREPARE {text}"));
        let payload = [b"\x16", text.as_bytes()].concat();
        let [pooled, own] = &mut self.both;
        let (there, here) = (answer(pooled, &payload).await, answer(own, &payload).await);
        assert_eq!(there.0, here.0, "{:#?}", self.said);
        if let (Some(there), Some(here)) = (there.1, here.1) {
            self.known.push(Known {
                parameters,
                numbers: [there, here],
                ..Known::default()
            });
        }
    }

    async fn step(&mut self, random: &mut ChaCha8Rng) {
        let kind = random.random_range(0..12);
        if kind < 2 || self.known.is_empty() {
            return self.prepare(random).await;
        }
        let at = random.random_range(0..self.known.len());
        let known = &mut self.known[at];
        let numbers = known.numbers;
        let (command, rest, what) = match kind {
            2..7 => {
                let flags = u8::from(random.random_bool(0.4));
                let rest = [&[flags, 1, 0, 0, 0][..], &parameters(random, known)].concat();
                known.long.clear();
                (0x17, rest, "EXECUTE")
            }
            7 => {
                // Without parameters there is none of this number.
                let parameter = random.random_range(0..known.parameters.max(1));
                let types = known.types.as_ref();
                if types.is_some_and(|types| types[parameter] != TEXT) {
                    // MariaDB reads long data as a number where the last execution had one.
                    return;
                }
                known.long.insert(parameter);
                known.has_had_long = true;
                let rest = [&(parameter as u16).to_le_bytes()[..], b"long"].concat();
                (0x18, rest, "LONG DATA")
            }
            8..10 => {
                let rows: u32 = random.random_range(1..4);
                (0x1c, rows.to_le_bytes().to_vec(), "FETCH")
            }
            10 => {
                known.long.clear();
                (0x1a, Vec::new(), "RESET")
            }
            _ => {
                self.known.swap_remove(at);
                (0x19, Vec::new(), "CLOSE")
            }
        };
        self.said.push(format!("{what} {numbers:?} {rest:?}"));
        self.say(command, numbers, &rest).await;
    }
}

#[tokio::test]
async fn each_answer_is_that_of_a_connection_of_ones_own() {
    let Some(server) = shared() else { return };
    server.query(
        "CREATE TABLE shop.raw_rows (n INT); INSERT INTO shop.raw_rows VALUES (1), (2), (3), (4)",
    );
    let limits = limits(PoolMode::Transaction, CONNECTIONS, STATEMENTS_MAX);
    let gated = Gated::lending(server.address, None, limits, |_| {}).await;
    let capabilities = PLAIN | MYSQL | DEPRECATE_EOF;
    for seed in 0..SEEDS {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS {
            // Every other time with EOF packets.
            let capabilities = capabilities & !(DEPRECATE_EOF * (seed % 2));
            let pooled = Raw::connect(gated.address, capabilities).await;
            let own = Raw::connect(server.address, capabilities).await;
            sessions.push(Play {
                both: [pooled, own],
                known: Vec::new(),
                said: vec![format!("seed {seed}")],
            });
        }
        for _ in 0..STEPS {
            let session = sessions.choose_mut(&mut random).unwrap();
            session.step(&mut random).await;
        }
        // What nobody has.
        for session in &mut sessions {
            session.say(0x17, [9999, 9999], &[0, 1, 0, 0, 0]).await;
            session.say(0x1c, [9999, 9999], &[1, 0, 0, 0]).await;
            session.say(0x1a, [9999, 9999], &[]).await;
        }
        drop(sessions);
        gated.until_empty().await;
    }
    let pool = gated.pool.as_ref().unwrap();
    gated.until("given back", |_| pool.pinned() == 0).await;
}
