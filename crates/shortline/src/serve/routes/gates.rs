//! The gates in front of `serve`'s routes. All routes to the same backends that ask for a gate
//! share one.
//!
//! A reload keeps a gate whose settings stay, along with its waiting requests. A gate whose
//! settings change is replaced. The new one starts with what the old one has learnt. Requests that
//! the old one admitted or holds end under the old one.

use std::sync::Arc;

use serde::Serialize;
use shortline_daemon::file::spot::KeyError;
use shortline_gate::classify::Classifier;
use shortline_gate::http::GateAdmission;
use shortline_gate::{Gate, GateSnapshot};
use shortline_web::proxy::UpstreamAddress;
use shortline_web::proxy::admission::Admission;
use shortline_web::proxy::mirror::{Mirror, MirrorSnapshot};
use shortline_web::proxy::routes::{Route, Routes};
use shortline_web::proxy::upstream::Upstream;
use shortline_web::response_cache::{ResponseCache, ResponseCacheOptions, ResponseCacheSnapshot};

use super::RouteSettings;
use crate::gate::series::{Series, TYPES_MAX_DEFAULT};
use crate::gate::settings::RouteGate;
use crate::gate::status::AdmissionSettings;

/// The routes in use, with their gates.
#[derive(Clone, Default)]
pub struct OpenRoutes {
    /// Which requests go where, for each site.
    pub routes: Vec<Routes>,
    gates: Vec<OpenGate>,
    caches: Vec<OpenCache>,
    mirrors: Vec<(String, Arc<Mirror>)>,
}

/// The cache of a route at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct CacheStatus {
    /// The route: its path, behind the name of its site if that has one.
    pub route: String,
    /// Its state.
    #[serde(flatten)]
    pub state: ResponseCacheSnapshot,
}

/// The copies of a route's requests at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct MirrorStatus {
    /// The route: its path, behind the name of its site if that has one.
    pub route: String,
    /// Their state.
    #[serde(flatten)]
    pub state: MirrorSnapshot,
}

/// The cache of a route, which a reload keeps if its settings stay.
#[derive(Clone)]
struct OpenCache {
    label: String,
    cache: Arc<ResponseCache>,
}

/// A gate of some routes at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct GateStatus {
    /// Its routes: the path of each, behind the name of its site if that has one.
    pub routes: Vec<String>,
    /// The servers behind it.
    pub upstream: Vec<String>,
    /// Its settings.
    pub settings: AdmissionSettings,
    /// The queue, the load against the capacity, and the types.
    pub admission: GateSnapshot,
    /// Chooses the types that have metrics.
    #[serde(skip)]
    pub series: Arc<Series>,
}

#[derive(Clone)]
struct OpenGate {
    labels: Vec<String>,
    backends: Vec<UpstreamAddress>,
    settings: RouteGate,
    gate: Gate,
    classifier: Classifier,
    series: Arc<Series>,
}

