//! Who a client is, as its certificate says: the subject as a text (RFC 4514), and the fingerprint.
//!
//! The text is printable ASCII. What is special in it is escaped (RFC 4514, 2.4), and whatever is not printable ASCII is written as
//! `\hh` for each byte. So it fits into a header field and a line of a log, and no name can look like two.
//!
//! Departures: the names of attributes are those of RFC 4514 and, as OpenSSL and nginx have them, `emailAddress` and
//! `serialNumber`.

use std::fmt::Write;

use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use x509_parser::asn1_rs::{Oid, ToDer};
use x509_parser::parse_x509_certificate;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// The longest subject that is told of.
const SUBJECT_BYTES_MAX: usize = 4096;

/// The names of attributes (RFC 4514, 3).
const NAMES: [(&str, &str); 11] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "STREET"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

/// A client that has shown a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The certificate's subject, the most special part first: `CN=backup,O=Example`.
    pub subject: String,
    /// SHA-256 of the certificate, in small hexadecimal digits.
    pub fingerprint: String,
}

/// Who shows this certificate.
///
/// # Errors
/// Why nobody could be told of.
pub fn of(certificate: &CertificateDer<'_>) -> Result<ClientIdentity, String> {
    let (_, parsed) = parse_x509_certificate(certificate)
        .map_err(|error| format!("a client's certificate cannot be read: {error}"))?;
    let subject = text(parsed.subject());
    if subject.len() > SUBJECT_BYTES_MAX {
        return Err(format!(
            "the subject of a client's certificate is longer than {SUBJECT_BYTES_MAX} bytes"
        ));
    }
    let mut fingerprint = String::new();
    hex(&mut fingerprint, digest(&SHA256, certificate).as_ref());
    Ok(ClientIdentity {
        subject,
        fingerprint,
    })
}

/// A name, its last part first (RFC 4514, 2.1).
fn text(name: &X509Name<'_>) -> String {
    let parts: Vec<_> = name.iter_rdn().collect();
    let part = |part: &&x509_parser::x509::RelativeDistinguishedName<'_>| {
        let pairs: Vec<String> = part.iter().map(pair).collect();
        pairs.join("+")
    };
    let parts: Vec<String> = parts.iter().rev().map(part).collect();
    parts.join(",")
}

fn pair(pair: &AttributeTypeAndValue<'_>) -> String {
    let name = name_of(pair.attr_type());
    let mut text = name.map_or_else(|| pair.attr_type().to_id_string(), str::to_owned);
    text.push('=');
    match (name, pair.as_str()) {
        (Some(_), Ok(value)) => escape(&mut text, value),
        // A value without a form as a text is written as its encoding (RFC 4514, 2.4).
        _ => {
            text.push('#');
            hex(
                &mut text,
                &pair.attr_value().to_der_vec().unwrap_or_default(),
            );
        }
    }
    text
}

fn name_of(kind: &Oid<'_>) -> Option<&'static str> {
    let id = kind.to_id_string();
    let known = NAMES.iter().find(|(known, _)| *known == id);
    known.map(|(_, name)| *name)
}

fn escape(text: &mut String, value: &str) {
    let last = value.len().saturating_sub(1);
    for (at, byte) in value.bytes().enumerate() {
        let is_special = b"\"+,;<>\\=".contains(&byte)
            || byte == b'#' && at == 0
            || byte == b' ' && (at == 0 || at == last);
        match byte {
            _ if is_special => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => {
                text.push('\\');
                hex(text, &[byte]);
            }
        }
    }
}

fn hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    fn made(subject: &[(DnType, &str)]) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), *value);
        }
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().clone()
    }

    fn subject(subject: &[(DnType, &str)]) -> String {
        of(&made(subject)).unwrap().subject
    }

    #[test]
    fn a_subject_is_written_from_its_end_and_what_is_special_is_escaped() {
        use DnType::{CommonName, CountryName, CustomDnType, OrganizationName};
        assert_eq!(
            subject(&[
                (CountryName, "DE"),
                (OrganizationName, "Example"),
                (CommonName, "backup")
            ]),
            "CN=backup,O=Example,C=DE"
        );
        assert_eq!(
            subject(&[(CommonName, "a,O=Admins+x \r\n")]),
            "CN=a\\,O\\=Admins\\+x \\0d\\0a"
        );
        assert_eq!(subject(&[(CommonName, "#é ")]), "CN=\\#\\c3\\a9\\ ");
        let other = CustomDnType(vec![1, 2, 3, 4]);
        assert_eq!(subject(&[(other, "x")]), "1.2.3.4=#0c0178");
        assert_eq!(subject(&[]), "");
    }

    #[test]
    fn a_fingerprint_is_of_the_whole_certificate() {
        let one = made(&[(DnType::CommonName, "a")]);
        let other = made(&[(DnType::CommonName, "a")]);
        let print = |certificate| of(certificate).unwrap().fingerprint;
        assert_eq!(print(&one).len(), 64);
        assert_ne!(print(&one), print(&other));
    }

    #[test]
    fn nonsense_and_endless_names_are_refused() {
        assert!(of(&vec![1, 2, 3].into()).is_err());
        let long = made(&[(DnType::CommonName, &"x".repeat(5000))]);
        assert!(of(&long).unwrap_err().contains("longer than 4096"));
    }

    proptest! {
        #[test]
        fn a_text_is_printable_and_can_be_read_back(value in any::<String>()) {
            let mut text = String::new();
            escape(&mut text, &value);
            prop_assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{}", text);
            prop_assert_eq!(read(&text), Some(value.into_bytes()), "{}", text);
        }

        #[test]
        fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..99)) {
            let _ = of(&bytes.into()).is_ok();
        }
    }

    /// A value as RFC 4514, 3 reads it. `None`: something special is not escaped.
    fn read(text: &str) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((first, behind)) = rest.split_first() {
            rest = behind;
            match first {
                b'\\' if rest.first()?.is_ascii_hexdigit() => {
                    let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
                    value.push(u8::from_str_radix(digits, 16).ok()?);
                    rest = &rest[2..];
                }
                b'\\' => {
                    value.push(rest[0]);
                    rest = &rest[1..];
                }
                b'"' | b'+' | b',' | b';' | b'<' | b'>' => return None,
                byte => value.push(*byte),
            }
        }
        Some(value)
    }
}
