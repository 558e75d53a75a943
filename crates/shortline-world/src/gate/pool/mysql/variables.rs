//! The variables of a session, as far as these worlds set them, with the values that MariaDB 10.11 shows.

use std::collections::BTreeMap;

use super::packets::Failed;
use super::words::unquoted;

/// Variables and their values by default. Those of character sets depend on the login.
const KNOWN: [(&str, &str); 18] = [
    ("autocommit", "1"),
    ("completion_type", "NO_CHAIN"),
    ("default_storage_engine", "InnoDB"),
    ("default_week_format", "0"),
    ("div_precision_increment", "4"),
    ("foreign_key_checks", "1"),
    ("group_concat_max_len", "1048576"),
    ("last_insert_id", "0"),
    ("lc_time_names", "en_US"),
    ("max_statement_time", "0.000000"),
    ("net_write_timeout", "60"),
    ("rand_seed1", "0"),
    ("sql_auto_is_null", "0"),
    ("sql_mode", "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"),
    ("sql_select_limit", "18446744073709551615"),
    ("time_zone", "SYSTEM"),
    ("tx_isolation", "REPEATABLE-READ"),
    ("tx_read_only", "0"),
];
/// What ANSI stands for.
const ANSI: &str = "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI";
const ISOLATIONS: [&str; 4] = [
    "READ-UNCOMMITTED",
    "READ-COMMITTED",
    "REPEATABLE-READ",
    "SERIALIZABLE",
];
/// Character sets, each with the collation that it begins with and another.
const CHARACTER_SETS: [(&str, [&str; 2]); 2] = [
    ("utf8mb4", ["utf8mb4_general_ci", "utf8mb4_bin"]),
    ("latin1", ["latin1_swedish_ci", "latin1_bin"]),
];
/// The variables that SET NAMES sets, without the collation.
const OF_NAMES: [&str; 3] = [
    "character_set_client",
    "character_set_connection",
    "character_set_results",
];
const COLLATION: &str = "collation_connection";
/// The number of latin1_swedish_ci. Any other is of utf8mb4.
pub const LATIN1: u8 = 8;

/// A value. `None` is NULL.
type Value = Option<String>;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Variables(BTreeMap<&'static str, Value>);

impl Variables {
    /// Those of a login with this collation.
    pub fn begin(collation: u8) -> Self {
        let mut variables = Self(BTreeMap::new());
        for (name, value) in KNOWN {
            variables.0.insert(name, Some(value.to_owned()));
        }
        let (set, collations) = CHARACTER_SETS[usize::from(collation == LATIN1)];
        variables.names(set, collations[0]);
        variables
    }

    /// A value.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Whether it is 1.
    pub fn is_on(&self, name: &str) -> bool {
        self.is(name, "1")
    }

    /// Whether it has this value.
    pub fn is(&self, name: &str, value: &str) -> bool {
        let known = self.0.get(name).and_then(Option::as_deref);
        known == Some(value)
    }

    /// Whether the list of modes has this one.
    pub fn has_mode(&self, mode: &str) -> bool {
        let modes = self.0.get("sql_mode").and_then(Option::as_deref);
        modes.is_some_and(|modes| modes.split(',').any(|known| known == mode))
    }

    /// The most rows of an answer.
    pub fn rows_max(&self) -> usize {
        let limit = self.0.get("sql_select_limit").cloned().flatten();
        limit
            .and_then(|limit| limit.parse().ok())
            .unwrap_or(usize::MAX)
    }

    /// All of them, in order.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    /// What a variable would be after `SET name = literal`.
    ///
    /// # Errors
    /// There is no such variable, or it cannot have such a value.
    pub fn read(&self, name: &str, literal: &str) -> Result<(&'static str, Value), Failed> {
        let (&name, _) = self.0.get_key_value(name).ok_or_else(|| {
            let text = format!("Unknown system variable '{name}'");
            (1193, "HY000", text)
        })?;
        let plain = unquoted(literal);
        let wrong = |code, state| Err((code, state, format!("{name} can't be {literal}")));
        if literal.eq_ignore_ascii_case("default") {
            return Ok((name, default_of(name)));
        }
        if literal.eq_ignore_ascii_case("null") {
            return match name {
                "character_set_results" => Ok((name, None)),
                _ => wrong(1231, "42000"),
            };
        }
        let is_known = |known: &[&str]| known.contains(&plain);
        let value = match name {
            "autocommit" | "foreign_key_checks" | "tx_read_only" => match plain {
                "0" | "OFF" | "off" => "0",
                "1" | "ON" | "on" => "1",
                _ => return wrong(1231, "42000"),
            },
            "completion_type" => match plain {
                "0" | "NO_CHAIN" => "NO_CHAIN",
                "1" | "CHAIN" => "CHAIN",
                _ => return wrong(1231, "42000"),
            },
            "sql_mode" if plain == "ANSI" => ANSI,
            "time_zone" if !plain.starts_with(['+', '-']) && plain != "SYSTEM" => {
                return wrong(1298, "HY000");
            }
            "tx_isolation" if !is_known(&ISOLATIONS) => return wrong(1231, "42000"),
            "max_statement_time" => {
                let seconds: f64 = plain.parse().unwrap_or_default();
                return Ok((name, Some(format!("{seconds:.6}"))));
            }
            _ => plain,
        };
        Ok((name, Some(value.to_owned())))
    }

    /// Sets a variable to what [`Self::read`] has made of it.
    pub fn put(&mut self, name: &'static str, value: Value) {
        if let Some(value) = &value {
            let of = |known: &&(&str, [&str; 2])| match name {
                "character_set_connection" => known.0 == value,
                _ => known.1.contains(&value.as_str()),
            };
            let found = CHARACTER_SETS.iter().find(of);
            // One brings the other along.
            match (name, found) {
                ("character_set_connection", Some((_, collations))) => {
                    self.0.insert(COLLATION, Some(collations[0].to_owned()));
                }
                (COLLATION, Some((set, _))) => {
                    self.0.insert(OF_NAMES[1], Some((*set).to_owned()));
                }
                _ => {}
            }
        }
        self.0.insert(name, value);
    }

    /// SET NAMES. The result is what of it is reported.
    ///
    /// # Errors
    /// There is no such character set, or it has no such collation.
    pub fn set_names(
        &mut self,
        set: &str,
        collation: Option<&str>,
    ) -> Result<[&'static str; 3], Failed> {
        let known = CHARACTER_SETS.iter().find(|(known, _)| *known == set);
        let Some((_, collations)) = known else {
            return Err((1115, "42000", format!("Unknown character set: '{set}'")));
        };
        let collation = collation.unwrap_or(collations[0]);
        if !collations.contains(&collation) {
            return Err((
                1253,
                "42000",
                format!("COLLATION '{collation}' is not valid"),
            ));
        }
        self.names(set, collation);
        Ok(OF_NAMES)
    }

    fn names(&mut self, set: &str, collation: &str) {
        for name in OF_NAMES {
            self.0.insert(name, Some(set.to_owned()));
        }
        self.0.insert(COLLATION, Some(collation.to_owned()));
    }
}

fn default_of(name: &str) -> Value {
    let known = KNOWN.iter().find(|(known, _)| *known == name);
    let (set, collations) = CHARACTER_SETS[0];
    let value = match known {
        Some((_, value)) => value,
        None if name == COLLATION => collations[0],
        None => set,
    };
    Some(value.to_owned())
}
