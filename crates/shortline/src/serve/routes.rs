//! `[[route]]` of the configuration: which requests go to which application servers.
//!
//! Only the file has routes: a flag for each of their keys would say nothing of which route it is
//! for. A route with a table `gate` asks a gate when its requests may go to the backends.

mod gates;
mod values;

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use serde::Deserialize;
use shortline_sched::units::Size;
use shortline_web::proxy::UpstreamAddress;
use shortline_web::proxy::upstream::UpstreamOptions;

use crate::gate::options::GateOptions;
use crate::gate::settings::RouteGate;
pub use gates::{GateStatus, OpenRoutes};
use values::{HeadSize, HealthPath, RoutePath, Time};

/// A route as the file has it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouteKeys {
    path: RoutePath,
    #[serde(deserialize_with = "values::backends")]
    upstream: Vec<UpstreamAddress>,
    upstream_ca: Option<PathBuf>,
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
    trust_forwarded: Option<bool>,
    gate: Option<Box<GateOptions>>,
}

/// A route as it is used.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteSettings {
    path: String,
    upstream: UpstreamOptions,
    /// Who decides when a request may go; `None`: at once.
    gate: Option<RouteGate>,
}

/// The routes of a file.
///
/// # Errors
/// Names a path that is given twice, or a gate that cannot be had.
pub fn resolve(routes: Vec<RouteKeys>) -> Result<Vec<RouteSettings>, String> {
    let mut resolved: Vec<RouteSettings> = Vec::new();
    for keys in routes {
        let path = keys.path.0.clone();
        if resolved.iter().any(|known| known.path == path) {
            return Err(format!(
                "route {path}: is there twice: give each path once, with all its backends"
            ));
        }
        let gate = keys.gate.as_deref();
        let route = RouteSettings {
            gate: gate
                .map(|options| RouteGate::resolve(&path, options))
                .transpose()?,
            path,
            upstream: keys.options(),
        };
        route.refuse_idle_authorities()?;
        gates::refuse_two_of_a_backend(&resolved, &route)?;
        resolved.push(route);
    }
    Ok(resolved)
}

impl RouteSettings {
    fn refuse_idle_authorities(&self) -> Result<(), String> {
        let has_tls = |backend: &UpstreamAddress| matches!(backend, UpstreamAddress::Tls { .. });
        if self.upstream.authorities.is_some() && !self.upstream.backends.iter().any(has_tls) {
            return Err(format!(
                "route {}: upstream-ca: is for servers with TLS: give upstream = \
                 [\"https://host:port\"], or leave it out",
                self.path
            ));
        }
        Ok(())
    }
}

impl RouteKeys {
    fn options(self) -> UpstreamOptions {
        let defaults = UpstreamOptions::default();
        let time = |given: Option<Time>, default| given.map_or(default, |time| time.0);
        let bytes = |given: Option<Size>, default| {
            given.map_or(default, |size| {
                usize::try_from(size.bytes()).unwrap_or(usize::MAX)
            })
        };
        let count = |given: Option<NonZeroUsize>, default| given.map_or(default, NonZeroUsize::get);
        UpstreamOptions {
            backends: self.upstream,
            authorities: self.upstream_ca,
            connect_time_max: time(self.connect_time_max, defaults.connect_time_max),
            first_byte_time_max: time(self.first_byte_time_max, defaults.first_byte_time_max),
            idle_time_max: time(self.idle_time_max, defaults.idle_time_max),
            upload_time_max: time(self.upload_time_max, defaults.upload_time_max),
            tunnel_idle_time_max: time(self.tunnel_idle_time_max, defaults.tunnel_idle_time_max),
            connections_max: count(self.connections_max, defaults.connections_max),
            idle_connections_max: self
                .idle_connections_max
                .unwrap_or(defaults.idle_connections_max),
            idle_connection_time_max: time(
                self.idle_connection_time_max,
                defaults.idle_connection_time_max,
            ),
            request_bytes_max: self
                .request_size_max
                .map_or(defaults.request_bytes_max, Size::bytes),
            response_head_bytes_max: bytes(
                self.response_head_size_max.map(|size| size.0),
                defaults.response_head_bytes_max,
            ),
            response_fields_max: count(self.response_fields_max, defaults.response_fields_max),
            buffer_bytes_max: bytes(self.buffer_size_max, defaults.buffer_bytes_max),
            buffers_bytes_max: bytes(self.buffers_size_max, defaults.buffers_bytes_max),
            failures_max: self
                .failures_max
                .map_or(defaults.failures_max, NonZeroU32::get),
            down_time: time(self.down_time, defaults.down_time),
            health_path: self.health_path.map(|path| path.0),
            health_every: time(self.health_every, defaults.health_every),
            trust_forwarded: self.trust_forwarded.unwrap_or(defaults.trust_forwarded),
        }
    }
}
