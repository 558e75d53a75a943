//! Certificates that OpenSSL accepts and rustls, browsers, Go or Java refuse: what is wrong with
//! them, and what to do about it.
//!
//! | certificate | who refuses it |
//! |---|---|
//! | only a common name, no `subjectAltName` | all but libpq: they look for names only there (RFC 9525, 2) |
//! | X.509 version 1, as `openssl x509 -req` makes without `-extfile` | the same: it has no extensions |
//! | an authority's (`CA:TRUE`), as `openssl req -x509` makes by default | rustls: not a server's certificate (webpki's `CaUsedAsEndEntity`) |

use std::io;
use std::path::Path;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, Error, OtherError};
use webpki::EndEntityCert;

use crate::names::Pattern;

/// What is wrong with a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    NoNames,
    Version1,
    Authority,
}

impl Fault {
    fn reason(self) -> &'static str {
        match self {
            Self::NoNames => {
                "has no subjectAltName: a common name (CN) alone is no name of a server's (RFC 9525)"
            }
            Self::Version1 => {
                "is of X.509 version 1, so that it has no subjectAltName, in which its names must be"
            }
            Self::Authority => "is an authority's (CA:TRUE), not a server's",
        }
    }
}

/// The error of a handshake with `host`. It has the reason and the remedy if other programs accept
/// the certificate.
pub fn explained(error: io::Error, host: &str) -> io::Error {
    let Some(fault) = fault_of(&error) else {
        return error;
    };
    io::Error::new(
        error.kind(),
        format!("its certificate {}; {}", fault.reason(), remedy(host)),
    )
}

/// Warns of a certificate that many clients will refuse.
///
/// # Errors
/// Why it cannot be used at all: rustls serves no certificate of version 1.
pub fn check_for_clients(path: &Path, leaf: &CertificateDer<'_>) -> Result<(), String> {
    let Some(fault) = refused_by_clients(leaf) else {
        return Ok(());
    };
    let (reason, remedy) = (fault.reason(), remedy("www.example.org"));
    if fault == Fault::Version1 {
        return Err(format!("it {reason}; {remedy}"));
    }
    let path = path.display();
    tracing::warn!("certificate {path}: many clients will refuse it: it {reason}; {remedy}");
    Ok(())
}

/// Whether the certificate is for a name, or for all names of a wildcard.
///
/// # Errors
/// Which names it is for.
pub fn check_name(leaf: &CertificateDer<'_>, pattern: &Pattern) -> Result<(), String> {
    let certificate = EndEntityCert::try_from(leaf).map_err(|error| error.to_string())?;
    let example = pattern.example();
    let host = example.trim_matches(['[', ']']);
    let name = ServerName::try_from(host).map_err(|error| format!("{pattern}: {error}"))?;
    match certificate.verify_is_valid_for_subject_name(&name) {
        Ok(()) => Ok(()),
        Err(webpki::Error::CertNotValidForName(context)) => {
            let theirs: Vec<&str> = context.presented.iter().map(|name| bare(name)).collect();
            Err(format!(
                "is for {}, and not for {pattern}",
                theirs.join(", ")
            ))
        }
        Err(error) => Err(format!("cannot be used for {pattern}: {error}")),
    }
}

/// The name in webpki's `DnsName("a.example")`.
fn bare(presented: &str) -> &str {
    presented.split('"').nth(1).unwrap_or(presented)
}

/// How to make a certificate that everybody accepts.
fn remedy(host: &str) -> String {
    let kind = match ServerName::try_from(host) {
        Ok(ServerName::IpAddress(_)) => "IP",
        _ => "DNS",
    };
    format!(
        "have it issued anew, as with: openssl req -x509 ... -addext subjectAltName={kind}:{host} \
         -addext basicConstraints=critical,CA:FALSE"
    )
}

