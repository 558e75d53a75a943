//! The secrets in the list of users ([`crate::pool::users`]): a password, or the hash that MySQL and MariaDB store for
//! `mysql_native_password`. That is `*` and SHA1(SHA1(password)) in 40 hexadecimal digits.

use subtle::ConstantTimeEq;

use crate::mysql::login::Secret;
use crate::mysql::scramble::{Method, NONCE_BYTES, SHA1_BYTES, native_key, sha1};
use crate::pool::users;

/// The users that may use the pool.
pub type Users = users::Users<Stored>;

/// A user's secret.
pub enum Stored {
    /// The password itself.
    Password(String),
    /// SHA1(SHA1(password)).
    Native([u8; SHA1_BYTES]),
}

impl users::Stored for Stored {
    fn of(secret: String) -> Result<Self, &'static str> {
        let Some(digits) = secret
            .strip_prefix('*')
            .filter(|digits| digits.len() == 2 * SHA1_BYTES)
        else {
            return Ok(Self::Password(secret));
        };
        let mut hash = [0; SHA1_BYTES];
        for (byte, pair) in hash.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).ok();
            let Some(read) = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) else {
                return Ok(Self::Password(secret));
            };
            *byte = read;
        }
        Ok(Self::Native(hash))
    }
}

impl Stored {
    /// Whether a proof by this method can be checked.
    pub fn knows(&self, method: Method) -> bool {
        matches!(self, Self::Password(_)) || method == Method::Native
    }

    /// Checks a proof. Returns the secret for the gate's login if it is valid.
    pub fn check(&self, method: Method, proof: &[u8], nonce: &[u8; NONCE_BYTES]) -> Option<Secret> {
        match (self, method) {
            (Self::Password(password), _) => {
                let expected = method.proof(password.as_bytes(), nonce);
                bool::from(expected.ct_eq(proof)).then(|| Secret::Password(password.clone()))
            }
            (Self::Native(stored), Method::Native) => {
                native_key(stored, proof, nonce).map(Secret::NativeKey)
            }
            (Self::Native(_), Method::CachingSha2) => None,
        }
    }

    /// What the gate logs in with for the user itself, without its client's proof. None of a hash, which proves
    /// nothing.
    pub fn login(&self) -> Option<Secret> {
        match self {
            Self::Password(password) => Some(Secret::Password(password.clone())),
            Self::Native(_) => None,
        }
    }

    /// The secret of an unknown user: a password that no client knows.
    pub fn of_nobody(user: &[u8], secret: &[u8; 32]) -> Self {
        Self::Password(format!("{:x?}", sha1(&[user, secret])))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn secrets_are_told_apart_and_checked() {
        // PASSWORD('secret')
        let text = "\"a\" \"secret\"\n\"b\" \"*14E65567ABDB5135D0CFD9A70B3032C179A49EE7\"\n\"c\" \"*short\"";
        let users = Users::parse(text).unwrap();
        let nonce = b"abcdefghijklmnopqrst";
        let (a, b, c) = (
            users.get("a").unwrap(),
            users.get("b").unwrap(),
            users.get("c").unwrap(),
        );
        assert!(matches!(c, Stored::Password(_)));
        for (stored, method, is_known) in [
            (a, Method::Native, true),
            (a, Method::CachingSha2, true),
            (b, Method::Native, true),
            (b, Method::CachingSha2, false),
        ] {
            assert_eq!(stored.knows(method), is_known);
            let proof = method.proof(b"secret", nonce);
            assert_eq!(stored.check(method, &proof, nonce).is_some(), is_known);
            assert!(
                stored
                    .check(method, &method.proof(b"wrong", nonce), nonce)
                    .is_none()
            );
            assert!(stored.check(method, b"", nonce).is_none());
        }
        let nobody = Stored::of_nobody(b"x", &[1; 32]);
        assert!(
            nobody
                .check(Method::Native, &Method::Native.proof(b"x", nonce), nonce)
                .is_none()
        );
    }
}
