//! `[[route]]` of the configuration: which requests go to which application servers.
//!
//! Only the file has routes: a flag could not say which route it is for. A route with a table
//! `gate` asks a gate when its requests may go to the backends.

pub mod cache;
pub mod fastcgi;
mod gates;
pub mod keys;
pub mod mirror;
#[cfg(test)]
mod tests;
mod upstreams;
mod values;

use std::fmt;
use std::path::Path;

use shortline_daemon::file::spot::{KeyError, Spot};
use shortline_tls::names::Pattern;
use shortline_web::proxy::mirror::MirrorOptions;
use shortline_web::proxy::{BackendOptions, HttpVersion, UpstreamAddress, UpstreamOptions};
use shortline_web::response_cache::ResponseCacheOptions;

use crate::gate::settings::RouteGate;
use cache::CacheTable;
use fastcgi::{FastCgiKeys, ProgramSettings};
pub use gates::{CacheStatus, GateStatus, MirrorStatus, OpenRoutes};
use keys::RouteKeys;
use mirror::MirrorKeys;

/// A route as it is used.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteSettings {
    path: String,
    /// Where it stands in the file.
    spot: Spot,
    /// How messages and pages call it: its path, behind the name of its site if that has one.
    label: String,
    upstream: UpstreamOptions,
    /// Who decides when a request may go. `None`: it goes at once.
    gate: Option<RouteGate>,
    /// The programs that the backends run, if they speak FastCGI.
    programs: Option<ProgramSettings>,
    /// What is kept of its responses, if it is to be.
    cache: Option<ResponseCacheOptions>,
    /// Where its requests are copied to, if they are.
    mirror: Option<MirrorOptions>,
}

/// The routes of a site, each with its place in the file. Those of other sites are `known`.
///
/// # Errors
/// Names a path that is given twice, or a key that cannot be used, and its line.
pub fn resolve<'a>(
    routes: Vec<(Spot, RouteKeys)>,
    site: Option<&Pattern>,
    known: impl Iterator<Item = &'a RouteSettings> + Clone,
) -> Result<Vec<RouteSettings>, String> {
    let mut resolved: Vec<RouteSettings> = Vec::new();
    for (spot, keys) in routes {
        let path = keys.path.0.clone();
        let label = site.map_or_else(|| path.clone(), |site| format!("{site}{path}"));
        let name = format!("route {label}");
        if let Some(first) = resolved.iter().find(|known| known.path == path) {
            let problem = "appears twice: give each path once, with all its backends";
            let problem = match first.spot.line() {
                Some(line) => format!("{problem}; the first is in line {line}"),
                None => problem.to_owned(),
            };
            return Err(spot.refused(&name, &KeyError::new("", problem)));
        }
        let gate = keys.gate.as_deref().map(|options| {
            let place = |key: &str| format!("{}{name}: gate.{key}", spot.key("gate").key(key));
            RouteGate::resolve(options, &place)
        });
        let gate = gate.transpose()?;
        let refused = |error| spot.refused(&name, &error);
        let route = RouteSettings::new(path, label, gate, keys).map_err(refused)?;
        gates::refuse_two_of_a_backend(known.clone(), &route).map_err(refused)?;
        gates::refuse_two_of_a_backend(resolved.iter(), &route).map_err(refused)?;
        refuse_two_of_a_folder(known.clone(), &route).map_err(refused)?;
        refuse_two_of_a_folder(resolved.iter(), &route).map_err(refused)?;
        resolved.push(RouteSettings { spot, ..route });
    }
    Ok(resolved)
}

/// Refuses a second cache in a folder. Each would remove what the other keeps.
fn refuse_two_of_a_folder<'a>(
    mut routes: impl Iterator<Item = &'a RouteSettings>,
    new: &RouteSettings,
) -> Result<(), KeyError> {
    let Some(folder) = new.cache_folder() else {
        return Ok(());
    };
    match routes.find(|route| route.cache_folder() == Some(folder)) {
        Some(other) => Err(KeyError::new(
            "cache.disk.folder",
            format!(
                "{} is the folder of route {}, too: give each its own",
                folder.display(),
                other.label
            ),
        )),
        None => Ok(()),
    }
}

/// The programs of a route, which must be there if and only if its backends speak FastCGI.
fn programs(keys: &RouteKeys) -> Result<Option<ProgramSettings>, KeyError> {
    if keys.speaks_both() {
        return Err(KeyError::new(
            "upstream",
            "some servers speak FastCGI and some HTTP: give each kind a route of its own",
        ));
    }
    match (keys.speaks_fastcgi(), &keys.fastcgi) {
        (true, fastcgi) => {
            let fastcgi = fastcgi.clone().unwrap_or_default();
            Ok(Some(fastcgi.resolve(&keys.path.0)))
        }
        (false, Some(FastCgiKeys { .. })) => Err(KeyError::new(
            "fastcgi",
            "no server speaks FastCGI: give upstream = [\"fastcgi:///run/php/php-fpm.sock\"] or leave it out",
        )),
        (false, None) => Ok(None),
    }
}

