//! Which folder's files are served: one that somebody named, and no other.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::client::get;
use crate::process::{Ended, PROGRAM, Server, Site, shortline};

/// A route to nobody.
const ROUTE: &str = "[[route]]\npath = \"/api\"\nupstream = [\"127.0.0.1:1\"]\n";

/// Writes a file with a free address and `more` beside the site, and names it.
fn write_config(site: &Site, more: &str) -> String {
    let file = site.beside("shortline.toml");
    let text = format!("[[listen]]\naddress = \"127.0.0.1:0\"\n{more}");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn serve_in(folder: &Path, arguments: &[&str]) -> Server {
    let mut command = Command::new(PROGRAM);
    command.arg("serve").args(arguments).current_dir(folder);
    Server::spawn(&mut command)
}

/// What the server says of itself as it starts.
fn start_line(server: &mut Server) -> String {
    let line = server.line_with("uplink");
    line.split_once("shortline: ").unwrap().1.to_owned()
}

fn refused(ended: &Ended, expected: &str) {
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
}

#[test]
fn a_reverse_proxy_without_a_root_serves_no_files() {
    let site = Site::new();
    let config = write_config(&site, ROUTE);
    // As systemd starts it, and where there is a site by chance.
    for folder in [Path::new("/"), &site.root()] {
        let mut server = serve_in(folder, &["--config", &config]);
        for path in ["/etc/passwd", "/hello.txt", "/", "/folder/page.html"] {
            assert_eq!(get(server.address(), path).status, 404, "{path}");
        }
        assert_eq!(get(server.address(), "/api/x").status, 502);
        let told = start_line(&mut server);
        assert!(told.starts_with("no files, 1 route; uplink auto"), "{told}");
    }
}

#[test]
fn a_file_with_nothing_to_serve_is_refused() {
    let site = Site::new();
    let config = write_config(&site, "");
    let ended = shortline(&site.root(), &["serve", "--config", &config]);
    refused(&ended, "names neither a folder nor a route");
    refused(&ended, "root = \"/srv/www\"");
}

#[test]
fn a_bare_serve_says_that_it_serves_the_current_folder() {
    let site = Site::new();
    let mut server = serve_in(&site.root(), &["--listen", "127.0.0.1:0"]);
    assert_eq!(get(server.address(), "/hello.txt").body, b"hello\n");
    let folder = site.root().canonicalize().unwrap();
    let expected = format!(
        "files of the current folder, {}, as no ROOT is named;",
        folder.display()
    );
    let told = start_line(&mut server);
    assert!(told.starts_with(&expected), "{told}");
}

#[test]
fn a_folder_of_the_system_is_served_only_if_that_is_meant() {
    let site = Site::new();
    symlink("/etc", site.beside("link")).unwrap();
    let link = site.beside("link");
    let link = link.to_str().unwrap();
    for (folder, arguments) in [
        (Path::new("/"), &["serve"][..]),
        (Path::new("/"), &["serve", "."]),
        (Path::new("/srv"), &["serve", "/"]),
        (Path::new("/srv"), &["serve", link]),
    ] {
        let ended = shortline(folder, arguments);
        refused(&ended, "is a folder of the system");
        refused(&ended, "--allow-system-root");
    }
    let mut server = serve_in(
        Path::new("/"),
        &[link, "--allow-system-root", "--listen", "127.0.0.1:0"],
    );
    assert_eq!(get(server.address(), "/passwd").status, 200);
    let told = start_line(&mut server);
    assert!(told.starts_with("files of /etc;"), "{told}");
}

#[test]
fn a_reload_obeys_the_same_rules() {
    let site = Site::new();
    let root = format!("[site]\nroot = \"{}\"\n", site.root().display());
    let config = write_config(&site, &root);
    let mut server = serve_in(&site.root(), &["--config", &config]);
    assert_eq!(get(server.address(), "/hello.txt").body, b"hello\n");

    for (more, expected) in [
        ("[site]\nroot = \"/etc\"\n", "is a folder of the system"),
        ("", "names neither a folder nor a route"),
    ] {
        write_config(&site, more);
        server.signal(Signal::HUP);
        let line = server.line_with("not reloaded");
        assert!(line.contains(expected), "{line}");
        assert_eq!(get(server.address(), "/hello.txt").body, b"hello\n");
    }

    write_config(&site, ROUTE);
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    assert_eq!(get(server.address(), "/hello.txt").status, 404);
}

#[test]
fn the_addresses_are_told_first_as_scripts_know_them() {
    let site = Site::new();
    let server = Server::start(&site, &[]);
    let told = [
        " INFO shortline: admin on ",
        " INFO shortline: listening on ",
    ];
    assert_eq!(server.said.len(), told.len(), "{:?}", server.said);
    for (line, told) in server.said.iter().zip(told) {
        assert!(line.contains(told), "{line}");
    }
}

#[test]
fn the_start_line_names_root_rate_order_and_whom_it_is_for() {
    let site = Site::new();
    let folder = site.root().canonicalize().unwrap();
    for (flags, expected) in [
        (
            &["--uplink", "100mbit", "--aging", "20"][..],
            "uplink 100mbit (given); policy shares, aging 20; clients on the loopback interface are \
             not scheduled",
        ),
        (
            &["--uplink-loopback", "--policy", "fair"],
            "uplink auto (the rate is found out while serving); policy fair; clients on the \
             loopback interface are scheduled, too",
        ),
        (
            &["--slots", "3"],
            "uplink's rate not needed, 3 slots; policy shares; clients on the loopback interface are \
             not scheduled",
        ),
        (&["--uplink", "off"], "uplink off: nothing is scheduled"),
    ] {
        let mut server = Server::start(&site, flags);
        let expected = format!("files of {}; {expected}", folder.display());
        assert_eq!(start_line(&mut server), expected);
    }
}
