//! The settings of admission and of the types: for `shortline gate`, and for a route of `serve`
//! with a gate.

use std::num::NonZeroU64;
use std::time::Duration;

use shortline_gate::GateConfig;
use shortline_gate::classify::{Classifier, ClassifierConfig, Protocol};
use shortline_sched::admission::{
    AdmissionConfig, Capacity, OpenUp, Order, Runaway, RunawayAction,
};
use shortline_sched::units::Span;

use super::super::options::{GateOptions, PolicyName};
use super::tenants;
use shortline_daemon::given::{Given, count};
use shortline_daemon::keys::Overlay;

/// The gate of a route of `serve`.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteGate {
    /// The settings of admission.
    pub gate: GateConfig,
    /// The rules for types.
    pub classifier: ClassifierConfig,
}

impl RouteGate {
    /// The gate that the table `gate` of a route asks for; `place` names a key of it.
    ///
    /// # Errors
    /// A key that a route's gate does not have, or values that do not fit together.
    pub fn resolve(options: &GateOptions, place: &dyn Fn(&str) -> String) -> Result<Self, String> {
        if let Some(field) = options.difference(&of_admission(options)) {
            return Err(format!(
                "{}: means nothing to the gate of a route: leave it out",
                place(&field.replace('_', "-"))
            ));
        }
        if options.capacity == Some(Capacity::Calibrate) {
            return Err(format!(
                "{}: calibrate is for `shortline gate http`: take what that finds, or auto",
                place("capacity")
            ));
        }
        let given = Given {
            flags: &GateOptions::default(),
            merged: options,
            place: &|_, key| place(key),
        };
        Ok(Self {
            gate: gate(&given)?,
            classifier: classifier(&given, Protocol::Http)?,
        })
    }
}

/// Keeps only the options that a route's gate has, too.
fn of_admission(options: &GateOptions) -> GateOptions {
    GateOptions {
        policy: options.policy,
        aging: options.aging,
        oldest_share: options.oldest_share,
        runaway: options.runaway,
        capacity: options.capacity,
        open_up: options.open_up,
        queue_max: options.queue_max,
        wait_max: options.wait_max,
        shed: options.shed,
        stall_max: options.stall_max,
        dry_run: options.dry_run,
        types_max: options.types_max,
        estimator: options.estimator,
        rule: options.rule.clone(),
        tags_from: options.tags_from.clone(),
        tenant_by: options.tenant_by.clone(),
        tenant: options.tenant.clone(),
        unqueued_max: options.unqueued_max,
        slow_wait: options.slow_wait,
        ..GateOptions::default()
    }
}

/// The settings of admission.
///
/// # Errors
/// Names the place of a value that is out of range, or that contradicts another.
pub fn gate(given: &Given<'_, GateOptions>) -> Result<GateConfig, String> {
    refuse_contradictions(given)?;
    let merged = given.merged;
    let defaults = GateConfig::default();
    let admission = defaults.admission;
    Ok(GateConfig {
        admission: AdmissionConfig {
            order: match (merged.policy, merged.aging) {
                (Some(PolicyName::Fifo), _) => Order::Fifo,
                (Some(PolicyName::Boost), _) => Order::Boost,
                (Some(PolicyName::Gittins), _) => Order::Gittins,
                (Some(PolicyName::Sjf) | None, None) => Order::Sjf,
                (Some(PolicyName::Sjf) | None, Some(aging)) => Order::SjfAging(aging),
            },
            oldest_share: merged.oldest_share.unwrap_or(admission.oldest_share),
            runaway: merged.runaway,
            capacity: merged.capacity.unwrap_or(Capacity::Auto),
            open_up: merged.open_up.unwrap_or_default(),
            estimator: merged.estimator.unwrap_or(admission.estimator),
            queue_max: count(merged.queue_max, admission.queue_max),
            unqueued_max: count(merged.unqueued_max, admission.unqueued_max),
            types_max: count(merged.types_max, admission.types_max),
            shed_wait_ns: merged
                .shed
                .map(|_| given.time("shed", |options| options.shed, Duration::ZERO))
                .transpose()?
                .and_then(nanoseconds),
            stall_ns: match merged.stall_max {
                Some(stall) => nanoseconds(stall.duration()),
                None => admission.stall_ns,
            },
            trial_ns: given
                .time("trial-time", |options| options.trial_time, Duration::ZERO)
                .map(nanoseconds)?
                .unwrap_or(admission.trial_ns),
            dry_run: merged.dry_run.unwrap_or(false),
            estimates_fixed: merged.estimates_fixed == Some(true),
            ..admission
        },
        wait_max: given.time("wait-max", |options| options.wait_max, defaults.wait_max)?,
        slow_wait: merged.slow_wait.map(Span::duration),
        watches_locks: merged.monitor.is_some(),
        tenants: tenants::tenants(given)?,
    })
}

