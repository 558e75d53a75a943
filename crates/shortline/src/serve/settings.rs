//! From flags and file to what the rooms are told: flags over file over defaults.
//!
//! A flag that decides the link mode (`--link-mode`, or `--uplink` by itself) also hides the
//! file's keys that this mode does not know, so that `--link-mode off` works beside any file.
//! Whatever contradicts itself after that is an error.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use shortline_link::{LinkConfig, LinkMode};
use shortline_sched::units::{Size, Span};
use shortline_sched::{Cutoffs, Policy};
use shortline_web::Limits;
use shortline_web::site::SiteOptions;

use super::Args;
use super::options::{AdminOptions, LimitOptions, LogOptions, SiteKeys, Uplink, UplinkOptions};
use super::ordering;
use super::routes::{self, RouteSettings};
use crate::error::CommandError;
use crate::file::{self, File, Listen, Place, Source};
use crate::keys::Overlay;

const LISTEN_DEFAULT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8080);
/// 001 5.4.
const WRITERS_DEFAULT: usize = 35;
const QUANTUM_BYTES_MAX: u64 = 1 << 20;
const PACKET_HEADER_BYTES_MAX: u64 = 1 << 10;
/// hyper's parser needs this much.
const HEADER_BYTES_MIN: u64 = 8 << 10;
const HEADER_BYTES_MAX: u64 = 1 << 20;
const DRAIN_DEFAULT: Duration = Duration::from_secs(30);

/// Everything `shortline serve` was told, complete and without contradictions.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where connections are taken.
    pub listen: Vec<Listen>,
    /// Whether somebody asked for these addresses, or they are the default.
    pub listen_asked: bool,
    /// The uplink as it was told, to notice a change.
    pub uplink: UplinkOptions,
    /// The uplink.
    pub link: LinkConfig,
    /// The site's root.
    pub root: PathBuf,
    /// The site.
    pub site: SiteOptions,
    /// What goes to application servers instead.
    pub routes: Vec<RouteSettings>,
    /// The limits.
    pub limits: Limits,
    /// Time for responses under way after SIGTERM.
    pub drain_time_max: Duration,
    /// The admin endpoint.
    pub admin: AdminOptions,
    /// The access log.
    pub log: LogOptions,
}

/// Reads the file the flags name, if any, and lays the flags over it.
///
/// # Errors
/// [`CommandError`]: the file, or values that do not fit together.
pub fn read(args: &Args) -> Result<Settings, CommandError> {
    let (file, source) = file::read_if_named(args.config.as_deref())
        .map_err(|error| CommandError::told(error.is_usage(), error))?;
    resolve(args, file, &source).map_err(CommandError::Usage)
}

fn resolve(args: &Args, file: File, source: &Source) -> Result<Settings, String> {
    let (uplink, link) = resolve_uplink(&args.uplink, file.uplink, source)?;
    let site = args.site.clone().over(file.site);
    let limits = args.limits.clone().over(file.limits);
    let place = Place {
        source,
        table: "limits",
    };
    Ok(Settings {
        listen_asked: !(args.listen.is_empty() && file.listen.is_empty()),
        listen: resolve_listen(args, file.listen)?,
        uplink,
        link,
        root: site.root.clone().unwrap_or_else(|| PathBuf::from(".")),
        site: site_options(&site),
        routes: routes::resolve(file.route)?,
        drain_time_max: limits.drain_time_max.map_or(DRAIN_DEFAULT, Span::duration),
        limits: resolve_limits(&args.limits, &limits, &place)?,
        admin: args.admin.clone().over(file.admin),
        log: args.log.clone().over(file.log),
    })
}

fn resolve_listen(args: &Args, in_file: Vec<Listen>) -> Result<Vec<Listen>, String> {
    for listen in &in_file {
        if listen.tls_cert.is_some() != listen.tls_key.is_some() {
            return Err(format!(
                "listen {}: tls-cert and tls-key belong together: give both or neither",
                listen.address
            ));
        }
    }
    if args.listen.is_empty() && !in_file.is_empty() {
        return match &args.tls_cert {
            None => Ok(in_file),
            Some(_) => Err(
                "--tls-cert without --listen: the file's [[listen]] have certificates of their own"
                    .to_owned(),
            ),
        };
    }
    let addresses = match args.listen.as_slice() {
        [] => &[LISTEN_DEFAULT],
        addresses => addresses,
    };
    let with_flags = addresses.iter().map(|&address| Listen {
        address,
        tls_cert: args.tls_cert.clone(),
        tls_key: args.tls_key.clone(),
    });
    Ok(with_flags.collect())
}