/// Where its requests are copied to, if they are.
fn mirror(keys: &RouteKeys) -> Result<Option<MirrorOptions>, KeyError> {
    match &keys.mirror {
        Some(_) if keys.speaks_fastcgi() => Err(KeyError::new(
            "mirror",
            "copies are of HTTP, and the servers speak FastCGI: leave it out",
        )),
        mirror => mirror.as_ref().map(MirrorKeys::resolve).transpose(),
    }
}

impl RouteSettings {
    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    fn cache_folder(&self) -> Option<&Path> {
        let folder = self.cache.as_ref()?.folder.as_ref()?;
        Some(&folder.path)
    }

    /// The programs that the backends run, if they do.
    pub fn programs(&self) -> Option<&ProgramSettings> {
        self.programs.as_ref()
    }

    /// The same, to be completed.
    pub fn programs_mut(&mut self) -> Option<&mut ProgramSettings> {
        self.programs.as_mut()
    }

    /// A line about it, with its place in the file.
    pub fn named(&self, problem: &dyn fmt::Display) -> String {
        format!("{}route {}: {problem}", self.spot, self.label)
    }

    /// A line about a key of it that is refused.
    pub fn refused(&self, error: &KeyError) -> String {
        self.spot.refused(&format!("route {}", self.label), error)
    }

    fn new(
        path: String,
        label: String,
        gate: Option<RouteGate>,
        keys: RouteKeys,
    ) -> Result<Self, KeyError> {
        let of_http2 = keys.of_http2();
        keys.refuse_idle()?;
        let route = Self {
            path,
            spot: Spot::default(),
            label,
            gate,
            programs: programs(&keys)?,
            mirror: mirror(&keys)?,
            cache: keys.cache.clone().map(CacheTable::resolve).transpose()?,
            upstream: keys.options(),
        };
        route.refuse_idle_authorities()?;
        route.refuse_other_version(of_http2)?;
        route.refuse_proxy_protocol()?;
        route.refuse_unsure_services()?;
        Ok(route)
    }

    /// Refuses a version of HTTP that a server's address contradicts, and a key that is of no use
    /// with the version.
    fn refuse_other_version(&self, of_http2: Option<&'static str>) -> Result<(), KeyError> {
        let options = &self.upstream;
        let mut backends = options.addresses();
        if options.http == HttpVersion::One
            && let Some(other) = backends.find(|one| one.is_h2c())
        {
            return Err(KeyError::new(
                "http",
                format!(
                    "\"1\" contradicts upstream {other}, which is HTTP/2: give http:// instead of h2c://, or leave http out"
                ),
            ));
        }
        if options.http == HttpVersion::Two && options.speak_fastcgi() {
            return Err(KeyError::new(
                "http",
                "the servers speak FastCGI: leave it out",
            ));
        }
        let has_http2 = |address: &UpstreamAddress| {
            let may = address.has_tls() && options.http != HttpVersion::One;
            address.is_h2c() || may || options.http == HttpVersion::Two
        };
        match of_http2 {
            Some(key) if !options.addresses().any(has_http2) => Err(KeyError::new(
                key,
                "is for servers with HTTP/2: give upstream = [\"h2c://host:port\"] or http = \"2\", or leave it out",
            )),
            _ => Ok(()),
        }
    }

    /// Refuses to trust names of DNS, which can be forged, as far as any authority signs certificates for them.
    fn refuse_unsure_services(&self) -> Result<(), KeyError> {
        let options = &self.upstream;
        let mut backends = options.backends.iter();
        let unsure = |one: &&BackendOptions| one.is_service() && one.address.has_tls();
        match backends.find(unsure) {
            Some(service) if options.authorities.is_none() => Err(KeyError::new(
                "upstream",
                format!(
                    "{}: the names of its servers come from DNS, and who forges them has a certificate for a name of his \
                     own: give upstream-ca, the authorities that sign your servers' certificates alone",
                    service.address
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Refuses to announce clients where a connection is for many of them, or where nobody understands it.
    fn refuse_proxy_protocol(&self) -> Result<(), KeyError> {
        let options = &self.upstream;
        let mut backends = options.backends.iter();
        let Some(backend) = backends.find(|one| one.send_proxy.is_some()) else {
            return Ok(());
        };
        let why = match &backend.address {
            address if address.speaks_fastcgi() => {
                "is for servers that speak HTTP; FastCGI tells the program who the client is in REMOTE_ADDR: leave it out"
            }
            address if address.is_h2c() => {
                "a connection of HTTP/2 is for many clients, and would announce one of them: give http:// instead of \
                 h2c://, or leave it out"
            }
            _ if options.http == HttpVersion::Two => {
                "a connection of HTTP/2 is for many clients, and would announce one of them: give http = \"1\", or leave \
                 it out"
            }
            _ => return Ok(()),
        };
        let problem = format!("{}: send-proxy: {why}", backend.address);
        Err(KeyError::new("upstream", problem))
    }

    fn refuse_idle_authorities(&self) -> Result<(), KeyError> {
        let has_tls = UpstreamAddress::has_tls;
        if self.upstream.authorities.is_some() && !self.upstream.addresses().any(has_tls) {
            return Err(KeyError::new(
                "upstream-ca",
                "is for servers with TLS: give upstream = [\"https://host:port\"], or leave it out",
            ));
        }
        Ok(())
    }
}
