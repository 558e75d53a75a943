//! What cannot be had because of what the machine is like just then: exit 1, and one line. What depends on the command
//! line alone is in `tests/pages`.

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
fn what_cannot_be_had_exits_1_and_names_it() {
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
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(&["serve", "--listen", &address], 1, &[&address, "in use"]);
}
