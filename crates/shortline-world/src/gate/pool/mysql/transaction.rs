//! The transaction of a session: whether one is open, and what the next one is like.

use super::packets::Failed;
use super::track::Track;
use super::variables::Variables;

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// The one that is open.
    open: Option<Open>,
    /// What the next one is, of what SET TRANSACTION says.
    next: Vec<String>,
    /// Tables are locked.
    has_locks: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Open {
    /// By a statement that begins it, rather than by one that needs it.
    is_explicit: bool,
    is_read_only: bool,
}

impl Transaction {
    /// Whether one is open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether tables are locked.
    pub fn has_locks(&self) -> bool {
        self.has_locks
    }

    /// What SET TRANSACTION has said of the next one.
    pub fn next(&self) -> String {
        self.next.join(" ")
    }

    /// Whether what is open only reads.
    pub fn is_open_read_only(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.is_read_only)
    }

    /// Whether a statement that writes is refused.
    pub fn is_read_only(&self, variables: &Variables) -> bool {
        match &self.open {
            Some(open) => open.is_read_only,
            None => self.is_next_read_only(variables),
        }
    }

    fn is_next_read_only(&self, variables: &Variables) -> bool {
        let said = self
            .next
            .iter()
            .rev()
            .find(|said| said.starts_with("READ "));
        match said.map(String::as_str) {
            Some("READ ONLY") => true,
            Some("READ WRITE") => false,
            _ => variables.is_on("tx_read_only"),
        }
    }

    /// SET TRANSACTION.
    ///
    /// # Errors
    /// One is open.
    pub fn set_next(&mut self, said: &str, track: &mut Track) -> Result<(), Failed> {
        if self.is_open() {
            let text =
                "Transaction characteristics can't be changed while a transaction is in progress";
            return Err((1568, "25001", text.to_owned()));
        }
        self.next.push(said.to_uppercase());
        track.characteristics(format!("SET TRANSACTION {};", said.to_uppercase()));
        Ok(())
    }

    /// BEGIN, with what it says of itself.
    pub fn begin(&mut self, said: &str, variables: &Variables, track: &mut Track) {
        if self.open.take().is_some() {
            self.next.clear();
        }
        let is_read_only = match said {
            "read only" => true,
            "read write" => false,
            _ => self.is_next_read_only(variables),
        };
        self.has_locks = false;
        self.open = Some(Open {
            is_explicit: true,
            is_read_only,
        });
        track.characteristics("START TRANSACTION;".to_owned());
        self.report(track);
    }

    /// COMMIT and ROLLBACK. `chains`: another one like it begins at once.
    pub fn end(&mut self, chains: bool, variables: &Variables, track: &mut Track) {
        let is_read_only = self.is_read_only(variables);
        let before = self.open.take();
        let is_explicit = before.as_ref().is_some_and(|open| open.is_explicit);
        let has_said = !self.next.is_empty() || is_explicit;
        self.next.clear();
        if chains {
            self.open = Some(Open {
                is_explicit: true,
                is_read_only,
            });
        }
        if chains || before.is_some() {
            self.report(track);
        }
        match (chains, has_said) {
            (true, _) => track.characteristics("START TRANSACTION;".to_owned()),
            (false, true) => track.characteristics(String::new()),
            (false, false) => {}
        }
    }

    /// A statement has used a table. `has_failed`: and then failed.
    pub fn uses_table(&mut self, has_failed: bool, variables: &Variables, track: &mut Track) {
        if self.is_open() {
            return;
        }
        if !variables.is_on("autocommit") {
            self.open = Some(Open {
                is_explicit: false,
                is_read_only: self.is_next_read_only(variables),
            });
            self.report(track);
        } else if !has_failed && !self.next.is_empty() {
            self.next.clear();
            track.characteristics(String::new());
        }
    }

    /// LOCK TABLES.
    pub fn lock(&mut self, variables: &Variables, track: &mut Track) {
        self.end(false, variables, track);
        self.has_locks = true;
        self.report(track);
        if !variables.is_on("autocommit") {
            self.uses_table(false, variables, track);
        }
    }

    /// UNLOCK TABLES.
    pub fn unlock(&mut self, variables: &Variables, track: &mut Track) {
        if std::mem::take(&mut self.has_locks) {
            self.end(false, variables, track);
            self.report(track);
        }
    }

    fn report(&self, track: &mut Track) {
        let first = match &self.open {
            None => '_',
            Some(open) if open.is_explicit => 'T',
            Some(_) => 'I',
        };
        let last = if self.has_locks { 'L' } else { '_' };
        track.transaction(format!("{first}______{last}"));
    }
}
