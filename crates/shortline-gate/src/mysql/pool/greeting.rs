//! Authenticates a client of the pool. The gate greets it in the server's name. The method is
//! `mysql_native_password` or `caching_sha2_password`, depending on the client and on the stored secret.
//!
//! An unknown user goes through the same exchange as a user with a wrong password. A refused client waits a second
//! for the error, which slows down guessing.

use std::time::Duration;

use super::Pool;
use super::secrets::Stored;
use crate::classify::ClientNames;
use crate::mysql::capability::{
    CONNECT_WITH_DB, Capabilities, OF_OPENING, OF_POOLED, PLUGIN_AUTH, SSL,
};
use crate::mysql::complaint::Complaint;
use crate::mysql::greeting::{Answer, Greeting};
use crate::mysql::handshake::{HandshakeError, refuse};
use crate::mysql::link::Link;
use crate::mysql::login::Secret;
use crate::mysql::scramble::{Method, NONCE_BYTES};
use crate::relay::{Handle, Order, RelayConfig, Socket, Upstream};

const REFUSED_AFTER: Duration = Duration::from_secs(1);
const SWITCH: u8 = 0xfe;
const PROOF_IS_GOOD: &[u8] = &[1, 3];
/// Autocommit, and nothing else.
const STATUS: u16 = 2;

/// The server's properties, from its greeting.
#[derive(Clone, Debug)]
pub struct Server {
    /// The version string.
    pub version: Vec<u8>,
    /// The capabilities that it offers.
    pub capabilities: Capabilities,
    /// The collation that it begins with.
    pub collation: u8,
}

/// A client that has proven who it is.
pub struct Known {
    /// Its connection. The client waits for the verdict.
    pub link: Link,
    /// Its names.
    pub names: ClientNames,
    /// The secret for the gate's login as this user.
    pub secret: Secret,
    /// The capabilities that it agreed on with the gate.
    pub capabilities: Capabilities,
    /// The collation that it begins with.
    pub collation: u8,
}

/// Authenticates a client. If it is refused, it gets the error here.
///
/// # Errors
/// [`HandshakeError`]
pub async fn greet(
    mut link: Link,
    config: &RelayConfig,
    pool: &Pool,
    server: &Server,
    thread_id: u32,
    handle: &Handle,
) -> Result<Known, HandshakeError> {
    let nonce = nonce();
    let mut offered = (OF_POOLED | OF_OPENING) & server.capabilities | OF_OPENING;
    if config.client_tls.is_some() {
        offered |= SSL;
    }
    link.write(&greeting(server, offered, thread_id, &nonce))
        .await?;
    let answered = tokio::select! {
        biased;
        answered = link.read_answer() => answered,
        // A drain does not wait for a client that has sent nothing.
        () = handle.ordered(Order::Drain) => {
            Err(refuse(&mut link, Complaint::shutting_down(), false).await)
        }
    };
    let (mut link, answer) = secured(link, config, answered?).await?;
    let names = answer.names();
    let user = names.user.clone().unwrap_or_default();
    let users = pool.common.users();
    let known = users.get(&user);
    let nobody = Stored::of_nobody(user.as_bytes(), &pool.secret);
    let shown = prove(&mut link, &answer, known.unwrap_or(&nobody), nonce).await?;
    let Some(secret) = shown.filter(|_| known.is_some()) else {
        tokio::time::sleep(REFUSED_AFTER).await;
        let message = format!("Access denied for user '{user}'");
        return Err(refuse(&mut link, Complaint::new(1045, "28000", message), false).await);
    };
    Ok(Known {
        link,
        names,
        secret,
        capabilities: answer.capabilities() & offered,
        collation: answer.collation(),
    })
}

/// The client's answer, over TLS if the client asks for it.
async fn secured(
    mut link: Link,
    config: &RelayConfig,
    mut answer: Answer,
) -> Result<(Link, Answer), HandshakeError> {
    if let (true, Some(tls)) = (answer.is_ssl_request(), &config.client_tls) {
        link = link.accept_tls(tls).await?;
        answer = link.read_answer().await?;
    }
    let is_required = config
        .client_tls
        .as_ref()
        .is_some_and(|tls| tls.is_required);
    if is_required && !link.stream.is_secure() {
        let message = "Connections using insecure transport are prohibited: this gate wants TLS";
        return Err(refuse(&mut link, Complaint::new(3159, "HY000", message), false).await);
    }
    Ok((link, answer))
}

