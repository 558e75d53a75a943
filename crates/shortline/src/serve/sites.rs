//! The sites of the configuration: which names are answered, by which files, routes and certificate.
//!
//! `[site]` is the one site of a server, and flags lie over it. `[[site]]` is one of several, and no flag could say which
//! of them it is for.

pub mod keys;
pub mod open;
pub mod rules;

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use shortline_sched::units::Size;
use shortline_tls::names::Pattern;
use shortline_tls::{ClientAuthFiles, ClientAuthMode};
use shortline_web::SiteLimits;
use shortline_web::compress::Compress;
use shortline_web::files::FilesOptions;
use shortline_web::rules::Rules;
use shortline_web::rules::pages::Pages;
use shortline_web::sites;

use super::options::SiteKeys;
use super::root::{self, Root, SiteInput};
use super::routes::keys::RouteKeys;
use super::routes::{self, RouteSettings};
use keys::{
    CompressWhat, Itself, PlainHttp, SiteLimitKeys, SiteLogKeys, SiteTables, TransportSecurity,
};
use shortline_daemon::file::Source;
use shortline_daemon::file::spot::{KeyError, Spot};
use shortline_daemon::keys::Overlay;

/// A site as it is used.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteSettings {
    /// Its names; none for all that no other has.
    pub names: Vec<Pattern>,
    /// Which folder's files are served.
    pub root: Root,
    /// What is served of them.
    pub files: FilesOptions,
    /// The routes to application servers.
    pub routes: Vec<RouteSettings>,
    /// What it does with some requests.
    pub rules: Rules,
    /// Pages in the place of errors' texts.
    pub pages: Pages,
    /// What is compressed on the fly.
    pub compress: Compress,
    /// Its own access log, if it has one.
    pub log: Option<SiteLogKeys>,
    /// What it may take.
    pub limits: SiteLimits,
    /// Where its certificate comes from.
    pub certificate: CertificateSource,
    /// Which certificates its clients must or may have, if it asks for them.
    pub client_auth: Option<ClientAuthFiles>,
    /// What plain HTTP gets.
    pub plain_http: PlainHttp,
    /// Plain HTTP is served as long as there is no certificate.
    pub plain_until_certificate: bool,
    /// The field Strict-Transport-Security, if any.
    pub hsts: Option<TransportSecurity>,
}

impl SiteSettings {
    /// What logs and figures call it ([`shortline_web::sites::Site::label`]).
    pub fn label(&self) -> String {
        sites::label(&self.names)
    }
}

/// Where a site's certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateSource {
    /// It has that of the listener.
    Listeners,
    /// A chain and its key.
    Files(PathBuf, PathBuf),
    /// An authority, for each name.
    Auto,
    /// An authority, for each name that a client asks for.
    OnDemand,
}

/// What the configuration says about sites.
pub struct SitesInput<'a> {
    /// On the command line.
    pub flags: &'a SiteKeys,
    /// In the file.
    pub tables: SiteTables,
    /// `[[route]]`: of the only site.
    pub routes: Vec<RouteKeys>,
    /// The file, if there is one.
    pub config: Option<&'a Path>,
    /// The file's text, to name its lines.
    pub source: &'a Source,
}

