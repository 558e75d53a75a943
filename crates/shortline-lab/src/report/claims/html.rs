//! The page of claims; its links lead to the experiments' own pages beside it.

use maud::{Markup, html};

use super::{Claimed, HOW_TO_READ, Paper, TITLE, link};
use crate::experiment::claim::Verdict;
use crate::experiment::ours;
use crate::experiment::pass::Ran;
use crate::report::document::{badge, document};

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

/// A link to the own page of an experiment over an uplink.
fn results(folder: &str) -> Markup {
    html! { a href={ (link(folder)) "/report.html" } { (folder) } }
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
            th { @if ran.figures.is_some() || ran.shop.is_some() || ran.kept.is_some() { (results(&ran.folder)) } @else { (ran.folder) } }
            td.words { (ran.experiment.id) }
            td.words { (conditions.bed) }
            td.words { (conditions.kernel) }
            td.words { (conditions.seconds) }
            td.words { (conditions.seeds) }
            td.words { @if let Some(text) = &conditions.cut_short { span.warning { (text) } } }
        }
    }
}
