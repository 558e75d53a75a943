//! Looks after certificates that are served, wherever they come from: asks their responders (OCSP) and staples the answers, and
//! tells ahead of those from files that end soon. In a thread of its own; nobody waits for it, and whatever fails in it, the
//! certificates are served.
//!
//! | an answer | |
//! |---|---|
//! | is there | is stapled until its end, and another is asked for after half of its time, and up to a tenth of it later |
//! | is not | is asked for again after a minute, then 4, 16 and 64, then every 6 hours |
//!
//! Answers are kept by the certificate that they are about, in memory and in a folder. So one that a reload or another process reads
//! again has its answer at once.

mod entry;
mod kept;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use rustls::sign::CertifiedKey;
use serde::Serialize;
use shortline_tls::Certificate;
use tokio::sync::Notify;

use crate::authority::now_s;
use crate::client;
use crate::keeper::{CertificateStatus, draw, span};
use crate::ocsp::Question;
use entry::Entry;
use kept::KeptAnswers;

/// How often what is served is looked at. A certificate that was exchanged waits so long for its answer.
const LOOK_EVERY_S: u64 = 10;
/// The most responders that are asked at a time.
const ASKED_MAX: usize = 4;
/// How often a certificate that ends soon is told of.
const NEAR_END_EVERY_S: u64 = 24 * 3600;

/// A certificate that is served.
#[derive(Clone, Debug)]
pub struct Served {
    /// The first name that it is for, or the address.
    pub name: String,
    /// The file that it is from, if it is from one.
    pub file: Option<PathBuf>,
    /// What is served.
    pub certificate: Arc<Certificate>,
}

/// What is known of the end of a certificate, and of its responder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attended {
    /// How long it is valid, below 0 if it no longer is.
    pub expires_in_seconds: Option<i64>,
    /// Whether that is soon.
    pub is_near_end: bool,
    /// What its responder says, if it names one.
    pub ocsp: Option<OcspStatus>,
}

/// What `/status` shows of a responder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OcspStatus {
    /// Where it is.
    pub responder: String,
    /// How long its answer is stapled. `None`: there is none.
    pub stapled_for_seconds: Option<i64>,
    /// Attempts in a row that failed.
    pub failures: u32,
    /// The last of these.
    pub failure: Option<String>,
}

/// Says what is served now.
type Lists = Box<dyn Fn() -> Vec<Served> + Send + Sync>;

/// Looks after certificates.
#[derive(Clone, Default)]
pub struct Attendant(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// By the certificate's SHA-256.
    known: Mutex<HashMap<[u8; 32], Entry>>,
    /// Where answers outlast this process.
    kept: Mutex<Option<KeptAnswers>>,
    /// Something else is served.
    changed: Notify,
    has_started: AtomicBool,
}

impl Attendant {
    /// Looks after what `lists` names, from now on until this is dropped. Only the first call has an effect.
    ///
    /// # Errors
    /// There is no thread or no runtime for it.
    pub fn start(&self, lists: Lists) -> io::Result<()> {
        if self.0.has_started.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let shared = Arc::downgrade(&self.0);
        let thread = std::thread::Builder::new().name("attendant".to_owned());
        thread
            .spawn(move || runtime.block_on(run(&shared, &lists)))
            .map(drop)
    }

    /// Something else is served.
    pub fn look(&self) {
        self.0.changed.notify_one();
    }

    /// Keeps answers below this folder from now on, if it or the one above it is there.
    pub fn keep_below(&self, state: &Path) {
        *self.0.kept.lock() = KeptAnswers::below(state);
    }

    /// Staples what is known already.
    pub fn dress(&self, certificate: &Certificate) {
        if let Some(key) = certificate.current() {
            let mut known = self.0.known.lock();
            let entry = self.0.entry(&mut known, &key, now_s());
            entry.dress(certificate, &key);
        }
    }

    /// What is known of a certificate.
    pub fn status(&self, certificate: &Certificate) -> Attended {
        let Some(key) = certificate.current() else {
            return Attended::default();
        };
        let known = self.0.known.lock();
        let entry = known.get(&print(&key));
        entry.map_or_else(Attended::default, |entry| entry.status(now_s()))
    }
}

impl Served {
    /// What is shown of a certificate from a file.
    pub fn status(&self, attendant: &Attendant) -> CertificateStatus {
        let attended = attendant.status(&self.certificate);
        CertificateStatus {
            name: self.name.clone(),
            file: self.file.clone(),
            is_there: self.certificate.is_there(),
            expires_in_seconds: attended.expires_in_seconds,
            renewal_in_seconds: None,
            is_late: attended.is_near_end,
            failures: 0,
            failure: None,
            ocsp: attended.ocsp,
        }
    }
}

impl fmt::Debug for Attendant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attendant").finish_non_exhaustive()
    }
}

