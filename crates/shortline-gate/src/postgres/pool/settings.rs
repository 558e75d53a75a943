//! The parameters that a session has set. Its next connection gets the same values, and the next session on this
//! connection does not see them.
//!
//! No SQL is parsed for this. The server reports some parameters when they change (ParameterStatus), and these are
//! followed. After a transaction that may have changed other state ([`super::leaving`]) the server is queried
//! ([`look`]). The query returns every parameter whose value comes from the session, and each reason why the
//! session depends on its connection. Such a session keeps its connection until the reason is gone.
//!
//! No view of the server shows custom parameters (`SET my.own = 1`). So the server is asked about every name with
//! a dot in such a statement. A computed name pins the session. A custom parameter cannot be removed again, only set
//! to the empty string. So a session may find an empty parameter that its own connection would not have.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::reply::query;
use super::login::Parameters;

/// Parameters whose values differ from those at login, by name. Sessions that began alike share one table, and copy it
/// before they change it: of thousands of idle sessions hardly one has its own. `None` is an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(Option<Arc<Values>>);

/// Values by name.
type Values = BTreeMap<Box<[u8]>, Box<[u8]>>;

static NO_VALUES: Values = BTreeMap::new();

/// The most parameters that are kept.
const SETTINGS_MAX: usize = 256;

/// Parameters that the server reports and that a client cannot set.
const STATES: [&[u8]; 8] = [
    b"in_hot_standby",
    b"integer_datetimes",
    b"is_superuser",
    b"max_identifier_length",
    b"scram_iterations",
    b"server_encoding",
    b"server_version",
    b"session_authorization",
];

impl Settings {
    /// Notes a value that the server reports, on a connection that began with the values `began`.
    pub fn follow(&mut self, name: &[u8], value: &[u8], began: &Parameters) {
        match began.get(name).is_some_and(|began| *began == value) {
            true => self.remove(name),
            false => self.report(name, value),
        }
    }

    fn remove(&mut self, name: &[u8]) {
        if !self.has(name) {
            return;
        }
        if let Some(values) = &mut self.0 {
            Arc::make_mut(values).remove(name);
        }
        if self.values().is_empty() {
            self.0 = None;
        }
    }

    fn values(&self) -> &Values {
        self.0.as_deref().unwrap_or(&NO_VALUES)
    }

    /// The same, for a session that began with other settings than the connection: of those it keeps each value.
    /// Without one it would return to the value that it began with.
    pub fn follow_from(
        &mut self,
        began_with: &Self,
        name: &[u8],
        value: &[u8],
        login: &Parameters,
    ) {
        match began_with.has(name) {
            true => self.report(name, value),
            false => self.follow(name, value, login),
        }
    }

    /// Notes a value that differs from the one at login.
    pub fn report(&mut self, name: &[u8], value: &[u8]) {
        let is_known = self.value(name).map(|known| known == value);
        let has_room = is_known.is_some() || self.values().len() < SETTINGS_MAX;
        if is_known != Some(true) && has_room && !STATES.contains(&name) {
            let values = Arc::make_mut(self.0.get_or_insert_default());
            values.insert(name.into(), value.into());
        }
    }

    /// What a parameter is set to, if it is among them.
    pub fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.values().get(name).map(|value| &**value)
    }

    /// Whether a parameter is among them.
    pub fn has(&self, name: &[u8]) -> bool {
        self.values().contains_key(name)
    }

    /// Whether a table may be temporary without being called so, because of the search path.
    pub fn makes_temporary(&self) -> bool {
        let path = self.value(b"search_path");
        path.is_some_and(|path| path.windows(7).any(|part| part == b"pg_temp"))
    }

    /// Adds those of `others` that are missing.
    pub fn fill_up(&mut self, others: &Self) {
        for (name, value) in others.iter() {
            if !self.has(name) {
                let values = Arc::make_mut(self.0.get_or_insert_default());
                values.insert(name.into(), value.into());
            }
        }
    }

    /// The names of the custom parameters.
    pub fn own_names(&self) -> impl Iterator<Item = &[u8]> {
        self.values()
            .keys()
            .map(|name| &**name)
            .filter(|name| name.contains(&b'.'))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let all = self.values().iter();
        all.map(|(name, value)| (&**name, &**value))
    }

    /// The Queries that change a connection's settings from `there` to these, in order. Each is a whole message. There
    /// are none if nothing differs.
    pub fn changes_from(&self, there: &Self) -> Vec<Vec<u8>> {
        const ENCODING: &[u8] = b"client_encoding";
        // At once where both share a table.
        if self == there {
            return Vec::new();
        }
        let is_other = |name: &[u8], value: &[u8]| there.value(name) != Some(value);
        let mut encoding = Vec::new();
        let mut others = Vec::new();
        for name in there.values().keys().filter(|name| !self.has(name)) {
            let into = if **name == *ENCODING {
                &mut encoding
            } else {
                &mut others
            };
            into.extend_from_slice(b"RESET ");
            push_name(into, name);
            into.push(b';');
        }
        for (name, value) in self.iter().filter(|(name, value)| is_other(name, value)) {
            let into = if name == ENCODING {
                &mut encoding
            } else {
                &mut others
            };
            into.extend_from_slice(b"SELECT pg_catalog.set_config(");
            push_text(into, name);
            into.push(b',');
            push_text(into, value);
            into.extend_from_slice(b",false);");
        }
        // The server reads a Query in its current encoding, so the encoding is set first.
        let queries = [encoding, others].into_iter();
        queries
            .filter(|text| !text.is_empty())
            .map(|text| query_of(&text))
            .collect()
    }
}

