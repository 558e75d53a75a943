//! Pages in a real browser while the uplink has more to send than it can: what they show, not when. With
//! `SHORTLINE_PICTURES=FOLDER` pictures of them are left there, on a desk and on a phone, dark and light.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use crate::admin::status;
use crate::browser::{chromium, document_at, text_of};
use crate::client::{connect, exchange, get, parse};
use crate::php::Fpm;
use crate::process::{PROGRAM, Server, Site, wait_for};

/// Days of the uplink, so that no download ends before its test.
const LARGE_BYTES: u64 = 10 << 30;
/// Downloads under way.
const DOWNLOADS: usize = 6;
/// Where the servers' keys are.
const UPLINK: &str = "[uplink]\nrate = \"2mbit\"\nloopback = true\n";

/// Adds a file for downloads, which takes no room.
fn with_large(site: &Site) {
    let file = std::fs::File::create(site.root().join("large.iso")).unwrap();
    file.set_len(LARGE_BYTES).unwrap();
}

/// Downloads that are under way as long as this is held.
struct Overload(Vec<TcpStream>);

impl Overload {
    fn begin(server: &Server) -> Self {
        let download = |_| {
            let mut stream = connect(server.address());
            stream
                .write_all(b"GET /large.iso HTTP/1.1\r\nHost: a\r\n\r\n")
                .unwrap();
            let mut reader = stream.try_clone().unwrap();
            std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
            stream
        };
        let overload = Self((0..DOWNLOADS).map(download).collect());
        wait_for("downloads that wait for each other", || {
            overload.goes_on(server).then_some(())
        });
        overload
    }

    /// Whether all of them are still under way.
    fn goes_on(&self, server: &Server) -> bool {
        status(server)["link"]["jobs"].as_u64() >= Some(self.0.len() as u64)
    }
}

impl Drop for Overload {
    fn drop(&mut self) {
        for stream in &self.0 {
            // Already gone is fine.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// Leaves pictures of a page in the folder `SHORTLINE_PICTURES`, if it is set: as wide as a desk's screen and a phone's, dark and
/// light.
fn pictures(name: &str, page: &str) {
    let Some(folder) = std::env::var_os("SHORTLINE_PICTURES") else {
        return;
    };
    for (width, height) in [(1280, 1600), (390, 2400)] {
        for (scheme, number) in [("dark", 0), ("light", 1)] {
            let file = Path::new(&folder).join(format!("{name}-{width}-{scheme}.png"));
            let profile = tempfile::tempdir().unwrap();
            let taken = chromium(profile.path())
                .arg(format!("--window-size={width},{height}"))
                .arg(format!("--blink-settings=preferredColorScheme={number}"))
                .arg(format!("--screenshot={}", file.display()))
                .arg(page)
                .status();
            assert!(taken.unwrap().success() && file.is_file(), "{file:?}");
        }
    }
}

fn serve(site: &Site, more: &str) -> Server {
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n{UPLINK}{more}",
    );
    let file = site.beside("pictures.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg("serve").arg("--config").arg(file);
    Server::spawn(&mut command)
}

#[test]
fn a_single_page_application_opens_under_an_overload() {
    let site = Site::new()
        .with("index.html", include_str!("app/index.html"))
        .with("assets/app.css", include_str!("app/app.css"))
        .with("assets/app.js", include_str!("app/app.js"))
        .with("data.json", "{\"name\": \"Ada\", \"letters\": 12}");
    with_large(&site);
    let root = site.root();
    let more = format!(
        "[site]\nroot = \"{}\"\n[[site.rule]]\ntry-files = [\"{{path}}\", \"/index.html\"]\n",
        root.display()
    );
    let server = serve(&site, &more);
    let overload = Overload::begin(&server);
    let page = format!("http://{}/settings/profile", server.address());
    let Some(document) = document_at(&page) else {
        return;
    };
    assert_eq!(text_of(&document, "path"), "/settings/profile");
    assert_eq!(text_of(&document, "name"), "Ada");
    assert_eq!(text_of(&document, "letters"), "12 letters");
    pictures("app", &page);
    assert!(overload.goes_on(&server));
}

#[test]
fn a_site_of_php_programs_opens_under_an_overload() {
    let Some(fpm) = Fpm::start() else { return };
    with_large(&fpm.site);
    let server = fpm.serve_with(UPLINK, "", "");
    let overload = Overload::begin(&server);
    let page = format!("http://{}/page/eve?page=3", server.address());
    let Some(document) = document_at(&page) else {
        return;
    };
    assert_eq!(text_of(&document, "hello"), "hello eve, page 3");
    assert_eq!(text_of(&document, "styled"), "styled");
    pictures("php", &page);
    assert!(overload.goes_on(&server));
}

#[test]
fn the_live_page_tells_of_an_overload() {
    let site = Site::new();
    with_large(&site);
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let more = format!(
        "[[site]]\nroot = \"{0}\"\n[[site]]\nnames = [\"shop.example\", \"*.shop.example\"]\nroot = \"{0}\"\n\
         [[site.route]]\npath = \"/app\"\nupstream = [\"{nobody}\"]\n",
        site.root().display()
    );
    let server = serve(&site, &more);
    let overload = Overload::begin(&server);
    for _ in 0..5 {
        assert_eq!(get(server.address(), "/hello.txt").status, 200);
    }
    let failed = parse(&exchange(
        server.address(),
        b"GET /app/x HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n",
    ));
    assert_eq!(failed.status, 502);
    wait_for("the chart's third sample", || {
        let history = get(server.admin.unwrap(), "/history").body;
        let samples: Vec<serde_json::Value> = serde_json::from_slice(&history).unwrap();
        (samples.len() > 2).then_some(())
    });
    let page = format!("http://{}/", server.admin.unwrap());
    let Some(document) = document_at(&page) else {
        return;
    };
    assert_eq!(text_of(&document, "live"), "live");
    let waiting: usize = text_of(&document, "waiting").parse().unwrap();
    assert!(waiting > 0, "{document}");
    assert_eq!(text_of(&document, "uplink"), "2 Mbit/s");
    for part in ["shop.example", "above 1 MB", "a request failed"] {
        assert!(document.contains(part), "no {part} in {document}");
    }
    pictures("live", &page);
    assert!(overload.goes_on(&server));
}