/// The sites to serve.
///
/// # Errors
/// What contradicts itself, and where it stands.
pub fn resolve(input: SitesInput<'_>) -> Result<Vec<SiteSettings>, String> {
    match input.tables {
        SiteTables::One(in_file) => {
            let top = input.source.top();
            let spot = top.key("site");
            let mut keys = input.flags.clone().over(*in_file);
            let below = keys.route.take().unwrap_or_default();
            let routes = [
                placed(&top.key("route"), input.routes),
                placed(&spot.key("route"), below),
            ];
            let only = Site {
                flags: input.flags,
                keys,
                config: input.config,
                spot,
                label: None,
            };
            Ok(vec![only.resolve(routes.concat(), &[])?])
        }
        SiteTables::Several(ref tables) => {
            input.refuse_what_is_for_one()?;
            let spot = input.source.top().key("site");
            let mut sites: Vec<SiteSettings> = Vec::with_capacity(tables.len());
            for (index, keys) in tables.iter().enumerate() {
                let spot = spot.item(index);
                let routes = placed(&spot.key("route"), keys.route.clone().unwrap_or_default());
                let label = label(keys.names.as_deref().unwrap_or_default(), index);
                let site = Site {
                    flags: &SiteKeys::default(),
                    keys: keys.clone(),
                    config: input.config,
                    spot: spot.clone(),
                    label: Some(&label),
                };
                let site = site.resolve(routes, &sites)?;
                if site.names.is_empty() && sites.iter().any(|other| other.names.is_empty()) {
                    return Err(format!(
                        "{spot}site {label}: another site has no names either, and one answers for all other names: \
                         give this one names = [\"example.org\"]"
                    ));
                }
                sites.push(site);
            }
            Ok(sites)
        }
    }
}

/// Each route of a list with its place in the file.
fn placed(list: &Spot, routes: Vec<RouteKeys>) -> Vec<(Spot, RouteKeys)> {
    let routes = routes.into_iter().enumerate();
    routes
        .map(|(index, keys)| (list.item(index), keys))
        .collect()
}

/// How messages call a site.
fn label(names: &[Pattern], index: usize) -> String {
    match names.first() {
        Some(name) => name.to_string(),
        None => format!("{} (without names)", index + 1),
    }
}

impl SitesInput<'_> {
    fn refuse_what_is_for_one(&self) -> Result<(), String> {
        if let Some(field) = self.flags.difference(&SiteKeys::default()) {
            let flag = match field {
                "root" => "ROOT".to_owned(),
                field => format!("--{}", field.replace('_', "-")),
            };
            return Err(format!(
                "{flag}: the file has several [[site]], and a flag is for none of them: give it there"
            ));
        }
        if !self.routes.is_empty() {
            return Err(format!(
                "{}route: the file has several [[site]]: give each route below its site, as [[site.route]]",
                self.source.top().key("route")
            ));
        }
        Ok(())
    }
}

/// One site, and how messages name its keys.
struct Site<'a> {
    flags: &'a SiteKeys,
    keys: SiteKeys,
    config: Option<&'a Path>,
    spot: Spot,
    /// How messages call it; `None` if it is the only one.
    label: Option<&'a str>,
}

