//! Certificates in a running server: who keeps those by themselves, how the server answers an authority that looks for challenges,
//! and who looks after all of them.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use rustls::sign::CertifiedKey;
use serde::Serialize;
use shortline_acme::{
    Attendant, CertificateStatus, Challenges, Counts, Keeper, Prepared, Served, check_state,
};
use shortline_tls::names::Pattern;
use shortline_tls::{Beside, Certificate};
use shortline_web::sites::{OnDemand, Sites, Waiting, WellKnown};

use super::settings::Settings;
use super::sites::CertificateSource;
use shortline_command::CommandError;

/// This many names without a certificate are told at the start.
const TOLD_MAX: usize = 5;

/// Who keeps the certificates, and who looks after them. The challenges outlive each keeper, as listeners have them.
#[derive(Clone, Default)]
pub struct Certificates {
    challenges: Arc<Challenges>,
    keeper: Kept,
    files: Files,
    attendant: Attendant,
}

type Kept = Arc<Mutex<Option<Arc<Keeper>>>>;
/// Those that are from files.
type Files = Arc<Mutex<Vec<Served>>>;

/// What a reload will exchange.
#[derive(Default)]
pub struct Next {
    keeper: Option<Arc<Keeper>>,
    prepared: Prepared,
}

/// What is told of them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CertificatesStatus {
    /// Each of them.
    pub all: Vec<CertificateStatus>,
    /// Orders since the start, or since `[acme]` changed, if any certificate is got by itself.
    pub orders: Option<Counts>,
}

impl Certificates {
    /// The handshakes of authorities, and those for names on demand.
    pub fn beside(&self) -> Arc<dyn Beside> {
        Arc::new(self.clone())
    }

    /// These sites, which answer authorities and have certificates on demand.
    pub fn around(&self, sites: Sites) -> Sites {
        let sites = sites.with_well_known(Arc::new(self.clone()));
        sites.with_on_demand(Arc::new(self.clone()))
    }

    /// Looks up the certificates that these settings want. Nothing is exchanged yet.
    ///
    /// # Errors
    /// [`CommandError::Failure`]: the folder or the trusted authorities cannot be used.
    pub fn prepare(&self, settings: &Settings) -> Result<Next, CommandError> {
        let names = names(settings);
        if !is_used(settings) {
            return Ok(Next::default());
        }
        let current = self.keeper.lock().clone();
        let same = current
            .clone()
            .filter(|keeper| *keeper.config() == settings.acme);
        let keeper = match same {
            Some(keeper) => keeper,
            None => {
                let opened = Keeper::open(settings.acme.clone(), Arc::clone(&self.challenges));
                Arc::new(opened.map_err(CommandError::failure)?)
            }
        };
        let prepared = keeper.certificates(&names, current.as_deref());
        Ok(Next {
            keeper: Some(keeper),
            prepared,
        })
    }

    /// Keeps what was prepared from now on.
    pub fn exchange(&self, next: Next) {
        let mut current = self.keeper.lock();
        let Some(keeper) = next.keeper else {
            *current = None;
            return;
        };
        let is_new = current
            .as_ref()
            .is_none_or(|current| !Arc::ptr_eq(current, &keeper));
        keeper.keep(next.prepared);
        self.attendant.look();
        if let Some(line) = missing(&keeper.missing()) {
            tracing::warn!("{line}");
        }
        *current = Some(Arc::clone(&keeper));
        drop(current);
        if is_new {
            start(&keeper);
        }
    }

