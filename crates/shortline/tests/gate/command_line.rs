//! What cannot be had because of what the machine is like just then: exit 1, and one line. What depends on the command
//! line alone is in `tests/pages`.

use crate::process::{Ended, shortline};

#[test]
fn an_address_that_is_taken_exits_1_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let arguments = [
        "gate",
        "postgres",
        "--upstream",
        "127.0.0.1:1",
        "--listen",
        &address,
    ];
    let Ended { code, stderr } = shortline(folder.path(), &arguments);
    assert_eq!(code, 1, "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("shortline: "), "{stderr}");
    assert!(stderr.contains(&address), "{stderr}");
    assert!(stderr.contains("in use"), "{stderr}");
}
