//! The uplink: link mode, rate, policy and what belongs to them.
//!
//! A flag that decides the link mode (`--link-mode`, or `--uplink` by itself) also hides the keys
//! of the file that this mode does not have. So `--link-mode off` works with any file. If nothing
//! decides the mode, it is `slots` if a number of slots is given, and `auto` otherwise.
//!
//! With `slots`, a rate tells `--aging`, `--growing` and `fsp` how long a response takes. Mode
//! `bands` has the policy `bands` by default. It takes no rate (except for `swift`), because the
//! qdisc has one.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;

use shortline_link::{LinkConfig, LinkMode};
use shortline_sched::units::Size;
use shortline_sched::{Cutoffs, Policy};

use super::super::options::{Uplink, UplinkOptions};
use super::super::ordering;
use shortline_daemon::file::{Place, Source};
use shortline_daemon::given::Given;
use shortline_daemon::keys::Overlay;

/// 001 5.4.
const WRITERS_DEFAULT: usize = 35;
const QUANTUM_BYTES: RangeInclusive<u32> = 1..=1 << 20;
const PACKET_HEADER_BYTES: RangeInclusive<u32> = 0..=1 << 10;

/// The options of the uplink as given, and the settings in use.
///
/// # Errors
/// Names the flag, or the place in the file, that contradicts another.
pub fn resolve(
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
    let unsaid = merged.slots.map_or(LinkMode::Auto, |_| LinkMode::Slots);
    let mode = mode_asked(&merged).unwrap_or(unsaid);
    refuse_contradictions(flags, &merged, mode, &place)?;
    let given = Given {
        flags,
        merged: &merged,
        place: &|by_flag, key| place.of(by_flag, flag_of(key), key),
    };
    let quantum = |_| given.size("quantum", |options| options.quantum, QUANTUM_BYTES, 0);
    let defaults = LinkConfig::default();
    let config = LinkConfig {
        mode,
        rate: match merged.rate {
            Some(Uplink::Rate(rate)) => Some(rate),
            Some(Uplink::Off | Uplink::Auto) | None => None,
        },
        rate_min: merged.rate_min.unwrap_or(defaults.rate_min),
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
        quantum_bytes: merged.quantum.map(quantum).transpose()?,
        jobs_max: merged.jobs_max.map_or(defaults.jobs_max, NonZeroUsize::get),
        burst_bytes: merged.burst.map_or(defaults.burst_bytes, Size::bytes),
        schedule_loopback: merged.loopback.unwrap_or(defaults.schedule_loopback),
        device: merged.device.clone(),
        packet_header_bytes: given.size(
            "packet-header",
            |options| options.packet_header,
            PACKET_HEADER_BYTES,
            defaults.packet_header_bytes,
        )?,
    };
    config.check().map_err(|error| error.to_string())?;
    Ok((merged, config))
}

/// The flag of a key.
fn flag_of(key: &str) -> &str {
    match key {
        "packet-header" => "uplink-packet-header",
        key => key,
    }
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
            rate_min: None,
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
            rate_min: None,
            control_band: None,
            rate: kept.rate.filter(|rate| matches!(rate, Uplink::Rate(_))),
            ..kept
        },
        LinkMode::Bands => UplinkOptions {
            rate: None,
            rate_min: None,
            policy: kept.policy.filter(ordering::has_bands),
            aging: None,
            growing: None,
            slots: None,
            burst: None,
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

/// Hides the file's aging if growing is given by flag, and the other way round.
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
    if merged.rate_min.is_some() && mode != LinkMode::Auto {
        return Err(format!(
            "{}: contradicts link mode {mode}, which does not find out a rate: leave it out, or add --uplink auto",
            place.of(flags.rate_min.is_some(), "uplink-rate-min", "rate-min")
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
        LinkMode::Off => refuse_where_nothing_is_scheduled(flags, merged, place),
    }
}

fn refuse_where_nothing_is_scheduled(
    flags: &UplinkOptions,
    merged: &UplinkOptions,
    place: &Place<'_>,
) -> Result<(), String> {
    let has_rate = matches!(merged.rate, Some(Uplink::Rate(_)));
    let has_policy = merged.policy.is_some();
    let before = [
        ("uplink", "rate", flags.rate.is_some(), has_rate),
        ("policy", "policy", flags.policy.is_some(), has_policy),
    ];
    let has_quantum = merged.quantum.is_some();
    let quantum = [("quantum", "quantum", flags.quantum.is_some(), has_quantum)];
    let order = ordering::order_options(flags, merged);
    ordering::refuse_given(
        &[&before[..], &order, &quantum].concat(),
        "link mode off, which schedules nothing",
        place,
    )
}
