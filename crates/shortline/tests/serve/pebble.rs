//! Pebble, the ACME server for tests of Let's Encrypt, as a process that ends with the test. It makes trouble on purpose: it
//! refuses nonces at random, checks again what it knows, and has another key each time.
//!
//! Debian's is from 2023 and gives no advice on renewal (ARI). `scripts/pebble/build` builds a newer one with go.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use shortline_base::port::free_port;

use crate::process::{Site, wait_for};
use crate::sites::over_tls_for;

/// A running authority.
pub struct Pebble {
    children: Vec<Child>,
    /// Where it answers ACME.
    pub port: u16,
    management: u16,
    /// Where it looks for texts.
    pub http: u16,
    /// Where it looks for certificates.
    pub tls: u16,
    /// The certificate of its own server.
    pub ca: PathBuf,
}

/// A program that may not be installed.
fn program(name: &str) -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/tools")
        .join(name);
    let in_path = std::env::var_os("PATH").unwrap_or_default();
    let in_path: Vec<PathBuf> = std::env::split_paths(&in_path)
        .map(|folder| folder.join(name))
        .collect();
    std::iter::once(built)
        .chain(in_path)
        .find(|path| path.exists())
}

impl Pebble {
    /// Starts it beside a site. Certificates are valid for so many seconds. `None`: it is not installed, and why the test is
    /// skipped is told.
    pub fn start(site: &Site, valid_s: u64) -> Option<Self> {
        Self::start_with(site, valid_s, &json!({}))
    }

    /// The same, which only orders for accounts with one of these keys, if there are some, by what they are called.
    pub fn start_with(site: &Site, valid_s: u64, keys: &Value) -> Option<Self> {
        let is_bound = keys.as_object().is_some_and(|keys| !keys.is_empty());
        let (Some(server), Some(names)) = (program("pebble"), program("pebble-challtestsrv"))
        else {
            println!("skipped: no pebble; `make setup` installs it");
            return None;
        };
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (ca, key) = (site.beside("pebble.crt"), site.beside("pebble.key"));
        std::fs::write(&ca, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let [port, management, http, tls, dns, dns_management] =
            [(); 6].map(|()| free_port().unwrap());
        let config = json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{port}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": ca, "privateKey": key, "httpPort": http, "tlsPort": tls,
            "ocspResponderURL": "", "externalAccountBindingRequired": is_bound, "externalAccountMACKeys": keys,
            "certificateValidityPeriod": valid_s,
            "profiles": {"default": {"description": "", "validityPeriod": valid_s}},
            "retryAfter": {"authz": 1, "order": 1},
        }});
        std::fs::write(site.beside("pebble.json"), config.to_string()).unwrap();
        let at = |port: u16| format!("127.0.0.1:{port}");
        let mut resolver = Command::new(names);
        resolver.args([
            "-http01",
            "",
            "-https01",
            "",
            "-tlsalpn01",
            "",
            "-defaultIPv6",
            "",
        ]);
        resolver.args(["-dns01", &at(dns), "-management", &at(dns_management)]);
        let mut pebble = Command::new(server);
        pebble.arg("-config").arg(site.beside("pebble.json"));
        pebble.args(["-strict", "-dnsserver", &at(dns)]);
        pebble.env("PEBBLE_VA_NOSLEEP", "1");
        pebble.env("PEBBLE_WFE_NONCEREJECT", "20");
        pebble.env("PEBBLE_AUTHZREUSE", "0");
        let children = [resolver, pebble].map(|mut command| {
            let silent = command.stdout(Stdio::null()).stderr(Stdio::null());
            silent.spawn().unwrap()
        });
        let pebble = Self {
            children: children.into(),
            port,
            management,
            http,
            tls,
            ca,
        };
        for port in [port, management] {
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            wait_for("pebble", || TcpStream::connect(address).ok());
        }
        Some(pebble)
    }

    /// The table `[acme]` for this authority, with more keys.
    pub fn table(&self, keys: &str) -> String {
        format!(
            "[acme]\ndirectory = \"https://localhost:{}/dir\"\nca = \"{}\"\nstate = \"FOLDER/state\"\n{keys}\n",
            self.port,
            self.ca.display()
        )
    }

    /// Two addresses, where it looks.
    pub fn listen(&self) -> String {
        listen(self.http, self.tls)
    }

    /// What it answers at its own addresses.
    fn ask(&self, port: u16, request: &str) -> Vec<u8> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let answer = over_tls_for(address, &self.ca, "localhost", request).unwrap();
        assert_eq!(
            answer.status,
            200,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
        answer.body
    }

    fn get(&self, port: u16, path: &str) -> Vec<u8> {
        self.ask(
            port,
            &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: a\r\nConnection: close\r\n\r\n"),
        )
    }

    /// Whether it gives advice on when to renew.
    pub fn has_advice(&self) -> bool {
        let directory: Value = serde_json::from_slice(&self.get(self.port, "/dir")).unwrap();
        directory.get("renewalInfo").is_some()
    }

    /// Advises that a certificate be renewed from one second since 1970 to another, given as dates.
    pub fn advise(&self, certificate: &str, from: &str, until: &str) {
        let window = json!({"suggestedWindow": {"start": from, "end": until}});
        let body =
            json!({"Certificate": certificate, "ARIResponse": window.to_string()}).to_string();
        let fields = format!(
            "Host: localhost\r\nUser-Agent: a\r\nConnection: close\r\nContent-Length: {}",
            body.len()
        );
        let request = format!("POST /set-renewal-info/ HTTP/1.1\r\n{fields}\r\n\r\n{body}");
        self.ask(self.management, &request);
    }

    /// The root of the certificates that it issues, as a file.
    pub fn root(&self, site: &Site) -> PathBuf {
        let path = site.beside("issued.crt");
        std::fs::write(&path, self.get(self.management, "/roots/0")).unwrap();
        path
    }

    /// Whether it has revoked a certificate of a file.
    pub fn has_revoked(&self, certificate: &CertificateDer<'_>) -> bool {
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate).unwrap();
        let serial: String = parsed
            .raw_serial()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let serial = serial.trim_start_matches('0');
        let status = self.get(self.management, &format!("/cert-status-by-serial/{serial}"));
        let status: Value = serde_json::from_slice(&status).unwrap();
        status["Status"] == "Revoked"
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Already gone is fine.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Two addresses: one in plain HTTP, one with TLS.
pub fn listen(http: u16, tls: u16) -> String {
    format!(
        "[[listen]]\naddress = \"127.0.0.1:{http}\"\n[[listen]]\naddress = \"127.0.0.1:{tls}\"\ntls = true\n\
         [admin]\naddress = \"127.0.0.1:0\"\n"
    )
}

/// The first certificate of a file in the folder of the state.
pub fn kept(site: &Site, name: &str) -> Option<CertificateDer<'static>> {
    let mut authorities = std::fs::read_dir(site.beside("state")).ok()?;
    let authority = authorities.next()?.ok()?.path();
    let path = authority.join("certificates").join(format!("{name}.pem"));
    CertificateDer::from_pem_file(path).ok()
}
