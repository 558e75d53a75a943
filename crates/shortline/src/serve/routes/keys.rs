//! The keys of a `[[route]]`, as the file has them.

use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use serde::Deserialize;
use shortline_daemon::file::spot::KeyError;
use shortline_daemon::keys::all_from_text;
use shortline_sched::units::Size;
use shortline_web::proxy::{
    BackendOptions, HealthOptions, RetryLimit, StickyCookie, UpstreamAddress, UpstreamOptions,
};

use super::super::super::gate::options::GateOptions;
use super::cache::CacheTable;
use super::fastcgi::FastCgiKeys;
use super::mirror::MirrorKeys;
use super::upstreams::{CookieName, HashBy, Share, Upstreams};
use super::values::{HeadSize, HealthPath, HttpKey, NameServer, RoutePath, Time};

/// A route as the file has it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouteKeys {
    pub(super) path: RoutePath,
    upstream: Upstreams,
    upstream_ca: Option<PathBuf>,
    http: Option<HttpKey>,
    streams_max: Option<NonZeroUsize>,
    ping_every: Option<Time>,
    connect_time_max: Option<Time>,
    first_byte_time_max: Option<Time>,
    idle_time_max: Option<Time>,
    upload_time_max: Option<Time>,
    tunnel_idle_time_max: Option<Time>,
    connections_max: Option<NonZeroUsize>,
    idle_connections_max: Option<usize>,
    idle_connection_time_max: Option<Time>,
    request_size_max: Option<Size>,
    response_head_size_max: Option<HeadSize>,
    response_fields_max: Option<NonZeroUsize>,
    buffer_size_max: Option<Size>,
    buffers_size_max: Option<Size>,
    failures_max: Option<NonZeroU32>,
    down_time: Option<Time>,
    health_path: Option<HealthPath>,
    health_every: Option<Time>,
    health_fall: Option<NonZeroU32>,
    health_rise: Option<NonZeroU32>,
    slow_start: Option<Time>,
    hash_by: Option<HashBy>,
    sticky_cookie: Option<CookieName>,
    retries_share_max: Option<Share>,
    retries_min: Option<u32>,
    resolve_every: Option<Time>,
    #[serde(default, deserialize_with = "all_from_text")]
    dns_servers: Option<Vec<NameServer>>,
    trust_forwarded: Option<bool>,
    pub(super) fastcgi: Option<FastCgiKeys>,
    pub(super) cache: Option<CacheTable>,
    pub(super) mirror: Option<MirrorKeys>,
    pub(super) gate: Option<Box<GateOptions>>,
}

