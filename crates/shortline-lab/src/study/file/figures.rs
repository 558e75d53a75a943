//! The figures of a study over an uplink, and their claims in numbers.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::value::{Error as WordError, StrDeserializer};
use toml::Spanned;

use super::error::{Source, StudyError};
use super::keys::{CheckKeys, ClauseKeys, FigureKeys, KindName, StudyKeys};
use crate::study::claim::{Across, Check, Clause, Figure, LinkCheck, Measure, Plot, Requests};
use crate::study::design::Design;
use crate::study::verdict::{OWN_AIM, Want};

/// What `within` must be.
const SHARE: &str = "how far it may be from that, as a share above 0 and below 1";
/// What a figure draws by default.
const SHOWS: [Plot; 6] = [
    Plot::OverTime,
    Plot::FirstByte,
    Plot::Complementary,
    Plot::BySize,
    Plot::Stretch,
    Plot::Connections,
];

/// All figures. `read` reads a check. A study without figures gets one.
///
/// # Errors
/// The first key that is wrong, or a clause without a check.
pub fn figures(
    source: Source<'_>,
    id: &str,
    keys: &StudyKeys,
    read: impl Fn(&Spanned<CheckKeys>) -> Result<Check, StudyError>,
) -> Result<Vec<Figure>, StudyError> {
    // The plots of a bookstore's page are fixed.
    let usual = match keys.kind {
        KindName::Bookstore => &[],
        _ => &SHOWS[..],
    };
    if keys.figure.is_empty() {
        return Ok(vec![Figure {
            name: String::new(),
            claim: format!("the study {id}"),
            clauses: Vec::new(),
            aims: Vec::new(),
            shows: usual.to_vec(),
        }]);
    }
    let figure = |table: &Spanned<FigureKeys>| {
        let keys = table.get_ref();
        let clauses = keys
            .clause
            .iter()
            .map(|table| clause(source, &keys.name, table, &read));
        let clauses = clauses.collect::<Result<Vec<Clause>, StudyError>>()?;
        let aims = keys.check.iter().map(|check| aim(source, check, &read));
        Ok(Figure {
            name: keys.name.clone(),
            claim: prose(source, table, &clauses)?,
            clauses,
            aims: aims.collect::<Result<_, _>>()?,
            shows: keys.shows.as_ref().map_or(usual, Vec::as_slice).to_vec(),
        })
    };
    keys.figure.iter().map(figure).collect()
}

/// A clause of a paper's claim, which has a check.
fn clause(
    source: Source<'_>,
    figure: &str,
    table: &Spanned<ClauseKeys>,
    read: impl Fn(&Spanned<CheckKeys>) -> Result<Check, StudyError>,
) -> Result<Clause, StudyError> {
    let ClauseKeys { says, check } = table.get_ref();
    if check.is_empty() {
        let problem = format!("`{says}` of figure `{figure}` has no check");
        let want = "a check of each clause, with the paper's figure as `paper`";
        return Err(source.wrong(table, problem, want));
    }
    if let Some(own) = check.iter().find(|check| check.get_ref().paper.is_none()) {
        let want = "the paper's figure as `paper`, or the check beside the clauses";
        return Err(source.wrong(own, "an aim of our own in a clause of a paper", want));
    }
    Ok(Clause {
        says: says.clone(),
        checks: check.iter().map(read).collect::<Result<_, _>>()?,
    })
}

/// A check that is our own aim.
fn aim(
    source: Source<'_>,
    check: &Spanned<CheckKeys>,
    read: impl Fn(&Spanned<CheckKeys>) -> Result<Check, StudyError>,
) -> Result<Check, StudyError> {
    if check.get_ref().paper.is_some() {
        let want = "it in a [[figure.clause]], with the words that it checks as `says`";
        return Err(source.wrong(check, "a paper's claim without its words", want));
    }
    read(check)
}

/// What a figure says: its clauses together, or the words of one that claims nothing of a paper.
fn prose(
    source: Source<'_>,
    table: &Spanned<FigureKeys>,
    clauses: &[Clause],
) -> Result<String, StudyError> {
    match (&table.get_ref().claim, clauses) {
        (Some(claim), []) => Ok(claim.get_ref().clone()),
        (Some(claim), _) => {
            let want = "either: the claim is its clauses together";
            Err(source.wrong(claim, "beside clauses", want))
        }
        (None, []) => {
            let want =
                "what it shows in words, or a [[figure.clause]] for each clause of a paper's claim";
            Err(source.lacks(table.span(), "claim", want))
        }
        (None, clauses) => {
            let says: Vec<&str> = clauses.iter().map(|clause| clause.says.as_str()).collect();
            Ok(says.join("; "))
        }
    }
}

