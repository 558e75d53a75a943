//! Authentication and TLS.

use shortline_gate::relay::tls::{ClientTls, UpstreamTls};

use crate::gated::{Gated, narrow};
use crate::raw::{self, MYSQL, PLAIN, Raw};
use crate::server::{client, shared};

/// What the program prints, or its error.
async fn run(
    gated: &Gated,
    user: &str,
    options: &[&str],
    statement: &str,
) -> Result<String, String> {
    let options = [options, &["-N", "-e", statement]].concat();
    let mut program = client(gated.address, user, &options);
    let output = tokio::task::spawn_blocking(move || program.output().unwrap())
        .await
        .unwrap();
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

const CIPHER: &str = "SHOW STATUS LIKE 'Ssl_cipher'";

#[tokio::test]
async fn authentication_passes_untouched() {
    let Some(server) = shared() else { return };
    let gated = Gated::new(server.address, narrow()).await;
    for user in ["native", "ed"] {
        let name = run(&gated, user, &["--skip-ssl"], "SELECT USER()")
            .await
            .unwrap();
        assert!(name.starts_with(user), "{name}");
    }
    let unknown = run(&gated, "nobody", &[], "SELECT 1").await.unwrap_err();
    assert!(
        unknown.contains("ERROR 1045 (28000): Access denied for user 'nobody'"),
        "{unknown}"
    );
    gated.until_empty().await;
}

#[tokio::test]
async fn tls_is_on_either_side_as_configured() {
    let Some(server) = shared() else { return };
    let tls = || {
        ClientTls::new(
            shortline_tls::load(&server.cert, &server.key).unwrap(),
            &[],
            false,
        )
        .unwrap()
    };
    let authority = format!("--ssl-ca={}", server.authority.display());
    let verified = ["--ssl", authority.as_str(), "--ssl-verify-server-cert"];
    // None: a client that insists on it is told that there is none.
    let gated = Gated::new(server.address, narrow()).await;
    let none = run(&gated, "native", &verified, CIPHER).await.unwrap_err();
    assert!(none.contains("SSL"), "{none}");
    assert_eq!(
        run(&gated, "native", &["--skip-ssl"], CIPHER)
            .await
            .unwrap(),
        "Ssl_cipher\t\n"
    );
    // To the client only.
    let gated = Gated::with(server.address, narrow(), |config| {
        config.client_tls = Some(tls())
    })
    .await;
    for options in [&verified[..], &["--skip-ssl"], &["--ssl", "--compress"]] {
        let cipher = run(&gated, "ed", options, CIPHER).await;
        assert_eq!(cipher.as_deref(), Ok("Ssl_cipher\t\n"), "{options:?}");
    }
    // To the server only, and checked.
    let gated = Gated::with(server.address, narrow(), |config| {
        config.upstream_tls = UpstreamTls::verify_full(&server.authority).unwrap();
    })
    .await;
    let cipher = run(&gated, "ed", &["--skip-ssl"], CIPHER).await.unwrap();
    assert!(cipher.starts_with("Ssl_cipher\tTLS_"), "{cipher}");
    // To the server as to the client.
    let gated = Gated::with(server.address, narrow(), |config| {
        config.client_tls = Some(tls());
        config.upstream_tls = UpstreamTls::prefer().unwrap();
    })
    .await;
    let cipher = run(&gated, "native", &verified, CIPHER).await.unwrap();
    assert!(cipher.starts_with("Ssl_cipher\tTLS_"), "{cipher}");
    assert_eq!(
        run(&gated, "native", &["--skip-ssl"], CIPHER)
            .await
            .unwrap(),
        "Ssl_cipher\t\n"
    );
}

#[tokio::test]
async fn a_client_without_tls_does_not_get_where_the_server_wants_tls() {
    let Some(server) = shared() else { return };
    let gated = Gated::with(server.address, narrow(), |config| {
        config.client_tls = Some(
            ClientTls::new(
                shortline_tls::load(&server.cert, &server.key).unwrap(),
                &[],
                false,
            )
            .unwrap(),
        );
        config.upstream_tls = UpstreamTls::follow().unwrap();
    })
    .await;
    let refused = run(&gated, "tls", &["--skip-ssl"], CIPHER).await;
    assert!(refused.unwrap_err().contains("ERROR 1045 (28000)"));
    let cipher = run(&gated, "tls", &["--ssl"], CIPHER).await.unwrap();
    assert!(cipher.starts_with("Ssl_cipher\tTLS_"), "{cipher}");
}

#[tokio::test]
async fn tls_that_must_be_and_is_not_is_told() {
    let Some(server) = shared() else { return };
    let gated = Gated::with(server.address, narrow(), |config| {
        config.client_tls = Some(
            ClientTls::new(
                shortline_tls::load(&server.cert, &server.key).unwrap(),
                &[],
                true,
            )
            .unwrap(),
        );
    })
    .await;
    let refused = run(&gated, "native", &["--skip-ssl"], CIPHER)
        .await
        .unwrap_err();
    assert!(refused.contains("ERROR 3159 (HY000)"), "{refused}");
    assert!(run(&gated, "native", &["--ssl"], "SELECT 1").await.is_ok());
    // An authority that did not vouch for the server's certificate.
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.pem");
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(&other, made.cert.pem()).unwrap();
    let gated = Gated::with(server.address, narrow(), |config| {
        config.upstream_tls = UpstreamTls::verify_full(&other).unwrap();
    })
    .await;
    let refused = run(&gated, "native", &["--skip-ssl"], CIPHER)
        .await
        .unwrap_err();
    assert!(refused.contains("ERROR 1429 (HY000)"), "{refused}");
}

/// What the gate cannot read must not be agreed on.
#[tokio::test]
async fn only_known_capabilities_are_offered() {
    let Some(server) = shared() else { return };
    let gated = Gated::new(server.address, narrow()).await;
    let mut client = Raw {
        socket: tokio::net::TcpStream::connect(gated.address).await.unwrap(),
    };
    let (_, greeting) = client.read().await;
    let at = 1 + greeting[1..].iter().position(|byte| *byte == 0).unwrap() + 1 + 4 + 9;
    let lower = u16::from_le_bytes([greeting[at], greeting[at + 1]]);
    let upper = u16::from_le_bytes([greeting[at + 5], greeting[at + 6]]);
    // TLS, optional metadata, zstd.
    assert_eq!(
        (lower & 1 << 11, upper & 1 << 9, upper & 1 << 10),
        (0, 0, 0)
    );
    // Compression and the end of EOF packets.
    assert_ne!((lower & 1 << 5, upper & 1 << 8), (0, 0));
    client.write(1, &raw::answer(PLAIN | MYSQL)).await;
    assert_eq!(client.read().await.1[0], 0);
}
