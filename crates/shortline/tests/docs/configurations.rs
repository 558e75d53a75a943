//! Each configuration of the operators' pages is sound: one of the web server goes through `serve --check`, one of the
//! gate starts a gate.
//!
//! Many show a part of a file. What is around it is added: a site, a route, an address. So are the folders, certificates
//! and files of users that they name. A comment `<!-- not checked: REASON -->` before a block leaves it out.

use std::path::Path;
use std::process::Command;

use regex::Regex;

use crate::page::{Block, pages};
use crate::place::Place;
use crate::serving::Serving;

const PROGRAM: &str = env!("CARGO_BIN_EXE_shortline");
const SITE: &str = "[site]\nroot = \"/srv/www\"\n";
const ROUTE_OF_SITE: &str = "[[site.route]]\npath = \"/\"\nupstream = [\"127.0.0.1:9000\"]\n";
const ROUTE: &str = "[[route]]\npath = \"/\"\nupstream = [\"127.0.0.1:9000\"]\n";

/// Says what is wrong with a configuration, if anything is.
pub fn check(text: &str) -> Result<(), String> {
    let mut place = Place::new();
    if is_of_gate(text) {
        return start_gate(&mut place, text);
    }
    let file = place.filled(&whole(text));
    furnish(&place, &file);
    place.with("etc/a.toml", &file);
    let mut command = Command::new(PROGRAM);
    command
        .args(["serve", "--check", "--config"])
        .arg(place.path("etc/a.toml"));
    let output = command.current_dir(place.folder()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    output.status.success().then_some(()).ok_or(said)
}

/// Whether the file is one of `shortline gate`.
fn is_of_gate(text: &str) -> bool {
    text.lines()
        .any(|line| line.starts_with("[gate") || line.starts_with("[[gate"))
}

/// A part of a file with what must be around it.
fn whole(text: &str) -> String {
    let has = |header: &str| text.lines().any(|line| line.starts_with(header));
    let sites = has("[site]") || has("[[site]]");
    let serves = text.contains("root =") || text.contains("upstream =");
    let secure = text.contains("tls-cert") || text.contains("tls = \"");
    let (mut before, mut after) = (String::new(), String::new());
    if text.starts_with("upstream") {
        before += "[[route]]\npath = \"/\"\n";
    } else if text.starts_with("[route") || text.starts_with("[[route.") {
        before += ROUTE;
    } else if has("[[site.") && !sites {
        before += SITE;
        after += ROUTE_OF_SITE;
    } else if !serves {
        // What a site names is of that site; what no site names is of the only one.
        after += if sites { ROUTE_OF_SITE } else { SITE };
    }
    if text.contains("tls = true") && !secure {
        after += "tls-cert = \"/etc/a.crt\"\ntls-key = \"/etc/a.key\"\n";
    }
    if !has("[[listen]]") {
        let secure = if secure { "tls = true\n" } else { "" };
        after += &format!("[[listen]]\naddress = \"127.0.0.1:443\"\n{secure}");
    }
    format!("{before}{text}{after}")
}

/// Makes what a configuration names.
fn furnish(place: &Place, file: &str) {
    let root = place.folder().display().to_string();
    let made = rcgen::generate_simple_self_signed(hosts(file)).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let users = match is_of_gate(file) {
        true => "\"ann\" \"secret\"\n".to_owned(),
        false => format!("ann:{}\n", bcrypt::hash("secret", 4).unwrap()),
    };
    let named = Regex::new(&format!("(unix:)?{}(/[^\"' ,]+)", regex::escape(&root))).unwrap();
    for found in named.captures_iter(file) {
        let path = Path::new(&found[2]);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap();
        let above = path.parent().and_then(Path::to_str).unwrap();
        std::fs::create_dir_all(place.path(above)).unwrap();
        let content = match name.rsplit_once('.') {
            _ if name == "users" => &users,
            Some(("eab", "key")) => "c2VjcmV0\n",
            Some((_, "key")) | Some(("privkey", _)) => &key,
            Some((_, "crt" | "pem")) => &certificate,
            // A file that the server makes itself, and so it does a socket.
            Some(_) => continue,
            None if found.get(1).is_some() => continue,
            None => {
                std::fs::create_dir_all(place.path(&found[2])).unwrap();
                continue;
            }
        };
        place.with(&found[2], content);
    }
}

/// The names of a file's sites.
fn hosts(file: &str) -> Vec<String> {
    let names = Regex::new(r"(?m)^names = \[(.*)\]").unwrap();
    let lists = names
        .captures_iter(file)
        .map(|found| found[1].replace(['"', ' '], ""));
    let lists: Vec<String> = lists.chain(["localhost".to_owned()]).collect();
    lists
        .iter()
        .flat_map(|list| list.split(','))
        .map(str::to_owned)
        .collect()
}

/// Starts a gate, which reads its whole file and asks nobody before it listens.
fn start_gate(place: &mut Place, text: &str) -> Result<(), String> {
    let file = place.filled(text);
    furnish(place, &file);
    place.with("etc/gate.toml", &file);
    let of_http = text.contains("header:") || text.contains("path =");
    let mut command = Command::new(PROGRAM);
    command.args(["gate", if of_http { "http" } else { "postgres" }]);
    command.arg("--config").arg(place.path("etc/gate.toml"));
    for (key, value) in [("listen", "127.0.0.1:0"), ("upstream", "127.0.0.1:1")] {
        if !text
            .lines()
            .any(|line| line.starts_with(&format!("{key} =")))
        {
            command.args([format!("--{key}"), value.to_owned()]);
        }
    }
    if text.contains("pool =") && !text.contains("pool-users") {
        place.with("etc/users.txt", "\"ann\" \"secret\"\n");
        command.arg("--pool-users").arg(place.path("etc/users.txt"));
    }
    if text.contains("cancel") {
        command.args(["--monitor", "postgres://watcher@127.0.0.1:1/postgres"]);
    }
    Serving::start(command).map(drop)
}

/// The reason for which a configuration is left out.
fn left_out(block: &Block) -> Option<&str> {
    block.mark.as_deref()?.strip_prefix("not checked: ")
}

#[test]
fn each_configuration_of_the_pages_is_sound() {
    let (mut sound, mut wrong) = (0, Vec::new());
    for block in pages().iter().flat_map(|page| page.blocks()) {
        if block.language != "toml" {
            continue;
        }
        if let Some(reason) = left_out(&block) {
            println!("{}: not checked: {reason}", block.place);
            continue;
        }
        match check(&block.text) {
            Ok(()) => sound += 1,
            Err(problem) => wrong.push(format!("{}: {problem}", block.place)),
        }
    }
    println!("{sound} configurations are sound");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(sound > 0);
}

#[test]
fn a_wrong_configuration_is_refused() {
    let wrong = check("[[site.rule]]\npath = \"/a\"\nredirekt = \"/b\"\n").unwrap_err();
    assert!(wrong.contains("redirekt"), "{wrong}");
    let wrong = check("[gate]\ncapacity = \"many\"\n").unwrap_err();
    assert!(wrong.contains("capacity"), "{wrong}");
}
