//! Has a certificate for each of some names, for as long as it lives. It reads what the folder has, orders what is missing and
//! renews what is old, in a thread of its own: keys are made and files are written there, and nobody else waits for that.
//!
//! Several processes may use one folder. Whoever orders holds its lock. The others look every few seconds whether they may, and
//! whether what they want is there by then.
//!
//! A certificate that is served stays until another has taken its place, whatever fails. When the authority itself fails, all names
//! wait together.

mod on_demand;
mod status;
mod work;

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use parking_lot::Mutex;
use rustls::sign::CertifiedKey;
use shortline_tls::names::Pattern;
use shortline_tls::{Certificate, Trust};
use tokio::sync::Notify;

use on_demand::Demand;
pub use status::{CertificateStatus, Counts};

use crate::authority::{Authority, Failure, Got, now_s};
use crate::challenges::Challenges;
use crate::client::Client;
use crate::config::Config;
use crate::leaf::{self, Leaf};
use crate::schedule::{Backoff, Due, Plan};
use crate::store::{Store, StoreError};

/// How often a certificate that cannot be renewed is told of.
const LATE_EVERY_S: u64 = 24 * 3600;

/// A certificate on demand that nobody has asked for in this time is not renewed.
const FORGOTTEN_S: u64 = 30 * 24 * 3600;

/// Keeps certificates.
#[derive(Debug)]
pub struct Keeper {
    shared: Arc<Shared>,
    /// Ends the thread that is at work.
    ends: Mutex<Option<Arc<AtomicBool>>>,
}

/// What the thread and everybody else share.
struct Shared {
    config: Config,
    store: Store,
    authority: Authority,
    challenges: Arc<Challenges>,
    names: Mutex<BTreeMap<String, Entry>>,
    /// Failures of the authority itself.
    held: Mutex<Backoff>,
    got: AtomicU64,
    failed: AtomicU64,
    /// There are other names, or somebody is in a hurry.
    changed: Notify,
    demand: Demand,
}

/// One certificate.
struct Entry {
    name: Pattern,
    certificate: Arc<Certificate>,
    /// What takes the place of an earlier keeper's certificate.
    next: Option<Arc<CertifiedKey>>,
    plan: Plan,
    leaf: Option<Leaf>,
    /// When its file was written, as it was read.
    written: Option<SystemTime>,
    /// Somebody is at work on it.
    is_taken: bool,
    /// The last failure since it was got.
    failure: Option<String>,
    told_late_s: u64,
    /// When a client asked for it last, if it is there because one did.
    asked_s: Option<u64>,
}

impl Keeper {
    /// Opens the folder. Nothing is ordered yet.
    ///
    /// # Errors
    /// [`KeeperError`]
    pub fn open(config: Config, challenges: Arc<Challenges>) -> Result<Self, KeeperError> {
        let client = Client::new(&config.trust)?;
        // Whoever is asked for names is the operator's own, and need not be known to the authority's authorities.
        let trust = match config.on_demand.ask {
            Some(_) => Client::new(&Trust::System)?.tls(),
            None => client.tls(),
        };
        let store = Store::open(&config.state, &config.directory)?;
        challenges.share_in(store.challenges());
        let shared = Shared {
            authority: Authority::new(config.clone(), store.clone(), client),
            config,
            store,
            challenges,
            names: Mutex::default(),
            held: Mutex::default(),
            got: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            changed: Notify::new(),
            demand: Demand::new(trust),
        };
        Ok(Self {
            shared: Arc::new(shared),
            ends: Mutex::default(),
        })
    }

    /// Where certificates come from.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// The certificates of these names, each of which is there already or will be later. What the folder has is read.
    /// What an earlier keeper serves is served on where the folder has nothing. Nothing changes until [`Keeper::keep`].
    pub fn certificates(&self, names: &[Pattern], before: Option<&Self>) -> Prepared {
        let entry = |name: &Pattern| {
            let key = name.to_string();
            if let Some(known) = self.shared.names.lock().get(&key) {
                return (key, Arc::clone(&known.certificate), None);
            }
            let mut entry = self.shared.read(name);
            // Nobody loses a certificate because the authority is another from now on.
            if let Some(earlier) = before.and_then(|before| before.served(&key)) {
                entry.next = entry.certificate.current();
                entry.certificate = earlier;
            }
            (key, Arc::clone(&entry.certificate), Some(entry))
        };
        let mut prepared = Prepared::default();
        for name in names {
            let (key, certificate, entry) = entry(name);
            prepared.certificates.insert(key.clone(), certificate);
            prepared.entries.insert(key, entry);
        }
        prepared
    }

