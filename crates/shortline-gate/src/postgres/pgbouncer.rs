//! Reads a PgBouncer configuration as PgBouncer does (its doc/config.md; the file format is that of
//! libusual's `cfparser`).
//!
//! ```text
//! ; or # begins a comment line      %include FILE
//! [section]                         key = value        "a key" = value
//! ```
//!
//! A value is the rest of its line, trimmed. In `[databases]`, `[users]` and `[peers]` it is a list of `name=value`.
//! There, a value in single quotes may contain blanks, and two single quotes stand for one. This module does not
//! interpret keys.

/// A line that is neither blank nor a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// The start of a section.
    Section(&'a str),
    /// A key and its value.
    Pair(String, &'a str),
    /// A file to include here.
    Include(&'a str),
}

/// A line or a list that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IniError {
    /// The line is not a section, a key or an inclusion. It has this number.
    #[error("line {0}: expected [section], key = value, or %include FILE")]
    Line(usize),
    /// A quote has no end.
    #[error("`{0}`: a quote has no end")]
    Quote(String),
    /// A list contains something other than pairs.
    #[error("`{0}`: expected name=value, with blanks between")]
    Pairs(String),
}

/// The lines of a file, with their numbers from 1. Blank lines and comments are left out.
///
/// # Errors
/// [`IniError::Line`]
pub fn lines(text: &str) -> Result<Vec<(usize, Line<'_>)>, IniError> {
    let mut said = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let (number, line) = (at + 1, line.trim());
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        let line = read(line).ok_or(IniError::Line(number))?;
        said.push((number, line));
    }
    Ok(said)
}

fn read(line: &str) -> Option<Line<'_>> {
    if let Some(rest) = line.strip_prefix("%include") {
        let file = rest.trim_start();
        return (file.len() < rest.len() && !file.is_empty()).then_some(Line::Include(file));
    }
    if let Some(rest) = line.strip_prefix('[') {
        return rest
            .strip_suffix(']')
            .map(|name| Line::Section(name.trim()));
    }
    let (key, rest) = match line.strip_prefix('"') {
        Some(quoted) => quoted_by(quoted, '"')?,
        None => {
            let is_of_key = |c: char| c.is_ascii_alphanumeric() || "_.-*".contains(c);
            let end = line.find(|c| !is_of_key(c))?;
            (line[..end].to_owned(), &line[end..])
        }
    };
    let value = rest.trim_start().strip_prefix('=')?;
    (!key.is_empty()).then(|| Line::Pair(key, value.trim()))
}

/// The pairs of a list, such as a database's.
///
/// # Errors
/// [`IniError::Quote`], [`IniError::Pairs`]
pub fn pairs(list: &str) -> Result<Vec<(String, String)>, IniError> {
    let mut pairs = Vec::new();
    let mut rest = list.trim_start();
    while !rest.is_empty() {
        let unpaired = || IniError::Pairs(list.to_owned());
        let (name, value) = rest.split_once('=').ok_or_else(unpaired)?;
        let (name, value) = (name.trim_end(), value.trim_start());
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(unpaired());
        }
        let (value, behind) = match value.strip_prefix('\'') {
            Some(quoted) => {
                quoted_by(quoted, '\'').ok_or_else(|| IniError::Quote(list.to_owned()))?
            }
            None => {
                let end = value.find(char::is_whitespace).unwrap_or(value.len());
                (value[..end].to_owned(), &value[end..])
            }
        };
        pairs.push((name.to_owned(), value));
        rest = behind.trim_start();
    }
    Ok(pairs)
}

/// The text up to the closing quote, and the text after it. Two quotes stand for one.
fn quoted_by(text: &str, quote: char) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut rest = text;
    loop {
        let (before, behind) = rest.split_once(quote)?;
        word.push_str(before);
        match behind.strip_prefix(quote) {
            Some(again) => {
                word.push(quote);
                rest = again;
            }
            None => return Some((word, behind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_file_is_read_line_by_line() {
        let text = "; hello\n[databases]\n  # none\n\"a \"\"b\"\"\" = host=x\n*=\n\n[ pgbouncer ]\n\
            listen_port\t= 6432 \n%include /etc/more.ini\n";
        let pair = |key: &str, value| Line::Pair(key.to_owned(), value);
        let expected = vec![
            (2, Line::Section("databases")),
            (4, pair("a \"b\"", "host=x")),
            (5, pair("*", "")),
            (7, Line::Section("pgbouncer")),
            (8, pair("listen_port", "6432")),
            (9, Line::Include("/etc/more.ini")),
        ];
        assert_eq!(lines(text), Ok(expected));
        for wrong in [
            "[a",
            "key",
            "= 1",
            "%includes",
            "%include",
            "\"a = 1",
            "a b = 1",
        ] {
            assert_eq!(lines(wrong), Err(IniError::Line(1)), "{wrong}");
        }
    }

    #[test]
    fn a_list_is_read_pair_by_pair() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            pairs("host=db port = 5432 password='it''s a \\ secret' user=x"),
            Ok(vec![
                pair("host", "db"),
                pair("port", "5432"),
                pair("password", "it's a \\ secret"),
                pair("user", "x"),
            ])
        );
        assert_eq!(pairs(" "), Ok(Vec::new()));
        assert!(pairs("host").is_err() && pairs("a='b").is_err() && pairs("a b=c").is_err());
    }

    proptest! {
        #[test]
        fn no_text_harms(text: String) {
            for (_, line) in lines(&text).unwrap_or_default() {
                if let Line::Pair(_, value) = line {
                    let _ = pairs(value);
                }
            }
        }

        #[test]
        fn what_is_quoted_comes_back(key in "[^\n\r]{1,20}", value in "[^\n\r]{0,20}") {
            let line = format!("\"{}\" = x='{}'", key.replace('"', "\"\""), value.replace('\'', "''"));
            let read = lines(&line).unwrap_or_default();
            let Some((1, Line::Pair(found, list))) = read.first() else {
                return Err(TestCaseError::fail(line));
            };
            prop_assert_eq!(found, &key);
            prop_assert_eq!(pairs(list), Ok(vec![("x".to_owned(), value)]));
        }
    }
}
