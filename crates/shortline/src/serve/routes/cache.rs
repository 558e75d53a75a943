//! `[route.cache]`: what is kept of the responses of a route's backends.

use serde::Deserialize;
use shortline_sched::units::Size;
use shortline_web::response_cache::ResponseCacheOptions;

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
}

impl CacheTable {
    /// The options, with defaults for what it does not say.
    pub fn resolve(self) -> ResponseCacheOptions {
        let defaults = ResponseCacheOptions::default();
        let time = |given: Option<Time>, default| given.map_or(default, |time| time.0);
        ResponseCacheOptions {
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
        }
    }
}