/// A check, whose points and servers must be in the design.
///
/// # Errors
/// The first key that is wrong.
pub fn check(
    source: Source<'_>,
    design: &Design,
    check: &Spanned<CheckKeys>,
) -> Result<LinkCheck, StudyError> {
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
    let measure: Measure = word(source, &keys.measure)?;
    let requests = requests(source, design, keys)?;
    if !measure.takes(&requests) {
        let want =
            "one that is kept for them, such as `mean-gain` by size or `finished-gain` by group";
        return Err(source.wrong(&keys.measure, "not kept for these requests", want));
    }
    let over_at = (keys.over_at.as_ref()).map(|label| point(source, design, label));
    let over_at = over_at.transpose()?;
    let (at, mut points) = at(source, design, keys.at.as_ref())?;
    points.retain(|label| Some(label) != over_at.as_ref());
    Ok(LinkCheck {
        measure,
        of: own(&keys.of),
        over: own(&keys.over),
        at,
        points,
        over_at,
        requests,
        number: number(source, measure, keys)?,
        across: keys
            .across
            .as_ref()
            .map_or(Across::Each, |across| *across.get_ref()),
        want: want(source, check)?,
        better: (keys.better.as_ref()).map_or(measure.better(), |better| *better.get_ref()),
        servers: design.servers.clone(),
        paper: keys.paper.clone().unwrap_or_else(|| OWN_AIM.into()),
    })
}

/// The number that a measure needs, and no other has.
fn number(
    source: Source<'_>,
    measure: Measure,
    keys: &CheckKeys,
) -> Result<Option<f64>, StudyError> {
    let given = [("second", &keys.second), ("connections", &keys.connections)];
    for (key, value) in given {
        if let Some(value) = value.as_ref().filter(|_| measure.number_key() != Some(key)) {
            let want =
                "it with mean-at or connections-at (second), or connections-reach (connections)";
            return Err(source.wrong(value, "the measure has no such number", want));
        }
    }
    let Some(key) = measure.number_key() else {
        return Ok(None);
    };
    let found = given.iter().find_map(|(_, value)| value.as_ref());
    let value = found.ok_or_else(|| {
        source.wrong(
            &keys.measure,
            "lacks a number",
            format!("{key} = N beside it"),
        )
    })?;
    finite(source, value).map(Some)
}

fn finite(source: Source<'_>, number: &Spanned<f64>) -> Result<f64, StudyError> {
    let value = *number.get_ref();
    match value.is_finite() {
        true => Ok(value),
        false => Err(source.wrong(number, value, "a number")),
    }
}

/// A range, the lower value first.
fn range(
    source: Source<'_>,
    range: &Spanned<(f64, f64)>,
    most: f64,
) -> Result<(f64, f64), StudyError> {
    let (from, to) = *range.get_ref();
    match from < to && to <= most && from.is_finite() {
        true => Ok((from, to)),
        false => {
            let want = "two numbers, the lower one first";
            let want = if most.is_finite() {
                format!("{want}, {most} at most")
            } else {
                want.into()
            };
            Err(source.wrong(range, format!("[{from}, {to}]"), want))
        }
    }
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
    const WANT: &str = "one of at-least, at-most, between, near (with within) or percent-shorter";
    let keys = check.get_ref();
    let wants = [
        keys.at_least.is_some(),
        keys.at_most.is_some(),
        keys.percent_shorter.is_some(),
        keys.between.is_some(),
        keys.near.is_some(),
    ];
    if wants.iter().filter(|given| **given).count() != 1 {
        return Err(source.error_at(check.span(), format!("what it should be: want {WANT}")));
    }
    match (
        &keys.within,
        keys.near.is_some() || keys.percent_shorter.is_some(),
    ) {
        (Some(within), false) => {
            return Err(source.wrong(within, "without near", "near = X beside it"));
        }
        (None, true) => return Err(source.lacks(check.span(), "within", SHARE)),
        _ => {}
    }
    let within = keys
        .within
        .as_ref()
        .map(|within| share(source, within))
        .transpose()?;
    let within = within.unwrap_or_default();
    if let Some(least) = &keys.at_least {
        return finite(source, least).map(Want::AtLeast);
    }
    if let Some(most) = &keys.at_most {
        return finite(source, most).map(Want::AtMost);
    }
    if let Some(between) = &keys.between {
        let (low, high) = range(source, between, f64::INFINITY)?;
        return Ok(Want::Between(low, high));
    }
    if let Some(near) = &keys.near {
        return Ok(Want::Near(finite(source, near)?, within));
    }
    let percent = keys
        .percent_shorter
        .as_ref()
        .expect("invariant: one of the five is given");
    // A time that is p per cent shorter is 1/(1 - p/100) times shorter.
    let times = |percent: f64| 1.0 / (1.0 - percent / 100.0);
    let value = finite(source, percent)?;
    match value * (1.0 + within) < 100.0 {
        true => Ok(Want::Between(
            times(value * (1.0 - within)),
            times(value * (1.0 + within)),
        )),
        false => Err(source.wrong(percent, value, "below 100, with what `within` adds")),
    }
}

