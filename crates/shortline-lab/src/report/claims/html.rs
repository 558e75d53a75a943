//! The page of claims; its links lead to the experiments' own pages beside it.

use maud::{Markup, html};

use super::claimed::{Claimed, HOW_TO_READ, Paper, Place, TITLE, link};
use crate::report::document::{badge, document};
use crate::report::table::ours;
use crate::study::ran::Ran;
use crate::study::verdict::Verdict;

/// The whole page.
pub fn render(papers: &[Paper], pass: &[Ran]) -> String {
    let main = html! {
        (summary(papers))
        @for paper in papers { (section(paper)) }
        (experiments(pass))
    };
    document(TITLE, None, &main).into_string()
}

fn summary(papers: &[Paper]) -> Markup {
    html! {
        section {
            div.scroll {
                table {
                    thead {
                        tr {
                            th { "paper" }
                            @for verdict in Verdict::ALL { th { (badge(verdict)) } }
                        }
                    }
                    tbody {
                        @for paper in papers {
                            tr {
                                th { (paper.number) }
                                @for verdict in Verdict::ALL { td { (paper.count(verdict)) } }
                            }
                        }
                    }
                }
            }
            p.note { (HOW_TO_READ) }
        }
    }
}

fn section(paper: &Paper) -> Markup {
    html! {
        section id={ "paper-" (paper.number) } {
            h2 { (paper.number) ": " (paper.title) }
            p { "Of " (paper.all()) " figures and tables " (paper.counts()) "." }
            @for claimed in &paper.figures { (claim(claimed)) }
            @if !paper.absent.is_empty() {
                p { "Not measured:" }
                ul { @for absent in &paper.absent { li { (absent.words()) } } }
            }
        }
    }
}

fn claim(claimed: &Claimed) -> Markup {
    html! {
        article.claim {
            p { strong { (claimed.figure.name) } " " (badge(claimed.verdict)) }
            p {
                (claimed.figure.claim) ". "
                @for folder in &claimed.folders { (results(folder)) " " }
            }
            @if !claimed.checks.is_empty() { (checks(claimed)) }
            @for paragraph in &claimed.why { p.why { (paragraph) } }
        }
    }
}

fn checks(claimed: &Claimed) -> Markup {
    html! {
        div.scroll {
            table {
                thead { tr { th { "" } th { "compared" } th { "paper" } th { "ours" } } }
                tbody {
                    @for checked in &claimed.checks {
                        tr {
                            td { (badge(checked.compared.verdict)) }
                            td.words { (checked.compared.what) }
                            td.words { (checked.paper) }
                            td.words { (ours(&checked.compared)) }
                        }
                    }
                }
            }
        }
    }
}

/// An experiment's folder, with a link to its own page if it is there.
fn results(place: &Place) -> Markup {
    let name = &place.name;
    html! {
        @if place.has_runs { a href={ (link(name)) "/report.html" } { (name) } } @else { (name) }
    }
}

fn experiments(pass: &[Ran]) -> Markup {
    html! {
        section {
            h2 { "What was run" }
            div.scroll {
                table {
                    thead {
                        tr {
                            th { "results" } th { "experiment" } th { "bed" } th { "kernel" }
                            th { "seconds" } th { "seeds" } th { "" }
                        }
                    }
                    tbody {
                        @for ran in pass { (experiment(ran)) }
                    }
                }
            }
        }
    }
}

fn experiment(ran: &Ran) -> Markup {
    let conditions = &ran.conditions;
    html! {
        tr {
            th { (results(&Place::of(ran))) }
            td.words { (ran.experiment.id) }
            td.words { (conditions.bed) }
            td.words { (conditions.kernel) }
            td.words { (conditions.seconds) }
            td.words { (conditions.seeds) }
            td.words { @if let Some(text) = &conditions.cut_short { span.warning { (text) } } }
        }
    }
}
