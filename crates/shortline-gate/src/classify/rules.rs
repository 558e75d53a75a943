//! Rules of the configuration: a request's type, tenant and waiting, by conditions.
//!
//! A rule sets the type of a request, its tenant, whether it waits, which server its transactions go to, what is done
//! if it runs away, how its client's session is served ([`Terms`]), or several of these. Each is taken from the first
//! matching rule that sets it. All conditions of a rule must hold. Each
//! condition is a regular expression (the `regex` crate's, on bytes, with ASCII classes). Conditions on names and tags
//! must match the whole value. Those on the statement and the path may match any part. A rule without
//! conditions matches everything.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use shortline_sched::admission::Runaway;
use shortline_sched::units::Span;

use super::fingerprint::NAME_BYTES_MAX;
use super::{Client, Protocol, Reads, Tags, Terms};
use crate::pool::PoolMode;

/// The most rules of one gate.
pub const RULES_MAX: usize = 256;

/// A rule as written in the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RuleText {
    /// The type it names.
    #[serde(rename = "type", default)]
    pub name: Option<String>,
    /// The tenant it names.
    #[serde(default)]
    pub tenant: Option<String>,
    /// Whether requests wait for their turn.
    #[serde(default)]
    pub wait: Option<bool>,
    /// Where its transactions go, if there are several servers.
    #[serde(default)]
    pub server: Option<ServerRole>,
    /// What is done if a request runs away.
    #[serde(default)]
    pub runaway: Option<Runaway>,
    /// How long a pool of transactions lends its client a connection for.
    #[serde(default)]
    pub pool: Option<PoolMode>,
    /// How long its client may keep a transaction open without work. 0 is no limit.
    #[serde(default)]
    pub idle_transaction_max: Option<Span>,
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

/// A server, by its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerRole {
    /// The one that takes writes.
    Primary,
    /// One that follows it.
    Replica,
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
        "rule {position}: {key} `{name}`: must have 1 to {NAME_BYTES_MAX} bytes and no control characters"
    )]
    Name {
        /// The position of the rule, from 1.
        position: usize,
        /// What it names.
        key: &'static str,
        /// The name.
        name: String,
    },
    /// A rule that sets nothing.
    #[error(
        "rule {position}: says nothing of what it matches: add type, tenant, wait, server, runaway, pool or \
         idle-transaction-max"
    )]
    Empty {
        /// The position of the rule, from 1.
        position: usize,
    },
    /// Something of a session, on a condition that only a statement meets.
    #[error("rule {position}: {key} is said of a client: leave out statement and tag, or {key}")]
    OfClient {
        /// The position of the rule, from 1.
        position: usize,
        /// What it says.
        key: &'static str,
    },
    /// Not a regular expression.
    #[error("rule {position} (`{name}`): {key} `{value}` is not a regular expression: {problem}")]
    Expression {
        /// The position of the rule, from 1.
        position: usize,
        /// The type or tenant it names.
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
        "rule {position} (`{name}`): {key} means nothing to a gate for {protocol}: leave it out"
    )]
    Unknown {
        /// The position of the rule, from 1.
        position: usize,
        /// The type or tenant it names.
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
    name: Option<String>,
    tenant: Option<Arc<str>>,
    wait: Option<bool>,
    server: Option<ServerRole>,
    runaway: Option<Runaway>,
    pool: Option<PoolMode>,
    idle_transaction_max: Option<Span>,
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

    /// What the rules set for a statement (without its tags' comment).
    pub(super) fn statement(&self, sql: &[u8], tags: &Tags<'_>, client: &Client<'_>) -> Said<'_> {
        self.said(|rule| {
            rule.fits(client)
                && rule
                    .tags
                    .iter()
                    .all(|(key, value)| holds(Some(value), tags.get(key).as_deref()))
                && rule
                    .statement
                    .as_ref()
                    .is_none_or(|statement| statement.is_match(sql))
        })
    }

    /// What the rules set for a connection, for any of its statements.
    pub(super) fn connection(&self, client: &Client<'_>) -> Terms {
        let mut terms = Terms::default();
        for rule in self
            .0
            .iter()
            .filter(|rule| rule.is_of_client() && rule.fits(client))
        {
            terms.tenant = terms.tenant.or_else(|| rule.tenant.clone());
            terms.pool = terms.pool.or(rule.pool);
            let idle_time_max = rule.idle_transaction_max.map(Span::duration);
            terms.idle_transaction_time_max = terms.idle_transaction_time_max.or(idle_time_max);
        }
        terms
    }

    /// What the rules set for an HTTP request.
    pub(super) fn request(&self, method: &str, host: Option<&str>, path: &str) -> Said<'_> {
        self.said(|rule| {
            holds(rule.method.as_ref(), Some(method))
                && holds(rule.host.as_ref(), host)
                && holds(rule.path.as_ref(), Some(path))
        })
    }

    fn said(&self, matches: impl Fn(&Rule) -> bool) -> Said<'_> {
        let mut said = Said::default();
        for rule in self.0.iter().filter(|rule| matches(rule)) {
            said.name = said.name.or(rule.name.as_deref());
            said.tenant = said.tenant.or(rule.tenant.as_ref());
            said.wait = said.wait.or(rule.wait);
            said.runaway = said.runaway.or(rule.runaway);
            said.reads = match said.reads {
                Reads::Unsaid => rule.reads(),
                said => said,
            };
        }
        said
    }
}

