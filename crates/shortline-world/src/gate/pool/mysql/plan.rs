//! What a client of MySQL's pool does on its connection, step by step.

use std::fmt;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::super::client::Leaving;
use super::super::scenario::{Plan, Terms};
use super::command::Command;
use super::packets::{DEPRECATE_EOF, MULTI_STATEMENTS, OF_CLIENT};
use super::texts;
use super::variables::LATIN1;
use crate::gate::scenario::{path, pick};
use crate::network::Path;

const MS: u64 = 1_000_000;
const UTF8MB4: u8 = 45;

/// One client.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// When it comes, in nanoseconds.
    pub begins_ns: u64,
    /// The path to it.
    pub path: Path,
    /// Its user.
    pub user: &'static str,
    /// Its capabilities, but for a database.
    pub capabilities: u32,
    /// Its collation.
    pub collation: u8,
    /// The database that it begins in.
    pub database: Option<&'static str>,
    /// Whether it has what belongs to its connection.
    keeps: bool,
    /// What it does, in order.
    pub steps: Vec<Step>,
}

/// A step.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sends these, without waiting.
    Send(Vec<Wanted>),
    /// Waits until all is answered.
    Settle,
    /// The same, and ends after so long what another one does, or its session.
    Kill {
        which: usize,
        is_session: bool,
        after_ns: u64,
        /// How often.
        times: usize,
    },
    /// Does nothing, and reads nothing, for so long.
    Pause(u64),
    /// Sends only the beginning of a command, and after so long the rest.
    InPieces(Wanted, u64),
    /// Ends its transaction, if one is open.
    End,
    /// Leaves after so long, in this way.
    Leave(u64, Leaving),
    /// Bytes that are not of any protocol.
    Babble,
}

/// A command that a client wants to send.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// This one.
    Now(Command),
    /// One with a prepared statement, of those that it then has.
    Prepared(Use, usize, String),
}

/// What is done with a prepared statement.
#[derive(Clone, Copy, Debug)]
pub enum Use {
    /// It is executed, with these numbers.
    Execute,
    /// It is closed.
    Close,
    /// It is reset.
    Reset,
}

impl Plan for ClientPlan {
    const PROTOCOL: &'static str = "MySQL";

    fn draw(random: &mut ChaCha8Rng, terms: &Terms, number: &mut u64) -> Self {
        let mut plan = Self {
            begins_ns: random.random_range(0..200 * MS),
            path: path(random, 10 * MS),
            user: "ann",
            capabilities: OF_CLIENT | DEPRECATE_EOF | MULTI_STATEMENTS,
            collation: UTF8MB4,
            database: Some("one"),
            keeps: terms.keeps && random.random_bool(0.5),
            steps: Vec::new(),
        };
        if !terms.is_of_one_kind {
            plan.user = *pick(random, &["ann", "ann", "bob"]);
            for capability in [DEPRECATE_EOF, MULTI_STATEMENTS] {
                if random.random_bool(0.3) {
                    plan.capabilities &= !capability;
                }
            }
            plan.collation = *pick(random, &[UTF8MB4, UTF8MB4, LATIN1]);
            plan.database = *pick(random, &[Some("one"), Some("one"), Some("two"), None]);
        }
        let mut drawing = Drawing {
            random,
            terms,
            keeps: plan.keeps,
            number,
            steps: Vec::new(),
        };
        drawing.all();
        plan.steps = drawing.steps;
        plan
    }

    fn keeps(&self) -> bool {
        self.keeps
    }

    fn kills(&self) -> bool {
        let kills = |step: &Step| matches!(step, Step::Kill { .. });
        self.steps.iter().any(kills)
    }
}

impl fmt::Display for ClientPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} in {:?} with {:#x} and {} {:?}",
            self.user, self.database, self.capabilities, self.collation, self.path
        )
    }
}

struct Drawing<'a> {
    random: &'a mut ChaCha8Rng,
    terms: &'a Terms,
    keeps: bool,
    /// The last number of a statement.
    number: &'a mut u64,
    steps: Vec<Step>,
}

