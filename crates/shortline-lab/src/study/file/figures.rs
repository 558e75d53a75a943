//! The figures of a study over an uplink, and their claims in numbers.

use serde::Deserialize;
use serde::de::value::{Error as WordError, StrDeserializer};
use toml::Spanned;

use super::error::{Source, StudyError};
use super::keys::{CheckKeys, KindName, StudyKeys};
use crate::study::claim::{Across, Check, Clients, Figure, Plot};
use crate::study::design::Design;
use crate::study::verdict::{OWN_AIM, Want};

/// What a figure draws by default.
const SHOWS: [Plot; 6] = [
    Plot::OverTime,
    Plot::FirstByte,
    Plot::Complementary,
    Plot::BySize,
    Plot::Stretch,
    Plot::Connections,
];

/// All figures. `add` adds the checks of each. A study without figures gets one.
///
/// # Errors
/// The first key that is wrong.
pub fn figures(
    id: &str,
    keys: &StudyKeys,
    add: impl Fn(&mut Figure, &Spanned<CheckKeys>) -> Result<(), StudyError>,
) -> Result<Vec<Figure>, StudyError> {
    // The plots of a bookstore's page are fixed.
    let usual = match keys.kind {
        KindName::Bookstore => &[],
        _ => &SHOWS[..],
    };
    let figure = |name: &str, claim: &str, shows: Option<&Vec<Plot>>| Figure {
        name: name.into(),
        claim: claim.into(),
        checks: Vec::new(),
        shop_checks: Vec::new(),
        shows: shows.map_or(usual, Vec::as_slice).to_vec(),
    };
    if keys.figure.is_empty() {
        return Ok(vec![figure("", &format!("the study {id}"), None)]);
    }
    let mut figures = Vec::new();
    for keys in keys.figure.iter().map(Spanned::get_ref) {
        let mut read = figure(&keys.name, &keys.claim, keys.shows.as_ref());
        for check in &keys.check {
            add(&mut read, check)?;
        }
        figures.push(read);
    }
    Ok(figures)
}

/// A check, whose points and servers must be in the design.
///
/// # Errors
/// The first key that is wrong.
pub fn check(
    source: Source<'_>,
    design: &Design,
    check: &Spanned<CheckKeys>,
) -> Result<Check, StudyError> {
    let keys = check.get_ref();
    if let Some(database) = &keys.database {
        return Err(source.wrong(database, "no database is run", "it in a bookstore's study"));
    }
    if let Some(interaction) = &keys.interaction {
        return Err(source.wrong(interaction, "no shop is run", "it in a bookstore's study"));
    }
    for server in keys.of.iter().chain(&keys.over) {
        if !design.servers.contains(server.get_ref()) {
            let problem = format!("server `{}` is not run", server.get_ref());
            let want = format!("one of {}", design.servers.join(", "));
            return Err(source.wrong(server, problem, want));
        }
    }
    let own = |key: &Option<Spanned<String>>| key.as_ref().map(|text| text.get_ref().clone());
    Ok(Check {
        measure: word(source, &keys.measure)?,
        of: own(&keys.of),
        over: own(&keys.over),
        at: at(source, design, keys.at.as_ref())?,
        clients: clients(source, design, keys)?,
        across: keys
            .across
            .as_ref()
            .map_or(Across::Each, |across| *across.get_ref()),
        want: want(source, check)?,
        paper: keys.paper.clone().unwrap_or_else(|| OWN_AIM.into()),
    })
}

/// Parses a word into one of an enum's values.
///
/// # Errors
/// If it is none of them. The error lists all words.
pub fn word<'de, T: Deserialize<'de>>(
    source: Source<'_>,
    text: &'de Spanned<String>,
) -> Result<T, StudyError> {
    let word = StrDeserializer::<WordError>::new(text.get_ref());
    T::deserialize(word).map_err(|error| source.error_at(text.span(), error.to_string()))
}

/// The expected value of a check.
///
/// # Errors
/// If it is missing, given twice, or not a number.
pub fn want(source: Source<'_>, check: &Spanned<CheckKeys>) -> Result<Want, StudyError> {
    const WANT: &str = "one of at-least, at-most or percent-shorter";
    let keys = check.get_ref();
    let wanted = [&keys.at_least, &keys.at_most, &keys.percent_shorter];
    for number in wanted.into_iter().flatten() {
        if !number.get_ref().is_finite() {
            return Err(source.wrong(number, number.get_ref(), "a number"));
        }
    }
    match wanted.map(Option::as_ref) {
        [Some(least), None, None] => Ok(Want::AtLeast(*least.get_ref())),
        [None, Some(most), None] => Ok(Want::AtMost(*most.get_ref())),
        [None, None, Some(percent)] if *percent.get_ref() < 100.0 => {
            // A time that is p per cent shorter is 1/(1 - p/100) times shorter.
            Ok(Want::AtLeast(1.0 / (1.0 - percent.get_ref() / 100.0)))
        }
        [None, None, Some(percent)] => Err(source.wrong(percent, percent.get_ref(), "below 100")),
        _ => Err(source.error_at(check.span(), format!("what it should be: want {WANT}"))),
    }
}

fn at(
    source: Source<'_>,
    design: &Design,
    at: Option<&Spanned<String>>,
) -> Result<String, StudyError> {
    let Some(at) = at else {
        return Ok(String::new());
    };
    let mut points = design.points.iter();
    if points.any(|point| point.label.starts_with(at.get_ref())) {
        return Ok(at.get_ref().clone());
    }
    let labels: Vec<&str> = design
        .points
        .iter()
        .map(|point| point.label.as_str())
        .collect();
    let problem = format!("no point's label begins with `{}`", at.get_ref());
    Err(source.wrong(
        at,
        problem,
        format!("the begin of one of {}", labels.join(", ")),
    ))
}

fn clients(source: Source<'_>, design: &Design, keys: &CheckKeys) -> Result<Clients, StudyError> {
    for group in keys.group.iter().chain(&keys.over_group) {
        let points = design.points.iter();
        let mut groups = points.flat_map(|point| &point.setup.environment.groups);
        if !groups.any(|known| known.name == *group.get_ref()) {
            let problem = format!("no point has clients called `{}`", group.get_ref());
            return Err(source.wrong(group, problem, "the name of one of its groups"));
        }
    }
    match (&keys.group, &keys.over_group) {
        (None, None) => Ok(Clients::All),
        (Some(group), None) => Ok(Clients::Group(group.get_ref().clone())),
        (Some(group), Some(over)) => {
            let names = (group.get_ref().clone(), over.get_ref().clone());
            Ok(Clients::GroupOver(names.0, names.1))
        }
        (None, Some(over)) => Err(source.wrong(over, "without group", "both of them")),
    }
}