fn resolve_uplink(
    flags: &UplinkOptions,
    in_file: UplinkOptions,
    source: &Source,
) -> Result<(UplinkOptions, LinkConfig), String> {
    let place = Place {
        source,
        table: "uplink",
    };
    let in_file = match mode_asked(flags) {
        Some(mode) => without_other_modes(in_file, mode),
        None => in_file,
    };
    let in_file = without_other_urgency(in_file, flags);
    let merged = flags.clone().over(in_file);
    let mode = mode_asked(&merged).unwrap_or(LinkMode::Slots);
    refuse_contradictions(flags, &merged, mode, &place)?;
    let defaults = LinkConfig::default();
    let config = LinkConfig {
        mode,
        rate: match merged.rate {
            Some(Uplink::Rate(rate)) => Some(rate),
            Some(Uplink::Off | Uplink::Auto) | None => None,
        },
        policy: merged.policy.unwrap_or(match mode {
            LinkMode::Bands => Policy::Bands(Cutoffs::USUAL),
            _ => defaults.policy,
        }),
        urgency: ordering::resolve(flags, &merged, &place)?,
        slots_max: merged.slots.map_or(
            match mode {
                LinkMode::Writers => WRITERS_DEFAULT,
                _ => defaults.slots_max,
            },
            NonZeroUsize::get,
        ),
        control_band: merged.control_band.unwrap_or(defaults.control_band),
        quantum_bytes: quantum_bytes(flags, &merged, &place)?,
        jobs_max: merged.jobs_max.map_or(defaults.jobs_max, NonZeroUsize::get),
        schedule_loopback: merged.loopback.unwrap_or(defaults.schedule_loopback),
        device: merged.device.clone(),
        packet_header_bytes: packet_header_bytes(flags, &merged, &place)?
            .unwrap_or(defaults.packet_header_bytes),
    };
    config.check().map_err(|error| error.to_string())?;
    Ok((merged, config))
}

/// The mode that these options ask for, by name or by a rate.
fn mode_asked(options: &UplinkOptions) -> Option<LinkMode> {
    options.link_mode.or(match options.rate {
        Some(Uplink::Rate(_)) => Some(LinkMode::Paced),
        Some(Uplink::Off) => Some(LinkMode::Off),
        Some(Uplink::Auto) => Some(LinkMode::Auto),
        None => None,
    })
}

fn without_other_modes(options: UplinkOptions, mode: LinkMode) -> UplinkOptions {
    let kept = UplinkOptions {
        link_mode: None,
        ..options
    };
    match mode {
        LinkMode::Paced => UplinkOptions {
            slots: None,
            control_band: None,
            rate: kept.rate.filter(|rate| matches!(rate, Uplink::Rate(_))),
            ..kept
        },
        LinkMode::Auto => UplinkOptions {
            rate: None,
            slots: None,
            control_band: None,
            ..kept
        },
        LinkMode::Slots | LinkMode::Writers => UplinkOptions {
            control_band: None,
            rate: kept.rate.filter(|rate| matches!(rate, Uplink::Rate(_))),
            ..kept
        },
        LinkMode::Bands => UplinkOptions {
            rate: None,
            policy: kept.policy.filter(ordering::has_bands),
            aging: None,
            growing: None,
            slots: None,
            ..kept
        },
        LinkMode::Off => UplinkOptions {
            loopback: kept.loopback,
            device: kept.device,
            packet_header: kept.packet_header,
            jobs_max: kept.jobs_max,
            ..UplinkOptions::default()
        },
    }
}

/// Of aging and growing, the one given by flag hides the other in the file.
fn without_other_urgency(in_file: UplinkOptions, flags: &UplinkOptions) -> UplinkOptions {
    UplinkOptions {
        aging: in_file.aging.filter(|_| flags.growing.is_none()),
        growing: in_file.growing.filter(|_| flags.aging.is_none()),
        ..in_file
    }
}

