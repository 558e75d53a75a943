//! From flags and file to the settings of the parts: flags override the file, which overrides the
//! defaults.
//!
//! A contradiction in the result is an error.

mod http3;
mod uplink;

#[cfg(test)]
mod place_tests;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use shortline_link::LinkConfig;
use shortline_sched::units::{Size, Span};
use shortline_web::files::CacheOptions;
use shortline_web::{Clients, Limits};

use super::Args;
use super::acme;
use super::options::{
    AdminOptions, CacheKeys, ClientOptions, ClientWeight, CookieName, LimitOptions, LogOptions,
    SiteKeys, UplinkOptions,
};
use super::sites::keys::{Itself, SiteTables};
use super::sites::{self, CertificateSource, SiteSettings, SitesInput};
use crate::file::{File, Listen};
use shortline_command::CommandError;
use shortline_daemon::file::spot::{KeyError, Spot};
use shortline_daemon::file::{self, Place, Source};
use shortline_daemon::given::{Given, ValueError, count};
use shortline_daemon::keys::Overlay;
use shortline_daemon::sockets::Address;

const LISTEN_DEFAULT: Address = Address::Tcp(SocketAddr::new(
    std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    8080,
));
/// What clients send is as long as others accept it: 8 KiB (nginx, Apache) and more.
const HEADER_BYTES: RangeInclusive<usize> = 8 << 10..=1 << 20;
/// A thousand shares for one address. Beyond that, weights say more.
const USERS_PER_ADDRESS_MAX: u16 = 1024;
const DRAIN_DEFAULT: Duration = Duration::from_secs(30);
const HANDOVER_TIME_DEFAULT: Duration = Duration::from_secs(3600);

/// The complete settings of `shortline serve`, without contradictions.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where connections are accepted.
    pub listen: Vec<Listen>,
    /// Whether these addresses were configured, or are the default.
    pub listen_asked: bool,
    /// The options of the uplink as given, to notice a change.
    pub uplink: UplinkOptions,
    /// The uplink.
    pub link: LinkConfig,
    /// The sites.
    pub sites: Vec<SiteSettings>,
    /// How much is kept of their files.
    pub cache: CacheOptions,
    /// How clients are told apart.
    pub clients: Clients,
    /// The limits.
    pub limits: Limits,
    /// Time that responses under way get after SIGTERM.
    pub drain_time_max: Duration,
    /// The admin endpoint.
    pub admin: AdminOptions,
    /// The access log.
    pub log: LogOptions,
    /// Where the next process comes to take the place of this one.
    pub handover_path: Option<PathBuf>,
    /// Time that responses under way get in a process whose sockets another has taken.
    pub handover_time_max: Duration,
    /// Where certificates by themselves come from.
    pub acme: shortline_acme::Config,
}

/// Reads the file that the flags name, if any, and overrides it with the flags.
///
/// # Errors
/// [`CommandError`]: the file cannot be read, or values do not fit together.
pub fn read(args: &Args) -> Result<Settings, CommandError> {
    let (file, source) = file::read_if_named::<File>(args.config.as_deref())
        .map_err(|error| CommandError::told(error.is_usage(), error))?;
    resolve(args, file, &source).map_err(CommandError::Usage)
}

fn resolve(args: &Args, file: File, source: &Source) -> Result<Settings, String> {
    let (uplink, link) = uplink::resolve(&args.uplink, file.uplink, source)?;
    let limits = args.limits.clone().over(file.limits);
    let place = Place {
        source,
        table: "limits",
    };
    let given = Given {
        flags: &args.limits,
        merged: &limits,
        place: &|by_flag, key| place.of(by_flag, key, key),
    };
    let site_flags = with_auto(args, &file.site)?;
    let sites = sites::resolve(SitesInput {
        flags: &site_flags,
        tables: file.site,
        routes: file.route,
        config: args.config.as_deref(),
        source,
    })?;
    let listen_asked = !(args.listen.is_empty() && file.listen.is_empty());
    let spot = match args.listen.is_empty() {
        true => source.top().key("listen"),
        false => Spot::default(),
    };
    let mut listen = resolve_listen(args, file.listen, source)?;
    http3::resolve(args.http3, &mut listen, link.mode, &spot)?;
    refuse_certificates_without_use(&listen, &sites, (&spot, source))?;
    let acme = acme::resolve(&args.acme, file.acme, source)?;
    refuse_anybodys_names(&sites, &acme, source)?;
    let handover = args.handover.clone().over(file.handover);
    Ok(Settings {
        listen_asked,
        listen,
        uplink,
        link,
        sites,
        cache: cache_options(&args.cache.clone().over(file.cache)),
        clients: resolve_clients(&args.clients, file.clients, source)?,
        drain_time_max: limits.drain_time_max.map_or(DRAIN_DEFAULT, Span::duration),
        limits: resolve_limits(&given)?,
        admin: args.admin.clone().over(file.admin),
        log: args.log.clone().over(file.log),
        handover_path: handover.path.map(|path| path.0),
        handover_time_max: handover
            .time_max
            .map_or(HANDOVER_TIME_DEFAULT, Span::duration),
        acme,
    })
}

