//! `shortline gate import`: three configurations as they are found in the field, and that the gate takes what
//! comes of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::process::Server;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/gate/pgbouncer")
        .join(name)
}

fn import(path: &Path) -> Output {
    let mut import = Command::new(env!("CARGO_BIN_EXE_shortline"));
    import.args(["gate", "import"]).arg(path).output().unwrap()
}

fn translated(name: &str) -> (String, Option<i32>) {
    let output = import(&file(name));
    let text = String::from_utf8(output.stdout).unwrap();
    (text, output.status.code())
}

/// A gate with this configuration, but for where it listens and the file of its users.
fn start(text: &str, certificate: bool) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("gate.toml"), text).unwrap();
    std::fs::write(at("users"), "\"a\" \"b\"\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_shortline"));
    let (config, users) = (at("gate.toml"), at("users"));
    command.args([
        "gate",
        "postgres",
        "--config",
        &config,
        "--listen",
        "127.0.0.1:0",
    ]);
    command.args(["--pool-users", &users]);
    if certificate {
        let made = rcgen::generate_simple_self_signed(vec!["db.internal".to_owned()]).unwrap();
        std::fs::write(at("crt"), made.cert.pem()).unwrap();
        std::fs::write(at("key"), made.signing_key.serialize_pem()).unwrap();
        command.args([
            "--tls-cert",
            &at("crt"),
            "--tls-key",
            &at("key"),
            "--upstream-ca",
            &at("crt"),
        ]);
    }
    Server::spawn(&mut command)
}

/// Whether each line is in the text.
fn has(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|each| each == *line), "{line} in\n{text}");
    }
}

#[test]
fn a_small_configuration_is_translated_whole() {
    let (text, code) = translated("small.ini");
    assert_eq!(code, Some(0), "{text}");
    has(
        &text,
        &[
            "listen = [\"127.0.0.1:6432\"]",
            "upstream = \"127.0.0.1:5432\"",
            "pool = \"transaction\"",
            "pool-size = 25",
            "pool-users = \"userlist.txt\"",
            "admin-users = [\"postgres\", \"ops\"]",
            "stats-users = [\"exporter\"]",
            "connections-max = 500",
            "pool-idle-max = \"60000ms\"",
            "wait-max = \"30000ms\"",
        ],
    );
    assert!(
        !text.contains("LOST") && text.contains("server_reset_query = DISCARD ALL  # not needed")
    );
    start(&text, false);
}

#[test]
fn what_each_of_many_databases_loses_is_told() {
    let (text, code) = translated("many.ini");
    assert_eq!(code, Some(1), "{text}");
    // accounts 10, orders 30 of 40, old-shop 20, all others 20.
    has(
        &text,
        &[
            "upstream = \"10.0.0.5:5432\"",
            "listen = [\"0.0.0.0:6432\", \"unix:/var/run/postgresql/.s.PGSQL.6432\"]",
            "pool-size = 80",
            "pool-statements-max = 400",
            "pool = \"transaction\"",
            "idle-transaction-max = \"60000ms\"",
            "tenant-by = \"user\"",
        ],
    );
    let tables = "\n[[gate.rule]]\nuser = \"batch\"\npool = \"session\"\n\
                  \n[[gate.rule]]\ndatabase = \"accounts\"\npool = \"session\"\n\
                  \n[gate.tenant.\"batch\"]\nrunning-max = 5\n";
    assert!(text.ends_with(tables), "{text}");
    let lost: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("# LOST: "))
        .collect();
    for (setting, why) in [
        ("reports", "10.0.0.6:5433 needs a gate of its own"),
        ("old-shop", "its own name"),
        ("old-shop", "its own user"),
        ("web", "pool_size"),
    ] {
        let told = lost
            .iter()
            .any(|line| line.contains(setting) && line.contains(why));
        assert!(told, "{setting}: {why} in\n{text}");
    }
    assert!(!text.contains("secret"), "{text}");
    assert!(
        text.contains("more.ini:2 [pgbouncer] tcp_keepidle = 30  # not needed"),
        "{text}"
    );
    start(&text, false);
}

