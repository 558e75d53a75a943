//! Rules of the configuration: the first that matches names the type.
//!
//! A rule is a name and conditions, all of which must hold. Each condition is a regular expression
//! (the `regex` crate's, on bytes, with ASCII classes). Conditions on names and tags must match the
//! whole value. Those on the statement and the path may match any part. A rule without conditions
//! matches everything.

use std::collections::BTreeMap;

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use super::fingerprint::NAME_BYTES_MAX;
use super::{Client, Protocol, Tags};

/// The most rules of one gate.
pub const RULES_MAX: usize = 256;

/// A rule as it is written in the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RuleText {
    /// The type it names.
    #[serde(rename = "type")]
    pub name: String,
    /// PostgreSQL's `application_name`, MySQL's attribute `program_name`: the whole.
    #[serde(default)]
    pub application_name: Option<String>,
    /// The user: the whole.
    #[serde(default)]
    pub user: Option<String>,
    /// The database: the whole.
    #[serde(default)]
    pub database: Option<String>,
    /// The statement without the comment that has its tags: any part.
    #[serde(default)]
    pub statement: Option<String>,
    /// SQLCommenter tags by key: the whole value of each.
    #[serde(default)]
    pub tag: BTreeMap<String, String>,
    /// HTTP's method: the whole.
    #[serde(default)]
    pub method: Option<String>,
    /// HTTP's host, without a port: the whole.
    #[serde(default)]
    pub host: Option<String>,
    /// HTTP's path with the query: any part.
    #[serde(default)]
    pub path: Option<String>,
}

/// A rule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// More than [`RULES_MAX`].
    #[error("{count} rules: at most {RULES_MAX} are allowed")]
    TooMany {
        /// How many.
        count: usize,
    },
    /// A name that does not fit in a table.
    #[error(
        "rule {position}: type `{name}`: must have 1 to {NAME_BYTES_MAX} bytes and no control characters"
    )]
    Name {
        /// The position of the rule, from 1.
        position: usize,
        /// The name.
        name: String,
    },
    /// Not a regular expression.
    #[error(
        "rule {position} (type `{name}`): {key} `{value}` is not a regular expression: {problem}"
    )]
    Expression {
        /// The position of the rule, from 1.
        position: usize,
        /// The type it names.
        name: String,
        /// The condition.
        key: String,
        /// The expression.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A condition that can never hold.
    #[error(
        "rule {position} (type `{name}`): {key} means nothing to a gate for {protocol}: leave it out"
    )]
    Unknown {
        /// The position of the rule, from 1.
        position: usize,
        /// The type it names.
        name: String,
        /// The condition.
        key: &'static str,
        /// The protocol of the gate.
        protocol: Protocol,
    },
}

/// Rules, ready for use.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules(Vec<Rule>);

#[derive(Clone, Debug)]
struct Rule {
    name: String,
    application_name: Option<Regex>,
    user: Option<Regex>,
    database: Option<Regex>,
    statement: Option<Regex>,
    tags: Vec<(String, Regex)>,
    method: Option<Regex>,
    host: Option<Regex>,
    path: Option<Regex>,
}

impl Rules {
    /// Parses rules.
    pub(super) fn new(texts: &[RuleText], protocol: Protocol) -> Result<Self, RuleError> {
        if texts.len() > RULES_MAX {
            return Err(RuleError::TooMany { count: texts.len() });
        }
        let rules = texts.iter().zip(1..);
        let rules = rules.map(|(text, position)| Reading { text, position }.rule(protocol));
        rules.collect::<Result<_, _>>().map(Self)
    }

    /// Whether any rule asks for a statement's text.
    pub(super) fn read_statements(&self) -> bool {
        self.0.iter().any(|rule| rule.statement.is_some())
    }

    /// The keys of the tags that rules ask for.
    pub(super) fn tag_keys(&self) -> impl Iterator<Item = &str> {
        let tags = self.0.iter().flat_map(|rule| &rule.tags);
        tags.map(|(key, _)| key.as_str())
    }

