//! Where the monitor asks, and as which user: `postgres://user:password@host:port/database` or
//! `mysql://user:password@host:port`. The password is never shown.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use mysql_async::{Opts, OptsBuilder};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// A database and the monitor's user there.
#[derive(Clone, PartialEq, Eq)]
pub enum MonitorUrl {
    /// PostgreSQL.
    Postgres(Box<Config>),
    /// MySQL or MariaDB.
    Mysql(Opts),
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
    pub fn with_password(self, password: &str) -> Self {
        match self {
            Self::Postgres(mut config) => {
                config.password(password);
                Self::Postgres(config)
            }
            Self::Mysql(options) => {
                Self::Mysql(OptsBuilder::from_opts(options).pass(Some(password)).into())
            }
        }
    }

    /// Whether the database is on this machine.
    pub fn is_local(&self) -> bool {
        let host = self.host();
        let ip = host.trim_start_matches('[').trim_end_matches(']').parse();
        host == "localhost" || ip.is_ok_and(|ip: IpAddr| ip.to_canonical().is_loopback())
    }

    fn host(&self) -> &str {
        match self {
            Self::Postgres(config) => match config.get_hosts().first() {
                Some(Host::Tcp(host)) => host,
                _ => "",
            },
            Self::Mysql(options) => options.ip_or_hostname(),
        }
    }

    fn user(&self) -> &str {
        match self {
            Self::Postgres(config) => config.get_user().unwrap_or_default(),
            Self::Mysql(options) => options.user().unwrap_or_default(),
        }
    }
}

impl FromStr for MonitorUrl {
    type Err = MonitorUrlError;

    fn from_str(text: &str) -> Result<Self, MonitorUrlError> {
        let url = match text.split_once("://") {
            Some(("postgres" | "postgresql", _)) => {
                let config: Config = text
                    .parse()
                    .map_err(|_| MonitorUrlError("is not a URL of PostgreSQL"))?;
                if !matches!(config.get_hosts(), [Host::Tcp(_)]) {
                    return Err(MonitorUrlError("names no single host"));
                }
                Self::Postgres(Box::new(config))
            }
            Some(("mysql", _)) => {
                let options =
                    Opts::from_url(text).map_err(|_| MonitorUrlError("is not a URL of MySQL"))?;
                // Connect once, to the address that is named, not to a socket found there.
                let options = OptsBuilder::from_opts(options).prefer_socket(Some(false));
                Self::Mysql(options.into())
            }
            _ => return Err(MonitorUrlError("is not a URL of a database")),
        };
        if url.user().is_empty() {
            return Err(MonitorUrlError("names no user"));
        }
        Ok(url)
    }
}

impl fmt::Display for MonitorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self {
            Self::Postgres(_) => "postgres",
            Self::Mysql(_) => "mysql",
        };
        write!(f, "{scheme}://{}@{}", self.user(), self.host())
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
        ] {
            let error = text.parse::<MonitorUrl>().unwrap_err().to_string();
            assert!(error.contains("postgres://monitor@"), "{text}: {error}");
        }
    }

    #[test]
    fn this_machine_is_told_from_others() {
        for (text, is_local) in [
            ("postgres://m@127.0.0.1/x", true),
            ("postgres://m@localhost/x", true),
            ("mysql://m@[::1]:3306", true),
            ("mysql://m@192.0.2.1:3306", false),
            ("postgres://m@localhost.example/x", false),
        ] {
            assert_eq!(
                text.parse::<MonitorUrl>().unwrap().is_local(),
                is_local,
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(postgres|mysql)://[a-z:@/?=\\[\\]%0-9.&]{0,40}") {
            let _ = text.parse::<MonitorUrl>();
        }
    }
}
