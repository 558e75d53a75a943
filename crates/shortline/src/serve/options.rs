//! Every option of `shortline serve`, each defined once: as a flag and as a key of the
//! configuration file (`--stall-time-max 60s` is `stall-time-max = "60s"` in `[limits]`).
//!
//! What is left out is `None` here; the defaults are those of the rooms that use the values.

mod admin;
mod handover;

use std::num::{NonZeroU16, NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;

use http::HeaderName;
use serde::{Deserialize, Deserializer};
use shortline_link::LinkMode;
use shortline_sched::units::{Rate, Size, Span, UnitError, excerpt};
use shortline_sched::{Aging, Growing, Network, Policy};

use shortline_daemon::keys::{all_from_text, from_text, one_or_more, some_from_text};
use shortline_daemon::overlay;
use shortline_tls::ClientAuthMode;
use shortline_tls::names::Pattern;

use super::routes::keys::RouteKeys;
use super::sites::keys::{
    CompressWhat, Itself, PlainHttp, SiteLimitKeys, SiteLogKeys, TransportSecurity,
};
use super::sites::rules::{RuleKeys, guards::PageKeys};

pub use admin::{AdminOptions, LogOptions};
pub use handover::HandoverOptions;

/// `[uplink]`: who sends next, and how fast. Those that are for research come last.
#[derive(Clone, Debug, Default, PartialEq, clap::Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Uplink")]
pub struct UplinkOptions {
    /// The uplink's rate, such as 100mbit: responses leave exactly as fast as it drains them.
    /// `auto` finds it out while serving; `off` turns scheduling off [default: auto]
    ///
    /// A rate means link mode `paced`. The two words are also link modes.
    #[arg(long = "uplink", value_name = "RATE|auto|off")]
    pub rate: Option<Uplink>,
    /// The lowest rate that auto may find [default: 100kbit]
    ///
    /// Set it if clients or networks might mislead the search.
    #[arg(long = "uplink-rate-min", value_name = "RATE")]
    pub rate_min: Option<Rate>,
    /// Who is served first: shares (a fair share per client, and the shortest first within it), srpt
    /// (the fewest bytes left), fair (each in turn), las (the fewest bytes sent), fifo, or one for
    /// research [default: shares]
    ///
    /// Those for research are psjf, sjf, fsp, boost, gittins, bands (also bands:1KB,5KB or, learnt, bands:6),
    /// quickfix (also quickfix:2KB), srrt, stert, fcf and swift. With link mode bands the default is bands.
    #[arg(long, value_name = "NAME")]
    pub policy: Option<Policy>,
    /// What a client may get in a row before its other responses wait behind clients that ask for
    /// less (policy shares) [default: 128KiB]
    ///
    /// With 0 no client ever stands back.
    #[arg(long, value_name = "SIZE")]
    pub burst: Option<Size>,
    /// Give an eighth of the uplink to responses that have waited X times their expected service
    /// time
    #[arg(long, value_name = "X")]
    pub aging: Option<Aging>,
    /// Responses that may wait at once; one more is refused [default: 100000]
    #[arg(long, value_name = "N")]
    pub jobs_max: Option<NonZeroUsize>,
    /// Schedule clients on the loopback interface too [default: false]
    #[arg(
        long = "uplink-loopback",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        hide_possible_values = true
    )]
    pub loopback: Option<bool>,
    /// The uplink's interface [default: the one with the address that clients connect to; bands:
    /// the only one whose qdisc has bands]
    ///
    /// Its counters correct the pacer, and its qdisc has the bands.
    #[arg(long = "uplink-device", value_name = "NAME")]
    pub device: Option<String>,
    /// Bytes per packet that RATE counts in addition to its IP bytes [default: 14]
    ///
    /// 14 is Ethernet's header; at most 1KiB.
    #[arg(long = "uplink-packet-header", value_name = "SIZE")]
    pub packet_header: Option<Size>,
    /// How to keep the kernel's queue short: auto, paced, slots or off; or bands, to let the kernel
    /// order it [default: what --uplink means; slots if only --slots is given]
    ///
    /// `paced` sends at the uplink's rate, which is given, and `auto` at the rate that it finds.
    /// `slots` limits the responses with unacknowledged bytes, and `off` limits nothing. With
    /// `bands` the kernel's qdisc orders packets.
    #[arg(long, value_name = "MODE", value_parser = link_mode)]
    #[serde(deserialize_with = "some_from_text")]
    pub link_mode: Option<LinkMode>,
    /// Raise a response's priority with its age, up to the highest once it has waited X times its
    /// service time; replaces --aging
    ///
    /// Needs a rate.
    #[arg(long, value_name = "X")]
    pub growing: Option<Growing>,
    /// Responses that may hold unacknowledged bytes in the kernel; implies link mode slots if no
    /// mode is given [default: 2]
    #[arg(long, value_name = "N")]
    pub slots: Option<NonZeroUsize>,
    /// Give SYN-ACKs and handshakes their own band above all others (bands) [default: true]
    ///
    /// Otherwise they wait with the largest responses.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub control_band: Option<bool>,
    /// Body bytes of one grant [default: slots 14480; paced one to three segments, or what passes in
    /// 0.1 ms; bands 8192]
    ///
    /// Paced, it is what passes in 0.35 ms, from one segment to three, or more where more passes in 0.1 ms. At most 1MiB.
    /// `auto` uses the quantum of `paced` once it has found a rate.
    #[arg(long, value_name = "SIZE")]
    pub quantum: Option<Size>,
}

