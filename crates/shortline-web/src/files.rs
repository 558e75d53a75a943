//! Static files: everything about a response except the sockets.
//!
//! [`Files`] turn a request's head into a [`Plan`]: status, headers, and where the body's bytes
//! come from. The driver (HTTP/1.1 or HTTP/2) writes the head and pulls the segments in the order
//! the scheduler grants. It knows nothing of files' names, validators, ranges or codings.
//!
//! The semantics are RFC 9110's (methods, conditionals 13, ranges 14, negotiation 12). Where the
//! RFC leaves a choice, the module that makes it says so:
//!
//! | module | decides |
//! |---|---|
//! | [`paths`] | which targets name something, and what never does |
//! | `open` | how a name becomes a regular file beneath the root |
//! | `file` | reading without blocking, files cut short |
//! | `entry` | what is known about a resource: variants, validators, headers |
//! | `cache` | how long it is believed and how much is kept |
//! | [`conditional`], [`range`], [`encoding`] | the headers of the same names |
//! | `made` | what is compressed on the fly, once, and kept |
//! | `multipart` | the body of several ranges |
//! | `listing` | directory listings |
//! | `lookup` | what a path names: file, index, directory, listing |
//! | `respond` | the order of all these steps |

mod buffers;
mod cache;
pub mod conditional;
pub mod encoding;
mod entry;
mod file;
mod kernel_copy;
mod listing;
mod lookup;
mod made;
mod multipart;
mod open;
pub mod paths;
mod plan;
pub mod range;
mod respond;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use cache::{CacheOptions, FileCache};
pub use file::OpenFile;
pub use kernel_copy::{KERNEL_COPY_BYTES_MIN, KernelCopy};
pub(crate) use open::{OpenError, PathKind, Wait};
pub use plan::{Plan, PlanBody, RequestHead, Segment};

/// What is served of a folder, with sound defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesOptions {
    /// Names tried in a directory; the first match wins. Default: `index.html`.
    pub index: Vec<String>,
    /// Whether a directory without an index file is listed. Default: no, it is 404.
    pub listing: bool,
    /// The most names listed of one directory. Default 2000.
    pub listing_entries_max: usize,
    /// Whether `.zst`, `.br` and `.gz` siblings are offered. Default: yes.
    pub precompressed: bool,
    /// How the names of programs end, in capitals or not. They are run, and their text is never served. Default: none.
    pub programs: Vec<String>,
    /// Whether files without siblings are compressed for requests that may have it. Default: yes.
    pub compress: bool,
    /// The longest file that is compressed, in bytes. Default 8 MiB.
    pub compress_bytes_max: u64,
}

impl FilesOptions {
    /// Whether a path names a program.
    pub(crate) fn is_program(&self, path: &str) -> bool {
        self.programs.iter().any(|end| ends_with(path, end))
    }
}

/// Whether a text ends so, in capitals or not.
pub(crate) fn ends_with(text: &str, end: &str) -> bool {
    let start = text.len().checked_sub(end.len());
    let tail = start.and_then(|start| text.as_bytes().get(start..));
    tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end.as_bytes()))
}

impl Default for FilesOptions {
    fn default() -> Self {
        Self {
            index: vec!["index.html".into()],
            listing: false,
            listing_entries_max: 2000,
            precompressed: true,
            programs: Vec::new(),
            compress: true,
            compress_bytes_max: 8 << 20,
        }
    }
}

/// Why a folder cannot be served at all.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The root cannot be opened as a directory.
    #[error("site root {}: {source}; give a directory this user may read", root.display())]
    Root {
        /// The root as given.
        root: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The kernel or a sandbox refuses `openat2`, without which no path is safe.
    #[error(
        "site root {}: openat2 is refused ({source}); Linux 5.6 or newer is needed, and a sandbox that allows openat2",
        root.display()
    )]
    Openat2 {
        /// The root as given.
        root: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// An index name that might name something other than a file in the directory.
    #[error("index name {name:?}: give a plain file name such as \"index.html\"")]
    Index {
        /// The name as given.
        name: String,
    },
}

/// A directory tree served over HTTP. Clones are cheap: they share root and cache.
#[derive(Clone, Debug)]
pub struct Files {
    inner: Arc<lookup::Lookup>,
}

impl Files {
    /// Opens `root` for serving. Fails if it is not a readable directory, if the kernel lacks
    /// `openat2`, or if an index name is not a plain file name.
    pub fn open(
        root: &Path,
        options: FilesOptions,
        cache: &Arc<FileCache>,
    ) -> Result<Self, FilesError> {
        let inner = Arc::new(lookup::Lookup::open(root, options, cache)?);
        Ok(Self { inner })
    }

    /// The plan for a request, if it can be made without waiting for a disk: always for what is
    /// cached, and mostly for what the kernel has in memory. `None`: ask [`Files::respond`].
    /// `now_ns` is the time in ns on any clock that never goes back, the same clock for each
    /// request.
    pub fn respond_now(&self, head: &RequestHead<'_>, now_ns: u64) -> Option<Plan> {
        respond::respond_now(&self.inner, head, now_ns)
    }

    /// The plan for a request. Tries [`Files::respond_now`] first. If that fails, a thread of
    /// tokio's blocking pool looks the file up.
    pub async fn respond(&self, head: &RequestHead<'_>, now_ns: u64) -> Plan {
        respond::respond(&self.inner, head, now_ns).await
    }

    /// What a path relative to the root names, which need not be readable.
    pub(crate) fn kind(&self, relative: &str, wait: Wait) -> Result<Option<PathKind>, OpenError> {
        self.inner.kind(relative, wait)
    }

    /// The names tried in a directory.
    pub(crate) fn index(&self) -> &[String] {
        self.inner.index()
    }

    /// Whether directories are listed.
    pub(crate) fn lists(&self) -> bool {
        self.inner.lists()
    }
}
