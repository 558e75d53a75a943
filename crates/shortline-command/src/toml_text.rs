//! Where something stands in a TOML text, for errors: its line, and the dotted name of its key.

use toml::de::{DeTable, DeValue};

/// The line, from 1, of the byte at `offset`.
pub fn line(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset.min(text.len())];
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// The dotted name of the key that is, or whose value is, at `offset`; `None` if there is none or
/// the text is not TOML.
pub fn key(text: &str, offset: usize) -> Option<String> {
    let document = DeTable::parse(text).ok()?;
    key_in_table(document.get_ref(), offset)
}

fn key_in_table(table: &DeTable<'_>, offset: usize) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let name = key.get_ref().as_ref();
        if let Some(inner) = key_in_value(value.get_ref(), offset) {
            return Some(format!("{name}.{inner}"));
        }
        let here = key.span().contains(&offset) || value.span().contains(&offset);
        here.then(|| name.to_owned())
    })
}

fn key_in_value(value: &DeValue<'_>, offset: usize) -> Option<String> {
    match value {
        DeValue::Table(table) => key_in_table(table, offset),
        DeValue::Array(values) => values
            .iter()
            .find_map(|value| key_in_value(value.get_ref(), offset)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_line_and_a_key() {
        let text = "a = 1\n[b]\nc = [{ d = 2 }, { d = 3 }]\n";
        let offset = text.find('3').unwrap_or_default();
        assert_eq!(line(text, offset), 3);
        assert_eq!(key(text, offset).as_deref(), Some("b.c.d"));
        assert_eq!(key("a = ", 0), None);
        assert_eq!(line(text, usize::MAX), 4);
    }
}
