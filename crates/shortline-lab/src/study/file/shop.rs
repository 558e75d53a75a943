//! A study of the bookstore: the databases, the steps on each, and the claims.

use shortline_bookstore::{Interaction, Statements};
use toml::Spanned;

use super::error::{Source, StudyError};
use super::figures::{want, word};
use super::keys::{CheckKeys, StageKeys, StepKeys, StudyKeys};
use crate::study::shop::{Check, Design, Door, Load, Measure, ShopNameError, Stage, Step};

/// Limits of numbers: interactions of a phase, connections of a shop, times as long of a step.
const INTERACTIONS_MAX: u32 = 10_000_000;
const CONNECTIONS_MAX: u32 = 10_000;
const TIMES_MAX: u64 = 1_000;

/// The design of the study.
///
/// # Errors
/// The first key that is wrong or missing.
pub fn design(source: Source<'_>, keys: &StudyKeys) -> Result<Design, StudyError> {
    let locking = keys.locking.as_ref().map(|locking| *locking.get_ref());
    let stages = keys.stage.iter().map(|stage| {
        let steps = match &stage.get_ref().step[..] {
            [] => &keys.step,
            own => own,
        };
        if steps.is_empty() {
            let want = "a [[step]] of the study or of each stage";
            return Err(source.lacks(stage.span(), "step", want));
        }
        read_stage(source, stage.get_ref(), steps)
    });
    let stages = stages.collect::<Result<Vec<Stage>, StudyError>>()?;
    if stages.is_empty() {
        return Err(source.lacks(0..0, "stage", "a [[stage]] for each database"));
    }
    Ok(Design {
        locking: locking.unwrap_or_default(),
        statements: keys
            .statements
            .as_ref()
            .map_or_else(Statements::default, |statements| *statements.get_ref()),
        stages,
    })
}

fn read_stage(
    source: Source<'_>,
    keys: &StageKeys,
    steps: &[Spanned<StepKeys>],
) -> Result<Stage, StudyError> {
    let factor = *keys.factor.get_ref();
    if !(factor > 0.0 && factor <= 1_000.0) {
        return Err(source.wrong(&keys.factor, factor, "above 0, 1000 at most"));
    }
    let capacity = keys.capacity.get_ref().duration();
    let whole = capacity.subsec_nanos().is_multiple_of(1_000_000);
    let capacity_ms = u32::try_from(capacity.as_millis()).ok();
    let capacity_ms = capacity_ms.filter(|ms| whole && *ms > 0).ok_or_else(|| {
        let want = "whole milliseconds, such as \"200ms\"";
        source.wrong(&keys.capacity, keys.capacity.get_ref(), want)
    })?;
    within(source, &keys.phase_interactions, INTERACTIONS_MAX)?;
    within(source, &keys.open_connections, CONNECTIONS_MAX)?;
    let open_connections = *keys.open_connections.get_ref();
    if let Some(warm) = &keys.warm_connections {
        within(source, warm, open_connections)?;
    }
    let steps = steps.iter().map(|step| read_step(source, step.get_ref()));
    Ok(Stage {
        database: keys.database.0,
        factor,
        capacity_ms,
        phase_interactions: *keys.phase_interactions.get_ref(),
        open_connections,
        warm_connections: (keys.warm_connections.as_ref())
            .map_or(open_connections, |warm| *warm.get_ref()),
        steps: steps.collect::<Result<_, _>>()?,
    })
}

fn read_step(source: Source<'_>, keys: &StepKeys) -> Result<Step, StudyError> {
    if keys.doors.get_ref().is_empty() {
        let want = "at least one, such as \"fifo\"";
        return Err(source.wrong(&keys.doors, "no door", want));
    }
    let times = keys.times.as_ref();
    if let Some(times) = times.filter(|times| !(1..=TIMES_MAX).contains(times.get_ref())) {
        let want = format!("1 to {TIMES_MAX}");
        return Err(source.wrong(times, times.get_ref(), want));
    }
    Ok(Step {
        load: keys.load.0,
        doors: keys.doors.get_ref().iter().map(|door| door.0).collect(),
        times: times.map_or(1, |times| *times.get_ref()),
        is_repeated: keys.repeated,
    })
}

fn within(source: Source<'_>, number: &Spanned<u32>, most: u32) -> Result<(), StudyError> {
    if (1..=most).contains(number.get_ref()) {
        return Ok(());
    }
    Err(source.wrong(number, number.get_ref(), format!("1 to {most}")))
}