/// `[site]`, or each of several `[[site]]`: the files, if any. The keys that only the file has come last.
#[derive(Clone, Debug, Default, PartialEq, clap::Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Site")]
pub struct SiteKeys {
    /// The folder whose files are served [default: the current one; with --config none]
    ///
    /// Names with a leading dot are hidden. Links that lead out of the folder are refused.
    #[arg(value_name = "ROOT", help_heading = None::<&str>)]
    pub root: Option<PathBuf>,
    /// Allow ROOT to be a folder of the system, such as / or /etc [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub allow_system_root: Option<bool>,
    /// Names tried in a folder, first match wins [default: index.html]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    #[serde(deserialize_with = "all_from_text")]
    pub index: Option<Vec<String>>,
    /// List folders that have no index file [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub listing: Option<bool>,
    /// The most names listed of one folder [default: 2000]
    #[arg(long, value_name = "N")]
    pub listing_entries_max: Option<NonZeroUsize>,
    /// Offer .zst, .br and .gz siblings [default: true]
    ///
    /// A sibling goes to clients that accept its coding.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub precompressed: Option<bool>,
    /// Compress on the fly what gains by it: files, all (responses of backends, too) or off [default: files]
    ///
    /// By zstd, br or gzip, as the client takes it. A file is compressed once and kept in memory; one with a sibling is not.
    #[arg(long, value_name = "WHAT")]
    #[serde(deserialize_with = "some_from_text")]
    pub compress: Option<CompressWhat>,
    /// The largest file that is compressed on the fly [default: 8MiB]
    #[arg(long, value_name = "SIZE")]
    pub compress_file_size_max: Option<Size>,
    /// Ask clients for a certificate from an authority in this file (PEM, one or several)
    ///
    /// Plain HTTP is then redirected. Backends are told who the client is, in X-Client-Cert-Subject and -Fingerprint.
    #[arg(long, value_name = "FILE")]
    pub client_ca: Option<PathBuf>,
    /// What a client without a certificate gets: require (no connection) or request (what others get) [default: require]
    #[arg(long, value_name = "WHAT")]
    #[serde(deserialize_with = "some_from_text")]
    pub client_auth: Option<ClientAuthMode>,
    /// The revocation lists of these authorities (PEM, one of each)
    ///
    /// A certificate on a list is refused, and so is one of an authority without a list or with one that is past its next update.
    #[arg(long, value_name = "FILE")]
    pub client_crl: Option<PathBuf>,
    /// The names that it answers for. None: all that no other site has.
    #[arg(skip)]
    #[serde(deserialize_with = "all_from_text")]
    pub names: Option<Vec<Pattern>>,
    /// Its certificate chain, PEM, for clients that ask for one of its names.
    #[arg(skip)]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's key, PEM.
    #[arg(skip)]
    pub tls_key: Option<PathBuf>,
    /// Certificates by themselves.
    #[arg(skip)]
    #[serde(deserialize_with = "some_from_text")]
    pub tls: Option<Itself>,
    /// What plain HTTP gets.
    #[arg(skip)]
    pub plain_http: Option<PlainHttp>,
    /// The field Strict-Transport-Security over TLS.
    #[arg(skip)]
    #[serde(deserialize_with = "some_from_text")]
    pub hsts: Option<TransportSecurity>,
    /// Pages in the place of errors' texts.
    #[arg(skip)]
    pub error_page: Option<PageKeys>,
    /// Its own access log.
    #[arg(skip)]
    pub log: Option<SiteLogKeys>,
    /// What it may take.
    #[arg(skip)]
    pub limits: Option<SiteLimitKeys>,
    /// `[[site.route]]`
    #[arg(skip)]
    #[serde(deserialize_with = "one_or_more")]
    pub route: Option<Vec<RouteKeys>>,
    /// `[[site.rule]]`
    #[arg(skip)]
    #[serde(deserialize_with = "one_or_more")]
    pub rule: Option<Vec<RuleKeys>>,
}

