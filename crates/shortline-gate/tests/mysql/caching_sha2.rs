//! `caching_sha2_password`, which MariaDB 10.11 does not have: a server's side of it written by hand
//! after MySQL's source documentation ("Caching_sha2_password information"), with what it sends and
//! expects as bytes. What is tested is that the gate passes each packet, in order, as it is.

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use crate::gated::{Gated, narrow};
use crate::raw::{MYSQL, PLAIN, Raw, answer, packet};

/// A server's greeting.
pub const GREETING: &[u8] =
    b"\x0a8.0.36\0\x08\0\0\0abcdefgh\0\xff\xff\xff\x02\0\xff\xdf\x15\0\0\0\0\0\0\0\0\0\0\
    ijklmnopqrst\0caching_sha2_password\0";
/// A server's OK packet.
pub const OK: &[u8] = b"\0\0\0\x02\0\0\0";
const FAST_DONE: &[u8] = b"\x01\x03";
const FULL: &[u8] = b"\x01\x04";
const ASKS_KEY: &[u8] = b"\x02";
const KEY: &[u8] =
    b"\x01-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----\n";
const SWITCH: &[u8] = b"\xfecaching_sha2_password\0ABCDEFGHIJKLMNOPQRST\0";

/// One packet and who sends it.
#[derive(Clone, Copy)]
enum Says {
    Server(&'static [u8]),
    Client(&'static [u8]),
}
use Says::{Client, Server};

/// Plays the server's part.
async fn serve(socket: TcpStream, script: Vec<Says>) {
    let mut server = Raw { socket };
    server.write(0, GREETING).await;
    let (number, _) = server.read().await;
    assert_eq!(number, 1);
    for (next, says) in (number + 1..).zip(script) {
        match says {
            Server(payload) => server.write(next, payload).await,
            Client(payload) => assert_eq!(server.read().await, (next, payload.to_vec())),
        }
    }
    // A command, to see that the session has begun.
    assert_eq!(server.read().await, (0, b"\x0e".to_vec()));
    server.write(1, OK).await;
    server.socket.shutdown().await.unwrap();
}

async fn plays(script: Vec<Says>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gated = Gated::new(listener.local_addr().unwrap(), narrow()).await;
    let servers = script.clone();
    let server = tokio::spawn(async move {
        serve(listener.accept().await.unwrap().0, servers).await;
    });
    let mut client = Raw {
        socket: TcpStream::connect(gated.address).await.unwrap(),
    };
    let (_, greeting) = client.read().await;
    assert!(greeting.ends_with(b"caching_sha2_password\0"));
    client
        .socket
        .write_all(&packet(1, &answer(PLAIN | MYSQL)))
        .await
        .unwrap();
    for (number, says) in script.into_iter().enumerate() {
        let number = number as u8 + 2;
        match says {
            Server(payload) => assert_eq!(client.read().await, (number, payload.to_vec())),
            Client(payload) => client.write(number, payload).await,
        }
    }
    client.write(0, b"\x0e").await;
    assert_eq!(client.read().await, (1, OK.to_vec()));
    server.await.unwrap();
    assert!(client.is_closed().await);
    assert!(gated.end().await);
}

#[tokio::test]
async fn fast_authentication_passes() {
    plays(vec![Server(FAST_DONE), Server(OK)]).await;
}

#[tokio::test]
async fn full_authentication_under_the_servers_key_passes() {
    plays(vec![
        Server(FULL),
        Client(ASKS_KEY),
        Server(KEY),
        Client(&[0x5a; 256]),
        Server(OK),
    ])
    .await;
}

#[tokio::test]
async fn a_switch_of_the_method_passes() {
    plays(vec![
        Server(SWITCH),
        Client(&[7; 32]),
        Server(FAST_DONE),
        Server(OK),
    ])
    .await;
}