fn share(source: Source<'_>, within: &Spanned<f64>) -> Result<f64, StudyError> {
    match *within.get_ref() {
        share if share > 0.0 && share < 1.0 => Ok(share),
        other => Err(source.wrong(within, other, SHARE)),
    }
}

/// The points whose labels begin as said, in words and by their labels.
fn at(
    source: Source<'_>,
    design: &Design,
    at: Option<&Spanned<String>>,
) -> Result<(String, Vec<String>), StudyError> {
    let begin = at.map_or("", |at| at.get_ref());
    let labels = design.points.iter().map(|point| point.label.clone());
    let labels: Vec<String> = labels.filter(|label| label.starts_with(begin)).collect();
    match (at, &labels[..]) {
        (Some(at), []) => Err(no_point(source, design, at)),
        _ => Ok((begin.into(), labels)),
    }
}

/// The label of one point.
fn point(
    source: Source<'_>,
    design: &Design,
    label: &Spanned<String>,
) -> Result<String, StudyError> {
    let mut points = design.points.iter();
    let found = points.find(|point| point.label == *label.get_ref());
    let found = found.ok_or_else(|| no_point(source, design, label))?;
    Ok(found.label.clone())
}

fn no_point(source: Source<'_>, design: &Design, at: &Spanned<String>) -> StudyError {
    let labels: Vec<&str> = design
        .points
        .iter()
        .map(|point| point.label.as_str())
        .collect();
    let problem = format!("no point's label begins with `{}`", at.get_ref());
    source.wrong(
        at,
        problem,
        format!("the begin of one of {}", labels.join(", ")),
    )
}

fn requests(source: Source<'_>, design: &Design, keys: &CheckKeys) -> Result<Requests, StudyError> {
    for group in keys.group.iter().chain(&keys.over_group) {
        let points = design.points.iter();
        let groups = points.flat_map(|point| &point.setup.environment.groups);
        let names: BTreeSet<&str> = groups.map(|known| known.name.as_str()).collect();
        if !names.contains(group.get_ref().as_str()) {
            let names: Vec<&str> = names.into_iter().collect();
            let problem = format!("no point has clients called `{}`", group.get_ref());
            return Err(source.wrong(group, problem, format!("one of {}", names.join(", "))));
        }
    }
    if let Some(both) = keys
        .sizes
        .as_ref()
        .filter(|_| keys.bytes.is_some() || keys.group.is_some())
    {
        return Err(source.wrong(both, "beside bytes or group", "one of them"));
    }
    if let Some(both) = keys.bytes.as_ref().filter(|_| keys.group.is_some()) {
        return Err(source.wrong(both, "beside group", "one of them"));
    }
    if let Some(sizes) = &keys.sizes {
        let (from, to) = range(source, sizes, 100.0)?;
        return Ok(Requests::Percentiles(from, to));
    }
    if let Some(bytes) = &keys.bytes {
        let (from, to) = range(source, bytes, f64::INFINITY)?;
        return Ok(Requests::Bytes(from, to));
    }
    match (&keys.group, &keys.over_group) {
        (None, None) => Ok(Requests::All),
        (Some(group), None) => Ok(Requests::Group(group.get_ref().clone())),
        (Some(group), Some(over)) => {
            let names = (group.get_ref().clone(), over.get_ref().clone());
            Ok(Requests::GroupOver(names.0, names.1))
        }
        (None, Some(over)) => Err(source.wrong(over, "without group", "both of them")),
    }
}
