//! `[route.cache.disk]`: responses that are kept in a folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::admin::status;
use crate::client::{Response, exchange, parse};
use crate::process::{PROGRAM, Server, Site, wait_for};
use crate::response_cache::{Application, FRESH, purge, start, text};

/// Keys of a cache whose memory takes no body, so that all responses come from the folder.
fn keys(site: &Site, more: &str) -> String {
    let folder = folder(site);
    format!(
        "response-size-max = \"1B\"\n[route.cache.disk]\nfolder = \"{}\"\n{more}",
        folder.display()
    )
}

fn folder(site: &Site) -> PathBuf {
    site.beside("kept")
}

/// A request of a client that calls the server so, whatever its port is.
fn ask(server: &Server, target: &str, fields: &str) -> Response {
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n{fields}\r\n");
    parse(&exchange(server.address(), request))
}

/// A server that writes its folder by now: what comes before that is not kept there.
fn start_writing(site: &Site, application: &Application, keys: &str) -> Server {
    let server = start(site, application, keys);
    wait_until_it_writes(&server);
    server
}

fn wait_until_it_writes(server: &Server) {
    wait_for("the folder to be written", || {
        (of_folder(server)["is_writable"] == true).then_some(())
    });
}

fn of_folder(server: &Server) -> Value {
    status(server)["caches"][0]["folder"].clone()
}

fn wait_for_kept(server: &Server, responses: usize) {
    wait_for("the responses to be in the folder", || {
        (of_folder(server)["responses"] == responses).then_some(())
    });
}

/// The files of heads or bodies.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|known| known == ending))
        .collect();
    files.sort();
    files
}

fn is_hit(response: &Response) -> bool {
    response
        .field("cache-status")
        .is_some_and(|status| status.starts_with("Shortline; hit;"))
}

#[test]
fn what_is_kept_on_the_disk_outlasts_a_restart_and_is_this_users_alone() {
    let site = Site::new();
    let application = Application::start(&format!(
        "{FRESH}Vary: X-User\r\nETag: \"1\"\r\nX-Name: caf\u{e9}\r\n"
    ));
    let server = start_writing(&site, &application, &keys(&site, ""));
    let first = ["", "X-User: ann\r\n"].map(|user| text(&ask(&server, "/a", user)).to_owned());
    wait_for_kept(&server, 2);
    drop(server);

    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder(&site)), 0o700);
    for file in [files(&folder(&site), "head"), files(&folder(&site), "body")].concat() {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }

    let server = start(&site, &application, &keys(&site, ""));
    wait_for_kept(&server, 2);
    let again = ["", "X-User: ann\r\n"].map(|user| ask(&server, "/a", user));
    assert_eq!(
        again.each_ref().map(|response| text(response).to_owned()),
        first
    );
    assert!(again.iter().all(is_hit));
    assert_eq!(again[0].field("x-name"), Some("caf\u{e9}"));
    let same = ask(&server, "/a", "If-None-Match: \"1\"\r\n");
    assert_eq!((same.status, same.body.len()), (304, 0));
    assert_eq!(application.asked(), 2);
    assert_ne!(text(&ask(&server, "/a", "X-User: bob\r\n")), first[0]);
}

#[test]
fn a_body_too_large_for_memory_is_sent_from_its_file() {
    let site = Site::new();
    let application = Application::start(FRESH);
    let server = start_writing(&site, &application, &keys(&site, ""));
    let target = "/times/200000";
    let first = ask(&server, target, "");
    assert_eq!(first.body.len(), 200_000 * "number 1 for all".len());
    wait_for_kept(&server, 1);
    for _ in 0..2 {
        let again = ask(&server, target, "");
        assert!(is_hit(&again) && again.body == first.body);
        assert_eq!(again.content_length(), first.body.len());
    }
    let caches = status(&server)["caches"][0].clone();
    assert_eq!(
        (&caches["responses"], &caches["hits_total"]),
        (&0.into(), &2.into()),
        "{caches}"
    );
    assert_eq!(application.asked(), 1);
}

#[test]
fn memory_has_what_is_small_and_the_folder_has_all() {
    let site = Site::new();
    let application = Application::start(FRESH);
    let keys = format!(
        "[route.cache.disk]\nfolder = \"{}\"\n",
        folder(&site).display()
    );
    let server = start_writing(&site, &application, &keys);
    let first = text(&ask(&server, "/a", "")).to_owned();
    wait_for_kept(&server, 1);
    assert_eq!(status(&server)["caches"][0]["responses"], 1);
    drop(server);
    let server = start(&site, &application, &keys);
    wait_for_kept(&server, 1);
    assert_eq!(status(&server)["caches"][0]["responses"], 0);
    assert_eq!(text(&ask(&server, "/a", "")), first);
    assert_eq!(status(&server)["caches"][0]["responses"], 1);
}