#[test]
fn users_and_databases_keep_what_is_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pgbouncer.ini");
    let ini = "[databases]\n* = host=127.0.0.1\nweb-1 = host=127.0.0.1 pool_mode=transaction\n\
               [users]\netl = pool_mode=session idle_transaction_timeout=90\n\
               web = max_user_client_connections=40\n\
               [pgbouncer]\nlisten_addr = 127.0.0.1\nauth_file = userlist.txt\nmax_user_client_connections = 20\n";
    std::fs::write(&path, ini).unwrap();
    let output = import(&path);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    // Only one database has transactions: all others are an exception.
    let tables = "\n[[gate.rule]]\nuser = \"etl\"\npool = \"session\"\nidle-transaction-max = \"90000ms\"\n\
                  \n[[gate.rule]]\ndatabase = \"web\\\\-1\"\npool = \"transaction\"\n\
                  \n[[gate.rule]]\npool = \"session\"\n\
                  \n[gate.tenant.\"*\"]\nconnections-max = 20\n\
                  \n[gate.tenant.\"web\"]\nconnections-max = 40\n";
    assert!(text.ends_with(tables), "{text}");
    start(&text, false);
}

/// Of a limit that nothing stands for only those lines are told that set it.
#[test]
fn limits_of_databases_beside_those_of_users_are_told_as_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pgbouncer.ini");
    let ini = "[databases]\n* = host=127.0.0.1\nshop = host=127.0.0.1 max_db_client_connections=9\n\
               [pgbouncer]\nlisten_addr = 127.0.0.1\nauth_file = userlist.txt\nmax_user_connections = 20\n\
               max_db_client_connections = 30\n";
    std::fs::write(&path, ini).unwrap();
    let output = import(&path);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let lost: Vec<&str> = text.lines().filter(|line| line.contains("LOST")).collect();
    let of = |words: &str| lost.iter().filter(|line| line.contains(words)).count();
    assert_eq!(of("max_user_connections = 20"), 1, "{text}");
    assert_eq!(of("max_db_client_connections = 30"), 1, "{text}");
    assert_eq!(of("shop = "), 1, "{text}");
    assert_eq!(lost.len(), 3, "{text}");
}

#[test]
fn tls_and_looked_up_users_are_translated() {
    let (text, code) = translated("secure.ini");
    assert_eq!(code, Some(1), "{text}");
    has(
        &text,
        &[
            "listen = [\"10.0.0.7:6432\", \"[::1]:6432\"]",
            "upstream = \"db.internal:5432\"",
            "pool = \"session\"",
            "pool-size = 20",
            "tls-required = true",
            "tls-key = \"server.key\"",
            "upstream-tls = \"verify-full\"",
            "upstream-ca = \"ca.crt\"",
            "pool-auth-user = \"pgbouncer\"",
            "pool-auth-query = \"SELECT p_user, p_password FROM public.lookup($1)\"",
            "authentication-time-max = \"15000ms\"",
        ],
    );
    for setting in ["auth_type", "auth_hba_file", "auth_dbname", "auth_user="] {
        let told = text
            .lines()
            .any(|line| line.contains(setting) && line.contains("# LOST: "));
        assert!(told, "{setting} in\n{text}");
    }
    start(&text, true);
}

#[test]
fn what_cannot_be_read_is_told_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pgbouncer.ini");
    for (text, expected) in [
        ("[databases]\nnonsense\n", "line 2: expected [section]"),
        ("[databases]\na = host='x\n", "a quote has no end"),
        ("[pgbouncer]\nlisten_port = 1\n", "no section [databases]"),
        (
            "[databases]\na =\n[pgbouncer]\nmax_client_conn = many\n",
            "`many` is no number",
        ),
        ("%include pgbouncer.ini\n", "deep"),
        ("%include /nowhere.ini\n", "/nowhere.ini"),
    ] {
        std::fs::write(&path, text).unwrap();
        let output = import(&path);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(
            told.contains(expected) && told.lines().count() == 1,
            "{told}"
        );
        assert!(output.stdout.is_empty());
    }
}