/// `[cache]`: the files kept in memory.
#[derive(Clone, Debug, Default, PartialEq, clap::Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Site")]
pub struct CacheKeys {
    /// Keep files up to this size in memory [default: 1MiB]
    ///
    /// After a second at most a file is looked up again.
    #[arg(long = "cache-file-size-max", value_name = "SIZE")]
    pub file_size_max: Option<Size>,
    /// The size of all files kept in memory together [default: 128MiB]
    ///
    /// A file of 16KiB and more counts twice, because the kernel may have a copy to send from.
    #[arg(long = "cache-size-max", value_name = "SIZE")]
    pub size_max: Option<Size>,
    /// The most files kept in memory [default: 32768]
    #[arg(long = "cache-files-max", value_name = "N")]
    pub files_max: Option<u64>,
    /// The most larger files kept open, and the most files in memory with a copy in the kernel
    /// [default: 256]
    ///
    /// Each such copy is an open file too.
    #[arg(long = "cache-open-files-max", value_name = "N")]
    pub open_files_max: Option<u64>,
}

/// `[clients]`: who has a share of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Clients")]
pub struct ClientOptions {
    /// Trust proxies in this network to name the client of a request; may be given again
    ///
    /// The access log names that client, too.
    #[arg(long = "trusted-proxy", value_name = "NETWORK")]
    #[serde(deserialize_with = "all_from_text")]
    pub trusted_proxies: Option<Vec<Network>>,
    /// The header field in which trusted proxies name the client, such as X-Forwarded-For,
    /// Forwarded or X-Real-IP [default: X-Forwarded-For]
    ///
    /// The field is read from its end as far as it names trusted proxies, 32 elements at most.
    /// Forwarded is read as RFC 7239 writes it, any other field as a list of addresses.
    #[arg(long = "client-header", value_name = "NAME")]
    #[serde(deserialize_with = "some_from_text")]
    pub header: Option<HeaderName>,
    /// Give each client in a network N shares instead of one; may be given again, the first match
    /// counts
    #[arg(long = "client-weight", value_name = "NETWORK=N")]
    #[serde(deserialize_with = "all_from_text")]
    pub weights: Option<Vec<ClientWeight>>,
    /// Give each user behind one address a share, up to N per address. TLS sessions tell users
    /// apart, so one that pretends to be many gets as many shares [default: 1]
    ///
    /// Users are told apart by their TLS 1.3 sessions or by --user-cookie; N is 1024 at most.
    #[arg(long, value_name = "N")]
    pub users_per_address: Option<NonZeroU16>,
    /// Tell the users behind one address apart by this cookie, if a request has it
    ///
    /// A request without it goes by its TLS session, if it has one. Needs --users-per-address.
    #[arg(long, value_name = "NAME")]
    #[serde(deserialize_with = "some_from_text")]
    pub user_cookie: Option<CookieName>,
}

/// The name of a cookie (RFC 6265, 4.1.1: a token, as the name of a header field is).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CookieName(pub String);

/// A text that is not a cookie's name.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a cookie's name: write it without its value, such as session")]
pub struct CookieNameError(String);

impl FromStr for CookieName {
    type Err = CookieNameError;

    fn from_str(text: &str) -> Result<Self, CookieNameError> {
        match HeaderName::from_str(text) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(_) => Err(CookieNameError(text.escape_debug().to_string())),
        }
    }
}

/// The weight of each client in a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientWeight(pub Network, pub NonZeroU32);

/// A text that is not a weight.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is not a weight of a network: write it like 10.0.1.0/24=4, with a whole number from 1 on"
)]
pub struct ClientWeightError(String);

impl FromStr for ClientWeight {
    type Err = ClientWeightError;

    fn from_str(text: &str) -> Result<Self, ClientWeightError> {
        let both = text.split_once('=');
        let read = both.and_then(|(network, weight)| {
            Some(Self(
                network.trim().parse().ok()?,
                weight.trim().parse().ok()?,
            ))
        });
        read.ok_or_else(|| ClientWeightError(text.escape_debug().to_string()))
    }
}