#[test]
fn what_is_torn_or_no_response_is_removed_and_what_is_foreign_is_left() {
    let site = Site::new();
    let application = Application::start(FRESH);
    let server = start_writing(&site, &application, &keys(&site, ""));
    for target in ["/a", "/b", "/c", "/d"] {
        ask(&server, target, "");
    }
    wait_for_kept(&server, 4);
    drop(server);
    let folder = folder(&site);
    let heads = files(&folder, "head");
    fs::write(&heads[0], "no head").unwrap();
    fs::write(heads[1].with_extension("body"), "short").unwrap();
    // As long as it should be, but with other bytes.
    fs::write(heads[2].with_extension("body"), "number x for all").unwrap();
    for (name, text) in [
        ("0123456789abcdef.body", "a body without a head"),
        ("0123456789abcde0.tmp", "a head that was not finished"),
        ("notes.txt", "somebody's"),
        ("0123456789ABCDEF.head", "somebody's, too"),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }

    // Memory may have them now, so they are read whole, and compared.
    let keys = format!("[route.cache.disk]\nfolder = \"{}\"\n", folder.display());
    let mut server = start(&site, &application, &keys);
    wait_for_kept(&server, 2);
    wait_for("the rest to be removed", || {
        let left = files(&folder, "body").len() + files(&folder, "tmp").len();
        (left == 2).then_some(())
    });
    let before = application.asked();
    let hits = ["/a", "/b", "/c", "/d"].map(|target| ask(&server, target, ""));
    assert!(
        hits.iter()
            .all(|response| text(response).starts_with("number ") && !text(response).contains('x'))
    );
    assert_eq!(hits.iter().filter(|response| is_hit(response)).count(), 1);
    assert_eq!(application.asked(), before + 3);
    assert!(folder.join("notes.txt").exists() && folder.join("0123456789ABCDEF.head").exists());
    server.signal(Signal::TERM);
    assert!(server.wait().success());
}

#[test]
fn the_folder_is_bounded_and_what_was_used_longest_ago_goes() {
    let site = Site::new();
    let application = Application::start(FRESH);
    let server = start_writing(
        &site,
        &application,
        &keys(
            &site,
            "responses-max = 3\nsize-max = \"1MiB\"\nresponse-size-max = \"64KiB\"\n",
        ),
    );
    let targets = ["/a", "/b", "/c"];
    for (at, target) in targets.iter().enumerate() {
        ask(&server, target, "");
        wait_for_kept(&server, at + 1);
    }
    // Uses within a second of each other are not told apart.
    std::thread::sleep(Duration::from_millis(1100));
    assert!(is_hit(&ask(&server, "/a", "")));
    ask(&server, "/d", "");
    wait_for("one to go", || {
        (of_folder(&server)["evicted_total"] == 1).then_some(())
    });
    wait_for("its files to go", || {
        (files(&folder(&site), "body").len() == 3).then_some(())
    });
    let before = application.asked();
    assert!(is_hit(&ask(&server, "/a", "")));
    assert!(!is_hit(&ask(&server, "/b", "")));
    assert_eq!(application.asked(), before + 1);
    // One that is too large is passed on, and not kept.
    ask(&server, "/times/5000", "");
    assert!(!is_hit(&ask(&server, "/times/5000", "")));
}

#[test]
fn what_is_purged_is_gone_from_the_disk() {
    let site = Site::new();
    let application = Application::start(FRESH);
    let server = start_writing(&site, &application, &keys(&site, ""));
    for target in ["/blog/a", "/blog/b", "/shop"] {
        ask(&server, target, "");
    }
    wait_for_kept(&server, 3);
    assert!(is_hit(&ask(&server, "/blog/a", "")));
    assert_eq!(
        purge(&server, "http://a.example/blog/*"),
        (200, "purged 2".to_owned())
    );
    wait_for("the files to go", || {
        (files(&folder(&site), "head").len() == 1).then_some(())
    });
    assert!(!is_hit(&ask(&server, "/blog/a", "")) && is_hit(&ask(&server, "/shop", "")));
}

