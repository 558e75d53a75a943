//! Prometheus text (exposition format 0.0.4), a metric at a time.
//!
//! Times in seconds, amounts in bytes, counters end in `_total`, as Prometheus' naming rules want.

use std::fmt::{Display, Write};

/// The text so far.
#[derive(Debug, Default)]
pub struct Text(String);

impl Text {
    /// A value that goes up and down.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head("gauge", name, help);
        self.sample(name, &[], value);
    }

    /// A value that only grows.
    pub fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.head("counter", name, help);
        self.sample(name, &[], value);
    }

    /// Gauges told apart by labels.
    pub fn gauge_of<'a, const LABELS: usize, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = ([(&'a str, &'a str); LABELS], V)>,
    ) {
        self.labelled("gauge", name, help, samples);
    }

    /// Counters told apart by labels.
    pub fn counter_of<'a, const LABELS: usize, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = ([(&'a str, &'a str); LABELS], V)>,
    ) {
        self.labelled("counter", name, help, samples);
    }

    /// What samples of this name are.
    pub fn head(&mut self, kind: &str, name: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            self.0,
            "# HELP shortline_{name} {help}\n# TYPE shortline_{name} {kind}"
        );
    }

    /// One sample.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.0, "shortline_{name}");
        let mut separator = '{';
        for (label, text) in labels {
            let _ = write!(self.0, "{separator}{label}=\"{}\"", Escaped(text));
            separator = ',';
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{end} {value}");
    }

    /// The whole text.
    pub fn finish(self) -> String {
        self.0
    }

    fn labelled<'a, const LABELS: usize, V: Display>(
        &mut self,
        kind: &str,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = ([(&'a str, &'a str); LABELS], V)>,
    ) {
        self.head(kind, name, help);
        for (labels, value) in samples {
            self.sample(name, &labels, value);
        }
    }
}

/// A label's value: backslash, quote and line feed are escaped.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.0.chars() {
            match character {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                character => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut text = Text::default();
        text.gauge_of("a", "A.", [([("type", "say \"\\\n\""), ("x", "y")], 1)]);
        text.counter("b_total", "B.", 2);
        assert_eq!(
            text.finish(),
            "# HELP shortline_a A.\n# TYPE shortline_a gauge\n\
             shortline_a{type=\"say \\\"\\\\\\n\\\"\",x=\"y\"} 1\n\
             # HELP shortline_b_total B.\n# TYPE shortline_b_total counter\n\
             shortline_b_total 2\n"
        );
    }
}