/// `[limits]`: what one client, and all of them together, may take.
#[derive(Clone, Debug, Default, PartialEq, clap::Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Limits")]
pub struct LimitOptions {
    /// The most open connections; further ones wait in the kernel [default: 20000]
    ///
    /// The kernel's backlog holds 4096 of them.
    #[arg(long, value_name = "N")]
    pub connections_max: Option<NonZeroUsize>,
    /// The most open connections of one address; further ones are closed [default: 4096]
    #[arg(long, value_name = "N")]
    pub connections_per_address_max: Option<NonZeroUsize>,
    /// The largest head of a request, from 8KiB to 1MiB [default: 8KiB]
    #[arg(long, value_name = "SIZE")]
    pub header_size_max: Option<Size>,
    /// The most header fields of a request [default: 100]
    #[arg(long, value_name = "N")]
    pub header_fields_max: Option<NonZeroUsize>,
    /// Time for a request's head, and for a TLS handshake [default: 20s]
    #[arg(long, value_name = "TIME")]
    pub header_time_max: Option<Span>,
    /// Time a connection may stay open without a request [default: 60s]
    #[arg(long, value_name = "TIME")]
    pub idle_time_max: Option<Span>,
    /// Time a response may make no progress because its client takes nothing [default: 60s]
    #[arg(long, value_name = "TIME")]
    pub stall_time_max: Option<Span>,
    /// The most HTTP/2 streams of one connection at a time [default: 128]
    #[arg(long, value_name = "N")]
    pub streams_max: Option<NonZeroU32>,
    /// The most files read from disk at the same time [default: 8]
    #[arg(long, value_name = "N")]
    pub disk_reads_max: Option<NonZeroUsize>,
    /// The most responses of backends compressed at the same time; further ones leave as they are [default: 64]
    ///
    /// Each takes about 1MiB of memory.
    #[arg(long, value_name = "N")]
    pub compressions_max: Option<NonZeroUsize>,
    /// Time that responses under way get to finish after SIGTERM [default: 30s]
    #[arg(long = "drain", value_name = "TIME")]
    #[serde(rename = "drain")]
    pub drain_time_max: Option<Span>,
}

/// The uplink's rate as configured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Uplink {
    /// The rate; link mode `paced`.
    Rate(Rate),
    /// The rate is found out; link mode `auto`.
    Auto,
    /// Not scheduled; link mode `off`.
    Off,
}

/// A text that says nothing about the uplink.
#[derive(Debug, thiserror::Error)]
pub enum UplinkError {
    /// Neither a number nor one of the words.
    #[error("`{0}` is no rate: give one such as 100mbit, or auto, or off")]
    Word(String),
    /// No rate.
    #[error(transparent)]
    Rate(#[from] UnitError),
}

impl FromStr for Uplink {
    type Err = UplinkError;

    fn from_str(text: &str) -> Result<Self, UplinkError> {
        match text.to_ascii_lowercase().as_str() {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            word if !word
                .trim()
                .starts_with(|first: char| first.is_ascii_digit()) =>
            {
                Err(UplinkError::Word(excerpt(text)))
            }
            _ => Ok(Self::Rate(text.parse()?)),
        }
    }
}

impl<'de> Deserialize<'de> for Uplink {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

overlay!(UplinkOptions {
    rate,
    rate_min,
    policy,
    aging,
    growing,
    link_mode,
    slots,
    control_band,
    quantum,
    jobs_max,
    burst,
    loopback,
    device,
    packet_header,
});
overlay!(ClientOptions {
    trusted_proxies,
    header,
    weights,
    users_per_address,
    user_cookie,
});
overlay!(SiteKeys {
    root,
    allow_system_root,
    index,
    listing,
    listing_entries_max,
    precompressed,
    compress,
    compress_file_size_max,
    client_ca,
    client_auth,
    client_crl,
    names,
    tls_cert,
    tls_key,
    tls,
    plain_http,
    hsts,
    error_page,
    log,
    limits,
    route,
    rule,
});
overlay!(CacheKeys {
    file_size_max,
    size_max,
    files_max,
    open_files_max,
});
overlay!(LimitOptions {
    connections_max,
    connections_per_address_max,
    header_size_max,
    header_fields_max,
    header_time_max,
    idle_time_max,
    stall_time_max,
    streams_max,
    disk_reads_max,
    compressions_max,
    drain_time_max,
});

fn link_mode(text: &str) -> Result<LinkMode, shortline_link::LinkError> {
    text.parse()
}
