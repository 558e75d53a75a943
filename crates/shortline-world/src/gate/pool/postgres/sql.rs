//! One session of PostgreSQL, as far as these worlds need it: parameters, prepared statements, a transaction,
//! temporary tables, advisory locks. What it answers depends on nothing but what was asked on its connection.
//!
//! The simulated server keeps one for each connection of the pool. Each client keeps one, too, and feeds it what it
//! sends: what that one answers is what a connection of its own would have answered.

use std::collections::{BTreeMap, BTreeSet};

use super::fields::{columns, first_text, numbers, quoted_pair, texts, value};
use crate::content;

/// A message: its type and its body.
pub type Message = (u8, Vec<u8>);

/// An error: its SQLSTATE and its text.
type Failed = (&'static str, String);

/// The parameters that a server reports when they change.
const REPORTED: [&str; 3] = ["DateStyle", "TimeZone", "application_name"];
/// The parameters that `state` shows.
const SHOWN: [&str; 6] = [
    "DateStyle",
    "TimeZone",
    "application_name",
    "my.own",
    "search_path",
    "work_mem",
];
/// The most bytes of a row's only column.
const ROW_BYTES_MAX: usize = 8_000;
/// How long a statement takes that only looks or sets, in microseconds.
const BRIEF_US: u64 = 150;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Session {
    user: String,
    /// What RESET returns to.
    began: BTreeMap<String, String>,
    kept: Kept,
    /// What `set local` has set.
    local: BTreeMap<String, String>,
    /// What a rollback returns to.
    before: Option<Kept>,
    locks: BTreeSet<u64>,
    /// `I`, `T` or `E`, as in ReadyForQuery.
    status: u8,
    unnamed: Option<String>,
    named: BTreeMap<String, String>,
    /// The text of the unnamed portal.
    portal: Option<String>,
    /// An error has come. Everything up to the Sync is ignored.
    skips: bool,
    reported: BTreeMap<String, String>,
}

/// What is transactional.
#[derive(Clone, Debug, Default)]
struct Kept {
    set: BTreeMap<String, String>,
    tables: BTreeSet<String>,
}

impl Session {
    /// A session of this user, with the parameters of its StartupMessage.
    pub fn begin(user: &str, startup: &BTreeMap<String, String>) -> Self {
        let mut began: BTreeMap<String, String> = [
            ("DateStyle", "ISO, MDY"),
            // As by ALTER ROLE ... SET.
            ("TimeZone", &*format!("Zone/{user}")),
            ("application_name", ""),
            ("search_path", "public"),
            ("work_mem", "4MB"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        for (name, value) in startup {
            began.insert(name.clone(), canonical(name, value));
        }
        let mut session = Self {
            user: user.to_owned(),
            began,
            kept: Kept::default(),
            local: BTreeMap::new(),
            before: None,
            locks: BTreeSet::new(),
            status: b'I',
            unnamed: None,
            named: BTreeMap::new(),
            portal: None,
            skips: false,
            reported: BTreeMap::new(),
        };
        session.report();
        session
    }

    /// The parameters as they were last reported.
    pub fn reported(&self) -> BTreeMap<String, String> {
        let mut reported = self.reported.clone();
        reported.insert("session_authorization".to_owned(), self.user.clone());
        reported
    }

    /// `I`, `T` or `E`.
    pub fn status(&self) -> u8 {
        self.status
    }

    /// How long a message keeps the server busy, in microseconds, and the number of its statement if it has one.
    pub fn work(&self, (tag, body): &Message) -> (u64, Option<u64>) {
        let text = match tag {
            b'Q' => Some(first_text(body)),
            b'E' if !self.skips => self.portal.clone(),
            _ => None,
        };
        let Some(text) = text else {
            return (0, None);
        };
        if self.status == b'E' || self.analyse(&text).is_err() {
            return (0, None);
        }
        match numbers(&text) {
            Some(numbers) if numbers.len() > 1 => (numbers[1], Some(numbers[0])),
            _ => (BRIEF_US, None),
        }
    }

    /// The answer to a message, where its statement was cancelled or not.
    pub fn handle(&mut self, (tag, body): &Message, is_cancelled: bool) -> Vec<Message> {
        match tag {
            b'Q' => {
                (self.unnamed, self.portal, self.skips) = (None, None, false);
                let mut says = Vec::new();
                for text in first_text(body).split(';').filter(|text| !text.is_empty()) {
                    if let Err(failed) = self.run(text, is_cancelled, &mut says) {
                        says.push(self.fail(failed));
                        break;
                    }
                }
                self.skips = false;
                self.ready(&mut says);
                says
            }
            b'S' => {
                self.skips = false;
                let mut says = Vec::new();
                self.ready(&mut says);
                says
            }
            _ if self.skips => Vec::new(),
            tag => {
                let mut says = Vec::new();
                if let Err(failed) = self.extended(*tag, body, is_cancelled, &mut says) {
                    says.push(self.fail(failed));
                    self.skips = true;
                }
                says
            }
        }
    }

    /// A gate has refused this message: nothing of it was done, nor of what follows up to the Sync. A Query has
    /// removed the unnamed statement, as one that fails does.
    pub fn refuse(&mut self, (tag, _): &Message) -> Vec<Message> {
        self.skips = *tag != b'Q';
        match tag {
            b'Q' => {
                self.unnamed = None;
                vec![(b'Z', vec![self.status])]
            }
            _ => Vec::new(),
        }
    }

    fn extended(
        &mut self,
        tag: u8,
        body: &[u8],
        is_cancelled: bool,
        says: &mut Vec<Message>,
    ) -> Result<(), Failed> {
        match tag {
            b'P' => {
                let (name, text) = (texts(body, 0), texts(body, 1));
                if name.is_empty() {
                    self.unnamed = None;
                }
                self.may_run(&text)?;
                self.analyse(&text)?;
                match &*name {
                    "" => self.unnamed = Some(text),
                    name if self.named.contains_key(name) => {
                        return Err(("42P05", "prepared statement already exists".to_owned()));
                    }
                    name => drop(self.named.insert(name.to_owned(), text)),
                }
                says.push((b'1', Vec::new()));
            }
            b'B' => {
                let text = self.statement(&texts(body, 1))?;
                self.may_run(&text)?;
                self.analyse(&text)?;
                self.portal = Some(text.replace("$1", &value(body)));
                says.push((b'2', Vec::new()));
            }
            b'D' => {
                let text = self.statement(&texts(&body[1..], 0))?;
                self.may_run(&text)?;
                self.analyse(&text)?;
                says.push((b't', vec![0, 0]));
                says.push(described(&text));
            }
            b'E' => {
                let text = self.portal.clone();
                let text = text.ok_or(("34000", "portal \"\" does not exist".to_owned()))?;
                // Up to the Sync it is one transaction.
                if self.before.is_none() {
                    self.before = Some(self.kept.clone());
                }
                self.run(&text, is_cancelled, says)?;
            }
            b'C' => {
                match &*texts(&body[1..], 0) {
                    "" => self.unnamed = None,
                    name => drop(self.named.remove(name)),
                }
                says.push((b'3', Vec::new()));
            }
            _ => {}
        }
        Ok(())
    }

    fn statement(&self, name: &str) -> Result<String, Failed> {
        let found = match name {
            "" => self.unnamed.as_ref(),
            name => self.named.get(name),
        };
        let missing = || {
            (
                "26000",
                format!("prepared statement {name:?} does not exist"),
            )
        };
        found.cloned().ok_or_else(missing)
    }

    /// In a failed transaction only its end is done.
    fn may_run(&self, text: &str) -> Result<(), Failed> {
        match self.status == b'E' && !matches!(text, "commit" | "rollback") {
            true => Err(("25P02", "current transaction is aborted".to_owned())),
            false => Ok(()),
        }
    }

    /// What is found wrong before anything runs.
    fn analyse(&self, text: &str) -> Result<(), Failed> {
        if text.starts_with("selec ") {
            return Err(("42601", "syntax error".to_owned()));
        }
        match text.split_once(" from ") {
            Some((_, table))
                if text.starts_with("select temp") && !self.kept.tables.contains(table) =>
            {
                Err(("42P01", format!("relation {table:?} does not exist")))
            }
            _ => Ok(()),
        }
    }

    fn fail(&mut self, (code, text): Failed) -> Message {
        self.local.clear();
        if let Some(before) = self.before.take() {
            self.kept = before;
        }
        if self.status == b'T' {
            self.status = b'E';
        }
        self.portal = None;
        let body = format!("SERROR\0C{code}\0M{text}\0\0");
        (b'E', body.into_bytes())
    }

    fn ready(&mut self, says: &mut Vec<Message>) {
        if self.status == b'I' {
            self.before = None;
            self.local.clear();
            self.portal = None;
        }
        for (name, value) in self.report() {
            says.push((b'S', format!("{name}\0{value}\0").into_bytes()));
        }
        says.push((b'Z', vec![self.status]));
    }

    /// What has changed of the reported parameters.
    fn report(&mut self) -> Vec<(&'static str, String)> {
        let mut changed = Vec::new();
        for name in REPORTED {
            let value = self.value(name);
            if self.reported.get(name) != Some(&value) {
                self.reported.insert(name.to_owned(), value.clone());
                changed.push((name, value));
            }
        }
        changed
    }

    fn value(&self, name: &str) -> String {
        let value = self.local.get(name).or_else(|| self.kept.set.get(name));
        value
            .or_else(|| self.began.get(name))
            .cloned()
            .unwrap_or_default()
    }

    /// All that a session can see of itself.
    fn state(&self) -> String {
        let shown = SHOWN.map(|name| format!("{name}={}", self.value(name)));
        format!(
            "{} {} {:?} {:?}",
            self.user,
            shown.join(" "),
            self.kept.tables,
            self.locks
        )
    }

    fn run(
        &mut self,
        text: &str,
        is_cancelled: bool,
        says: &mut Vec<Message>,
    ) -> Result<(), Failed> {
        self.may_run(text)?;
        self.analyse(text)?;
        if is_cancelled {
            return Err((
                "57014",
                "canceling statement due to user request".to_owned(),
            ));
        }
        let rows = match text {
            "begin" => {
                self.before.get_or_insert_with(|| self.kept.clone());
                self.status = b'T';
                return done("BEGIN", says);
            }
            "commit" | "rollback" => return self.end_transaction(text, says),
            "discard all" | "DISCARD ALL" => {
                self.kept = Kept::default();
                self.named.clear();
                self.locks.clear();
                return done("DISCARD ALL", says);
            }
            "reset all" => {
                self.kept.set.clear();
                return done("RESET", says);
            }
            _ if text.starts_with("SELECT name, setting ") => self.look(text),
            _ if text.starts_with("select ") || text.starts_with("SELECT ") => self.select(text)?,
            _ => return self.change(text, says),
        };
        for row in &rows {
            says.push((b'D', row.clone()));
        }
        done(&format!("SELECT {}", rows.len()), says)
    }

    fn end_transaction(&mut self, text: &str, says: &mut Vec<Message>) -> Result<(), Failed> {
        let before = self.before.take();
        if let (Some(before), true) = (before, text == "rollback" || self.status == b'E') {
            self.kept = before;
        }
        let is_kept = text == "commit" && self.status != b'E';
        self.status = b'I';
        self.local.clear();
        done(if is_kept { "COMMIT" } else { "ROLLBACK" }, says)
    }

    fn select(&mut self, text: &str) -> Result<Vec<Vec<u8>>, Failed> {
        let of = numbers(text).unwrap_or_default();
        let number = of.first().copied().unwrap_or_default();
        let (name, _) = text["select ".len()..].split_once('(').unwrap_or_default();
        match name {
            "work" => {
                let bytes = of.get(2).copied().unwrap_or_default();
                let rows = content::piece(number, 0, bytes as usize);
                Ok(rows
                    .chunks(ROW_BYTES_MAX)
                    .map(|row| columns(&[row]))
                    .collect())
            }
            "state" => Ok(vec![columns(&[self.state().as_bytes()])]),
            "temp" => Ok(vec![columns(&[b"temp"])]),
            "fail" => Err(("22012", "division by zero".to_owned())),
            "pg_advisory_lock" => {
                self.locks.insert(number);
                Ok(vec![columns(&[b""])])
            }
            "pg_advisory_unlock" => {
                self.locks.remove(&number);
                Ok(vec![columns(&[b"t"])])
            }
            // The pool's, with quoted names, and a client's.
            "set_config" | "pg_catalog.set_config" => {
                let (name, value) = quoted_pair(text);
                let value = canonical(&name, &value);
                self.kept.set.insert(name, value.clone());
                Ok(vec![columns(&[value.as_bytes()])])
            }
            _ => Err(("42883", format!("function {name} does not exist"))),
        }
    }

    fn change(&mut self, text: &str, says: &mut Vec<Message>) -> Result<(), Failed> {
        let words: Vec<&str> = text.split(' ').collect();
        let unquoted = |word: &str| word.replace('"', "");
        let value = |name: &str| {
            let (_, value) = text.split_once(" to ").unwrap_or_default();
            canonical(name, value.trim_matches('\''))
        };
        match words[..] {
            ["set", "local", name, "to", ..] => {
                if self.status == b'T' {
                    self.local.insert(name.to_owned(), value(name));
                }
                done("SET", says)
            }
            ["set", name, "to", ..] => {
                self.local.remove(name);
                self.kept.set.insert(name.to_owned(), value(name));
                done("SET", says)
            }
            ["reset" | "RESET", name] => {
                let name = unquoted(name);
                self.local.remove(&name);
                self.kept.set.remove(&name);
                done("RESET", says)
            }
            ["create", "temp", "table", name] => match self.kept.tables.insert(name.to_owned()) {
                true => done("CREATE TABLE", says),
                false => Err(("42P07", format!("relation {name:?} already exists"))),
            },
            ["drop", "table", name] => match self.kept.tables.remove(name) {
                true => done("DROP TABLE", says),
                false => Err(("42P01", format!("table {name:?} does not exist"))),
            },
            _ => Err(("42601", format!("syntax error at {text:?}"))),
        }
    }

    /// What the pool asks about a session's state.
    fn look(&self, text: &str) -> Vec<Vec<u8>> {
        let mut rows = Vec::new();
        let set = self.kept.set.iter().filter(|(name, _)| !name.contains('.'));
        for (name, value) in set {
            rows.push(columns(&[name.as_bytes(), value.as_bytes()]));
        }
        if !self.kept.tables.is_empty() {
            rows.push(columns(&[b"", b"it has temporary tables"]));
        }
        if !self.locks.is_empty() {
            rows.push(columns(&[b"", b"it holds an advisory lock"]));
        }
        let mut seen = BTreeSet::new();
        for part in text.split("current_setting(E'").skip(1) {
            let (name, _) = part.split_once('\'').unwrap_or_default();
            let value = self.value(name);
            if !value.is_empty() && seen.insert(name) {
                rows.push(columns(&[name.as_bytes(), value.as_bytes()]));
            }
        }
        rows
    }
}

/// A value as the server shows it.
fn canonical(name: &str, value: &str) -> String {
    match name {
        "TimeZone" if value.eq_ignore_ascii_case("utc") => "UTC".to_owned(),
        "DateStyle" if value.eq_ignore_ascii_case("iso") => "ISO, MDY".to_owned(),
        _ => value.to_owned(),
    }
}

fn done(tag: &str, says: &mut Vec<Message>) -> Result<(), Failed> {
    says.push((b'C', format!("{tag}\0").into_bytes()));
    Ok(())
}

fn described(text: &str) -> Message {
    match text.starts_with("select ") {
        true => (b'T', vec![0, 0]),
        false => (b'n', Vec::new()),
    }
}
