//! A login of the gate's own: at a real MariaDB, and by `caching_sha2_password`, which that does not have, at a
//! server's side of it written by hand.

use std::net::SocketAddr;
use std::time::Duration;

use shortline_gate::mysql::ask::{AskError, ask};
use shortline_gate::mysql::login::{Account, LoginError, Ready, Secret, Way, Wishes, open};
use shortline_gate::mysql::scramble::Method;
use shortline_gate::relay::tls::{ClientTls, UpstreamTls};
use shortline_gate::relay::{Socket, Stream, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::caching_sha2::{GREETING, OK};
use crate::raw::packet;
use crate::server::shared;

async fn log_in(
    address: SocketAddr,
    user: &str,
    password: &str,
    tls: &UpstreamTls,
) -> Result<Ready, LoginError> {
    let upstream: Upstream = address.to_string().parse().unwrap();
    let way = Way {
        upstream: &upstream,
        tls,
        time_max: Duration::from_secs(10),
    };
    let account = Account {
        user: user.to_owned(),
        secret: Secret::Password(password.to_owned()),
        database: Some("shop".to_owned()),
    };
    open(way, &account, Wishes::default()).await
}

async fn one(ready: Ready, statement: &str) -> Result<String, AskError> {
    let (_, rows) = ask(ready.stream, ready.capabilities, statement).await?;
    let values = rows
        .into_iter()
        .flatten()
        .map(|value| value.map_or("NULL".to_owned(), |text| String::from_utf8(text).unwrap()));
    Ok(values.collect::<Vec<_>>().join(","))
}

#[tokio::test]
async fn a_real_server_takes_the_login_and_answers() {
    let Some(server) = shared() else { return };
    for tls in [UpstreamTls::Disable, UpstreamTls::require().unwrap()] {
        let ready = log_in(server.address, "native", "secret", &tls)
            .await
            .unwrap();
        let said = one(
            ready,
            "SELECT CURRENT_USER(), DATABASE(), NULL UNION SELECT 1, '', 2",
        )
        .await
        .unwrap();
        assert_eq!(said, "native@%,shop,NULL,1,,2");
    }
    let ready = log_in(server.address, "root", "", &UpstreamTls::Disable)
        .await
        .unwrap();
    assert_eq!(one(ready, "DO 1").await.unwrap(), "");
    let ready = log_in(server.address, "root", "", &UpstreamTls::Disable)
        .await
        .unwrap();
    let refused = one(ready, "SELECT nothing").await.unwrap_err();
    assert!(
        matches!(refused, AskError::Refused { code: 1054, .. }),
        "{refused}"
    );
}

#[tokio::test]
async fn who_is_refused_is_told_why() {
    let Some(server) = shared() else { return };
    for (user, password, tls, told) in [
        (
            "native",
            "wrong",
            UpstreamTls::Disable,
            "the backend refuses native: Access denied",
        ),
        (
            "nobody",
            "secret",
            UpstreamTls::require().unwrap(),
            "the backend refuses nobody: Access denied",
        ),
        (
            "ed",
            "secret",
            UpstreamTls::Disable,
            "the backend asks ed for client_ed25519",
        ),
        (
            "tls",
            "secret",
            UpstreamTls::Disable,
            "the backend refuses tls: Access denied",
        ),
    ] {
        let error = log_in(server.address, user, password, &tls)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(told), "{error}");
    }
}

/// What a server by hand does with an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wants {
    Proof,
    /// The proof by another nonce, then the password.
    Password,
}

async fn read(stream: &mut Stream) -> Vec<u8> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).await.unwrap();
    let [a, b, c, _] = header;
    let mut payload = vec![0; u32::from_le_bytes([a, b, c, 0]) as usize];
    stream.read_exact(&mut payload).await.unwrap();
    payload
}

async fn say(stream: &mut Stream, sequence: u8, payload: &[u8]) {
    stream.write_all(&packet(sequence, payload)).await.unwrap();
    stream.flush().await.unwrap();
}

async fn serve(socket: TcpStream, tls: Option<ClientTls>, wants: Wants) {
    let mut stream = Stream::Plain(Socket::from(socket));
    let mut next = 2;
    let offered = if tls.is_some() {
        GREETING.to_vec()
    } else {
        without_tls(GREETING)
    };
    say(&mut stream, 0, &offered).await;
    if let Some(tls) = tls {
        assert_eq!(read(&mut stream).await.len(), 32);
        if let Stream::Plain(socket) = stream {
            stream = tls.accept(socket).await.unwrap();
        }
        next += 1;
    }
    let answer = read(&mut stream).await;
    let proof = Method::CachingSha2.proof(b"secret", b"abcdefghijklmnopqrst");
    let expected = [
        b"app\0\x20".as_slice(),
        &proof,
        b"shop\0caching_sha2_password\0",
    ]
    .concat();
    assert_eq!(answer[32..], expected);
    if wants == Wants::Password {
        say(
            &mut stream,
            next,
            b"\xfecaching_sha2_password\0ABCDEFGHIJKLMNOPQRST\0",
        )
        .await;
        assert_eq!(
            read(&mut stream).await,
            Method::CachingSha2.proof(b"secret", b"ABCDEFGHIJKLMNOPQRST")
        );
        say(&mut stream, next + 2, b"\x01\x04").await;
        let mut rest = Vec::new();
        if !stream.is_secure() {
            assert_eq!(
                stream.read_to_end(&mut rest).await.unwrap(),
                0,
                "the password is not sent in the clear"
            );
            return;
        }
        assert_eq!(read(&mut stream).await, b"secret\0");
        next += 4;
    } else {
        say(&mut stream, next, b"\x01\x03").await;
        next += 1;
    }
    say(&mut stream, next, OK).await;
}

/// The same greeting, with CLIENT_SSL not offered.
fn without_tls(greeting: &[u8]) -> Vec<u8> {
    let mut greeting = greeting.to_vec();
    let at = greeting.iter().skip(1).position(|byte| *byte == 0).unwrap() + 2 + 4 + 9;
    greeting[at + 1] &= !0x08;
    greeting
}

async fn by_hand(tls: Option<ClientTls>, wants: Wants) -> Result<Ready, LoginError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving =
        tokio::spawn(async move { serve(listener.accept().await.unwrap().0, tls, wants).await });
    let opened = log_in(address, "app", "secret", &UpstreamTls::prefer().unwrap()).await;
    serving.await.unwrap();
    opened
}

#[tokio::test]
async fn a_proof_is_enough_for_caching_sha2() {
    by_hand(None, Wants::Proof).await.unwrap();
}

#[tokio::test]
async fn a_password_goes_over_tls_only() {
    let error = by_hand(None, Wants::Password)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("which the gate sends over TLS only: give --upstream-tls require"),
        "{error}"
    );
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("cert"), folder.path().join("key"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = ClientTls::new(shortline_tls::load(&cert, &key).unwrap(), &[], true).unwrap();
    by_hand(Some(tls), Wants::Password).await.unwrap();
}
