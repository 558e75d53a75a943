//! Who is served first, from `policy`, `aging` and `growing`: which orders the uplink can serve as
//! it is configured, and which it cannot.

use shortline_sched::{Needs, Policy, Urgency};

use super::options::{Uplink, UplinkOptions};
use shortline_daemon::file::Place;

/// The urgency that waiting adds. Checks that policy and urgency suit the uplink.
pub fn resolve(
    flags: &UplinkOptions,
    merged: &UplinkOptions,
    place: &Place<'_>,
) -> Result<Urgency, String> {
    let has_rate = matches!(merged.rate, Some(Uplink::Rate(_)));
    if let Some(policy) = merged.policy {
        let at = place.of(flags.policy.is_some(), "policy", "policy");
        refuse_without_rate(policy, has_rate, &at)?;
    }
    if let Some(policy) = merged.policy
        && policy != Policy::Shares
    {
        refuse_given(
            &[burst(flags, merged)],
            &format!("policy {policy}, which does not count what clients get"),
            place,
        )?;
    }
    let at_growing = || place.of(flags.growing.is_some(), "growing", "growing");
    match (merged.aging, merged.growing) {
        (None, None) => Ok(Urgency::None),
        (Some(aging), None) => Ok(Urgency::Aging(aging)),
        (None, Some(growing)) if has_rate => Ok(Urgency::Growing(growing)),
        (None, Some(_)) => Err(format!(
            "{}: needs the uplink's rate, to know what is long: add --uplink RATE, such as 100mbit",
            at_growing()
        )),
        (Some(_), Some(_)) => Err(format!(
            "{}: contradicts aging: leave one of them out",
            at_growing()
        )),
    }
}

/// Whether link mode `bands` supports the policy.
pub fn has_bands(policy: &Policy) -> bool {
    matches!(
        policy,
        Policy::Bands(_)
            | Policy::QuickFix { .. }
            | Policy::Srrt
            | Policy::Stert
            | Policy::Fcf
            | Policy::Swift
    )
}

/// Refuses options that mean nothing in link mode `bands`, where the kernel orders at the rate of
/// its qdisc. Only `swift` needs a rate there: it says how long the link takes for a response.
pub fn refuse_without_bands(
    flags: &UplinkOptions,
    merged: &UplinkOptions,
    place: &Place<'_>,
) -> Result<(), String> {
    if let Some(policy) = merged.policy.filter(|policy| !has_bands(policy)) {
        return Err(format!(
            "{}: `{policy}` contradicts link mode bands, which has bands, quickfix, srrt, stert, \
             fcf and swift: leave one of them out",
            place.of(flags.policy.is_some(), "policy", "policy")
        ));
    }
    let rate = [(
        "uplink",
        "rate",
        flags.rate.is_some(),
        merged.rate.is_some() && merged.policy != Some(Policy::Swift),
    )];
    let given = [&rate[..], &order_options(flags, merged)].concat();
    refuse_given(
        &given,
        "link mode bands, in which the kernel's qdisc has the rate and the order",
        place,
    )
}

/// An option: its flag, its key, whether the command line gives it, and whether anything does.
pub type Given = (&'static str, &'static str, bool, bool);

/// The options besides the policy that affect the order.
pub fn order_options(flags: &UplinkOptions, merged: &UplinkOptions) -> [Given; 4] {
    let (aging, growing, slots) = (&merged.aging, &merged.growing, &merged.slots);
    [
        ("aging", "aging", flags.aging.is_some(), aging.is_some()),
        (
            "growing",
            "growing",
            flags.growing.is_some(),
            growing.is_some(),
        ),
        ("slots", "slots", flags.slots.is_some(), slots.is_some()),
        burst(flags, merged),
    ]
}

fn burst(flags: &UplinkOptions, merged: &UplinkOptions) -> Given {
    let (by_flag, given) = (flags.burst.is_some(), merged.burst.is_some());
    ("burst", "burst", by_flag, given)
}

/// Refuses the first option that is given, because it contradicts something.
pub fn refuse_given(
    options: &[Given],
    contradicted: &str,
    place: &Place<'_>,
) -> Result<(), String> {
    match options.iter().find(|(_, _, _, given)| *given) {
        None => Ok(()),
        Some((flag, key, by_flag, _)) => Err(format!(
            "{}: contradicts {contradicted}: leave one of them out",
            place.of(*by_flag, flag, key)
        )),
    }
}

fn refuse_without_rate(policy: Policy, has_rate: bool, at: &str) -> Result<(), String> {
    // `swift` adds the time that the link needs for the remaining bytes to the round trip time.
    let needs_rate = policy.needs() == Needs::Rate || policy == Policy::Swift;
    if needs_rate && !has_rate {
        return Err(format!(
            "{at}: `{policy}` needs the uplink's rate: add --uplink RATE, such as 100mbit"
        ));
    }
    Ok(())
}
