//! An HTTP/3 client on the crates h3, h3-quinn and quinn. It makes all its requests at once, each in its own stream.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::{Buf, Bytes};
use h3::client::{Connection, RequestStream, SendRequest};
use h3::error::{Code, StreamError};
use http::Request;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, TransportConfig, VarInt};
use shortline_tls::{Trust, client_config};
use tokio::sync::Notify;

use super::body::{Body, HeadFields};
use super::{all_at_once, fields, method, sound, upload, whose};
use crate::arena::{Arena, SERVER_PORT, udp_address};
use crate::network::UdpSocket;
use crate::requests::Requests;
use crate::scenario::{Ask, ClientPlan, Manner};
use crate::verdict::Outcome;

/// What a client sends that is not HTTP/3, on a request's stream and on one of its own (RFC 9114, 7 and 6.2).
const BABBLE: [(&[u8], bool); 7] = [
    // A head that is cut short.
    (b"\x01\x40\xffabc", true),
    // One that is none.
    (b"\x01\x05\xff\xff\xff\xff\xff", true),
    // Data before a head.
    (b"\x00\x01a", true),
    // A frame of an unknown kind that goes on for ever, and one that only says so.
    (b"\x21\xc0\x00\x00\x00\xff\xff\xff\xffabcdef", true),
    (b"\x01\xc0\x00\x00\x00\xff\xff\xff\xff", true),
    // Settings twice, and a control stream that ends.
    (b"\x00\x04\x00\x04\x00", false),
    (b"\x00", false),
];
/// Datagrams that are not QUIC, or look so.
const STRAY: [&[u8]; 3] = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"\xc0\x00\x00\x00\x01\x14\xff",
    &[0x40; 1200],
];

/// When a client gives up a server that says nothing, as all that it said may have been lost. The server waits for nothing as long.
const SILENCE_MS_MAX: u32 = 350_000;

/// Makes all planned requests.
pub async fn ask(arena: &Arc<Arena>, index: usize, plan: &ClientPlan) {
    let own = udp_address(index, plan);
    let (endpoint, socket) = arena.datagrams.endpoint(own, Some(plan.path));
    if plan.manner == Manner::Babbles {
        STRAY.iter().for_each(|stray| socket.send(stray));
    }
    let connecting = endpoint.connect_with(how(plan), SERVER_PORT, "localhost");
    let Ok(connecting) = connecting else {
        return;
    };
    let Ok(quic) = connecting.await else {
        return;
    };
    if plan.manner == Manner::Babbles {
        babble(&quic, index).await;
        return;
    }
    let mut builder = h3::client::builder();
    builder.send_grease(false);
    let building = builder.build::<_, _, Bytes>(h3_quinn::Connection::new(quic.clone()));
    let Ok((connection, sender)) = building.await else {
        return;
    };
    let client = Http3 {
        requests: &arena.requests,
        index,
        plan,
        quic,
        socket,
        taken: AtomicU64::new(0),
        left: AtomicBool::new(false),
        goodbye: Arc::default(),
    };
    let driver = tokio::spawn(drive(connection, Arc::clone(&client.goodbye)));
    let asks = plan.asks.iter().map(|ask| client.ask(ask, sender.clone()));
    all_at_once(asks).await;
    drop(sender);
    client.quic.close(VarInt::from_u32(0x100), b"");
    driver.abort();
}

fn how(plan: &ClientPlan) -> ClientConfig {
    let tls = client_config(&Trust::Anyone, &[b"h3"]).expect("trust in anyone needs nothing");
    let crypto = QuicClientConfig::try_from(tls).expect("it has what QUIC needs");
    let mut config = ClientConfig::new(Arc::new(crypto));
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(plan.stream_window_bytes.into())
        .receive_window(plan.path.window_bytes.max(plan.stream_window_bytes).into())
        .max_idle_timeout(Some(VarInt::from_u32(SILENCE_MS_MAX).into()));
    config.transport_config(Arc::new(transport));
    config
}

/// Drives a connection, and says goodbye on it once that is asked for.
async fn drive(mut connection: Connection<h3_quinn::Connection, Bytes>, goodbye: Arc<Notify>) {
    let asked = goodbye.notified();
    tokio::select! {
        biased;
        // Each stream gets the error.
        _ = poll_fn(|context| connection.poll_close(context)) => return,
        () = asked => {}
    }
    // The connection may have ended.
    let _ = connection.shutdown(0).await;
    let _ = poll_fn(|context| connection.poll_close(context)).await;
}