/// A check, whose doors and loads must be in the design.
///
/// # Errors
/// The first key that is wrong.
pub fn check(
    source: Source<'_>,
    design: &Design,
    check: &Spanned<CheckKeys>,
) -> Result<Check, StudyError> {
    let keys = check.get_ref();
    if let Some(key) = keys.group.as_ref().or(keys.over_group.as_ref()) {
        return Err(source.wrong(key, "a shop has no groups", "it in a study over an uplink"));
    }
    if let Some(across) = &keys.across {
        return Err(source.wrong(
            across,
            "a shop has no points",
            "it in a study over an uplink",
        ));
    }
    for (key, is_given) in [
        ("over-at", keys.over_at.is_some()),
        ("sizes", keys.sizes.is_some()),
        ("bytes", keys.bytes.is_some()),
        ("second", keys.second.is_some()),
        ("connections", keys.connections.is_some()),
    ] {
        if is_given {
            let problem = format!("{key} has no meaning for a shop");
            return Err(source.wrong(check, problem, "it in a study over an uplink"));
        }
    }
    let (measure, want) = (measure(source, keys)?, want(source, check)?);
    let mut read = match &keys.paper {
        Some(paper) => Check::new(measure, want, paper),
        None => Check::own_aim(measure, want),
    };
    if let Some(better) = &keys.better {
        read = read.better(*better.get_ref());
    }
    if keys.of.is_some() || keys.over.is_some() {
        let of = door(source, keys.of.as_ref(), Door::SJF)?;
        read = read.of(of, door(source, keys.over.as_ref(), Door::FIFO)?);
    }
    if let Some(at) = &keys.at {
        let load: Result<Load, _> = at.get_ref().parse();
        read = read.at(load.map_err(|error| source.error_at(at.span(), error.to_string()))?);
    }
    if let Some(database) = &keys.database {
        read = read.on(database.get_ref().0);
    }
    let stages = design.stages.iter();
    for stage in stages.filter(|stage| read.is_of(stage.database)) {
        if let Some(problem) = read.not_run(&stage.steps) {
            let want = "of, over and at that a step has";
            return Err(source.error_at(check.span(), format!("{problem}: want {want}")));
        }
    }
    Ok(read)
}

fn door(
    source: Source<'_>,
    name: Option<&Spanned<String>>,
    usual: Door,
) -> Result<Door, StudyError> {
    name.map_or(Ok(usual), |name| {
        let wrong = |error: ShopNameError| source.error_at(name.span(), error.to_string());
        name.get_ref().parse().map_err(wrong)
    })
}

/// The measure, which may be about one type of interaction.
fn measure(source: Source<'_>, keys: &CheckKeys) -> Result<Measure, StudyError> {
    let name = &keys.measure;
    let of_type: Option<fn(Interaction) -> Measure> = match name.get_ref().as_str() {
        "type-ratio" => Some(Measure::TypeRatio),
        "wait-gain" => Some(Measure::WaitGain),
        "wait-ratio" => Some(Measure::WaitRatio),
        "busy-ratio" => Some(Measure::BusyRatio),
        "service-ratio" => Some(Measure::ServiceRatio),
        _ => None,
    };
    match (of_type, &keys.interaction) {
        (Some(measure), Some(interaction)) => Ok(measure(interaction.get_ref().0)),
        (Some(_), None) => {
            let want = "interaction = \"best_sellers\" or another beside it";
            Err(source.wrong(name, "is of one type", want))
        }
        (None, Some(interaction)) => {
            let want = "it with type-ratio, wait-gain, wait-ratio, busy-ratio or service-ratio";
            Err(source.wrong(interaction, "the measure is of all types", want))
        }
        (None, None) => word(source, name),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::tests::{assert_refused, parsed};

    #[test]
    fn a_shop_is_refused_with_the_same_care() {
        let study = |check: &str| {
            format!(
                "kind = \"bookstore\"\n[[step]]\nload = \"9-browsers\"\ndoors = [\"sjf\", \"fifo\"]\n\
             [[stage]]\ndatabase = \"postgres\"\nfactor = 0.1\ncapacity = \"20ms\"\n\
             phase-interactions = 9\nopen-connections = 9\n\
             [[figure]]\nclaim = \"c\"\n[[figure.check]]\nmeasure = \"mean-gain\"\nat-least = 1\n\
             {check}\n"
            )
        };
        let good = study("");
        parsed(&good).unwrap();
        for (from, to, begin, right) in [
            ("9-browsers", "9-users", "3: step.load: ", "N-browsers"),
            ("\"fifo\"", "\"lifo\"", "4: step.doors: ", "want none, fifo"),
            (
                "\"sjf\", \"fifo\"",
                "",
                "4: step.doors: ",
                "want at least one",
            ),
            (
                "postgres",
                "oracle",
                "6: stage.database: ",
                "want postgres or mariadb",
            ),
            ("0.1", "-1", "7: stage.factor: ", "want above 0"),
            (
                "20ms",
                "20us",
                "8: stage.capacity: ",
                "want whole milliseconds",
            ),
            (
                "interactions = 9",
                "interactions = 0",
                "9: stage.phase-interactions: ",
                "want 1 to",
            ),
            (
                "mean-gain",
                "wait-gain",
                "14: figure.check.measure: ",
                "want interaction",
            ),
            (
                "mean-gain",
                "biggest-ratio",
                "14: figure.check.measure: ",
                "`peak-ratio`",
            ),
        ] {
            assert_refused(&good.replace(from, to), begin, right);
        }
        let other_door = study("of = \"none\"");
        assert_refused(
            &other_door,
            "13: figure.check: none is not run",
            "want of, over and at",
        );
        let other_load = study("at = \"8-browsers\"");
        assert_refused(&other_load, "13: figure.check: ", "want of, over and at");
        let never = good.replace("9-browsers\"", "9-browsers\"\ntimes = 0");
        assert_refused(&never, "4: step.times: ", "want 1 to 1000");
    }
}