/// What the rules set for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Said<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) tenant: Option<&'a Arc<str>>,
    pub(super) wait: Option<bool>,
    pub(super) reads: Reads,
    pub(super) runaway: Option<Runaway>,
}

impl Rule {
    /// What it says of the server. A rule on a statement or a tag knows of that statement alone.
    fn reads(&self) -> Reads {
        match self.server {
            None => Reads::Unsaid,
            Some(ServerRole::Primary) => Reads::Primary,
            Some(ServerRole::Replica) if !self.is_of_client() => Reads::Statement,
            Some(ServerRole::Replica) => Reads::Transaction,
        }
    }

    /// Whether its conditions are on the client alone.
    fn is_of_client(&self) -> bool {
        self.statement.is_none() && self.tags.is_empty()
    }

    /// Whether the conditions on the client hold.
    fn fits(&self, client: &Client<'_>) -> bool {
        holds(self.application_name.as_ref(), client.application_name)
            && holds(self.user.as_ref(), client.user)
            && holds(self.database.as_ref(), client.database)
    }
}

/// Whether a condition holds. It never holds for a missing value.
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
        self.check_name("type", text.name.as_ref())?;
        self.check_name("tenant", text.tenant.as_ref())?;
        self.refuse_empty()?;
        self.refuse_what_never_holds(protocol)?;
        self.refuse_terms_of_statements()?;
        let tags = text.tag.iter().map(|(key, value)| {
            Ok((
                key.clone(),
                self.expression(&format!("tag.{key}"), value, true)?,
            ))
        });
        Ok(Rule {
            name: text.name.clone(),
            tenant: text.tenant.as_deref().map(Arc::from),
            wait: text.wait,
            server: text.server,
            runaway: text.runaway,
            pool: text.pool,
            idle_transaction_max: text.idle_transaction_max,
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

    fn check_name(&self, key: &'static str, name: Option<&String>) -> Result<(), RuleError> {
        let is_name = |name: &&String| {
            (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains(char::is_control)
        };
        match name.filter(|name| !is_name(name)) {
            None => Ok(()),
            Some(name) => Err(RuleError::Name {
                position: self.position,
                key,
                name: name.escape_debug().to_string(),
            }),
        }
    }

    /// The rule's name in an error.
    fn name(&self) -> String {
        let named = self.text.name.as_ref().or(self.text.tenant.as_ref());
        named.cloned().unwrap_or_default()
    }

    fn refuse_empty(&self) -> Result<(), RuleError> {
        let text = self.text;
        let is_empty = text.name.is_none()
            && text.tenant.is_none()
            && text.wait.is_none()
            && text.server.is_none()
            && text.runaway.is_none()
            && text.pool.is_none()
            && text.idle_transaction_max.is_none();
        match is_empty {
            false => Ok(()),
            true => Err(RuleError::Empty {
                position: self.position,
            }),
        }
    }

    /// A session is served in one way, whatever its statements.
    fn refuse_terms_of_statements(&self) -> Result<(), RuleError> {
        let text = self.text;
        let key = match (text.pool, text.idle_transaction_max) {
            (Some(_), _) => "pool",
            (None, Some(_)) => "idle-transaction-max",
            (None, None) => return Ok(()),
        };
        match text.statement.is_some() || !text.tag.is_empty() {
            false => Ok(()),
            true => Err(RuleError::OfClient {
                position: self.position,
                key,
            }),
        }
    }

    fn refuse_what_never_holds(&self, protocol: Protocol) -> Result<(), RuleError> {
        let text = self.text;
        let of_sql = [
            ("server", text.server.is_some()),
            ("pool", text.pool.is_some()),
            ("idle-transaction-max", text.idle_transaction_max.is_some()),
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
                name: self.name(),
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
        // First built alone, so that nothing in it can close our group.
        let alone = build(value);
        let expression = match alone {
            Ok(_) if whole => build(&format!(r"\A(?:{value})\z")),
            alone => alone,
        };
        expression.map_err(|error| RuleError::Expression {
            position: self.position,
            name: self.name(),
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
mod tests;
