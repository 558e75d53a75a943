//! What all pages are made in: the document around their content, its style, and the mark of a
//! verdict.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::drawing;
use crate::experiment::claim::Verdict;

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

/// The colours of plots on a dark ground, for readers who want one.
fn dark_drawings() -> String {
    format!(
        "@media (prefers-color-scheme: dark) {{\n{}}}\n",
        drawing::style_sheet()
    )
}

/// A verdict that can be told without its colour.
pub fn badge(verdict: Verdict) -> Markup {
    let (class, mark) = match verdict {
        Verdict::Holds => ("holds", "✓"),
        Verdict::Partly => ("partly", "◐"),
        Verdict::DoesNot => ("not", "✗"),
        Verdict::Open => ("open", "?"),
    };
    html! { span class={ "badge " (class) } { (mark) " " (verdict.word()) } }
}