impl OpenRoutes {
    /// The routes of each site. Gates carry on from `before`. Must be called inside a runtime.
    ///
    /// # Errors
    /// Names the route with authorities of servers, or a rule, that cannot be used.
    pub fn new<'a>(
        sites: impl Iterator<Item = &'a [RouteSettings]>,
        before: &Self,
    ) -> Result<Self, String> {
        let mut opened = Self::default();
        for settings in sites {
            let routes: Result<Vec<Route>, String> = settings
                .iter()
                .map(|route| opened.open(route, before))
                .collect();
            opened.routes.push(Routes::new(routes?));
        }
        Ok(opened)
    }

    fn open(&mut self, route: &RouteSettings, before: &Self) -> Result<Route, String> {
        let gate = route.gate.as_ref();
        let upstream =
            Upstream::open(route.upstream.clone()).map_err(|error| route.named(&error))?;
        Ok(Route {
            mirror: self.mirror(route)?,
            admission: gate
                .map(|gate| self.admission(route, gate, before))
                .transpose()?,
            cache: route
                .cache
                .as_ref()
                .map(|options| self.cache(route, options, before)),
            ..Route::new(route.path.clone(), upstream)
        })
    }

    fn cache(
        &mut self,
        route: &RouteSettings,
        options: &ResponseCacheOptions,
        before: &Self,
    ) -> Arc<ResponseCache> {
        let known = before
            .caches
            .iter()
            .find(|known| known.label == route.label);
        let cache = known
            .filter(|known| known.cache.options == *options)
            .map_or_else(
                || ResponseCache::new(options.clone()),
                |known| Arc::clone(&known.cache),
            );
        self.caches.push(OpenCache {
            label: route.label.clone(),
            cache: Arc::clone(&cache),
        });
        cache
    }

    fn mirror(&mut self, route: &RouteSettings) -> Result<Option<Arc<Mirror>>, String> {
        let Some(options) = &route.mirror else {
            return Ok(None);
        };
        let mirror = Mirror::open(options.clone());
        let mirror = mirror.map_err(|error| route.named(&format_args!("mirror: {error}")))?;
        self.mirrors
            .push((route.label.clone(), Arc::clone(&mirror)));
        Ok(Some(mirror))
    }

    /// The state of its mirrors now.
    pub fn mirrors(&self) -> Vec<MirrorStatus> {
        let mirrors = self.mirrors.iter();
        mirrors
            .map(|(route, mirror)| MirrorStatus {
                route: route.clone(),
                state: mirror.snapshot(),
            })
            .collect()
    }

    /// Begins to use the folders of its caches. Those of `before` that it has not taken over leave theirs first.
    pub fn start_caches(&self, before: &Self) {
        let is_kept = |old: &OpenCache| {
            self.caches
                .iter()
                .any(|new| Arc::ptr_eq(&new.cache, &old.cache))
        };
        let left = before.caches.iter().filter(|old| !is_kept(old));
        left.for_each(|old| old.cache.rest());
        self.caches.iter().for_each(|open| open.cache.start());
    }

    /// Leaves the folders of its caches to another process.
    pub fn rest_caches(&self) {
        self.caches.iter().for_each(|open| open.cache.rest());
    }

    /// The state of its caches now.
    pub fn caches(&self) -> Vec<CacheStatus> {
        let caches = self.caches.iter();
        caches
            .map(|open| CacheStatus {
                route: open.label.clone(),
                state: open.cache.snapshot(),
            })
            .collect()
    }

    /// Forgets the responses of a URL; with a star at its end, of all that begin so. Returns how many that were.
    pub fn purge(&self, url: &str) -> usize {
        let (url, with_all_below) = match url.strip_suffix('*') {
            Some(beginning) => (beginning, true),
            None => (url, false),
        };
        let caches = self.caches.iter();
        caches
            .map(|open| open.cache.purge(url, with_all_below))
            .sum()
    }

    /// The state of its gates now.
    pub fn gates(&self) -> Vec<GateStatus> {
        self.gates.iter().map(OpenGate::status).collect()
    }

    /// The admission of a route. Opens a gate if its backends have none yet.
    fn admission(
        &mut self,
        route: &RouteSettings,
        settings: &RouteGate,
        before: &Self,
    ) -> Result<Arc<dyn Admission>, String> {
        let backends: Vec<_> = route.upstream.addresses().cloned().collect();
        let backends = &backends;
        let index = match self.gates.iter().position(|gate| gate.is_before(backends)) {
            Some(known) => known,
            None => {
                let old = before.gates.iter().find(|gate| gate.is_before(backends));
                self.gates.push(OpenGate::new(backends, settings, old)?);
                self.gates.len() - 1
            }
        };
        let gate = &mut self.gates[index];
        gate.labels.push(route.label.clone());
        let admission = GateAdmission::new(gate.gate.clone(), gate.classifier.clone());
        Ok(Arc::new(admission))
    }
}

impl OpenGate {
    fn new(
        backends: &[UpstreamAddress],
        settings: &RouteGate,
        old: Option<&Self>,
    ) -> Result<Self, String> {
        let series = || Arc::new(Series::new(TYPES_MAX_DEFAULT));
        let (gate, series) = match old {
            Some(old) if old.settings.gate == settings.gate => {
                (old.gate.clone(), Arc::clone(&old.series))
            }
            Some(old) => {
                let gate = Gate::new(settings.gate.clone());
                gate.restore(&old.gate.kept());
                (gate, series())
            }
            None => (Gate::new(settings.gate.clone()), series()),
        };
        Ok(Self {
            labels: Vec::new(),
            backends: backends.to_vec(),
            settings: settings.clone(),
            gate,
            series,
            classifier: Classifier::new(&settings.classifier).map_err(|error| error.to_string())?,
        })
    }

    fn is_before(&self, backends: &[UpstreamAddress]) -> bool {
        is_same(&self.backends, backends)
    }

    fn status(&self) -> GateStatus {
        GateStatus {
            routes: self.labels.clone(),
            upstream: self.backends.iter().map(ToString::to_string).collect(),
            settings: AdmissionSettings::new(&self.settings.gate),
            admission: self.gate.snapshot(),
            series: Arc::clone(&self.series),
        }
    }
}

/// Refuses a second gate before a server. Neither would know what the other admits.
///
/// # Errors
/// Names the other route.
pub fn refuse_two_of_a_backend<'a>(
    routes: impl Iterator<Item = &'a RouteSettings>,
    new: &RouteSettings,
) -> Result<(), KeyError> {
    let Some(gate) = &new.gate else {
        return Ok(());
    };
    let addresses =
        |route: &RouteSettings| -> Vec<_> { route.upstream.addresses().cloned().collect() };
    let backends = addresses(new);
    for route in routes {
        let Some(known) = &route.gate else { continue };
        let others = addresses(route);
        let shared = backends.iter().find(|backend| others.contains(backend));
        let Some(shared) = shared else { continue };
        if known != gate || !is_same(&others, &backends) {
            return Err(KeyError::new(
                "gate",
                format!(
                    "{shared} is behind the gate of route {}, too: give both routes the same upstream and the same gate",
                    route.label
                ),
            ));
        }
    }
    Ok(())
}

/// Whether these are the same servers, in any order.
fn is_same(some: &[UpstreamAddress], others: &[UpstreamAddress]) -> bool {
    some.iter().all(|backend| others.contains(backend))
        && others.iter().all(|backend| some.contains(backend))
}
