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
fn read(point: &Point, path: &Path, seed: u64) -> Result<Vec<Request>, LabError> {
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
