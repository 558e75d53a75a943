//! The variables that a session has set. Its next connection gets the same values, and the next session on this
//! connection does not see them.
//!
//! No SQL is parsed for this. The server reports in its OK packets which variables have changed ([`super::track`]).
//! The values that it reports may be wrong (`SET STATEMENT`, `SET timestamp = DEFAULT`: MariaDB 10.11). For
//! `SET NAMES ... COLLATE` they are incomplete. So the server is asked for the values after such a unit ([`look`]).
//!
//! The variables in `FOLLOWED` are followed, because a later `SET` restores their whole effect. A session that sets
//! another variable is pinned.

use std::collections::{BTreeMap, BTreeSet};

use crate::handover::Variable;
use crate::mysql::ask::Row;

/// The variables of character sets, in the order in which they are set. Setting a connection's character set also
/// sets its collation. They are reset to their values at login, not to DEFAULT, because the client's login chose
/// those.
const BASE: [&str; 4] = [
    "character_set_client",
    "character_set_results",
    "character_set_connection",
    "collation_connection",
];
/// The variables that the meaning of a text depends on when it is prepared: how it is read, what character set its
/// strings have, and what a server resolves only once (MySQL since 8.0.22).
pub const MEANING: [&str; 11] = [
    "sql_mode",
    "character_set_client",
    "character_set_connection",
    "collation_connection",
    "time_zone",
    "div_precision_increment",
    "group_concat_max_len",
    "default_week_format",
    "lc_time_names",
    "sql_auto_is_null",
    "default_storage_engine",
];
/// A variable that also changes without a SET.
pub const INSERT_ID: &str = "last_insert_id";

/// The variables that are followed, and whether the value is a number.
const FOLLOWED: [(&str, bool); 58] = [
    ("auto_increment_increment", true),
    ("auto_increment_offset", true),
    ("autocommit", true),
    ("big_tables", true),
    ("character_set_client", false),
    ("character_set_connection", false),
    ("character_set_results", false),
    ("collation_connection", false),
    ("completion_type", false),
    ("default_storage_engine", false),
    ("default_week_format", true),
    ("div_precision_increment", true),
    ("eq_range_index_dive_limit", true),
    ("explicit_defaults_for_timestamp", true),
    ("foreign_key_checks", true),
    ("group_concat_max_len", true),
    ("idle_transaction_timeout", true),
    ("idle_readonly_transaction_timeout", true),
    ("idle_write_transaction_timeout", true),
    ("information_schema_stats_expiry", true),
    ("innodb_lock_wait_timeout", true),
    ("innodb_strict_mode", true),
    ("interactive_timeout", true),
    ("join_buffer_size", true),
    ("last_insert_id", true),
    ("lc_messages", false),
    ("lc_time_names", false),
    ("lock_wait_timeout", true),
    ("long_query_time", true),
    ("low_priority_updates", true),
    ("max_execution_time", true),
    ("max_heap_table_size", true),
    ("max_join_size", true),
    ("max_recursive_iterations", true),
    ("max_sort_length", true),
    ("max_statement_time", true),
    ("net_read_timeout", true),
    ("net_retry_count", true),
    ("net_write_timeout", true),
    ("optimizer_search_depth", true),
    ("optimizer_switch", false),
    ("read_buffer_size", true),
    ("read_rnd_buffer_size", true),
    ("sort_buffer_size", true),
    ("sql_auto_is_null", true),
    ("sql_big_selects", true),
    ("sql_mode", false),
    ("sql_notes", true),
    ("sql_quote_show_create", true),
    ("sql_safe_updates", true),
    ("sql_select_limit", true),
    ("sql_warnings", true),
    ("time_zone", false),
    ("transaction_isolation", false),
    ("transaction_read_only", true),
    ("tx_isolation", false),
    ("tx_read_only", true),
    ("unique_checks", true),
];
/// The most bytes of a value.
const VALUE_BYTES_MAX: usize = 4096;

