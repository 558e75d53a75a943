//! Answers as responders make them, and as those make them who lie.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, SerialNumber, SigningKey, date_time_ymd,
};

use super::*;

const URL: &str = "http://ocsp.example/a";
/// In 2027.
const NOW_S: u64 = 1_800_000_000;
const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
}

impl Authority {
    fn new() -> Self {
        let mut params = params("Authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        Self {
            issuer: Issuer::new(params, key),
            certificate,
        }
    }

    fn leaf(&self, serial: u64, url: &str) -> CertificateDer<'static> {
        let mut params = params("a.example");
        params.serial_number = Some(SerialNumber::from(serial));
        let oid = tlv(6, &[&[0x2b, 6, 1, 5, 5, 7, 0x30, 1]]);
        let access = tlv(SEQUENCE, &[&oid, &tlv(0x86, &[url.as_bytes()])]);
        let access = tlv(SEQUENCE, &[&access]);
        let known = [1, 3, 6, 1, 5, 5, 7, 1, 1];
        params.custom_extensions = vec![CustomExtension::from_oid_content(&known, access)];
        let key = KeyPair::generate().unwrap();
        params.signed_by(&key, &self.issuer).unwrap().der().clone()
    }

    /// Somebody else with a certificate of this authority, for signing answers or not.
    fn signer(&self, may_sign: bool, until: i32) -> Signer {
        let mut params = params("Signer");
        params.not_after = date_time_ymd(until, 1, 1);
        params.extended_key_usages = match may_sign {
            true => vec![ExtendedKeyUsagePurpose::OcspSigning],
            false => vec![ExtendedKeyUsagePurpose::ServerAuth],
        };
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Signer {
            certificate: certificate.der().clone(),
            key,
        }
    }

    fn asked(&self) -> Question {
        Question::of(&self.chain()).unwrap()
    }

    fn chain(&self) -> [CertificateDer<'static>; 2] {
        [self.leaf(7, URL), self.certificate.clone()]
    }

    fn answer(&self, asked: &Question, said: &Said) -> Vec<u8> {
        answer(asked, said, self.issuer.key(), None)
    }
}

/// A certificate that names a responder, and its issuer's.
pub fn chain() -> [CertificateDer<'static>; 2] {
    Authority::new().chain()
}

