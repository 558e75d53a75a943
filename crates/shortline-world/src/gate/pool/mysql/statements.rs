//! The statements of a session ([`super::sql`]).

use super::packets::{Failed, Row};
use super::sql::{Answer, DONE, Session};
use super::words::{call, numbers, split, unquoted, worked_on};
use crate::content;

/// The most bytes of a row's only column.
const ROW_BYTES_MAX: usize = 8_000;

impl Session {
    /// Runs one statement. What it works on fails with `fate`, if there is one.
    pub(super) fn run(&mut self, text: &str, fate: Option<&Failed>) -> Result<Answer, Failed> {
        self.check(text)?;
        if let Some([number, us, _]) = worked_on(text) {
            let looks_only = !text.contains("work(") && !text.contains("fail(");
            self.worked.push((number, us));
            let failed = match text.contains("fail(") {
                true => Some((1242, "21000", "Subquery returns more than 1 row".to_owned())),
                false => None,
            };
            let failed = fate.cloned().or(failed);
            if !looks_only {
                let track = &mut self.track;
                self.transaction
                    .uses_table(failed.is_some(), &self.variables, track);
            }
            if let Some(failed) = failed {
                return Err(failed);
            }
        }
        let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
        match (first, rest) {
            ("select" | "SELECT", items) => return self.select(items),
            ("set" | "SET", rest) => return self.set(rest),
            ("begin", "" | "work") => self.begin_one(""),
            ("start", rest) => self.begin_one(rest.strip_prefix("transaction ").unwrap_or("")),
            ("commit" | "rollback", rest) => {
                let chains = match rest {
                    "and chain" => true,
                    "and no chain" => false,
                    _ => self.variables.is("completion_type", "CHAIN"),
                };
                self.transaction
                    .end(chains, &self.variables, &mut self.track);
            }
            ("insert", _) => {
                let [number, ..] = worked_on(text).unwrap_or_default();
                self.variables
                    .put("last_insert_id", Some(number.to_string()));
                return Ok(Answer::Done {
                    insert_id: number,
                    info: "",
                });
            }
            ("use", name) => self.choose(name)?,
            ("do" | "DO", _) => {}
            ("lock", _) => self.transaction.lock(&self.variables, &mut self.track),
            ("unlock", _) => self.transaction.unlock(&self.variables, &mut self.track),
            _ => return self.keep(first, rest),
        }
        Ok(DONE)
    }

    /// What is found wrong before anything runs.
    pub(super) fn check(&self, text: &str) -> Result<(), Failed> {
        let failed = |code, state, text: &str| Err((code, state, text.to_owned()));
        let writes = ["insert ", "create ", "drop "];
        if text.starts_with("selec ") || text.contains("; ") && !text.contains('\'') {
            return failed(1064, "42000", "You have an error in your SQL syntax");
        }
        let is_read_only = self.transaction.is_read_only(&self.variables);
        if is_read_only && writes.iter().any(|first| text.starts_with(first)) {
            let text = "Cannot execute statement in a READ ONLY transaction";
            return failed(1792, "25006", text);
        }
        if let Some((_, table)) = text.split_once(" from t") {
            let table = self.table(&format!("t{table}"))?;
            if text.starts_with("select ") && !self.tables.contains(&table) {
                return failed(1146, "42S02", "There is no such table");
            }
        }
        Ok(())
    }

    fn begin_one(&mut self, said: &str) {
        self.transaction
            .begin(said, &self.variables, &mut self.track);
    }

    /// Chooses a database.
    pub(super) fn choose(&mut self, name: &str) -> Result<(), Failed> {
        if !["one", "two"].contains(&name) {
            return Err((1049, "42000", format!("Unknown database '{name}'")));
        }
        self.database = Some(name.to_owned());
        self.track.schema(name);
        Ok(())
    }

    /// A temporary table in the session's database.
    fn table(&self, name: &str) -> Result<String, Failed> {
        match &self.database {
            Some(database) => Ok(format!("{database}.{name}")),
            None => Err((1046, "3D000", "No database selected".to_owned())),
        }
    }

