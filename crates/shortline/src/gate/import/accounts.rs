//! Settings of single users (`[users]`) and databases (keys of their lines in `[databases]`), as rules and tenants.
//!
//! PgBouncer's `pool_mode` of a user counts before that of a database, and that before the general one. So the rules of
//! users come first, and among those of databases that of `*` last. A client is of one tenant. Where users have limits
//! the tenants are the users, else the databases.
//!
//! Source: PgBouncer 1.25 (doc/config.md).

use std::collections::BTreeMap;

use super::text::{number, quoted, seconds};
use super::translate::{Entry, Settings, TranslateError, pairs_of};

/// PgBouncer's default `pool_mode`.
const MODE: &str = "session";
/// The database that stands for all without a line.
const ALL: &str = "*";

/// What an account is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    User,
    Database,
}

/// A line of `[users]` or `[databases]`.
pub struct Account<'a> {
    by: By,
    entry: &'a Entry,
    pairs: BTreeMap<String, String>,
}

/// What becomes of all of them.
#[derive(Default)]
pub struct Translated<'a> {
    /// The mode of the pool.
    pub pool: &'static str,
    /// Who the tenants are, if they have limits.
    pub tenant_by: Option<&'static str>,
    /// Tables of rules and tenants.
    pub tables: Vec<String>,
    /// What is lost, and why.
    pub lost: Vec<(&'a Entry, String)>,
}

/// Limits of a user or a database; 0 is none.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Limits {
    connections_max: u64,
    running_max: u64,
}

impl By {
    fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Database => "database",
        }
    }

    /// Whether a key of such a line is translated here.
    pub fn has(self, key: &str) -> bool {
        match self {
            Self::User => [
                "pool_mode",
                "idle_transaction_timeout",
                "max_user_connections",
                "max_user_client_connections",
            ]
            .contains(&key),
            Self::Database => ["pool_mode", "max_db_client_connections"].contains(&key),
        }
    }

    /// The limits that this gives, in a line of its own or in general.
    fn limits(self, get: impl Fn(&str) -> Result<Option<u64>, TranslateError>) -> LimitsFound {
        let limit = |key| get(key).map(Option::unwrap_or_default);
        Ok(match self {
            Self::User => Limits {
                connections_max: limit("max_user_client_connections")?,
                running_max: limit("max_user_connections")?,
            },
            Self::Database => Limits {
                connections_max: limit("max_db_client_connections")?,
                running_max: 0,
            },
        })
    }
}

type LimitsFound = Result<Limits, TranslateError>;

impl Limits {
    fn are_any(self) -> bool {
        self != Self::default()
    }

    fn or(self, general: Self) -> Self {
        let own = |own, general| if own > 0 { own } else { general };
        Self {
            connections_max: own(self.connections_max, general.connections_max),
            running_max: own(self.running_max, general.running_max),
        }
    }

    /// The table of a tenant.
    fn table(self, name: &str) -> String {
        let mut table = format!("\n[gate.tenant.{}]", quoted(name));
        for (key, limit) in [
            ("connections-max", self.connections_max),
            ("running-max", self.running_max),
        ] {
            if limit > 0 {
                table += &format!("\n{key} = {limit}");
            }
        }
        table
    }
}

impl<'a> Account<'a> {
    /// Reads the line.
    ///
    /// # Errors
    /// [`TranslateError::Pairs`]
    pub fn of(by: By, entry: &'a Entry) -> Result<Self, TranslateError> {
        let pairs = pairs_of(entry)?.into_iter().collect();
        Ok(Self { by, entry, pairs })
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.pairs.get(key).map(String::as_str)
    }

    fn mode(&self) -> Result<Option<&'static str>, TranslateError> {
        let mode = self.get("pool_mode");
        mode.map(|mode| mode_of(&self.entry.place, mode))
            .transpose()
    }

    fn limits(&self) -> LimitsFound {
        self.by.limits(|key| {
            let value = self.get(key);
            value
                .map(|value| number(&self.entry.place, value))
                .transpose()
        })
    }

    /// The rule with these keys. The database that stands for all others has no condition.
    fn rule(&self, keys: &[String]) -> String {
        let name = &self.entry.key;
        let condition = match (self.by, name.as_str()) {
            (By::Database, ALL) => String::new(),
            _ => format!("\n{} = {}", self.by.name(), quoted(&regex::escape(name))),
        };
        format!("\n[[gate.rule]]{condition}\n{}", keys.join("\n"))
    }
}