    /// The type of a statement (without its tags' comment) by the first rule that matches.
    pub(super) fn statement(
        &self,
        sql: &[u8],
        tags: &Tags<'_>,
        client: &Client<'_>,
    ) -> Option<&str> {
        let matches = |rule: &&Rule| {
            holds(rule.application_name.as_ref(), client.application_name)
                && holds(rule.user.as_ref(), client.user)
                && holds(rule.database.as_ref(), client.database)
                && rule
                    .tags
                    .iter()
                    .all(|(key, value)| holds(Some(value), tags.get(key).as_deref()))
                && rule
                    .statement
                    .as_ref()
                    .is_none_or(|statement| statement.is_match(sql))
        };
        self.0.iter().find(matches).map(|rule| rule.name.as_str())
    }

    /// The type of an HTTP request by the first rule that matches.
    pub(super) fn request(&self, method: &str, host: Option<&str>, path: &str) -> Option<&str> {
        let matches = |rule: &&Rule| {
            holds(rule.method.as_ref(), Some(method))
                && holds(rule.host.as_ref(), host)
                && holds(rule.path.as_ref(), Some(path))
        };
        self.0.iter().find(matches).map(|rule| rule.name.as_str())
    }
}

/// Whether a condition holds. A missing value never fulfils one.
fn holds(condition: Option<&Regex>, value: Option<&str>) -> bool {
    condition
        .is_none_or(|condition| value.is_some_and(|value| condition.is_match(value.as_bytes())))
}

/// A rule that is being read.
struct Reading<'a> {
    text: &'a RuleText,
    position: usize,
}

impl Reading<'_> {
    fn rule(&self, protocol: Protocol) -> Result<Rule, RuleError> {
        let text = self.text;
        let is_name = (1..=NAME_BYTES_MAX).contains(&text.name.len())
            && !text.name.contains(char::is_control);
        if !is_name {
            return Err(RuleError::Name {
                position: self.position,
                name: text.name.escape_debug().to_string(),
            });
        }
        self.refuse_what_never_holds(protocol)?;
        let tags = text.tag.iter().map(|(key, value)| {
            Ok((
                key.clone(),
                self.expression(&format!("tag.{key}"), value, true)?,
            ))
        });
        Ok(Rule {
            name: text.name.clone(),
            application_name: self.whole("application-name", text.application_name.as_ref())?,
            user: self.whole("user", text.user.as_ref())?,
            database: self.whole("database", text.database.as_ref())?,
            statement: self.part("statement", text.statement.as_ref())?,
            tags: tags.collect::<Result<_, _>>()?,
            method: self.whole("method", text.method.as_ref())?,
            host: self.whole("host", text.host.as_ref())?,
            path: self.part("path", text.path.as_ref())?,
        })
    }

    fn refuse_what_never_holds(&self, protocol: Protocol) -> Result<(), RuleError> {
        let text = self.text;
        let of_sql = [
            ("application-name", text.application_name.is_some()),
            ("user", text.user.is_some()),
            ("database", text.database.is_some()),
            ("statement", text.statement.is_some()),
            ("tag", !text.tag.is_empty()),
        ];
        let of_http = [
            ("method", text.method.is_some()),
            ("host", text.host.is_some()),
            ("path", text.path.is_some()),
        ];
        let strange: &[(&'static str, bool)] = match protocol {
            Protocol::Sql(_) => &of_http,
            Protocol::Http => &of_sql,
        };
        match strange.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some(&(key, _)) => Err(RuleError::Unknown {
                position: self.position,
                name: text.name.clone(),
                key,
                protocol,
            }),
        }
    }

    fn whole(&self, key: &str, value: Option<&String>) -> Result<Option<Regex>, RuleError> {
        value
            .map(|value| self.expression(key, value, true))
            .transpose()
    }

    fn part(&self, key: &str, value: Option<&String>) -> Result<Option<Regex>, RuleError> {
        value
            .map(|value| self.expression(key, value, false))
            .transpose()
    }

    fn expression(&self, key: &str, value: &str, whole: bool) -> Result<Regex, RuleError> {
        // First alone, so that nothing in it can close our group.
        let alone = build(value);
        let expression = match alone {
            Ok(_) if whole => build(&format!(r"\A(?:{value})\z")),
            alone => alone,
        };
        expression.map_err(|error| RuleError::Expression {
            position: self.position,
            name: self.text.name.clone(),
            key: key.to_owned(),
            value: value.escape_debug().to_string(),
            problem: last_line(&error.to_string()),
        })
    }
}

