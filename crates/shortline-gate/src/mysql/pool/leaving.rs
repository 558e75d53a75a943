//! Finds by its text whether a statement may change session state that the server does not report.
//!
//! MariaDB 10.11 reports changes by `SET`, `PREPARE` and `CREATE TEMPORARY TABLE`. It reports `LOCK TABLES` in the
//! state of the transaction. It does not report these, as tests have shown: user variables in `SELECT @a := 1` and
//! `SELECT ... INTO @a`, `GET_LOCK`, `CREATE TEMPORARY TABLE ... SELECT`, `HANDLER`, `FLUSH TABLES WITH READ LOCK`,
//! and any of them in a procedure.
//!
//! In doubt, the session is pinned. Names are found anywhere outside of strings. A comment or a backslash makes it
//! uncertain where strings begin and end, and so does a backtick that may be half of a character. Then names are
//! found in strings too, and behind the version of an executable comment (`/*!50000GET_LOCK`). A function or a
//! trigger of the user's that changes the session goes unnoticed.

/// A name, and the reason why a session that uses it is pinned.
type Reason = (&'static [u8], &'static str);

const ROLE: &str = "it has another role";
const EXECUTES: &str = "what it executes cannot be seen";
const CALLS: &str = "a procedure may have left something";
/// The reason for a statement of which only the start is read.
pub const TOO_LONG: &str = "it has sent a statement too long to be read";

/// Whether a session that is pinned for this reason may have another role.
pub fn may_set_role(reason: &str) -> bool {
    [ROLE, EXECUTES, CALLS, TOO_LONG].contains(&reason)
}

/// Names that count anywhere.
const NAMES: [Reason; 6] = [
    (b"get_lock", "it has a lock of GET_LOCK"),
    (b"temporary", "it has temporary tables"),
    (b"handler", "it has a HANDLER"),
    (b"call", CALLS),
    (b"sql_calc_found_rows", "it may ask for FOUND_ROWS()"),
    (b"flush", "it may have locked all tables"),
];
/// Names that count only as the first word of a part.
const FIRST: [Reason; 4] = [
    (b"backup", "it may have a lock of BACKUP"),
    (b"prepare", "it has prepared statements of SQL"),
    (b"execute", EXECUTES),
    (b"xa", "it has a transaction of XA"),
];
/// Names behind which a statement may begin inside of another (`SET STATEMENT ... FOR`, `BEGIN NOT ATOMIC`).
const BEFORE_FIRST: [&[u8]; 8] = [
    b"for", b"atomic", b"then", b"else", b"do", b"loop", b"repeat", b"begin",
];
const TRACKING: &[u8] = b"session_track";

/// The reason why the session is pinned after this statement, if there is one.
pub fn reason_to_keep(statement: &[u8]) -> Option<&'static str> {
    let is_doubtful =
        statement.contains(&b'\\') || has_comment(statement) || has_half_quote(statement);
    if sets_role(statement, is_doubtful) {
        return Some(ROLE);
    }
    let mut before = None;
    let mut is_first = true;
    let mut at = 0;
    while let Some(&byte) = statement.get(at) {
        let rest = &statement[at..];
        if matches!(byte, b'\'' | b'"' | b'`') && !is_doubtful {
            at += quoted_bytes(rest);
            is_first = false;
        } else if is_of_name(byte) {
            let length = rest.iter().take_while(|byte| is_of_name(**byte)).count();
            let name = match is_doubtful {
                true => behind_version(&rest[..length]),
                false => &rest[..length],
            };
            if let Some(reason) = of_name(name, is_first || is_doubtful) {
                return Some(reason);
            }
            let is_before = |word: &&[u8]| word.eq_ignore_ascii_case(name);
            is_first = BEFORE_FIRST.iter().any(is_before);
            at += length;
        } else {
            // `@@` begins a system variable.
            let is_own = byte == b'@' && before != Some(b'@') && rest.get(1) != Some(&b'@');
            if is_own {
                return Some("it has variables of its own");
            }
            is_first = byte == b';' || is_first && (byte.is_ascii_whitespace() || byte == b'(');
            at += 1;
        }
        before = Some(byte);
    }
    None
}

