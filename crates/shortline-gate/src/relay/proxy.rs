//! The client's address, as announced by a proxy in front of the gate, and by the gate to the backend, by the PROXY protocol
//! (`shortline_web::proxy_header`).
//!
//! The gate does not guess whether a header comes. From trusted networks it is required. From others it is not read,
//! since they could announce any address. The gate announces by version 2.

use std::io;
use std::net::SocketAddr;

use shortline_sched::Network;
use shortline_web::proxy_header::{self, Version, announcement};
use tokio::io::AsyncWriteExt;

use super::Socket;

/// A client's address, and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address, if it has one.
    pub address: Option<SocketAddr>,
    /// Whether the client came by a trusted proxy.
    pub is_told: bool,
}

/// The address of a client that connected from `address`. Proxies in these networks announce the client's own.
///
/// # Errors
/// Those of the socket, and a wrong header as invalid data.
pub async fn peer(
    socket: &mut Socket,
    address: Option<SocketAddr>,
    proxies: &[Network],
) -> io::Result<Peer> {
    let is_told = address.is_some_and(|from| proxies.iter().any(|network| network.has(from.ip())));
    if !is_told {
        return Ok(Peer { address, is_told });
    }
    let announced = proxy_header::read(socket).await?;
    let address = announced.map(|ends| ends.client).or(address);
    Ok(Peer { address, is_told })
}

/// The two ends of a client's connection to the gate.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// The client's, if it has an address.
    pub client: Option<SocketAddr>,
    /// The gate's, if it has an address.
    pub gate: Option<SocketAddr>,
}

impl Ends {
    /// Announces the client to the backend. One without an address is announced as the gate itself.
    ///
    /// # Errors
    /// Those of the socket.
    pub async fn announce(self, backend: &mut Socket) -> io::Result<()> {
        let ends = self.client.zip(self.gate);
        let ends = ends.map(|(client, proxy)| proxy_header::Ends { client, proxy });
        backend.write_all(&announcement(Version::Two, ends)).await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn a_client_without_an_address_is_announced_as_the_gate() {
        let (near, far) = tokio::net::UnixStream::pair().unwrap();
        let gate = "127.0.0.1:3306".parse().ok();
        let ends = Ends { client: None, gate };
        ends.announce(&mut near.into()).await.unwrap();
        let mut far = Socket::from(far);
        assert_eq!(proxy_header::read(&mut far).await.unwrap(), None);
    }
}
