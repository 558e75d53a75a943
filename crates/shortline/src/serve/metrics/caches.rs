//! What the caches of routes keep, in memory and in their folders.

use std::fmt::Display;

use shortline_daemon::admin::prometheus::Text;
use shortline_web::response_cache::ResponseCacheSnapshot;
use shortline_web::response_cache::folder::FolderSnapshot;

use super::super::routes::CacheStatus;

/// Adds them to a page.
pub fn add(page: &mut Text, caches: &[CacheStatus]) {
    fn of<'a, V: Display>(
        caches: &'a [CacheStatus],
        value: impl Fn(&ResponseCacheSnapshot) -> V + 'a,
    ) -> impl Iterator<Item = ([(&'a str, &'a str); 1], V)> {
        let label = |cache: &'a CacheStatus| [("route", cache.route.as_str())];
        caches
            .iter()
            .map(move |cache| (label(cache), value(&cache.state)))
    }
    if caches.is_empty() {
        return;
    }
    page.gauge_of(
        "cache_bytes",
        "Responses of backends that are kept, with their heads.",
        of(caches, |cache| cache.bytes),
    );
    page.counter_of(
        "cache_hits_total",
        "Requests answered by what is kept, fresh.",
        of(caches, |cache| cache.hits_total),
    );
    page.counter_of(
        "cache_stale_total",
        "Requests answered by what is kept, stale.",
        of(caches, |cache| cache.stale_total),
    );
    page.counter_of(
        "cache_misses_total",
        "Requests for which the backend was asked.",
        of(caches, |cache| cache.misses_total),
    );
    page.counter_of(
        "cache_passed_total",
        "Requests that nothing kept could be for.",
        of(caches, |cache| cache.passed_total),
    );
    page.counter_of(
        "cache_hit_bytes_total",
        "Bytes of bodies that were kept and sent.",
        of(caches, |cache| cache.hit_bytes_total),
    );
    folders(page, caches);
}

/// What the caches have on the disk.
fn folders(page: &mut Text, caches: &[CacheStatus]) {
    fn of<'a>(
        caches: &'a [CacheStatus],
        value: impl Fn(&FolderSnapshot) -> u64 + 'a,
    ) -> impl Iterator<Item = ([(&'a str, &'a str); 1], u64)> {
        let folder = move |cache: &'a CacheStatus| {
            let folder = cache.state.folder.as_ref()?;
            Some(([("route", cache.route.as_str())], value(folder)))
        };
        caches.iter().filter_map(folder)
    }
    if caches.iter().all(|cache| cache.state.folder.is_none()) {
        return;
    }
    page.gauge_of(
        "cache_disk_bytes",
        "Responses that are kept in the cache's folder, in whole blocks.",
        of(caches, |folder| folder.bytes),
    );
    page.gauge_of(
        "cache_disk_writable",
        "Whether the cache's folder can be written now.",
        of(caches, |folder| u64::from(folder.is_writable)),
    );
    page.counter_of(
        "cache_disk_written_total",
        "Responses written to the cache's folder.",
        of(caches, |folder| folder.written_total),
    );
    page.counter_of(
        "cache_disk_dropped_total",
        "Responses that were not, because the disk was slow, full or failed.",
        of(caches, |folder| folder.dropped_total),
    );
    page.counter_of(
        "cache_disk_evicted_total",
        "Responses that left the cache's folder for others.",
        of(caches, |folder| folder.evicted_total),
    );
}
