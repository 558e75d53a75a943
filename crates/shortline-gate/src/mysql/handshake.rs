//! From accepting a client to the end of its authentication.
//!
//! The server greets first, so the gate connects to the backend at once. The greeting is passed on
//! with the capabilities that the gate can keep ([`greeting::offered`]). TLS and compression are
//! separate on each side. Later messages are relayed one by one until the server sends OK or ERR.
//! The gate needs no knowledge of authentication plugins. Only sequence numbers change, because one
//! side may have an `SSLRequest` and the other not.
//!
//! If only one side has TLS, `caching_sha2_password` and `sha256_password` cannot send a full
//! password. With TLS it goes in the clear, without it under the server's RSA key, and the two
//! sides do not agree. So [`UpstreamTls::Prefer`] means [`UpstreamTls::Follow`] here: TLS to the
//! server begins exactly if the client has begun it.

use std::io;

use tokio::io::AsyncWriteExt;

use super::capability::{COMPRESS, Capabilities, SSL};
use super::complaint::Complaint;
use super::greeting::{self, Answer, Greeting};
use super::link::{Link, NoPacket};
use super::packet::HEADER_BYTES;
use super::reply::{Status, status_of_ok};
use crate::classify::ClientNames;
use crate::relay::proxy::Ends;
use crate::relay::tls::UpstreamTls;
use crate::relay::{Handle, Order, RelayConfig, Socket, Stream};
use shortline_sched::admission::Refusal;

const OK: u8 = 0x00;
const ERR: u8 = 0xff;

/// A session that is ready to begin.
#[derive(Debug)]
pub struct Authenticated {
    /// The client, over TLS if it asked for it.
    pub client: Stream,
    /// The backend.
    pub server: Stream,
    /// The capabilities that both agreed on. Compression is the client's.
    pub capabilities: Capabilities,
    /// The status of the server's OK.
    pub status: Status,
    /// The number by which KILL names the connection.
    pub thread_id: u32,
    /// The client's own names.
    pub names: ClientNames,
    /// Bytes that the client has already sent: less than a packet.
    pub ahead: Vec<u8>,
}

/// Decides whether a client with these names may connect. Adds the client's address to the names.
pub type Join<'a> = &'a mut (dyn FnMut(&mut ClientNames) -> Result<(), Refusal> + Send);

/// Why no session began.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The client got this error.
    #[error(transparent)]
    Refused(Complaint),
    /// The backend refused, and the client got its error.
    #[error("the backend refused the client")]
    RefusedByServer,
    /// A socket failed, or one of the two left.
    #[error("during the handshake: {0}")]
    Io(#[from] io::Error),
}

/// Connects to the backend and relays until it accepts the client, whose connection has these ends.
/// If the client is refused, it gets the error here.
///
/// # Errors
/// [`HandshakeError`]
pub async fn authenticate(
    client: Socket,
    ends: Ends,
    config: &RelayConfig,
    handle: &Handle,
    join: Join<'_>,
) -> Result<Authenticated, HandshakeError> {
    let mut client = Link::of_client(client);
    let (greeting, server) = match greeted_in_time(ends, config).await? {
        Greeted::Yes(greeting, server) => (greeting, server),
        Greeted::Refused(payload) => {
            client.write(&payload).await?;
            client.linger().await;
            return Err(HandshakeError::RefusedByServer);
        }
        Greeted::Not(complaint) => return Err(refuse(&mut client, complaint, true).await),
    };
    answered(client, server, greeting, config, handle, join).await
}

/// Refuses a client because there is one connection too many.
pub async fn refuse_connection(client: Socket, complaint: Complaint) {
    refuse(&mut Link::of_client(client), complaint, true).await;
}

enum Greeted {
    Yes(Greeting, Link),
    /// The server's error packet.
    Refused(Vec<u8>),
    /// There is no server, or it does not greet.
    Not(Complaint),
}

/// Connects and waits for the greeting. If none comes within the time to connect, tries once more.
/// When more clients connect at once than its accept queue takes, a server's kernel may forget a
/// connection that it acknowledged with a SYN cookie. The server speaks first, so both would wait
/// for each other. (Linux 6.18 before MariaDB 10.11, 300 connections at once.)
async fn greeted_in_time(ends: Ends, config: &RelayConfig) -> Result<Greeted, HandshakeError> {
    let limit = config.limits.connect_time_max;
    match tokio::time::timeout(limit, greeted(ends, config)).await {
        Ok(greeted) => greeted,
        Err(_) => greeted(ends, config).await,
    }
}

async fn greeted(ends: Ends, config: &RelayConfig) -> Result<Greeted, HandshakeError> {
    let connecting = config.upstream.connect(config.limits.connect_time_max);
    let connected = connecting.await;
    config.registry.note_backend(connected.is_ok());
    let mut server = match connected {
        Ok(server) => server,
        Err(error) => return Ok(Greeted::Not(Complaint::unreachable(error))),
    };
    if config.announces_clients {
        ends.announce(&mut server).await?;
    }
    let mut server = Link::of_server(server);
    let payload = server.read().await?;
    if payload.first() == Some(&ERR) {
        return Ok(Greeted::Refused(payload));
    }
    Ok(match Greeting::parse(payload) {
        Ok(greeting) => Greeted::Yes(greeting, server),
        Err(error) => Greeted::Not(Complaint::unreachable(error)),
    })
}

