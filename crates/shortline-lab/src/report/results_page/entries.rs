//! The entries of `results.toml`: headlines, the results below them, and the README's text with a
//! placeholder for each figure. An inconsistency is reported with its line and key.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use shortline_command::toml_text;
use toml::Spanned;

use super::error::ResultsError;
use super::outcome::Outcome;

/// All entries, checked.
#[derive(Debug)]
pub struct Entries {
    /// The headlines, in the page's order.
    pub headlines: Vec<Headline>,
    results: Vec<Spanned<Outcome>>,
    readme: Spanned<String>,
    readme_part: BTreeMap<String, Spanned<String>>,
    source: Source,
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    readme: Spanned<String>,
    /// Further texts of the README, by the names of their regions.
    #[serde(default)]
    readme_part: BTreeMap<String, Spanned<String>>,
    headline: Vec<Spanned<Headline>>,
    result: Vec<Spanned<Outcome>>,
}

/// The subject of several results. A folder has its summary.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headline {
    /// The folder's name.
    pub id: String,
    /// The section's title.
    pub title: String,
    /// Notes for the reader on all its results.
    pub about: String,
    /// The notebook page with its history, below the results' folder.
    pub notebook: String,
}

/// Where the entries come from, for errors.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    text: String,
}

impl Entries {
    /// Reads and checks the entries.
    ///
    /// # Errors
    /// Says which line and key are wrong, and what would be right.
    pub fn read(path: &Path) -> Result<Self, ResultsError> {
        let source = Source {
            path: path.into(),
            text: fs::read_to_string(path).map_err(ResultsError::file(path))?,
        };
        let file: File = toml::from_str(&source.text).map_err(|error| source.syntax(&error))?;
        let headlines = source.headlines(file.headline)?;
        let mut seen = BTreeSet::new();
        for result in &file.result {
            source.check(result, &headlines)?;
            if !seen.insert(result.get_ref().id.clone()) {
                let problem = format!("`{}` for the second time", result.get_ref().id);
                return Err(source.wrong(result, "id", problem, "a name of its own"));
            }
        }
        Ok(Self {
            headlines,
            results: file.result,
            readme: file.readme,
            readme_part: file.readme_part,
            source,
        })
    }

    /// The results of a headline, in the file's order.
    pub fn of(&self, headline: &Headline) -> Vec<&Outcome> {
        let all = self.all();
        all.filter(|result| result.headline == headline.id)
            .collect()
    }

    /// All results.
    pub fn all(&self) -> impl Iterator<Item = &Outcome> {
        self.results.iter().map(Spanned::get_ref)
    }

    /// The README's text. `{ID}` is the figure of that result, `{ID:range}` its lowest to its highest,
    /// and `{ID/ID}` the ratio of two.
    ///
    /// # Errors
    /// If a placeholder names an unknown result, or the range of a single figure.
    pub fn readme_text(&self) -> Result<String, ResultsError> {
        self.filled(&self.readme, "readme")
    }

    /// Further texts of the README with the names of their regions, filled in as [`Self::readme_text`].
    ///
    /// # Errors
    /// The same.
    pub fn readme_parts(&self) -> Result<Vec<(&str, String)>, ResultsError> {
        let parts = self.readme_part.iter();
        parts
            .map(|(name, text)| Ok((name.as_str(), self.filled(text, "readme_part")?)))
            .collect()
    }

    fn filled(
        &self,
        template: &Spanned<String>,
        key: &'static str,
    ) -> Result<String, ResultsError> {
        let mut text = String::new();
        let mut parts = template.get_ref().split('{');
        text += parts.next().unwrap_or_default();
        for part in parts {
            let (name, rest) = part.split_once('}').unwrap_or((part, ""));
            text += &self.figure(name).ok_or_else(|| {
                let problem = format!("`{{{name}}}` names no figure");
                let want = "{ID}, {ID:range} or {ID/ID} with ids of results";
                self.source.wrong(template, key, problem, want)
            })?;
            text += rest;
        }
        Ok(text)
    }

    fn figure(&self, name: &str) -> Option<String> {
        let find = |id: &str| self.all().find(|result| result.id == id);
        if let Some((one, other)) = name.split_once('/') {
            return Some(ratio(find(one)?.value / find(other)?.value));
        }
        let (id, part) = name.split_once(':').unwrap_or((name, ""));
        let result = find(id)?;
        match part {
            "" => Some(result.figure()),
            "range" => result.range_text(),
            _ => None,
        }
    }
}

