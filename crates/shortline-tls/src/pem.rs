//! Files in PEM (RFC 7468).

use std::path::Path;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::TlsError;

/// The certificates of a file, at least one. Error messages call them `what`.
pub fn certificates(
    what: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    all(what, path, "CERTIFICATE")
}

/// All sections of a kind, at least one. PEM calls the kind `section`.
pub fn all<T: PemObject>(
    what: &'static str,
    path: &Path,
    section: &str,
) -> Result<Vec<T>, TlsError> {
    let refused = |error| TlsError::file(what, path, problem(&error, section));
    let found = T::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(refused)?;
    if found.is_empty() {
        return Err(refused(pem::Error::NoItemsFound));
    }
    Ok(found)
}

/// The key of a file.
pub fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|error| TlsError::file("key", path, problem(&error, "PRIVATE KEY")))
}

fn problem(error: &pem::Error, wanted: &str) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => format!("no PEM section `-----BEGIN {wanted}-----` in it"),
        _ => format!("not sound PEM; a section `-----BEGIN {wanted}-----` is needed ({error:?})"),
    }
}
