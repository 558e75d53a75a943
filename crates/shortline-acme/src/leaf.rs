//! What a certificate says of itself: from when until when it is valid, and what the authority calls it (RFC 9773, 4.1).

use instant_acme::CertificateIdentifier;
use rustls::pki_types::CertificateDer;
use x509_parser::parse_x509_certificate;

use crate::schedule::Validity;

/// What is known of a certificate.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// When it is valid.
    pub validity: Validity,
    /// What the authority calls it. `None`: it does not name its authority's key.
    pub identifier: Option<CertificateIdentifier<'static>>,
}

/// Reads a certificate.
///
/// # Errors
/// Why it cannot be read.
pub fn read(certificate: &CertificateDer<'_>) -> Result<Leaf, String> {
    let (_, parsed) = parse_x509_certificate(certificate)
        .map_err(|error| format!("not a readable X.509 certificate ({error})"))?;
    // Before 1970 is as good as 1970.
    let seconds = |at: i64| u64::try_from(at).unwrap_or(0);
    let validity = Validity {
        from_s: seconds(parsed.validity().not_before.timestamp()),
        until_s: seconds(parsed.validity().not_after.timestamp()),
    };
    let identifier = CertificateIdentifier::try_from(certificate).ok();
    Ok(Leaf {
        validity,
        identifier: identifier.map(CertificateIdentifier::into_owned),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn validity_is_read_and_nonsense_is_not() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2026, 4, 1);
        let leaf = read(params.self_signed(&key).unwrap().der()).unwrap();
        let days = (leaf.validity.until_s - leaf.validity.from_s) / 86_400;
        assert_eq!((leaf.validity.from_s, days), (1_767_225_600, 90));
        assert!(leaf.identifier.is_none());
        for nonsense in [&b""[..], b"\x30", b"\x30\x03\x02\x01\x01", &[0xff; 99]] {
            assert!(read(&CertificateDer::from(nonsense)).is_err());
        }
    }
}