fn of_name(name: &[u8], is_first: bool) -> Option<&'static str> {
    if name.len() >= TRACKING.len() && name[..TRACKING.len()].eq_ignore_ascii_case(TRACKING) {
        return Some("it has changed what the server tells of");
    }
    let is = |(known, _): &&Reason| name.eq_ignore_ascii_case(known);
    let first = FIRST.iter().filter(|_| is_first);
    NAMES
        .iter()
        .chain(first)
        .find(is)
        .map(|(_, reason)| *reason)
}

/// Whether a statement may be `SET ROLE`, alone or among other settings. In `UPDATE ... SET role = 1` an equals sign
/// follows.
fn sets_role(statement: &[u8], is_doubtful: bool) -> bool {
    let is_set = |word: &[u8]| behind_version(word).eq_ignore_ascii_case(b"set");
    let has_lines = statement.contains(&b'#') || statement.windows(2).any(|pair| pair == b"--");
    statement.split(|byte| *byte == b';').any(|part| {
        let mut words = part.split(|byte| !is_of_name(*byte));
        let mut at = 0;
        words.any(|word| {
            let (before, behind) = (&part[..at], &part[at + word.len()..]);
            at += word.len() + 1;
            if !word.eq_ignore_ascii_case(b"role") {
                return false;
            }
            let before = before.trim_ascii_end();
            let mut names = before.split(|byte| !is_of_name(*byte));
            let begins = is_doubtful || names.find(|name| !name.is_empty()).is_some_and(is_set);
            let is_set_here = before
                .rsplit(|byte| !is_of_name(*byte))
                .next()
                .is_some_and(is_set)
                || begins && before.ends_with(b",")
                || is_doubtful && (has_lines || before.ends_with(b"*/"));
            let behind = behind.trim_ascii_start().first();
            is_set_here && !matches!(behind, None | Some(b'=' | b':' | b'.' | b',' | b')'))
        })
    })
}

/// Whether a statement has others inside (`BEGIN NOT ATOMIC ...; END`), of which one may have set something before
/// another failed. The server does not report that: an error has no place for it.
pub fn may_set_and_fail(statement: &[u8]) -> bool {
    let has = |wanted: &[u8]| {
        let mut words = statement.split(|byte| !is_of_name(*byte));
        words.any(|word| behind_version(word).eq_ignore_ascii_case(wanted))
    };
    statement.contains(&b';') && has(b"end") && has(b"set")
}

/// A name without the digits of a version before it.
fn behind_version(name: &[u8]) -> &[u8] {
    let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
    &name[digits..]
}

/// Whether a backtick may be the second half of a character, as in GBK.
fn has_half_quote(statement: &[u8]) -> bool {
    statement
        .windows(2)
        .any(|pair| pair[0] >= 0x80 && pair[1] == b'`')
}

/// Whether a statement reads results of the previous one, such as warnings and row counts. A session must not see
/// another session's.
pub fn reads_what_is_left(statement: &[u8]) -> bool {
    const NAMES: [&[u8]; 8] = [
        b"warnings",
        b"errors",
        b"row_count",
        b"found_rows",
        b"diagnostics",
        b"warning_count",
        b"error_count",
        b"profile",
    ];
    statement
        .split(|byte| !is_of_name(*byte))
        .any(|word| NAMES.iter().any(|name| name.eq_ignore_ascii_case(word)))
}

/// Whether a statement names the value of [`super::settings::INSERT_ID`].
pub fn names_insert_id(statement: &[u8]) -> bool {
    statement.split(|byte| !is_of_name(*byte)).any(|word| {
        word.eq_ignore_ascii_case(b"last_insert_id") || word.eq_ignore_ascii_case(b"identity")
    })
}