impl RouteKeys {
    /// The keys that only backends with HTTP/2 have.
    pub(super) fn of_http2(&self) -> Option<&'static str> {
        let streams_max = self.streams_max.map(|_| "streams-max");
        streams_max.or(self.ping_every.as_ref().map(|_| "ping-every"))
    }

    /// Whether the servers speak FastCGI.
    pub(super) fn speaks_fastcgi(&self) -> bool {
        self.addresses().any(UpstreamAddress::speaks_fastcgi)
    }

    /// Whether some of the servers do, and some do not.
    pub(super) fn speaks_both(&self) -> bool {
        let speaks_http = |backend: &UpstreamAddress| !backend.speaks_fastcgi();
        self.speaks_fastcgi() && self.addresses().any(speaks_http)
    }

    fn addresses(&self) -> impl Iterator<Item = &UpstreamAddress> {
        self.upstream.0.iter().map(|one| &one.address)
    }

    /// Refuses keys that are of no use without another.
    ///
    /// # Errors
    /// Names the key and what would be right.
    pub(super) fn refuse_idle(&self) -> Result<(), KeyError> {
        let of_check = self.health_fall.map(|_| "health-fall");
        if let Some(key) = of_check.or(self.health_rise.map(|_| "health-rise"))
            && self.health_path.is_none()
        {
            return Err(KeyError::new(
                key,
                "is for a health check: give health-path, such as \"/health\", or leave it out",
            ));
        }
        let mut servers = self.upstream.0.iter();
        let has_services = servers.clone().any(BackendOptions::is_service);
        let is_idle = [
            (
                self.sticky_cookie.is_none() && servers.clone().any(|one| one.id.is_some()),
                "upstream",
                "id: is what a cookie calls the server: give sticky-cookie = \"NAME\", or leave it out",
            ),
            (
                self.dns_servers.is_some() && !has_services,
                "dns-servers",
                "are asked for services: give upstream = [\"srv+http://_http._tcp.example.org\"], or leave it out",
            ),
            (
                self.dns_servers.as_ref().is_some_and(Vec::is_empty),
                "dns-servers",
                "names none: give one such as \"10.0.0.2\", or leave it out",
            ),
            (
                servers.any(|one| one.is_service() && one.id.is_some()),
                "upstream",
                "id: is for one server, and a service may have many: leave it out",
            ),
            (
                self.resolve_every.is_some()
                    && !has_services
                    && !self.addresses().any(has_host_name),
                "resolve-every",
                "is for hosts with a name: give upstream = [\"app.internal:9000\"], or leave it out",
            ),
        ];
        match is_idle.iter().find(|(is_so, ..)| *is_so) {
            Some((_, key, problem)) => Err(KeyError::new(*key, *problem)),
            None => Ok(()),
        }
    }

    fn health(&self, defaults: &HealthOptions) -> HealthOptions {
        let time = |given: &Option<Time>, default| given.as_ref().map_or(default, |time| time.0);
        let count = |given: Option<NonZeroU32>, default| given.map_or(default, NonZeroU32::get);
        HealthOptions {
            failures_max: count(self.failures_max, defaults.failures_max),
            down_time: time(&self.down_time, defaults.down_time),
            fall: count(self.health_fall, defaults.fall),
            rise: count(self.health_rise, defaults.rise),
            slow_start: time(&self.slow_start, defaults.slow_start),
        }
    }

    fn retries(&self, defaults: RetryLimit) -> RetryLimit {
        RetryLimit {
            share: self
                .retries_share_max
                .as_ref()
                .map_or(defaults.share, |share| share.0),
            least: self.retries_min.unwrap_or(defaults.least),
        }
    }

    /// The options of the backends.
    pub(super) fn options(self) -> UpstreamOptions {
        let defaults = UpstreamOptions::default();
        let time = |given: Option<Time>, default| given.map_or(default, |time| time.0);
        let bytes = |given: Option<Size>, default| {
            given.map_or(default, |size| {
                usize::try_from(size.bytes()).unwrap_or(usize::MAX)
            })
        };
        // Each idle connection would keep one of PHP's processes from all other requests.
        let idle_connections_max = match self.speaks_fastcgi() {
            true => 0,
            false => defaults.idle_connections_max,
        };
        let held = self.fastcgi.as_ref().and_then(FastCgiKeys::held_size_max);
        let count = |given: Option<NonZeroUsize>, default| given.map_or(default, NonZeroUsize::get);
        UpstreamOptions {
            health: self.health(&defaults.health),
            retries: self.retries(defaults.retries),
            backends: self.upstream.0,
            hash_by: self.hash_by.map(|by| by.0),
            sticky_cookie: self.sticky_cookie.map(|name| StickyCookie(name.0)),
            resolve_every: self.resolve_every.map(|time| time.0),
            name_servers: self
                .dns_servers
                .iter()
                .flatten()
                .map(|server| server.0)
                .collect(),
            authorities: self.upstream_ca,
            http: self.http.map_or(defaults.http, |http| http.0),
            streams_max: count(self.streams_max, defaults.streams_max),
            ping_every: self.ping_every.map(|time| time.0),
            connect_time_max: time(self.connect_time_max, defaults.connect_time_max),
            first_byte_time_max: time(self.first_byte_time_max, defaults.first_byte_time_max),
            idle_time_max: time(self.idle_time_max, defaults.idle_time_max),
            upload_time_max: time(self.upload_time_max, defaults.upload_time_max),
            tunnel_idle_time_max: time(self.tunnel_idle_time_max, defaults.tunnel_idle_time_max),
            connections_max: count(self.connections_max, defaults.connections_max),
            idle_connections_max: self.idle_connections_max.unwrap_or(idle_connections_max),
            idle_connection_time_max: time(
                self.idle_connection_time_max,
                defaults.idle_connection_time_max,
            ),
            request_bytes_max: self
                .request_size_max
                .map_or(defaults.request_bytes_max, Size::bytes),
            held_bytes_max: bytes(held, defaults.held_bytes_max),
            response_head_bytes_max: bytes(
                self.response_head_size_max.map(|size| size.0),
                defaults.response_head_bytes_max,
            ),
            response_fields_max: count(self.response_fields_max, defaults.response_fields_max),
            buffer_bytes_max: bytes(self.buffer_size_max, defaults.buffer_bytes_max),
            buffers_bytes_max: bytes(self.buffers_size_max, defaults.buffers_bytes_max),
            health_path: self.health_path.map(|path| path.0),
            health_every: time(self.health_every, defaults.health_every),
            trust_forwarded: self.trust_forwarded.unwrap_or(defaults.trust_forwarded),
        }
    }
}

fn has_host_name(address: &UpstreamAddress) -> bool {
    address
        .host()
        .is_some_and(|host| host.parse::<IpAddr>().is_err())
}
