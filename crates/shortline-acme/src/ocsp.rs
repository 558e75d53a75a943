//! Whether a certificate is revoked, as its authority's responder says (OCSP, RFC 6960): what it is asked, and whether its answer can
//! be stapled to handshakes. No I/O and no clock.
//!
//! | an answer is taken only if | |
//! |---|---|
//! | it is whole | DER of a `BasicOCSPResponse` with the status `successful` |
//! | it is about this certificate | serial number, and the hashes of its issuer's name and key |
//! | it says `good` | clients would turn away from a server that staples anything else |
//! | it is of now | `thisUpdate` is not in the future by more than five minutes, and `nextUpdate` is |
//! | it is signed | by the issuer, or by a certificate in it that the issuer has made for this (RFC 6960, 4.2.2.2) |
//!
//! An answer without `nextUpdate` is used for a day. Names are hashed with SHA-1, which all responders know (RFC 5019, 2.1.1); no
//! signature with it is accepted.

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;
use x509_parser::asn1_rs::{Any, Class, FromDer, GeneralizedTime, Tag};
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::parse_x509_certificate;
use x509_parser::prelude::X509Certificate;

use crate::schedule::Validity;

/// Clocks may differ by that.
const SKEW_S: u64 = 300;
/// How long an answer without an end is used.
const ENDLESS_S: u64 = 24 * 3600;
/// The most certificates of an answer that are looked at.
const SIGNERS_MAX: usize = 4;

/// `id-ad-ocsp`.
const ACCESS_OCSP: &str = "1.3.6.1.5.5.7.48.1";
/// `id-pkix-ocsp-basic`.
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];
/// The identifier of SHA-1.
const SHA1: &[u8] = &[0x2b, 14, 3, 2, 26];

const SEQUENCE: u8 = 0x30;
const OCTETS: u8 = 4;

/// A certificate that a responder can be asked about.
#[derive(Debug)]
pub struct Question {
    /// Where the responder is, an http URL.
    pub url: String,
    issuer: CertificateDer<'static>,
    name_hash: Vec<u8>,
    key_hash: Vec<u8>,
    serial: Vec<u8>,
}

/// An answer that can be stapled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staple {
    /// As the responder has sent it.
    pub response: Vec<u8>,
    /// From when until when it holds.
    pub validity: Validity,
}