fn refuse_contradictions(given: &Given<'_, GateOptions>) -> Result<(), String> {
    let (flags, merged) = (given.flags, given.merged);
    let policy = merged.policy.unwrap_or(PolicyName::Sjf);
    if merged.aging.is_some() && policy != PolicyName::Sjf {
        return Err(format!(
            "{}: is for policy sjf and contradicts policy {}: leave one of them out",
            given.at(flags.aging.is_some(), "aging"),
            policy.name()
        ));
    }
    let starves = match policy {
        PolicyName::Sjf => merged.aging.is_none(),
        PolicyName::Gittins => true,
        PolicyName::Fifo | PolicyName::Boost => false,
    };
    if merged.oldest_share.is_some() && !starves {
        return Err(format!(
            "{}: is for policies gittins, and sjf without aging: with others nobody starves; leave it out",
            given.at(flags.oldest_share.is_some(), "oldest-share")
        ));
    }
    refuse_cancels_by_nobody(given)?;
    refuse_opening_nothing(given)?;
    if merged.trial_time.is_some() && merged.capacity != Some(Capacity::Calibrate) {
        return Err(format!(
            "{}: is used by --capacity calibrate only: add that, or leave it out",
            given.at(flags.trial_time.is_some(), "trial-time")
        ));
    }
    if merged.dry_run == Some(true) && merged.capacity == Some(Capacity::Calibrate) {
        return Err(format!(
            "{}: contradicts capacity calibrate, for whose trials requests must wait: leave one of them out",
            given.at(flags.dry_run.is_some(), "dry-run")
        ));
    }
    let estimates_fixed = merged.estimates_fixed == Some(true);
    let (fixed_by_flag, capacity) = (flags.estimates_fixed.is_some(), merged.capacity);
    if estimates_fixed && merged.estimates.is_none() {
        return Err(format!(
            "{}: has no estimates to use: add --estimates FILE, or leave it out",
            given.at(fixed_by_flag, "estimates-fixed")
        ));
    }
    if estimates_fixed && !matches!(capacity, Some(Capacity::Fixed(_) | Capacity::Off)) {
        return Err(format!(
            "{}: fixed estimates cannot find a capacity: add --capacity TIME or off",
            given.at(fixed_by_flag, "estimates-fixed")
        ));
    }
    Ok(())
}

/// Refuses to cancel runaways without a monitor.
fn refuse_cancels_by_nobody(given: &Given<'_, GateOptions>) -> Result<(), String> {
    let (flags, merged) = (given.flags, given.merged);
    if merged.monitor.is_some() {
        return Ok(());
    }
    let cancels = |runaway: Runaway| runaway.action == RunawayAction::Cancel;
    let why = "it is the monitor that cancels: add --monitor URL, or write class";
    if merged.runaway.is_some_and(cancels) {
        let place = given.at(flags.runaway.is_some(), "runaway");
        return Err(format!("{place}: {why}"));
    }
    let mut rules = merged.rule.iter().flatten().zip(1..);
    match rules.find(|(rule, _)| rule.runaway.is_some_and(cancels)) {
        None => Ok(()),
        Some((_, position)) => {
            let place = given.at(false, "rule");
            Err(format!("{place}: rule {position}: runaway: {why}"))
        }
    }
}

/// Refuses a limit to open up to that is no higher than the capacity, or where no capacity is to be exceeded.
fn refuse_opening_nothing(given: &Given<'_, GateOptions>) -> Result<(), String> {
    let Some(OpenUp::To(ceiling_ns)) = given.merged.open_up else {
        return Ok(());
    };
    let is_dry = given.merged.dry_run == Some(true);
    let problem = match given.merged.capacity {
        Some(Capacity::Off | Capacity::Calibrate) => {
            "is for --capacity TIME or auto: add one of them, or leave it out"
        }
        _ if is_dry => "means nothing in a dry run, in which nobody waits: leave one of them out",
        Some(Capacity::Fixed(capacity_ns)) if ceiling_ns <= capacity_ns => {
            "must be more than the capacity, which is the limit otherwise"
        }
        _ => return Ok(()),
    };
    let place = given.at(given.flags.open_up.is_some(), "open-up");
    Err(format!("{place}: {problem}"))
}

/// The rules for the types of requests in `protocol`.
///
/// # Errors
/// Names the rule that cannot be used.
pub fn classifier(
    given: &Given<'_, GateOptions>,
    protocol: Protocol,
) -> Result<ClassifierConfig, String> {
    let defaults = ClassifierConfig::new(protocol);
    let config = ClassifierConfig {
        protocol,
        rules: given.merged.rule.clone().unwrap_or_default(),
        sources: given.merged.types_from.clone().unwrap_or(defaults.sources),
        tags_from: given.merged.tags_from.clone().unwrap_or_default(),
        tenant_by: tenants::tenant_by(given, protocol)?,
        tenant_names: tenants::names(given),
    };
    refuse_tags_of_nobody(given, &config)?;
    // The error names the rule. The line is that of the first rule.
    Classifier::new(&config)
        .map(|_| config)
        .map_err(|error| format!("{}: {error}", given.at(false, "rule")))
}

/// Refuses a rule that can never match.
fn refuse_tags_of_nobody(
    given: &Given<'_, GateOptions>,
    config: &ClassifierConfig,
) -> Result<(), String> {
    let asks = config.rules.iter().find(|rule| !rule.tag.is_empty());
    match asks {
        Some(rule) if config.tags_from.is_empty() && config.protocol != Protocol::Http => {
            Err(format!(
                "{}: the rule of `{}` asks for a tag, and nobody's tags count: add tags-from, \
                 such as [\"10.0.1.0/24\", \"user:shop\"]",
                given.at(false, "rule"),
                rule.name
                    .as_ref()
                    .or(rule.tenant.as_ref())
                    .map_or("", String::as_str)
            ))
        }
        _ => Ok(()),
    }
}

/// Nanoseconds, if they are not 0.
fn nanoseconds(time: Duration) -> Option<NonZeroU64> {
    NonZeroU64::new(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
