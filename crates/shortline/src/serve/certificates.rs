//! Certificates by themselves in a running server: who keeps them, and how the server answers an authority that looks for
//! challenges.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde::Serialize;
use shortline_acme::{CertificateStatus, Challenges, Counts, Keeper, Prepared, check_state};
use shortline_tls::names::Pattern;
use shortline_tls::{Certificate, ForProtocol};
use shortline_web::sites::WellKnown;

use super::settings::Settings;
use super::sites::CertificateSource;
use shortline_command::CommandError;

/// This many names without a certificate are told at the start.
const TOLD_MAX: usize = 5;

/// Who keeps the certificates. The challenges outlive each keeper, as listeners have them.
#[derive(Clone, Default)]
pub struct Certificates {
    challenges: Arc<Challenges>,
    keeper: Arc<Mutex<Option<Arc<Keeper>>>>,
}

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
    /// Orders since the start, or since `[acme]` changed.
    pub orders: Counts,
}

impl Certificates {
    /// The handshakes of authorities.
    pub fn special(&self) -> Arc<dyn ForProtocol> {
        Arc::clone(&self.challenges) as Arc<dyn ForProtocol>
    }

    /// The requests of authorities.
    pub fn well_known(&self) -> Arc<dyn WellKnown> {
        Arc::new(Texts(Arc::clone(&self.challenges)))
    }

    /// Looks up the certificates that these settings want. Nothing is exchanged yet.
    ///
    /// # Errors
    /// [`CommandError::Failure`]: the folder or the trusted authorities cannot be used.
    pub fn prepare(&self, settings: &Settings) -> Result<Next, CommandError> {
        let names = names(settings);
        if names.is_empty() {
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
        if let Some(line) = missing(&keeper.missing()) {
            tracing::warn!("{line}");
        }
        *current = Some(Arc::clone(&keeper));
        drop(current);
        if is_new {
            start(&keeper);
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
        let keeper = self.keeper.lock().clone();
        keeper.map_or_else(CertificatesStatus::default, |keeper| CertificatesStatus {
            all: keeper.status(),
            orders: keeper.counts(),
        })
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
    if names(settings).is_empty() {
        return Ok(());
    }
    check_state(&settings.acme.state).map_err(CommandError::failure)?;
    let trusted = shortline_tls::client_config(&settings.acme.trust, &[]);
    trusted
        .map(drop)
        .map_err(|error| CommandError::failure(format!("acme: {error}")))
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

struct Texts(Arc<Challenges>);

impl WellKnown for Texts {
    fn text(&self, path: &str) -> Option<Bytes> {
        self.0.text(path)
    }
}
