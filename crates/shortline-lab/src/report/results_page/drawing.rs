//! A headline's results beside their targets, as SVG. Each result has a row with a line from its lowest to its
//! highest run and a dot for the median, all as a share of the target. Right of the middle line the target is missed.

use std::fmt::Write as _;

use maud::{Markup, PreEscaped, Render, html};

use super::outcome::{Outcome, Verdict};

/// Sizes in pixels: the words, the scale right of them, a row, and the space above the rows.
const WORDS: f64 = 520.0;
const SCALE: f64 = 280.0;
const ROW: f64 = 24.0;
const TOP: f64 = 56.0;
/// The scale's ends, as a share of a target and its inverse. Values beyond are drawn at the end.
const SPREAD: f64 = 4.0;
/// The most letters of a claim that fit.
const LETTERS: usize = 66;
/// The colours on a light ground and on a dark one.
const STYLE: &str = "rect{fill:#fff}text{fill:#000}line{stroke:#ccc}.target{stroke:#000}\
    .met{fill:#0072b2;stroke:#0072b2}.median{fill:#e69f00;stroke:#e69f00}.missed{fill:#d55e00;stroke:#d55e00}\
    @media(prefers-color-scheme:dark){rect{fill:#181a1e}text{fill:#e8e8e8}line{stroke:#3a3f48}.target{stroke:#e8e8e8}\
    .met{fill:#5c9aff;stroke:#5c9aff}.missed{fill:#ff8a3d;stroke:#ff8a3d}}";

/// The drawing. `None` without targets.
pub fn render(title: &str, results: &[&Outcome]) -> Option<String> {
    let judged = results.iter();
    let judged = judged.filter_map(|result| Some((result, result.verdict()?)));
    let judged: Vec<_> = judged.collect();
    if judged.is_empty() {
        return None;
    }
    let reached = judged
        .iter()
        .filter(|(_, verdict)| *verdict != Verdict::Missed);
    let title = format!(
        "{title}: {} of {} results reach their targets (right of 1: missed)",
        reached.count(),
        judged.len()
    );
    let rows = judged.iter().zip(0u32..);
    let rows: Vec<Markup> = rows
        .map(|((result, verdict), at)| row(result, *verdict, TOP + ROW * f64::from(at)))
        .collect();
    let (width, height) = (WORDS + SCALE + 20.0, TOP + ROW * rows.len() as f64 + 12.0);
    let drawing = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (height) } font-family="sans-serif" font-size="13" {
            style { (PreEscaped(STYLE)) }
            rect width="100%" height="100%" {}
            text x="10" y="20" font-size="16" { (title) }
            @for share in [1.0 / SPREAD, 0.5, 1.0, 2.0, SPREAD] { (mark(share, height)) }
            @for row in &rows { (row) }
        }
    };
    let mut text = drawing.into_string();
    text.push('\n');
    Some(text)
}

/// A line down the drawing at a share of the target.
fn mark(share: f64, height: f64) -> Markup {
    let (x, class) = (place(share), (share == 1.0).then_some("target"));
    html! {
        line class=[class] x1=(Pixels(x)) x2=(Pixels(x)) y1=(TOP - 12.0) y2=(height - 8.0) {}
        text x=(Pixels(x)) y=(TOP - 16.0) text-anchor="middle" { (share) }
    }
}

fn row(result: &Outcome, verdict: Verdict, y: f64) -> Markup {
    let share = |figure| place(result.of_target(figure).unwrap_or(1.0));
    let [low, high] = result.range.unwrap_or([result.value; 2]);
    let class = match verdict {
        Verdict::Met => "met",
        Verdict::MetInTheMedian => "median",
        Verdict::Missed => "missed",
    };
    let mut words: String = result.claim.chars().take(LETTERS).collect();
    if words.len() < result.claim.len() {
        words.push('…');
    }
    // Writing to a string cannot fail.
    write!(words, ": {}", result.figure()).ok();
    html! {
        text x="10" y=(y + 4.0) { (words) }
        line x1=(Pixels(share(low))) x2=(Pixels(share(high))) y1=(y) y2=(y) class=(class) stroke-width="3" {}
        circle cx=(Pixels(share(result.value))) cy=(y) r="5" class=(class) {}
    }
}

/// The position of a share of the target, in pixels from the left. The scale is logarithmic.
fn place(share: f64) -> f64 {
    let share = share.clamp(1.0 / SPREAD, SPREAD);
    WORDS + SCALE * (0.5 + 0.5 * share.ln() / SPREAD.ln())
}

/// A position to a tenth of a pixel.
struct Pixels(f64);

impl Render for Pixels {
    fn render_to(&self, buffer: &mut String) {
        // Writing to a string cannot fail.
        write!(buffer, "{:.1}", self.0).ok();
    }
}
