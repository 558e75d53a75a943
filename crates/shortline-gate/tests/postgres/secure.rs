//! Every way to authenticate, with TLS on neither, either or both sides, by libpq.

use std::path::PathBuf;

use shortline_gate::GateConfig;
use shortline_gate::postgres::ALPN;
use shortline_gate::relay::tls::{ClientTls, UpstreamTls};
use tempfile::TempDir;

use super::cluster::Cluster;
use super::relay::Relay;

/// Says who and over what the backend is spoken to.
const WHO: &str = "select current_user, ssl from pg_stat_ssl where pid = pg_backend_pid()";

struct Pair {
    _folder: TempDir,
    cert: PathBuf,
    key: PathBuf,
}

/// A certificate of the gate's own.
fn pair() -> Pair {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (
        folder.path().join("gate.crt"),
        folder.path().join("gate.key"),
    );
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    Pair {
        _folder: folder,
        cert,
        key,
    }
}

fn relay(cluster: &Cluster, upstream: UpstreamTls, client: Option<ClientTls>) -> Relay {
    Relay::start(cluster.port, GateConfig::default(), |config| {
        config.relay.upstream_tls = upstream;
        config.relay.client_tls = client;
    })
}

/// What psql prints, or says is wrong.
fn who(
    cluster: &Cluster,
    relay: &Relay,
    user: &str,
    sslmode: &str,
    binding: &str,
) -> Result<String, String> {
    let environment = [
        ("PGUSER", user),
        ("PGPASSWORD", "secret"),
        ("PGSSLMODE", sslmode),
        ("PGCHANNELBINDING", binding),
    ];
    let output = cluster.psql(relay.port, &environment, &["-c", WHO]);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}

#[test]
fn without_tls_every_password_passes() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let relay = relay(cluster, UpstreamTls::Disable, None);
    for user in ["postgres", "scram", "md5"] {
        let found = who(cluster, &relay, user, "prefer", "prefer");
        assert_eq!(found, Ok(format!("{user}|f")));
    }
    let refused = who(cluster, &relay, "postgres", "require", "prefer").unwrap_err();
    assert!(refused.contains("server does not support SSL"), "{refused}");
    let environment = [("PGUSER", "scram"), ("PGPASSWORD", "wrong")];
    let output = cluster.psql(relay.port, &environment, &["-c", WHO]);
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("password authentication failed"),
        "{output:?}"
    );
}

#[test]
fn with_tls_to_the_client_alone_every_password_passes() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let pair = pair();
    let tls = ClientTls::new(
        shortline_tls::load(&pair.cert, &pair.key).unwrap(),
        &[ALPN],
        true,
    )
    .unwrap();
    let relay = relay(cluster, UpstreamTls::Disable, Some(tls));
    for user in ["postgres", "scram", "md5"] {
        assert_eq!(
            who(cluster, &relay, user, "require", "prefer"),
            Ok(format!("{user}|f"))
        );
    }
    let refused = who(cluster, &relay, "postgres", "disable", "prefer").unwrap_err();
    assert!(refused.contains("TLS only"), "{refused}");
}

#[test]
fn with_tls_to_the_backend_alone_every_password_passes() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let (authority, _) = cluster.certificate();
    let modes = [
        UpstreamTls::prefer().unwrap(),
        UpstreamTls::require().unwrap(),
        UpstreamTls::verify_full(&authority).unwrap(),
    ];
    for mode in modes {
        let relay = relay(cluster, mode, None);
        for user in ["postgres", "scram", "md5"] {
            assert_eq!(
                who(cluster, &relay, user, "disable", "prefer"),
                Ok(format!("{user}|t"))
            );
        }
    }
    let other = pair();
    let relay = relay(
        cluster,
        UpstreamTls::verify_full(&other.cert).unwrap(),
        None,
    );
    let refused = who(cluster, &relay, "postgres", "disable", "prefer").unwrap_err();
    assert!(refused.contains("TLS with the backend"), "{refused}");
}

#[test]
fn a_client_without_tls_does_not_get_where_the_backend_wants_tls() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let pair = pair();
    let tls = ClientTls::new(
        shortline_tls::load(&pair.cert, &pair.key).unwrap(),
        &[ALPN],
        false,
    )
    .unwrap();
    for tls in [None, Some(tls)] {
        let is_offered = tls.is_some();
        let relay = relay(cluster, UpstreamTls::follow().unwrap(), tls);
        let refused = who(cluster, &relay, "tls", "disable", "prefer").unwrap_err();
        assert!(refused.contains("no encryption"), "{refused}");
        assert_eq!(
            who(cluster, &relay, "md5", "disable", "prefer"),
            Ok("md5|f".to_owned())
        );
        let with_tls = who(cluster, &relay, "tls", "require", "prefer");
        match is_offered {
            true => assert_eq!(with_tls, Ok("tls|t".to_owned())),
            false => assert!(with_tls.unwrap_err().contains("does not support SSL")),
        }
    }
}

#[test]
fn a_common_name_alone_is_refused_with_the_reason() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let key = rcgen::KeyPair::generate().unwrap();
    let mut made = rcgen::CertificateParams::default();
    made.distinguished_name
        .push(rcgen::DnType::CommonName, "localhost");
    let made = made.self_signed(&key).unwrap();
    cluster.tell("stop");
    cluster.show(&made.pem(), &key.serialize_pem());
    cluster.tell("start");
    let (authority, _) = cluster.certificate();
    let relay = relay(
        &cluster,
        UpstreamTls::verify_full(&authority).unwrap(),
        None,
    );
    let refused = who(&cluster, &relay, "postgres", "disable", "prefer").unwrap_err();
    assert!(
        refused.contains("its certificate has no subjectAltName: a common name (CN) alone"),
        "{refused}"
    );
    assert!(
        refused.contains("subjectAltName=DNS:localhost"),
        "{refused}"
    );
}

#[test]
fn with_tls_on_both_sides_scram_needs_one_certificate_or_no_binding() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let pair = pair();
    let tls = ClientTls::new(
        shortline_tls::load(&pair.cert, &pair.key).unwrap(),
        &[ALPN],
        false,
    )
    .unwrap();
    let different = relay(cluster, UpstreamTls::require().unwrap(), Some(tls));
    for user in ["postgres", "md5"] {
        assert_eq!(
            who(cluster, &different, user, "require", "prefer"),
            Ok(format!("{user}|t"))
        );
    }
    assert_eq!(
        who(cluster, &different, "scram", "require", "disable"),
        Ok("scram|t".to_owned())
    );
    let refused = who(cluster, &different, "scram", "require", "prefer").unwrap_err();
    assert!(refused.contains("channel binding"), "{refused}");
    // The backend's own certificate: what the client binds to is what the backend has.
    let (cert, key) = cluster.certificate();
    let tls = ClientTls::new(shortline_tls::load(&cert, &key).unwrap(), &[ALPN], false).unwrap();
    let same = relay(cluster, UpstreamTls::require().unwrap(), Some(tls));
    for binding in ["require", "prefer", "disable"] {
        assert_eq!(
            who(cluster, &same, "scram", "require", binding),
            Ok("scram|t".to_owned()),
            "{binding}"
        );
    }
}
