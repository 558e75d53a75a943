//! What is known of one certificate that is served. No I/O and no clock.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;
use shortline_tls::Certificate;

use super::{Attended, NEAR_END_EVERY_S, OcspStatus};
use crate::leaf;
use crate::ocsp::{Question, Staple};
use crate::schedule::{Backoff, Validity};

/// Nobody is asked more often.
const ASK_S_MIN: u64 = 10;

/// One certificate.
#[derive(Debug)]
pub struct Entry {
    /// It is still served.
    pub is_served: bool,
    validity: Option<Validity>,
    asked: Option<Arc<Question>>,
    staple: Option<Staple>,
    /// No attempt before this time.
    next_s: u64,
    backoff: Backoff,
    failure: Option<String>,
    told_s: u64,
}

impl Entry {
    /// A certificate with its chain.
    pub fn of(chain: &[CertificateDer<'_>]) -> Self {
        let leaf = chain.first().and_then(|leaf| leaf::read(leaf).ok());
        Self {
            is_served: false,
            validity: leaf.map(|leaf| leaf.validity),
            asked: Question::of(chain).map(Arc::new),
            staple: None,
            next_s: 0,
            backoff: Backoff::default(),
            failure: None,
            told_s: 0,
        }
    }

    /// Who is to be asked now.
    pub fn due(&self, now_s: u64) -> Option<&Arc<Question>> {
        let is_valid = self.left_s(now_s).is_some_and(|left_s| left_s > 0);
        let is_due = now_s >= self.next_s && is_valid;
        self.asked.as_ref().filter(|_| is_due)
    }

    /// The responder has answered. `draw` is random, from 0 to 1.
    pub fn got(&mut self, staple: Staple, now_s: u64, draw: f64) {
        let Validity { from_s, until_s } = staple.validity;
        let life_s = until_s.saturating_sub(from_s);
        let later_s = (life_s as f64 * draw / 10.0) as u64;
        let next_s = from_s.saturating_add(life_s / 2).saturating_add(later_s);
        self.next_s = next_s.max(now_s + ASK_S_MIN);
        self.staple = Some(staple);
        self.backoff = Backoff::default();
        self.failure = None;
    }

    /// There was no answer. Returns how long to wait for the next attempt.
    pub fn failed(&mut self, problem: String, now_s: u64, draw: f64) -> u64 {
        self.backoff.failed(now_s, None, draw);
        self.failure = Some(problem);
        self.next_s = self.backoff.until_s;
        self.next_s.saturating_sub(now_s)
    }

    /// How long its answer is stapled.
    pub fn stapled_for_s(&self, now_s: u64) -> Option<u64> {
        let staple = self.staple.as_ref()?;
        Some(staple.validity.until_s.saturating_sub(now_s))
    }

    /// An answer past its end is worse than none.
    pub fn forget_what_is_old(&mut self, now_s: u64) {
        let is_old = |staple: &mut Staple| staple.validity.until_s <= now_s;
        self.staple.take_if(is_old);
    }

    /// Staples what there is to the certificate, if it is served with `key`.
    pub fn dress(&self, certificate: &Certificate, key: &Arc<CertifiedKey>) {
        let response = self.staple.as_ref().map(|staple| &staple.response);
        if key.ocsp.as_ref() != response {
            certificate.staple(key, response.cloned());
        }
    }

    /// How long it is valid, below 0 if it no longer is.
    pub fn left_s(&self, now_s: u64) -> Option<i64> {
        self.validity.map(|validity| validity.left_s(now_s))
    }

    /// Whether it is to be told now that it ends soon.
    pub fn is_to_be_told(&mut self, now_s: u64) -> bool {
        let is_near = self
            .validity
            .is_some_and(|validity| validity.is_near_end(now_s));
        let is_told = is_near && now_s >= self.told_s + NEAR_END_EVERY_S;
        if is_told {
            self.told_s = now_s;
        }
        is_told
    }

    /// What is shown of it.
    pub fn status(&self, now_s: u64) -> Attended {
        let ocsp = self.asked.as_ref().map(|asked| OcspStatus {
            responder: asked.url.clone(),
            stapled_for_seconds: self
                .stapled_for_s(now_s)
                .and_then(|left_s| i64::try_from(left_s).ok()),
            failures: self.backoff.failures,
            failure: self.failure.clone(),
        });
        Attended {
            expires_in_seconds: self.left_s(now_s),
            is_near_end: self
                .validity
                .is_some_and(|validity| validity.is_near_end(now_s)),
            ocsp,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ocsp::tests::chain;

    const NOW_S: u64 = 1_800_000_000;
    const HOUR_S: u64 = 3600;

    fn staple(from_s: u64, until_s: u64) -> Staple {
        Staple {
            response: vec![1],
            validity: Validity { from_s, until_s },
        }
    }

    #[test]
    fn an_answer_is_renewed_after_half_of_its_time_and_gone_after_all_of_it() {
        let mut entry = Entry::of(&chain());
        assert!(entry.due(NOW_S).is_some(), "there is none yet");
        let until_s = NOW_S + 9 * HOUR_S;
        entry.got(staple(NOW_S - HOUR_S, until_s), NOW_S, 0.0);
        assert!(entry.due(NOW_S + 4 * HOUR_S - 1).is_none());
        assert!(entry.due(NOW_S + 4 * HOUR_S).is_some());
        entry.got(staple(NOW_S - HOUR_S, until_s), NOW_S, 1.0);
        assert!(entry.due(NOW_S + 5 * HOUR_S - 1).is_none());
        assert!(entry.due(NOW_S + 5 * HOUR_S).is_some());
        // A responder that fails costs nothing while the answer holds.
        let wait_s = entry.failed("down".to_owned(), NOW_S + 5 * HOUR_S, 0.0);
        assert_eq!(wait_s, 60);
        let later_s = NOW_S + 5 * HOUR_S;
        assert!(entry.due(later_s + 59).is_none() && entry.due(later_s + 60).is_some());
        entry.forget_what_is_old(until_s - 1);
        assert_eq!(entry.stapled_for_s(until_s - 1), Some(1));
        entry.forget_what_is_old(until_s);
        assert_eq!(entry.stapled_for_s(until_s), None);
        let told = entry.status(until_s).ocsp.unwrap();
        assert_eq!((told.failures, told.failure.as_deref()), (1, Some("down")));
    }

    #[test]
    fn nobody_is_asked_again_and_again_whatever_the_answers_say() {
        let mut entry = Entry::of(&chain());
        // Nearly over, or from long ago.
        for (from_s, until_s) in [(NOW_S - 1, NOW_S + 1), (0, NOW_S + 1), (NOW_S, u64::MAX)] {
            entry.got(staple(from_s, until_s), NOW_S, 0.0);
            assert!(entry.due(NOW_S + ASK_S_MIN - 1).is_none());
        }
        let mut at_s = NOW_S;
        for failures in 0..20 {
            let wait_s = entry.failed(String::new(), at_s, 0.0);
            assert!((60..=6 * HOUR_S).contains(&wait_s), "{failures}");
            at_s += wait_s;
        }
        let without = Entry::of(&chain()[..1]);
        assert!(without.due(NOW_S).is_none(), "its issuer is not there");
    }

    #[test]
    fn a_responders_answer_is_served_with_its_certificate_only() {
        let made = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
        let key = made.signing_key.serialize_der().try_into().unwrap();
        let provider = rustls::crypto::ring::default_provider();
        let key = CertifiedKey::from_der(vec![made.cert.der().clone()], key, &provider).unwrap();
        let certificate = Certificate::new(key.clone());
        let mut entry = Entry::of(&chain());
        entry.got(staple(NOW_S, NOW_S + 9), NOW_S, 0.0);
        let before = certificate.current().unwrap();
        certificate.replace(key);
        entry.dress(&certificate, &before);
        assert_eq!(
            certificate.current().unwrap().ocsp,
            None,
            "it was exchanged meanwhile"
        );
        entry.dress(&certificate, &certificate.current().unwrap());
        assert_eq!(certificate.current().unwrap().ocsp, Some(vec![1]));
        entry.forget_what_is_old(NOW_S + 9);
        entry.dress(&certificate, &certificate.current().unwrap());
        assert_eq!(certificate.current().unwrap().ocsp, None);
    }
}