impl Question {
    /// Who is asked about the first certificate of a chain. `None`: it names no responder, or the chain does not have its issuer.
    pub fn of(chain: &[CertificateDer<'_>]) -> Option<Self> {
        let [leaf, issuer, ..] = chain else {
            return None;
        };
        let (_, parsed) = parse_x509_certificate(leaf).ok()?;
        let url = responder(&parsed)?;
        let (_, above) = parse_x509_certificate(issuer).ok()?;
        if parsed.issuer().as_raw() != above.subject().as_raw() {
            return None;
        }
        let hash = |bytes: &[u8]| digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref().to_vec();
        Some(Self {
            url,
            issuer: issuer.clone().into_owned(),
            name_hash: hash(above.subject().as_raw()),
            key_hash: hash(&above.public_key().subject_public_key.data),
            serial: parsed.raw_serial().to_vec(),
        })
    }

    /// The request (RFC 6960, 4.1.1).
    pub fn request(&self) -> Vec<u8> {
        let algorithm = tlv(SEQUENCE, &[&tlv(6, &[SHA1]), &tlv(5, &[])]);
        let parts = [
            algorithm,
            tlv(OCTETS, &[&self.name_hash]),
            tlv(OCTETS, &[&self.key_hash]),
            tlv(2, &[&self.serial]),
        ];
        let id = tlv(SEQUENCE, &parts.each_ref().map(Vec::as_slice));
        // A list of one request, in a request that is not signed.
        let one = tlv(SEQUENCE, &[&id]);
        let list = tlv(SEQUENCE, &[&one]);
        let tbs = tlv(SEQUENCE, &[&list]);
        tlv(SEQUENCE, &[&tbs])
    }

    /// What an answer is worth.
    ///
    /// # Errors
    /// Why it is not stapled.
    pub fn read(&self, response: &[u8], now_s: u64) -> Result<Staple, String> {
        let basic = basic_response(response)?;
        let mut basic = Elements(basic);
        let signed = Signed::read(&mut basic)?;
        let certificates = basic.tagged(0)?;
        let validity = self.status(signed.data.data, now_s)?;
        match self.is_signed(&signed, certificates, now_s) {
            true => Ok(Staple {
                response: response.to_vec(),
                validity,
            }),
            false => Err("it is not signed by the issuer, nor by who may for it".to_owned()),
        }
    }

    /// What `ResponseData` says of the certificate (RFC 6960, 4.2.1).
    fn status(&self, data: &[u8], now_s: u64) -> Result<Validity, String> {
        let mut data = Elements(data);
        data.tagged(0)?;
        if data.tagged(1)?.is_none() && data.tagged(2)?.is_none() {
            return Err("it names no responder".to_owned());
        }
        data.next(Tag::GeneralizedTime)?;
        let mut all = Elements(data.sequence()?.data);
        while !all.0.is_empty() {
            let mut one = Elements(all.sequence()?.data);
            if self.is_about(one.sequence()?.data)? {
                return validity(&mut one, now_s);
            }
        }
        Err("it is about another certificate".to_owned())
    }

    /// Whether a `CertID` is that of the request.
    fn is_about(&self, id: &[u8]) -> Result<bool, String> {
        let mut id = Elements(id);
        let mut algorithm = Elements(id.sequence()?.data);
        let is_sha1 = algorithm.next(Tag::Oid)?.data == SHA1;
        let (name, key) = (id.next(Tag::OctetString)?, id.next(Tag::OctetString)?);
        let serial = id.next(Tag::Integer)?;
        let same = name.data == self.name_hash && key.data == self.key_hash;
        Ok(is_sha1 && same && serial.data == self.serial)
    }

    fn is_signed(&self, signed: &Signed<'_>, others: Option<&[u8]>, now_s: u64) -> bool {
        if signed.is_by(&self.issuer) {
            return true;
        }
        let Some(Ok(all)) = others.map(|others| Elements(others).sequence()) else {
            return false;
        };
        let mut all = Elements(all.data);
        for _ in 0..SIGNERS_MAX {
            let Ok(one) = all.sequence() else {
                return false;
            };
            if self.may_sign(one.raw, now_s) && signed.is_by(&one.raw.into()) {
                return true;
            }
        }
        false
    }

    /// Whether the issuer has made a certificate for signing answers.
    fn may_sign(&self, certificate: &[u8], now_s: u64) -> bool {
        let Ok((_, parsed)) = parse_x509_certificate(certificate) else {
            return false;
        };
        let Ok((_, issuer)) = parse_x509_certificate(&self.issuer) else {
            return false;
        };
        let usage = parsed.extended_key_usage().ok().flatten();
        let is_for_this = usage.is_some_and(|usage| usage.value.ocsp_signing);
        let seconds = |at: i64| u64::try_from(at).unwrap_or(0);
        let validity = parsed.validity();
        let is_valid = (seconds(validity.not_before.timestamp())
            ..=seconds(validity.not_after.timestamp()))
            .contains(&now_s);
        let is_of_issuer = parsed.issuer().as_raw() == issuer.subject().as_raw();
        let signed = Elements(certificate)
            .sequence()
            .and_then(|parts| Signed::read(&mut Elements(parts.data)));
        let is_signed = signed.is_ok_and(|signed| signed.is_by(&self.issuer));
        is_of_issuer && is_for_this && is_valid && is_signed
    }
}

/// Something with a signature: `ResponseData`, or what is in a certificate.
struct Signed<'a> {
    data: Element<'a>,
    /// What is in the `AlgorithmIdentifier`.
    algorithm: &'a [u8],
    signature: &'a [u8],
}

impl<'a> Signed<'a> {
    fn read(elements: &mut Elements<'a>) -> Result<Self, String> {
        let data = elements.sequence()?;
        let algorithm = elements.sequence()?.data;
        // The first byte says how many bits of the last are none of it.
        match elements.next(Tag::BitString)?.data {
            [0, signature @ ..] => Ok(Self {
                data,
                algorithm,
                signature,
            }),
            _ => Err("its signature is not whole bytes".to_owned()),
        }
    }

    /// Whether the key of this certificate has signed it.
    fn is_by(&self, signer: &CertificateDer<'_>) -> bool {
        let Ok(signer) = EndEntityCert::try_from(signer) else {
            return false;
        };
        let known = rustls::crypto::ring::default_provider().signature_verification_algorithms;
        let mut fitting = known
            .all
            .iter()
            .filter(|known| known.signature_alg_id().as_ref() == self.algorithm);
        fitting.any(|known| {
            let verified = signer.verify_signature(*known, self.data.raw, self.signature);
            verified.is_ok()
        })
    }
}

