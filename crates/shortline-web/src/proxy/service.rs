//! Servers that DNS names by SRV records (RFC 2782): `srv+http://_http._tcp.example.org`. They are looked up again when the answer's
//! time to live ends, within bounds. A lookup that fails changes nothing; servers that stay keep their connections and condition.
//!
//! | a record's | is the server's |
//! |---|---|
//! | target, port | address. The target's own addresses are looked up by the system for each connection |
//! | priority | rank: those of the next are asked only if none of the ones before works |
//! | weight | weight, relative to others of its priority. 0 beside others is a thousandth of the largest |
//!
//! The name servers are asked one after the other, by UDP, and by TCP where the answer does not fit ([`dns`]).

pub mod dns;
mod name_servers;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::address::{Service, UpstreamAddress};
use super::options::BackendOptions;
use super::upstream::Upstream;
use dns::{DnsError, Found, Said, Target};

/// The shortest and, if nothing is said, the longest time between two lookups.
const LOOK_UP_EVERY_MIN: Duration = Duration::from_secs(1);
const LOOK_UP_EVERY_MAX: Duration = Duration::from_secs(300);
/// How soon a lookup is tried again that has failed.
const FAILED_EVERY: Duration = Duration::from_secs(5);
/// The most servers of a service.
const TARGETS_MAX: usize = 64;
/// The weight that the largest of a priority becomes.
const WEIGHT_MAX: u32 = 1000;
/// The largest answer by UDP that is not asked for more (RFC 1035, 2.3.4), and room to see that one is larger.
const DATAGRAM_BYTES: usize = 1500;

/// Why a service was not found.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// No name server is known.
    #[error("no name server is known: give dns-servers, or a nameserver in /etc/resolv.conf")]
    NoServers,
    /// A name server cannot be asked.
    #[error("the name server {server}: {error}")]
    Unreachable {
        /// Its address.
        server: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// What it says is no answer, or that there is none.
    #[error("the name server {server}: {error}")]
    Said {
        /// Its address.
        server: SocketAddr,
        /// What it says.
        error: DnsError,
    },
}

/// Looks a service up until the upstream is gone. `own` is what the operator says of it.
pub async fn keep_found(upstream: Weak<Upstream>, own: BackendOptions) {
    let UpstreamAddress::Service(service) = &own.address else {
        return;
    };
    let (mut fails, mut is_first) = (false, true);
    while let Some(upstream) = upstream.upgrade() {
        let options = &upstream.options;
        let time_max = options.connect_time_max;
        let found = look_up(service, &options.name_servers, time_max).await;
        let wait = match &found {
            Ok(found) => {
                upstream.set_servers(&own, servers(&own, service, &found.targets));
                let longest = options.resolve_every.unwrap_or(LOOK_UP_EVERY_MAX);
                let ttl = Duration::from_secs(found.ttl_s.into());
                ttl.clamp(LOOK_UP_EVERY_MIN, longest.max(LOOK_UP_EVERY_MIN))
            }
            Err(error) => {
                if !fails {
                    tracing::warn!("{}: cannot be looked up: {error}", own.address);
                }
                FAILED_EVERY
            }
        };
        fails = found.is_err();
        if std::mem::take(&mut is_first) {
            upstream.has_looked_up();
        }
        drop(upstream);
        tokio::time::sleep(wait).await;
    }
}

