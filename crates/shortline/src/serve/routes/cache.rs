//! `[route.cache]`: what is kept of the responses of a route's backends.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::Deserialize;
use shortline_daemon::file::spot::KeyError;
use shortline_sched::units::Size;
use shortline_web::response_cache::ResponseCacheOptions;
use shortline_web::response_cache::folder::FolderOptions;

use super::values::Time;

/// The table as the file has it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CacheTable {
    size_max: Option<Size>,
    response_size_max: Option<Size>,
    default_time: Option<Time>,
    stale_while_revalidate: Option<Time>,
    stale_if_error: Option<Time>,
    wait_time_max: Option<Time>,
    disk: Option<DiskTable>,
}

/// `[route.cache.disk]`: a folder that has all of them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct DiskTable {
    folder: PathBuf,
    size_max: Option<Size>,
    responses_max: Option<NonZeroUsize>,
    response_size_max: Option<Size>,
}

impl CacheTable {
    /// The options, with defaults for what it does not say.
    ///
    /// # Errors
    /// Names the key that contradicts another.
    pub fn resolve(self) -> Result<ResponseCacheOptions, KeyError> {
        let defaults = ResponseCacheOptions::default();
        let time = |given: Option<Time>, default| given.map_or(default, |time| time.0);
        Ok(ResponseCacheOptions {
            bytes_max: self.size_max.map_or(defaults.bytes_max, Size::bytes),
            response_bytes_max: self
                .response_size_max
                .map_or(defaults.response_bytes_max, |size| {
                    usize::try_from(size.bytes()).unwrap_or(usize::MAX)
                }),
            default_time: time(self.default_time, defaults.default_time),
            stale_while_revalidate: time(
                self.stale_while_revalidate,
                defaults.stale_while_revalidate,
            ),
            stale_if_error: time(self.stale_if_error, defaults.stale_if_error),
            wait_time_max: time(self.wait_time_max, defaults.wait_time_max),
            folder: self.disk.map(DiskTable::resolve).transpose()?,
        })
    }
}

impl DiskTable {
    fn resolve(self) -> Result<FolderOptions, KeyError> {
        if self.folder.as_os_str().is_empty() {
            return Err(KeyError::new(
                "cache.disk.folder",
                "is empty: name a folder, such as /var/cache/shortline/app",
            ));
        }
        let defaults = FolderOptions::at(self.folder);
        let bytes = |size: Option<Size>, default| size.map_or(default, Size::bytes);
        let options = FolderOptions {
            bytes_max: bytes(self.size_max, defaults.bytes_max),
            responses_max: self
                .responses_max
                .map_or(defaults.responses_max, NonZeroUsize::get),
            response_bytes_max: bytes(self.response_size_max, defaults.response_bytes_max),
            ..defaults
        };
        match self.response_size_max.is_some() && options.response_bytes_max > options.bytes_max {
            true => Err(KeyError::new(
                "cache.disk.response-size-max",
                "is more than size-max, so no such response could be kept: give a smaller one, or a larger size-max",
            )),
            false => Ok(options),
        }
    }
}
