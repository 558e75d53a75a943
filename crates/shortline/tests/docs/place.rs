//! A folder and ports in the place of an operator's machine: what stands in a page for `/srv` or port 8080 is below the
//! folder and at a free port, and nothing else of the page's text is changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use regex::{Captures, Regex};
use shortline_base::port::free_port;
use tempfile::TempDir;

/// Where a path of an operator's machine begins: at the start of a word, not inside an address.
const PATH: &str = r#"(^|[\s"'=:>(])(/(?:srv|etc|var|tmp|run)/[^\s"',;)]*)"#;
/// An address of this machine with its port, or a port alone.
const ADDRESS: &str = r"(?:\b(?:127\.0\.0\.1|0\.0\.0\.0|localhost):|-p )(\d{2,5})\b";

/// The place of one page.
pub struct Place {
    folder: TempDir,
    /// The free ports, by those in the page.
    ports: BTreeMap<String, u16>,
}

impl Place {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            ports: BTreeMap::new(),
        }
    }

    /// The folder that stands for `/`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A path below the folder.
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder().join(path.trim_start_matches('/'))
    }

    /// Adds a file, with the folders above it.
    pub fn with(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// The address that stands for this port of the page.
    pub fn address(&mut self, port: &str) -> String {
        format!("127.0.0.1:{}", self.port(port))
    }

    fn port(&mut self, port: &str) -> u16 {
        let free = || free_port().unwrap();
        *self.ports.entry(port.to_owned()).or_insert_with(free)
    }

    /// A page's text for this place.
    pub fn filled(&mut self, text: &str) -> String {
        let root = self.folder().display().to_string();
        let paths = Regex::new(&format!("(?m){PATH}")).unwrap();
        let text = paths.replace_all(text, |found: &Captures<'_>| {
            format!("{}{root}{}", &found[1], &found[2])
        });
        let addresses = Regex::new(ADDRESS).unwrap();
        let address = |found: &Captures<'_>| {
            let port = self.port(&found[1]);
            match found[0].starts_with("-p") {
                true => format!("-p {port}"),
                false => format!("127.0.0.1:{port}"),
            }
        };
        addresses.replace_all(&text, address).into_owned()
    }
}

#[test]
fn paths_and_ports_are_the_tests_own_and_addresses_stay() {
    let mut place = Place::new();
    let root = place.folder().display().to_string();
    let text = "serve /srv/www --listen 0.0.0.0:80 \"/etc/a.crt\" http://localhost:80/etc/x -p 80 10.0.0.1:80";
    let port = place.address("80").split_off("127.0.0.1:".len());
    assert_eq!(
        place.filled(text),
        format!(
            "serve {root}/srv/www --listen 127.0.0.1:{port} \"{root}/etc/a.crt\" http://127.0.0.1:{port}/etc/x \
             -p {port} 10.0.0.1:80"
        )
    );
}