fn build(expression: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(expression).unicode(false).build()
}

/// The last line of an error of regex, which names the mistake. The lines before it draw its
/// position.
fn last_line(text: &str) -> String {
    let last = text.lines().last().unwrap_or_default();
    last.trim().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::Dialect;
    use super::*;

    const SQL: Protocol = Protocol::Sql(Dialect::Postgres);

    fn rule(name: &str) -> RuleText {
        RuleText {
            name: name.to_owned(),
            ..RuleText::default()
        }
    }

    #[test]
    fn the_first_that_matches_names_the_type() {
        let batch = RuleText {
            application_name: Some("batch-.*".to_owned()),
            ..rule("batch")
        };
        let orders = RuleText {
            statement: Some("(?i)insert into orders".to_owned()),
            user: Some("shop".to_owned()),
            ..rule("orders")
        };
        let search = RuleText {
            tag: [("route".to_owned(), "/search.*".to_owned())].into(),
            ..rule("search")
        };
        let rules = Rules::new(&[batch, orders, search], SQL).unwrap();
        let shop = Client {
            user: Some("shop"),
            ..Client::default()
        };
        let night = Client {
            application_name: Some("batch-7"),
            ..shop
        };
        let insert = b"/* x */ INSERT INTO orders";
        let none = Tags::default();
        assert_eq!(rules.statement(insert, &none, &shop), Some("orders"));
        assert_eq!(rules.statement(insert, &none, &night), Some("batch"));
        assert_eq!(rules.statement(insert, &none, &Client::default()), None);
        let tagged = super::super::Tagged::new(b"select 1 /*route='%2Fsearch%2Fbooks'*/");
        assert_eq!(
            rules.statement(tagged.statement, &tagged.tags, &shop),
            Some("search")
        );
        let workshop = Client {
            user: Some("workshop"),
            ..Client::default()
        };
        assert_eq!(rules.statement(insert, &none, &workshop), None);
    }

    #[test]
    fn http_goes_by_method_host_and_path() {
        let reports = RuleText {
            method: Some("GET|HEAD".to_owned()),
            path: Some("^/report.*[?&]full=1".to_owned()),
            ..rule("reports")
        };
        let all = rule("others");
        let rules = Rules::new(&[reports, all], Protocol::Http).unwrap();
        assert_eq!(
            rules.request("GET", None, "/report/1?full=1"),
            Some("reports")
        );
        assert_eq!(
            rules.request("POST", None, "/report/1?full=1"),
            Some("others")
        );
    }

    #[test]
    fn what_cannot_be_a_rule_is_told_in_one_line() {
        let error = |text: RuleText, protocol| {
            let error = Rules::new(&[rule("fine"), text], protocol)
                .unwrap_err()
                .to_string();
            assert!(!error.contains('\n'), "{error}");
            error
        };
        let open = RuleText {
            statement: Some("(a".to_owned()),
            ..rule("x")
        };
        assert_eq!(
            error(open, SQL),
            "rule 2 (type `x`): statement `(a` is not a regular expression: unclosed group"
        );
        let closed = RuleText {
            user: Some("a)|(b".to_owned()),
            ..rule("x")
        };
        assert!(error(closed, SQL).contains("user `a)|(b`"));
        let path = RuleText {
            path: Some("a".to_owned()),
            ..rule("x")
        };
        assert!(error(path, SQL).contains("path means nothing to a gate for PostgreSQL"));
        assert!(error(rule(""), SQL).contains("1 to 96 bytes"));
        let many = vec![rule("x"); RULES_MAX + 1];
        assert!(Rules::new(&many, SQL).is_err());
    }
}