impl Drawing<'_> {
    fn all(&mut self) {
        for _ in 0..self.random.random_range(1..=7) {
            self.unit();
            if self.random.random_bool(0.3) {
                let state = texts::state(self.random, self.number);
                self.steps.push(Step::End);
                self.send(query(state));
            }
        }
        self.steps.push(Step::End);
        if self.random.random_bool(0.5) {
            self.steps.push(Step::Leave(0, Leaving::Terminate));
        }
    }

    fn unit(&mut self) {
        match self.random.random_range(0..42) {
            0..8 => {
                let text = texts::simple(self.random, self.number);
                self.send(query(text));
            }
            8 | 9 => {
                let stalls = Step::Pause(self.random.random_range(0..300 * MS));
                let sent = self.part();
                self.steps
                    .extend([Step::Send(vec![sent]), stalls, Step::Settle]);
            }
            10..15 => self.transaction(),
            15..20 => self.pipeline(),
            20..26 => {
                let text = texts::set(self.random, self.number);
                self.send(query(text));
            }
            26 | 27 => {
                let text = texts::several(self.random, self.number);
                self.send(query(text));
            }
            28 | 29 => {
                let command = self.command();
                self.send(command);
            }
            30..35 if self.keeps => self.keep(),
            35 | 36 => self.kill(),
            37 => {
                let text = texts::simple(self.random, self.number);
                let pause_ns = self.random.random_range(0..50 * MS);
                self.steps
                    .extend([Step::InPieces(query(text), pause_ns), Step::Settle]);
            }
            38 => self.leave(),
            39 if self.random.random_bool(0.2) => self.steps.push(Step::Babble),
            _ => {
                let pause_ns = self.random.random_range(0..400 * MS);
                self.steps.push(Step::Pause(pause_ns));
            }
        }
    }

    fn send(&mut self, wanted: Wanted) {
        self.steps.extend([Step::Send(vec![wanted]), Step::Settle]);
    }

    /// A command that is no statement.
    fn command(&mut self) -> Wanted {
        Wanted::Now(match self.random.random_range(0..8) {
            0..2 => Command::Ping,
            2 => Command::Unknown(0x63),
            3 if self.keeps => Command::SetOption(self.random.random_bool(0.5)),
            3 | 4 => Command::Reset,
            _ => Command::InitDb((*pick(self.random, &["one", "two", "nothing"])).to_owned()),
        })
    }

    /// What can be among others that are sent at once.
    fn part(&mut self) -> Wanted {
        match self.random.random_range(0..10) {
            0..6 => query(texts::simple(self.random, self.number)),
            6 => query(texts::set(self.random, self.number)),
            7 => query(texts::begin(self.random).to_owned()),
            8 => query(texts::end(self.random).to_owned()),
            _ => self.command(),
        }
    }

    fn transaction(&mut self) {
        let begin = texts::begin(self.random).to_owned();
        self.steps.push(Step::End);
        self.send(query(begin));
        for _ in 0..self.random.random_range(0..=3) {
            let pause_ns = self.random.random_range(0..20 * MS);
            self.steps.push(Step::Pause(pause_ns));
            let wanted = match self.random.random_range(0..6) {
                0 => query(texts::set(self.random, self.number)),
                _ => self.part(),
            };
            self.send(wanted);
        }
        let end = texts::end(self.random).to_owned();
        self.send(query(end));
    }

    /// Several at once. Answers come while only a part of them is sent.
    fn pipeline(&mut self) {
        let parts = self.random.random_range(2..=4);
        let mut sent: Vec<_> = (0..parts).map(|_| self.part()).collect();
        if self.random.random_bool(0.5) {
            let later = sent.split_off(self.random.random_range(0..sent.len()));
            self.steps.push(Step::Send(sent));
            self.steps
                .push(Step::Pause(self.random.random_range(0..20 * MS)));
            sent = later;
        }
        self.steps.extend([Step::Send(sent), Step::Settle]);
    }

    /// What belongs to a connection, or uses it.
    fn keep(&mut self) {
        let wanted = match self.random.random_range(0..8) {
            0..3 => query(texts::keeps(self.random, self.terms.index, self.number)),
            3 => Wanted::Now(Command::Prepare(texts::to_prepare(self.random).to_owned())),
            _ => {
                let prepare = Command::Prepare(texts::to_prepare(self.random).to_owned());
                if self.random.random_bool(0.4) {
                    self.send(Wanted::Now(prepare));
                }
                let usage = *pick(
                    self.random,
                    &[
                        Use::Execute,
                        Use::Execute,
                        Use::Close,
                        Use::Close,
                        Use::Reset,
                    ],
                );
                let arguments = texts::arguments(self.random, self.number, true);
                Wanted::Prepared(usage, self.random.random_range(0..4), arguments)
            }
        };
        if self.random.random_bool(0.7) {
            self.steps.push(Step::End);
        }
        self.send(wanted);
    }

    fn kill(&mut self) {
        let sent = self.part();
        let after_ns = self.random.random_range(0..40 * MS);
        self.steps.push(Step::Send(vec![sent]));
        self.steps.push(Step::Kill {
            which: self.random.random_range(0..8),
            is_session: self.random.random_bool(0.2),
            after_ns,
            times: *pick(self.random, &[1, 1, 4]),
        });
    }

    fn leave(&mut self) {
        let leaving = *pick(
            self.random,
            &[
                Leaving::Close,
                Leaving::Reset,
                Leaving::InMessage,
                Leaving::Terminate,
            ],
        );
        if self.random.random_bool(0.7) {
            let sent = self.part();
            self.steps.push(Step::Send(vec![sent]));
        }
        let after_ns = self.random.random_range(0..60 * MS);
        self.steps.push(Step::Leave(after_ns, leaving));
    }
}

/// A statement.
pub fn query(text: String) -> Wanted {
    Wanted::Now(Command::Query(text))
}