fn refuse_contradictions(
    flags: &UplinkOptions,
    merged: &UplinkOptions,
    mode: LinkMode,
    place: &Place<'_>,
) -> Result<(), String> {
    let rate = || place.of(flags.rate.is_some(), "uplink", "rate");
    let link_mode = || place.of(flags.link_mode.is_some(), "link-mode", "link-mode");
    let of_rate = match merged.rate {
        Some(Uplink::Off) => Some(("off", LinkMode::Off)),
        Some(Uplink::Auto) => Some(("auto", LinkMode::Auto)),
        Some(Uplink::Rate(_)) | None => None,
    };
    if let Some((name, own_mode)) = of_rate
        && mode != own_mode
    {
        return Err(format!(
            "{}: `{name}` contradicts link mode {mode}: leave one of them out",
            rate()
        ));
    }
    let control_band = flags.control_band.is_some();
    if merged.control_band.is_some() && mode != LinkMode::Bands {
        return Err(format!(
            "{}: contradicts link mode {mode}, which has no bands: leave it out, or add --link-mode \
             bands",
            place.of(control_band, "control-band", "control-band")
        ));
    }
    match mode {
        LinkMode::Auto if matches!(merged.rate, Some(Uplink::Rate(_))) => Err(format!(
            "{}: a rate contradicts link mode auto, which finds it out: leave one of them out",
            rate()
        )),
        LinkMode::Auto | LinkMode::Paced if merged.slots.is_some() => Err(format!(
            "{}: slots contradict link mode {mode}: leave them out, or add --link-mode slots",
            place.of(flags.slots.is_some(), "slots", "slots")
        )),
        LinkMode::Paced if merged.rate.is_none() => Err(format!(
            "{}: link mode paced needs the uplink's rate: add --uplink RATE, such as 100mbit",
            link_mode()
        )),
        LinkMode::Auto | LinkMode::Paced | LinkMode::Slots | LinkMode::Writers => Ok(()),
        LinkMode::Bands => ordering::refuse_without_bands(flags, merged, place),
        LinkMode::Off => {
            let before = [
                (
                    "uplink",
                    "rate",
                    flags.rate.is_some(),
                    matches!(merged.rate, Some(Uplink::Rate(_))),
                ),
                (
                    "policy",
                    "policy",
                    flags.policy.is_some(),
                    merged.policy.is_some(),
                ),
            ];
            let quantum = [(
                "quantum",
                "quantum",
                flags.quantum.is_some(),
                merged.quantum.is_some(),
            )];
            let order = ordering::about_order(flags, merged);
            ordering::refuse_given(
                &[&before[..], &order, &quantum].concat(),
                "link mode off, which schedules nothing",
                place,
            )
        }
    }
}

fn quantum_bytes(
    flags: &UplinkOptions,
    merged: &UplinkOptions,
    place: &Place<'_>,
) -> Result<Option<u32>, String> {
    let at = || place.of(flags.quantum.is_some(), "quantum", "quantum");
    merged
        .quantum
        .map(|size| in_range(size, 1, QUANTUM_BYTES_MAX, at))
        .transpose()
}

fn packet_header_bytes(
    flags: &UplinkOptions,
    merged: &UplinkOptions,
    place: &Place<'_>,
) -> Result<Option<u32>, String> {
    let by_flag = flags.packet_header.is_some();
    let at = || place.of(by_flag, "uplink-packet-header", "packet-header");
    merged
        .packet_header
        .map(|size| in_range(size, 0, PACKET_HEADER_BYTES_MAX, at))
        .transpose()
}

fn in_range(size: Size, least: u64, most: u64, at: impl Fn() -> String) -> Result<u32, String> {
    let bytes = u32::try_from(size.bytes()).ok();
    bytes
        .filter(|&bytes| (least..=most).contains(&u64::from(bytes)))
        .ok_or_else(|| {
            format!(
                "{}: {size} is out of range: must be from {} to {}",
                at(),
                Size::from_bytes(least),
                Size::from_bytes(most)
            )
        })
}

