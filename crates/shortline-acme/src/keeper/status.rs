//! What is told of certificates.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::Serialize;

use super::{Entry, Keeper};
use crate::attendant::{Attendant, OcspStatus, Served};
use crate::authority::now_s;

/// A certificate as `/status` shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CertificateStatus {
    /// What it is for.
    pub name: String,
    /// The file that it is from. `None`: it is got by itself.
    pub file: Option<PathBuf>,
    /// Whether there is one.
    pub is_there: bool,
    /// How long it is valid, below 0 if it no longer is.
    pub expires_in_seconds: Option<i64>,
    /// When it is to be renewed.
    pub renewal_in_seconds: Option<i64>,
    /// It ends soon, and should have been renewed before.
    pub is_late: bool,
    /// Attempts in a row that failed.
    pub failures: u32,
    /// The last of these.
    pub failure: Option<String>,
    /// What its responder says, if it names one.
    pub ocsp: Option<OcspStatus>,
}

/// Orders since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// That brought a certificate.
    pub got_total: u64,
    /// That did not.
    pub failed_total: u64,
}

impl Keeper {
    /// All certificates now. Of their responders `attendant` knows.
    pub fn status(&self, attendant: &Attendant) -> Vec<CertificateStatus> {
        let now_s = now_s();
        let names = self.shared.names.lock();
        let status = |(name, entry): (&String, &Entry)| CertificateStatus {
            ocsp: attendant.status(&entry.certificate).ocsp,
            ..entry.status(name, now_s)
        };
        names.iter().map(status).collect()
    }

    /// What is served of them.
    pub fn all_served(&self) -> Vec<Served> {
        let names = self.shared.names.lock();
        let served = |(name, entry): (&String, &Entry)| Served {
            name: name.clone(),
            file: None,
            certificate: Arc::clone(&entry.certificate),
        };
        names.iter().map(served).collect()
    }

    /// What became of the orders.
    pub fn counts(&self) -> Counts {
        Counts {
            got_total: self.shared.got.load(Ordering::Relaxed),
            failed_total: self.shared.failed.load(Ordering::Relaxed),
        }
    }
}

impl Entry {
    fn status(&self, name: &str, now_s: u64) -> CertificateStatus {
        let from_now = |at_s: u64| {
            i64::try_from(at_s)
                .unwrap_or(i64::MAX)
                .saturating_sub_unsigned(now_s)
        };
        CertificateStatus {
            name: name.to_owned(),
            file: None,
            is_there: self.certificate.is_there(),
            expires_in_seconds: self.plan.left_s(now_s),
            renewal_in_seconds: self.plan.renewal_s().map(from_now),
            is_late: self.plan.is_late(now_s),
            failures: self.plan.backoff().failures,
            failure: self.failure.clone(),
            ocsp: None,
        }
    }
}
