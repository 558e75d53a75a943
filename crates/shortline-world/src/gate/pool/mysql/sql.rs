//! One session of MariaDB, as far as these worlds need it: a database, variables, a transaction, what belongs to its
//! connection. What it answers depends on nothing but what was asked on its connection.
//!
//! The simulated server keeps one for each connection of the pool. Each client keeps one, too, and feeds it what it
//! sends: what that one answers is what a connection of its own would have answered.

use std::collections::{BTreeMap, BTreeSet};

use super::command::Command;
use super::packets::{
    self, DEPRECATE_EOF, EOF, Failed, MULTI_STATEMENTS, OK, Payload, Row, SESSION_TRACK, columns,
    definition, err, length_encoded,
};
use super::track::Track;
use super::transaction::Transaction;
use super::variables::Variables;
use super::words::split;

/// How long a command takes that only looks or sets, in microseconds.
const BRIEF_US: u64 = 150;
/// Status flags.
pub const IN_TRANSACTION: u16 = 1;
const AUTOCOMMIT: u16 = 2;
const MORE_RESULTS: u16 = 8;
const NO_BACKSLASHES: u16 = 0x200;
const READ_ONLY: u16 = 0x2000;
/// Something has changed.
pub const CHANGED: u16 = 0x4000;
const ANSI_QUOTES: u16 = 0x8000;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Session {
    pub(super) user: String,
    capabilities: u32,
    collation: u8,
    pub(super) database: Option<String>,
    pub(super) variables: Variables,
    /// `@a` and its like.
    pub(super) own: BTreeMap<String, String>,
    /// Temporary tables, with their databases.
    pub(super) tables: BTreeSet<String>,
    /// Those of GET_LOCK.
    pub(super) locks: BTreeSet<String>,
    pub(super) role: Option<String>,
    pub(super) transaction: Transaction,
    prepared: BTreeMap<u32, String>,
    prepared_last: u32,
    /// Those of SQL's PREPARE.
    pub(super) texts: BTreeMap<String, String>,
    /// Several statements may come at once.
    pub(super) has_several: bool,
    pub(super) track: Track,
    /// The numbers of the statements that it has worked on, and for how long.
    pub(super) worked: Vec<(u64, u64)>,
}

/// The result of a statement.
pub enum Answer {
    /// It is done, and has made this number of AUTO_INCREMENT, or 0.
    Done { insert_id: u64, info: &'static str },
    /// Rows of so many columns.
    Rows(usize, Vec<Row>),
}

/// Nothing to say of what is done.
pub const DONE: Answer = Answer::Done {
    insert_id: 0,
    info: "",
};

impl Session {
    /// A session of this user.
    pub fn begin(user: &str, capabilities: u32, collation: u8, database: Option<&str>) -> Self {
        Self {
            user: user.to_owned(),
            capabilities,
            collation,
            database: database.map(str::to_owned),
            variables: Variables::begin(collation),
            own: BTreeMap::new(),
            tables: BTreeSet::new(),
            locks: BTreeSet::new(),
            role: None,
            transaction: Transaction::default(),
            prepared: BTreeMap::new(),
            prepared_last: 0,
            texts: BTreeMap::new(),
            has_several: capabilities & MULTI_STATEMENTS != 0,
            track: Track::new(capabilities & SESSION_TRACK != 0),
            worked: Vec::new(),
        }
    }

    /// Whether a transaction is open.
    pub fn is_in_transaction(&self) -> bool {
        self.transaction.is_open()
    }

    /// The pool has given it another connection, without a role and with the options of its login.
    pub fn is_anew(&mut self, capabilities: u32) {
        self.role = None;
        self.has_several = capabilities & MULTI_STATEMENTS != 0;
    }

    /// Whether it answers everything as the other one does.
    pub fn is_like(&self, other: &Self) -> bool {
        self.state() == other.state() && self.prepared == other.prepared
    }

    /// The prepared statements, and whether each has a parameter.
    pub fn prepared(&self) -> Vec<(u32, bool)> {
        let has_one = |text: &String| text.contains('?');
        let prepared = self.prepared.iter();
        prepared
            .map(|(number, text)| (*number, has_one(text)))
            .collect()
    }