fn site_options(keys: &SiteKeys) -> SiteOptions {
    let defaults = SiteOptions::default();
    let bytes = |size: Option<Size>, default| size.map_or(default, Size::bytes);
    SiteOptions {
        index: keys.index.clone().unwrap_or(defaults.index),
        listing: keys.listing.unwrap_or(defaults.listing),
        listing_entries_max: keys
            .listing_entries_max
            .map_or(defaults.listing_entries_max, NonZeroUsize::get),
        precompressed: keys.precompressed.unwrap_or(defaults.precompressed),
        cache_file_bytes_max: bytes(keys.cache_file_size_max, defaults.cache_file_bytes_max),
        cache_bytes_max: bytes(keys.cache_size_max, defaults.cache_bytes_max),
        cache_files_max: keys.cache_files_max.unwrap_or(defaults.cache_files_max),
        cache_open_files_max: keys
            .cache_open_files_max
            .unwrap_or(defaults.cache_open_files_max),
    }
}

fn resolve_limits(
    flags: &LimitOptions,
    merged: &LimitOptions,
    place: &Place<'_>,
) -> Result<Limits, String> {
    let defaults = Limits::default();
    let time = |by_flag: bool, key, given: Option<Span>, default| match given.map(Span::duration) {
        None => Ok(default),
        Some(Duration::ZERO) => Err(format!(
            "{}: must be more than 0, such as 20s",
            place.of(by_flag, key, key)
        )),
        Some(time) => Ok(time),
    };
    let header_size = |size| {
        in_range(size, HEADER_BYTES_MIN, HEADER_BYTES_MAX, || {
            let by_flag = flags.header_size_max.is_some();
            place.of(by_flag, "header-size-max", "header-size-max")
        })
    };
    Ok(Limits {
        connections_max: merged
            .connections_max
            .map_or(defaults.connections_max, NonZeroUsize::get),
        connections_per_address_max: merged
            .connections_per_address_max
            .map_or(defaults.connections_per_address_max, NonZeroUsize::get),
        header_bytes_max: match merged.header_size_max {
            None => defaults.header_bytes_max,
            Some(size) => header_size(size)? as usize,
        },
        header_fields_max: merged
            .header_fields_max
            .map_or(defaults.header_fields_max, NonZeroUsize::get),
        header_time_max: time(
            flags.header_time_max.is_some(),
            "header-time-max",
            merged.header_time_max,
            defaults.header_time_max,
        )?,
        idle_time_max: time(
            flags.idle_time_max.is_some(),
            "idle-time-max",
            merged.idle_time_max,
            defaults.idle_time_max,
        )?,
        stall_time_max: time(
            flags.stall_time_max.is_some(),
            "stall-time-max",
            merged.stall_time_max,
            defaults.stall_time_max,
        )?,
        streams_max: merged
            .streams_max
            .map_or(defaults.streams_max, NonZeroU32::get),
        disk_reads_max: merged
            .disk_reads_max
            .map_or(defaults.disk_reads_max, NonZeroUsize::get),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser;
    use shortline_sched::{Aging, Growing};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// What flags and a file mean together, or the error, without the file's folder.
    fn settings(flags: &str, file: &str) -> Result<Settings, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        std::fs::write(&path, file).unwrap();
        let words = std::iter::once("serve").chain(flags.split_whitespace());
        let mut line = Line::try_parse_from(words).unwrap();
        line.args.config = Some(path);
        read(&line.args).map_err(|error| {
            let folder = format!("{}/", folder.path().display());
            error.to_string().replace(&folder, "")
        })
    }

    fn refused(flags: &str, file: &str) -> String {
        settings(flags, file).unwrap_err()
    }

    #[test]
    fn nothing_said_is_slots_and_srpt_at_the_default_address() {
        let settings = settings("", "").unwrap();
        assert_eq!(settings.link.mode, LinkMode::Slots);
        assert_eq!(settings.link.policy.name(), "srpt");
        assert_eq!(settings.listen[0].address, LISTEN_DEFAULT);
        assert!(!settings.listen_asked);
        assert_eq!(settings.limits, Limits::default());
    }

    #[test]
    fn a_rate_means_paced() {
        let by_flag = settings("--uplink 10mbit", "").unwrap().link;
        let in_file = settings("", "[uplink]\nrate = \"10mbit\"").unwrap().link;
        for link in [by_flag, in_file] {
            assert_eq!(link.mode, LinkMode::Paced);
            assert_eq!(link.rate.unwrap().bps(), 10_000_000);
        }
    }

    #[test]
    fn flags_override_the_file() {
        let file = "[uplink]\nrate = \"10mbit\"\npolicy = \"fair\"\n[limits]\ndrain = \"5s\"\nstreams-max = 7";
        let settings = settings("--policy las --streams-max 9 /srv", file).unwrap();
        assert_eq!(settings.link.policy.name(), "las");
        assert_eq!(settings.limits.streams_max, 9);
        assert_eq!(settings.drain_time_max, Duration::from_secs(5));
        assert_eq!(settings.root, PathBuf::from("/srv"));
    }

    #[test]
    fn a_mode_by_flag_hides_what_the_file_says_of_other_modes() {
        let file = "[uplink]\nrate = \"10mbit\"\npolicy = \"fair\"";
        assert_eq!(
            settings("--link-mode off", file).unwrap().link.mode,
            LinkMode::Off
        );
        assert_eq!(
            settings("--uplink off", file).unwrap().link.mode,
            LinkMode::Off
        );
        let file = "[uplink]\nslots = 5";
        assert_eq!(
            settings("--uplink 1gbit", file).unwrap().link.mode,
            LinkMode::Paced
        );
    }

    #[test]
    fn every_policy_is_offered_and_some_only_with_a_rate() {
        for policy in Policy::ALL {
            let flags = format!("--policy {policy}");
            let paced = settings(&format!("{flags} --uplink 10mbit"), "").unwrap();
            assert_eq!(paced.link.policy, policy);
            if ["fsp", "swift"].contains(&policy.name()) {
                let expected = format!("--policy: `{policy}` needs the uplink's rate");
                assert!(refused(&flags, "").starts_with(&expected));
            } else {
                assert_eq!(settings(&flags, "").unwrap().link.policy, policy);
            }
        }
        let bands = settings("--policy bands:1KB,1MB", "").unwrap().link.policy;
        assert_eq!(bands.to_string(), "bands:1kB,1MB");
        let slots = settings("--policy fsp --uplink 1mbit --link-mode slots", "");
        assert_eq!(slots.unwrap().link.mode, LinkMode::Slots);
        let in_file = refused("", "[uplink]\npolicy = \"swift\"");
        assert!(in_file.starts_with("a.toml:2: uplink.policy: `swift` needs"));
    }

    #[test]
    fn bands_have_policies_and_keys_of_their_own() {
        let link = |flags: &str, file: &str| settings(flags, file).unwrap().link;
        let usual = link("--link-mode bands", "");
        assert_eq!(usual.mode, LinkMode::Bands);
        assert_eq!(usual.policy.name(), "bands");
        assert!(usual.control_band);
        let policies = [
            "bands:6",
            "bands:2kB,9kB",
            "quickfix:1kB",
            "srrt",
            "stert",
            "fcf",
        ];
        for policy in policies {
            let flags = format!("--link-mode bands --control-band=false --policy {policy}");
            let told = link(&flags, "");
            assert_eq!(told.policy.to_string(), policy);
            assert!(!told.control_band);
        }
        let swift = link("--link-mode bands --policy swift --uplink 10mbit", "");
        assert_eq!(
            (swift.mode, swift.policy.name(), swift.rate.is_some()),
            (LinkMode::Bands, "swift", true)
        );
        let file = "[uplink]\nrate = \"10mbit\"\naging = 3.0\npolicy = \"las\"";
        assert_eq!(link("--link-mode bands", file).policy.name(), "bands");
        let bands = "[uplink]\nlink-mode = \"bands\"\ncontrol-band = false\n";
        assert_eq!(link("--uplink 1gbit", bands).mode, LinkMode::Paced);
    }

    #[test]
    fn the_writers_of_001_are_35_unless_told() {
        let link = |flags: &str| settings(flags, "").unwrap().link;
        assert_eq!(link("--link-mode writers").slots_max, 35);
        let few = link("--link-mode writers --slots 1 --policy fair");
        assert_eq!((few.mode, few.slots_max), (LinkMode::Writers, 1));
    }

    #[test]
    fn growing_is_offered_with_a_rate_and_in_place_of_aging() {
        let urgency = |flags: &str, file: &str| settings(flags, file).unwrap().link.urgency;
        let growing = urgency("--uplink 10mbit --growing 4", "");
        assert_eq!(growing.growing().map(Growing::factor), Some(4.0));
        let file = "[uplink]\nrate = \"10mbit\"\ngrowing = 4.0";
        assert_eq!(urgency("", file), growing);
        let aging = urgency("--aging 2", file).aging().map(Aging::factor);
        assert_eq!(aging, Some(2.0));
        assert!(refused("--growing 4", "").starts_with("--growing: needs the uplink's rate"));
        let both = refused("--uplink 1mbit --growing 4 --aging 4", "");
        assert!(both.starts_with("--growing: contradicts aging"), "{both}");
    }

    #[test]
    fn contradictions_are_told_with_their_place() {
        let cases = [
            (
                "--link-mode paced",
                "",
                "--link-mode: link mode paced needs",
            ),
            (
                "--link-mode off --policy srpt",
                "",
                "--policy: contradicts link mode off",
            ),
            (
                "--link-mode off --uplink 1gbit",
                "",
                "--uplink: contradicts link mode off",
            ),
            (
                "--uplink off --link-mode slots",
                "",
                "--uplink: `off` contradicts",
            ),
            ("--uplink 1gbit --slots 3", "", "--slots: slots contradict"),
            (
                "",
                "[uplink]\nlink-mode = \"paced\"",
                "a.toml:2: uplink.link-mode: link mode paced",
            ),
            (
                "",
                "[uplink]\n\npolicy = \"las\"\nrate = \"off\"",
                "a.toml:3: uplink.policy: contra",
            ),
            (
                "--link-mode off --growing 3",
                "",
                "--growing: contradicts link mode off",
            ),
            (
                "--link-mode bands --policy srpt",
                "",
                "--policy: `srpt` contradicts link mode bands, which has bands, quickfix, srrt,",
            ),
            (
                "--link-mode bands --uplink 1gbit",
                "",
                "--uplink: contradicts link mode bands",
            ),
            (
                "--link-mode bands",
                "[uplink]\nslots = 3\nlink-mode = \"slots\"\n[limits]\nidle-time-max = \"0s\"",
                "a.toml:5: limits.idle-time-max",
            ),
            (
                "",
                "[uplink]\nlink-mode = \"bands\"\naging = 3.0",
                "a.toml:3: uplink.aging: contradicts link mode bands",
            ),
            (
                "--control-band",
                "",
                "--control-band: contradicts link mode slots",
            ),
            ("--quantum 0", "", "--quantum: 0B is out of range"),
            (
                "",
                "[limits]\nheader-size-max = \"1KiB\"",
                "a.toml:2: limits.header-size-max: 1KiB is",
            ),
            (
                "--idle-time-max 0s",
                "",
                "--idle-time-max: must be more than 0",
            ),
            (
                "--tls-cert a --tls-key b",
                "[[listen]]\naddress = \"[::]:1\"",
                "--tls-cert without",
            ),
            (
                "",
                "[[listen]]\naddress = \"[::]:1\"\ntls-cert = \"a\"",
                "listen [::]:1: tls-cert and",
            ),
            (
                "",
                "[[route]]\npath = \"api\"\nupstream = [\"a:1\"]",
                "a.toml:2: route.path: `api` is no path",
            ),
            (
                "",
                "[[route]]\npath = \"/api\"\nupstream = [\"a:1\", \"b\"]",
                "a.toml:3: route.upstream: upstream `b`: no host and port",
            ),
            (
                "",
                "[[route]]\npath = \"/api\"\nupstream = []",
                "a.toml:3: route.upstream: no backend",
            ),
            (
                "",
                "[[route]]\npath = \"/\"\nupstream = [\"a:1\"]\nidle-time-max = \"0s\"",
                "a.toml:4: route.idle-time-max: must be more than 0",
            ),
            (
                "",
                "[[route]]\npath = \"/a\"\nupstream = [\"a:1\"]\n[[route]]\npath = \"/a\"\nupstream = [\"b:1\"]",
                "route /a: is there twice",
            ),
        ];
        for (flags, file, expected) in cases {
            let error = refused(flags, file);
            assert!(error.starts_with(expected), "{flags} {file}: {error}");
        }
    }
}
