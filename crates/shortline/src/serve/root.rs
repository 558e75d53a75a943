//! Which folder's files are served, if any: one that somebody named, and not one of the system.
//!
//! A reverse proxy has no files. If systemd starts it, its current folder is `/`. So a
//! configuration file that names no folder must not serve the current one. Only a bare `shortline
//! serve`, which has nothing else to do, serves the folder it is started in. A folder that holds
//! the machine itself (`/`, `/etc`, `/proc`) is refused, whoever names it and through whatever
//! link, unless `allow-system-root` says that it is meant.

use std::path::{Path, PathBuf};

use super::options::SiteKeys;
use shortline_daemon::keys::Overlay;

/// Folders of the system. Everything below them belongs to it too.
const SYSTEM_TREES: [&str; 5] = ["/boot", "/dev", "/etc", "/proc", "/sys"];
/// Folders that only hold other folders, any of which may well be a site.
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
/// Memory used like a disk, although it is in `/dev`.
const MEMORY: &str = "/dev/shm";

/// Where files come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// There are no files, only routes.
    Nowhere,
    /// The folder that was named.
    Named(PathBuf),
    /// The folder the server was started in, because it has nothing else to do.
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

    /// The folder's real path with all links resolved, if it exists.
    pub fn resolved(&self) -> Option<PathBuf> {
        self.folder().and_then(|folder| folder.canonicalize().ok())
    }
}

/// What the configuration says about files.
pub struct SiteInput<'a> {
    /// On the command line.
    pub flags: &'a SiteKeys,
    /// On the command line and in the file.
    pub site: &'a SiteKeys,
    /// The file, if there is one.
    pub config: Option<&'a Path>,
    /// Whether there are routes to serve besides files.
    pub has_routes: bool,
    /// The name of a key's place, of which the first tells whether it was a flag.
    pub place: &'a dyn Fn(bool, &str) -> String,
}

/// The folder to serve.
///
/// # Errors
/// Nothing at all to serve, keys about files without files, or a folder of the system.
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
            "{}: names neither a folder nor a route, so there is nothing to serve: add \
             root = \"/srv/www\" to [site], or a [[route]], or name the folder on the command line",
            config.display()
        ))
    }

    /// Refuses keys for folder listings or index files if no files are served.
    fn refuse_idle_keys(&self) -> Result<(), String> {
        let Some(field) = self.site.difference(&SiteKeys::default()) else {
            return Ok(());
        };
        let key = field.replace('_', "-");
        let by_flag = self.flags.difference(&SiteKeys::default()) == Some(field);
        Err(format!(
            "{}: is about files, and no folder is named: add root = \"/srv/www\" to [site], or \
             leave it out",
            (self.place)(by_flag, &key)
        ))
    }

    fn refuse_system(&self, root: &Root) -> Result<(), String> {
        // A folder that does not exist is reported when it is opened.
        let Some(folder) = root.resolved().filter(|folder| is_system(folder)) else {
            return Ok(());
        };
        let at = match root {
            Root::Current => "the current folder, for want of a ROOT".to_owned(),
            _ if self.flags.root.is_some() => "ROOT".to_owned(),
            _ => (self.place)(false, "root"),
        };
        Err(format!(
            "{at}: {} is a folder of the system, and everybody could read it: name your \
             site's, such as /srv/www, or add --allow-system-root if it is meant",
            folder.display()
        ))
    }
}

/// The folder with its links resolved, if it is one of the system.
pub fn of_the_system(folder: &Path) -> Option<PathBuf> {
    folder
        .canonicalize()
        .ok()
        .filter(|folder| is_system(folder))
}

/// Whether a folder with its links resolved holds the machine rather than a site.
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
