//! The common parts of all pages: the document around the content, its style, a claim beside our
//! results, the key of a line.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use plotters::style::ShapeStyle;
use shortline_plot as drawing;

use crate::report::table::ours;
use crate::study::claim::{Figure, Judged, JudgedFigure};
use crate::study::verdict::Verdict;

const STYLE: &str = include_str!("style.css");

/// A whole page.
pub fn document(title: &str, warning: Option<&str>, main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Shortline lab: " (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(dark_drawings())) }
            }
            body {
                header {
                    p.lab { "Shortline lab" }
                    h1 { (title) }
                    @if let Some(text) = warning {
                        p.warning { (text) }
                    }
                }
                main { (main) }
            }
        }
    }
}

/// The colours of plots on a dark background, for readers who prefer one.
fn dark_drawings() -> String {
    format!(
        "@media (prefers-color-scheme: dark) {{\n{}}}\n",
        drawing::style_sheet()
    )
}

/// A figure's claim beside our results: clause by clause, then our own aims.
pub fn claim(figure: &Figure, judged: &JudgedFigure) -> Markup {
    html! {
        article.claim {
            p {
                @if !figure.name.is_empty() { strong { "Paper " (figure.name) ": " } }
                @if judged.clauses.is_empty() { (figure.claim) "." }
            }
            (comparisons(judged))
        }
    }
}

/// The clauses of a figure with their comparisons, each with the paper's value.
pub fn comparisons(judged: &JudgedFigure) -> Markup {
    html! {
        @if judged.all().next().is_some() {
            div.scroll {
                table {
                    thead { tr { th { "" } th { "compared" } th { "came out" } th { "paper" } th { "wanted" } } }
                    tbody {
                        @for clause in &judged.clauses {
                            tr { td {} td.words colspan="4" { strong { (clause.says) } } }
                            @for check in &clause.checks { (comparison(check)) }
                        }
                        @for check in &judged.aims { (comparison(check)) }
                    }
                }
            }
        }
    }
}

fn comparison(judged: &Judged) -> Markup {
    html! {
        tr {
            td { (badge(judged.verdict)) }
            td.words { (judged.what) }
            td.words { (ours(judged)) }
            td.words { (judged.paper) }
            td.words { (judged.wanted) }
        }
    }
}

/// A verdict that can be recognised without its colour.
pub fn badge(verdict: Verdict) -> Markup {
    let (class, mark) = match verdict {
        Verdict::Holds => ("holds", "✓"),
        Verdict::Exceeds => ("holds", "✓+"),
        Verdict::Partly => ("partly", "◐"),
        Verdict::DoesNot => ("not", "✗"),
        Verdict::Open => ("open", "?"),
    };
    html! { span class={ "badge " (class) } { (mark) " " (verdict.word()) } }
}

/// A sample of a line as it looks in the plots.
pub fn swatch(style: ShapeStyle) -> String {
    let plotters::style::RGBAColor(red, green, blue, _) = style.color;
    format!(
        "<svg class=\"drawing\" viewBox=\"0 0 24 8\" aria-hidden=\"true\"><path d=\"M0 4H24\" \
         stroke-width=\"4\" stroke=\"#{red:02X}{green:02X}{blue:02X}\"/></svg>"
    )
}
