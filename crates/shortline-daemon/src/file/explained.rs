//! What the parser says of a file, in words that say what to write: text that is no TOML, values of another type, keys
//! that are missing, unknown or there twice.
//!
//! The messages are those of the crates `toml` and `serde`. One that is not known here stays as it is.

use super::Words;

/// Says what is wrong with a text that is no TOML, from what the parser says of the line where it stopped.
pub(super) fn syntax(message: &str, line: &str, table: Option<&str>) -> String {
    let line = line.trim();
    let (key, value) = line.split_once('=').unwrap_or((line, ""));
    let (key, value) = (key.trim(), value.trim());
    let named = table.map_or_else(|| key.to_owned(), |table| format!("{table}.{key}"));
    if message.starts_with("string values must be quoted") {
        return format!("{named}: {}", unquoted(key, value));
    }
    if message.starts_with("missing escaped value") {
        return format!(
            "{named}: a backslash in double quotes begins an escape: write the text in single quotes, such as 'C:\\www'"
        );
    }
    if message.starts_with("key with no value") {
        return format!(
            "`{}` is no TOML: write KEY = VALUE, or [TABLE] alone on its line",
            shown(line)
        );
    }
    if message.starts_with("duplicate key") {
        return match line.starts_with('[') {
            true => {
                let name = line.trim_matches(['[', ']', ' ']);
                format!(
                    "[{name}] is there twice: write all in one, or [[{name}]] for each of several"
                )
            }
            false => format!("{named}: is there twice: leave one out"),
        };
    }
    message.to_owned()
}

fn unquoted(key: &str, value: &str) -> String {
    let bare = value.trim_matches(['“', '”', '„', '«', '»', '‘', '’']);
    if bare != value {
        return format!("write straight quotes, {key} = \"{}\"", shown(bare));
    }
    match value.to_ascii_lowercase().as_str() {
        "on" | "yes" | "enabled" => format!(
            "`{}`: write true or false, as in {key} = true",
            shown(value)
        ),
        "off" | "no" | "disabled" => format!(
            "`{}`: write true or false, as in {key} = false",
            shown(value)
        ),
        _ => {
            let value = value.trim_end_matches(';').trim_matches(['"', '\'']);
            format!("a text goes in quotes: write {key} = \"{}\"", shown(value))
        }
    }
}

/// What serde says, with what was perhaps meant.
pub(super) fn content(message: &str, words: &Words) -> String {
    if let Some(told) = message.strip_prefix("unknown field ") {
        return unknown_field(told, words.elsewhere).unwrap_or_else(|| message.to_owned());
    }
    if let Some(key) = message.strip_prefix("missing field ") {
        let name = key.trim_matches('`');
        let examples = words.missing.iter();
        let example = examples.clone().find(|(missing, _)| *missing == name);
        return match example {
            Some((_, example)) => format!("{key} is missing: write {example}"),
            None => format!("{key} is missing"),
        };
    }
    let kinds = ["invalid type: ", "invalid value: "];
    let told = kinds.iter().find_map(|kind| message.strip_prefix(kind));
    match told.and_then(|told| told.split_once(", expected ")) {
        Some((found, expected)) => {
            let found = found.split_once(' ').map_or(found, |(_, value)| value);
            format!("{found}: must be {}", wanted(expected, words))
        }
        None => message.to_owned(),
    }
}

/// What serde expects, in an operator's words.
fn wanted(expected: &str, words: &Words) -> String {
    let own = words.wanted.iter().find(|(name, _)| *name == expected);
    if let Some((_, own)) = own {
        return (*own).to_owned();
    }
    let known = match expected {
        "a boolean" => "true or false, without quotes",
        "a string" | "path string" | "string" => "a text in quotes",
        "a sequence" => "a list, such as [\"a\", \"b\"]",
        "a map" => "a table, such as { a = \"b\" }",
        "u8" => "a whole number from 0 to 255, without quotes",
        "u16" => "a whole number from 0 to 65535, without quotes",
        "u32" | "u64" | "usize" => "a whole number, without quotes",
        "f64" | "f32" => "a number, without quotes",
        other if other.starts_with("a nonzero ") => "a whole number from 1 on, without quotes",
        other if other.starts_with("struct ") => "a table",
        other => other,
    };
    known.to_owned()
}

