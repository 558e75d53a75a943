//! docs/recipes.md shows the configurations of docs/recipes, as docs/moving.md those of docs/moving, and no others.
//! `SHORTLINE_WRITE=1 cargo test -p shortline --test docs recipes` puts them into the pages. Each is sound, and those that
//! need nothing from outside are started and asked.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use crate::configurations::check;
use crate::page::root;
use crate::place::Place;
use crate::serving::{PATIENCE, Serving};

/// Pages, each with the folder of its configurations.
const PAGES: [&str; 2] = ["moving", "recipes"];
/// Where a configuration begins; its language and its file follow.
const START: &str = "<!-- file: ";
const END: &str = "<!-- end of file -->";

#[test]
fn the_pages_show_what_is_tested() {
    for name in PAGES {
        let folder = root().join("docs").join(name);
        let path = folder.with_extension("md");
        let page = std::fs::read_to_string(&path).unwrap();
        let filled = filled(&page, &folder);
        if std::env::var_os("SHORTLINE_WRITE").is_some() {
            std::fs::write(&path, &filled).unwrap();
        }
        assert!(page == filled, "write {name}.md anew: SHORTLINE_WRITE=1");
        for file in std::fs::read_dir(&folder).unwrap() {
            let file = file.unwrap().file_name().into_string().unwrap();
            assert!(
                page.contains(&format!(" {file} -->")),
                "docs/{name}.md lacks {file}"
            );
        }
    }
}

/// The page with the text of each file that it names.
fn filled(page: &str, folder: &std::path::Path) -> String {
    let mut parts = page.split(START);
    let mut filled = parts.next().unwrap().to_owned();
    for part in parts {
        let (named, rest) = part.split_once(" -->").unwrap();
        let (language, name) = named.split_once(' ').unwrap();
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        filled += &format!("{START}{named} -->\n```{language}\n{text}```\n{END}{after}");
    }
    filled
}

fn text_of(recipe: &str) -> String {
    std::fs::read_to_string(root().join(format!("docs/recipes/{recipe}.toml"))).unwrap()
}

#[test]
fn each_recipe_is_sound() {
    for file in std::fs::read_dir(root().join("docs/recipes")).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        if let Err(problem) = check(&text) {
            panic!("{}: {problem}", path.display());
        }
    }
}

/// A recipe that is served, with its port 80.
struct Served {
    address: String,
    place: Place,
    _serving: Serving,
}

impl Served {
    fn start(recipe: &str, mut place: Place) -> Self {
        let file = place.filled(&text_of(recipe));
        let address = place.address("80");
        place.with("etc/shortline/shortline.toml", file);
        for folder in ["var/log/shortline", "run/shortline"] {
            std::fs::create_dir_all(place.path(folder)).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_shortline"));
        command
            .args(["serve", "--config"])
            .arg(place.path("etc/shortline/shortline.toml"));
        let serving = Serving::start(command).unwrap();
        Self {
            address,
            place,
            _serving: serving,
        }
    }

    /// The whole answer to a request.
    fn get(&self, target: &str, fields: &str) -> String {
        self.send(&format!(
            "GET {target} HTTP/1.1\r\nHost: localhost\r\n{fields}Connection: close\r\n\r\n"
        ))
    }

    fn send(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }
}

/// An application that answers each request with `text`, at a port that a page gives it.
fn application(place: &mut Place, port: &str, text: &'static str) {
    let address = place.address(port);
    let listener = TcpListener::bind(address).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            let body = format!("{text}\n{head}");
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
}

#[test]
fn a_single_page_application_has_its_page_for_each_path() {
    let mut place = Place::new();
    place.with("srv/app/index.html", "<p>the page\n");
    place.with("srv/app/assets/app.js", "1\n");
    application(&mut place, "9000", "the application");
    let served = Served::start("spa", place);
    let page = served.get("/settings/profile", "");
    assert!(
        page.starts_with("HTTP/1.1 200 ") && page.contains("the page"),
        "{page}"
    );
    let script = served.get("/assets/app.js", "");
    assert!(script.to_lowercase().contains("immutable"), "{script}");
    assert!(
        served
            .get("/assets/gone.js", "")
            .starts_with("HTTP/1.1 404 ")
    );
    assert!(
        served
            .get("/api/books", "")
            .contains("the application\nGET /api/books")
    );
}

#[test]
fn two_applications_share_an_address() {
    let mut place = Place::new();
    application(&mut place, "9000", "the shop");
    application(&mut place, "9001", "the wiki");
    let served = Served::start("two-apps", place);
    let get = |host: &str| {
        served.send(&format!(
            "GET /a HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        ))
    };
    assert!(get("shop.example.org").contains("the shop\nGET /a"));
    assert!(get("wiki.example.org").contains("the wiki\nGET /a"));
    assert!(get("mail.example.org").starts_with("HTTP/1.1 404 "));
}

#[test]
fn a_mirror_lists_its_files_and_sends_parts() {
    let place = Place::new();
    place.with("srv/mirror/images/disc.iso", vec![b'x'; 100_000]);
    let served = Served::start("mirror", place);
    assert!(served.get("/images/", "").contains("disc.iso"));
    let part = served.get("/images/disc.iso", "Range: bytes=5-14\r\n");
    assert!(
        part.starts_with("HTTP/1.1 206 ") && part.ends_with("\r\n\r\nxxxxxxxxxx"),
        "{part}"
    );
}

#[test]
fn behind_a_balancer_the_log_has_the_client() {
    let place = Place::new();
    place.with("srv/www/index.html", "<p>hello\n");
    let served = Served::start("balancer", place);
    let answer = served.get("/", "X-Forwarded-For: 198.51.100.7\r\n");
    assert!(answer.contains("hello"), "{answer}");
    let log = served.place.path("var/log/shortline/access.log");
    let until = std::time::Instant::now() + PATIENCE;
    loop {
        let lines = std::fs::read_to_string(&log).unwrap_or_default();
        if lines.contains("\"client\":\"198.51.100.7\"") {
            return;
        }
        assert!(std::time::Instant::now() < until, "{lines}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn at_home_the_uplinks_rate_is_what_was_given() {
    let place = Place::new();
    place.with("srv/www/index.html", "<p>hello\n");
    let mut served = Served::start("home", place);
    let admin = served.place.address("9180");
    let at_admin = Served {
        address: admin,
        ..served
    };
    let metrics = at_admin.get("/metrics", "");
    assert!(
        metrics.contains("\nshortline_link_rate_bits_per_second 18000000\n"),
        "{metrics}"
    );
}
