//! What a client of the pool does on its connection, step by step.

use std::collections::BTreeMap;

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

use super::super::client::Leaving;
use super::super::scenario::{Plan, Terms};
use super::sql::Message;
use crate::gate::scenario::{path, pick};
use crate::network::Path;

const MS: u64 = 1_000_000;
/// Names of prepared statements. All clients use the same.
const NAMES: [&str; 3] = ["", "a", "b"];
/// Texts of prepared statements, with their parameter.
const TEXTS: [&str; 8] = [
    "select work($1)",
    "select work($1)",
    "select state($1)",
    "select state($1)",
    "select temp($1) from t1",
    "selec $1",
    "select set_config('TimeZone', '$1', false)",
    "set search_path to 'by_hand'",
];
/// What is set, and reset.
const PARAMETERS: [(&str, [&str; 3]); 4] = [
    ("TimeZone", ["utc", "UTC", "Venus"]),
    ("DateStyle", ["iso", "German", "SQL"]),
    ("search_path", ["one", "two", "public"]),
    ("my.own", ["x", "y", "z"]),
];

/// One client.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// When it comes, in nanoseconds.
    pub begins_ns: u64,
    /// The path to it.
    pub path: Path,
    /// Its user.
    pub user: &'static str,
    /// The other parameters of its StartupMessage.
    pub startup: BTreeMap<String, String>,
    /// What it does, in order.
    pub steps: Vec<Step>,
}

impl Plan for ClientPlan {
    const PROTOCOL: &'static str = "PostgreSQL";

    fn draw(random: &mut ChaCha8Rng, terms: &Terms, number: &mut u64) -> Self {
        let mut startup = BTreeMap::new();
        let mut user = "ann";
        if !terms.is_of_one_kind {
            user = *pick(random, &["ann", "bob"]);
            let choices = [
                ("TimeZone", ["utc", "Mars"]),
                ("DateStyle", ["iso", "German"]),
                ("application_name", ["shop", "desk"]),
                ("work_mem", ["1MB", "2MB"]),
            ];
            for (name, values) in choices {
                if random.random_bool(0.25) {
                    let value = *pick(random, &values);
                    startup.insert(name.to_owned(), value.to_owned());
                }
            }
        }
        let keeps = terms.keeps && random.random_bool(0.5);
        Self {
            begins_ns: random.random_range(0..200 * MS),
            path: path(random, 10 * MS),
            user,
            startup,
            steps: draw(random, terms.index, keeps, number),
        }
    }

    fn keeps(&self) -> bool {
        self.steps.iter().any(Step::keeps)
    }

    fn kills(&self) -> bool {
        false
    }
}

/// A step.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sends these, without waiting.
    Send(Vec<Message>),
    /// Waits until all is answered.
    Settle,
    /// The same, and asks over another connection, after so long, to cancel what runs.
    Cancel(u64),
    /// Compares the parameters that it was told with those that it has.
    Compare,
    /// Does nothing, and reads nothing, for so long.
    Pause(u64),
    /// Sends only the beginning of a message, and after so long the rest.
    InPieces(Message, u64),
    /// Ends its transaction, if one is open.
    End,
    /// Leaves after so long, in this way.
    Leave(u64, Leaving),
    /// Bytes that are not of any protocol.
    Babble,
}

impl Step {
    /// Whether the session then has what belongs to its connection.
    fn keeps(&self) -> bool {
        let keeps = |(tag, body): &Message| {
            *tag == b'Q' && (body.starts_with(b"create temp") || body.starts_with(b"select pg_adv"))
        };
        matches!(self, Self::Send(messages) if messages.iter().any(keeps))
    }
}

/// Draws what the client of this index does. Its statements have numbers of their own.
fn draw(random: &mut ChaCha8Rng, index: usize, keeps: bool, number: &mut u64) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..random.random_range(1..=7) {
        unit(random, index, keeps, number, &mut steps);
        if random.random_bool(0.3) {
            let state = format!("select state({})", arguments(random, number, false));
            steps.extend([
                Step::End,
                Step::Send(vec![query(&state)]),
                Step::Settle,
                Step::Compare,
            ]);
        }
    }
    steps.push(Step::End);
    if random.random_bool(0.5) {
        steps.push(Step::Leave(0, Leaving::Terminate));
    }
    steps
}

fn unit(
    random: &mut ChaCha8Rng,
    index: usize,
    keeps: bool,
    number: &mut u64,
    steps: &mut Vec<Step>,
) {
    match random.random_range(0..40) {
        0..7 => steps.extend([Step::Send(vec![simple(random, number)]), Step::Settle]),
        7 => {
            let stalls = Step::Pause(random.random_range(0..300 * MS));
            steps.extend([Step::Send(part(random, number)), stalls, Step::Settle]);
        }
        8..16 => steps.extend([Step::Send(segment(random, number)), Step::Settle]),
        16..22 => transaction(random, number, steps),
        22..27 => pipeline(random, number, steps),
        27..31 => steps.extend([
            Step::End,
            Step::Send(vec![query(&set(random))]),
            Step::Settle,
        ]),
        31..33 if keeps => {
            let texts = [
                "create temp table t1".to_owned(),
                "drop table t1".to_owned(),
                format!("select pg_advisory_lock({index})"),
                format!("select pg_advisory_unlock({index})"),
                "discard all".to_owned(),
            ];
            let text = texts.choose(random).expect("there are some");
            steps.extend([Step::End, Step::Send(vec![query(text)]), Step::Settle]);
        }
        33..36 => {
            let sent = part(random, number);
            // Most statements are as short as that.
            let most_ns = if random.random_bool(0.5) {
                6 * MS
            } else {
                40 * MS
            };
            let after_ns = random.random_range(0..most_ns);
            steps.extend([Step::Send(sent), Step::Cancel(after_ns)]);
        }
        36 => {
            let in_pieces = Step::InPieces(simple(random, number), random.random_range(0..50 * MS));
            steps.extend([in_pieces, Step::Settle]);
        }
        37 => {
            let leaving = [
                Leaving::Close,
                Leaving::Reset,
                Leaving::InMessage,
                Leaving::Terminate,
            ];
            let leaving = *leaving.choose(random).expect("there are some");
            if random.random_bool(0.7) {
                steps.push(Step::Send(part(random, number)));
            }
            steps.push(Step::Leave(random.random_range(0..60 * MS), leaving));
        }
        38 if random.random_bool(0.2) => steps.push(Step::Babble),
        _ => steps.push(Step::Pause(random.random_range(0..400 * MS))),
    }
}