    /// Statements that leave something at the connection.
    fn keep(&mut self, first: &str, rest: &str) -> Result<Answer, Failed> {
        let words: Vec<&str> = rest.splitn(3, ' ').collect();
        let unknown = |name: &str| {
            let text = format!("Unknown prepared statement handler ({name})");
            (1243, "HY000", text)
        };
        match (first, &words[..]) {
            ("create", ["temporary", "table", name]) => {
                let table = self.table(name)?;
                if !self.tables.insert(table) {
                    return Err((1050, "42S01", format!("Table '{name}' already exists")));
                }
            }
            ("drop", ["temporary", "table", name]) => {
                let table = self.table(name)?;
                if !self.tables.remove(&table) {
                    return Err((1051, "42S02", format!("Unknown table '{name}'")));
                }
            }
            ("prepare", [name, "from", text]) => {
                let text = unquoted(text).to_owned();
                self.texts.insert((*name).to_owned(), text);
                self.track.state();
                return Ok(Answer::Done {
                    insert_id: 0,
                    info: "Statement prepared",
                });
            }
            ("execute", [name]) => {
                let text = self.texts.get(*name).cloned();
                return self.run(&text.ok_or_else(|| unknown(name))?, None);
            }
            ("deallocate", ["prepare", name]) => {
                self.texts.remove(*name).ok_or_else(|| unknown(name))?;
            }
            // A procedure that leaves something.
            ("call", ["leave()"]) => {
                self.own.insert("@z".to_owned(), "left".to_owned());
                self.role = Some("boss".to_owned());
            }
            _ => return Err((1064, "42000", format!("a wrong statement: {first} {rest}"))),
        }
        self.track.state();
        Ok(DONE)
    }

    fn select(&mut self, items: &str) -> Result<Answer, Failed> {
        let (items, limit) = match items.strip_suffix(" LIMIT 1") {
            Some(items) => (items, 1),
            None => (items, self.variables.rows_max()),
        };
        if let Some((_, arguments)) = call(items).filter(|(name, _)| *name == "work") {
            let [number, _, bytes] = numbers(arguments).unwrap_or_default();
            let all = content::piece(number, 0, bytes as usize);
            let rows = all.chunks(ROW_BYTES_MAX);
            let rows = rows
                .take(limit)
                .map(|row| vec![Some(row.to_vec())])
                .collect();
            return Ok(Answer::Rows(1, rows));
        }
        if items.contains(" from t") {
            return Ok(Answer::Rows(1, Vec::new()));
        }
        let items = split(items, b',');
        let values: Result<Row, Failed> = items.iter().map(|item| self.item(item)).collect();
        let mut rows = vec![values?];
        rows.truncate(limit);
        Ok(Answer::Rows(items.len(), rows))
    }

    /// An item of a SELECT.
    fn item(&mut self, item: &str) -> Result<Option<Vec<u8>>, Failed> {
        let text = |text: &str| Ok(Some(text.as_bytes().to_vec()));
        if let Some(name) = item.strip_prefix("@@") {
            let name = name.strip_prefix("session.").unwrap_or(name);
            let value = self.variables.value(name).ok_or_else(|| {
                let text = format!("Unknown system variable '{name}'");
                (1193, "HY000", text)
            })?;
            return Ok(value.clone().map(String::into_bytes));
        }
        if let Some((name, value)) = item.split_once(" := ") {
            self.own.insert(name.to_owned(), value.to_owned());
            return text(value);
        }
        if item.starts_with('@') {
            return Ok(self.own.get(item).map(|value| value.clone().into_bytes()));
        }
        let Some((name, arguments)) = call(item) else {
            return text(unquoted(item));
        };
        let lock = || split(arguments, b',')[0].to_owned();
        match name {
            "database" | "DATABASE" => Ok(self.database.clone().map(String::into_bytes)),
            "state" => text(&self.state()),
            "current_role" => Ok(self.role.clone().map(String::into_bytes)),
            "last_insert_id" => {
                if !arguments.is_empty() {
                    self.variables
                        .put("last_insert_id", Some(arguments.to_owned()));
                }
                let value = self.variables.value("last_insert_id");
                Ok(value.cloned().flatten().map(String::into_bytes))
            }
            "get_lock" => {
                self.locks.insert(lock());
                text("1")
            }
            "release_lock" => match self.locks.remove(&lock()) {
                true => text("1"),
                false => Ok(None),
            },
            _ => Err((1305, "42000", format!("FUNCTION {name} does not exist"))),
        }
    }

