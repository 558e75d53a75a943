//! Wrong flags, files and addresses: exit 2 or 1, and one line that says what would be right.

use crate::process::{Ended, Site, shortline};

fn refused(arguments: &[&str], code: i32, expected: &[&str]) {
    let site = Site::new();
    let Ended { code: got, stderr } = shortline(&site.root(), arguments);
    assert_eq!(got, code, "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    assert!(stderr.starts_with("shortline: "), "{stderr}");
    for part in expected {
        assert!(
            stderr.contains(part),
            "{arguments:?}: no `{part}` in {stderr}"
        );
    }
}

#[test]
fn help_and_version_succeed() {
    let site = Site::new();
    for command in [
        &["--help"][..],
        &["--version"],
        &["serve", "--help"],
        &["load", "--help"],
        &["lab", "--help"],
        &["sim", "--help"],
    ] {
        assert_eq!(shortline(&site.root(), command).code, 0, "{command:?}");
    }
}

#[test]
fn bad_usage_exits_2_and_names_value_and_remedy() {
    refused(&["serv"], 2, &["serv", "serve"]);
    refused(&["serve", "--polcy", "srpt"], 2, &["--polcy", "--policy"]);
    refused(&["serve", "--policy", "sprt"], 2, &["sprt", "srpt", "las"]);
    refused(&["serve", "--uplink", "10mbits"], 2, &["10mbits", "10mbit"]);
    refused(
        &["serve", "--listen", "localhost"],
        2,
        &["localhost", "--listen"],
    );
    refused(&["serve", "--aging", "-1"], 2, &["-1"]);
    refused(&["serve", "--growing", "0"], 2, &["growing `0`"]);
    refused(
        &["serve", "--policy", "bands:2KB,1KB"],
        2,
        &["bands:2KB,1KB", "1kB follows 2kB"],
    );
    refused(&["serve", "--policy", "bands:99"], 2, &["from 2 to 16"]);
    refused(
        &["serve", "--connections-max", "0"],
        2,
        &["--connections-max"],
    );
    refused(&["serve", "--tls-cert", "a.pem"], 2, &["--tls-key"]);
}

#[test]
fn contradictions_exit_2() {
    refused(&["serve", "--policy", "fsp"], 2, &["--uplink RATE"]);
    refused(&["serve", "--policy", "swift"], 2, &["--uplink RATE"]);
    refused(
        &["serve", "--link-mode", "bands", "--policy", "srpt"],
        2,
        &["--policy", "bands, quickfix, srrt, stert, fcf and swift"],
    );
    refused(
        &["serve", "--link-mode", "bands", "--uplink", "1gbit"],
        2,
        &["--uplink", "link mode bands"],
    );
    refused(
        &[
            "uplink", "install", "--dev", "lo", "--kind", "prio", "--bands", "17",
        ],
        2,
        &["from 2 to 16", "17"],
    );
    refused(
        &["uplink", "install", "--dev", "lo", "--kind", "cake"],
        2,
        &["cake", "pfifo_fast"],
    );
    refused(&["serve", "--growing", "5"], 2, &["--uplink RATE"]);
    refused(
        &["serve", "--policy", "srpt", "--burst", "1MiB"],
        2,
        &["--burst", "srpt", "leave"],
    );
    refused(
        &["serve", "--client-header", "forwarded"],
        2,
        &["--client-header", "--trusted-proxy"],
    );
    refused(
        &["serve", "--user-cookie", "sid"],
        2,
        &["--user-cookie", "--users-per-address"],
    );
    refused(
        &[
            "serve",
            "--users-per-address",
            "8",
            "--user-cookie",
            "sid=1",
        ],
        2,
        &["sid=1", "session"],
    );
    refused(
        &["serve", "--users-per-address", "5000"],
        2,
        &["--users-per-address", "1024"],
    );
    refused(
        &["serve", "--client-weight", "10.0.0.0/8=0"],
        2,
        &["10.0.0.0/8=0", "10.0.1.0/24=4"],
    );
    refused(
        &["serve", "--link-mode", "paced"],
        2,
        &["--uplink", "100mbit"],
    );
    refused(
        &["serve", "--link-mode", "off", "--policy", "srpt"],
        2,
        &["--policy", "off"],
    );
    refused(
        &["serve", "--uplink", "off", "--policy", "srpt"],
        2,
        &["--policy", "off"],
    );
}

#[test]
fn what_contradicts_auto_is_refused() {
    for others in [
        &["--uplink", "auto", "--link-mode", "slots"][..],
        &["--uplink", "auto", "--slots", "3"],
        &["--uplink", "10mbit", "--link-mode", "auto"],
        &["--uplink", "auto", "--control-band"],
    ] {
        refused(&[&["serve"], others].concat(), 2, &["auto", "leave"]);
    }
}

#[test]
fn what_cannot_be_had_exits_1_and_names_it() {
    refused(&["serve", "missing"], 1, &["missing", "directory"]);
    refused(
        &["uplink", "show", "--dev", "no-such-dev"],
        1,
        &["no-such-dev", "ip link"],
    );
    refused(
        &[
            "serve",
            "--link-mode",
            "bands",
            "--uplink-device",
            "lo",
            "--listen",
            "127.0.0.1:0",
        ],
        1,
        &["'lo'", "shortline uplink install --dev lo"],
    );
    refused(&["serve", "--config", "missing.toml"], 1, &["missing.toml"]);
    refused(
        &["serve", "--listen", "127.0.0.1:0", "--access-log", "no/log"],
        1,
        &["no/log"],
    );
    refused(
        &[
            "serve",
            "--tls-cert",
            "hello.txt",
            "--tls-key",
            "hello.txt",
            "--listen",
            "127.0.0.1:0",
        ],
        1,
        &["hello.txt", "BEGIN CERTIFICATE"],
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(&["serve", "--listen", &address], 1, &[&address, "in use"]);
}

#[test]
fn a_wrong_configuration_names_file_line_and_key() {
    let site = Site::new().with("a.toml", "[uplink]\nrate = \"10mbit\"\npolcy = \"srpt\"\n");
    let Ended { code, stderr } = shortline(&site.root(), &["serve", "--config", "a.toml"]);
    assert_eq!(code, 2);
    assert!(
        stderr.starts_with("shortline: a.toml:3: uplink.polcy:"),
        "{stderr}"
    );
    assert!(stderr.contains("`policy`"), "{stderr}");
}