/// Variables whose values differ from those at login, by name. None is NULL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Settings(BTreeMap<&'static str, Option<Box<str>>>);

/// The names of variables to ask for.
pub type Names = BTreeSet<&'static str>;

/// The variable of this name, if it is followed.
pub fn followed(name: &[u8]) -> Option<&'static str> {
    let found = FOLLOWED
        .iter()
        .find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name));
    found.map(|(known, _)| *known)
}

/// Whether the variable of this name only tells what a statement has done. MariaDB with a binary log reports
/// `last_gtid` behind each write.
pub fn is_result(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"last_gtid")
}

/// Whether the meaning of a text depends on the variable of this name.
pub fn of_meaning(name: &str) -> bool {
    MEANING.contains(&name)
}

/// Adds the variables of character sets, which are always asked for.
pub fn complete(names: &mut Names) {
    names.extend(BASE);
}

/// The query for the variables of character sets on a new connection.
pub fn look_at_base() -> String {
    look(&BASE.into_iter().collect())
}

/// The name of a database. None if a session is in no database.
pub type Schema = Option<Box<[u8]>>;

/// Reads the answer to `look_at_base`: the variables and the database of a new connection.
pub fn base_of(mut row: Row) -> Option<(Settings, Schema)> {
    let schema = row.pop()?.map(Vec::into_boxed_slice);
    let mut base = Settings::default();
    base.follow(&BASE.into_iter().collect(), row, &Settings::default())?;
    Some((base, schema))
}

/// The query for the values of variables, and for the database in the last column. A limit of its own makes it
/// independent of `sql_select_limit`, which may be 0.
pub fn look(names: &Names) -> String {
    let names: Vec<String> = names
        .iter()
        .map(|name| format!("@@session.{name}"))
        .collect();
    format!("SELECT {},DATABASE() LIMIT 1", names.join(","))
}

impl Settings {
    /// Notes the values in a row for these names, on a connection that began with `base`. Returns None if a value
    /// cannot be set again, or if the row has another length.
    pub fn follow(&mut self, names: &Names, row: Row, base: &Self) -> Option<()> {
        if row.len() != names.len() {
            return None;
        }
        for (name, value) in names.iter().zip(row) {
            let value = match value {
                None => None,
                Some(value) => Some(settable(name, value)?),
            };
            let is_base = match base.0.get(name) {
                Some(base) => *base == value,
                None => *name == INSERT_ID && value.as_deref() == Some("0"),
            };
            match is_base {
                true => drop(self.0.remove(name)),
                false => drop(self.0.insert(name, value)),
            }
        }
        Some(())
    }

    /// All of them, for another process.
    pub fn pack(&self) -> Vec<Variable> {
        let values = self.0.iter();
        values
            .map(|(name, value)| ((*name).to_owned(), value.as_deref().map(str::to_owned)))
            .collect()
    }

    /// Those of another process. None if one of them is not followed or cannot be set.
    pub fn unpack(variables: Vec<Variable>) -> Option<Self> {
        let values = variables.into_iter().map(|(name, value)| {
            let name = followed(name.as_bytes())?;
            match value {
                None => Some((name, None)),
                Some(value) => Some((name, Some(settable(name, value.into_bytes())?))),
            }
        });
        values.collect::<Option<_>>().map(Self)
    }

    /// Those that the meaning of a text depends on.
    pub fn of_meaning(&self) -> Self {
        let values = self.0.iter().filter(|(name, _)| of_meaning(name));
        Self(values.map(|(name, value)| (*name, value.clone())).collect())
    }

    /// These, with the others' values for what the meaning of a text depends on.
    pub fn with_meaning(&self, others: &Self) -> Self {
        let mut settings = self.clone();
        settings.0.retain(|name, _| !of_meaning(name));
        settings.0.extend(others.of_meaning().0);
        settings
    }

