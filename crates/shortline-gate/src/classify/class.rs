//! The class of a request: what the gate needs to admit it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use shortline_sched::admission::Runaway;

use super::{Client, Tags};
use crate::pool::PoolMode;

/// A request's type and tenant, and whether it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its type.
    pub name: Arc<str>,
    /// Its tenant. `None` stands for that of its connection.
    pub tenant: Option<Arc<str>>,
    /// Whether it is admitted at once, up to `unqueued_max` such requests.
    pub never_waits: bool,
    /// What the rules say of the server it goes to.
    pub reads: Reads,
    /// What is done if it runs away. `None`: what the gate does with all.
    pub runaway: Option<Runaway>,
}

/// How a client's session is served, whatever its statements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The tenant of its connection. `None` for the first one.
    pub tenant: Option<Arc<str>>,
    /// How long a pool of transactions lends it a connection for. `None`: as all.
    pub pool: Option<PoolMode>,
    /// How long it may keep a transaction open without work, where it is not as for all. Zero is no limit.
    pub idle_transaction_time_max: Option<Duration>,
}

/// What rules say of the server that a transaction goes to, where there are several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    /// Nothing.
    #[default]
    Unsaid,
    /// To the primary, whatever it says of itself.
    Primary,
    /// The statement reads only; what else its transaction does nobody knows.
    Statement,
    /// Whatever this client does with such a statement reads only.
    Transaction,
}

impl<T: Into<Arc<str>>> From<T> for Class {
    /// A class with a type of that name and no tenant. It waits.
    fn from(name: T) -> Self {
        Self {
            name: name.into(),
            tenant: None,
            never_waits: false,
            reads: Reads::Unsaid,
            runaway: None,
        }
    }
}

/// The source of a tenant's name if no rule gives one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TenantBy {
    /// There is one tenant.
    #[default]
    None,
    /// The database user.
    User,
    /// The database.
    Database,
    /// PostgreSQL's `application_name`, MySQL's `program_name`, of clients whose tags count.
    ApplicationName,
    /// A SQLCommenter tag, of clients whose tags count.
    Tag(Arc<str>),
    /// HTTP's host, if the configuration names it as a tenant.
    Host,
    /// A field of HTTP's head that a trusted proxy sets, if the configuration names its value as a tenant.
    Header(Arc<str>),
}

impl TenantBy {
    /// The tenant of a connection, if the connection determines it.
    pub(super) fn of_connection(&self, client: &Client<'_>, is_trusted: bool) -> Option<Arc<str>> {
        let name = match self {
            Self::User => client.user,
            Self::Database => client.database,
            Self::ApplicationName => client.application_name.filter(|_| is_trusted),
            Self::None | Self::Tag(_) | Self::Host | Self::Header(_) => None,
        };
        name.filter(|name| !name.is_empty()).map(Arc::from)
    }

    /// The tenant of a statement with these tags, if they determine it.
    pub(super) fn of_tags(&self, tags: &Tags<'_>) -> Option<Arc<str>> {
        let Self::Tag(key) = self else {
            return None;
        };
        let value = tags.get(key)?;
        (!value.is_empty()).then(|| value.replace(char::is_control, "_").into())
    }

    /// The tag that it reads, if any.
    pub(super) fn tag_key(&self) -> Option<&str> {
        match self {
            Self::Tag(key) => Some(key),
            _ => None,
        }
    }

    /// Whether the name is the client's own claim.
    pub fn is_claim(&self) -> bool {
        matches!(self, Self::Tag(_) | Self::ApplicationName | Self::Header(_))
    }
}

/// A text that is not a `TenantBy`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` tells no tenants apart: choose none, user, database, application-name, tag:KEY, or host or header:NAME for http"
)]
pub struct UnknownTenantBy(String);

impl FromStr for TenantBy {
    type Err = UnknownTenantBy;

    fn from_str(text: &str) -> Result<Self, UnknownTenantBy> {
        Ok(match text {
            "none" => Self::None,
            "user" => Self::User,
            "database" => Self::Database,
            "application-name" => Self::ApplicationName,
            "host" => Self::Host,
            _ => match text.split_once(':') {
                Some(("tag", key)) if !key.is_empty() => Self::Tag(key.into()),
                Some(("header", name)) if is_field_name(name) => Self::Header(name.into()),
                _ => return Err(UnknownTenantBy(text.escape_debug().to_string())),
            },
        })
    }
}

impl fmt::Display for TenantBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::User => f.write_str("user"),
            Self::Database => f.write_str("database"),
            Self::ApplicationName => f.write_str("application-name"),
            Self::Tag(key) => write!(f, "tag:{key}"),
            Self::Host => f.write_str("host"),
            Self::Header(name) => write!(f, "header:{name}"),
        }
    }
}

/// Whether this can be the name of a field of HTTP's head (RFC 9110, 5.6.2).
fn is_field_name(name: &str) -> bool {
    let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_of_token)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_tells_tenants_apart_is_a_word_or_a_tag() {
        for text in [
            "none",
            "user",
            "database",
            "application-name",
            "tag:shop",
            "host",
            "header:X-Priority",
        ] {
            assert_eq!(text.parse::<TenantBy>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "tag",
            "tag:",
            "users",
            "statement",
            "header:",
            "header:a b",
            "header",
        ] {
            let refusal = text.parse::<TenantBy>().unwrap_err().to_string();
            assert!(
                refusal.contains("tag:KEY") && !refusal.contains('\n'),
                "{refusal}"
            );
        }
    }
}
