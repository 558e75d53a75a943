//! A file of users as `htpasswd -B` writes it: a line `name:hash` for each, empty lines, and comments after `#`. What follows a second
//! colon is a comment, too, as nginx reads it.
//!
//! | hash | |
//! |---|---|
//! | `$2a$`, `$2b$`, `$2y$` | bcrypt, of a cost of 4 to 15 |
//! | `$argon2id$`, `$argon2i$`, `$argon2d$` | argon2 (RFC 9106), of at most 256 MiB and 32 passes over 256 MiB in all |
//! | any other (MD5, SHA-1, crypt, plain text) | refused with its line: they are broken, or can be tried at leisure |
//!
//! Of bcrypt the first 72 bytes of a password count, as everywhere. What was checked and right is remembered by an HMAC under a key
//! that is drawn for each reading of the file, so a file that is read again forgets all of it.

use std::collections::HashMap;
use std::sync::Arc;

use argon2::{Argon2, PasswordHash, PasswordVerifier};
use http::HeaderValue;
use quick_cache::sync::Cache;
use ring::hmac;
use ring::rand::SystemRandom;

/// The most credentials that are remembered.
const KNOWN_MAX: usize = 4096;
const BCRYPT_COSTS: std::ops::RangeInclusive<u32> = 4..=15;
const ARGON2_MEMORY_KIB_MAX: u64 = 256 << 10;
const ARGON2_LANES_MAX: u64 = 64;
/// Memory times passes.
const ARGON2_WORK_KIB_MAX: u64 = 32 * (256 << 10);

/// The users of a file.
#[derive(Default)]
pub struct Users {
    by_name: HashMap<Arc<str>, String>,
    /// Whose hash stands in for that of an unknown user.
    stand_in: Option<String>,
    known: Option<Known>,
}

/// Credentials that were right, by their HMAC.
struct Known {
    key: hmac::Key,
    users: Cache<[u8; 32], Arc<str>>,
}

/// A line that is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct UsersError {
    line: usize,
    problem: String,
}

impl std::fmt::Debug for Users {
    /// Without the hashes.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} users", self.by_name.len())
    }
}

impl Users {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// [`UsersError`]: the first line that cannot be used, and what would be right.
    pub fn parse(text: &str) -> Result<Self, UsersError> {
        let mut users = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, hash) = user(line).map_err(|problem| UsersError {
                line: index + 1,
                problem,
            })?;
            if users.by_name.insert(name.into(), hash.to_owned()).is_some() {
                return Err(UsersError {
                    line: index + 1,
                    problem: format!(
                        "the user `{name}` is there twice: leave out one of the lines"
                    ),
                });
            }
            users.stand_in.get_or_insert_with(|| hash.to_owned());
        }
        users.known = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .ok()
            .map(|key| Known {
                key,
                users: Cache::new(KNOWN_MAX),
            });
        Ok(users)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The user of credentials (`name:password`) that were right before.
    pub fn known(&self, credentials: &[u8]) -> Option<Arc<str>> {
        let known = self.known.as_ref()?;
        known.users.get(&known.name(credentials))
    }

    /// The user of credentials. It takes as long for a user that there is as for one that there is not.
    pub fn check(&self, credentials: &[u8]) -> Option<Arc<str>> {
        // Another request may have had them checked in the meantime.
        if let Some(user) = self.known(credentials) {
            return Some(user);
        }
        let colon = credentials.iter().position(|byte| *byte == b':')?;
        let (name, password) = (&credentials[..colon], &credentials[colon + 1..]);
        let entry = std::str::from_utf8(name)
            .ok()
            .and_then(|name| self.by_name.get_key_value(name));
        let Some((user, hash)) = entry else {
            let stand_in = self.stand_in.as_ref()?;
            std::hint::black_box(is_right(password, stand_in));
            return None;
        };
        if !is_right(password, hash) {
            return None;
        }
        if let Some(known) = &self.known {
            known
                .users
                .insert(known.name(credentials), Arc::clone(user));
        }
        Some(Arc::clone(user))
    }
}

impl Known {
    fn name(&self, credentials: &[u8]) -> [u8; 32] {
        let tag = hmac::sign(&self.key, credentials);
        let mut name = [0; 32];
        name.copy_from_slice(tag.as_ref());
        name
    }
}

/// The name and hash of a line.
fn user(line: &str) -> Result<(&str, &str), String> {
    let want = "write it as htpasswd -B does, name:hash";
    let shown = |text: &str| text.escape_debug().to_string();
    let (name, rest) = line.split_once(':').ok_or(format!("no colon: {want}"))?;
    let hash = rest.split(':').next().unwrap_or_default();
    let is_value = HeaderValue::from_str(name).is_ok_and(|value| value.to_str().is_ok());
    if name.is_empty() || !is_value {
        return Err(format!("`{}` is no name of a user: {want}", shown(name)));
    }
    let problem = match hash {
        hash if is_bcrypt(hash) => return Ok((name, hash)),
        hash if hash.starts_with("$argon2") => match check_argon2(hash) {
            Ok(()) => return Ok((name, hash)),
            Err(problem) => problem,
        },
        hash if hash.starts_with("$2") => "is no bcrypt of a cost of 4 to 15".to_owned(),
        hash if hash.starts_with("$apr1$") || hash.starts_with("$1$") => "is MD5".to_owned(),
        hash if hash.starts_with("{SHA}") => "is SHA-1".to_owned(),
        _ => "is neither bcrypt nor argon2".to_owned(),
    };
    Err(format!(
        "the hash of `{}` {problem}: make it anew with htpasswd -B",
        shown(name)
    ))
}

