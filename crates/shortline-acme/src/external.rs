//! External account binding (RFC 8555, 7.3.4): an authority knows the operator already, and has given a key that says so.

use std::fmt;
use std::fs;
use std::path::Path;

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use instant_acme::ExternalAccountKey;

/// The largest file with a key. Those of 256 bits have 43 letters.
const FILE_BYTES_MAX: u64 = 4096;
/// Authorities show keys with padding and without.
const BASE64URL: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What an authority has given to somebody it knows.
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalAccount {
    /// What it calls the key.
    pub kid: String,
    key: Vec<u8>,
}

impl ExternalAccount {
    /// Reads the key from a file.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn read(kid: String, file: &Path) -> Result<Self, String> {
        let told = |problem: &dyn fmt::Display| format!("{}: {problem}", file.display());
        let length = fs::metadata(file).map_err(|error| told(&error))?.len();
        if length > FILE_BYTES_MAX {
            return Err(told(&"is larger than 4KiB: it is no key of an account"));
        }
        let text = fs::read_to_string(file).map_err(|error| told(&error))?;
        match BASE64URL.decode(text.trim()) {
            Ok(key) if !key.is_empty() => Ok(Self { kid, key }),
            _ => Err(told(
                &"is no key in base64url: put the text in it that the authority shows, and nothing else",
            )),
        }
    }

    /// The key as requests are signed with it.
    pub fn key(&self) -> ExternalAccountKey {
        ExternalAccountKey::new(self.kid.clone(), &self.key)
    }
}

impl fmt::Debug for ExternalAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalAccount")
            .field("kid", &self.kid)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_key_is_read_with_padding_and_without_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("eab.key");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            ExternalAccount::read("kid-1".to_owned(), &path)
        };
        let plain = read("zWNDZM6eQGHWpSRTPal5eg\n").unwrap();
        assert_eq!(read("zWNDZM6eQGHWpSRTPal5eg==").unwrap(), plain);
        assert_eq!(plain.key.len(), 16);
        assert_eq!(
            format!("{plain:?}"),
            "ExternalAccount { kid: \"kid-1\", .. }"
        );
        for text in ["", "\n", "a+/b", "zWND ZM6e", "kid-1:zWND"] {
            let error = read(text).unwrap_err();
            assert!(error.contains("eab.key: is no key in base64url"), "{error}");
            assert!(text.trim().is_empty() || !error.contains(text), "{error}");
        }
        assert!(read(&"a".repeat(5000)).unwrap_err().contains("4KiB"));
        fs::remove_file(&path).unwrap();
        let error = ExternalAccount::read(String::new(), &path).unwrap_err();
        assert!(error.contains("No such file"), "{error}");
    }
}