    /// How long a command keeps the server busy, in microseconds, and the numbers of its statements.
    pub fn work(&self, command: &Command) -> (u64, Vec<u64>) {
        if matches!(command, Command::Quit | Command::Close(_)) {
            return (0, Vec::new());
        }
        let mut tried = self.clone();
        tried.handle(command, None);
        let us = tried.worked.iter().map(|(_, us)| us).sum::<u64>();
        let numbers = tried.worked.iter().map(|(number, _)| *number).collect();
        (us.max(BRIEF_US), numbers)
    }

    /// The answer to a command. What it works on fails with `fate`, if there is one.
    pub fn handle(&mut self, command: &Command, fate: Option<&Failed>) -> Vec<Payload> {
        if let (Some(failed), Command::Query(_) | Command::Execute(..)) = (fate, command)
            && self.work(command).1.is_empty()
        {
            return vec![err(failed)];
        }
        self.track.begin();
        self.worked.clear();
        let done = match command {
            Command::Quit => return Vec::new(),
            Command::Query(text) => return self.query(text, fate),
            Command::Prepare(text) => self.prepare(text),
            Command::Execute(statement, value) => self.execute(*statement, value.as_deref(), fate),
            Command::Close(statement) => {
                self.prepared.remove(statement);
                return Vec::new();
            }
            Command::InitDb(name) => self.choose(name).map(|()| vec![self.ok()]),
            Command::ResetStatement(statement) => self.text_of(*statement).map(|_| vec![self.ok()]),
            Command::Reset => {
                self.reset();
                Ok(vec![self.ok()])
            }
            Command::SetOption(has_several) => {
                self.has_several = *has_several;
                Ok(vec![self.end(0)])
            }
            Command::Ping => Ok(vec![self.ok()]),
            Command::Unknown(_) => Err((1047, "08S01", "Unknown command".to_owned())),
        };
        done.unwrap_or_else(|failed| vec![err(&failed)])
    }

    /// A reset leaves the database, the role and the option of the connection.
    fn reset(&mut self) {
        self.variables = Variables::begin(self.collation);
        self.own.clear();
        self.tables.clear();
        self.locks.clear();
        self.transaction = Transaction::default();
        self.prepared.clear();
        self.texts.clear();
        self.track.tell_all(false);
    }

    fn query(&mut self, text: &str, fate: Option<&Failed>) -> Vec<Payload> {
        let text = match text.strip_prefix("/* ") {
            Some(rest) => rest.split_once("*/").map_or("", |(_, rest)| rest).trim(),
            None => text,
        };
        // Such a comment is executed.
        let text = &text.replace("/*!50000 ", "").replace(" */", "");
        let mut parts = split(text, b';');
        parts.retain(|part| !part.is_empty());
        let block = text.strip_prefix("begin not atomic ");
        if let Some(first) = block.and_then(|block| block.split(';').next()) {
            parts[0] = first;
            return self.block(&parts, fate);
        }
        if parts.len() > 1 && !self.has_several {
            let text = "You have an error in your SQL syntax";
            return vec![err(&(1064, "42000", text.to_owned()))];
        }
        let mut says = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            self.track.begin();
            match self.run(part, fate) {
                Ok(answer) => self.say(answer, at + 1 < parts.len(), false, &mut says),
                Err(failed) => {
                    says.push(err(&failed));
                    break;
                }
            }
        }
        says
    }

    /// Statements of which only rows are answered, and the last with OK.
    fn block(&mut self, parts: &[&str], fate: Option<&Failed>) -> Vec<Payload> {
        let mut says = Vec::new();
        for part in parts.iter().filter(|part| **part != "end") {
            match self.run(part, fate) {
                Ok(rows @ Answer::Rows(..)) => self.say(rows, true, false, &mut says),
                Ok(Answer::Done { .. }) => {}
                Err(failed) => {
                    says.push(err(&failed));
                    return says;
                }
            }
        }
        says.push(self.ok());
        says
    }

