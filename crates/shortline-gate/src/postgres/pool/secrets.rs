//! The secrets in the list of users ([`crate::pool::users`]): a password, PostgreSQL's stored SCRAM keys
//! (`SCRAM-SHA-256$...`), or `md5` and the hash of password and user.

use std::sync::OnceLock;

use super::super::scram::{Keys, Secret};
use super::login::Login;
use crate::pool::users;

const MD5_DIGITS: usize = 32;

/// The users that may use the pool.
pub type Users = users::Users<Stored>;

/// A user's secret.
pub enum Stored {
    /// The password itself.
    Password(Password),
    /// SCRAM keys.
    Scram(Keys),
    /// `md5` and the hash.
    Md5(String),
}

/// A password with its SCRAM keys, which are computed at first use. That takes about a millisecond.
pub struct Password {
    text: String,
    keys: OnceLock<Keys>,
}

impl Password {
    /// The password itself.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The keys to check a proof with.
    pub fn keys(&self) -> &Keys {
        self.keys.get_or_init(|| Keys::of_password(&self.text))
    }
}

impl Stored {
    /// The login for this user without a client's proof. None for SCRAM keys, because they cannot make a proof.
    pub fn login(&self) -> Option<Login> {
        match self {
            Self::Password(password) => Some(Login::Scram(Secret::Password(password.text.clone()))),
            Self::Md5(hash) => Some(Login::Md5(hash.clone())),
            Self::Scram(_) => None,
        }
    }
}

impl users::Stored for Stored {
    fn of(secret: String) -> Result<Self, &'static str> {
        if secret.starts_with("SCRAM-SHA-256$") {
            let keys = Keys::parse(&secret);
            return keys
                .map(Self::Scram)
                .ok_or("no SCRAM secret of PostgreSQL's");
        }
        let is_md5 = secret.strip_prefix("md5").is_some_and(|hash| {
            hash.len() == MD5_DIGITS && hash.bytes().all(|digit| digit.is_ascii_hexdigit())
        });
        if is_md5 {
            return Ok(Self::Md5(secret));
        }
        Ok(Self::Password(Password {
            text: secret,
            keys: OnceLock::new(),
        }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn secrets_are_told_apart() {
        let text = "\"app\" \"se\"\"cret\"\n\"old\" \"md50123456789abcdef0123456789abcdef\"\n\
            \"new\" \"SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXku\
                LmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=\"\n";
        let users = Users::parse(text).unwrap();
        assert!(
            matches!(users.get("app"), Some(Stored::Password(password)) if password.text() == "se\"cret")
        );
        assert!(matches!(users.get("old"), Some(Stored::Md5(_))));
        assert!(matches!(users.get("new"), Some(Stored::Scram(_))));
        let wrong = Users::parse("\"a\" \"SCRAM-SHA-256$x\"").unwrap_err();
        assert_eq!(wrong, (1, "no SCRAM secret of PostgreSQL's"));
    }
}