/// The URL of a certificate's responder (RFC 5280, 4.2.2.1).
fn responder(certificate: &X509Certificate<'_>) -> Option<String> {
    let mut access = certificate
        .extensions()
        .iter()
        .filter_map(|extension| match extension.parsed_extension() {
            ParsedExtension::AuthorityInfoAccess(access) => Some(&access.accessdescs),
            _ => None,
        })
        .flatten();
    access.find_map(|access| match access.access_location {
        GeneralName::URI(url)
            if access.access_method.to_id_string() == ACCESS_OCSP && url.starts_with("http://") =>
        {
            Some(url.to_owned())
        }
        _ => None,
    })
}

/// The `BasicOCSPResponse` inside an answer.
fn basic_response(response: &[u8]) -> Result<&[u8], String> {
    let mut whole = Elements(response);
    let mut outer = Elements(whole.sequence()?.data);
    if !whole.0.is_empty() {
        return Err("something follows it".to_owned());
    }
    match outer.next(Tag::Enumerated)?.data {
        [0] => {}
        [1] => return Err("the responder calls the request malformed".to_owned()),
        [2 | 3] => return Err("the responder is out of order for now".to_owned()),
        [5 | 6] => return Err("the responder does not answer to just anybody".to_owned()),
        _ => return Err("the responder does not say successful".to_owned()),
    }
    let bytes = outer.tagged(0)?.ok_or("the responder says nothing")?;
    let mut bytes = Elements(Elements(bytes).sequence()?.data);
    if bytes.next(Tag::Oid)?.data != BASIC {
        return Err("it is of a kind that is not known".to_owned());
    }
    let basic = bytes.next(Tag::OctetString)?;
    Ok(Elements(basic.data).sequence()?.data)
}

/// What is behind the `CertID` of a `SingleResponse`.
fn validity(one: &mut Elements<'_>, now_s: u64) -> Result<Validity, String> {
    if one.tagged(0)?.is_none() {
        return Err(match one.tagged(1)? {
            Some(_) => "the certificate is revoked",
            None => "the responder does not know the certificate",
        }
        .to_owned());
    }
    let from_s = one.time()?;
    let until_s = match one.tagged(0)? {
        Some(next) => Elements(next).time()?,
        None => from_s.saturating_add(ENDLESS_S),
    };
    if from_s > now_s.saturating_add(SKEW_S) {
        return Err("it is of the future: is the clock right?".to_owned());
    }
    if until_s <= now_s {
        return Err("it is old".to_owned());
    }
    Ok(Validity { from_s, until_s })
}

/// Elements of DER, one behind the other.
struct Elements<'a>(&'a [u8]);

/// One of them.
struct Element<'a> {
    /// With its tag and length.
    raw: &'a [u8],
    data: &'a [u8],
}

impl<'a> Elements<'a> {
    /// The next, of whatever kind.
    fn any(&mut self) -> Result<(Any<'a>, &'a [u8]), String> {
        let read = Any::from_der(self.0);
        let (rest, any) = read.map_err(|_| "it is no answer of a responder's".to_owned())?;
        let raw = &self.0[..self.0.len() - rest.len()];
        self.0 = rest;
        Ok((any, raw))
    }

    fn next(&mut self, tag: Tag) -> Result<Element<'a>, String> {
        let (any, raw) = self.any()?;
        match any.class() == Class::Universal && any.tag() == tag {
            true => Ok(Element {
                raw,
                data: any.data,
            }),
            false => Err("it is no answer of a responder's".to_owned()),
        }
    }

    fn sequence(&mut self) -> Result<Element<'a>, String> {
        self.next(Tag::Sequence)
    }

    /// What is in the next, if it has this tag of the context.
    fn tagged(&mut self, number: u32) -> Result<Option<&'a [u8]>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let before = self.0;
        let (any, _) = self.any()?;
        if any.class() == Class::ContextSpecific && any.tag() == Tag(number) {
            return Ok(Some(any.data));
        }
        self.0 = before;
        Ok(None)
    }

    /// A time, in seconds since 1970.
    fn time(&mut self) -> Result<u64, String> {
        let element = self.next(Tag::GeneralizedTime)?;
        let read = GeneralizedTime::from_der(element.raw).ok();
        let date = read.and_then(|(_, time)| time.utc_datetime().ok());
        let date = date.ok_or("it has a time that is none")?;
        Ok(u64::try_from(date.unix_timestamp()).unwrap_or(0))
    }
}

/// An element of DER.
fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut element = vec![tag];
    match length {
        0..128 => element.push(length as u8),
        128..256 => element.extend([0x81, length as u8]),
        _ => element.extend([0x82, (length >> 8) as u8, length as u8]),
    }
    parts
        .iter()
        .for_each(|part| element.extend_from_slice(part));
    element
}

#[cfg(test)]
pub mod tests;