/// The flags of the only site, with the names of `--tls-auto`.
fn with_auto(args: &Args, in_file: &SiteTables) -> Result<SiteKeys, String> {
    let mut flags = args.site.clone();
    if args.tls_auto.is_empty() {
        return Ok(flags);
    }
    if let SiteTables::Several(_) = in_file {
        return Err(
            "--tls-auto: the file has several [[site]], and a flag is for none of them: write tls = \"auto\" there"
                .to_owned(),
        );
    }
    flags.names = Some(args.tls_auto.clone());
    flags.tls = Some(Itself::Auto);
    Ok(flags)
}

fn resolve_listen(
    args: &Args,
    in_file: Vec<Listen>,
    source: &Source,
) -> Result<Vec<Listen>, String> {
    for (index, listen) in in_file.iter().enumerate() {
        refuse_contradictions(listen).map_err(|error| {
            let spot = source.top().key("listen").item(index);
            spot.refused(&format!("listen {}", listen.address), &error)
        })?;
    }
    let is_auto = !args.tls_auto.is_empty();
    if args.listen.is_empty() && !in_file.is_empty() {
        return match &args.tls_cert {
            None => Ok(in_file),
            Some(_) => Err(
                "--tls-cert without --listen: the file's [[listen]] have certificates of their own"
                    .to_owned(),
            ),
        };
    }
    if args.listen.is_empty() && is_auto {
        return Ok(listen_of_auto());
    }
    let addresses = match args.listen.as_slice() {
        [] => &[LISTEN_DEFAULT],
        addresses => addresses,
    };
    let with_flags = addresses.iter().map(|address| Listen {
        tls: is_auto.then_some(true),
        tls_cert: args.tls_cert.clone(),
        tls_key: args.tls_key.clone(),
        ..Listen::at(address.clone())
    });
    Ok(with_flags.collect())
}

fn refuse_contradictions(listen: &Listen) -> Result<(), KeyError> {
    let is_told = [
        (
            listen.tls_cert.is_some() != listen.tls_key.is_some(),
            "",
            "tls-cert and tls-key belong together: give both or neither",
        ),
        (
            listen.mode.is_some() && listen.address.tcp().is_some(),
            "mode",
            "is for a socket in the file system: give address = \"unix:/PATH\", or leave it out",
        ),
        (
            listen.proxy_from.as_ref().is_some_and(Vec::is_empty),
            "proxy-from",
            "is empty: name the proxies' networks, such as [\"10.0.0.0/8\"], or leave it out",
        ),
        (
            listen.tls == Some(false) && listen.tls_cert.is_some(),
            "tls",
            "false contradicts tls-cert: leave one of them out",
        ),
    ];
    match is_told.iter().find(|(is_so, ..)| *is_so) {
        Some((_, key, problem)) => Err(KeyError::new(*key, *problem)),
        None => Ok(()),
    }
}

/// The ports of HTTPS and HTTP, where authorities look.
fn listen_of_auto() -> Vec<Listen> {
    let at = |port: u16, tls: bool| Listen {
        tls: Some(tls),
        ..Listen::at(Address::Tcp((Ipv4Addr::UNSPECIFIED, port).into()))
    };
    vec![at(443, true), at(80, false)]
}

/// Certificates of sites need an address that speaks TLS, and such an address needs a certificate.
fn refuse_certificates_without_use(
    listen: &[Listen],
    sites: &[SiteSettings],
    (spot, source): (&Spot, &Source),
) -> Result<(), String> {
    let own = |site: &SiteSettings| match &site.certificate {
        CertificateSource::Listeners => None,
        CertificateSource::Files(cert, _) => {
            Some(("tls-cert", format!("certificate {}", cert.display())))
        }
        CertificateSource::Auto => Some(("tls", format!("tls = \"auto\" for {}", site.names[0]))),
        CertificateSource::OnDemand => Some(("tls", "tls = \"on-demand\"".to_owned())),
    };
    let of_clients = |site: &SiteSettings| {
        let is_given = site.client_auth.is_some();
        is_given.then(|| ("client-ca", "client-ca".to_owned()))
    };
    let first = |what: &dyn Fn(&SiteSettings) -> Option<(&'static str, String)>| {
        let mut sites = sites.iter().enumerate();
        sites.find_map(|(index, site)| what(site).map(|(key, what)| (index, key, what)))
    };
    let bare = |listen: &Listen| listen.tls == Some(true) && listen.tls_cert.is_none();
    match first(&own).or_else(|| first(&of_clients)) {
        Some((index, key, what)) if !listen.iter().any(Listen::speaks_tls) => Err(format!(
            "{}{what}: no address speaks TLS: add tls = true to a [[listen]], such as that with address = \"0.0.0.0:443\"",
            source.top().key("site").item(index).key(key)
        )),
        Some(_) => Ok(()),
        None => match listen.iter().position(bare) {
            None => Ok(()),
            Some(index) => Err(format!(
                "{}listen {}: tls = true: there is no certificate: give tls-cert and tls-key here or in a [[site]], or tls = \
                 \"auto\" there",
                spot.item(index).key("tls"),
                listen[index].address
            )),
        },
    }
}