    fn prepare(&mut self, text: &str) -> Result<Vec<Payload>, Failed> {
        self.check(text)?;
        self.prepared_last += 1;
        self.prepared.insert(self.prepared_last, text.to_owned());
        let columns = match text.strip_prefix("select ") {
            Some(items) => split(items, b',').len(),
            None => 0,
        };
        let parameters = text.matches('?').count();
        let mut first = vec![OK];
        first.extend(self.prepared_last.to_le_bytes());
        first.extend((columns as u16).to_le_bytes());
        first.extend((parameters as u16).to_le_bytes());
        first.extend([0; 3]);
        let mut says = vec![first];
        for count in [parameters, columns] {
            says.extend(vec![definition(); count]);
            if count > 0 && !self.has(DEPRECATE_EOF) {
                says.push(self.eof(0));
            }
        }
        Ok(says)
    }

    fn execute(
        &mut self,
        statement: u32,
        value: Option<&str>,
        fate: Option<&Failed>,
    ) -> Result<Vec<Payload>, Failed> {
        let text = self.text_of(statement)?;
        let text = text.replace('?', value.unwrap_or_default());
        let answer = self.run(&text, fate)?;
        let mut says = Vec::new();
        self.say(answer, false, true, &mut says);
        Ok(says)
    }

    fn text_of(&self, statement: u32) -> Result<String, Failed> {
        let text = self.prepared.get(&statement).cloned();
        text.ok_or_else(|| {
            let text = format!("Unknown prepared statement handler ({statement})");
            (1243, "HY000", text)
        })
    }

    fn say(&mut self, answer: Answer, has_more: bool, is_binary: bool, says: &mut Vec<Payload>) {
        let more = if has_more { MORE_RESULTS } else { 0 };
        match answer {
            Answer::Done { insert_id, info } => says.push(self.okay(OK, insert_id, info, more)),
            Answer::Rows(count, rows) => {
                says.extend(columns(count));
                if !self.has(DEPRECATE_EOF) {
                    says.push(self.eof(more));
                }
                says.extend(rows.iter().map(|row| packets::row(row, is_binary)));
                says.push(self.end(more));
            }
        }
    }

    /// An OK packet that says nothing else.
    pub fn ok(&mut self) -> Payload {
        self.okay(OK, 0, "", 0)
    }

    /// The end of rows.
    fn end(&mut self, more: u16) -> Payload {
        match self.has(DEPRECATE_EOF) {
            true => self.okay(EOF, 0, "", more),
            false => self.eof(more),
        }
    }

    fn eof(&self, more: u16) -> Payload {
        let changed = if self.track.is_changed() { CHANGED } else { 0 };
        let status = (self.status() | more | changed).to_le_bytes();
        vec![EOF, 0, 0, status[0], status[1]]
    }

    fn okay(&mut self, first: u8, insert_id: u64, info: &str, more: u16) -> Payload {
        let changes = self.track.take();
        let changed = if changes.is_some() { CHANGED } else { 0 };
        let mut payload = vec![first];
        payload.extend(length_encoded(u64::from(insert_id > 0)));
        payload.extend(length_encoded(insert_id));
        payload.extend((self.status() | more | changed).to_le_bytes());
        payload.extend([0; 2]);
        if !info.is_empty() || changes.is_some() {
            payload.extend(packets::text(info.as_bytes()));
        }
        if let Some(changes) = changes {
            payload.extend(packets::text(&changes));
        }
        payload
    }

    fn status(&self) -> u16 {
        let variables = &self.variables;
        let flags = [
            (self.transaction.is_open(), IN_TRANSACTION),
            (variables.is_on("autocommit"), AUTOCOMMIT),
            (self.transaction.is_open_read_only(), READ_ONLY),
            (variables.has_mode("NO_BACKSLASH_ESCAPES"), NO_BACKSLASHES),
            (variables.has_mode("ANSI_QUOTES"), ANSI_QUOTES),
        ];
        let set = flags.into_iter().filter(|(is_set, _)| *is_set);
        set.map(|(_, flag)| flag).sum()
    }

    fn has(&self, capability: u32) -> bool {
        self.capabilities & capability != 0
    }
}