    /// Whether autocommit is off. Then each statement begins a transaction if none is open.
    pub fn is_autocommit_off(&self) -> bool {
        self.0
            .get("autocommit")
            .is_some_and(|value| value.as_deref() == Some("0"))
    }

    /// Whether COMMIT and ROLLBACK do more than to end a transaction.
    pub fn has_completion(&self) -> bool {
        self.0.contains_key("completion_type")
    }

    /// Whether transactions only read where they do not say anything else, by either name of that.
    pub fn is_read_only(&self) -> bool {
        ["transaction_read_only", "tx_read_only"]
            .iter()
            .any(|name| {
                let value = self.0.get(*name).and_then(|value| value.as_deref());
                value == Some("1")
            })
    }

    /// The statement that changes a connection's variables from `there` to these. The connection began with `base`.
    /// None if nothing differs.
    pub fn changes_from(&self, there: &Self, base: &Self) -> Option<String> {
        let mut changes = Vec::new();
        for name in order() {
            let (to, from) = (self.0.get(name), there.0.get(name));
            if to == from && !(BASE.contains(&name) && self.differs_in_base(there)) {
                continue;
            }
            let value = to.or_else(|| base.0.get(name));
            let value = match value {
                Some(value) => literal(name, value.as_deref()),
                None if name == INSERT_ID => "0".to_owned(),
                None => "DEFAULT".to_owned(),
            };
            changes.push(format!("@@session.{name}={value}"));
        }
        (!changes.is_empty()).then(|| format!("SET {}", changes.join(",")))
    }

    fn differs_in_base(&self, there: &Self) -> bool {
        BASE.iter()
            .any(|name| self.0.get(name) != there.0.get(name))
    }
}

/// All followed names. Those of character sets come last, in their order.
fn order() -> impl Iterator<Item = &'static str> {
    let others = FOLLOWED
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !BASE.contains(name));
    others.chain(BASE)
}

fn is_number(name: &str) -> bool {
    FOLLOWED
        .iter()
        .any(|(known, is_number)| *known == name && *is_number)
}

/// The value, if it can be set again as a literal in any SQL mode.
fn settable(name: &str, value: Vec<u8>) -> Option<Box<str>> {
    let value = String::from_utf8(value).ok()?;
    let is_safe = match is_number(name) {
        true => {
            !value.is_empty()
                && value
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'))
        }
        false => value
            .bytes()
            .all(|byte| (b' '..=b'~').contains(&byte) && !matches!(byte, b'\'' | b'\\' | b'"')),
    };
    (is_safe && value.len() <= VALUE_BYTES_MAX).then(|| value.into())
}