/// Runs as long as anybody has the attendant.
async fn run(shared: &Weak<Shared>, lists: &Lists) {
    loop {
        let Some(attendant) = shared.upgrade() else {
            return;
        };
        let served = lists();
        let due = attendant.look(&served, now_s());
        let asking = stream::iter(due).for_each_concurrent(ASKED_MAX, |due| attendant.ask(due));
        asking.await;
        attendant.look(&served, now_s());
        drop(served);
        let wait = Duration::from_secs(LOOK_EVERY_S);
        tokio::select! {
            () = attendant.changed.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Whose answer is to be asked for.
struct Due {
    print: [u8; 32],
    /// How messages call it.
    label: String,
    asked: Arc<Question>,
}

impl Shared {
    /// Looks at what is served: what is new, what has ended, what has an answer now. Returns who is to be asked.
    fn look(&self, served: &[Served], now_s: u64) -> Vec<Due> {
        let mut known = self.known.lock();
        let mut due = Vec::new();
        known.values_mut().for_each(|entry| entry.is_served = false);
        for one in served {
            let Some(key) = one.certificate.current() else {
                continue;
            };
            let entry = self.entry(&mut known, &key, now_s);
            let is_first = !std::mem::replace(&mut entry.is_served, true);
            entry.forget_what_is_old(now_s);
            entry.dress(&one.certificate, &key);
            if let Some(asked) = entry.due(now_s).filter(|_| is_first) {
                due.push(Due {
                    print: print(&key),
                    label: label(one),
                    asked: Arc::clone(asked),
                });
            }
            if one.file.is_some() && entry.is_to_be_told(now_s) {
                tell_near_end(one, entry.left_s(now_s).unwrap_or(0));
            }
        }
        known.retain(|_, entry| entry.is_served);
        due
    }

    /// What is known of a certificate. What was kept of one that is new is, too, if it is as good as an answer of now.
    fn entry<'a>(
        &self,
        known: &'a mut HashMap<[u8; 32], Entry>,
        key: &CertifiedKey,
        now_s: u64,
    ) -> &'a mut Entry {
        let print = print(key);
        known.entry(print).or_insert_with(|| {
            let mut entry = Entry::of(&key.cert);
            let kept = self.kept.lock().clone();
            let kept = kept.and_then(|kept| kept.read(&print));
            let asked = entry.due(now_s).cloned();
            let staple = asked
                .zip(kept)
                .and_then(|(asked, answer)| asked.read(&answer, now_s).ok());
            if let Some(staple) = staple {
                entry.got(staple, now_s, draw());
            }
            entry
        })
    }

    /// Asks a responder.
    async fn ask(&self, due: Due) {
        let answer = client::post(
            &due.asked.url,
            "application/ocsp-request",
            due.asked.request(),
        );
        let answer = answer.await.map_err(|error| error.to_string());
        let now_s = now_s();
        let read = answer.and_then(|answer| {
            let told = |problem| format!("the answer is not used: {problem}");
            due.asked.read(&answer, now_s).map_err(told)
        });
        let mut known = self.known.lock();
        let Some(entry) = known.get_mut(&due.print) else {
            return;
        };
        match read {
            Ok(staple) => {
                if let Some(kept) = &*self.kept.lock() {
                    kept.write(&due.print, &staple.response);
                }
                entry.got(staple, now_s, draw());
            }
            Err(problem) => {
                let wait_s = entry.failed(problem.clone(), now_s, draw());
                let served = match entry.stapled_for_s(now_s) {
                    Some(left_s) => {
                        format!("the last answer is stapled for another {}", span(left_s))
                    }
                    None => "nothing is stapled".to_owned(),
                };
                tracing::warn!(
                    "certificate {}: responder {}: {problem}; {served}; asked again in {}",
                    due.label,
                    due.asked.url,
                    span(wait_s)
                );
            }
        }
    }
}

/// A certificate that is not renewed by itself ends soon.
fn tell_near_end(served: &Served, left_s: i64) {
    let label = label(served);
    match u64::try_from(left_s) {
        Ok(left_s) => tracing::error!(
            "certificate {label}: ends in {}: put a new one in its place and send SIGHUP",
            span(left_s)
        ),
        Err(_) => tracing::error!(
            "certificate {label}: is no longer valid: put a new one in its place and send SIGHUP"
        ),
    }
}

fn label(served: &Served) -> String {
    match &served.file {
        Some(file) => format!("{} of {}", file.display(), served.name),
        None => format!("for {}", served.name),
    }
}

/// What a certificate is known by.
fn print(key: &CertifiedKey) -> [u8; 32] {
    let mut print = [0; 32];
    let leaf = key.cert.first().map_or(&[][..], AsRef::as_ref);
    print.copy_from_slice(digest(&SHA256, leaf).as_ref());
    print
}
