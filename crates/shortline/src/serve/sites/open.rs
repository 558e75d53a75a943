//! From the settings of sites to sites that are served: folders opened, users and certificates read, or taken from who keeps them, and
//! servers that decide who may ask.
//!
//! A folder of several sites is opened once, and a certificate of several is read once. With thousands of them reading
//! is work, which all processors share.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use rustls::sign::CertifiedKey;
use shortline_acme::Served;
use shortline_tls::names::Names;
use shortline_tls::{Certificate, CertificateTable, ClientAuth, ClientAuthFiles};
use shortline_web::files::{CacheOptions, FileCache, Files, FilesOptions};
use shortline_web::programs::Programs;
use shortline_web::proxy::UpstreamOptions;
use shortline_web::proxy::routes::{Route, Routes};
use shortline_web::proxy::upstream::Upstream;
use shortline_web::rules::Rules;
use shortline_web::rules::auth::users::Users;
use shortline_web::sites::{Site, SiteCertificate, Sites};

use super::super::routes::RouteSettings;
use super::keys::PlainHttp;
use super::{CertificateSource, SiteSettings};

/// The sites, and the certificates of those that have their own.
pub struct OpenSites {
    /// The sites.
    pub sites: Sites,
    /// The certificates by name.
    pub certificates: CertificateTable,
    /// Those that are from files, each once.
    pub files: Vec<Served>,
}

/// The largest file of users: some ten thousand.
const USERS_BYTES_MAX: u64 = 4 << 20;

/// A certificate's file and its key's.
type Pair = (PathBuf, PathBuf);
/// What is in them, and as it is served.
type Loaded = (CertifiedKey, Arc<Certificate>);

/// What sites are opened with.
pub struct Around<'a> {
    /// How much is kept of their files.
    pub cache: &'a CacheOptions,
    /// The routes of each, open.
    pub routes: &'a [Routes],
    /// Where HTTPS is, if anywhere.
    pub https_port: Option<u16>,
    /// The certificates of names that an authority issues them for.
    pub kept: &'a HashMap<String, Arc<Certificate>>,
}

/// Opens sites.
///
/// # Errors
/// A folder or certificate that cannot be used, or two sites of one name.
pub fn open(settings: &[SiteSettings], around: &Around<'_>) -> Result<OpenSites, String> {
    let keys = load_all(settings)?;
    let mut folders = Folders::new(around.cache);
    let mut certificates = CertificateTable::default();
    let mut files = Vec::new();
    let mut users = UserFiles::default();
    let mut clients = HashMap::new();
    let mut servers = Servers::default();
    let mut sites = Vec::with_capacity(settings.len());
    for (site, routes) in settings.iter().zip(around.routes) {
        let routes = routes.map(|route| folders.with_programs(site, route))?;
        let certificate = certificate(&mut certificates, site, &keys, around.kept)?;
        let redirects = site.plain_http == PlainHttp::Redirect;
        let opened = Site {
            names: site.names.clone(),
            files: folders.open(site)?,
            routes,
            rules: servers.open(users.rules(site)?)?,
            pages: site.pages.clone(),
            compress: site.compress,
            limits: site.limits.clone(),
            certificate,
            client_auth: client_auth(&mut clients, site)?,
            https_port: around.https_port.filter(|_| redirects),
            plain_until_certificate: site.plain_until_certificate,
            transport_security: site.hsts.as_ref().map(|hsts| hsts.0.clone()),
        };
        files.extend(served(site, &opened));
        sites.push(opened);
    }
    let mut seen = HashSet::new();
    files.retain(|one: &Served| seen.insert(Arc::as_ptr(&one.certificate)));
    Ok(OpenSites {
        sites: Sites::new(sites).map_err(|error| error.to_string())?,
        certificates,
        files,
    })
}

/// The certificate of a site, if it is from a file.
fn served(settings: &SiteSettings, site: &Site) -> Option<Served> {
    match (&settings.certificate, &site.certificate) {
        (CertificateSource::Files(file, _), SiteCertificate::Own(certificate)) => Some(Served {
            name: site.label(),
            file: Some(file.clone()),
            certificate: Arc::clone(certificate),
        }),
        _ => None,
    }
}