/// A Query of bytes in any encoding.
fn query_of(text: &[u8]) -> Vec<u8> {
    super::super::reply::message(b'Q', &[text, b"\0"])
}

fn push_name(into: &mut Vec<u8>, name: &[u8]) {
    for (at, part) in name.split(|byte| *byte == b'.').enumerate() {
        if at > 0 {
            into.push(b'.');
        }
        into.push(b'"');
        for &byte in part {
            into.push(byte);
            if byte == b'"' {
                into.push(byte);
            }
        }
        into.push(b'"');
    }
}

/// Appends a string literal that does not depend on `standard_conforming_strings`.
pub(super) fn push_text(into: &mut Vec<u8>, text: &[u8]) {
    into.extend_from_slice(b"E'");
    for &byte in text {
        if matches!(byte, b'\'' | b'\\') {
            into.push(byte);
        }
        into.push(byte);
    }
    into.push(b'\'');
}

/// The Query for the state of a session that logged in as `user`, including the custom parameters `own`.
/// Operators are named with their schema, because the session may have other schemas first on its path.
pub fn look<'a>(user: &str, own: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut is_other_user = Vec::new();
    push_text(&mut is_other_user, user.as_bytes());
    let is_other_user = String::from_utf8_lossy(&is_other_user).into_owned();
    let mut text = format!(
        "SELECT name, setting FROM pg_catalog.pg_settings WHERE source OPERATOR(pg_catalog.=) 'session' \
         UNION ALL SELECT '', 'it listens' WHERE EXISTS (SELECT FROM pg_catalog.pg_listening_channels()) \
         UNION ALL SELECT '', 'it has temporary tables, types, functions or others' WHERE EXISTS (SELECT FROM \
         pg_catalog.pg_depend WHERE refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_namespace'::pg_catalog.regclass \
         AND refobjid OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()) \
         UNION ALL SELECT '', 'it has a cursor WITH HOLD' WHERE EXISTS (SELECT FROM pg_catalog.pg_cursors \
         WHERE is_holdable) \
         UNION ALL SELECT '', 'it has statements of PREPARE' WHERE EXISTS (SELECT FROM \
         pg_catalog.pg_prepared_statements WHERE from_sql) \
         UNION ALL SELECT '', 'it holds an advisory lock' WHERE EXISTS (SELECT FROM pg_catalog.pg_locks \
         WHERE locktype OPERATOR(pg_catalog.=) 'advisory' AND pid OPERATOR(pg_catalog.=) \
         pg_catalog.pg_backend_pid()) \
         UNION ALL SELECT '', 'it has another role' WHERE pg_catalog.current_setting('role') \
         OPERATOR(pg_catalog.<>) 'none' OR session_user OPERATOR(pg_catalog.<>) {is_other_user}::pg_catalog.name",
    );
    for name in own {
        let mut value = b"pg_catalog.current_setting(".to_vec();
        push_text(&mut value, name);
        value.extend_from_slice(b",true)");
        let value = String::from_utf8_lossy(&value);
        let mut name_text = Vec::new();
        push_text(&mut name_text, name);
        let name = String::from_utf8_lossy(&name_text);
        text +=
            &format!(" UNION ALL SELECT {name}, {value} WHERE {value} OPERATOR(pg_catalog.<>) ''");
    }
    query(&text)
}