/// `$2y$10$`, 22 letters of salt and 31 of the hash.
fn is_bcrypt(hash: &str) -> bool {
    let bytes = hash.as_bytes();
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"./".contains(byte);
    let is_kind = ["$2a$", "$2b$", "$2y$"]
        .iter()
        .any(|kind| hash.starts_with(kind));
    let cost = hash.get(4..6).and_then(|cost| cost.parse().ok());
    is_kind
        && bytes.len() == 60
        && bytes[6] == b'$'
        && cost.is_some_and(|cost| BCRYPT_COSTS.contains(&cost))
        && bytes[7..].iter().all(is_letter)
}

fn check_argon2(hash: &str) -> Result<(), String> {
    let parsed = PasswordHash::new(hash).map_err(|error| format!("is no argon2: {error}"))?;
    // The library multiplies them before it looks at their limits.
    let given = |name| u64::from(parsed.params.get_decimal(name).unwrap_or(0));
    let (memory_kib, passes, lanes) = (given("m"), given("t"), given("p"));
    if memory_kib > ARGON2_MEMORY_KIB_MAX
        || memory_kib.saturating_mul(passes) > ARGON2_WORK_KIB_MAX
        || lanes > ARGON2_LANES_MAX
    {
        return Err("needs more than 256 MiB, 32 passes over that, or 64 lanes".to_owned());
    }
    argon2::Params::try_from(&parsed).map_err(|error| format!("is no argon2: {error}"))?;
    let known = argon2::Algorithm::try_from(parsed.algorithm);
    match parsed.hash.is_some() && parsed.salt.is_some() && known.is_ok() {
        true => Ok(()),
        false => Err("is no whole argon2".to_owned()),
    }
}

/// Whether it is the password of a hash. Both libraries compare in constant time.
fn is_right(password: &[u8], hash: &str) -> bool {
    match hash.starts_with("$argon2") {
        true => PasswordHash::new(hash).is_ok_and(|hash| {
            let verified = Argon2::default().verify_password(password, &hash);
            verified.is_ok()
        }),
        false => bcrypt::verify(password, hash).unwrap_or(false),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Of the password `secret`.
    fn bcrypt_hash() -> String {
        bcrypt::hash_with_result("secret", 4)
            .unwrap()
            .format_for_version(bcrypt::Version::TwoY)
    }

    #[test]
    fn a_user_is_known_by_the_password_and_remembered() {
        let users = Users::parse(&format!("# staff\n\nbob:{}:the boss\n", bcrypt_hash())).unwrap();
        assert_eq!(users.len(), 1);
        for wrong in [
            "bob:secreT",
            "bob:",
            "Bob:secret",
            ":secret",
            "eve:secret",
            "bob",
        ] {
            assert_eq!(users.check(wrong.as_bytes()), None, "{wrong}");
            assert_eq!(users.known(wrong.as_bytes()), None);
        }
        assert_eq!(users.known(b"bob:secret"), None);
        assert_eq!(users.check(b"bob:secret").as_deref(), Some("bob"));
        assert_eq!(users.known(b"bob:secret").as_deref(), Some("bob"));
        // Of another reading of the file nothing is remembered.
        let again = Users::parse(&format!("bob:{}\n", bcrypt_hash())).unwrap();
        assert_eq!(again.known(b"bob:secret"), None);
    }

    #[test]
    fn argon2_is_known_too() {
        // RFC 9106's function with the least cost, of `password`, made by the reference implementation's encoding.
        use argon2::password_hash::{PasswordHasher, SaltString};
        let salt = SaltString::from_b64("c29tZXNhbHRzb21l").unwrap();
        let parameters = argon2::Params::new(8, 1, 1, None).unwrap();
        let argon2 = Argon2::new(
            argon2::Algorithm::Argon2id,
            argon2::Version::V0x13,
            parameters,
        );
        let hash = argon2
            .hash_password(b"password", &salt)
            .unwrap()
            .to_string();
        let users = Users::parse(&format!("eve:{hash}")).unwrap();
        assert_eq!(users.check(b"eve:password").as_deref(), Some("eve"));
        assert_eq!(users.check(b"eve:Password"), None);
    }

    #[test]
    fn what_cannot_be_used_is_told_with_its_line() {
        let told = |text: &str| Users::parse(text).unwrap_err().to_string();
        assert!(told("\n#\nbob").starts_with("line 3: no colon"));
        assert!(told(":x").contains("is no name of a user"));
        assert!(told("bob:$apr1$a$b").contains("`bob` is MD5: make it anew"));
        assert!(told("bob:{SHA}x").contains("is SHA-1"));
        assert!(told("bob:secret").contains("neither bcrypt nor argon2"));
        assert!(told("bob:$2y$31$abcdefghijklmnopqrstuv").contains("cost of 4 to 15"));
        let slow = bcrypt_hash().replacen("$04$", "$20$", 1);
        assert!(told(&format!("bob:{slow}")).contains("cost of 4 to 15"));
        let large = "$argon2id$v=19$m=1048576,t=1,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA";
        assert!(told(&format!("bob:{large}")).contains("more than 256 MiB"));
        let wide = "$argon2id$v=19$m=8,t=1,p=1844674407$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA";
        assert!(told(&format!("bob:{wide}")).contains("or 64 lanes"));
        let twice = format!("bob:{0}\nbob:{0}", bcrypt_hash());
        assert!(told(&twice).contains("line 2: the user `bob` is there twice"));
        assert!(Users::parse("").unwrap().is_empty());
    }
}
