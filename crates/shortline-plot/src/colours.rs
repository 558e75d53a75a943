//! The colours of all drawings and pages. A server has one colour for ever, wherever it is drawn: [`styled`].

use std::collections::HashSet;

use plotters::prelude::*;

/// A colour, and its replacement on a dark ground.
struct Colour {
    light: RGBColor,
    dark: RGBColor,
}

const fn colour(light: (u8, u8, u8), dark: (u8, u8, u8)) -> Colour {
    Colour {
        light: RGBColor(light.0, light.1, light.2),
        dark: RGBColor(dark.0, dark.1, dark.2),
    }
}

/// Also distinct for people who see no red or green (Okabe and Ito 2008, and some more for plots of
/// many lines).
const COLOURS: [Colour; 16] = [
    colour((0, 114, 178), (92, 154, 255)),
    colour((213, 94, 0), (255, 138, 61)),
    colour((0, 158, 115), (51, 199, 154)),
    colour((204, 121, 167), (227, 156, 196)),
    colour((230, 159, 0), (242, 190, 70)),
    colour((86, 180, 233), (140, 220, 255)),
    colour((120, 80, 40), (190, 145, 100)),
    colour((90, 90, 90), (165, 165, 165)),
    colour((140, 0, 70), (255, 110, 160)),
    colour((128, 128, 0), (200, 200, 80)),
    colour((70, 60, 160), (170, 150, 255)),
    colour((0, 110, 120), (60, 190, 200)),
    colour((60, 140, 30), (130, 210, 100)),
    colour((170, 30, 160), (240, 130, 230)),
    colour((190, 150, 110), (215, 185, 150)),
    colour((150, 40, 20), (240, 120, 100)),
];
/// Text, axes, and the line of the optimum.
const INK: Colour = colour((0, 0, 0), (232, 232, 232));
/// A reference line that no server produced.
const REFERENCE: Colour = colour((150, 150, 150), (120, 120, 120));
/// Behind the lines where the link is overloaded.
const SHADE: Colour = colour((255, 236, 200), (64, 52, 26));
/// The background.
const PAPER: Colour = colour((255, 255, 255), (24, 26, 30));

/// The places in [`COLOURS`] of servers, and of ours in its modes. A name stands for itself and for itself with a size
/// or a capacity behind it (`haproxy-24`, `fifo@400ms`). Blue is ours.
const SERVERS: &[(&str, usize)] = &[
    ("shortline", 0),
    ("shares", 0),
    ("srpt", 0),
    ("auto", 0),
    ("auto-shares", 0),
    ("sjf", 0),
    ("pool", 0),
    ("nginx", 1),
    ("fifo", 1),
    ("fair", 2),
    ("ps", 2),
    ("fair sharing", 2),
    ("nginx-fq_codel", 3),
    ("fq_codel", 3),
    ("nginx with fq_codel", 3),
    ("nginx-cake", 4),
    ("nginx-fq", 5),
    ("apache", 6),
    ("direct", 7),
    ("none", 7),
    ("no gate", 7),
    ("off", 7),
    ("slots", 8),
    ("kernel-bands", 9),
    ("pgbouncer", 10),
    ("caddy", 12),
    ("h2o", 11),
    ("haproxy", 13),
    ("gradient", 14),
    ("envoy", 15),
];
/// The first place of servers that have none of their own.
const FREE: usize = 10;

/// Rules of CSS that colour drawings inside an element `.drawing` for a dark ground.
pub fn style_sheet() -> String {
    rules_for_the_dark(".drawing ")
}

/// The drawing with rules of its own, so that it follows the reader's choice of light or dark where it is shown as a picture.
pub fn in_both_themes(svg: &str) -> String {
    let rules = rules_for_the_dark("");
    let style = format!("<style>@media (prefers-color-scheme: dark) {{\n{rules}}}</style>");
    // Everything is opaque, which need not be said of each point.
    let svg = svg.replace(" opacity=\"1\"", "");
    match svg.split_once('>') {
        Some((head, drawing)) => format!("{head}>\n{style}{drawing}"),
        None => svg,
    }
}

