//! From a path to a regular file beneath the root.
//!
//! Every open is one `openat2` relative to the root's descriptor with RESOLVE_BENEATH and
//! RESOLVE_NO_MAGICLINKS. The kernel refuses, without a race, whatever leaves the root, be it by
//! `..`, an absolute link or a mount of /proc. Symlinks that stay inside are followed.
//!
//! With RESOLVE_CACHED the lookup touches only the kernel's directory cache and fails with EAGAIN
//! if that is not enough. Only then is a thread that may block needed. Files are opened with
//! O_NONBLOCK, so that a fifo or device cannot hold a thread. Only regular files are served.
//!
//! Whatever leaves the root, or is neither a file nor a directory, looks absent: 404. What this
//! user may not read: 403. No descriptors or memory left: 503. A disk that fails: 500. The last
//! three are the machine's faults and not a client's, so they are logged.

use std::os::fd::OwnedFd;
use std::path::Path;

use http::StatusCode;
use parking_lot::Mutex;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2};
use rustix::io::Errno;
use tokio::time::Instant;

use super::FilesError;
use shortline_base::throttle::Throttle;

/// How often an open is tried when the kernel reports a race with a rename or a lease.
const TRIES_MAX: usize = 4;

/// The root directory.
#[derive(Debug)]
pub(super) struct Root {
    fd: OwnedFd,
    /// Whether the kernel knows RESOLVE_CACHED (5.12).
    knows_cached: bool,
    /// Limits the log lines about what cannot be opened.
    failures: Mutex<Throttle>,
}

/// Whether the calling thread may wait for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Never,
    Allowed,
}

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathKind {
    /// A regular file.
    File,
    /// A folder.
    Directory,
}

/// Something that may be served.
#[derive(Debug)]
pub(super) enum Opened {
    File { fd: OwnedFd, stat: Stat },
    Directory(OwnedFd),
}

/// Why nothing can be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// Only with [`Wait::Never`]: try again on a thread that may wait.
    WouldBlock,
    NotFound,
    Forbidden,
    /// Out of descriptors or memory.
    Exhausted,
    /// The disk failed, or something unforeseen happened.
    Broken,
}

impl Root {
    pub(super) fn open(path: &Path) -> Result<Self, FilesError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root_error = |errno: Errno| FilesError::Root {
            root: path.to_owned(),
            source: errno.into(),
        };
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(root_error)?;
        let mut root = Self {
            fd,
            knows_cached: true,
            failures: Mutex::default(),
        };
        match root.openat2(".", OFlags::PATH, ResolveFlags::CACHED) {
            // EINVAL: before 5.12. EAGAIN cannot happen here; it would only mean that waiting is
            // needed.
            Err(Errno::INVAL) => root.knows_cached = false,
            Err(Errno::NOSYS | Errno::PERM) => {
                let source = Errno::NOSYS.into();
                return Err(FilesError::Openat2 {
                    root: path.to_owned(),
                    source,
                });
            }
            _ => {}
        }
        root.openat2(".", OFlags::RDONLY, ResolveFlags::empty())
            .map_err(root_error)?;
        Ok(root)
    }

    /// Opens a path relative to the root for reading.
    pub(super) fn get(&self, relative: &str, wait: Wait) -> Result<Opened, OpenError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let (fd, stat) = self.find(relative, flags, wait)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Opened::File { fd, stat }),
            FileType::Directory => Ok(Opened::Directory(fd)),
            _ => Err(OpenError::NotFound),
        }
    }

    /// What a path relative to the root names, which need not be readable. `None`: nothing that is served.
    pub(super) fn kind(&self, relative: &str, wait: Wait) -> Result<Option<PathKind>, OpenError> {
        let stat = match self.find(relative, OFlags::PATH, wait) {
            Ok((_, stat)) => stat,
            Err(OpenError::NotFound) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Some(PathKind::File),
            FileType::Directory => Some(PathKind::Directory),
            _ => None,
        })
    }

    fn find(
        &self,
        relative: &str,
        flags: OFlags,
        wait: Wait,
    ) -> Result<(OwnedFd, Stat), OpenError> {
        let fd = match wait {
            Wait::Never if !self.knows_cached => return Err(OpenError::WouldBlock),
            Wait::Never => self.openat2(relative, flags, ResolveFlags::CACHED),
            Wait::Allowed => self.open_patiently(relative, flags),
        };
        let failed = |errno| {
            let error = OpenError::from(errno, wait);
            self.log(relative, error, errno);
            error
        };
        let fd = fd.map_err(failed)?;
        let stat = fstat(&fd).map_err(failed)?;
        Ok((fd, stat))
    }

    /// Logs an error that is not a client's fault.
    fn log(&self, path: &str, error: OpenError, errno: Errno) {
        match error {
            OpenError::WouldBlock | OpenError::NotFound => return,
            OpenError::Forbidden | OpenError::Exhausted | OpenError::Broken => {}
        }
        if let Some(untold) = self.failures.lock().allow(Instant::now()) {
            let status = error.status().as_u16();
            let reason = errno.to_string();
            tracing::warn!(path, status, reason, untold, "a file cannot be opened");
        }
    }

    fn open_patiently(&self, relative: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut result = Err(Errno::AGAIN);
        for _ in 0..TRIES_MAX {
            result = self.openat2(relative, flags, ResolveFlags::empty());
            if !matches!(result, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
        }
        result
    }

    fn openat2(
        &self,
        relative: &str,
        flags: OFlags,
        resolve: ResolveFlags,
    ) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        let resolve = resolve | ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        openat2(&self.fd, relative, flags, Mode::empty(), resolve)
    }
}