impl Site<'_> {
    /// How messages call a key.
    fn place(&self, by_flag: bool, key: &str) -> String {
        match (by_flag, key) {
            (true, "tls") => "--tls-auto".to_owned(),
            (true, key) => format!("--{key}"),
            (false, key) => format!("{}{}", self.spot.key(key), self.name(key)),
        }
    }

    fn name(&self, key: &str) -> String {
        match self.label {
            None => format!("site.{key}"),
            Some(label) => format!("site {label}: {key}"),
        }
    }

    fn resolve(
        self,
        routes: Vec<(Spot, RouteKeys)>,
        others: &[SiteSettings],
    ) -> Result<SiteSettings, String> {
        let names = self.names()?;
        let certificate = self.certificate(&names)?;
        let client_auth = self.client_auth()?;
        let known = others.iter().flat_map(|site| &site.routes);
        let mut routes = routes::resolve(routes, names.first(), known)?;
        let root = root::resolve(&SiteInput {
            flags: self.flags,
            site: &self.about_files(),
            config: self.config,
            has_routes: !routes.is_empty() || self.keys.rule.is_some(),
            place: &|by_flag, key| self.place(by_flag, key),
        })?;
        let has_files = root.folder().is_some();
        let rules = self.rules(&names, has_files, !routes.is_empty())?;
        let pages = match &self.keys.error_page {
            Some(keys) => rules::guards::pages(keys, has_files).map_err(|error| {
                format!(
                    "{}{}",
                    self.spot.key("error-page"),
                    self.name(&error.to_string())
                )
            })?,
            None => Pages::default(),
        };
        let files = self.with_programs(&mut routes, root.folder())?;
        let plain_http = match certificate {
            CertificateSource::Listeners if client_auth.is_none() => PlainHttp::Serve,
            CertificateSource::Listeners
            | CertificateSource::Files(..)
            | CertificateSource::Auto
            | CertificateSource::OnDemand => PlainHttp::Redirect,
        };
        let is_auto = certificate == CertificateSource::Auto;
        Ok(SiteSettings {
            names,
            root,
            pages,
            compress: self.compress(),
            log: self.keys.log.clone(),
            limits: self
                .keys
                .limits
                .as_ref()
                .map(SiteLimitKeys::resolve)
                .unwrap_or_default(),
            files: FilesOptions {
                compress: self.compress().files || rules.compress_files(),
                ..files
            },
            routes,
            rules,
            certificate,
            client_auth,
            plain_http: self.keys.plain_http.unwrap_or(plain_http),
            plain_until_certificate: is_auto && self.keys.plain_http.is_none(),
            hsts: self.keys.hsts,
        })
    }

    /// Completes the programs of routes, and says what is served of the files: not the programs' text.
    fn with_programs(
        &self,
        routes: &mut [RouteSettings],
        root: Option<&Path>,
    ) -> Result<FilesOptions, String> {
        let mut files = files_options(&self.keys);
        for route in routes {
            let Some(programs) = route.programs() else {
                continue;
            };
            let own = programs.root.as_deref();
            if let Some(folder) = own.and_then(root::of_the_system)
                && self.keys.allow_system_root != Some(true)
            {
                return Err(route.refused(&KeyError::new(
                    "fastcgi.root",
                    format!(
                        "{} is a folder of the system: name your site's, such as /srv/www",
                        folder.display()
                    ),
                )));
            }
            let Some(folder) = own.or(root).map(Path::to_owned) else {
                return Err(route.refused(&KeyError::new(
                    "upstream",
                    "FastCGI runs the programs of a folder, and none is named: add root = \"/srv/www\" to [site] or to \
                     [route.fastcgi]",
                )));
            };
            let Some(programs) = route.programs_mut() else {
                continue;
            };
            programs.root = Some(folder);
            if !files.programs.contains(&programs.suffix) {
                files.programs.push(programs.suffix.clone());
            }
        }
        Ok(files)
    }

    /// Without the keys that mean something without files, too.
    fn about_files(&self) -> SiteKeys {
        SiteKeys {
            names: None,
            tls_cert: None,
            tls_key: None,
            tls: None,
            client_ca: None,
            client_auth: None,
            client_crl: None,
            plain_http: None,
            hsts: None,
            compress: None,
            error_page: None,
            log: None,
            limits: None,
            route: None,
            rule: None,
            ..self.keys.clone()
        }
    }

    fn compress(&self) -> Compress {
        let given = self.keys.compress;
        given.map_or_else(Compress::default, |CompressWhat(what)| what)
    }

    fn names(&self) -> Result<Vec<Pattern>, String> {
        match &self.keys.names {
            Some(names) if names.is_empty() => Err(format!(
                "{}: is empty: name the site, or leave names out to answer for all other names",
                self.place(false, "names")
            )),
            names => Ok(names.clone().unwrap_or_default()),
        }
    }

    fn rules(&self, names: &[Pattern], has_files: bool, has_routes: bool) -> Result<Rules, String> {
        let keys = self.keys.rule.as_deref().unwrap_or_default();
        let refused = |index: usize, error: KeyError| {
            let name = format!("{} {}", self.name("rule"), index + 1);
            self.spot.key("rule").item(index).refused(&name, &error)
        };
        let mut rules = Vec::with_capacity(keys.len());
        for (index, keys) in keys.iter().enumerate() {
            let rule = keys.resolve(names, has_files, has_routes);
            rules.push(rule.map_err(|error| refused(index, error))?);
        }
        Rules::new(rules).map_err(|error| {
            let spot = self.spot.key("rule").item(error.later - 1);
            format!("{spot}{}: {error}", self.name("rule"))
        })
    }

    fn client_auth(&self) -> Result<Option<ClientAuthFiles>, String> {
        let (keys, flags) = (&self.keys, self.flags);
        let Some(authorities) = keys.client_ca.clone() else {
            let alone = [
                (
                    "client-auth",
                    keys.client_auth.is_some(),
                    flags.client_auth.is_some(),
                ),
                (
                    "client-crl",
                    keys.client_crl.is_some(),
                    flags.client_crl.is_some(),
                ),
            ];
            return match alone.iter().find(|(_, is_given, _)| *is_given) {
                None => Ok(None),
                Some((key, _, by_flag)) => Err(format!(
                    "{}: has no effect without client-ca, the file with the authorities of clients' certificates",
                    self.place(*by_flag, key)
                )),
            };
        };
        let mode = keys.client_auth.unwrap_or_default();
        if mode == ClientAuthMode::Require && keys.plain_http == Some(PlainHttp::Serve) {
            return Err(format!(
                "{}: contradicts client-ca: over plain HTTP no client has a certificate; leave it out, or say client-auth = \"request\"",
                self.place(false, "plain-http")
            ));
        }
        Ok(Some(ClientAuthFiles {
            authorities,
            revoked: keys.client_crl.clone(),
            mode,
        }))
    }

    fn certificate(&self, names: &[Pattern]) -> Result<CertificateSource, String> {
        let keys = &self.keys;
        match (&keys.tls_cert, &keys.tls_key, keys.tls) {
            (None, None, None) => Ok(CertificateSource::Listeners),
            (None, None, Some(Itself::OnDemand)) => Ok(CertificateSource::OnDemand),
            (None, None, Some(Itself::Auto)) => {
                let at = self.place(self.flags.tls.is_some(), "tls");
                names_for_auto(names).map_err(|problem| format!("{at}: {problem}"))?;
                Ok(CertificateSource::Auto)
            }
            (Some(cert), Some(key), None) => {
                Ok(CertificateSource::Files(cert.clone(), key.clone()))
            }
            (Some(_), Some(_), Some(_)) => Err(format!(
                "{}: contradicts tls-cert: leave one of them out",
                self.place(self.flags.tls.is_some(), "tls")
            )),
            _ => Err(format!(
                "{}: belongs together with tls-key: give both or neither",
                self.place(false, "tls-cert")
            )),
        }
    }
}

