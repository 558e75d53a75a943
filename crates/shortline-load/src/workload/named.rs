//! Workloads and their sites by name: `w1` on the World Cup's twin, `nasa:w1`,
//! `surge-003:1.4`.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use shortline_sched::units::excerpt;
use thiserror::Error;

use super::{
    FILES_DEFAULT, LoadSchedule, PageFiles, SiteFiles, SurgePreset, UserModel, nasa_like,
    world_cup_like,
};

/// A site whose files can be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SiteName {
    /// The twin of 000, 2.1, of [`FILES_DEFAULT`] files.
    WorldCup,
    /// The twin of 000, appendix, of [`FILES_DEFAULT`] files.
    Nasa,
    /// SURGE's files.
    Surge(SurgePreset),
}

/// A site and the load on it: `[SITE:]SCHEDULE`, the site `world-cup` if none is named.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The files.
    pub site: SiteName,
    /// The load.
    pub schedule: LoadSchedule,
}

/// A name that no site has.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("site `{name}`: want world-cup, nasa, surge-001, surge-003 or surge-004")]
pub struct UnknownSite {
    name: String,
}

/// A text that names no workload.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WorkloadError {
    /// The part before the colon.
    #[error(transparent)]
    Site(#[from] UnknownSite),
    /// The rest.
    #[error(transparent)]
    Schedule(#[from] super::ScheduleError),
}

impl SiteName {
    /// Makes the list of its files.
    pub fn site(&self) -> SiteFiles {
        let twin = "invariant: FILES_DEFAULT files are within the range";
        match self {
            Self::WorldCup => world_cup_like(FILES_DEFAULT).expect(twin),
            Self::Nasa => nasa_like(FILES_DEFAULT).expect(twin),
            Self::Surge(preset) => preset.site(),
        }
    }

    /// So many of SURGE's users of it.
    pub fn users(&self, users: NonZeroU64, seed: u64) -> UserModel {
        UserModel::new(self.site(), self.pages(), users, seed)
    }

    /// What a user's draw of a page counts.
    pub fn pages(&self) -> PageFiles {
        match self {
            Self::Surge(preset) => preset.pages,
            Self::WorldCup | Self::Nasa => PageFiles::All,
        }
    }
}

impl fmt::Display for SiteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WorldCup => f.write_str("world-cup"),
            Self::Nasa => f.write_str("nasa"),
            Self::Surge(preset) => write!(f, "{preset}"),
        }
    }
}

impl FromStr for SiteName {
    type Err = UnknownSite;

    fn from_str(name: &str) -> Result<Self, UnknownSite> {
        match name.to_ascii_lowercase().as_str() {
            "world-cup" => Ok(Self::WorldCup),
            "nasa" => Ok(Self::Nasa),
            other => other.parse().map(Self::Surge).map_err(|_| UnknownSite {
                name: excerpt(name),
            }),
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.site {
            SiteName::WorldCup => write!(f, "{}", self.schedule),
            site => write!(f, "{site}:{}", self.schedule),
        }
    }
}

impl FromStr for Workload {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let (site, schedule) = match text.split_once(':') {
            Some((site, schedule)) => (site.parse()?, schedule),
            None => (SiteName::WorldCup, text),
        };
        let schedule = schedule.parse()?;
        Ok(Self { site, schedule })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn workloads_print_as_they_read() {
        for text in ["w1", "nasa:w10", "surge-003:1.4", "25s@0.2,25s@1.2"] {
            assert_eq!(text.parse::<Workload>().unwrap().to_string(), text);
        }
        let named = "world-cup:w1".parse::<Workload>().unwrap();
        assert_eq!(named, "w1".parse().unwrap());
    }

    #[test]
    fn names_that_are_unknown_are_refused() {
        assert_eq!(
            "nasal:w1".parse::<Workload>().unwrap_err().to_string(),
            "site `nasal`: want world-cup, nasa, surge-001, surge-003 or surge-004"
        );
        let error = "nasa:w11".parse::<Workload>().unwrap_err().to_string();
        assert!(error.starts_with("schedule `w11`: "), "{error}");
    }

    #[test]
    fn every_site_has_files() {
        for name in ["world-cup", "nasa", "surge-001", "surge-003", "surge-004"] {
            let site = name.parse::<SiteName>().unwrap().site();
            assert!(site.files().len() >= 1_000, "{name}");
        }
    }
}
