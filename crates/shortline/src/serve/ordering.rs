//! Who is served first, from `policy`, `aging` and `growing`: what the uplink as it is
//! configured can order by, and what it cannot.

use shortline_sched::{Needs, Policy, Urgency};

use super::options::{Uplink, UplinkOptions};
use super::settings::Place;

/// The urgency that waiting adds, once policy and urgency are found to suit the uplink.
pub fn resolve(
    flags: &UplinkOptions,
    merged: &UplinkOptions,
    place: &Place<'_>,
) -> Result<Urgency, String> {
    let has_rate = matches!(merged.rate, Some(Uplink::Rate(_)));
    if let Some(policy) = merged.policy {
        let at = place.of(flags.policy.is_some(), "policy", "policy");
        refuse_unknown_needs(policy, has_rate, &at)?;
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

fn refuse_unknown_needs(policy: Policy, has_rate: bool, at: &str) -> Result<(), String> {
    match policy.needs() {
        Needs::Sizes => Ok(()),
        Needs::Rate if has_rate => Ok(()),
        Needs::Rate => Err(format!(
            "{at}: `{policy}` needs the uplink's rate: add --uplink RATE, such as 100mbit"
        )),
        Needs::Path => Err(format!(
            "{at}: `{policy}` goes by round trip times, which the server does not order by yet \
             (`shortline sim` does): use {}",
            offered().join(", ")
        )),
    }
}

/// The policies that the server can order by.
fn offered() -> Vec<&'static str> {
    let known = |policy: &Policy| policy.needs() != Needs::Path;
    let policies = Policy::ALL.into_iter().filter(known);
    policies.map(Policy::name).collect()
}