    fn set(&mut self, rest: &str) -> Result<Answer, Failed> {
        let words: Vec<&str> = rest.split(' ').collect();
        match words[..] {
            ["SESSION", first, ..] if first.starts_with("session_track") => {
                self.track.tell_all(true);
                self.track.state();
            }
            ["names", set] => self.names(set, None)?,
            ["names", set, "collate", collation] => self.names(set, Some(collation))?,
            ["role", "none"] => {
                self.role = None;
                self.track.state();
            }
            ["role", "boss"] => {
                self.role = Some("boss".to_owned());
                self.track.state();
            }
            ["transaction", ..] => {
                let said = rest.strip_prefix("transaction ").unwrap_or_default();
                self.transaction.set_next(said, &mut self.track)?;
            }
            ["session", "transaction", "read", only] => {
                let value = if only == "only" { "1" } else { "0" };
                self.assign(&[("tx_read_only", value)])?;
            }
            ["session", "transaction", "isolation", "level", ..] => {
                let level = words[4..].join("-").to_uppercase();
                self.assign(&[("tx_isolation", &level)])?;
            }
            ["statement", assignment, "for", ..] => {
                let (_, text) = rest.split_once(" for ").unwrap_or_default();
                return self.set_for(assignment, text);
            }
            _ => {
                let items = split(rest, b',');
                let pairs = items.iter().map(|item| item.split_once('='));
                let pairs: Option<Vec<(&str, &str)>> = pairs.collect();
                let wrong = || (1064, "42000", format!("a wrong statement: set {rest}"));
                self.assign(&pairs.ok_or_else(wrong)?)?;
            }
        }
        Ok(DONE)
    }

    /// SET STATEMENT. It reports the variable as changed, and sets it back.
    fn set_for(&mut self, assignment: &str, text: &str) -> Result<Answer, Failed> {
        let before = self.variables.clone();
        self.assign(&[assignment.split_once('=').unwrap_or_default()])?;
        // Whether it fails has been seen before.
        let answer = self.select(text.strip_prefix("select ").unwrap_or(text));
        self.variables = before;
        answer
    }

    fn names(&mut self, set: &str, collation: Option<&str>) -> Result<(), Failed> {
        let unquoted = unquoted(set);
        for name in self.variables.set_names(unquoted, collation)? {
            self.track.variable(name, unquoted);
        }
        Ok(())
    }

    /// Sets variables, all of them or none.
    fn assign(&mut self, pairs: &[(&str, &str)]) -> Result<(), Failed> {
        let mut read = Vec::new();
        for (name, literal) in pairs {
            let name = name.strip_prefix("@@session.").unwrap_or(name);
            let value = match name.starts_with('@') {
                true => None,
                false => Some(self.variables.read(name, literal)?),
            };
            read.push((name, literal, value));
        }
        for (name, literal, value) in read {
            let Some((name, value)) = value else {
                self.own.insert(name.to_owned(), (*literal).to_owned());
                self.track.state();
                continue;
            };
            let was_off = !self.variables.is_on("autocommit");
            self.track
                .variable(name, value.as_deref().unwrap_or_default());
            self.variables.put(name, value);
            let is_turned_on = was_off && self.variables.is_on("autocommit");
            if name == "autocommit" && is_turned_on && self.transaction.is_open() {
                self.transaction
                    .end(false, &self.variables, &mut self.track);
            }
        }
        Ok(())
    }

    /// All that a session can see of itself.
    pub(super) fn state(&self) -> String {
        let variables: Vec<String> = self
            .variables
            .all()
            .map(|(name, value)| format!("{name}={}", value.as_deref().unwrap_or("NULL")))
            .collect();
        format!(
            "{} in {:?} as {:?}: {} {:?} {:?} {:?} {:?} {:?} {} {} {}",
            self.user,
            self.database,
            self.role,
            variables.join(" "),
            self.own,
            self.tables,
            self.locks,
            self.texts,
            self.transaction.next(),
            self.transaction.has_locks(),
            self.transaction.is_open(),
            self.has_several,
        )
    }
}