/// Whether a statement may name the database that it is in.
pub fn names_database(statement: &[u8]) -> bool {
    statement.split(|byte| !is_of_name(*byte)).any(|word| {
        let name = behind_version(word);
        name.eq_ignore_ascii_case(b"database") || name.eq_ignore_ascii_case(b"schema")
    })
}

fn has_comment(statement: &[u8]) -> bool {
    statement.contains(&b'#')
        || statement
            .windows(2)
            .any(|pair| pair == b"/*" || pair == b"--")
}

/// The length of a quoted text up to its next quote. A doubled quote begins another text.
fn quoted_bytes(text: &[u8]) -> usize {
    let end = text[1..].iter().position(|byte| *byte == text[0]);
    end.map_or(text.len(), |end| end + 2)
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_the_server_does_not_tell_is_seen() {
        for statement in [
            "SELECT @a := 1",
            "select 5 into @b",
            "SELECT GET_LOCK('x', 1)",
            "create temporary table a select 1",
            "HANDLER t OPEN",
            "flush tables with read lock",
            "CALL p()",
            "select 1; backup lock t",
            "PREPARE p FROM 'select 1'",
            "set session_track_schema = off",
            "select 'it''s', @a := 1",
            "select 'a\\', @a := 1, 'b'",
            "/* it's */ select @a := 1 -- '",
            "/*! execute */ p",
            "XA START 'a'",
            "SELECT /*!50000GET_LOCK('x', 0)*/",
            "CREATE /*M!100100TEMPORARY*/ TABLE a (n INT)",
            "SET STATEMENT max_statement_time = 1 FOR EXECUTE p",
            "BEGIN NOT ATOMIC EXECUTE IMMEDIATE CONCAT('SET ', CHAR(64), 'a = 1'); END",
            "SET ROLE boss",
            "set /* why */ role `boss`",
            "SET time_zone = '+01:00', role boss",
            "BEGIN NOT ATOMIC SET ROLE boss; END",
        ] {
            assert!(
                reason_to_keep(statement.as_bytes()).is_some(),
                "{statement}"
            );
        }
        for statement in [
            "select 'a@b.c', \"call\", `temporary`",
            "select @@autocommit, @@session.sql_mode",
            "insert into t values ('it''s@me')",
            "select prepare from t",
            "update t set role = 1, roles = 2 where role in (1, 2)",
            "update t set a = 1 where role is null and id = 2",
            "select role from t",
            "SET NAMES utf8mb4",
            "set autocommit=0",
            "",
        ] {
            assert_eq!(reason_to_keep(statement.as_bytes()), None, "{statement}");
        }
        assert!(reads_what_is_left(b"SHOW WARNINGS") && reads_what_is_left(b"select row_count()"));
        assert!(!reads_what_is_left(b"select warning from t"));
        assert!(names_database(b"select /*!50000DATABASE()*/") && !names_database(b"select 1"));
        assert!(may_set_and_fail(
            b"BEGIN NOT ATOMIC SET time_zone = '+05:00'; SELECT nothing; END"
        ));
        assert!(!may_set_and_fail(
            b"update t set a = case when b then 1 end"
        ));
        assert!(names_insert_id(b"select LAST_INSERT_ID()") && !names_insert_id(b"select 1"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            reason_to_keep(&bytes);
            reads_what_is_left(&bytes);
        }

        /// No text in strings before it hides a variable.
        #[test]
        fn a_variable_is_seen_behind_anything(before in "[a-z' \\\\/*#-]{0,20}", quote in "['\"]?") {
            let is_open = quoted(&before);
            prop_assume!(!is_open);
            let statement = format!("{before} {quote}x{quote} , @a := 1");
            prop_assert!(reason_to_keep(statement.as_bytes()).is_some());
        }
    }

    /// Whether a quote is open at the end. Then the following text is part of a string for a server, too.
    fn quoted(text: &str) -> bool {
        !text.contains(['\\', '#'])
            && !text.contains("/*")
            && !text.contains("--")
            && text.matches('\'').count() % 2 == 1
    }
}
