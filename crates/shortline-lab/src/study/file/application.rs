//! A study of a gate before a web application.

use std::time::Duration;

use shortline_sched::units::Span;
use toml::Spanned;

use super::error::{Source, StudyError};
use super::keys::{RequestTypeKeys, StudyKeys};
use crate::study::application::{Design, Model, RequestType};

/// Limits of numbers: servers, a phase, the whole.
const SERVERS_MAX: f64 = 1_000.0;
const TIME_MAX: Duration = Duration::from_secs(3600);

/// The design of the study.
///
/// # Errors
/// The first key that is wrong or missing.
pub fn design(source: Source<'_>, keys: &StudyKeys) -> Result<Design, StudyError> {
    let want = "what is before the application in turn, such as [\"direct\", \"shortline\"]";
    let Some(doors) = &keys.doors else {
        return Err(source.lacks(0..0, "doors", want));
    };
    if doors.get_ref().is_empty() {
        return Err(source.wrong(doors, "no door", want));
    }
    let Some(application) = &keys.application else {
        return Err(source.lacks(0..0, "application", "the table [application]"));
    };
    let keys = application.get_ref();
    if keys.types.is_empty() {
        return Err(source.lacks(application.span(), "type", "an [[application.type]]"));
    }
    let types = keys.types.iter().map(|kind| read_type(source, kind));
    Ok(Design {
        doors: doors.get_ref().iter().map(|door| door.0).collect(),
        model: Model {
            servers: within(source, &keys.servers, 0.1, SERVERS_MAX)?,
            knee: within(source, &keys.knee, 0.0, f64::MAX)?,
            fall: within(source, &keys.fall, 0.0, 1.0)?,
            types: types.collect::<Result<_, _>>()?,
        },
        phase: time(source, &keys.phase)?,
        length: time(source, &keys.time)?,
    })
}

fn read_type(
    source: Source<'_>,
    kind: &Spanned<RequestTypeKeys>,
) -> Result<RequestType, StudyError> {
    let keys = kind.get_ref();
    let path = keys.path.get_ref();
    let is_plain = path
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !b"?#\"".contains(&byte));
    if !(path.starts_with('/') && is_plain) {
        return Err(source.wrong(
            &keys.path,
            path,
            "a path without a query, such as \"/item\"",
        ));
    }
    Ok(RequestType {
        path: path.clone(),
        service_s: time(source, &keys.service)?.as_secs_f64(),
        share: within(source, &keys.share, 1e-6, 1e6)?,
    })
}

fn time(source: Source<'_>, span: &Spanned<Span>) -> Result<Duration, StudyError> {
    let time = span.get_ref().duration();
    if time.is_zero() || time > TIME_MAX {
        return Err(source.wrong(span, span.get_ref(), "above 0s, 1 hour at most"));
    }
    Ok(time)
}

fn within(
    source: Source<'_>,
    number: &Spanned<f64>,
    least: f64,
    most: f64,
) -> Result<f64, StudyError> {
    let value = *number.get_ref();
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(source.wrong(number, value, format!("{least} to {most}")))
}