    fn served(&self, name: &str) -> Option<Arc<Certificate>> {
        let names = self.shared.names.lock();
        names.get(name).map(|entry| Arc::clone(&entry.certificate))
    }

    /// Keeps the certificates of these names from now on, and no others. Attempts that wait are made now.
    pub fn keep(&self, prepared: Prepared) {
        let mut names = self.shared.names.lock();
        let mut before = std::mem::take(&mut *names);
        for (key, entry) in prepared.entries {
            if let Some(mut entry) = before.remove(&key).or(entry) {
                if let Some(next) = entry.next.take() {
                    entry.certificate.replace(next.as_ref().clone());
                }
                names.insert(key, entry);
            }
        }
        before.retain(|_, entry| entry.asked_s.is_some());
        names.append(&mut before);
        names.values_mut().for_each(|entry| entry.plan.hurry());
        drop(names);
        self.shared.held.lock().hurry();
        self.shared.changed.notify_one();
    }

    /// The names without a certificate.
    pub fn missing(&self) -> Vec<String> {
        let names = self.shared.names.lock();
        let missing = names
            .iter()
            .filter(|(_, entry)| !entry.certificate.is_there());
        missing.map(|(name, _)| name.clone()).collect()
    }

    /// Orders and renews from now on, until it is to rest or this is dropped.
    ///
    /// # Errors
    /// There is no thread or no runtime for it.
    pub fn start(&self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (shared, ends) = (Arc::clone(&self.shared), Arc::default());
        *self.ends.lock() = Some(Arc::clone(&ends));
        let thread = std::thread::Builder::new().name("certificates".to_owned());
        thread
            .spawn(move || runtime.block_on(work::run(shared, ends)))
            .map(drop)
    }

    /// Orders nothing until it is started again. Orders under way are given up.
    pub fn rest(&self) {
        if let Some(ends) = self.ends.lock().take() {
            ends.store(true, Ordering::Relaxed);
        }
        self.shared.changed.notify_one();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.rest();
    }
}

/// Certificates that were looked up for names, before it is certain that they are wanted.
#[derive(Debug, Default)]
pub struct Prepared {
    /// By name.
    pub certificates: HashMap<String, Arc<Certificate>>,
    entries: BTreeMap<String, Option<Entry>>,
}