/// Greets the client in the server's name and passes on its answer.
async fn answered(
    mut client: Link,
    mut server: Link,
    mut greeting: Greeting,
    config: &RelayConfig,
    handle: &Handle,
    join: Join<'_>,
) -> Result<Authenticated, HandshakeError> {
    let of_server = greeting.capabilities();
    let offered = greeting::offered(of_server, config.client_tls.is_some());
    greeting.set_capabilities(offered);
    client.write(greeting.payload()).await?;
    let answer = tokio::select! {
        biased;
        answer = client.read_answer() => answer,
        // A drain does not wait for a client that has sent nothing.
        () = handle.ordered(Order::Drain) => {
            Err(refuse(&mut client, Complaint::shutting_down(), false).await)
        }
    };
    let mut answer = answer?;
    if let (true, Some(tls)) = (answer.is_ssl_request(), &config.client_tls) {
        client.stream = match client.stream {
            Stream::Plain(socket) => tls.accept(socket).await?,
            secure => secure,
        };
        answer = client.read_answer().await?;
    }
    if config
        .client_tls
        .as_ref()
        .is_some_and(|tls| tls.is_required)
        && !client.stream.is_secure()
    {
        let message = "Connections using insecure transport are prohibited: this gate wants TLS";
        return Err(refuse(&mut client, Complaint::new(3159, "HY000", message), false).await);
    }
    let capabilities = answer.capabilities() & offered;
    let mut names = answer.names();
    answer.set_capabilities(capabilities & !SSL & !COMPRESS);
    if wants_tls(&config.upstream_tls, client.stream.is_secure(), of_server) {
        server = match secured(server, &answer, config).await {
            Ok(server) => server,
            Err(error) => {
                let complaint =
                    Complaint::unreachable(format!("TLS to {}: {error}", config.upstream));
                return Err(refuse(&mut client, complaint, false).await);
            }
        };
        answer.set_capabilities(answer.capabilities() | SSL);
    }
    server.write(answer.payload()).await?;
    let (status, ahead) = exchange(&mut client, &mut server, || join(&mut names)).await?;
    Ok(Authenticated {
        client: client.stream,
        server: server.stream,
        capabilities,
        status,
        thread_id: greeting.thread_id(),
        names,
        ahead,
    })
}

/// Whether TLS to the server is to begin. [`secured`] reports a server that has none.
fn wants_tls(tls: &UpstreamTls, client_has_tls: bool, of_server: Capabilities) -> bool {
    match tls {
        UpstreamTls::Disable => false,
        UpstreamTls::Follow(_) | UpstreamTls::Prefer(_) => client_has_tls && of_server & SSL != 0,
        UpstreamTls::Require(_) | UpstreamTls::VerifyFull(_) => true,
    }
}

async fn secured(mut server: Link, answer: &Answer, config: &RelayConfig) -> io::Result<Link> {
    let (Some(connector), Stream::Plain(_)) = (config.upstream_tls.connector(true), &server.stream)
    else {
        return Ok(server);
    };
    server.write(answer.ssl_request().payload()).await?;
    if let Stream::Plain(socket) = server.stream {
        server.stream = connector.connect(socket, &config.upstream.host).await?;
    }
    Ok(server)
}

/// Passes messages on in both directions, up to the server's verdict. When the server has authenticated
/// the client, `join` decides whether its tenant has room. Also returns the part of the client's next
/// message that has come.
async fn exchange(
    client: &mut Link,
    server: &mut Link,
    mut join: impl FnMut() -> Result<(), Refusal>,
) -> Result<(Status, Vec<u8>), HandshakeError> {
    let (mut of_client, mut of_server) = (Vec::new(), Vec::new());
    loop {
        tokio::select! {
            read = server.read_into(&mut of_server) => {
                read?;
                let payload = std::mem::take(&mut of_server).split_off(HEADER_BYTES);
                if payload.first() == Some(&OK)
                    && let Err(refusal) = join()
                {
                    let complaint = Complaint::too_many_of_tenant(&refusal);
                    return Err(refuse(client, complaint, false).await);
                }
                client.write(&payload).await?;
                match payload.first() {
                    Some(&OK) => return Ok((status_of_ok(&payload), of_client)),
                    Some(&ERR) => {
                        client.linger().await;
                        return Err(HandshakeError::RefusedByServer);
                    }
                    _ => {}
                }
            }
            read = client.read_into(&mut of_client) => {
                if let Err(error) = read {
                    return Err(client.left_or_refused(error).await);
                }
                let payload = std::mem::take(&mut of_client).split_off(HEADER_BYTES);
                server.write(&payload).await?;
            }
        }
    }
}

/// Sends a client the error and closes its connection.
pub(super) async fn refuse(
    client: &mut Link,
    complaint: Complaint,
    is_first: bool,
) -> HandshakeError {
    let packet = match is_first {
        true => complaint.first_packet(),
        false => complaint.packet(client.sequence),
    };
    // The client may already have left.
    let _ = client.stream.write_all(&packet).await;
    client.linger().await;
    HandshakeError::Refused(complaint)
}

impl Link {
    /// The client's next packet, which must be an answer.
    pub(super) async fn read_answer(&mut self) -> Result<Answer, HandshakeError> {
        let payload = match self.read().await {
            Ok(payload) => payload,
            Err(error) => return Err(self.left_or_refused(error).await),
        };
        match Answer::parse(payload) {
            Ok(answer) => Ok(answer),
            Err(error) => {
                let complaint = Complaint::bad_handshake(&error.to_string());
                Err(refuse(self, complaint, false).await)
            }
        }
    }

    /// Reports invalid bytes to the client. A client whose socket failed has left.
    async fn left_or_refused(&mut self, error: io::Error) -> HandshakeError {
        let no_packet = error.get_ref().and_then(|inner| inner.downcast_ref());
        let complaint = match no_packet {
            None => return error.into(),
            Some(NoPacket::OutOfOrder) => Complaint::out_of_order(),
            Some(no_packet) => Complaint::bad_handshake(&no_packet.to_string()),
        };
        refuse(self, complaint, false).await
    }
}
