//! The sites of a server: which of them a request is for, by the host that it names.
//!
//! | the request's host | answered by |
//! |---|---|
//! | a name of a site, or one label before a name with a wildcard | that site |
//! | any other | the site without names; without one 404 |
//! | another than the certificate of the connection is for | 421, so that the client connects anew (RFC 9110, 15.5.20) |
//! | of a site that wants certificates of clients in another way than the connection's handshake did | 421 |
//!
//! The last is for HTTP/2: a client may send requests for several hosts over one connection if its certificate is for all of them
//! (RFC 9113, 9.1.1). A site with a certificate of its own is answered only where that was shown. So a wildcard certificate
//! never answers for a site whose certificate has other rules.
//!
//! A site with a certificate is not served over plain HTTP: its requests are redirected (308, RFC 9110, 15.4.9), unless it says
//! otherwise, or its certificate is still to come. One whose clients must have a certificate never is.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{HeaderValue, LOCATION, STRICT_TRANSPORT_SECURITY};
use http::request::Parts;
use http::{Method, StatusCode};
use shortline_tls::names::{Names, Pattern};
use shortline_tls::{Certificate, ClientAuth};

use crate::compress::Compress;
use crate::context::Connection;
use crate::files::{Files, Plan};
use crate::limits::SiteLimits;
use crate::proxy::head::host_name;
use crate::proxy::routes::Routes;
use crate::rules::Rules;
use crate::rules::pages::Pages;
use crate::shared_fields::SharedFields;

/// What answers the requests for some names.
pub struct Site {
    /// Its names. None: it answers for all names that no other site has.
    pub names: Vec<Pattern>,
    /// The files. `None`: a request that no route takes is not found.
    pub files: Option<Files>,
    /// The paths that other servers answer.
    pub routes: Routes,
    /// What it does with some requests.
    pub rules: Rules,
    /// Pages in the place of errors' texts.
    pub pages: Pages,
    /// What is compressed on the fly.
    pub compress: Compress,
    /// What it may take.
    pub limits: SiteLimits,
    /// Its certificate.
    pub certificate: SiteCertificate,
    /// Which certificates its clients must or may have, if it asks for them.
    pub client_auth: Option<Arc<ClientAuth>>,
    /// Where plain HTTP is redirected to: the port of HTTPS. `None`: it is served.
    pub https_port: Option<u16>,
    /// Plain HTTP is served as long as the host's own certificate is not there yet.
    pub plain_until_certificate: bool,
    /// The field `Strict-Transport-Security` of each response over TLS (RFC 6797), if it is wanted.
    pub transport_security: Option<HeaderValue>,
}

/// The certificate that a site is served with.
#[derive(Clone, Debug, Default)]
pub enum SiteCertificate {
    /// That of the listener.
    #[default]
    Listeners,
    /// Its own, which is for all of its names.
    Own(Arc<Certificate>),
    /// One for each of its names, which may come while the server runs.
    ByName(Names<Arc<Certificate>>),
    /// One for each name that a client asks for, as soon as one does.
    OnDemand,
}

/// What the server itself answers below `/.well-known/` (RFC 8615), before any site.
pub trait WellKnown: Send + Sync {
    /// The text at this path, if there is one.
    fn text(&self, path: &str) -> Option<Bytes>;
}

/// Gets certificates when clients ask for them.
pub trait OnDemand: Send + Sync {
    /// What a handshake for this name waits for: that there is a certificate, or that there will be none. `None`: for nothing.
    fn certificate(&self, name: &str) -> Option<Waiting>;
}

/// Something that is waited for.
pub type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// All sites of a server.
#[derive(Default)]
pub struct Sites {
    all: Vec<Site>,
    by_name: Names<usize>,
    default: Option<usize>,
    well_known: Option<Arc<dyn WellKnown>>,
    on_demand: Option<Arc<dyn OnDemand>>,
}