impl OpenError {
    /// The status of the response.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            OpenError::NotFound => StatusCode::NOT_FOUND,
            OpenError::Forbidden => StatusCode::FORBIDDEN,
            OpenError::Exhausted | OpenError::WouldBlock => StatusCode::SERVICE_UNAVAILABLE,
            OpenError::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn from(errno: Errno, wait: Wait) -> Self {
        match errno {
            Errno::AGAIN if wait == Wait::Never => OpenError::WouldBlock,
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::INVAL => OpenError::NotFound,
            // A link out of the root, a loop of links or a magic link; a socket or a dead device.
            Errno::XDEV | Errno::LOOP | Errno::NXIO | Errno::NODEV => OpenError::NotFound,
            Errno::ACCESS | Errno::PERM => OpenError::Forbidden,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => OpenError::Exhausted,
            _ => OpenError::Broken,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::{fs, io};

    use super::*;

    fn site() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("a")).unwrap();
        fs::write(dir.path().join("secret"), "secret").unwrap();
        fs::write(root.join("a/file"), "file").unwrap();
        let opened = Root::open(&root).unwrap();
        (dir, opened)
    }

    fn fails(root: &Root, path: &str) -> OpenError {
        root.get(path, Wait::Allowed).unwrap_err()
    }

    #[test]
    fn files_and_directories_are_told_apart() {
        let (_dir, root) = site();
        assert!(
            matches!(root.get("a/file", Wait::Allowed), Ok(Opened::File { stat, .. }) if stat.st_size == 4)
        );
        assert!(matches!(
            root.get("a", Wait::Allowed),
            Ok(Opened::Directory(_))
        ));
        assert!(matches!(
            root.get(".", Wait::Allowed),
            Ok(Opened::Directory(_))
        ));
        assert_eq!(fails(&root, "b"), OpenError::NotFound);
        assert_eq!(fails(&root, "a/file/x"), OpenError::NotFound);
        assert_eq!(fails(&root, &"n".repeat(300)), OpenError::NotFound);
    }

    #[test]
    fn without_waiting_known_names_are_found() {
        let (_dir, root) = site();
        assert!(root.get("a/file", Wait::Allowed).is_ok());
        // The kernel may evict it at any time, so both answers are right, but no third one is.
        let answer = root.get("a/file", Wait::Never);
        assert!(
            matches!(answer, Ok(Opened::File { .. }) | Err(OpenError::WouldBlock)),
            "{answer:?}"
        );
    }

    #[test]
    fn links_inside_are_followed_and_others_refused() {
        let (dir, root) = site();
        let base = dir.path().join("root");
        symlink("a/file", base.join("inside")).unwrap();
        symlink("../root/a/file", base.join("out_and_back")).unwrap();
        symlink("../secret", base.join("up")).unwrap();
        symlink(dir.path().join("secret"), base.join("absolute")).unwrap();
        symlink("..", base.join("a/parent")).unwrap();
        symlink("../..", base.join("a/grandparent")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        symlink("/proc/self/exe", base.join("magic")).unwrap();
        assert!(matches!(
            root.get("inside", Wait::Allowed),
            Ok(Opened::File { .. })
        ));
        assert!(matches!(
            root.get("a/parent/a/file", Wait::Allowed),
            Ok(Opened::File { .. })
        ));
        for path in [
            "up",
            "absolute",
            "a/grandparent/secret",
            "out_and_back",
            "loop",
            "magic",
            "../secret",
        ] {
            assert_eq!(fails(&root, path), OpenError::NotFound, "{path}");
        }
    }

    #[test]
    fn fifos_sockets_and_devices_are_not_found_at_once() {
        let (dir, root) = site();
        let base = dir.path().join("root");
        rustix::fs::mknodat(CWD, base.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(base.join("socket")).unwrap();
        assert_eq!(fails(&root, "fifo"), OpenError::NotFound);
        assert_eq!(fails(&root, "socket"), OpenError::NotFound);
        let dev = Root::open(Path::new("/dev")).unwrap();
        assert_eq!(fails(&dev, "null"), OpenError::NotFound);
    }

    #[test]
    fn unreadable_is_forbidden() {
        let (dir, root) = site();
        let file = dir.path().join("root/a/file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
        // The superuser may read it anyway.
        match fs::read(&file).map_err(|error| error.kind()) {
            Err(io::ErrorKind::PermissionDenied) => {
                assert_eq!(fails(&root, "a/file"), OpenError::Forbidden);
            }
            _ => assert!(root.get("a/file", Wait::Allowed).is_ok()),
        }
    }

    #[test]
    fn errors_have_their_status() {
        let status = |errno| OpenError::from(errno, Wait::Allowed).status();
        assert_eq!(status(Errno::MFILE), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(status(Errno::NFILE), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(status(Errno::ACCESS), StatusCode::FORBIDDEN);
        assert_eq!(status(Errno::IO), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(
            OpenError::from(Errno::AGAIN, Wait::Never),
            OpenError::WouldBlock
        );
    }

    #[test]
    fn a_root_that_is_none_is_named() {
        let (dir, _root) = site();
        for name in ["absent", "secret"] {
            let path = dir.path().join(name);
            let message = Root::open(&path).unwrap_err().to_string();
            assert!(
                message.contains(name) && !message.contains('\n'),
                "{message}"
            );
        }
    }
}