impl Source {
    fn headlines(&self, all: Vec<Spanned<Headline>>) -> Result<Vec<Headline>, ResultsError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut headlines: Vec<Headline> = Vec::new();
        for headline in all {
            let Headline { id, notebook, .. } = headline.get_ref();
            if headlines.iter().any(|other| other.id == *id) {
                let problem = format!("`{id}` for the second time");
                return Err(self.wrong(&headline, "id", problem, "a name of its own"));
            }
            for (key, place) in [
                ("id", format!("{id}/README.md")),
                ("notebook", notebook.clone()),
            ] {
                let file = place.split('#').next().unwrap_or_default();
                if !folder.join(file).is_file() {
                    let problem = format!("there is no {file}");
                    return Err(self.wrong(&headline, key, problem, "a file beside this one"));
                }
            }
            headlines.push(headline.into_inner());
        }
        Ok(headlines)
    }

    fn check(&self, entry: &Spanned<Outcome>, headlines: &[Headline]) -> Result<(), ResultsError> {
        let result = entry.get_ref();
        let is_name = |text: &str| {
            let mut letters = text.bytes();
            !text.is_empty()
                && letters.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        let wrong = |key, problem, want| Err(self.wrong(entry, key, problem, want));
        if !is_name(&result.id) {
            return wrong(
                "id",
                quoted(&result.id),
                "small letters, digits and hyphens",
            );
        }
        if !headlines
            .iter()
            .any(|headline| headline.id == result.headline)
        {
            return wrong(
                "headline",
                quoted(&result.headline),
                "the id of a [[headline]]",
            );
        }
        if let Some([low, high]) = result.range
            && !(low <= result.value && result.value <= high)
        {
            let problem = format!("{} is not within {low} to {high}", result.value);
            return wrong(
                "range",
                problem,
                "the lowest and the highest run, around value",
            );
        }
        if result.at_most.is_some() && result.at_least.is_some() {
            return wrong("at_least", "at_most is there, too".into(), "one target");
        }
        let count = result.runs.split(' ').next().unwrap_or_default();
        if !count.parse::<u64>().is_ok_and(|count| count > 0) {
            return wrong(
                "runs",
                quoted(&result.runs),
                "a number and what of, such as `5 seeds`",
            );
        }
        if result.date.date.is_none() || result.date.time.is_some() {
            return wrong("date", result.date.to_string(), "a day, such as 2026-11-22");
        }
        let is_hash = |text: &str| text.len() >= 7 && text.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_hash(&result.commit) {
            return wrong(
                "commit",
                quoted(&result.commit),
                "seven hexadecimal digits or more",
            );
        }
        Ok(())
    }

    /// The error of a wrong value. The line is that of the key, or the entry's first if the key is missing.
    fn wrong<T>(
        &self,
        entry: &Spanned<T>,
        key: &'static str,
        problem: String,
        want: &'static str,
    ) -> ResultsError {
        let begin = toml_text::line(&self.text, entry.span().start);
        let lines = self.text.lines().enumerate().skip(begin - 1);
        let mut own = lines.take_while(|(at, line)| at + 1 == begin || !line.starts_with("[["));
        let is_key = |line: &str| {
            line.split('=')
                .next()
                .is_some_and(|name| name.trim() == key)
        };
        ResultsError::Entry {
            path: self.path.clone(),
            line: own
                .find(|(_, line)| is_key(line))
                .map_or(begin, |(at, _)| at + 1),
            key,
            problem,
            want,
        }
    }

    fn syntax(&self, error: &toml::de::Error) -> ResultsError {
        ResultsError::Syntax {
            path: self.path.clone(),
            line: toml_text::line(&self.text, error.span().map_or(0, |span| span.start)),
            problem: error.message().to_owned(),
        }
    }
}

/// A ratio in words: a whole number from 2 on.
fn ratio(ratio: f64) -> String {
    if ratio < 2.0 {
        format!("{ratio:.1}")
    } else {
        format!("{ratio:.0}")
    }
}

fn quoted(text: &str) -> String {
    format!("`{text}`")
}