/// Two sites that answer for the same.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SitesError {
    /// A name twice.
    #[error("two sites have the name {0}: give it to one of them")]
    Twice(Pattern),
    /// Two sites without names.
    #[error(
        "two sites have no names: one of them answers for all other names, so the others need names"
    )]
    TwoWithoutNames,
}

/// The number of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteNumber(usize);

impl SiteNumber {
    /// Its place in [`Sites::iter`].
    pub fn index(self) -> usize {
        self.0
    }
}

impl Site {
    /// A site without names, rules or limits, with what the listeners have for it.
    pub fn plain(files: Option<Files>, routes: Routes) -> Self {
        Self {
            names: Vec::new(),
            files,
            routes,
            rules: Rules::default(),
            pages: Pages::default(),
            compress: Compress::default(),
            limits: SiteLimits::default(),
            certificate: SiteCertificate::Listeners,
            client_auth: None,
            https_port: None,
            plain_until_certificate: false,
            transport_security: None,
        }
    }
}

impl Sites {
    /// The sites in any order.
    ///
    /// # Errors
    /// [`SitesError`]
    pub fn new(all: Vec<Site>) -> Result<Self, SitesError> {
        let (mut by_name, mut default) = (Names::default(), None);
        for (index, site) in all.iter().enumerate() {
            if site.names.is_empty() && default.replace(index).is_some() {
                return Err(SitesError::TwoWithoutNames);
            }
            for name in &site.names {
                if by_name.insert(name, index).is_some() {
                    return Err(SitesError::Twice(name.clone()));
                }
            }
        }
        Ok(Self {
            all,
            by_name,
            default,
            well_known: None,
            on_demand: None,
        })
    }

    /// One site that answers for all names.
    pub fn one(files: Option<Files>, routes: Routes) -> Self {
        Self {
            all: vec![Site::plain(files, routes)],
            default: Some(0),
            ..Self::default()
        }
    }

    /// These sites, with what the server itself answers before any of them.
    pub fn with_well_known(self, answers: Arc<dyn WellKnown>) -> Self {
        Self {
            well_known: Some(answers),
            ..self
        }
    }

    /// These sites, with who gets certificates on demand.
    pub fn with_on_demand(self, gets: Arc<dyn OnDemand>) -> Self {
        Self {
            on_demand: Some(gets),
            ..self
        }
    }

    /// What a handshake for this name waits for, if its site has certificates on demand.
    pub fn certificate_on_demand(&self, name: &str) -> Option<Waiting> {
        let site = self.get(self.find(name)?);
        match site.certificate {
            SiteCertificate::OnDemand => self.on_demand.as_ref()?.certificate(name),
            _ => None,
        }
    }

    /// The site for a host, which has no port.
    pub fn find(&self, host: &str) -> Option<SiteNumber> {
        let named = match self.by_name.is_empty() {
            true => None,
            false => self.by_name.find(host).copied(),
        };
        named.or(self.default).map(SiteNumber)
    }

    /// A site.
    pub fn get(&self, SiteNumber(index): SiteNumber) -> &Site {
        &self.all[index]
    }

    /// All sites.
    pub fn iter(&self) -> impl Iterator<Item = &Site> {
        self.all.iter()
    }

    /// The site of a connection over TLS, by the name in its handshake.
    pub fn shown(&self, name: Option<&str>) -> Option<SiteNumber> {
        match name {
            Some(name) => self.find(name),
            None => self.default.map(SiteNumber),
        }
    }

    /// Whether the client of a handshake for this name is asked for a certificate.
    pub fn client_auth(&self, name: Option<&str>) -> Option<&Arc<ClientAuth>> {
        self.get(self.shown(name)?).client_auth.as_ref()
    }