/// The certificate of a site, which is entered in the table.
fn certificate(
    table: &mut CertificateTable,
    site: &SiteSettings,
    files: &HashMap<Pair, Loaded>,
    kept: &HashMap<String, Arc<Certificate>>,
) -> Result<SiteCertificate, String> {
    match &site.certificate {
        CertificateSource::Listeners => Ok(SiteCertificate::Listeners),
        CertificateSource::Files(cert, key) => {
            let (key, certificate) = &files[&(cert.clone(), key.clone())];
            shortline_tls::check_names(key, &site.names)
                .map_err(|problem| format!("certificate {}: {problem}", cert.display()))?;
            if site.names.is_empty() {
                table.fallback = Some(Arc::clone(certificate));
            }
            for name in &site.names {
                table.by_name.insert(name, Arc::clone(certificate));
            }
            Ok(SiteCertificate::Own(Arc::clone(certificate)))
        }
        CertificateSource::OnDemand => Ok(SiteCertificate::OnDemand),
        CertificateSource::Auto => {
            let mut names = Names::default();
            for name in &site.names {
                let certificate = kept.get(&name.to_string()).cloned().unwrap_or_default();
                table.by_name.insert(name, Arc::clone(&certificate));
                names.insert(name, certificate);
            }
            Ok(SiteCertificate::ByName(names))
        }
    }
}

/// Which certificates the clients of a site must or may have. Sites that say the same share it, so that a connection for one is
/// good for the other.
fn client_auth(
    known: &mut HashMap<ClientAuthFiles, Arc<ClientAuth>>,
    site: &SiteSettings,
) -> Result<Option<Arc<ClientAuth>>, String> {
    let Some(files) = &site.client_auth else {
        return Ok(None);
    };
    if let Some(auth) = known.get(files) {
        return Ok(Some(Arc::clone(auth)));
    }
    let auth = ClientAuth::load(files).map_err(|error| error.to_string())?;
    known.insert(files.clone(), Arc::clone(&auth));
    Ok(Some(auth))
}

/// The files of users that are read, each once.
#[derive(Default)]
struct UserFiles(HashMap<PathBuf, Arc<Users>>);

impl UserFiles {
    /// The rules of a site with their users.
    fn rules(&mut self, site: &SiteSettings) -> Result<Rules, String> {
        let mut rules = site.rules.clone();
        rules.read_users(|file| self.read(file))?;
        Ok(rules)
    }

    fn read(&mut self, file: &Path) -> Result<Arc<Users>, String> {
        if let Some(users) = self.0.get(file) {
            return Ok(Arc::clone(users));
        }
        let told = |problem: &dyn Display| format!("users {}: {problem}", file.display());
        let length = fs::metadata(file).map_err(|error| told(&error))?.len();
        if length > USERS_BYTES_MAX {
            return Err(told(&"is larger than 4MiB: it is no file of users"));
        }
        let text = fs::read_to_string(file).map_err(|error| told(&error))?;
        let users = Users::parse(&text).map_err(|error| told(&error))?;
        if users.is_empty() {
            return Err(told(&"names no user: add one with htpasswd -B"));
        }
        let users = Arc::new(users);
        self.0.insert(file.to_owned(), Arc::clone(&users));
        Ok(users)
    }
}

/// The servers that rules ask who may ask, each opened once.
#[derive(Default)]
struct Servers(HashMap<String, Vec<(UpstreamOptions, Arc<Upstream>)>>);

impl Servers {
    /// The rules with their servers.
    fn open(&mut self, mut rules: Rules) -> Result<Rules, String> {
        rules.open_servers(|options| self.server(options))?;
        Ok(rules)
    }

    fn server(&mut self, options: &UpstreamOptions) -> Result<Arc<Upstream>, String> {
        let addresses = options.addresses().map(ToString::to_string);
        let label = addresses.collect::<Vec<_>>().join(", ");
        let open = self.0.entry(label.clone()).or_default();
        if let Some((_, server)) = open.iter().find(|(known, _)| known == options) {
            return Ok(Arc::clone(server));
        }
        let server = Upstream::open(options.clone());
        let server = server.map_err(|error| format!("forward-auth {label}: {error}"))?;
        open.push((options.clone(), Arc::clone(&server)));
        Ok(server)
    }
}

/// The folders that are open, with what is served of them.
struct Folders {
    cache: Arc<FileCache>,
    open: HashMap<PathBuf, Vec<(FilesOptions, Files)>>,
}