/// The fault that ended a handshake, if it is one of these.
fn fault_of(error: &io::Error) -> Option<Fault> {
    match error.get_ref()?.downcast_ref()? {
        Error::InvalidCertificate(CertificateError::NotValidForNameContext {
            presented, ..
        }) => presented.is_empty().then_some(Fault::NoNames),
        Error::InvalidCertificate(CertificateError::Other(OtherError(other))) => {
            match other.downcast_ref()? {
                webpki::Error::CaUsedAsEndEntity => Some(Fault::Authority),
                webpki::Error::UnsupportedCertVersion => Some(Fault::Version1),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Why clients will refuse it, apart from who issued it. Unreadable certificates are reported
/// elsewhere.
fn refused_by_clients(leaf: &CertificateDer<'_>) -> Option<Fault> {
    let certificate = match EndEntityCert::try_from(leaf) {
        Ok(certificate) => certificate,
        Err(webpki::Error::UnsupportedCertVersion) => return Some(Fault::Version1),
        Err(_) => return None,
    };
    // A name that no certificate has (RFC 2606): the answer lists those that it has.
    let nobody = ServerName::try_from("nobody.invalid").ok()?;
    match certificate.verify_is_valid_for_subject_name(&nobody) {
        Err(webpki::Error::CertNotValidForName(context)) => {
            context.presented.is_empty().then_some(Fault::NoNames)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
    use std::sync::Arc;

    fn certificate(names: &[&str]) -> CertificateDer<'static> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let made = CertificateParams::new(names).unwrap();
        made.self_signed(&key).unwrap().der().clone()
    }

    #[test]
    fn a_certificate_for_clients_needs_a_name_of_any_kind() {
        assert_eq!(refused_by_clients(&certificate(&["a.example"])), None);
        assert_eq!(refused_by_clients(&certificate(&["192.0.2.1"])), None);
        let nameless = certificate(&[]);
        assert_eq!(refused_by_clients(&nameless), Some(Fault::NoNames));
        // Whoever reads a malformed certificate reports it.
        assert_eq!(refused_by_clients(&CertificateDer::from(vec![1, 2])), None);
    }

    #[test]
    fn a_certificate_for_other_names_is_told_with_those_that_it_has() {
        let leaf = certificate(&["example.org", "*.example.org", "192.0.2.1"]);
        let check = |name: &str| check_name(&leaf, &name.parse().unwrap());
        for name in [
            "example.org",
            "www.example.org",
            "*.example.org",
            "192.0.2.1",
        ] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        for name in [
            "example.com",
            "*.example.com",
            "a.b.example.org",
            "192.0.2.2",
        ] {
            let error = check(name).unwrap_err();
            let theirs = "is for example.org, *.example.org, ";
            assert!(
                error.starts_with(theirs) && error.ends_with(name),
                "{error}"
            );
        }
    }

    #[test]
    fn an_authoritys_own_certificate_is_fit_for_clients_that_trust_it() {
        let mut made = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        made.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let leaf = made.self_signed(&KeyPair::generate().unwrap()).unwrap();
        assert_eq!(refused_by_clients(leaf.der()), None);
    }

    #[test]
    fn the_reason_of_a_refusal_comes_with_a_remedy() {
        let other = |error| CertificateError::Other(OtherError(Arc::new(error)));
        let nameless = CertificateError::NotValidForNameContext {
            expected: ServerName::try_from("db.example").unwrap(),
            presented: Vec::new(),
        };
        let cases = [
            (nameless, "has no subjectAltName"),
            (
                other(webpki::Error::CaUsedAsEndEntity),
                "is an authority's (CA:TRUE)",
            ),
            (
                other(webpki::Error::UnsupportedCertVersion),
                "is of X.509 version 1",
            ),
        ];
        for (error, expected) in cases {
            let told = io::Error::other(Error::InvalidCertificate(error));
            let text = explained(told, "db.example").to_string();
            assert!(text.contains(expected), "{text}");
            assert!(text.contains("subjectAltName=DNS:db.example"), "{text}");
        }
        let told = io::Error::other(Error::InvalidCertificate(CertificateError::Expired));
        let text = explained(told, "192.0.2.1").to_string();
        assert!(!text.contains("subjectAltName"), "{text}");
        assert!(remedy("192.0.2.1").contains("subjectAltName=IP:192.0.2.1"));
    }
}
