//! The users of a pool, from a file in the format of PgBouncer's `userlist.txt`.
//!
//! A line is `"user" "secret"`. A quote inside is doubled. The protocol defines the forms of a secret. Empty lines
//! and lines that begin with `;` or `#` are skipped.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The most bytes such a file may have.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The stored form of a user's password.
pub trait Stored: Sized {
    /// Reads a secret from the file.
    ///
    /// # Errors
    /// What is wrong with it.
    fn of(secret: String) -> Result<Self, &'static str>;
}

/// All users by name.
pub struct Users<S>(HashMap<String, S>);

/// Shows no secrets.
impl<S> fmt::Debug for Users<S> {
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
        /// The kernel's error.
        source: io::Error,
    },
    /// It is too large.
    #[error("users {}: larger than {FILE_BYTES_MAX} bytes; is it the right file?", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A malformed line.
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

impl<S: Stored> Users<S> {
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

    /// The password of a user, if the file has the user.
    pub fn get(&self, user: &str) -> Option<&S> {
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
            let secret = S::of(secret).map_err(|problem| (number + 1, problem))?;
            if users.insert(user, secret).is_some() {
                return Err((number + 1, "this user has a line already"));
            }
        }
        Ok(Self(users))
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

/// The quoted text at the front, and the rest behind it.
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

    impl Stored for String {
        fn of(secret: String) -> Result<Self, &'static str> {
            match secret.starts_with("bad") {
                true => Err("it is bad"),
                false => Ok(secret),
            }
        }
    }

    #[test]
    fn pgbouncers_file_is_read_as_it_is() {
        let text = "; a comment\n\"app\" \"se\"\"cret\"\n\n\"old\" \"md5\" \"\"\n";
        let users = Users::<String>::parse(text).unwrap();
        assert_eq!(users.get("app").unwrap(), "se\"cret");
        assert_eq!(users.get("old").unwrap(), "md5");
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
            ("\"a\" \"bad\"", 1),
        ] {
            assert_eq!(Users::<String>::parse(text).unwrap_err().0, line, "{text}");
        }
        let error = Users::<String>::read(Path::new("/no/such")).unwrap_err();
        assert!(error.to_string().starts_with("users /no/such: "), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(name in "[a-z\"]{1,8}", password in "[ -~]{0,20}") {
            prop_assume!(!password.starts_with("bad"));
            let double = |text: &str| text.replace('"', "\"\"");
            let text = format!("\"{}\" \"{}\"", double(&name), double(&password));
            let users = Users::<String>::parse(&text).unwrap();
            prop_assert_eq!(users.get(&name), Some(&password));
        }
    }
}