/// Rules that replace each colour of a light ground, of elements that `scope` selects.
fn rules_for_the_dark(scope: &str) -> String {
    let all = COLOURS.iter().chain([&INK, &REFERENCE, &SHADE, &PAPER]);
    let hex = |RGBColor(red, green, blue): RGBColor| format!("#{red:02X}{green:02X}{blue:02X}");
    let rule = |colour: &Colour| {
        let (light, dark) = (hex(colour.light), hex(colour.dark));
        format!(
            "{scope}[fill=\"{light}\"]{{fill:{dark}}}\n\
             {scope}[stroke=\"{light}\"]{{stroke:{dark}}}\n"
        )
    };
    all.map(rule).collect()
}

/// The style of a line that is no server's, at this index.
pub fn style(place: usize) -> ShapeStyle {
    COLOURS[place % COLOURS.len()].light.stroke_width(2)
}

/// The style of the optimum's line.
pub fn style_of_optimum() -> ShapeStyle {
    INK.light.stroke_width(2)
}

/// The style of a reference line that no server produced.
pub fn style_of_reference() -> ShapeStyle {
    REFERENCE.light.stroke_width(2)
}

/// Names of servers with the styles of their lines, in order. A server that is known here has its own colour; the others
/// get those that are left, in turn.
pub fn styled(names: Vec<String>) -> Vec<(String, ShapeStyle)> {
    let places = places(&names);
    names
        .into_iter()
        .zip(places)
        .map(|(name, place)| (name, style(place)))
        .collect()
}

fn places(names: &[String]) -> Vec<usize> {
    let mut taken = HashSet::new();
    // Of two that would have the same colour the first has it.
    let own: Vec<Option<usize>> = names
        .iter()
        .map(|name| place_of(name).filter(|place| taken.insert(*place)))
        .collect();
    let all = (FREE..COLOURS.len()).chain(0..FREE);
    let mut free = all.filter(|place| !taken.contains(place)).cycle();
    let place = |own: Option<usize>| own.unwrap_or_else(|| free.next().unwrap_or(0));
    own.into_iter().map(place).collect()
}

fn place_of(name: &str) -> Option<usize> {
    let name = name.to_ascii_lowercase();
    let bare = name.split('@').next().unwrap_or(&name);
    let without_size = bare
        .rsplit_once('-')
        .filter(|(_, size)| size.bytes().all(|byte| byte.is_ascii_digit()));
    let names = [
        Some(name.as_str()),
        Some(bare),
        without_size.map(|(bare, _)| bare),
    ];
    let known = |name: &str| SERVERS.iter().find(|(known, _)| *known == name);
    names
        .into_iter()
        .flatten()
        .find_map(known)
        .map(|(_, place)| *place)
}

/// The ink of text and axes.
pub(crate) const fn ink() -> RGBColor {
    INK.light
}

/// What is behind lines where the link is overloaded.
pub(crate) const fn shade() -> RGBColor {
    SHADE.light
}

/// The ground of a drawing.
pub(crate) const fn paper() -> RGBColor {
    PAPER.light
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places_of(names: &[&str]) -> Vec<usize> {
        places(&names.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn a_server_has_one_colour_whatever_stands_beside_it() {
        assert_eq!(places_of(&["nginx", "Shortline"]), [1, 0]);
        assert_eq!(places_of(&["Shortline", "fq_codel", "FIFO"]), [0, 3, 1]);
        assert_eq!(places_of(&["haproxy-24", "envoy", "direct"]), [13, 15, 7]);
        assert_eq!(places_of(&["srpt", "nginx-fq_codel", "nginx"]), [0, 3, 1]);
        assert_eq!(
            places_of(&["shares", "srpt", "swift", "nginx"]),
            [0, 10, 11, 1]
        );
    }

    #[test]
    fn no_two_lines_of_a_drawing_have_one_colour() {
        let names = [
            "one", "srpt", "sjf", "nginx", "two", "shares", "off", "direct", "fair",
        ];
        let places = places_of(&names);
        assert_eq!(
            places.iter().collect::<HashSet<_>>().len(),
            names.len(),
            "{places:?}"
        );
    }
}
