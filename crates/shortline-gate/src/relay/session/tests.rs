//! The session with a minimal protocol: each byte of the client is a request, and each byte of the
//! backend ends one.

#![allow(clippy::unwrap_used)]

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;
use crate::relay::Socket;
use crate::{Gate, GateConfig};

/// The most bytes that a socket takes without a reader.
const SOCKET_BYTES: usize = 4;

#[derive(Debug, Default)]
struct Bytes {
    owed: usize,
}

#[derive(Debug, thiserror::Error)]
#[error("no such request")]
struct NoRequest;

impl Protocol for Bytes {
    type Complaint = NoRequest;

    fn take_from_server(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &[u8],
    ) -> Result<(), NoRequest> {
        self.owed -= bytes.len().min(self.owed);
        exchange.to_client(bytes);
        if self.owed == 0 {
            exchange.work.finish();
        }
        Ok(())
    }

    fn take_from_client(
        &mut self,
        exchange: &mut Exchange<'_, '_>,
        bytes: &mut [u8],
    ) -> Result<usize, NoRequest> {
        if bytes.first() == Some(&b'!') {
            return Err(NoRequest);
        }
        if exchange.work.is_none() && !bytes.is_empty() {
            exchange.work.ask(exchange.context, &"byte".into()).unwrap();
        }
        if !exchange.work.is_running() {
            return Ok(0);
        }
        self.owed += bytes.len();
        exchange.to_server(bytes);
        Ok(bytes.len())
    }

    fn decided(&mut self, _: &mut Exchange<'_, '_>, _: Result<Duration, Denied>) {}

    fn held_bytes_max(&self) -> usize {
        SOCKET_BYTES
    }

    fn goes_through(&self, work: &Work) -> bool {
        work.is_running()
    }

    fn is_idle(&self, _: &Work) -> bool {
        self.owed == 0
    }

    fn is_owed(&self) -> bool {
        self.owed > 0
    }

    fn is_paused(&self, client: &Side, _: &Side) -> bool {
        self.owed == 0 || !client.has_taken_all()
    }

    fn is_idle_in_transaction(&self, work: &Work) -> bool {
        work.is_running() && self.owed == 0
    }

    fn was_told(&self) -> bool {
        false
    }

    fn last_words(&mut self, end: &End<NoRequest>) -> Option<Vec<u8>> {
        match end {
            End::ClientLeft | End::Departed => None,
            End::ServerLeft { .. } => Some(b"left".to_vec()),
            End::Refused(_) => Some(b"refused".to_vec()),
            End::IdleInTransaction => Some(b"idle".to_vec()),
            End::Stopped => Some(b"stopped".to_vec()),
        }
    }
}

/// A session, and its two ends.
struct Tried {
    gate: Gate,
    registry: Arc<Registry>,
    client: DuplexStream,
    server: DuplexStream,
    ended: tokio::task::JoinHandle<()>,
}

fn session() -> Tried {
    let gate = Gate::new(GateConfig::default());
    let registry = Arc::new(Registry::default());
    let ((client, near), (server, far)) = (duplex(SOCKET_BYTES), duplex(SOCKET_BYTES));
    let stream = |end: DuplexStream| Stream::Plain(Socket::Simulated(Box::new(end), None));
    let registration = registry.register(1);
    let work = Work::new(&gate, registration.handle.member(), None);
    let mut session = Session::new(
        Bytes::default(),
        registration.handle.member(),
        work,
        stream(near),
        Side::new(stream(far)),
        Vec::new(),
    );
    let of_session = Arc::clone(&registry);
    let ended = tokio::spawn(async move {
        let end = session.relay(Vec::new()).await;
        session.close(end, &of_session).await;
        drop(registration);
    });
    Tried {
        gate,
        registry,
        client,
        server,
        ended,
    }
}

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn read(socket: &mut DuplexStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    socket.read_exact(&mut bytes).await.unwrap();
    bytes
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_gate_waits_for_a_client_that_takes_slowly() {
    let mut tried = session();
    tried.client.write_all(b"abcdefgh").await.unwrap();
    assert_eq!(read(&mut tried.server, 8).await, b"abcdefgh");
    tried.server.write_all(b"ABCDEFGH").await.unwrap();
    // The session has all of the answer, and the client's socket is full of it.
    until(|| tried.gate.snapshot().running == 0).await;
    tried.registry.give_all(Order::Drain);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut got = Vec::new();
    tried.client.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"ABCDEFGHstopped");
    tried.ended.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_client_leaves_behind_counts_until_the_backend_has_noticed() {
    let mut tried = session();
    tried.client.write_all(b"a").await.unwrap();
    assert_eq!(read(&mut tried.server, 1).await, b"a");
    drop(tried.client);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(tried.gate.snapshot().running, 1);
    assert_eq!(tried.server.read(&mut [0]).await.unwrap(), 0);
    drop(tried.server);
    tried.ended.await.unwrap();
    assert_eq!(tried.gate.snapshot().running, 0);
}

#[tokio::test(start_paused = true)]
async fn who_breaks_the_protocol_is_told_after_what_it_has_not_taken() {
    let mut tried = session();
    tried.client.write_all(b"abcdef").await.unwrap();
    assert_eq!(read(&mut tried.server, 6).await, b"abcdef");
    tried.server.write_all(b"ABCDEF").await.unwrap();
    tried.client.write_all(b"!").await.unwrap();
    let mut got = Vec::new();
    tried.client.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"ABCDEFrefused");
    assert_eq!(tried.server.read(&mut [0]).await.unwrap(), 0);
    drop(tried.client);
    tried.ended.await.unwrap();
    assert_eq!(tried.registry.counts().failed_total, 1);
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_leaves_is_an_end_of_which_the_client_is_told() {
    let mut tried = session();
    tried.client.write_all(b"a").await.unwrap();
    assert_eq!(read(&mut tried.server, 1).await, b"a");
    drop(tried.server);
    let mut got = Vec::new();
    tried.client.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"left");
    drop(tried.client);
    tried.ended.await.unwrap();
    assert_eq!(tried.registry.counts().failed_total, 1);
}
