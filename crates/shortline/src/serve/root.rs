//! Which folder's files are served, if any: one that somebody named, and none of the system's.
//!
//! A reverse proxy has no files. Started by systemd its current folder is `/`, so what a configuration
//! file leaves out must not become that: only a bare `shortline serve`, which has nothing else to
//! do, serves the folder it is started in. And a folder that holds the machine itself (`/`, `/etc`,
//! `/proc`) is refused, whoever names it and by whatever link, until `allow-system-root` says that
//! it is meant.

use std::path::{Path, PathBuf};

use super::options::SiteKeys;
use shortline_daemon::file::{Place, Source};
use shortline_daemon::keys::Overlay;

/// Folders of the system, with all that is below them.
const SYSTEM_TREES: [&str; 5] = ["/boot", "/dev", "/etc", "/proc", "/sys"];
/// Folders that only hold other things' folders: one of these may well be a site.
const SYSTEM_FOLDERS: [&str; 10] = [
    "/",
    "/dev/shm",
    "/home",
    "/root",
    "/run",
    "/usr",
    "/var",
    "/var/lib",
    "/var/log",
    "/var/spool",
];
/// Memory that is used like a disk, though it is in `/dev`.
const MEMORY: &str = "/dev/shm";

/// Where files come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// There are none: all that is served are routes.
    Nowhere,
    /// The folder that was named.
    Named(PathBuf),
    /// The folder the server was started in, for want of anything else to do.
    Current,
}

impl Root {
    /// The folder; `None` if there are no files.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Nowhere => None,
            Self::Named(folder) => Some(folder),
            Self::Current => Some(Path::new(".")),
        }
    }

    /// The folder as the kernel calls it, links and all resolved, if it is there.
    pub fn resolved(&self) -> Option<PathBuf> {
        self.folder().and_then(|folder| folder.canonicalize().ok())
    }
}

/// What is said of files.
pub struct SiteInput<'a> {
    /// On the command line.
    pub flags: &'a SiteKeys,
    /// On the command line and in the file.
    pub site: &'a SiteKeys,
    /// The file, if there is one.
    pub config: Option<&'a Path>,
    /// Whether something is served beside files.
    pub has_routes: bool,
    /// The file's text, to name lines of it.
    pub source: &'a Source,
}

/// The folder to serve.
///
/// # Errors
/// Nothing to serve at all, keys about files that there are not, a folder of the system.
pub fn resolve(asked: &SiteInput<'_>) -> Result<Root, String> {
    let root = match (&asked.site.root, asked.config) {
        (Some(folder), _) => Root::Named(folder.clone()),
        (None, None) => Root::Current,
        (None, Some(config)) => {
            asked.refuse_nothing(config)?;
            asked.refuse_idle_keys()?;
            Root::Nowhere
        }
    };
    if asked.site.allow_system_root != Some(true) {
        asked.refuse_system(&root)?;
    }
    Ok(root)
}

impl SiteInput<'_> {
    fn refuse_nothing(&self, config: &Path) -> Result<(), String> {
        if self.has_routes {
            return Ok(());
        }
        Err(format!(
            "{}: names neither a folder nor a route, so that there is nothing to serve: add \
             root = \"/srv/www\" to [site], or a [[route]], or name the folder on the command line",
            config.display()
        ))
    }

    /// Whoever lists folders or names index files expects that there are files.
    fn refuse_idle_keys(&self) -> Result<(), String> {
        let Some(field) = self.site.difference(&SiteKeys::default()) else {
            return Ok(());
        };
        let key = field.replace('_', "-");
        let by_flag = self.flags.difference(&SiteKeys::default()) == Some(field);
        Err(format!(
            "{}: is about files, and no folder is named: add root = \"/srv/www\" to [site], or \
             leave it out",
            self.place().of(by_flag, &key, &key)
        ))
    }

    fn refuse_system(&self, root: &Root) -> Result<(), String> {
        // One that is not there is told when it is opened.
        let Some(folder) = root.resolved().filter(|folder| is_system(folder)) else {
            return Ok(());
        };
        let at = match root {
            Root::Current => "the current folder, for want of a ROOT".to_owned(),
            _ if self.flags.root.is_some() => "ROOT".to_owned(),
            _ => self.place().of(false, "root", "root"),
        };
        Err(format!(
            "{at}: {} is a folder of the system, which everybody could read then: name your \
             site's, such as /srv/www, or add --allow-system-root if it is meant",
            folder.display()
        ))
    }

    fn place(&self) -> Place<'_> {
        Place {
            source: self.source,
            table: "site",
        }
    }
}

/// Whether a folder, its links resolved, holds the machine rather than a site.
fn is_system(folder: &Path) -> bool {
    let is_one = SYSTEM_FOLDERS.iter().any(|system| folder == *system);
    let is_below = SYSTEM_TREES.iter().any(|tree| folder.starts_with(tree));
    is_one || (is_below && !folder.starts_with(MEMORY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_folder_is_told_from_a_site_in_it() {
        for system in [
            "/",
            "/etc",
            "/etc/nginx",
            "/proc/self",
            "/sys/class",
            "/dev",
            "/dev/shm",
            "/root",
            "/home",
            "/var",
            "/boot/grub",
        ] {
            assert!(is_system(Path::new(system)), "{system}");
        }
        for site in [
            "/srv",
            "/srv/www",
            "/var/www",
            "/var/lib/site",
            "/home/ann/site",
            "/root/site",
            "/dev/shm/site",
            "/etcetera",
            "/usr/share/doc",
            "/tmp/x",
        ] {
            assert!(!is_system(Path::new(site)), "{site}");
        }
    }
}