/// Sends what is not HTTP/3, and waits for the end of the connection.
async fn babble(quic: &quinn::Connection, index: usize) {
    let (bytes, is_request) = BABBLE[index % BABBLE.len()];
    let stream = match is_request {
        true => quic.open_bi().await.map(|(send, _)| send),
        false => quic.open_uni().await,
    };
    if let Ok(mut stream) = stream {
        // The server may have closed already.
        let _ = stream.write_all(bytes).await;
        let _ = stream.finish();
    }
    quic.closed().await;
}

struct Http3<'a> {
    requests: &'a Requests,
    index: usize,
    plan: &'a ClientPlan,
    quic: quinn::Connection,
    socket: Arc<UdpSocket>,
    /// Bytes of bodies so far.
    taken: AtomicU64,
    /// The client has ended the connection.
    left: AtomicBool,
    goodbye: Arc<Notify>,
}

type Sender = SendRequest<h3_quinn::OpenStreams, Bytes>;
type Stream = RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

impl Http3<'_> {
    async fn ask(&self, ask: &Ask, sender: Sender) {
        self.requests.world.sleep(ask.think_ns).await;
        self.requests.asks(self.index, ask);
        let outcome = self.exchange(ask, sender).await;
        let outcome = outcome.unwrap_or_else(|error| match self.left.load(Ordering::Relaxed) {
            true => Outcome::GivenUp,
            false => Outcome::Broken(error.to_string()),
        });
        self.requests.ended(self.index, ask, outcome);
    }

    async fn exchange(&self, ask: &Ask, mut sender: Sender) -> Result<Outcome, StreamError> {
        let version = self.requests.version();
        let target = format!("https://{}{}", ask.host.name(), ask.what.target(ask.number));
        let mut request = Request::builder().method(method(ask)).uri(target);
        for (name, value) in fields(self.index, ask) {
            request = request.header(name, value);
        }
        let Ok(request) = request.body(()) else {
            return Ok(Outcome::Broken("no request".to_owned()));
        };
        let mut stream = sender.send_request(request).await?;
        let uploaded = upload(ask);
        if !uploaded.is_empty() {
            // A server may answer without wanting it.
            let _ = stream.send_data(uploaded.into()).await;
        }
        let _ = stream.finish().await;
        let response = stream.recv_response().await?;
        let told = HeadFields::of(response.status(), response.headers());
        let status = told.status;
        self.requests.headed(ask, status);
        let whose = whose(self.index, ask);
        let body = Body::of(ask, self.index as u64, version, &told);
        let Some(mut body) = sound(self.requests, &whose, body) else {
            return Ok(Outcome::GivenUp);
        };
        let mut taken = 0;
        while let Some(data) = self.next(&mut stream, taken).await? {
            taken += data.len() as u64;
            if sound(self.requests, &whose, body.take(&data)).is_none() {
                return Ok(Outcome::GivenUp);
            }
            if matches!(self.plan.manner, Manner::Resets(after) if taken >= after) {
                // Dropping it tells the server to stop, too. h3-quinn 0.0.10 panics if it is told to while it reads.
                stream.stop_stream(Code::H3_REQUEST_CANCELLED);
                return Ok(Outcome::GivenUp);
            }
        }
        Ok(match sound(self.requests, &whose, body.finish()) {
            None => Outcome::GivenUp,
            Some(0) => Outcome::Whole(status),
            Some(missing) => Outcome::Broken(format!("{missing} bytes less")),
        })
    }

    /// The next bytes of a response of which so many were taken, in the manner of the client.
    async fn next(&self, stream: &mut Stream, taken: u64) -> Result<Option<Bytes>, StreamError> {
        match self.plan.manner {
            Manner::Stalls(after) if taken >= after => return std::future::pending().await,
            Manner::Slow { pause_ns, .. } if taken > 0 => {
                self.requests.world.sleep(pause_ns).await;
            }
            _ => {}
        }
        let data = stream.recv_data().await?;
        let data = data.map(|mut data| data.copy_to_bytes(data.remaining()));
        let bytes = data.as_ref().map_or(0, Bytes::len) as u64;
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        let is_due = |after: u64| before <= after && before + bytes > after;
        match self.plan.manner {
            Manner::Leaves(after) if is_due(after) => {
                self.left.store(true, Ordering::Relaxed);
                self.quic.close(VarInt::from_u32(0x100), b"");
            }
            Manner::Vanishes(after) if is_due(after) => self.socket.vanish(),
            Manner::HalfCloses(after) if is_due(after) => self.goodbye.notify_one(),
            _ => {}
        }
        Ok(data)
    }
}