struct Signer {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// What an answer says.
struct Said {
    status: Vec<u8>,
    from: &'static str,
    until: Option<&'static str>,
    serial: Vec<u8>,
}

const JANUARY: &str = "20270101000000Z";
const FEBRUARY: &str = "20270201000000Z";

impl Said {
    /// The certificate is good in January of 2027.
    fn good() -> Self {
        Self {
            status: tlv(0x80, &[]),
            from: JANUARY,
            until: Some(FEBRUARY),
            serial: vec![7],
        }
    }
}

fn time(text: &str) -> Vec<u8> {
    tlv(0x18, &[text.as_bytes()])
}

fn answer(asked: &Question, said: &Said, key: &KeyPair, signer: Option<&[u8]>) -> Vec<u8> {
    let algorithm = tlv(SEQUENCE, &[&tlv(6, &[SHA1]), &tlv(5, &[])]);
    let id = tlv(
        SEQUENCE,
        &[
            &algorithm,
            &tlv(OCTETS, &[&asked.name_hash]),
            &tlv(OCTETS, &[&asked.key_hash]),
            &tlv(2, &[&said.serial]),
        ],
    );
    let until = said.until.map(|until| tlv(0xa0, &[&time(until)]));
    let until = until.unwrap_or_default();
    let one = tlv(SEQUENCE, &[&id, &said.status, &time(said.from), &until]);
    let responder = tlv(0xa2, &[&tlv(OCTETS, &[&asked.key_hash])]);
    let all = tlv(SEQUENCE, &[&one]);
    let data = tlv(SEQUENCE, &[&responder, &time(JANUARY), &all]);
    let signature = key.sign(&data).unwrap();
    let certificates = signer.map(|signer| tlv(0xa0, &[&tlv(SEQUENCE, &[signer])]));
    let basic = tlv(
        SEQUENCE,
        &[
            &data,
            &tlv(SEQUENCE, &[&tlv(6, &[ECDSA_SHA256])]),
            &tlv(3, &[&[0], &signature]),
            &certificates.unwrap_or_default(),
        ],
    );
    let bytes = tlv(SEQUENCE, &[&tlv(6, &[BASIC]), &tlv(OCTETS, &[&basic])]);
    tlv(SEQUENCE, &[&tlv(10, &[&[0]]), &tlv(0xa0, &[&bytes])])
}

/// A second in the middle of January 2027.
const MIDDLE_S: u64 = 1_800_000_000;

#[test]
fn who_is_asked_is_in_the_certificate_and_the_chain() {
    let authority = Authority::new();
    let leaf = authority.leaf(7, URL);
    let asked = Question::of(&[leaf.clone(), authority.certificate.clone()]).unwrap();
    assert_eq!(asked.url, URL);
    assert_eq!((asked.name_hash.len(), asked.key_hash.len()), (20, 20));
    assert!(Question::of(&[]).is_none());
    assert!(
        Question::of(std::slice::from_ref(&leaf)).is_none(),
        "nobody is known to be its issuer"
    );
    let other = authority.leaf(8, URL);
    assert!(
        Question::of(&[leaf, other]).is_none(),
        "another name is no issuer's"
    );
    for url in ["https://ocsp.example/", "ldap://ocsp.example/", ""] {
        let chain = [authority.leaf(7, url), authority.certificate.clone()];
        assert!(Question::of(&chain).is_none(), "{url}");
    }
    let without = authority.signer(true, 2030).certificate;
    assert!(Question::of(&[without, authority.certificate.clone()]).is_none());
}

#[test]
fn the_request_names_the_certificate() {
    let asked = Authority::new().asked();
    let request = asked.request();
    let mut whole = Elements(&request);
    let tbs = Elements(whole.sequence().unwrap().data).sequence().unwrap();
    let list = Elements(tbs.data).sequence().unwrap();
    let one = Elements(list.data).sequence().unwrap();
    let id = Elements(one.data).sequence().unwrap();
    assert!(asked.is_about(id.data).unwrap());
    assert!(whole.0.is_empty());
}

#[test]
fn a_good_answer_is_stapled_until_its_end() {
    let authority = Authority::new();
    let asked = authority.asked();
    let response = authority.answer(&asked, &Said::good());
    let staple = asked.read(&response, MIDDLE_S).unwrap();
    assert_eq!(staple.response, response);
    let days = (staple.validity.until_s - staple.validity.from_s) / 86_400;
    assert_eq!((staple.validity.from_s, days), (1_798_761_600, 31));
    let endless = Said {
        until: None,
        ..Said::good()
    };
    let endless = authority.answer(&asked, &endless);
    let staple = asked.read(&endless, 1_798_761_700).unwrap();
    assert_eq!(staple.validity.until_s, 1_798_761_600 + ENDLESS_S);
}

#[test]
fn what_is_not_good_now_is_not_stapled() {
    let authority = Authority::new();
    let asked = authority.asked();
    let with = |said: Said| {
        asked
            .read(&authority.answer(&asked, &said), MIDDLE_S)
            .unwrap_err()
    };
    let revoked = tlv(0xa1, &[&time(JANUARY)]);
    for (status, told) in [
        (revoked, "the certificate is revoked"),
        (
            tlv(0x82, &[]),
            "the responder does not know the certificate",
        ),
    ] {
        assert_eq!(
            with(Said {
                status,
                ..Said::good()
            }),
            told
        );
    }
    let serial = vec![8];
    assert_eq!(
        with(Said {
            serial,
            ..Said::good()
        }),
        "it is about another certificate"
    );
    let old = Said {
        until: Some(JANUARY),
        ..Said::good()
    };
    assert_eq!(with(old), "it is old");
    let endless = Said {
        until: None,
        ..Said::good()
    };
    assert_eq!(with(endless), "it is old");
    let early = Said {
        from: FEBRUARY,
        ..Said::good()
    };
    assert!(with(early).starts_with("it is of the future"));
    let never = Said {
        from: "20271301000000Z",
        ..Said::good()
    };
    assert!(!with(never).is_empty());
}

#[test]
fn only_the_issuer_signs_and_who_may_for_it() {
    let authority = Authority::new();
    let asked = authority.asked();
    let read = |signer: &Signer, with: bool| {
        let certificate = with.then_some(&*signer.certificate);
        asked.read(
            &answer(&asked, &Said::good(), &signer.key, certificate),
            MIDDLE_S,
        )
    };
    assert!(read(&authority.signer(true, 2030), true).is_ok());
    let told = "it is not signed by the issuer, nor by who may for it";
    // It is not there; it may not; it has ended; it is another authority's of the same name.
    assert_eq!(
        read(&authority.signer(true, 2030), false).unwrap_err(),
        told
    );
    assert_eq!(
        read(&authority.signer(false, 2030), true).unwrap_err(),
        told
    );
    assert_eq!(read(&authority.signer(true, 2026), true).unwrap_err(), told);
    assert_eq!(
        read(&Authority::new().signer(true, 2030), true).unwrap_err(),
        told
    );
    let other = Authority::new();
    let response = answer(
        &asked,
        &Said::good(),
        other.issuer.key(),
        Some(&other.certificate),
    );
    assert_eq!(asked.read(&response, MIDDLE_S).unwrap_err(), told);
}

#[test]
fn a_responder_that_refuses_is_told_of() {
    let asked = Authority::new().asked();
    for (status, told) in [
        (1, "malformed"),
        (2, "out of order"),
        (3, "out of order"),
        (5, "does not answer to just anybody"),
        (6, "does not answer to just anybody"),
        (4, "does not say successful"),
    ] {
        let response = tlv(SEQUENCE, &[&tlv(10, &[&[status]])]);
        let problem = asked.read(&response, NOW_S).unwrap_err();
        assert!(problem.contains(told), "{problem}");
    }
    let silent = tlv(SEQUENCE, &[&tlv(10, &[&[0]])]);
    assert_eq!(
        asked.read(&silent, NOW_S).unwrap_err(),
        "the responder says nothing"
    );
    assert!(asked.read(b"<html>", NOW_S).is_err());
}

proptest! {
    #[test]
    fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let asked = Authority::new().asked();
        prop_assert!(asked.read(&bytes, NOW_S).is_err());
    }

    #[test]
    fn an_answer_that_was_changed_says_nothing_else(place in any::<prop::sample::Index>(), bit in 0..8) {
        let authority = Authority::new();
        let asked = authority.asked();
        let response = authority.answer(&asked, &Said::good());
        let whole = asked.read(&response, MIDDLE_S).unwrap();
        let mut changed = response.clone();
        changed[place.index(response.len())] ^= 1_u8 << bit;
        if let Ok(read) = asked.read(&changed, MIDDLE_S) {
            // Not all bytes around what is signed mean something.
            prop_assert_eq!(read.validity, whole.validity);
        }
        prop_assert!(asked.read(&response[..place.index(response.len())], MIDDLE_S).is_err());
    }
}