/// A site that answers for all names needs somebody who says which of them are its own.
fn refuse_anybodys_names(
    sites: &[SiteSettings],
    acme: &shortline_acme::Config,
    source: &Source,
) -> Result<(), String> {
    let is_open = |site: &SiteSettings| {
        site.names.is_empty() && site.certificate == CertificateSource::OnDemand
    };
    match (&acme.on_demand.ask, sites.iter().position(is_open)) {
        (None, Some(index)) => Err(format!(
            "{}tls = \"on-demand\": a site without names would get a certificate for any name: give it names, such as \
             [\"*.example.org\"], or `ask` in [acme], a URL that knows which are allowed",
            source.top().key("site").item(index).key("tls")
        )),
        _ => Ok(()),
    }
}

fn cache_options(keys: &CacheKeys) -> CacheOptions {
    let defaults = CacheOptions::default();
    let bytes = |size: Option<Size>, default| size.map_or(default, Size::bytes);
    CacheOptions {
        file_bytes_max: bytes(keys.file_size_max, defaults.file_bytes_max),
        bytes_max: bytes(keys.size_max, defaults.bytes_max),
        files_max: keys.files_max.unwrap_or(defaults.files_max),
        open_files_max: keys.open_files_max.unwrap_or(defaults.open_files_max),
    }
}

fn resolve_clients(
    flags: &ClientOptions,
    in_file: ClientOptions,
    source: &Source,
) -> Result<Clients, String> {
    let merged = flags.clone().over(in_file);
    let defaults = Clients::default();
    let proxies = merged.trusted_proxies.unwrap_or_default();
    let place = Place {
        source,
        table: "clients",
    };
    let users_per_address = merged
        .users_per_address
        .unwrap_or(defaults.users_per_address);
    if users_per_address.get() > USERS_PER_ADDRESS_MAX {
        let by_flag = flags.users_per_address.is_some();
        return Err(format!(
            "{}: must be 1 to {USERS_PER_ADDRESS_MAX}",
            place.of(by_flag, "users-per-address", "users-per-address")
        ));
    }
    if merged.user_cookie.is_some() && users_per_address == defaults.users_per_address {
        let by_flag = flags.user_cookie.is_some();
        return Err(format!(
            "{}: has no effect alone: add --users-per-address N, the most shares of one address, such as 8",
            place.of(by_flag, "user-cookie", "user-cookie")
        ));
    }
    if merged.header.is_some() && proxies.is_empty() {
        return Err(format!(
            "{}: is trusted from nobody: add --trusted-proxy NETWORK for the proxies that set it, or leave it out",
            place.of(flags.header.is_some(), "client-header", "header")
        ));
    }
    let weights = merged.weights.unwrap_or_default();
    Ok(Clients {
        proxies,
        header: merged.header.unwrap_or(defaults.header),
        weights: weights
            .into_iter()
            .map(|ClientWeight(network, weight)| (network, weight))
            .collect(),
        users_per_address,
        user_cookie: merged.user_cookie.map(|CookieName(name)| name),
    })
}

fn resolve_limits(given: &Given<'_, LimitOptions>) -> Result<Limits, ValueError> {
    let defaults = Limits::default();
    let merged = given.merged;
    Ok(Limits {
        connections_max: count(merged.connections_max, defaults.connections_max),
        connections_per_address_max: count(
            merged.connections_per_address_max,
            defaults.connections_per_address_max,
        ),
        header_bytes_max: given.size(
            "header-size-max",
            |options| options.header_size_max,
            HEADER_BYTES,
            defaults.header_bytes_max,
        )?,
        header_fields_max: count(merged.header_fields_max, defaults.header_fields_max),
        header_time_max: given.time(
            "header-time-max",
            |options| options.header_time_max,
            defaults.header_time_max,
        )?,
        idle_time_max: given.time(
            "idle-time-max",
            |options| options.idle_time_max,
            defaults.idle_time_max,
        )?,
        stall_time_max: given.time(
            "stall-time-max",
            |options| options.stall_time_max,
            defaults.stall_time_max,
        )?,
        streams_max: merged
            .streams_max
            .map_or(defaults.streams_max, NonZeroU32::get),
        disk_reads_max: count(merged.disk_reads_max, defaults.disk_reads_max),
        compressions_max: count(merged.compressions_max, defaults.compressions_max),
    })
}