    /// Looks after these, which are from files, and after those that are kept. `state` is the folder for what is known of them.
    pub fn attend(&self, files: Vec<Served>, state: &Path) {
        self.attendant.keep_below(state);
        let kept = self.keeper.lock().clone();
        let kept = kept.map(|keeper| keeper.all_served()).unwrap_or_default();
        // One that was read again has what was known of it.
        for one in files.iter().chain(&kept) {
            self.attendant.dress(&one.certificate);
        }
        *self.files.lock() = files;
        let (files, keeper) = (Arc::clone(&self.files), Arc::clone(&self.keeper));
        let all = move || {
            let kept = keeper.lock().clone();
            let kept = kept.map(|keeper| keeper.all_served()).unwrap_or_default();
            [files.lock().clone(), kept].concat()
        };
        self.attendant.look();
        if let Err(error) = self.attendant.start(Box::new(all)) {
            tracing::error!("certificates: no thread looks after them: {error}");
        }
    }

    /// Orders nothing for now: another process has our addresses.
    pub fn rest(&self) {
        if let Some(keeper) = &*self.keeper.lock() {
            keeper.rest();
        }
    }

    /// Orders again.
    pub fn go_on(&self) {
        if let Some(keeper) = &*self.keeper.lock() {
            start(keeper);
        }
    }

    /// What is told of them now.
    pub fn status(&self) -> CertificatesStatus {
        let files = self.files.lock();
        let mut all: Vec<_> = files
            .iter()
            .map(|one| one.status(&self.attendant))
            .collect();
        drop(files);
        let keeper = self.keeper.lock().clone();
        all.extend(
            keeper
                .iter()
                .flat_map(|keeper| keeper.status(&self.attendant)),
        );
        CertificatesStatus {
            all,
            orders: keeper.map(|keeper| keeper.counts()),
        }
    }
}

fn start(keeper: &Keeper) {
    if let Err(error) = keeper.start() {
        tracing::error!("certificates: no thread for them, so none is ordered: {error}");
    }
}

impl Next {
    /// The certificates by name.
    pub fn certificates(&self) -> &HashMap<String, Arc<Certificate>> {
        &self.prepared.certificates
    }
}

/// Whether what these settings want could be kept.
///
/// # Errors
/// [`CommandError::Failure`]
pub fn check(settings: &Settings) -> Result<(), CommandError> {
    if !is_used(settings) {
        return Ok(());
    }
    check_state(&settings.acme.state).map_err(CommandError::failure)?;
    let trusted = shortline_tls::client_config(&settings.acme.trust, &[]);
    trusted
        .map(drop)
        .map_err(|error| CommandError::failure(format!("acme: {error}")))
}

/// Whether any site has certificates by themselves.
fn is_used(settings: &Settings) -> bool {
    let kinds = [CertificateSource::Auto, CertificateSource::OnDemand];
    settings
        .sites
        .iter()
        .any(|site| kinds.contains(&site.certificate))
}

/// The names for which certificates are wanted.
fn names(settings: &Settings) -> Vec<Pattern> {
    let sites = settings.sites.iter();
    let sites = sites.filter(|site| site.certificate == CertificateSource::Auto);
    sites.flat_map(|site| site.names.clone()).collect()
}

/// Names without a certificate, in a line.
fn missing(names: &[String]) -> Option<String> {
    let told = names
        .iter()
        .take(TOLD_MAX)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    let further = match names.len() {
        0 => return None,
        count if count > TOLD_MAX => format!(" and {} more", count - TOLD_MAX),
        _ => String::new(),
    };
    Some(format!(
        "no certificate yet for {told}{further}: until there is one, TLS handshakes for it fail"
    ))
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl Beside for Certificates {
    fn protocol(&self) -> &'static [u8] {
        Challenges::PROTOCOL
    }

    fn for_protocol(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.challenges.certificate(name)
    }

    fn for_name(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.keeper.lock().as_ref()?.demanded(name)
    }
}

impl WellKnown for Certificates {
    fn text(&self, path: &str) -> Option<Bytes> {
        self.challenges.text(path)
    }
}

impl OnDemand for Certificates {
    fn certificate(&self, name: &str) -> Option<Waiting> {
        let waiting = self.keeper.lock().as_ref()?.demand(name)?;
        Some(Box::pin(waiting))
    }
}