/// Translates the settings of all accounts, beside the general ones.
///
/// # Errors
/// [`TranslateError`]
pub fn translate<'a>(
    accounts: &'a [Account<'a>],
    settings: &Settings<'a>,
) -> Result<Translated<'a>, TranslateError> {
    let mut translated = Translated::default();
    rules(accounts, settings, &mut translated)?;
    let by = [By::User, By::Database];
    let mut limited = Vec::new();
    for by in by {
        let general = by.limits(|key| settings.number(key, 0).map(Some))?;
        let of = accounts.iter().filter(|account| account.by == by);
        let own: Vec<(&Account<'_>, Limits)> = of
            .map(|account| Ok((account, account.limits()?)))
            .collect::<Result<_, TranslateError>>()?;
        if general.are_any() || own.iter().any(|(_, limits)| limits.are_any()) {
            limited.push((by, general, own));
        }
    }
    let mut limited = limited.into_iter();
    if let Some((by, general, own)) = limited.next() {
        translated.tenant_by = Some(by.name());
        if general.are_any() {
            translated.tables.push(general.table(ALL));
        }
        let mut transactions = Vec::new();
        if general.running_max > 0 {
            transactions.extend(settings.get("max_user_connections"));
        }
        for (account, limits) in own {
            // `*` of the databases has the general limits already.
            if limits.are_any() && account.entry.key != ALL {
                let table = limits.or(general).table(&account.entry.key);
                translated.tables.push(table);
            }
            if limits.running_max > 0 {
                transactions.push(account.entry);
            }
        }
        if translated.pool == MODE {
            let why = "max_user_connections: in a pool of sessions the gate limits transactions, not connections";
            let lost = transactions.into_iter();
            translated
                .lost
                .extend(lost.map(|entry| (entry, why.to_owned())));
        }
    }
    // Only databases can come second.
    for (_, general, own) in limited {
        let why =
            "max_db_client_connections: a client is of one tenant, and users have limits here";
        let mut lost = Vec::new();
        if general.are_any() {
            lost.extend(settings.get("max_db_client_connections"));
        }
        let own = own.into_iter().filter(|(_, limits)| limits.are_any());
        lost.extend(own.map(|(account, _)| account.entry));
        let lost = lost.into_iter();
        translated
            .lost
            .extend(lost.map(|entry| (entry, why.to_owned())));
    }
    Ok(translated)
}

/// The mode of the pool, and the rules that make exceptions.
fn rules<'a>(
    accounts: &'a [Account<'a>],
    settings: &Settings<'a>,
    translated: &mut Translated<'a>,
) -> Result<(), TranslateError> {
    let general = match settings.get("pool_mode") {
        Some(entry) => mode_of(&entry.place, &entry.value)?,
        None => MODE,
    };
    let modes: Vec<Option<&str>> = accounts
        .iter()
        .map(Account::mode)
        .collect::<Result<_, _>>()?;
    let is_mixed = modes.iter().flatten().any(|&mode| mode != general);
    translated.pool = if is_mixed { "transaction" } else { general };
    let mut ordered: Vec<(&Account<'_>, Option<&str>)> = accounts.iter().zip(modes).collect();
    ordered.sort_by_key(|(account, _)| (account.by == By::Database, account.entry.key == ALL));
    for (account, mode) in ordered {
        let mut keys = Vec::new();
        if let Some(mode) = mode.filter(|_| is_mixed) {
            keys.push(format!("pool = {}", quoted(mode)));
        }
        if let Some(value) = account.get("idle_transaction_timeout")
            && account.by == By::User
        {
            let time = seconds(&account.entry.place, value)?;
            keys.push(format!("idle-transaction-max = {}", quoted(&time)));
        }
        if !keys.is_empty() {
            translated.tables.push(account.rule(&keys));
        }
        if account.get("pool_mode") == Some("statement") {
            let why = "pool_mode: transactions of several statements are not refused".to_owned();
            translated.lost.push((account.entry, why));
        }
    }
    if translated.pool != general {
        let all = format!("\n[[gate.rule]]\npool = {}", quoted(general));
        translated.tables.push(all);
    }
    Ok(())
}

/// A pool mode of the gate. PgBouncer's `statement` is `transaction` here.
fn mode_of(place: &str, value: &str) -> Result<&'static str, TranslateError> {
    match value {
        "session" => Ok("session"),
        "transaction" | "statement" => Ok("transaction"),
        _ => Err(TranslateError::Value {
            place: place.to_owned(),
            value: value.to_owned(),
            what: "pool mode",
        }),
    }
}
