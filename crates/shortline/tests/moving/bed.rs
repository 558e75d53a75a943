//! The two servers of a move, each with its configuration from docs/moving, at addresses and in a folder of the test.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use crate::answer::{Answer, Request};

/// How long a test waits for something that must happen.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where the pages and their configurations are.
const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/moving");

/// Both servers of a move. They end with it.
pub struct Bed {
    /// nginx or Caddy.
    pub theirs: Server,
    /// `shortline serve`.
    pub ours: Server,
    folder: TempDir,
}

/// What a move needs before its servers start.
pub struct Given<'a> {
    /// The configurations' name in docs/moving.
    pub name: &'a str,
    /// The names of its certificate. None: it has none.
    pub hosts: &'a [&'a str],
    /// Its applications: the address in the configurations, and that in the test.
    pub applications: &'a [(&'a str, String)],
}

/// The files below `/srv`.
pub struct Files<'a>(&'a Path);

impl Files<'_> {
    /// Adds a file.
    pub fn with(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// Adds a file of zeroes that takes no room.
    pub fn sparse(&self, name: &str, bytes: u64) -> &Self {
        self.with(name, "");
        let file = std::fs::OpenOptions::new()
            .write(true)
            .open(self.0.join(name))
            .unwrap();
        file.set_len(bytes).unwrap();
        self
    }
}

/// A running server.
pub struct Server {
    child: Child,
    plain: SocketAddr,
    /// Where it speaks TLS.
    pub secure: SocketAddr,
    trust: Option<Arc<ClientConfig>>,
}

impl Bed {
    /// nginx and ours with `NAME.nginx.conf` and `NAME.toml`. `None`: there is no nginx here.
    pub fn of_nginx(given: &Given<'_>, files: impl Fn(&Files<'_>)) -> Option<Self> {
        let program = found("nginx", "/usr/sbin/nginx")?;
        let text = |place: &Place, theirs: &Path| {
            let file = place.folder.join("nginx.conf");
            let own = place.filled(&std::fs::read_to_string(theirs).unwrap());
            std::fs::write(&file, nginx_around(place.folder, &own)).unwrap();
            // A file that is included is beside the one that includes it.
            let _ = std::fs::copy("/etc/nginx/fastcgi.conf", place.folder.join("fastcgi.conf"));
            let mut command = Command::new(&program);
            command.arg("-p").arg(place.folder).arg("-c").arg(file);
            command
        };
        Some(Self::open(given, files, "nginx.conf", text))
    }

    /// Caddy and ours with `NAME.caddyfile` and `NAME.toml`. `None`: there is no Caddy here.
    pub fn of_caddy(given: &Given<'_>, files: impl Fn(&Files<'_>)) -> Option<Self> {
        let program = std::env::var_os("CADDY").map(PathBuf::from);
        let program = program.or_else(|| found("caddy", "/usr/bin/caddy"))?;
        let text = |place: &Place, theirs: &Path| {
            let file = place.folder.join("Caddyfile");
            let own = place.filled(&std::fs::read_to_string(theirs).unwrap());
            std::fs::write(&file, caddy_around(place, &own)).unwrap();
            let mut command = Command::new(&program);
            command
                .args(["run", "--adapter", "caddyfile", "--config"])
                .arg(file);
            command
                .env("HOME", place.folder)
                .env("XDG_DATA_HOME", place.folder);
            command.env("XDG_CONFIG_HOME", place.folder);
            command
        };
        Some(Self::open(given, files, "caddyfile", text))
    }

    /// The certificate of the move's hosts.
    pub fn certificate(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.crt"))
    }

    fn open(
        given: &Given<'_>,
        files: impl Fn(&Files<'_>),
        kind: &str,
        command: impl Fn(&Place<'_>, &Path) -> Command,
    ) -> Self {
        let Given { name, hosts, .. } = given;
        let folder = tempfile::tempdir().unwrap();
        open_to_all(folder.path());
        files(&Files(&folder.path().join("srv")));
        let trust = (!hosts.is_empty()).then(|| certify(folder.path(), name, hosts));
        let place = Place::new(folder.path(), given);
        let theirs = Server::start(
            command(&place, &Path::new(DOCS).join(format!("{name}.{kind}"))),
            &place,
            &trust,
        );
        let place = Place::new(folder.path(), given);
        let file = folder.path().join("shortline.toml");
        let own = std::fs::read_to_string(Path::new(DOCS).join(format!("{name}.toml"))).unwrap();
        std::fs::write(&file, place.filled(&own)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_shortline"));
        command.args(["serve", "--config"]).arg(file);
        let ours = Server::start(command, &place, &trust);
        Self {
            theirs,
            ours,
            folder,
        }
    }
}

/// A program on the PATH, or where root has it.
fn found(name: &str, else_at: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).map(|folder| folder.join(name));
    let program = folders
        .chain([PathBuf::from(else_at)])
        .find(|program| program.is_file());
    if program.is_none() {
        eprintln!("skipped: there is no {name}");
    }
    program
}

/// What a configuration's addresses and folders are in a test.
struct Place<'a> {
    folder: &'a Path,
    plain: SocketAddr,
    secure: SocketAddr,
    applications: &'a [(&'a str, String)],
}

