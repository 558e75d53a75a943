//! A responder (OCSP) that is OpenSSL's, and an authority whose certificates name it.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use shortline_base::port::free_port;

use crate::process::{Site, wait_for};

/// The program. `None`: there is none, and why the test is skipped is told.
pub fn openssl() -> Option<&'static str> {
    let mut tried = Command::new("openssl");
    match tried.arg("version").stdout(Stdio::null()).status() {
        Ok(status) if status.success() => Some("openssl"),
        _ => {
            println!("skipped: no openssl; `make setup` installs it");
            None
        }
    }
}

/// Certificates of an authority, and its responder.
pub struct Responder {
    folder: PathBuf,
    port: u16,
    child: Option<Child>,
}

impl Responder {
    /// An authority in the folder of the test, and a certificate `NAME.crt` with its chain for each of these names. They name a
    /// responder that does not run yet.
    pub fn new(site: &Site, names: &[&str]) -> Self {
        let port = free_port().unwrap();
        let responder = Self {
            folder: site.beside(""),
            port,
            child: None,
        };
        let config = format!(
            "[req]\ndistinguished_name = dn\nprompt = no\nx509_extensions = ca\n[dn]\nCN = Test\n\
             [ca]\nbasicConstraints = critical,CA:TRUE\nsubjectKeyIdentifier = hash\n\
             [signer]\nextendedKeyUsage = OCSPSigning\n\
             [server]\nbasicConstraints = critical,CA:FALSE\n\
             authorityInfoAccess = OCSP;URI:http://127.0.0.1:{port}/ocsp\nsubjectAltName = ${{ENV::NAMES}}\n"
        );
        responder.write("ca.cnf", &config);
        responder.write("index.txt", "");
        let ec = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        responder.run(
            "",
            &format!("req -x509 {ec} -config ca.cnf -keyout ca.key -out ca.crt -days 3650"),
        );
        for (serial, name) in names.iter().enumerate() {
            responder.issue(name, 4096 + serial, "server", 90);
        }
        responder
    }

    /// A certificate `NAME.crt` with its chain, and `NAME.key`, which the responder knows as good.
    pub fn issue(&self, name: &str, serial: usize, kind: &str, days: u32) {
        let ec = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        let names = format!("DNS:{name}");
        self.run(
            &names,
            &format!("req {ec} -config ca.cnf -subj /CN={name} -keyout {name}.key -out {name}.csr"),
        );
        self.run(
            &names,
            &format!(
                "x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -set_serial {serial} -days {days} -extfile ca.cnf \
                 -extensions {kind} -out {name}.leaf"
            ),
        );
        let read = |file: &str| std::fs::read_to_string(self.folder.join(file)).unwrap();
        self.write(
            &format!("{name}.crt"),
            &(read(&format!("{name}.leaf")) + &read("ca.crt")),
        );
        let known = format!(
            "{}V\t490101000000Z\t\t{serial:X}\tunknown\t/CN={name}\n",
            read("index.txt")
        );
        self.write("index.txt", &known);
    }

    /// Says from its next start that a certificate is revoked.
    pub fn revoke(&self, serial: usize) {
        let known = std::fs::read_to_string(self.folder.join("index.txt")).unwrap();
        let (good, revoked) = (
            format!("V\t490101000000Z\t\t{serial:X}\t"),
            format!("R\t490101000000Z\t240101000000Z\t{serial:X}\t"),
        );
        assert!(known.contains(&good));
        self.write("index.txt", &known.replace(&good, &revoked));
    }

    /// Answers from now on, signed with a certificate and key of this name.
    pub fn start(&mut self, signer: &str) {
        self.stop();
        let port = self.port;
        let command = format!(
            "ocsp -index index.txt -CA ca.crt -rsigner {signer} -rkey {} -port {port} -nmin 60 -ignore_err",
            signer.replace(".crt", ".key").replace(".leaf", ".key")
        );
        let child = Command::new("openssl")
            .args(command.split_whitespace())
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(File::create(self.folder.join("responder.log")).unwrap())
            .stderr(Stdio::null())
            .spawn();
        self.child = Some(child.unwrap());
        // A client that connects and says nothing keeps OpenSSL's waiting.
        wait_for("the responder", || {
            let log = std::fs::read_to_string(self.folder.join("responder.log")).ok()?;
            log.contains("ACCEPT").then_some(())
        });
    }

    /// Answers no more.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Already gone is fine.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Where it answers.
    pub fn port(&self) -> u16 {
        self.port
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).unwrap();
    }

    fn run(&self, names: &str, command: &str) {
        let ran = Command::new("openssl")
            .args(command.split_whitespace())
            .current_dir(&self.folder)
            .env("NAMES", if names.is_empty() { "DNS:a" } else { names })
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success(), "{command}: {told}");
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What OpenSSL's client sees of an OCSP response in a handshake.
pub fn seen(at: SocketAddr, name: &str, ca: &std::path::Path) -> String {
    let output = Command::new("openssl")
        .args(["s_client", "-status", "-verify_return_error", "-connect"])
        .arg(at.to_string())
        .args(["-servername", name, "-CAfile"])
        .arg(ca)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}