/// Several parts at once.
fn pipeline(random: &mut ChaCha8Rng, number: &mut u64, steps: &mut Vec<Step>) {
    let parts = random.random_range(2..=4);
    let mut sent: Vec<_> = (0..parts).flat_map(|_| part(random, number)).collect();
    // Answers come while only a part of it is sent.
    if random.random_bool(0.5) {
        let later = sent.split_off(random.random_range(0..sent.len()));
        steps.push(Step::Send(sent));
        steps.push(Step::Pause(random.random_range(0..20 * MS)));
        sent = later;
    }
    steps.extend([Step::Send(sent), Step::Settle]);
}

fn transaction(random: &mut ChaCha8Rng, number: &mut u64, steps: &mut Vec<Step>) {
    steps.extend([Step::End, Step::Send(vec![query("begin")]), Step::Settle]);
    for _ in 0..random.random_range(0..=3) {
        steps.push(Step::Pause(random.random_range(0..20 * MS)));
        let sent = match random.random_range(0..6) {
            0 => vec![query(&set_within(random))],
            _ => part(random, number),
        };
        steps.extend([Step::Send(sent), Step::Settle]);
    }
    let end = if random.random_bool(0.7) {
        "commit"
    } else {
        "rollback"
    };
    steps.extend([Step::Send(vec![query(end)]), Step::Settle]);
}

/// What can be sent at once: a Query, or a segment with its Sync.
fn part(random: &mut ChaCha8Rng, number: &mut u64) -> Vec<Message> {
    match random.random_bool(0.4) {
        true => vec![simple(random, number)],
        false => segment(random, number),
    }
}

fn simple(random: &mut ChaCha8Rng, number: &mut u64) -> Message {
    let kind = ["work", "work", "work", "state", "fail"]
        .choose(random)
        .expect("there are some");
    query(&format!(
        "select {kind}({})",
        arguments(random, number, true)
    ))
}

/// Messages of the extended protocol, and their Sync.
fn segment(random: &mut ChaCha8Rng, number: &mut u64) -> Vec<Message> {
    let mut sent = Vec::new();
    for _ in 0..random.random_range(1..=3) {
        let name = *NAMES.choose(random).expect("there are some");
        let text = *TEXTS.choose(random).expect("there are some");
        match random.random_range(0..10) {
            0..4 => {
                sent.push(parse(name, text));
                if random.random_bool(0.7) {
                    execute(random, number, name, &mut sent);
                }
            }
            4..8 => execute(random, number, name, &mut sent),
            8 => sent.push((b'C', format!("S{name}\0").into_bytes())),
            _ => sent.push((b'D', format!("S{name}\0").into_bytes())),
        }
        if random.random_bool(0.1) {
            sent.push((b'H', Vec::new()));
        }
        if random.random_bool(0.15) {
            sent.push((b'S', Vec::new()));
        }
    }
    sent.push((b'S', Vec::new()));
    sent
}

fn execute(random: &mut ChaCha8Rng, number: &mut u64, name: &str, sent: &mut Vec<Message>) {
    sent.push(bind(name, &arguments(random, number, true)));
    sent.push((b'E', vec![0; 5]));
}

/// The number of a statement, how long it takes, and the bytes of its answer.
fn arguments(random: &mut ChaCha8Rng, number: &mut u64, may_be_long: bool) -> String {
    *number += 1;
    let us = match may_be_long && random.random_bool(0.3) {
        true => random.random_range(5_000..80_000),
        false => random.random_range(100..5_000),
    };
    let bytes = *[1, 1, 200, 9_000, 40_000]
        .choose(random)
        .expect("there are some");
    format!("{number}, {us}, {bytes}")
}

fn set(random: &mut ChaCha8Rng) -> String {
    let (name, _) = PARAMETERS.choose(random).expect("there are some");
    match random.random_range(0..10) {
        0 => "reset all".to_owned(),
        1 => "discard all".to_owned(),
        2 | 3 => format!("reset {name}"),
        _ => set_within(random),
    }
}

fn set_within(random: &mut ChaCha8Rng) -> String {
    let (name, values) = PARAMETERS.choose(random).expect("there are some");
    let value = values.choose(random).expect("there are some");
    match random.random_bool(0.2) {
        true => format!("set local {name} to '{value}'"),
        false => format!("set {name} to '{value}'"),
    }
}

/// A Query.
pub fn query(text: &str) -> Message {
    (b'Q', format!("{text}\0").into_bytes())
}

fn parse(name: &str, text: &str) -> Message {
    (b'P', format!("{name}\0{text}\0\0\0").into_bytes())
}

/// A Bind of the unnamed portal, with one parameter as text.
fn bind(name: &str, value: &str) -> Message {
    let mut body = format!("\0{name}\0\0\0\0\x01").into_bytes();
    body.extend((value.len() as u32).to_be_bytes());
    body.extend_from_slice(value.as_bytes());
    body.extend([0, 0]);
    (b'B', body)
}