fn literal(name: &str, value: Option<&str>) -> String {
    match value {
        None => "NULL".to_owned(),
        Some(value) if is_number(name) => value.to_owned(),
        Some(value) => format!("'{value}'"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn names(names: &[&[u8]]) -> Names {
        names.iter().map(|name| followed(name).unwrap()).collect()
    }

    fn base() -> Settings {
        base_of(vec![
            Some(b"utf8mb4".to_vec()),
            Some(b"utf8mb4".to_vec()),
            Some(b"utf8mb4".to_vec()),
            Some(b"utf8mb4_general_ci".to_vec()),
            None,
        ])
        .unwrap()
        .0
    }

    #[test]
    fn what_differs_is_set_and_what_is_gone_is_set_back() {
        let mut settings = Settings::default();
        let row = vec![Some(b"0".to_vec()), Some(b"ANSI".to_vec())];
        settings
            .follow(&names(&[b"autocommit", b"SQL_MODE"]), row, &base())
            .unwrap();
        assert!(settings.is_autocommit_off());
        let none = Settings::default();
        assert_eq!(
            settings.changes_from(&none, &base()).unwrap(),
            "SET @@session.autocommit=0,@@session.sql_mode='ANSI'"
        );
        assert_eq!(
            none.changes_from(&settings, &base()).unwrap(),
            "SET @@session.autocommit=DEFAULT,@@session.sql_mode=DEFAULT"
        );
        assert_eq!(settings.changes_from(&settings.clone(), &base()), None);
    }

    #[test]
    fn character_sets_are_set_together_and_go_back_to_the_logins() {
        let mut settings = Settings::default();
        let row = vec![
            Some(b"latin1".to_vec()),
            Some(b"utf8mb4".to_vec()),
            None,
            Some(b"utf8mb4_general_ci".to_vec()),
        ];
        let mut all = Names::new();
        complete(&mut all);
        settings.follow(&all, row, &base()).unwrap();
        let none = Settings::default();
        assert_eq!(
            settings.changes_from(&none, &base()).unwrap(),
            "SET @@session.character_set_client='latin1',@@session.character_set_results=NULL,\
             @@session.character_set_connection='utf8mb4',@@session.collation_connection='utf8mb4_general_ci'"
        );
        assert!(
            none.changes_from(&settings, &base())
                .unwrap()
                .contains("character_set_results='utf8mb4'")
        );
    }

    #[test]
    fn a_meaning_is_put_on_and_taken_off_again() {
        let values = |mode: &str, wait: &str| {
            let mut settings = Settings::default();
            let row = vec![Some(wait.into()), Some(mode.into())];
            let names = names(&[b"lock_wait_timeout", b"sql_mode"]);
            settings.follow(&names, row, &base()).unwrap();
            settings
        };
        let (before, now) = (values("ANSI", "5").of_meaning(), values("", "7"));
        let there = now.with_meaning(&before);
        assert_eq!(
            there.changes_from(&now, &base()).unwrap(),
            "SET @@session.sql_mode='ANSI'"
        );
        assert_eq!(
            now.changes_from(&there, &base()).unwrap(),
            "SET @@session.sql_mode=''"
        );
        assert_eq!(now.with_meaning(&now.of_meaning()), now);
        assert_eq!(Settings::unpack(now.pack()), Some(now));
        for (name, value) in [("sql_mode", "a'b"), ("timestamp", "1")] {
            let variables = vec![(name.to_owned(), Some(value.to_owned()))];
            assert_eq!(Settings::unpack(variables), None, "{name}");
        }
    }

    #[test]
    fn an_insert_id_goes_back_to_none() {
        let mut settings = Settings::default();
        let id = names(&[b"last_insert_id"]);
        settings
            .follow(&id, vec![Some(b"7".to_vec())], &base())
            .unwrap();
        let none = Settings::default();
        assert_eq!(
            none.changes_from(&settings, &base()).unwrap(),
            "SET @@session.last_insert_id=0"
        );
        settings
            .follow(&id, vec![Some(b"0".to_vec())], &base())
            .unwrap();
        assert_eq!(settings, none);
    }

    #[test]
    fn a_value_that_could_be_code_is_not_followed() {
        let mode = names(&[b"sql_mode"]);
        for value in ["a'b", "a\\", "\u{fc}", "a\"b"] {
            let row = vec![Some(value.as_bytes().to_vec())];
            assert_eq!(
                Settings::default().follow(&mode, row, &base()),
                None,
                "{value}"
            );
        }
        let number = names(&[b"autocommit"]);
        for value in ["", "1;2", "ON"] {
            let row = vec![Some(value.as_bytes().to_vec())];
            assert_eq!(
                Settings::default().follow(&number, row, &base()),
                None,
                "{value}"
            );
        }
        assert_eq!(followed(b"timestamp"), None);
    }

    proptest! {
        /// No followed value can add quotes to the statement.
        #[test]
        fn what_is_set_is_one_statement(value in prop::collection::vec(any::<u8>(), 0..20)) {
            let mut settings = Settings::default();
            if settings.follow(&names(&[b"time_zone"]), vec![Some(value)], &base()).is_some() {
                let set = settings.changes_from(&Settings::default(), &base()).unwrap();
                prop_assert_eq!(set.matches('\'').count(), 2);
            }
        }
    }
}
