//! Proofs of a password that do not contain it (MySQL's source documentation, "Native
//! Authentication" and "Caching_sha2_password information"). `n` is the server's nonce of 20 bytes:
//!
//! | method | the server keeps | proof |
//! |---|---|---|
//! | `mysql_native_password` | SHA1(SHA1(password)) | SHA1(password) xor SHA1(n, SHA1(SHA1(password))) |
//! | `caching_sha2_password` | SHA256(SHA256(password)), in memory | SHA256(password) xor SHA256(SHA256(SHA256(password)), n) |
//!
//! The proof of an empty password is empty.

use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use subtle::ConstantTimeEq;

/// The length of a nonce, in bytes.
pub const NONCE_BYTES: usize = 20;
/// The length of a SHA-1 hash, in bytes.
pub const SHA1_BYTES: usize = 20;

/// An authentication method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The method of MySQL up to 5.7 and of MariaDB.
    Native,
    /// The method of MySQL since 8.0.
    CachingSha2,
}

impl Method {
    /// The method of the plugin with this name.
    pub fn of(name: &[u8]) -> Option<Self> {
        match name {
            b"mysql_native_password" => Some(Self::Native),
            b"caching_sha2_password" => Some(Self::CachingSha2),
            _ => None,
        }
    }

    /// The plugin's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
        }
    }

    /// The proof for this nonce.
    pub fn proof(self, password: &[u8], nonce: &[u8; NONCE_BYTES]) -> Vec<u8> {
        if password.is_empty() {
            return Vec::new();
        }
        match self {
            Self::Native => native_proof(&sha1(&[password]), nonce).to_vec(),
            Self::CachingSha2 => {
                let key = hash(&SHA256, &[password]);
                let mask = hash(&SHA256, &[&hash(&SHA256, &[&key]), nonce]);
                xor(&key, &mask)
            }
        }
    }
}

/// The proof by `mysql_native_password`, made from SHA1(password) alone.
pub fn native_proof(key: &[u8; SHA1_BYTES], nonce: &[u8; NONCE_BYTES]) -> [u8; SHA1_BYTES] {
    let mask = sha1(&[nonce, &sha1(&[key])]);
    std::array::from_fn(|at| key[at] ^ mask[at])
}

/// Checks a proof against `stored`, which is SHA1(SHA1(password)). Returns SHA1(password) if it is valid.
pub fn native_key(
    stored: &[u8; SHA1_BYTES],
    proof: &[u8],
    nonce: &[u8; NONCE_BYTES],
) -> Option<[u8; SHA1_BYTES]> {
    let proof: &[u8; SHA1_BYTES] = proof.try_into().ok()?;
    let mask = sha1(&[nonce, stored]);
    let key = std::array::from_fn(|at| proof[at] ^ mask[at]);
    bool::from(sha1(&[&key]).ct_eq(stored)).then_some(key)
}

/// The SHA-1 hash of the concatenated parts.
pub fn sha1(parts: &[&[u8]]) -> [u8; SHA1_BYTES] {
    let hash = hash(&SHA1_FOR_LEGACY_USE_ONLY, parts);
    *hash.first_chunk().expect("SHA-1 has 20 bytes")
}

fn hash(algorithm: &'static Algorithm, parts: &[&[u8]]) -> Vec<u8> {
    digest(algorithm, &parts.concat()).as_ref().to_vec()
}

fn xor(left: &[u8], right: &[u8]) -> Vec<u8> {
    left.iter()
        .zip(right)
        .map(|(left, right)| left ^ right)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values computed by MySQL's formulae in another language.
    #[test]
    fn proofs_are_mysqls() {
        let nonce = b"abcdefghijklmnopqrst";
        let hex =
            |bytes: Vec<u8>| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
        assert_eq!(
            hex(Method::Native.proof(b"secret", nonce)),
            "8817c50fa779daef010ee7577825b0847df9842e"
        );
        assert_eq!(
            hex(Method::CachingSha2.proof(b"secret", nonce)),
            "c76e2898612a4cf042c77fa8c4702c4c64c0c2c557c53c4d75595aaa6abae809"
        );
        for method in [Method::Native, Method::CachingSha2] {
            assert!(method.proof(b"", nonce).is_empty());
            assert_eq!(Method::of(method.name().as_bytes()), Some(method));
        }
        assert_eq!(Method::of(b"client_ed25519"), None);
        let key = sha1(&[b"secret"]);
        let stored = sha1(&[&key]);
        let proof = Method::Native.proof(b"secret", nonce);
        assert_eq!(native_key(&stored, &proof, nonce), Some(key));
        assert_eq!(native_key(&stored, &proof, b"another nonce of 20b"), None);
        assert_eq!(native_key(&stored, b"", nonce), None);
    }
}
