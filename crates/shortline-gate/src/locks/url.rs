//! The database that the monitor asks, and its user there: `postgres://user:password@host:port/database` or
//! `mysql://user:password@host:port`. Special characters in names are percent-encoded, as in any URL (RFC 3986).
//! The password is never shown.

use std::fmt;
use std::str::FromStr;

use percent_encoding::percent_decode_str;

use crate::relay::Upstream;

const POSTGRES_PORT: u16 = 5432;
const MYSQL_PORT: u16 = 3306;

/// A database and the monitor's user there.
#[derive(Clone, PartialEq, Eq)]
pub enum MonitorUrl {
    /// PostgreSQL.
    Postgres(Place),
    /// MySQL or MariaDB.
    Mysql(Place),
}

/// A database's address, and the account of the monitor.
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    /// Where it listens.
    pub upstream: Upstream,
    /// The user.
    pub user: String,
    /// The password. Empty if there is none.
    pub password: String,
    /// The database to log in to. `None` is the server's default.
    pub database: Option<String>,
}

/// A text that is not such a URL. The error does not show the text, which may contain a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0}; write it like postgres://monitor@db.example:5432/postgres or mysql://monitor@127.0.0.1:3306"
)]
pub struct MonitorUrlError(&'static str);

impl MonitorUrl {
    /// The same URL with this password.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        let (Self::Postgres(place) | Self::Mysql(place)) = &mut self;
        password.clone_into(&mut place.password);
        self
    }

    /// The same user at another server.
    #[must_use]
    pub fn at(mut self, upstream: &Upstream) -> Self {
        let (Self::Postgres(place) | Self::Mysql(place)) = &mut self;
        place.upstream = upstream.clone();
        self
    }

    /// The server.
    pub fn upstream(&self) -> &Upstream {
        &self.place().upstream
    }

    fn place(&self) -> &Place {
        let (Self::Postgres(place) | Self::Mysql(place)) = self;
        place
    }
}

impl FromStr for MonitorUrl {
    type Err = MonitorUrlError;

    fn from_str(text: &str) -> Result<Self, MonitorUrlError> {
        match text.split_once("://") {
            Some(("postgres" | "postgresql", rest)) => {
                Place::parse(rest, POSTGRES_PORT).map(Self::Postgres)
            }
            Some(("mysql", rest)) => Place::parse(rest, MYSQL_PORT).map(Self::Mysql),
            _ => Err("is not a URL of a database"),
        }
        .map_err(MonitorUrlError)
    }
}

impl Place {
    /// Reads the part behind `://`.
    fn parse(text: &str, port: u16) -> Result<Self, &'static str> {
        if text.contains(['?', '#']) {
            return Err("has parameters, and takes none");
        }
        let (before, path) = text.split_once('/').unwrap_or((text, ""));
        let (account, address) = before.rsplit_once('@').ok_or("names no user")?;
        let (user, password) = account.split_once(':').unwrap_or((account, ""));
        let user = decoded(user)?;
        if user.is_empty() {
            return Err("names no user");
        }
        let has_port = address
            .rsplit(']')
            .next()
            .is_some_and(|end| end.contains(':'));
        let address = match has_port {
            true => address.to_owned(),
            false => format!("{address}:{port}"),
        };
        Ok(Self {
            upstream: address.parse().map_err(|_| "names no single host")?,
            user,
            password: decoded(password)?,
            database: Some(decoded(path)?).filter(|name| !name.is_empty()),
        })
    }
}

/// Decodes a percent-encoded name. No protocol here allows a zero byte in one.
fn decoded(text: &str) -> Result<String, &'static str> {
    let text = percent_decode_str(text).decode_utf8();
    let text = text.map_err(|_| "has a name that is not UTF-8")?;
    match text.contains('\0') {
        true => Err("has a name with a zero in it"),
        false => Ok(text.into_owned()),
    }
}

impl fmt::Display for MonitorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self {
            Self::Postgres(_) => "postgres",
            Self::Mysql(_) => "mysql",
        };
        let Place { user, upstream, .. } = self.place();
        write!(f, "{scheme}://{user}@{upstream}")
    }
}

impl fmt::Debug for MonitorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_password_is_shown_to_nobody() {
        for text in [
            "postgres://m:geheim@db.example:5433/postgres",
            "mysql://m:geheim@db.example:3307",
        ] {
            let url: MonitorUrl = text.parse().unwrap();
            let other = url.clone().with_password("another-geheim");
            assert_ne!(url, other);
            for shown in [format!("{url} {url:?}"), format!("{other} {other:?}")] {
                assert!(
                    shown.contains("m@db.example") && !shown.contains("geheim"),
                    "{shown}"
                );
            }
        }
        let error = "redis://m:geheim@x"
            .parse::<MonitorUrl>()
            .unwrap_err()
            .to_string();
        assert!(
            !error.contains("geheim") && error.contains("mysql://"),
            "{error}"
        );
    }

    #[test]
    fn what_is_no_database_is_told() {
        for text in [
            "",
            "db.example",
            "postgres://",
            "postgres://db.example",
            "mysql://db.example",
            "mysql://m@a,b:1,2",
            "mysql://m@db.example?require_ssl=true",
            "mysql://m%00@db.example",
            "postgres://m@a:1,b:2/x",
        ] {
            let error = text.parse::<MonitorUrl>().unwrap_err().to_string();
            assert!(error.contains("postgres://monitor@"), "{text}: {error}");
        }
    }

    #[test]
    fn a_url_is_read_in_all_its_parts() {
        let url: MonitorUrl = "postgresql://m%40a:p%3A%2F@[::1]/d%20b".parse().unwrap();
        let place = url.place();
        assert_eq!((&*place.user, &*place.password), ("m@a", "p:/"));
        assert_eq!(place.upstream.to_string(), "[::1]:5432");
        assert_eq!(place.database.as_deref(), Some("d b"));
        let url: MonitorUrl = "mysql://m:p@db.example".parse().unwrap();
        assert_eq!(url.place().upstream.to_string(), "db.example:3306");
        assert_eq!(url.place().database, None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(postgres|mysql)://[a-z:@/?=\\[\\]%0-9.&]{0,40}") {
            let _ = text.parse::<MonitorUrl>();
        }
    }
}