#[test]
fn what_is_confirmed_is_so_after_a_restart() {
    let site = Site::new();
    let application = Application::start("Cache-Control: max-age=10\r\nAge: 9\r\nETag: \"1\"\r\n");
    let server = start_writing(&site, &application, &keys(&site, ""));
    let first = ask(&server, "/", "");
    wait_for_kept(&server, 1);
    std::thread::sleep(Duration::from_millis(1100));
    application.says(
        "304 Not Modified",
        "Cache-Control: max-age=600\r\nETag: \"1\"\r\nX-New: yes\r\n",
    );
    let again = ask(&server, "/", "");
    assert_eq!(
        again.field("cache-status"),
        Some("Shortline; fwd=stale; fwd-status=304")
    );
    assert_eq!(again.body, first.body);
    wait_for("the head to be written anew", || {
        let head = fs::read_to_string(&files(&folder(&site), "head")[0]).ok()?;
        head.contains("x-new").then_some(())
    });
    assert!(is_hit(&ask(&server, "/", "")));
    drop(server);
    let server = start(&site, &application, &keys(&site, ""));
    wait_for_kept(&server, 1);
    let hit = ask(&server, "/", "");
    assert_eq!((is_hit(&hit), hit.field("x-new")), (true, Some("yes")));
    assert_eq!(hit.body, first.body);
    assert_eq!(application.asked(), 2);
}

#[test]
fn without_a_folder_that_can_be_written_all_else_goes_on() {
    let site = Site::new();
    let application = Application::start(FRESH);
    fs::write(folder(&site), "a file").unwrap();
    let keys = format!(
        "[route.cache.disk]\nfolder = \"{}\"\n",
        folder(&site).display()
    );
    let mut server = start(&site, &application, &keys);
    server.line_with("; nothing is written there");
    let first = ask(&server, "/", "");
    wait_for("the response to be kept", || {
        (status(&server)["caches"][0]["responses"] == 1).then_some(())
    });
    let again = ask(&server, "/", "");
    assert!(is_hit(&again) && again.body == first.body);
    assert_eq!(of_folder(&server)["is_writable"], false);
    assert!(!is_hit(&ask(&server, "/times/200000", "")));
}

#[test]
fn a_full_disk_is_told_once_and_memory_goes_on() {
    let site = Site::new();
    let application = Application::start(FRESH);
    let mounts = "mount -t tmpfs -o size=64k,mode=700 none \"$0\" && exec \"$@\"";
    let may = |tried: &str| {
        let mut command = Command::new("unshare");
        command
            .args(["-rm", "sh", "-c", mounts])
            .arg(folder(&site))
            .arg(tried);
        command
    };
    fs::create_dir(folder(&site)).unwrap();
    if !may("true").status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: this user may not mount a file system (unshare -rm)");
        return;
    }
    let keys = format!(
        "[route.cache.disk]\nfolder = \"{}\"\n",
        folder(&site).display()
    );
    drop(start(&site, &application, &keys));
    let mut command = may(PROGRAM);
    let mut server = Server::spawn(
        command
            .arg("serve")
            .arg("--config")
            .arg(site.beside("shortline.toml")),
    );
    wait_for("the folder", || {
        (of_folder(&server)["is_writable"] == true).then_some(())
    });
    let whole = ask(&server, "/times/20000", "");
    assert_eq!(whole.body.len(), 20_000 * "number 1 for all".len());
    server.line_with("No space left on device");
    assert!(is_hit(&ask(&server, "/times/20000", "")), "memory has it");
    assert_eq!(of_folder(&server)["responses"], 0);
    assert_eq!(ask(&server, "/other", "").status, 200);
}

#[test]
fn a_new_process_takes_the_folder_over() {
    let site = Site::new();
    let application = Application::start(FRESH);
    let more = format!(
        "[handover]\npath = \"unix:{}\"\n",
        site.beside("handover").display()
    );
    let mut before = start_writing(&site, &application, &keys(&site, &more));
    let first = ask(&before, "/", "");
    wait_for_kept(&before, 1);
    let next = start(&site, &application, &keys(&site, &more));
    // Until then it answers at the admin address, too.
    assert!(before.wait().success());
    wait_for_kept(&next, 1);
    let hit = ask(&next, "/", "");
    assert!(is_hit(&hit) && hit.body == first.body);
    wait_until_it_writes(&next);
    ask(&next, "/other", "");
    wait_for_kept(&next, 2);
}

#[test]
fn two_caches_in_one_folder_are_refused() {
    let site = Site::new();
    let route = |path: &str| {
        let cache = format!(
            "[route.cache.disk]\nfolder = \"{}\"\n",
            folder(&site).display()
        );
        format!("[[route]]\npath = \"{path}\"\nupstream = [\"127.0.0.1:1\"]\n{cache}")
    };
    fs::write(site.beside("two.toml"), route("/a") + &route("/b")).unwrap();
    let file = site.beside("two.toml");
    let ended = crate::process::shortline(
        &site.root(),
        &["serve", "--check", "--config", file.to_str().unwrap()],
    );
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("route /b: cache.disk.folder:"),
        "{}",
        ended.stderr
    );
}