impl<'a> Place<'a> {
    fn new(folder: &'a Path, given: &Given<'a>) -> Self {
        // An address of this process alone, so that no other test takes its ports.
        let [.., high, low] = std::process::id().to_be_bytes();
        let host = Ipv4Addr::new(127, 78, high, low);
        let sockets = [(); 2].map(|()| TcpListener::bind((host, 0)).unwrap());
        let [plain, secure] = sockets.map(|socket| socket.local_addr().unwrap());
        Self {
            folder,
            plain,
            secure,
            applications: given.applications,
        }
    }

    fn filled(&self, text: &str) -> String {
        let folder = self.folder.display();
        let mut text = text.to_owned();
        for (configured, address) in self.applications {
            text = text.replace(configured, address);
        }
        text.replace("/srv/", &format!("{folder}/srv/"))
            .replace("/etc/ssl/", &format!("{folder}/"))
            .replace("listen 80", &format!("listen {}", self.plain))
            .replace("listen 443", &format!("listen {}", self.secure))
            .replace("0.0.0.0:80\"", &format!("{}\"", self.plain))
            .replace("0.0.0.0:443\"", &format!("{}\"", self.secure))
    }
}

/// The file around a site's that a Debian machine has, with its folders in that of the test.
fn nginx_around(folder: &Path, own: &str) -> String {
    let folder = folder.display();
    format!(
        "daemon off;\nworker_processes 1;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\n\
         events {{}}\nhttp {{\n    include /etc/nginx/mime.types;\n    access_log off;\n\
         client_body_temp_path {folder}/body;\n    proxy_temp_path {folder}/proxy;\n\
         fastcgi_temp_path {folder}/fastcgi;\n    uwsgi_temp_path {folder}/uwsgi;\n\
         scgi_temp_path {folder}/scgi;\n{own}}}\n"
    )
}

/// Caddy's global options: no admin endpoint, its ports, and no HTTP/3, which a test's client does not speak.
fn caddy_around(place: &Place<'_>, own: &str) -> String {
    let (plain, secure) = (place.plain.port(), place.secure.port());
    format!(
        "{{\n\tadmin off\n\tskip_install_trust\n\tdefault_bind {}\n\
         \thttp_port {plain}\n\thttps_port {secure}\n\tservers {{\n\t\tprotocols h1 h2\n\t}}\n}}\n{own}",
        place.plain.ip()
    )
}

/// nginx's worker is another user.
fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Makes a certificate for these hosts, and returns a client that trusts it.
fn certify(folder: &Path, name: &str, hosts: &[&str]) -> Arc<ClientConfig> {
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let made = rcgen::generate_simple_self_signed(hosts).unwrap();
    std::fs::write(folder.join(format!("{name}.crt")), made.cert.pem()).unwrap();
    std::fs::write(
        folder.join(format!("{name}.key")),
        made.signing_key.serialize_pem(),
    )
    .unwrap();
    let mut roots = RootCertStore::empty();
    let pem = made.cert.pem();
    roots
        .add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_root_certificates(roots).with_no_client_auth())
}

impl Server {
    fn start(mut command: Command, place: &Place<'_>, trust: &Option<Arc<ClientConfig>>) -> Self {
        let log = place.folder.join("log");
        let open = || {
            std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(&log)
                .unwrap()
        };
        command.stdin(Stdio::null()).stdout(open()).stderr(open());
        let mut server = Self {
            child: command.spawn().unwrap(),
            plain: place.plain,
            secure: place.secure,
            trust: trust.clone(),
        };
        server.wait_until_it_listens(&log);
        server
    }

    fn wait_until_it_listens(&mut self, log: &Path) {
        let until = Instant::now() + PATIENCE;
        let secure = self.trust.as_ref().map(|_| self.secure);
        for address in [Some(self.plain), secure].into_iter().flatten() {
            while TcpStream::connect(address).is_err() {
                let ended = self.child.try_wait().unwrap().is_some();
                let told = || std::fs::read_to_string(log).unwrap_or_default();
                assert!(!ended && Instant::now() < until, "{address}: {}", told());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// A connection over TLS for a host.
    pub fn connect(&self, host: &'static str) -> StreamOwned<ClientConnection, TcpStream> {
        let trust = self.trust.as_ref().expect("the move has a certificate");
        let name = ServerName::try_from(host).unwrap();
        let connection = ClientConnection::new(Arc::clone(trust), name).unwrap();
        StreamOwned::new(connection, open(self.secure))
    }

    /// What it answers; to a request that is sent again, what it answers then.
    pub fn ask(&self, request: &Request) -> Answer {
        let first = self.exchange(request);
        match first.etag() {
            Some(etag) if request.is_revalidated => {
                self.exchange(&request.clone().with("If-None-Match", etag))
            }
            _ => first,
        }
    }

    fn exchange(&self, request: &Request) -> Answer {
        let bytes = match request.is_secure {
            true => all(self.connect(request.host), &request.bytes()),
            false => all(open(self.plain), &request.bytes()),
        };
        Answer::parse(&bytes)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // nginx ends its workers only when it is asked to.
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

fn open(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Sends a request, and reads until the connection ends.
fn all(mut stream: impl Read + Write, request: &[u8]) -> Vec<u8> {
    stream.write_all(request).unwrap();
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        // A server may close without TLS's goodbye; the length tells whether all came.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {}
        read => drop(read.unwrap()),
    }
    bytes
}
