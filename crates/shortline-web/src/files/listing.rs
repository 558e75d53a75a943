//! A directory as a page: names, sizes and times. Directories come first, then names in order.
//!
//! The page shows only what a request could get: files and directories with names that a request
//! can spell, no dotfiles, and no links out of the root.

use std::fmt::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, SystemTime};

use rustix::fs::Dir;

use super::open::{OpenError, Opened, Root, Wait};
use super::paths::{FilePath, encode_segment, is_servable_name};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;\
padding:0 1rem}table{border-collapse:collapse;width:100%}td,th{padding:.15rem .5rem;text-align:left}\
td+td,th+th{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\
tr:hover td{background:#8881}a{text-decoration:none}a:hover{text-decoration:underline}";

struct Row {
    name: String,
    is_directory: bool,
    len: u64,
    modified: SystemTime,
}

/// The page for the open `directory`, with at most `entries_max` names.
pub(super) fn page(
    root: &Root,
    directory: OwnedFd,
    path: &FilePath<'_>,
    entries_max: usize,
) -> Result<String, OpenError> {
    let (names, is_cut) = names(directory, path.as_str() == "/", entries_max)?;
    let mut rows: Vec<Row> = names
        .into_iter()
        .filter_map(|name| row(root, path, name))
        .collect();
    rows.sort_by(|a, b| (!a.is_directory, &a.name).cmp(&(!b.is_directory, &b.name)));
    Ok(render(path, &rows, is_cut.then_some(entries_max)))
}

/// The names that a request can spell, and whether there are more than `entries_max`.
fn names(
    directory: OwnedFd,
    in_root: bool,
    entries_max: usize,
) -> Result<(Vec<String>, bool), OpenError> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory.as_fd()).map_err(|_| OpenError::Broken)? {
        let entry = entry.map_err(|_| OpenError::Broken)?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        // "." and ".." are not servable names either.
        if !is_servable_name(name, in_root) {
            continue;
        }
        if names.len() == entries_max {
            return Ok((names, true));
        }
        names.push(name.to_owned());
    }
    Ok((names, false))
}

fn row(root: &Root, path: &FilePath<'_>, name: String) -> Option<Row> {
    let relative = format!("{}/{name}", path.relative());
    let (is_directory, stat) = match root.get(&relative, Wait::Allowed).ok()? {
        Opened::File { stat, .. } => (false, stat),
        Opened::Directory(fd) => (true, rustix::fs::fstat(fd).ok()?),
    };
    let seconds = Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0));
    let modified = SystemTime::UNIX_EPOCH.checked_add(seconds)?;
    Some(Row {
        name,
        is_directory,
        len: u64::try_from(stat.st_size).ok()?,
        modified,
    })
}

fn render(path: &FilePath<'_>, rows: &[Row], cut_at: Option<usize>) -> String {
    let title = escape(path.as_str());
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
<meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
<style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n<table>\
<tr><th>Name</th><th>Size</th><th>Modified</th></tr>\n"
    );
    if path.as_str() != "/" {
        page.push_str("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
    }
    for row in rows {
        page.push_str(&render_row(row));
    }
    page.push_str("</table>\n");
    if let Some(entries_max) = cut_at {
        let _infallible = writeln!(page, "<p>Only {entries_max} names are shown.</p>");
    }
    page.push_str("</body></html>\n");
    page
}

fn render_row(row: &Row) -> String {
    let slash = if row.is_directory { "/" } else { "" };
    let size = if row.is_directory {
        String::new()
    } else {
        human_size(row.len)
    };
    format!(
        "<tr><td><a href=\"{}{slash}\">{}{slash}</a></td><td>{size}</td><td>{}</td></tr>\n",
        encode_segment(&row.name),
        escape(&row.name),
        date(row.modified),
    )
}

/// `1994-11-06 08:49` in UTC, from the HTTP date `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date(modified: SystemTime) -> String {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    // HTTP dates end with the year 9999.
    let last = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    let http_date = httpdate::fmt_http_date(modified.min(last));
    let month = MONTHS.find(&http_date[8..11]).unwrap_or(0) / 3 + 1;
    format!(
        "{}-{month:02}-{} {}",
        &http_date[12..16],
        &http_date[5..7],
        &http_date[17..22]
    )
}

fn human_size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    #[allow(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1023.95 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_048_575, "1.0 MiB"),
            (2_023_000, "1.9 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(human_size(bytes), expected);
        }
    }

    #[test]
    fn dates_are_short() {
        let at = |seconds| date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(784_111_777), "1994-11-06 08:49");
        assert_eq!(at(0), "1970-01-01 00:00");
        assert_eq!(at(1 << 40), "9999-12-31 23:59");
    }

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let row = Row {
            name: "javascript:<a href='\"&".into(),
            is_directory: false,
            len: 1,
            modified: SystemTime::UNIX_EPOCH,
        };
        let html = render_row(&row);
        assert!(
            html.contains("href=\"javascript%3A%3Ca%20href%3D%27%22%26\""),
            "{html}"
        );
        assert!(
            html.contains(">javascript:&lt;a href=&#39;&quot;&amp;</a>"),
            "{html}"
        );
    }
}