/// An unknown key, with what was perhaps meant.
fn unknown_field(told: &str, elsewhere: &[(&str, &str)]) -> Option<String> {
    let in_ticks: Vec<&str> = told.split('`').skip(1).step_by(2).collect();
    let (unknown, known) = in_ticks.split_first()?;
    let (what, expected) = told.split_once(", ")?;
    let here = elsewhere.iter().find(|(there, _)| there == unknown);
    Some(match here {
        Some((_, here)) => format!("unknown field {what}: here it is {here}"),
        None => {
            let near = nearest(unknown, known)?;
            format!("unknown field {what}: did you mean `{near}`?; {expected}")
        }
    })
}

/// The known key that differs by a few letters.
fn nearest<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    let unknown = unknown.replace('_', "-");
    let distances = known
        .iter()
        .map(|known| (strsim::osa_distance(&unknown, known), *known));
    let (distance, near) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + unknown.len() / 4).then_some(near)
}

fn shown(text: &str) -> String {
    shortline_sched::units::excerpt(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: Words = Words {
        elsewhere: &[("server_name", "`names`")],
        missing: &[("path", "path = \"/\"")],
        wanted: &[("struct Listen", "a table [[listen]]")],
    };

    #[test]
    fn an_unknown_key_comes_with_what_was_perhaps_meant() {
        let told = |unknown: &str| {
            let message = format!("unknown field `{unknown}`, expected one of `tls-cert`, `names`");
            content(&message, &WORDS)
        };
        let expected = "expected one of `tls-cert`, `names`";
        let near = format!("unknown field `tls_crt`: did you mean `tls-cert`?; {expected}");
        assert_eq!(told("tls_crt"), near);
        let here = "unknown field `server_name`: here it is `names`";
        assert_eq!(told("server_name"), here);
        assert_eq!(
            told("colour"),
            format!("unknown field `colour`, {expected}")
        );
    }

    #[test]
    fn values_and_gaps_are_told_with_what_to_write() {
        for (message, told) in [
            (
                "invalid type: string \"true\", expected a boolean",
                "\"true\": must be true or false, without quotes",
            ),
            (
                "invalid value: integer `0`, expected a nonzero usize",
                "`0`: must be a whole number from 1 on, without quotes",
            ),
            (
                "invalid type: string \":80\", expected struct Listen",
                "\":80\": must be a table [[listen]]",
            ),
            (
                "missing field `path`",
                "`path` is missing: write path = \"/\"",
            ),
            ("missing field `url`", "`url` is missing"),
            ("invalid type", "invalid type"),
        ] {
            assert_eq!(content(message, &WORDS), told);
        }
    }

    #[test]
    fn what_is_no_toml_is_told_with_what_would_be() {
        let quoted = "string values must be quoted, expected literal string";
        for (message, line, told) in [
            (
                quoted,
                "root = /srv/www;",
                "site.root: a text goes in quotes: write root = \"/srv/www\"",
            ),
            (
                quoted,
                "root = “a”",
                "site.root: write straight quotes, root = \"a\"",
            ),
            (
                quoted,
                "listing = on",
                "site.listing: `on`: write true or false, as in listing = true",
            ),
            (
                "duplicate key",
                "root = 1",
                "site.root: is there twice: leave one out",
            ),
            (
                "duplicate key",
                "[site]",
                "[site] is there twice: write all in one, or [[site]] for each of several",
            ),
            (
                "unclosed table, expected `]`",
                "[site",
                "unclosed table, expected `]`",
            ),
        ] {
            assert_eq!(syntax(message, line, Some("site")), told);
        }
    }
}
