//! Types of requests: a request's service time is estimated by its type.
//!
//! The first [rule](RuleText) of the configuration that matches gives the type. If none does, the
//! first of the configured sources that has a value does ([`Source`]). By default these are
//! SQLCommenter [tags](Tags) (the `route`, or else `controller` and `action`) and then the
//! statement's [fingerprint]. An HTTP request has its method and route template (module `route`).
//!
//! Tags count only from clients that are trusted with them ([`Trusted`]). For other clients the
//! statement is taken without its tags.
//!
//! `application_name` is a source too, but not by default. Drivers set it by themselves (`psql`,
//! `PostgreSQL JDBC Driver`), and all statements of an application would be one type.
//!
//! A statement that was seen before is looked up in a bounded cache, by a hash under a random key.
//! The hash covers the statement, the client's names, and those tags that can decide. A short
//! statement is looked up without its constants (module `skeleton`), unless a rule reads the
//! statement. Otherwise each statement with values in its text would be a new one. A new statement
//! costs a pass over its bytes.

mod class;
mod fingerprint;
mod lexer;
mod route;
mod rules;
mod skeleton;
mod tags;
mod trust;

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ahash::RandomState;
use parking_lot::RwLock;
use quick_cache::sync::Cache;

pub use class::{Class, Reads, TenantBy, Terms, UnknownTenantBy};
pub use fingerprint::{NAME_BYTES_MAX, STATEMENT_BYTES_MAX, fingerprint};
pub use lexer::Dialect;
pub use rules::{RULES_MAX, RuleError, RuleText, ServerRole};
pub use tags::{Tagged, Tags};
pub use trust::{Trusted, TrustedError};

use rules::{Rules, Said};

/// The most statements in the cache. Each takes 64 bytes and its type's name.
const CACHE_STATEMENTS_MAX: usize = 8192;
/// The type of requests that no rule and no source gives a type.
pub const OTHER: &str = "other";

/// The protocol that a gate relays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// A database's protocol.
    Sql(Dialect),
    /// HTTP.
    Http,
}

/// What gives a type to a statement that no rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// SQLCommenter tags: the route, or else controller and action.
    Tag,
    /// PostgreSQL's `application_name`, MySQL's `program_name`.
    ApplicationName,
    /// The statement's fingerprint.
    Statement,
}

/// How types are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassifierConfig {
    /// The protocol.
    pub protocol: Protocol,
    /// The first rule that matches names the type.
    pub rules: Vec<RuleText>,
    /// For requests that no rule matches: the first source that has a value gives the type. If none
    /// has, the type is [`OTHER`].
    pub sources: Vec<Source>,
    /// The clients whose tags count, for rules, as a source, and for tenants.
    pub tags_from: Vec<Trusted>,
    /// The source of a tenant's name if no rule gives one.
    pub tenant_by: TenantBy,
    /// The tenants that HTTP's host or a header may name.
    pub tenant_names: Vec<String>,
}

impl ClassifierConfig {
    /// No rules. The sources are tags, then fingerprints. Nobody's tags count.
    pub fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            rules: Vec::new(),
            sources: vec![Source::Tag, Source::Statement],
            tags_from: Vec::new(),
            tenant_by: TenantBy::None,
            tenant_names: Vec::new(),
        }
    }
}

/// What is known about a connection's client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Client<'a> {
    /// Where it connects from.
    pub address: Option<IpAddr>,
    /// PostgreSQL's `application_name`, MySQL's connection attribute `program_name`.
    pub application_name: Option<&'a str>,
    /// The user it authenticates as.
    pub user: Option<&'a str>,
    /// The database it asked for.
    pub database: Option<&'a str>,
}

/// Returns the class of a statement, by its text (or the part that has come) and the connection's
/// client. A prepared statement keeps the class. Each of its requests asks the gate for the type of
/// that name, since a full table may have forgotten the type in the meantime.
pub type Classify = Arc<dyn Fn(&[u8], &Client<'_>) -> Class + Send + Sync>;

/// Returns how a session is served, by its client.
pub type TermsOf = Arc<dyn Fn(&Client<'_>) -> Terms + Send + Sync>;

/// What is known about an HTTP request.
#[derive(Clone, Copy)]
pub struct HttpRequest<'a> {
    /// Its method.
    pub method: &'a str,
    /// The host that it names, without a port.
    pub host: Option<&'a str>,
    /// Its path, with the query.
    pub path: &'a str,
    /// Where its connection comes from: the client, or the last proxy.
    pub peer: Option<IpAddr>,
    /// The value of a field of its head, by the field's name. `None` if it has none, or several.
    pub header: &'a dyn Fn(&str) -> Option<&'a str>,
}

/// A [`Client`] that owns its names. A relay keeps one for each connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientNames {
    /// Where it connects from.
    pub address: Option<IpAddr>,
    /// PostgreSQL's `application_name`, MySQL's connection attribute `program_name`.
    pub application_name: Option<Box<str>>,
    /// The user it authenticates as.
    pub user: Option<Box<str>>,
    /// The database it asked for.
    pub database: Option<Box<str>>,
}

