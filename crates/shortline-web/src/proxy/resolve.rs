//! Hosts whose name has several addresses, each a backend of its own. They are looked up again and again; a
//! lookup that fails changes nothing. Backends whose address stays keep their connections and condition.

use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::timeout;

use super::options::{BackendOptions, UpstreamOptions};
use super::upstream::Upstream;

/// The most addresses of a name.
const ADDRESSES_MAX: usize = 64;

/// Looks names up until the upstream is gone.
pub async fn keep_resolved(upstream: Weak<Upstream>, every: Duration) {
    let mut fails = false;
    while let Some(upstream) = upstream.upgrade() {
        let options = Arc::clone(&upstream.options);
        let mut failed = None;
        for own in options.backends.iter().filter(|own| has_name(own)) {
            match look_up(own, &options).await {
                Ok(addresses) => upstream.set_addresses(own, &addresses),
                Err(why) => failed = Some((own, why)),
            }
        }
        if let (Some((own, why)), false) = (&failed, fails) {
            tracing::warn!("{}: cannot be looked up: {why}", own.address);
        }
        fails = failed.is_some();
        drop(upstream);
        tokio::time::sleep(every).await;
    }
}

fn has_name(own: &BackendOptions) -> bool {
    let host = own.address.host();
    host.is_some_and(|host| host.parse::<IpAddr>().is_err())
}

async fn look_up(own: &BackendOptions, options: &UpstreamOptions) -> Result<Vec<IpAddr>, String> {
    let Some(host) = own.address.host() else {
        return Ok(Vec::new());
    };
    let found = timeout(options.connect_time_max, tokio::net::lookup_host((host, 0))).await;
    let found = found.map_err(|_elapsed| "no answer in time".to_owned())?;
    let found = found.map_err(|error| error.to_string())?;
    let mut addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.truncate(ADDRESSES_MAX);
    match addresses.is_empty() {
        true => Err("it has no address".to_owned()),
        false => Ok(addresses),
    }
}