/// Whether an authority can be asked for certificates for these names.
fn names_for_auto(names: &[Pattern]) -> Result<(), String> {
    if names.is_empty() {
        return Err(
            "\"auto\" needs to know for which names: give `names`, such as [\"example.org\"]"
                .to_owned(),
        );
    }
    for name in names {
        match name {
            Pattern::Below(_) => {
                return Err(format!(
                    "\"auto\": {name}: a certificate for all names below one needs entries in DNS (dns-01), which are not made \
                     here: give the names one by one, or tls-cert and tls-key, or tls = \"on-demand\""
                ));
            }
            Pattern::Exact(text) if text.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() => {
                return Err(format!(
                    "\"auto\": {name}: clients that ask for an address name none in the handshake: give a name, or tls-cert and \
                     tls-key in the [[listen]]"
                ));
            }
            Pattern::Exact(_) => {}
        }
    }
    Ok(())
}

fn files_options(keys: &SiteKeys) -> FilesOptions {
    let defaults = FilesOptions::default();
    FilesOptions {
        index: keys.index.clone().unwrap_or(defaults.index),
        listing: keys.listing.unwrap_or(defaults.listing),
        listing_entries_max: keys
            .listing_entries_max
            .map_or(defaults.listing_entries_max, NonZeroUsize::get),
        precompressed: keys.precompressed.unwrap_or(defaults.precompressed),
        programs: defaults.programs,
        compress: defaults.compress,
        compress_bytes_max: keys
            .compress_file_size_max
            .map_or(defaults.compress_bytes_max, Size::bytes),
    }
}
