//! HTTP/3 in a real browser.
//!
//! Chromium takes no certificate over QUIC that it does not know an authority of, unless its key is named by a flag. The other one
//! makes it use QUIC at once, without having heard of it by `Alt-Svc`.

use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::parse_x509_certificate;

use super::client::start;
use crate::browser::{chromium, text_of};
use crate::process::Site;

/// Fetches a file and says by which protocol it and the page itself came.
const PAGE: &str = "<!doctype html><title>a</title><p id=\"page\"></p><p id=\"file\"></p><script>
fetch('hello.txt').then((answer) => answer.text()).then(() => {
  const of = (kind) => performance.getEntriesByType(kind)[0].nextHopProtocol;
  document.getElementById('page').textContent = of('navigation');
  document.getElementById('file').textContent = of('resource');
});
</script>";

/// The SHA-256 of the certificate's key, in base64, as Chromium wants it.
fn key_of(site: &Site) -> String {
    let certificate = CertificateDer::from_pem_file(site.beside("site.crt")).unwrap();
    let (_, parsed) = parse_x509_certificate(&certificate).unwrap();
    BASE64_STANDARD.encode(digest(&SHA256, parsed.public_key().raw))
}

/// What the browser noted of QUIC.
fn noted(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines = text
        .lines()
        .filter(|line| line.contains("quic_error") || line.contains("net_error"));
    lines.take(20).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_browser_gets_a_page_and_its_files_over_http_3() {
    let site = Site::new().with("page.html", PAGE);
    let server = start(&site, &[]);
    let port = server.address().port();
    let profile = tempfile::tempdir().unwrap();
    let log = site.beside("net.json");
    let output = chromium(profile.path())
        .arg(format!("--origin-to-force-quic-on=localhost:{port}"))
        .arg(format!(
            "--ignore-certificate-errors-spki-list={}",
            key_of(&site)
        ))
        .arg("--host-resolver-rules=MAP localhost 127.0.0.1")
        .arg(format!("--log-net-log={}", log.display()))
        .arg("--dump-dom")
        .arg(format!("https://localhost:{port}/page.html"))
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: chromium: {error} (scripts/setup installs it)");
            return;
        }
    };
    let document = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        document.contains("id=\"page\""),
        "{document}\n{}",
        noted(&log)
    );
    assert_eq!(text_of(&document, "page"), "h3", "{}", noted(&log));
    assert_eq!(text_of(&document, "file"), "h3", "{}", noted(&log));
}
