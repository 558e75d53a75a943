//! The papers, and the figures and tables of each that experiments reproduce.

pub mod catalogue;
mod order;

use crate::study::claim::Figure;
use crate::study::design::Experiment;
use catalogue::all;

/// The papers: the number with which names of figures begin, and the title.
pub const PAPERS: [(&str, &str); 5] = [
    (
        "000",
        "Schroeder and Harchol-Balter, Web servers under overload (2006)",
    ),
    (
        "001",
        "Crovella, Frangioso and Harchol-Balter, Connection scheduling in web servers (1999)",
    ),
    (
        "002",
        "Elnikety, Nahum, Tracey and Zwaenepoel, A method for transparent admission control \
         and request scheduling in e-commerce web sites (2004)",
    ),
    (
        "003",
        "Harchol-Balter, Bansal, Schroeder and Agrawal, Implementation of SRPT scheduling in web servers (2000)",
    ),
    (
        "004",
        "a thesis on scheduling by shortest remaining response time through heterogeneous WANs",
    ),
];

/// A paper's figures and tables in its order, each with the experiment that reproduces it.
pub fn claims_of(paper: &str) -> Vec<(&'static Experiment, &'static Figure)> {
    let mut claims = Vec::new();
    for experiment in all() {
        let figures = experiment.figures.iter();
        let of_paper = figures.filter(|figure| figure.name.starts_with(paper));
        claims.extend(of_paper.map(|figure| (experiment, figure)));
    }
    claims.sort_by_cached_key(|(_, figure)| order::key(&figure.name));
    claims
}