impl ClientNames {
    /// The borrowed form.
    pub fn client(&self) -> Client<'_> {
        Client {
            address: self.address,
            application_name: self.application_name.as_deref(),
            user: self.user.as_deref(),
            database: self.database.as_deref(),
        }
    }
}

/// Finds the types of requests. A handle: clones share rules and cache.
#[derive(Clone)]
pub struct Classifier(Arc<RwLock<Arc<Inner>>>);

struct Inner {
    protocol: Protocol,
    rules: Rules,
    sources: Vec<Source>,
    /// Tags that can decide a statement's type.
    tag_keys: Vec<String>,
    tags_from: Vec<Trusted>,
    tenant_by: TenantBy,
    tenant_names: Vec<String>,
    /// Whether the log already reports tags that did not count.
    has_told: AtomicBool,
    /// The dialect if constants are left out of the cache's keys.
    folds: Option<Dialect>,
    cache: Cache<u64, Class>,
    /// Keyed, so that no client can make two statements meet.
    hashes: RandomState,
}

impl Classifier {
    /// A classifier with these rules.
    ///
    /// # Errors
    /// [`RuleError`] names the rule that cannot be used.
    pub fn new(config: &ClassifierConfig) -> Result<Self, RuleError> {
        Ok(Self(Arc::new(RwLock::new(Arc::new(Inner::new(config)?)))))
    }

    /// Uses other rules from now on. On an error everything stays as it was.
    ///
    /// # Errors
    /// [`RuleError`] names the rule that cannot be used.
    pub fn replace(&self, config: &ClassifierConfig) -> Result<(), RuleError> {
        let new = Arc::new(Inner::new(config)?);
        *self.0.write() = new;
        Ok(())
    }

    /// The class of a statement.
    pub fn statement(&self, sql: &[u8], client: &Client<'_>) -> Class {
        self.0.read().statement(sql, client)
    }

    /// How the session of a client is served.
    pub fn terms(&self, client: &Client<'_>) -> Terms {
        self.0.read().terms(client)
    }

    /// The class of an HTTP request.
    pub fn request(&self, request: &HttpRequest<'_>) -> Class {
        let inner = Arc::clone(&self.0.read());
        let HttpRequest {
            method, host, path, ..
        } = *request;
        let said = inner.rules.request(method, host, path);
        class(
            said,
            || route_name(method, path),
            || inner.tenant_of_request(request),
        )
    }
}

impl Inner {
    fn new(config: &ClassifierConfig) -> Result<Self, RuleError> {
        let rules = Rules::new(&config.rules, config.protocol)?;
        let folds = match config.protocol {
            Protocol::Sql(dialect) if !rules.read_statements() => Some(dialect),
            _ => None,
        };
        let mut tag_keys: Vec<String> = rules.tag_keys().map(str::to_owned).collect();
        tag_keys.extend(config.tenant_by.tag_key().map(str::to_owned));
        if config.sources.contains(&Source::Tag) {
            tag_keys.extend(["route", "controller", "action"].map(str::to_owned));
        }
        tag_keys.sort_unstable();
        tag_keys.dedup();
        Ok(Self {
            protocol: config.protocol,
            rules,
            sources: config.sources.clone(),
            tag_keys,
            tags_from: config.tags_from.clone(),
            tenant_by: config.tenant_by.clone(),
            tenant_names: config.tenant_names.clone(),
            has_told: AtomicBool::new(false),
            folds,
            cache: Cache::new(CACHE_STATEMENTS_MAX),
            hashes: RandomState::new(),
        })
    }

    fn statement(&self, sql: &[u8], client: &Client<'_>) -> Class {
        let tagged = Tagged::new(sql);
        let length = tagged.statement.len().min(STATEMENT_BYTES_MAX);
        let statement = &tagged.statement[..length];
        let tags = self.trusted(tagged.tags, client);
        let key = self.key(statement, &tags, client);
        if let Some(class) = self.cache.get(&key) {
            return class;
        }
        let class = self.uncached(statement, &tags, client);
        self.cache.insert(key, class.clone());
        class
    }

    fn terms(&self, client: &Client<'_>) -> Terms {
        let mut terms = self.rules.connection(client);
        let own = || self.tenant_by.of_connection(client, self.trusts(client));
        terms.tenant = terms.tenant.or_else(own);
        terms
    }

    /// The tenant that a request's host or header names. A host is a client's own claim, so only configured
    /// names are tenants. A header counts only from the proxies that are trusted.
    fn tenant_of_request(&self, request: &HttpRequest<'_>) -> Option<Arc<str>> {
        let name = match &self.tenant_by {
            TenantBy::Host => request.host?,
            TenantBy::Header(name) => {
                let client = Client {
                    address: request.peer,
                    ..Client::default()
                };
                (request.header)(name).filter(|_| self.trusts(&client))?
            }
            _ => return None,
        };
        let mut names = self.tenant_names.iter();
        let named = names.find(|named| named.eq_ignore_ascii_case(name.trim()))?;
        Some(named.as_str().into())
    }