impl Folders {
    fn new(cache: &CacheOptions) -> Self {
        Self {
            cache: FileCache::new(cache),
            open: HashMap::new(),
        }
    }

    /// The files of a site. `None` if no folder was named.
    fn open(&mut self, site: &SiteSettings) -> Result<Option<Files>, String> {
        let Some(folder) = site.root.folder() else {
            return Ok(None);
        };
        self.open_folder(folder, &site.files).map(Some)
    }

    /// A route with the folder of its programs, if its backends run some.
    fn with_programs(&mut self, site: &SiteSettings, route: Route) -> Result<Route, String> {
        let settings = site.routes.iter().find(|known| known.path() == route.path);
        let Some(settings) = settings.and_then(RouteSettings::programs) else {
            return Ok(route);
        };
        let folder = settings.root.as_deref().unwrap_or(Path::new("."));
        let files = self.open_folder(folder, &site.files)?;
        let named = |error: &dyn std::fmt::Display| format!("{}: {error}", folder.display());
        let root = match &settings.upstream_root {
            Some(root) => root.clone(),
            // The very folder that is open, whatever its name stands for later.
            None => folder
                .canonicalize()
                .map_err(|error| named(&error))?
                .into_os_string()
                .into_string()
                .map_err(|_| named(&"the path is not UTF-8, which programs are told"))?,
        };
        let programs = Programs {
            files,
            root: root.into(),
            suffix: settings.suffix.clone(),
            index: settings.index.clone(),
            front: settings.front.clone(),
            set: settings.variables.clone().into(),
        };
        Ok(Route {
            programs: Some(Arc::new(programs)),
            ..route
        })
    }

    fn open_folder(&mut self, folder: &Path, options: &FilesOptions) -> Result<Files, String> {
        let open = self.open.entry(folder.to_owned()).or_default();
        if let Some((_, files)) = open.iter().find(|(known, _)| known == options) {
            return Ok(files.clone());
        }
        let files = Files::open(folder, options.clone(), &self.cache)
            .map_err(|error| meant_by(folder).unwrap_or_else(|| error.to_string()))?;
        open.push((options.clone(), files.clone()));
        Ok(files)
    }
}

/// What somebody meant by a root that is no folder.
fn meant_by(root: &Path) -> Option<String> {
    let named = root.display();
    let text = root.to_string_lossy();
    if text.contains("://") {
        return Some(format!(
            "site root {named}: is a URL: a server behind this one is `upstream` of a [[route]] in the file that \
             --config names"
        ));
    }
    if !root.is_file() {
        return None;
    }
    Some(
        match root.extension().is_some_and(|ending| ending == "toml") {
            true => format!(
                "site root {named}: is a file: a configuration is named by --config {named}"
            ),
            false => format!("site root {named}: is a file: give its folder"),
        },
    )
}

/// Reads each certificate of a site once.
fn load_all(settings: &[SiteSettings]) -> Result<HashMap<Pair, Loaded>, String> {
    let pair = |site: &SiteSettings| match &site.certificate {
        CertificateSource::Files(cert, key) => Some((cert.clone(), key.clone())),
        CertificateSource::Listeners | CertificateSource::Auto | CertificateSource::OnDemand => {
            None
        }
    };
    let mut pairs: Vec<Pair> = settings.iter().filter_map(pair).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let part = pairs.len().div_ceil(workers).max(1);
    let loaded: Result<Vec<_>, String> = thread::scope(|scope| {
        let parts = pairs.chunks(part);
        let reading: Vec<_> = parts.map(|part| scope.spawn(|| load_part(part))).collect();
        let parts = reading.into_iter().map(|reading| {
            let loaded = reading.join();
            loaded.unwrap_or_else(|_| Err("a certificate: reading it failed".to_owned()))
        });
        parts.collect()
    });
    Ok(loaded?.into_iter().flatten().collect())
}

fn load_part(pairs: &[Pair]) -> Result<Vec<(Pair, Loaded)>, String> {
    let load = |pair: &Pair| {
        let (cert, key) = pair;
        let loaded = shortline_tls::load(cert, key).map_err(|error| error.to_string())?;
        let certificate = Certificate::new(loaded.clone());
        Ok((pair.clone(), (loaded, certificate)))
    };
    pairs.iter().map(load).collect()
}
