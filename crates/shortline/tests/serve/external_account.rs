//! An authority that only orders for accounts that it knows (external account binding): Pebble with keys.

use rustix::process::Signal;
use serde_json::json;

use crate::certificates::{at, auto, begin};
use crate::pebble::Pebble;
use crate::process::{Site, wait_for};
use crate::sites::{over_tls, refused, write};

const KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

#[test]
fn an_authority_that_knows_its_clients_is_shown_the_key_that_it_has_given() {
    let site = Site::new();
    let Some(pebble) = Pebble::start_with(&site, 86_400, &json!({"kid-1": KEY})) else {
        return;
    };
    // Each with a name of its own: failures of a name are remembered for a minute.
    let serve = |name: &str, keys: &str| {
        let acme = pebble.table(keys);
        let names = auto(&format!("\"{name}.example\""));
        format!("{}{acme}{names}", pebble.listen())
    };
    let mut server = begin(&site, &serve("one", ""));
    let line = server.line_with("certificate for one.example: ");
    for told in [
        "externalAccountRequired: ",
        "give eab-kid and eab-key-file in [acme]",
    ] {
        assert!(line.contains(told), "{line}");
    }
    drop(server);
    std::fs::write(site.beside("eab.key"), KEY.replace('z', "y")).unwrap();
    let keys = "eab-kid = \"kid-1\"\neab-key-file = \"FOLDER/eab.key\"";
    let mut server = begin(&site, &serve("two", keys));
    let line = server.line_with("certificate for two.example: ");
    assert!(line.contains("next attempt in"), "{line}");
    assert!(!line.contains("yWND"), "{line}");
    // A reload takes the key anew, and so the account.
    std::fs::write(site.beside("eab.key"), format!("{KEY}\n")).unwrap();
    write(&site, &serve("three", keys));
    server.signal(Signal::HUP);
    let root = pebble.root(&site);
    let got = |name: &str| {
        let name = format!("{name}.example");
        wait_for("a certificate", || {
            over_tls(at(pebble.tls), &root, (&name, &name)).ok()
        });
    };
    got("three");
    drop(server);
    // The account is kept, so the key is needed no more.
    let server = begin(&site, &serve("four", ""));
    got("four");
    drop(server);
    for (keys, told) in [
        (
            "eab-kid = \"a\"",
            "eab-kid: belongs together with eab-key-file",
        ),
        (
            "eab-key-file = \"a\"",
            "eab-key-file: belongs together with eab-kid",
        ),
        (
            "eab-kid = \"a\"\neab-key-file = \"FOLDER/none\"",
            "none: No such file",
        ),
    ] {
        let error = refused(&site, &serve("one", keys));
        assert!(error.contains(told), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
