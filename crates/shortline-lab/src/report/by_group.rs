//! Plots by group of clients: 004's Figs. 13 and 14, a plot of the means for each of its six WANs, and
//! its Figs. 15 and 16, the improvement on FAIR by WAN.
//!
//! A group's mean at a point is the median over the seeds. The improvement says how many times shorter
//! the mean is than FAIR's, in the mean over the points. 004 gives per cent: 1.16 times is 13.8 %.

use shortline_plot::Line;

use super::drawings::{Drawing, line_across, shows};
use super::results::Results;
use super::series;
use crate::study::claim::Plot;
use crate::study::figures::{PointFigures, SeedFigures};
use crate::study::standing::fair_of;
use crate::study::stats::Spread;

/// The plots that the experiment's figures show. None if the records do not name the clients.
pub fn drawings(results: &Results<'_>) -> Vec<Drawing> {
    let groups = groups(results);
    let mut drawings = Vec::new();
    if shows(results, Plot::MeanByGroup) {
        drawings.extend(groups.iter().map(|group| means(results, group)));
    }
    if shows(results, Plot::GainByGroup) && !groups.is_empty() {
        drawings.extend(gains(results, &groups));
    }
    drawings
}

/// The names of the groups, in the setup's order.
fn groups(results: &Results<'_>) -> Vec<String> {
    let seeds = results.figures.points.iter().flat_map(|point| &point.seeds);
    let mut runs = seeds.flat_map(|seed| &seed.runs);
    let first = runs.find(|run| !run.groups.is_empty());
    let groups = first.into_iter().flat_map(|run| &run.groups);
    groups.map(|group| group.name.clone()).collect()
}

fn means(results: &Results<'_>, group: &str) -> Drawing {
    let lines = results.plan.servers.iter().map(|server| {
        let value = |point: &PointFigures, _| {
            let means = point.seeds.iter().map(|seed| mean_s(seed, server, group));
            Spread::of(means.flatten())
        };
        line_across(results, server, value)
    });
    Drawing::plain(
        Plot::MeanByGroup,
        Some(group.into()),
        format!("mean response time of finished requests, {group}"),
        lines.collect(),
        (results.axis.into(), String::new()),
    )
}

fn mean_s(seed: &SeedFigures, server: &str, group: &str) -> Option<f64> {
    let run = seed.runs.iter().find(|run| run.server == server)?;
    run.group_mean_finished_s(group)
}

/// `None` without FAIR.
fn gains(results: &Results<'_>, groups: &[String]) -> Option<Drawing> {
    let servers = &results.plan.servers;
    let fair = fair_of(servers.iter().map(String::as_str))?;
    let others = servers.iter().filter(|server| *server != fair);
    let lines = others.map(|server| {
        let point = |(place, group): (i32, &String)| {
            Some((f64::from(place), gain(results, server, fair, group)?))
        };
        Line {
            name: server.clone(),
            style: series::style(results.plan, server),
            points: (1..).zip(groups).filter_map(point).collect(),
        }
    });
    let names = (1..)
        .zip(groups)
        .map(|(place, group)| format!("{place} {group}"));
    let names: Vec<String> = names.collect();
    Some(Drawing::plain(
        Plot::GainByGroup,
        None,
        format!("mean response time, times shorter than {fair}'s, by group of clients"),
        lines.collect(),
        (names.join(", "), "times shorter".into()),
    ))
}

fn gain(results: &Results<'_>, server: &str, fair: &str, group: &str) -> Option<f64> {
    let points = results.figures.points.iter();
    let gains = points.filter_map(|point| {
        let gain =
            |seed: &SeedFigures| Some(mean_s(seed, fair, group)? / mean_s(seed, server, group)?);
        Spread::of(point.seeds.iter().filter_map(gain))
    });
    let gains: Vec<f64> = gains.map(|spread| spread.median).collect();
    (!gains.is_empty()).then(|| gains.iter().sum::<f64>() / gains.len() as f64)
}