/// Checks the proof in the client's answer. If its method cannot be checked, asks for another proof.
async fn prove(
    link: &mut Link,
    answer: &Answer,
    stored: &Stored,
    mut nonce: [u8; NONCE_BYTES],
) -> Result<Option<Secret>, HandshakeError> {
    let (method, mut proof) = answer.proof();
    let mut method = if answer.capabilities() & PLUGIN_AUTH == 0 {
        Some(Method::Native)
    } else {
        Method::of(&method)
    };
    if !method.is_some_and(|method| stored.knows(method)) {
        nonce = self::nonce();
        let name = Method::Native.name().as_bytes();
        link.write(&[&[SWITCH], name, b"\0", &nonce, b"\0"].concat())
            .await?;
        proof = link.read().await?;
        method = Some(Method::Native);
    }
    let secret = method.and_then(|method| stored.check(method, &proof, &nonce));
    if secret.is_some() && method == Some(Method::CachingSha2) && !proof.is_empty() {
        link.write(PROOF_IS_GOOD).await?;
    }
    Ok(secret)
}

/// A greeting in the server's name.
fn greeting(
    server: &Server,
    offered: Capabilities,
    thread_id: u32,
    nonce: &[u8; NONCE_BYTES],
) -> Vec<u8> {
    let method = match is_mariadb(&server.version) {
        true => Method::Native,
        false => Method::CachingSha2,
    };
    let offered = offered.to_le_bytes();
    let mut payload = vec![10];
    payload.extend_from_slice(&server.version);
    payload.push(0);
    payload.extend(thread_id.to_le_bytes());
    payload.extend_from_slice(&nonce[..8]);
    payload.push(0);
    payload.extend_from_slice(&offered[..2]);
    payload.push(server.collation);
    payload.extend(STATUS.to_le_bytes());
    payload.extend_from_slice(&offered[2..4]);
    payload.push(NONCE_BYTES as u8 + 1);
    payload.extend([0; 10]);
    payload.extend_from_slice(&nonce[8..]);
    payload.push(0);
    payload.extend_from_slice(method.name().as_bytes());
    payload.push(0);
    payload
}

fn is_mariadb(version: &[u8]) -> bool {
    version.windows(7).any(|part| part == b"MariaDB")
}

/// A random nonce of printable characters, so without a zero byte.
fn nonce() -> [u8; NONCE_BYTES] {
    let random: [u8; NONCE_BYTES] = crate::postgres::scram::random();
    random.map(|byte| b'!' + byte % 94)
}

/// Asks the first server that answers what it is.
///
/// # Errors
/// The error for the client.
pub async fn ask_servers(config: &RelayConfig, servers: &[Upstream]) -> Result<Server, Complaint> {
    let mut said = Err(Complaint::unreachable("there is no server"));
    for server in servers {
        said = ask_server(config, server).await;
        if said.is_ok() {
            break;
        }
    }
    said
}

async fn ask_server(config: &RelayConfig, server: &Upstream) -> Result<Server, Complaint> {
    let asking = async {
        let connected = server.connect(config.limits.connect_time_max).await;
        let socket: Socket = connected.map_err(Complaint::unreachable)?;
        let mut link = Link::of_server(socket);
        let payload = link.read().await.map_err(Complaint::unreachable)?;
        let greeting = Greeting::parse(payload).map_err(Complaint::unreachable)?;
        Ok(Server {
            version: greeting.version().to_vec(),
            capabilities: greeting.capabilities(),
            collation: greeting.collation(),
        })
    };
    let asked = tokio::time::timeout(config.limits.connect_time_max, asking).await;
    asked.unwrap_or_else(|_| Err(Complaint::unreachable("it does not greet")))
}

/// The database in which the client's session begins.
pub fn database_of(names: &ClientNames, capabilities: Capabilities) -> Option<String> {
    let database = names
        .database
        .as_deref()
        .filter(|_| capabilities & CONNECT_WITH_DB != 0);
    database.map(str::to_owned)
}
