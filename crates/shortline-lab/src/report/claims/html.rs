//! The page of claims; its links lead to the experiments' own pages beside it.

use maud::{Markup, html};

use super::claimed::{Claimed, HOW_TO_READ, Paper, Place, SYSTEMS, TITLE, link};
use crate::report::document::{badge, comparisons, document};
use crate::study::claim::System;
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
                            th { "system" }
                            th { "of" }
                            @for verdict in Verdict::ALL { th { (badge(verdict)) } }
                        }
                    }
                    tbody {
                        @for paper in papers {
                            @for (system, of, counts) in paper.rows() {
                                tr {
                                    th { (paper.number) }
                                    td.words { (system) }
                                    td.words { (of) }
                                    @for count in counts { td { (count) } }
                                }
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
            p {
                "Of " (paper.all()) " figures and tables " (paper.counts(System::Ours))
                ". With the paper's own system " (paper.counts(System::Papers)) "."
             }
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
            p {
                strong { (claimed.figure.name) }
                @for (system, name) in SYSTEMS {
                    " " (name) " " (badge(claimed.judged.verdict(system)))
                }
            }
            p {
                (claimed.clauses()) ". "
                @for folder in &claimed.folders { (results(folder)) " " }
            }
            (comparisons(&claimed.judged))
            @for paragraph in &claimed.why { p.why { (paragraph) } }
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
                            th { "SYN backoff" } th { "commit" }
                            th { "seconds" } th { "seeds" } th { "records (SHA-256)" } th { "" }
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
            td.words { (conditions.syn_backoff) }
            td.words { (conditions.commits) }
            td.words { (conditions.seconds) }
            td.words { (conditions.seeds) }
            td.words { (conditions.records) }
            td.words { @if let Some(text) = &conditions.cut_short { span.warning { (text) } } }
        }
    }
}