/// Certificates cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// The folder cannot be used.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The authority's own authorities cannot be read.
    #[error("acme: {0}")]
    Trust(#[from] shortline_tls::TlsError),
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl Entry {
    /// Whether no client has asked for it for long, though it is there only for those who do.
    fn is_forgotten(&self, now_s: u64) -> bool {
        self.asked_s
            .is_some_and(|asked_s| asked_s + FORGOTTEN_S < now_s)
    }

    /// Serves a certificate from now on.
    fn serve(&mut self, got: Got) {
        self.certificate.replace(got.key);
        self.leaf = Some(got.leaf);
        self.failure = None;
        self.told_late_s = 0;
    }
}

impl Shared {
    /// A name as the folder has it.
    fn read(&self, name: &Pattern) -> Entry {
        let key = name.to_string();
        let mut entry = Entry {
            name: name.clone(),
            certificate: Arc::default(),
            next: None,
            plan: Plan::new(None, self.store.failures(&key), draw()),
            leaf: None,
            written: None,
            is_taken: false,
            failure: None,
            told_late_s: 0,
            asked_s: None,
        };
        self.read_again(&key, &mut entry);
        entry
    }

    /// Takes what another process has written since. A file that cannot be used is as good as none.
    fn read_again(&self, key: &str, entry: &mut Entry) {
        let written = self.store.written(key);
        if written.is_none() || written == entry.written {
            return;
        }
        entry.written = written;
        let read = self.store.read(key).map_err(|error| error.to_string());
        let got = read.and_then(|key| {
            shortline_tls::check_names(&key, std::slice::from_ref(&entry.name))?;
            let leaf = leaf::read(&key.cert[0])?;
            Ok(Got { key, leaf })
        });
        match got {
            Ok(got) => {
                entry.plan.got(0, got.leaf.validity, draw());
                entry.serve(got);
            }
            Err(error) => {
                tracing::warn!("certificate for {key}: what is kept is not used: {error}")
            }
        }
    }

    fn got(&self, key: &str, got: Got) {
        let now_s = now_s();
        self.got.fetch_add(1, Ordering::Relaxed);
        *self.held.lock() = Backoff::default();
        let valid = span(got.leaf.validity.until_s.saturating_sub(now_s));
        self.store.keep_failures(key, &Backoff::default());
        let mut names = self.names.lock();
        if let Some(entry) = names.get_mut(key) {
            entry.plan.got(now_s, got.leaf.validity, draw());
            entry.written = self.store.written(key);
            entry.serve(got);
        }
        drop(names);
        self.demand.settled();
        tracing::info!("certificate for {key}: got, valid for {valid}");
    }

    fn failed(&self, key: &str, failure: Failure) {
        let now_s = now_s();
        self.failed.fetch_add(1, Ordering::Relaxed);
        let mut names = self.names.lock();
        let Some(entry) = names.get_mut(key) else {
            return;
        };
        let until_s = if failure.is_authoritys {
            let mut held = self.held.lock();
            // Those that were under way together fail together.
            if held.until_s <= now_s {
                held.failed(now_s, failure.told_s, draw());
            }
            held.until_s
        } else {
            0
        };
        // The name's own waits grow, too: what is late must be seen as late.
        entry.plan.failed(now_s, failure.told_s, draw());
        let wait_s = until_s
            .max(entry.plan.backoff().until_s)
            .saturating_sub(now_s);
        let is_served = match entry.certificate.is_there() {
            true => "the one that is there is served on",
            false => "there is none yet",
        };
        entry.failure = Some(failure.reason.clone());
        let backoff = *entry.plan.backoff();
        let is_demanded = entry.asked_s.is_some() && !entry.certificate.is_there();
        if is_demanded {
            names.remove(key);
        }
        drop(names);
        match is_demanded {
            // Names are for anybody to think up, so no file remembers them.
            true => self.demand.refuse(key, now_s),
            false => self.store.keep_failures(key, &backoff),
        }
        tracing::warn!(
            "certificate for {key}: {}; {is_served}; next attempt in {}",
            failure.reason,
            span(wait_s)
        );
    }

    /// Says once a day which certificates cannot be renewed.
    fn tell_late(&self, now_s: u64) {
        for (key, entry) in &mut *self.names.lock() {
            if !entry.plan.is_late(now_s) || now_s < entry.told_late_s + LATE_EVERY_S {
                continue;
            }
            entry.told_late_s = now_s;
            let left_s = entry.plan.left_s(now_s).unwrap_or(0);
            let failures = entry.plan.backoff().failures;
            let reason = entry.failure.as_deref().unwrap_or("see above");
            let when = match u64::try_from(left_s) {
                Ok(left_s) => format!("ends in {}", span(left_s)),
                Err(_) => "is no longer valid".to_owned(),
            };
            tracing::error!(
                "certificate for {key}: {when} and could not be renewed {failures} times: {reason}"
            );
        }
    }

    /// The names with something to do, at most so many, and when to look again.
    fn due(&self, now_s: u64, most: usize) -> (Vec<(String, Due)>, u64) {
        let held_until_s = self.held.lock().until_s;
        let mut due = Vec::new();
        let mut next_s = u64::MAX;
        for (key, entry) in self
            .names
            .lock()
            .iter()
            .filter(|(_, entry)| !entry.is_taken)
        {
            match entry.plan.due(now_s) {
                Due::At(at_s) => next_s = next_s.min(at_s.max(held_until_s)),
                _ if held_until_s > now_s => next_s = next_s.min(held_until_s),
                what if due.len() < most => due.push((key.clone(), what)),
                _ => {}
            }
        }
        (due, next_s)
    }
}

/// A random number from 0 to 1. The standard library seeds each new state of its hash tables at random.
pub fn draw() -> f64 {
    let drawn = RandomState::new().hash_one(0);
    (drawn >> 11) as f64 / (1_u64 << 53) as f64
}

/// A time as people say it.
pub fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}