/// The servers that the records name.
fn servers(own: &BackendOptions, service: &Service, targets: &[Target]) -> Vec<BackendOptions> {
    let mut priorities: Vec<u16> = targets.iter().map(|target| target.priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    let server = |target: &Target| {
        let of_priority = targets
            .iter()
            .filter(|other| other.priority == target.priority);
        let largest = of_priority.map(|other| other.weight).max().unwrap_or(0);
        let weight = weight(target.weight, largest).min(own.weight.saturating_mul(WEIGHT_MAX));
        let rank = priorities
            .iter()
            .position(|known| *known == target.priority);
        BackendOptions {
            address: service.server(&target.host, target.port),
            weight,
            rank: rank.map_or(0, |rank| u16::try_from(rank).unwrap_or(u16::MAX)),
            service: Some(service.clone()),
            id: None,
            ..own.clone()
        }
    };
    let mut servers: Vec<BackendOptions> = Vec::new();
    for server in targets.iter().take(TARGETS_MAX).map(server) {
        // Two records of one server are one.
        if !servers.iter().any(|known| known.address == server.address) {
            servers.push(server);
        }
    }
    servers
}

fn weight(weight: u16, largest: u16) -> u32 {
    match largest {
        0 => WEIGHT_MAX,
        _ => (u32::from(weight) * WEIGHT_MAX / u32::from(largest)).max(1),
    }
}

/// Asks the name servers one after the other.
async fn look_up(
    service: &Service,
    given: &[SocketAddr],
    time_max: Duration,
) -> Result<Found, ServiceError> {
    let servers = match given.is_empty() {
        true => name_servers::of_the_system(),
        false => given.to_vec(),
    };
    let mut failure = ServiceError::NoServers;
    for server in servers {
        let late = |_| Err(io::Error::from(io::ErrorKind::TimedOut));
        let asked = timeout(time_max, ask(server, &service.name)).await;
        failure = match asked.unwrap_or_else(late) {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(error)) => ServiceError::Said { server, error },
            Err(error) => ServiceError::Unreachable { server, error },
        };
    }
    Err(failure)
}

async fn ask(server: SocketAddr, name: &str) -> io::Result<Result<Found, DnsError>> {
    let mut id = [0; 2];
    let random = SystemRandom::new();
    random
        .fill(&mut id)
        .map_err(|_| io::Error::other("no random numbers"))?;
    let id = u16::from_be_bytes(id);
    let question = match dns::question(id, name) {
        Ok(question) => question,
        Err(error) => return Ok(Err(error)),
    };
    Ok(match ask_by_udp(server, id, name, &question).await? {
        Ok(Said::Found(found)) => Ok(found),
        Ok(Said::Truncated) => match ask_by_tcp(server, id, name, &question).await? {
            Ok(Said::Found(found)) => Ok(found),
            Ok(Said::Truncated) => Err(DnsError::CutShort),
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    })
}

async fn ask_by_udp(
    server: SocketAddr,
    id: u16,
    name: &str,
    question: &[u8],
) -> io::Result<Result<Said, DnsError>> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(question).await?;
    let mut answer = [0; DATAGRAM_BYTES];
    loop {
        let bytes = socket.recv(&mut answer).await?;
        match dns::read(&answer[..bytes], id, name) {
            // Anybody can send one. The right one may still come.
            Err(DnsError::Foreign) => {}
            said => return Ok(said),
        }
    }
}

async fn ask_by_tcp(
    server: SocketAddr,
    id: u16,
    name: &str,
    question: &[u8],
) -> io::Result<Result<Said, DnsError>> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(question.len()).unwrap_or(u16::MAX);
    let framed = [&length.to_be_bytes(), question].concat();
    stream.write_all(&framed).await?;
    let mut answer = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut answer).await?;
    Ok(dns::read(&answer, id, name))
}

impl Upstream {
    /// Looks up the services that are among its servers. Must be called inside a runtime.
    pub(super) fn look_up_services(self: &Arc<Self>) {
        for own in self.options.backends.iter().filter(|own| own.is_service()) {
            tokio::spawn(keep_found(Arc::downgrade(self), own.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn target(host: &str, priority: u16, weight: u16) -> Target {
        Target {
            priority,
            weight,
            host: host.to_owned(),
            port: 80,
        }
    }

    #[test]
    fn priorities_are_ranks_and_weights_are_relative_in_each() {
        let own: BackendOptions = "srv+http://_http._tcp.example.org".parse().unwrap();
        let UpstreamAddress::Service(service) = &own.address else {
            panic!("no service");
        };
        let targets = [
            target("a", 10, 60),
            target("b", 10, 20),
            target("c", 20, 0),
            target("d", 30, 0),
            target("e", 30, 65_535),
            target("a", 10, 60),
        ];
        let servers = servers(&own, service, &targets);
        let told: Vec<_> = servers
            .iter()
            .map(|server| (server.address.to_string(), server.rank, server.weight))
            .collect();
        let expected = [
            ("a:80", 0, 1000),
            ("b:80", 0, 333),
            ("c:80", 1, 1000),
            ("d:80", 2, 1),
            ("e:80", 2, 1000),
        ];
        let expected = expected.map(|(address, rank, weight)| (address.to_owned(), rank, weight));
        assert_eq!(told, expected);
    }
}
