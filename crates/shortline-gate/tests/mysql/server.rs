//! A real MariaDB of Debian's in a folder of its own, stopped and removed however the tests end.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const START_TIME_MAX: Duration = Duration::from_secs(60);
const SERVER: &str = "/usr/sbin/mariadbd";
const INSTALL: &str = "/usr/bin/mariadb-install-db";
/// Runs a server until it is told something, or its standard input ends, which is when the tests do,
/// however they do; then it removes the folder too.
const KEEPER: &str = r#"
    folder=$1; shift; "$@" </dev/null & server=$!
    read word; kill -9 $server; wait $server
    [ "$word" = keep ] || rm -rf "$folder""#;

/// Statements that make what the tests need.
const SETUP: &str = "
    CREATE DATABASE shop;
    CREATE USER native@'%' IDENTIFIED BY 'secret';
    CREATE USER ed@'%' IDENTIFIED VIA ed25519 USING PASSWORD('secret');
    CREATE USER tls@'%' IDENTIFIED BY 'secret' REQUIRE SSL;
    GRANT ALL ON *.* TO native@'%';
    GRANT ALL ON *.* TO ed@'%';
";

/// A server.
pub struct Server {
    pub address: SocketAddr,
    folder: PathBuf,
    /// The authority that vouches for its certificate, in PEM.
    pub authority: PathBuf,
    pub cert: PathBuf,
    pub key: PathBuf,
    keeper: Option<Child>,
}

/// The server that tests share which leave it as it is. None without MariaDB: the test is skipped.
pub fn shared() -> Option<&'static Server> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    SHARED.get_or_init(Server::own).as_ref()
}

impl Server {
    /// A server of the test's own. None without MariaDB: the test is skipped.
    pub fn own() -> Option<Self> {
        if !Path::new(SERVER).exists() || !Path::new(INSTALL).exists() {
            eprintln!("skipped: no MariaDB here; scripts/setup installs mariadb-server");
            return None;
        }
        let folder = tempfile::Builder::new()
            .prefix("shortline-mariadb-")
            .tempdir()
            .unwrap()
            .keep();
        let port = shortline_base::port::free_port().unwrap();
        let mut server = Self {
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            authority: folder.join("authority.pem"),
            cert: folder.join("server.pem"),
            key: folder.join("server.key"),
            folder,
            keeper: None,
        };
        server.install();
        server.run();
        server.query(SETUP);
        Some(server)
    }

    /// Its own: as it starts, MariaDB removes the temporary tables of every other server in its
    /// folder for temporary files, and a server that is being installed then ends.
    fn temporary(&self) -> PathBuf {
        self.folder.join("temporary")
    }

    fn install(&self) {
        let user = mysql_user();
        std::fs::create_dir(self.temporary()).unwrap();
        make_certificates(&self.authority, &self.cert, &self.key);
        if let Some((user, group)) = user {
            let temporary = self.temporary();
            for path in [
                &self.folder,
                &temporary,
                &self.key,
                &self.cert,
                &self.authority,
            ] {
                chown(path, Some(user), Some(group)).unwrap();
            }
        }
        let installed = Command::new(INSTALL)
            .env("TMPDIR", self.temporary())
            .arg("--no-defaults")
            .arg(format!("--datadir={}", self.folder.join("data").display()))
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            .args(user.map(|_| "--user=mysql"))
            .output()
            .unwrap();
        assert!(
            installed.status.success(),
            "{}",
            String::from_utf8_lossy(&installed.stderr)
        );
    }

    /// Starts it, again.
    pub fn run(&mut self) {
        let folder = &self.folder;
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(folder)
            .arg(SERVER)
            .arg("--no-defaults")
            .arg(format!("--tmpdir={}", self.temporary().display()))
            .arg(format!("--datadir={}", folder.join("data").display()))
            .arg(format!("--socket={}", folder.join("socket").display()))
            .arg(format!("--pid-file={}", folder.join("pid").display()))
            .arg(format!("--port={}", self.address.port()))
            .arg(format!("--ssl-cert={}", self.cert.display()))
            .arg(format!("--ssl-key={}", self.key.display()))
            .args([
                "--bind-address=127.0.0.1",
                "--skip-name-resolve",
                "--local-infile=1",
                // A client from there may say who it is, and need not.
                "--proxy-protocol-networks=127.0.0.1",
            ])
            .args([
                "--innodb-buffer-pool-size=32M",
                "--innodb-log-file-size=8M",
                "--innodb-flush-log-at-trx-commit=2",
            ])
            .args(["--max-allowed-packet=64M", "--plugin-load-add=auth_ed25519"])
            .args(["--log-bin=binlog", "--server-id=1", "--max-connections=300"])
            .args(mysql_user().map(|_| "--user=mysql"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.keeper = Some(keeper);
        self.await_greeting();
    }

    fn await_greeting(&self) {
        let begun = Instant::now();
        loop {
            let greeted = TcpStream::connect(self.address)
                .and_then(|mut socket| socket.read_exact(&mut [0; 5]));
            if greeted.is_ok() {
                return;
            }
            let log = || std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(
                begun.elapsed() < START_TIME_MAX,
                "MariaDB does not start: {}",
                log()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            if let Some(mut told) = keeper.stdin.take() {
                told.write_all(b"keep\n").unwrap();
            }
            keeper.wait().unwrap();
        }
    }

    /// Runs statements as root, past the gate.
    pub fn query(&self, statements: &str) -> String {
        let output = client(self.address, "root", &[])
            .args(["-N", "-e", statements])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The `mariadb` program against an address. The users' password, if not root, is `secret`.
pub fn client(address: SocketAddr, user: &str, options: &[&str]) -> Command {
    let mut command = Command::new("mariadb");
    command
        .arg("--no-defaults")
        .args([
            "-h",
            "127.0.0.1",
            "-P",
            &address.port().to_string(),
            "-u",
            user,
        ])
        .args(["--connect-timeout=20"])
        .args(options);
    if user != "root" {
        command.arg("-psecret");
    }
    command
}

/// Root may not run the server; then the package's user does.
fn mysql_user() -> Option<(u32, u32)> {
    let id = |option: &str, name: Option<&str>| {
        let output = Command::new("id").arg(option).args(name).output().ok()?;
        String::from_utf8(output.stdout)
            .ok()?
            .trim()
            .parse::<u32>()
            .ok()
    };
    if id("-u", None) != Some(0) {
        return None;
    }
    Some((id("-u", Some("mysql"))?, id("-g", Some("mysql"))?))
}

fn make_certificates(authority: &Path, cert: &Path, key: &Path) {
    let mut of_authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    of_authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    // Another name than the server's, or OpenSSL takes that for self-signed.
    of_authority
        .distinguished_name
        .push(rcgen::DnType::CommonName, "authority of the tests");
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let signed = of_authority.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::new(of_authority, authority_key);
    let server_key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let of_server = rcgen::CertificateParams::new(names).unwrap();
    let server = of_server.signed_by(&server_key, &issuer).unwrap();
    std::fs::write(authority, signed.pem()).unwrap();
    std::fs::write(cert, server.pem()).unwrap();
    std::fs::write(key, server_key.serialize_pem()).unwrap();
}