    /// Whether the certificate that was shown for one site is the other's, too.
    fn has_shown(&self, shown: Option<SiteNumber>, asked: &Site) -> bool {
        let listeners = SiteCertificate::Listeners;
        let shown = shown.map_or(&listeners, |shown| &self.get(shown).certificate);
        match (shown, &asked.certificate) {
            (SiteCertificate::Listeners, SiteCertificate::Listeners) => true,
            (SiteCertificate::Own(shown), SiteCertificate::Own(asked)) => Arc::ptr_eq(shown, asked),
            _ => false,
        }
    }
}

impl Site {
    /// What logs and figures call it: its first name. The one without names is `default`.
    pub fn label(&self) -> String {
        label(&self.names)
    }

    /// Adds what the site says in each response.
    pub fn complete(&self, is_secure: bool, headers: &mut SharedFields) {
        if is_secure && let Some(value) = &self.transport_security {
            headers
                .change()
                .insert(STRICT_TRANSPORT_SECURITY, value.clone());
        }
    }

    /// Whether HTTPS can answer for this host, as far as its certificate goes.
    fn has_certificate(&self, host: &str) -> bool {
        match &self.certificate {
            SiteCertificate::ByName(names) => {
                names.find(host).is_some_and(|found| found.is_there())
            }
            SiteCertificate::Own(_) | SiteCertificate::Listeners | SiteCertificate::OnDemand => {
                true
            }
        }
    }
}

/// What logs and figures call a site with these names.
pub fn label(names: &[Pattern]) -> String {
    let first = names.first();
    first.map_or_else(|| "default".to_owned(), Pattern::to_string)
}

/// What the server itself answers to a request.
pub fn well_known(connection: &Connection, head: &Parts) -> Option<Box<Plan>> {
    let answers = connection.settings.sites.well_known.as_ref()?;
    let path = head.uri.path();
    if !path.starts_with("/.well-known/") || ![Method::GET, Method::HEAD].contains(&head.method) {
        return None;
    }
    let text = answers.text(path)?;
    Some(Plan::with_text(StatusCode::OK, &head.method, text).into())
}

/// The site that a request is for, or the answer if there is none that may answer it here.
///
/// # Errors
/// The answer.
pub fn of_request(connection: &Connection, head: &Parts) -> Result<SiteNumber, Box<Plan>> {
    let sites = &connection.settings.sites;
    let host = host_name(head).unwrap_or_default();
    let Some(number) = sites.find(host) else {
        return Err(Plan::text(StatusCode::NOT_FOUND, &head.method).into());
    };
    let site = sites.get(number);
    if connection.secure {
        let shown = connection.shown.get().copied().flatten();
        let is_shown = shown == Some(number) || sites.has_shown(shown, site);
        return match is_shown && connection.is_certified_for(site) {
            true => Ok(number),
            false => Err(Plan::text(StatusCode::MISDIRECTED_REQUEST, &head.method).into()),
        };
    }
    let is_secret = site
        .client_auth
        .as_ref()
        .is_some_and(|auth| auth.is_required());
    match site.https_port {
        Some(port) if is_secret || !site.plain_until_certificate || site.has_certificate(host) => {
            Err(redirect(host, port, head).into())
        }
        None if is_secret => Err(Plan::text(StatusCode::FORBIDDEN, &head.method).into()),
        _ => Ok(number),
    }
}

/// The same target by HTTPS.
fn redirect(host: &str, port: u16, head: &Parts) -> Plan {
    let target = head
        .uri
        .path_and_query()
        .map(|target| target.as_str())
        .filter(|target| target.starts_with('/'));
    let port = match port {
        443 => String::new(),
        port => format!(":{port}"),
    };
    let location = format!("https://{host}{port}{}", target.unwrap_or("/"));
    let Ok(location) = HeaderValue::try_from(location) else {
        return Plan::text(StatusCode::BAD_REQUEST, &head.method);
    };
    // It keeps the method, unlike 301.
    let mut plan = Plan::text(StatusCode::PERMANENT_REDIRECT, &head.method);
    plan.headers.change().insert(LOCATION, location);
    plan
}