/// The server's answer to [`look`].
#[derive(Debug, Default)]
pub struct Found {
    /// The parameters that the session has set.
    pub settings: Settings,
    /// The reason why it must keep its connection.
    pub pin: Option<Box<str>>,
    /// A row that could not be read, or an error.
    pub is_unknown: bool,
    /// The error says that the question was cancelled.
    pub is_cancelled: bool,
}

impl Found {
    /// Reads the body of a DataRow.
    pub fn take_row(&mut self, body: &[u8]) {
        match columns(body) {
            Some((b"", pin)) => self.pin = Some(String::from_utf8_lossy(pin).into()),
            Some((name, value)) => self.settings.report(name, value),
            None => self.is_unknown = true,
        }
    }

    /// The reason why the session must keep its connection, if there is one.
    pub fn into_pin(self) -> Option<Box<str>> {
        match self.is_unknown || self.settings.values().len() >= SETTINGS_MAX {
            true => Some("what it has set is not known".into()),
            false => self.pin,
        }
    }
}

/// The two columns of a row.
pub(super) fn columns(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = body.strip_prefix(&[0, 2])?;
    let (name, rest) = column(rest)?;
    let (value, rest) = column(rest)?;
    rest.is_empty().then_some((name, value))
}

fn column(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let mut settings = Settings::default();
        for (name, value) in pairs {
            settings.report(name.as_bytes(), value.as_bytes());
        }
        settings
    }

    fn texts(queries: &[Vec<u8>]) -> Vec<String> {
        let text =
            |query: &Vec<u8>| String::from_utf8_lossy(&query[5..query.len() - 1]).into_owned();
        queries.iter().map(text).collect()
    }

    #[test]
    fn a_connection_is_given_what_differs_and_nothing_else() {
        let wanted = settings(&[
            ("TimeZone", "UTC"),
            ("my.o'ne", "a\\b'c"),
            ("client_encoding", "LATIN1"),
        ]);
        let there = settings(&[("TimeZone", "UTC"), ("search_path", "a"), ("odd.\"x", "1")]);
        assert!(wanted.changes_from(&wanted).is_empty());
        assert_eq!(
            texts(&wanted.changes_from(&there)),
            [
                "SELECT pg_catalog.set_config(E'client_encoding',E'LATIN1',false);",
                "RESET \"odd\".\"\"\"x\";RESET \"search_path\";\
                 SELECT pg_catalog.set_config(E'my.o''ne',E'a\\\\b''c',false);",
            ]
        );
    }

    #[test]
    fn sessions_share_a_table_until_one_changes_it() {
        let began = settings(&[("TimeZone", "UTC"), ("a.b", "1")]);
        let mut one = began.clone();
        let is_shared = |one: &Settings| std::ptr::eq(one.values(), began.values());
        one.report(b"TimeZone", b"UTC");
        one.follow(
            b"unset",
            b"on",
            &Parameters::from([(b"unset".to_vec(), b"on".to_vec())]),
        );
        one.fill_up(&began);
        assert!(is_shared(&one) && one.changes_from(&began).is_empty());
        one.report(b"TimeZone", b"CET");
        assert!(!is_shared(&one) && began.value(b"TimeZone") == Some(b"UTC"));
        one.remove(b"TimeZone");
        one.remove(b"a.b");
        assert_eq!(one, Settings::default());
    }

    #[test]
    fn rows_are_settings_or_reasons() {
        let row = |name: &str, value: &str| {
            let mut body = vec![0, 2];
            for column in [name, value] {
                body.extend((column.len() as u32).to_be_bytes());
                body.extend(column.bytes());
            }
            body
        };
        let mut found = Found::default();
        found.take_row(&row("TimeZone", "UTC"));
        assert_eq!(found.settings, settings(&[("TimeZone", "UTC")]));
        found.take_row(&row("", "it listens"));
        assert_eq!(found.into_pin().as_deref(), Some("it listens"));
        let mut found = Found::default();
        found.take_row(&row("a", "b")[..7]);
        assert_eq!(
            found.into_pin().as_deref(),
            Some("what it has set is not known")
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_looked_at(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            Found::default().take_row(&bytes);
            let mut settings = Settings::default();
            settings.report(&bytes, &bytes);
            for query in settings.changes_from(&Settings::default()) {
                prop_assert_eq!(query.len(), 1 + u32::from_be_bytes([query[1], query[2], query[3], query[4]]) as usize);
            }
        }
    }
}
