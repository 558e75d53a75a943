//! Where something stands in a configuration file, for errors that are found after it was read: `file:line: `.
//!
//! A spot is the way from the top of the file: names of keys, and places in lists of tables. The line is looked for only when it is
//! told, because that reads the file's text again. If the end of the way is not there, because a key is left out, the line is that of
//! the table that would have it.

use std::borrow::Cow;
use std::fmt;

use shortline_command::toml_text;
use toml::de::{DeTable, DeValue};

use super::Source;

/// Where something stands in a file. Two values are the same wherever they stand, so all spots are equal.
#[derive(Clone, Debug, Default)]
pub struct Spot {
    source: Source,
    way: Vec<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    Key(String),
    /// From 0. A table in the place of a list is its only element.
    Item(usize),
}

/// A key that is refused, after the file was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    key: Cow<'static, str>,
    problem: Cow<'static, str>,
}

impl Spot {
    pub(super) fn top(source: &Source) -> Self {
        Self {
            source: source.clone(),
            way: Vec::new(),
        }
    }

    /// A key of the table; dots lead into tables below it. The empty key is the table itself.
    #[must_use]
    pub fn key(&self, dotted: &str) -> Self {
        let names = dotted.split('.').filter(|name| !name.is_empty());
        self.and(names.map(|name| Step::Key(name.to_owned())))
    }

    /// One of a list, from 0.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        self.and([Step::Item(index)])
    }

    /// A line for a key of this table that is refused; the label is how messages call the table.
    pub fn refused(&self, label: &str, error: &KeyError) -> String {
        format!("{}{label}: {error}", self.key(&error.key))
    }

    /// `file:line`, or the file alone if it does not have this.
    pub(super) fn file_and_line(&self) -> String {
        let file = self.source.path.display();
        match self.line() {
            Some(line) => format!("{file}:{line}"),
            None => file.to_string(),
        }
    }

    fn and(&self, steps: impl IntoIterator<Item = Step>) -> Self {
        let mut spot = self.clone();
        spot.way.extend(steps);
        spot
    }

    /// The line, if the file has it.
    pub fn line(&self) -> Option<usize> {
        let document = DeTable::parse(&self.source.text).ok()?;
        let offset = offset(document.get_ref(), &self.way)?;
        Some(toml_text::line(&self.source.text, offset))
    }
}

/// Where the last step that is there begins.
fn offset(table: &DeTable<'_>, way: &[Step]) -> Option<usize> {
    let (Step::Key(name), rest) = way.split_first()? else {
        return None;
    };
    let (key, value) = table.get_key_value(name.as_str())?;
    below(value.get_ref(), rest).or(Some(key.span().start))
}

fn below(value: &DeValue<'_>, way: &[Step]) -> Option<usize> {
    match (value, way.split_first()?) {
        (DeValue::Table(table), (Step::Key(_), _)) => offset(table, way),
        (DeValue::Table(_), (Step::Item(_), rest)) => below(value, rest),
        (DeValue::Array(values), (Step::Item(index), rest)) => {
            let value = values.get(*index)?;
            below(value.get_ref(), rest).or(Some(value.span().start))
        }
        _ => None,
    }
}

impl PartialEq for Spot {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

/// `file:line: `; nothing without a file.
impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line() {
            Some(_) => write!(f, "{}: ", self.file_and_line()),
            None => Ok(()),
        }
    }
}

impl KeyError {
    /// Why a key is refused, and what would be right. The key is named as from its table; an empty one is the table itself.
    pub fn new(key: impl Into<Cow<'static, str>>, problem: impl Into<Cow<'static, str>>) -> Self {
        Self {
            key: key.into(),
            problem: problem.into(),
        }
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_ref() {
            "" => f.write_str(&self.problem),
            key => write!(f, "{key}: {}", self.problem),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source {
            path: std::sync::Arc::new("a.toml".into()),
            text: text.into(),
        }
    }

    #[test]
    fn a_place_names_the_line_of_a_key() {
        let source = source("[uplink]\n# x\nslots = 3\n");
        assert_eq!(source.place("uplink", "slots"), "a.toml:3: uplink.slots");
        assert_eq!(source.place("uplink", "rate"), "a.toml:1: uplink.rate");
        assert_eq!(source.place("log", "access"), "a.toml: log.access");
    }

    #[test]
    fn a_spot_is_the_last_that_is_there_of_its_way() {
        let source = source(
            "[[site]]\n\n[[site]]\nroot = \"a\"\n[site.rule]\npath = \"/\"\n[[site.route]]\n[[site.route]]\npath = \"/\"\n\
             [site.route.cache.disk]\nfolder = \"\"\n",
        );
        let site = source.top().key("site").item(1);
        for (spot, line) in [
            (site.clone(), 3),
            (site.key("root"), 4),
            (site.key("names"), 3),
            (site.key("rule").item(0).key("path"), 6),
            (site.key("route").item(1).key("path"), 9),
            (site.key("route").item(1).key("gate.policy"), 8),
            (site.key("route").item(1).key("cache.disk.folder"), 11),
            (site.key("route").item(7), 7),
        ] {
            assert_eq!(spot.to_string(), format!("a.toml:{line}: "), "{spot:?}");
        }
        assert_eq!(Spot::default().key("site").to_string(), "");
    }

    #[test]
    fn a_refusal_says_where_which_key_and_why() {
        let source = source("[[route]]\npath = \"/a\"\nhttp = \"1\"\n");
        let route = source.top().key("route").item(0);
        let told = |key: &'static str| route.refused("route /a", &KeyError::new(key, "is wrong"));
        assert_eq!(told("http"), "a.toml:3: route /a: http: is wrong");
        assert_eq!(told(""), "a.toml:1: route /a: is wrong");
    }
}
