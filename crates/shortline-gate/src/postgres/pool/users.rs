//! Who may use the pool: PgBouncer's `userlist.txt`, read as it is.
//!
//! A line is `"user" "secret"`, where a quote inside is doubled. A secret is a password, what PostgreSQL
//! stores for SCRAM (`SCRAM-SHA-256$...`), or `md5` and the hash of password and user. Empty lines and
//! those that begin with `;` or `#` say nothing.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::super::scram::{Keys, Secret};
use super::login::Login;

/// The most bytes such a file may have.
const FILE_BYTES_MAX: u64 = 16 << 20;
const MD5_DIGITS: usize = 32;

/// What is known of a user's password.
pub enum Stored {
    /// The password itself.
    Password(Password),
    /// Keys alone.
    Scram(Keys),
    /// `md5` and the hash.
    Md5(String),
}

/// A password, and keys made of it when they are needed first: to make them takes a millisecond.
pub struct Password {
    text: String,
    keys: OnceLock<Keys>,
}

impl Password {
    /// As it is.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What a proof is checked by.
    pub fn keys(&self) -> &Keys {
        self.keys.get_or_init(|| Keys::of_password(&self.text))
    }
}

/// All users by name.
#[derive(Default)]
pub struct Users(HashMap<String, Stored>);

/// Nobody's secret.
impl fmt::Debug for Users {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} users", self.0.len())
    }
}

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UsersError {
    /// It cannot be read.
    #[error("users {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// It is absurdly long.
    #[error("users {}: larger than {FILE_BYTES_MAX} bytes; is it the right file?", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A line that is none.
    #[error("{}:{line}: {problem}; a line is \"user\" \"password\"", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        problem: &'static str,
    },
}

impl Users {
    /// Reads a file.
    ///
    /// # Errors
    /// [`UsersError`]
    pub fn read(path: &Path) -> Result<Self, UsersError> {
        let mut text = String::new();
        fs::File::open(path)
            .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
            .map_err(|source| UsersError::Unreadable {
                path: path.to_owned(),
                source,
            })?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(UsersError::TooLarge {
                path: path.to_owned(),
            });
        }
        Self::parse(&text).map_err(|(line, problem)| UsersError::Line {
            path: path.to_owned(),
            line,
            problem,
        })
    }

    /// What is known of a user, if anything.
    pub fn get(&self, user: &str) -> Option<&Stored> {
        self.0.get(user)
    }

    /// Reads the text of such a file.
    ///
    /// # Errors
    /// The line that is wrong, counted from 1, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, (usize, &'static str)> {
        let mut users = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with([';', '#']) {
                continue;
            }
            let (user, secret) = entry(line).map_err(|problem| (number + 1, problem))?;
            let secret = Stored::of(secret).map_err(|problem| (number + 1, problem))?;
            if users.insert(user, secret).is_some() {
                return Err((number + 1, "this user has a line already"));
            }
        }
        Ok(Self(users))
    }
}

impl Stored {
    /// What the gate logs in with for the user itself, without its client's proof. None of SCRAM keys, which
    /// prove nothing.
    pub fn login(&self) -> Option<Login> {
        match self {
            Self::Password(password) => Some(Login::Scram(Secret::Password(password.text.clone()))),
            Self::Md5(hash) => Some(Login::Md5(hash.clone())),
            Self::Scram(_) => None,
        }
    }

    /// What this is the secret of.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(secret: String) -> Result<Self, &'static str> {
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

fn entry(line: &str) -> Result<(String, String), &'static str> {
    let (user, rest) = quoted(line)?;
    let (secret, rest) = quoted(rest.trim_start())?;
    if !rest.trim().is_empty() && !rest.trim_start().starts_with(['"', ';', '#']) {
        return Err("something follows the second quote");
    }
    if user.is_empty() {
        return Err("the user has no name");
    }
    Ok((user, secret))
}

/// A text in quotes at the front, and what follows.
fn quoted(text: &str) -> Result<(String, &str), &'static str> {
    let mut rest = text.strip_prefix('"').ok_or("a quote is missing")?;
    let mut value = String::new();
    loop {
        let (part, behind) = rest.split_once('"').ok_or("a quote is not closed")?;
        value += part;
        match behind.strip_prefix('"') {
            Some(inside) => {
                value.push('"');
                rest = inside;
            }
            None => return Ok((value, behind)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pgbouncers_file_is_read_as_it_is() {
        let text = "; a comment\n\"app\" \"se\"\"cret\"\n\n\"old\" \"md50123456789abcdef0123456789abcdef\" \"\"\n\
            \"new\" \"SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXku\
                LmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=\"\n";
        let users = Users::parse(text).unwrap();
        assert!(
            matches!(users.get("app"), Some(Stored::Password(password)) if password.text() == "se\"cret")
        );
        assert!(matches!(users.get("old"), Some(Stored::Md5(_))));
        assert!(matches!(users.get("new"), Some(Stored::Scram(_))));
        assert!(users.get("else").is_none());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line) in [
            ("\n\"a\"", 2),
            ("a b", 1),
            ("\"a\" \"b", 1),
            ("\"\" \"b\"", 1),
            ("\"a\" \"b\" c", 1),
            ("\"a\" \"b\"\n\"a\" \"c\"", 2),
            ("\"a\" \"SCRAM-SHA-256$x\"", 1),
        ] {
            assert_eq!(Users::parse(text).unwrap_err().0, line, "{text}");
        }
        let error = Users::read(Path::new("/no/such")).unwrap_err().to_string();
        assert!(error.starts_with("users /no/such: "), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(name in "[a-z\"]{1,8}", password in "[ -~]{0,20}") {
            prop_assume!(!password.starts_with("md5") && !password.starts_with("SCRAM"));
            let double = |text: &str| text.replace('"', "\"\"");
            let text = format!("\"{}\" \"{}\"", double(&name), double(&password));
            let users = Users::parse(&text).unwrap();
            let known = matches!(users.get(&name), Some(Stored::Password(known)) if known.text() == password);
            prop_assert!(known);
        }
    }
}
