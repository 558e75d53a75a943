//! The files that a point's servers serve, written once for all of them, and the requests of the
//! point's trace, if it has one.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{fs, io};

use shortline_load::trace::{Request, Spread, TraceOptions, stream_trace};
use shortline_load::workload::{SiteFiles, replay};

use crate::LabError;
use crate::study::point::{Arrivals, Files, Point, Through};
use shortline_testbed::Testbed;
use shortline_web::compress::encoder::{Effort, Encoder};
use shortline_web::files::encoding::Coding;

/// What our server reads at a time of a file that it compresses.
const PIECE_BYTES: usize = 256 << 10;

/// The files of a point.
pub struct Site {
    /// Where they are.
    pub root: PathBuf,
    /// Which.
    pub files: SiteFiles,
    /// The requests of the point's trace. `None` if they are drawn at random.
    pub requests: Option<Vec<Request>>,
}

/// The sites that were written for the servers.
#[derive(Default)]
pub struct Sites(Vec<(Files, bool, Rc<Site>)>);

impl Sites {
    /// The files of a point. The seed decides how the seconds of a trace are filled.
    ///
    /// # Errors
    /// If a trace cannot be read, or the files cannot be written.
    pub fn of(
        &mut self,
        testbed: &Testbed,
        point: &Point,
        seed: u64,
    ) -> Result<Rc<Site>, LabError> {
        if let Arrivals::Trace(path) = &point.arrivals {
            return of_trace(testbed, point, path, seed).map(Rc::new);
        }
        let is_text = point.setup.through == Through::Compressed;
        let mut written = self.0.iter();
        if let Some((.., site)) =
            written.find(|(files, text, _)| (*files, *text) == (point.files, is_text))
        {
            return Ok(Rc::clone(site));
        }
        let root = testbed.scratch().join(point.files.name());
        let files = point.files.site();
        let (root, files) = match is_text {
            true => {
                let root = root.with_extension("texts");
                let texts = files.write_texts(&root, coded_bytes);
                (root, texts.map_err(LabError::refused)?)
            }
            false => {
                files.write_site(&root).map_err(LabError::refused)?;
                (root, files)
            }
        };
        let site = Rc::new(Site {
            root,
            files,
            requests: None,
        });
        self.0.push((point.files, is_text, Rc::clone(&site)));
        Ok(site)
    }
}

/// How long a text is that our server has compressed on the fly.
fn coded_bytes(text: &[u8]) -> io::Result<u64> {
    let mut encoder = Encoder::new(Coding::Zstd, Effort::Kept, Some(text.len() as u64))?;
    let mut bytes = 0;
    // In pieces, as the server reads the file.
    for piece in text.chunks(PIECE_BYTES) {
        encoder.write(piece)?;
        bytes += encoder.take().len();
    }
    Ok((bytes + encoder.finish()?.len()) as u64)
}

fn of_trace(testbed: &Testbed, point: &Point, path: &Path, seed: u64) -> Result<Site, LabError> {
    let (requests, files) = replay(read(point, path, seed)?)
        .map_err(|error| LabError::refused(format!("{}: {error}", path.display())))?;
    let root = testbed.scratch().join(format!("trace-{}", point.label));
    if root.exists() {
        fs::remove_dir_all(&root).map_err(LabError::file(&root))?;
    }
    files.write_site(&root).map_err(LabError::refused)?;
    Ok(Site {
        root,
        files,
        requests: Some(requests),
    })
}

/// The trace's requests within the point's time.
///
/// # Errors
/// If it cannot be read or has none.
pub fn read(point: &Point, path: &Path, seed: u64) -> Result<Vec<Request>, LabError> {
    let options = TraceOptions {
        spread: Spread::Random { seed },
        ..TraceOptions::default()
    };
    let mut trace = stream_trace(path, &options).map_err(LabError::refused)?;
    let mut requests = Vec::new();
    for request in &mut trace {
        let request = request.map_err(LabError::refused)?;
        if u128::from(request.at_ns) >= point.length().as_nanos() {
            break;
        }
        requests.push(request);
    }
    for line in trace.passed_over().told() {
        tracing::warn!("{}: {line}", path.display());
    }
    if requests.is_empty() {
        let seconds = point.seconds;
        let problem = format!("no request in its first {seconds} s: want a longer time");
        return Err(LabError::refused(format!("{}: {problem}", path.display())));
    }
    Ok(requests)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A record of the World Cup's archive: 20 bytes, GET, status 200.
    fn world_cup(second: u32, object: u32, bytes: u32) -> Vec<u8> {
        let numbers = [897_861_223 + second, 7, object, bytes];
        let words = numbers.into_iter().flat_map(u32::to_be_bytes);
        words.chain([0, 0x82, 1, 1]).collect()
    }

    /// Whatever `load` reads, a study of one's own reads, at its times and with its sizes.
    #[test]
    fn a_log_of_any_format_gives_its_requests() {
        let folder = tempfile::tempdir().unwrap();
        let clf = |second: u32, path: &str, bytes: u32| {
            format!(
                "h - - [26/Nov/2026:10:00:0{second} +0000] \"GET {path} HTTP/1.1\" 200 {bytes}\n"
            )
        };
        let json = |second: u32, path: &str, bytes: u32| {
            format!(
                "{{\"time\":\"2026-11-26T10:00:0{second}.000Z\",\"method\":\"GET\",\
                 \"target\":\"{path}\",\"status\":200,\"bytes\":{bytes}}}\n"
            )
        };
        let asked = [(0, "/a", 1_000), (1, "/b", 2_000), (1, "/a", 1_000)];
        let lines = |line: &dyn Fn(u32, &str, u32) -> String| -> Vec<u8> {
            let lines = asked
                .iter()
                .map(|(second, path, bytes)| line(*second, path, *bytes));
            lines.collect::<String>().into_bytes()
        };
        let binary = asked.iter().flat_map(|(second, path, bytes)| {
            world_cup(*second, u32::from(path.as_bytes()[1]), *bytes)
        });
        for (format, content) in [
            (
                "csv",
                lines(&|second, path, bytes| format!("{second},{path},{bytes}\n")),
            ),
            ("log", lines(&clf)),
            ("json", lines(&json)),
            ("world-cup", binary.collect()),
        ] {
            let path = folder.path().join(format);
            fs::write(&path, content).unwrap();
            let point = Point::new("mine", Arrivals::Trace(path.clone()), 10);
            let requests = read(&point, &path, 1).unwrap();
            let got: Vec<(u64, u64)> = requests
                .iter()
                .map(|request| (request.at_ns / 1_000_000_000, request.bytes))
                .collect();
            let mut sizes: Vec<u64> = got.iter().map(|(_, bytes)| *bytes).collect();
            sizes.sort_unstable();
            assert_eq!(sizes, [1_000, 1_000, 2_000], "{format}");
            assert_eq!(got[0], (0, 1_000), "{format}");
            assert!(
                got[1..].iter().all(|(second, _)| *second == 1),
                "{format}: {got:?}"
            );
            let (_, files) = replay(requests).unwrap();
            assert_eq!(files.files().len(), 2, "{format}");
        }
    }
}