    fn trusts(&self, client: &Client<'_>) -> bool {
        self.tags_from.iter().any(|trusted| trusted.has(client))
    }

    /// The tags, if the client is trusted with them. Otherwise none.
    fn trusted<'a>(&self, tags: Tags<'a>, client: &Client<'_>) -> Tags<'a> {
        if tags.is_empty() || self.trusts(client) {
            return tags;
        }
        let would_count = || self.tag_keys.iter().any(|key| tags.get(key).is_some());
        if !self.has_told.load(Ordering::Relaxed)
            && would_count()
            && !self.has_told.swap(true, Ordering::Relaxed)
        {
            tracing::info!(
                address = client.address.map(tracing::field::display),
                user = client.user,
                "statements come with tags of a client whose tags do not count; name it in \
                 tags-from if it is yours (told once)"
            );
        }
        Tags::default()
    }

    fn key(&self, statement: &[u8], tags: &Tags<'_>, client: &Client<'_>) -> u64 {
        let mut hasher = self.hashes.build_hasher();
        let folded = self
            .folds
            .is_some_and(|dialect| skeleton::hash(statement, dialect, &mut hasher));
        if !folded {
            statement.hash(&mut hasher);
        }
        (client.application_name, client.user, client.database).hash(&mut hasher);
        if !tags.is_empty() {
            for key in &self.tag_keys {
                tags.get(key).hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    fn uncached(&self, statement: &[u8], tags: &Tags<'_>, client: &Client<'_>) -> Class {
        let said = self.rules.statement(statement, tags, client);
        let name = || self.source_name(statement, tags, client);
        class(said, name, || self.tenant_by.of_tags(tags))
    }

    fn source_name(&self, statement: &[u8], tags: &Tags<'_>, client: &Client<'_>) -> String {
        let mut known = self.sources.iter().filter_map(|source| match source {
            Source::Tag => tag_name(tags),
            Source::ApplicationName => application_name(client),
            Source::Statement => statement_name(statement, self.protocol),
        });
        known.next().unwrap_or_else(|| OTHER.to_owned())
    }
}

/// The class that the rules set. `name` and `tenant` supply what they leave open.
fn class(
    said: Said<'_>,
    name: impl FnOnce() -> String,
    tenant: impl FnOnce() -> Option<Arc<str>>,
) -> Class {
    Class {
        name: said.name.map_or_else(|| name().into(), Arc::from),
        tenant: said.tenant.cloned().or_else(tenant),
        never_waits: said.wait == Some(false),
        reads: said.reads,
        runaway: said.runaway,
    }
}

fn tag_name(tags: &Tags<'_>) -> Option<String> {
    if tags.is_empty() {
        return None;
    }
    let text = match (
        tags.get("route"),
        tags.get("controller"),
        tags.get("action"),
    ) {
        (Some(route), _, _) => {
            let mut text = "route ".to_owned();
            route::push_template(&mut text, &route);
            text
        }
        (None, Some(controller), Some(action)) => format!("action {controller}#{action}"),
        (None, Some(controller), None) => format!("controller {controller}"),
        (None, None, Some(action)) => format!("action {action}"),
        (None, None, None) => return None,
    };
    Some(in_one_line(&text))
}

fn application_name(client: &Client<'_>) -> Option<String> {
    let name = client.application_name.filter(|name| !name.is_empty())?;
    Some(in_one_line(&format!("application {name}")))
}

fn statement_name(statement: &[u8], protocol: Protocol) -> Option<String> {
    let Protocol::Sql(dialect) = protocol else {
        return None;
    };
    Some(fingerprint(statement, dialect)).filter(|name| !name.is_empty())
}

fn route_name(method: &str, path: &str) -> String {
    let mut text = format!("{method} ");
    route::push_template(&mut text, path);
    in_one_line(&text)
}

/// Makes a name fit for a table, a log and a label.
fn in_one_line(text: &str) -> String {
    fingerprint::name(&text.replace(char::is_control, "_"))
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sql(Dialect::Postgres) => "PostgreSQL",
            Self::Sql(Dialect::MySql) => "MySQL",
            Self::Http => "HTTP",
        })
    }
}

/// A word that is not the name of a [`Source`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` tells no types: choose from tag, application-name and statement")]
pub struct UnknownSource(String);

impl FromStr for Source {
    type Err = UnknownSource;

    fn from_str(text: &str) -> Result<Self, UnknownSource> {
        match text {
            "tag" => Ok(Self::Tag),
            "application-name" => Ok(Self::ApplicationName),
            "statement" => Ok(Self::Statement),
            _ => Err(UnknownSource(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests;
