//! What a responder says of a certificate (OCSP), or somebody in its name: it speaks plain HTTP.

use shortline_acme::ocsp::Question;

/// A certificate that names a responder, and its issuer's. Their keys are nowhere, so nobody can sign for it.
const LEAF: &[u8] = include_bytes!("ocsp/leaf.der");
const ISSUER: &[u8] = include_bytes!("ocsp/issuer.der");
/// The answer in the corpus holds then.
const NOW_S: u64 = 1795701600;

/// An answer. What is stapled was signed, so it is the one of the corpus.
pub fn answer(bytes: &[u8]) {
    let asked = Question::of(&[LEAF.into(), ISSUER.into()]);
    let asked = asked.expect("invariant: the certificate names a responder");
    match asked.read(bytes, NOW_S) {
        Ok(staple) => {
            assert_eq!(staple.response, bytes);
            assert!(staple.validity.from_s <= NOW_S && NOW_S < staple.validity.until_s);
            assert_eq!(staple.validity.until_s - staple.validity.from_s, 3600);
        }
        Err(problem) => crate::assert_one_line(&problem),
    }
}
