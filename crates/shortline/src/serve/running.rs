//! A running server: start, signals, end.
//!
//! SIGHUP reads the whole configuration again. It exchanges everything at once, or keeps everything
//! as it is and says why. It reopens the access log either way. Connections and responses under way
//! keep the settings they were accepted under. Addresses stay: a listening socket cannot be
//! exchanged without losing the connections that wait in it.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustls::sign::CertifiedKey;
use sd_notify::NotifyState;
use shortline_link::Link;
use shortline_tls::{Certificate, NamedCertificates, Shown};
use shortline_web::server::{ALPN, Listener, Server};
use shortline_web::{AccessLog, Settings as WebSettings};
use tokio::task::JoinHandle;

use super::Args;
use super::options::LogOptions;
use super::routes::OpenRoutes;
use super::settings::{self, Settings};
use super::sites::{self, open::OpenSites};
use super::sockets::{self, Bound};
use super::start_line;
use super::status::{Status, StatusPages};
use crate::file::Listen;
use shortline_command::CommandError;
use shortline_daemon::access_log::LogWriter;
use shortline_daemon::admin::{self, Hosts};
use shortline_daemon::process::{Instruction, Signals, notify, tell_reload};
use shortline_daemon::sockets::bind;

const LOG_LINES_MAX: usize = 8192;
/// How often to check whether the last response of a replaced uplink is gone.
const RETIRE_EVERY: Duration = Duration::from_secs(1);

/// Serves until a signal ends the server.
///
/// # Errors
/// [`CommandError::Failure`]: a file, certificate or address cannot be used.
pub async fn run(args: Args, settings: Settings) -> Result<(), CommandError> {
    let mut signals = Signals::new()?;
    let (mut running, listeners) = Running::start(args, settings)?;
    let server = Arc::clone(&running.server);
    let accepting = tokio::spawn(async move { server.run(listeners).await });
    notify(&[NotifyState::Ready]);
    while signals.next().await == Instruction::Reload {
        tell_reload(running.reload());
    }
    notify(&[NotifyState::Stopping]);
    let closed = running.drain(&mut signals).await;
    if closed > 0 {
        tracing::warn!("closed {closed} connections with responses under way");
    }
    match accepting.await {
        Ok(result) => result.map_err(CommandError::failure),
        Err(panic) => Err(CommandError::failure(panic)),
    }
}

/// Opens all that `settings` name, except addresses and logs, and prints what would be served.
///
/// # Errors
/// [`CommandError::Failure`]: a folder or certificate cannot be used.
pub async fn check(settings: &Settings) -> Result<(), CommandError> {
    let routes = open_routes(settings, &OpenRoutes::default())?;
    let secure = settings.listen.iter().filter(|listen| listen.speaks_tls());
    let https_port = https_port(secure.map(|listen| listen.address));
    open_sites(settings, &routes, https_port)?;
    for listen in &settings.listen {
        load_key(listen)?;
    }
    println!("sound: {}", start_line::render(settings));
    Ok(())
}

/// A link, and the task that makes its grants.
struct RunningLink {
    link: Arc<Link>,
    task: JoinHandle<()>,
}

/// The current log. The admin endpoint counts its losses.
type LogInForce = Arc<Mutex<Option<Arc<LogWriter>>>>;
/// The current routes. The admin endpoint shows their gates.
type RoutesInForce = Arc<Mutex<OpenRoutes>>;

/// A listening socket, with what a reload needs of it.
struct Port {
    listen: Listen,
    certificate: Option<Arc<Certificate>>,
    /// A duplicate of the socket, for a new link to set options on.
    socket: TcpListener,
}

/// The server, with all that a reload exchanges.
struct Running {
    args: Args,
    settings: Settings,
    server: Arc<Server>,
    link: RunningLink,
    routes: RoutesInForce,
    log: LogInForce,
    ports: Vec<Port>,
    /// The certificates of sites.
    named: Arc<NamedCertificates>,
}

impl Running {
    fn start(args: Args, settings: Settings) -> Result<(Self, Vec<Listener>), CommandError> {
        let log = open_log(&settings.log)?;
        let named = Arc::new(NamedCertificates::default());
        let mut ports = Vec::new();
        let mut listeners = Vec::new();
        for bound in sockets::open_all(&args, &settings)? {
            let (port, listener) = Port::open(bound, &named)?;
            ports.push(port);
            listeners.push(listener);
        }
        // Before the addresses are announced: a client that connects then must find the sockets
        // ready.
        let link = start_link(&settings, &ports)?;
        let routes = open_routes(&settings, &OpenRoutes::default())?;
        let opened = open_sites(&settings, &routes, https_port(secure(&ports)))?;
        named.replace(opened.certificates);
        let web = WebSettings {
            sites: opened.sites,
            limits: settings.limits.clone(),
            clients: settings.clients.clone(),
            link: Arc::clone(&link.link),
        };
        let running = Self {
            server: Server::new(web, as_access_log(log.as_ref())),
            args,
            settings,
            link,
            routes: Arc::new(Mutex::new(routes)),
            log: Arc::new(Mutex::new(log)),
            ports,
            named,
        };
        running.start_admin()?;
        running.ports.iter().for_each(Port::announce);
        // A reader that waited only for the addresses may have stopped reading.
        let told = start_line::render(&running.settings);
        let _ = writeln!(std::io::stderr(), "shortline: {told}");
        Ok((running, listeners))
    }

    fn start_admin(&self) -> Result<(), CommandError> {
        let Some(address) = self.settings.admin.address else {
            return Ok(());
        };
        let socket = bind(address)?;
        let connections_max = self.settings.admin.connections_max;
        let server = Arc::clone(&self.server);
        let log = Arc::clone(&self.log);
        let routes = Arc::clone(&self.routes);
        let started = Instant::now();
        let status = move || Status {
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: started.elapsed().as_secs_f64(),
            link: server.link_snapshot(),
            server: server.snapshot(),
            gates: routes.lock().gates(),
            access_log_dropped_total: log.lock().as_ref().map_or(0, |log| log.dropped_total()),
        };
        let pages = StatusPages(Box::new(status));
        let hosts = self.settings.admin.host.as_deref().unwrap_or_default();
        admin::start(socket, connections_max, Hosts::new(hosts), pages)
            .map(drop)
            .map_err(CommandError::failure)
    }

    /// Reloads. The log is reopened in any case: whoever rotated it waits for that, whatever the
    /// file says.
    fn reload(&mut self) -> Result<(), CommandError> {
        let result = self.exchange();
        if result.is_err() {
            self.exchange_log(None);
        }
        result
    }

    /// Does everything that can fail first, then everything that cannot.
    fn exchange(&mut self) -> Result<(), CommandError> {
        let settings = settings::read(&self.args)?;
        refuse_new_addresses(&self.settings, &settings)?;
        let keys = self.load_keys(&settings)?;
        let log = (settings.log != self.settings.log)
            .then(|| open_log(&settings.log))
            .transpose()?;
        let link = (settings.uplink != self.settings.uplink)
            .then(|| start_link(&settings, &self.ports))
            .transpose()?;
        let routes = match same_routes(&settings, &self.settings) {
            true => self.routes.lock().clone(),
            false => open_routes(&settings, &self.routes.lock())?,
        };
        let opened = open_sites(&settings, &routes, https_port(secure(&self.ports)))?;

        self.named.replace(opened.certificates);
        for (certificate, key) in keys {
            certificate.replace(key);
        }
        self.exchange_log(log);
        if let Some(link) = link {
            std::mem::replace(&mut self.link, link).retire();
        }
        *self.routes.lock() = routes;
        self.server.replace(WebSettings {
            sites: opened.sites,
            limits: settings.limits.clone(),
            clients: settings.clients.clone(),
            link: Arc::clone(&self.link.link),
        });
        self.settings = settings;
        Ok(())
    }

    fn load_keys(
        &self,
        settings: &Settings,
    ) -> Result<Vec<(Arc<Certificate>, CertifiedKey)>, CommandError> {
        let mut keys = Vec::new();
        for port in &self.ports {
            let named = settings
                .listen
                .iter()
                .find(|listen| listen.address == port.listen.address);
            if let (Some(certificate), Some(key)) =
                (&port.certificate, load_key(named.unwrap_or(&port.listen))?)
            {
                keys.push((Arc::clone(certificate), key));
            }
        }
        Ok(keys)
    }

    /// Switches to a new log. Without one, reopens the old log's file.
    fn exchange_log(&self, new: Option<Option<Arc<LogWriter>>>) {
        match new {
            Some(log) => {
                self.server.set_access_log(as_access_log(log.as_ref()));
                *self.log.lock() = log;
            }
            None => {
                if let Some(log) = &*self.log.lock() {
                    log.reopen();
                }
            }
        }
    }

    /// Lets responses finish until the deadline or the next signal. Returns how many connections
    /// had to be closed.
    async fn drain(self, signals: &mut Signals) -> usize {
        // Otherwise connections would go on to wait in these.
        drop(self.ports);
        let closed = tokio::select! {
            closed = self.server.drain(self.settings.drain_time_max) => closed,
            () = signals.end() => self.server.drain(Duration::ZERO).await,
        };
        // The last holder of the log writes what is left of it.
        self.server.set_access_log(None);
        *self.log.lock() = None;
        closed
    }
}

/// Starts a link, with the listening sockets set up for it.
fn start_link(settings: &Settings, ports: &[Port]) -> Result<RunningLink, CommandError> {
    let new = RunningLink::start(settings)?;
    for port in ports {
        new.link
            .prepare_listener(&port.socket)
            .map_err(CommandError::failure)?;
    }
    Ok(new)
}

impl Port {
    fn open(
        bound: Bound,
        named: &Arc<NamedCertificates>,
    ) -> Result<(Self, Listener), CommandError> {
        let certificate = load_key(&bound.listen)?.map(Certificate::new);
        let shown = bound.listen.speaks_tls().then(|| Shown {
            own: certificate.clone(),
            named: Arc::clone(named),
        });
        let tls = shown
            .map(|shown| shown.server_config(ALPN))
            .transpose()
            .map_err(CommandError::failure)?;
        let port = Self {
            listen: bound.listen,
            certificate,
            socket: bound.socket.try_clone().map_err(CommandError::failure)?,
        };
        let listener = Listener {
            socket: bound.socket,
            tls,
        };
        Ok((port, listener))
    }

    /// Announces the addresses; with port 0 the kernel chose the port.
    fn announce(&self) {
        let protocol = if self.listen.speaks_tls() {
            "https"
        } else {
            "http"
        };
        let address = self.socket.local_addr().unwrap_or(self.listen.address);
        eprintln!("shortline: listening on {address} ({protocol})");
    }
}

impl RunningLink {
    fn start(settings: &Settings) -> Result<Self, CommandError> {
        let link = Link::new(settings.link.clone()).map_err(CommandError::failure)?;
        let pacer = Arc::clone(&link);
        let task = tokio::spawn(async move {
            if let Err(error) = pacer.run().await {
                tracing::error!("uplink: {error}");
            }
        });
        Ok(Self { link, task })
    }

    /// Runs on for the connections accepted under it, and ends with the last of them.
    fn retire(self) {
        tokio::spawn(async move {
            // Two references are left at the end: ours and the task's own.
            while Arc::strong_count(&self.link) > 2 {
                tokio::time::sleep(RETIRE_EVERY).await;
            }
            self.task.abort();
        });
    }
}

fn refuse_new_addresses(old: &Settings, new: &Settings) -> Result<(), CommandError> {
    let ports = |settings: &Settings| -> Vec<(SocketAddr, bool)> {
        let listen = settings.listen.iter();
        listen
            .map(|listen| (listen.address, listen.speaks_tls()))
            .collect()
    };
    if ports(old) != ports(new) {
        return Err(CommandError::usage(
            "listen: addresses, and whether they speak TLS, change at a restart only",
        ));
    }
    if old.admin != new.admin {
        return Err(CommandError::usage(
            "admin: the address, its limit and its names change at a restart only",
        ));
    }
    Ok(())
}

fn open_sites(
    settings: &Settings,
    routes: &OpenRoutes,
    https_port: Option<u16>,
) -> Result<OpenSites, CommandError> {
    sites::open::open(&settings.sites, &settings.cache, &routes.routes, https_port)
        .map_err(CommandError::failure)
}

/// The port to which plain HTTP is redirected: 443 if that speaks TLS, else the first that does.
fn https_port(secure: impl Iterator<Item = SocketAddr>) -> Option<u16> {
    let mut ports = secure.map(|address| address.port());
    let first = ports.next()?;
    Some(ports.find(|port| *port == 443).unwrap_or(first))
}

/// The addresses that speak TLS.
fn secure(ports: &[Port]) -> impl Iterator<Item = SocketAddr> {
    let secure = ports.iter().filter(|port| port.listen.speaks_tls());
    secure.filter_map(|port| port.socket.local_addr().ok())
}

fn open_routes(settings: &Settings, before: &OpenRoutes) -> Result<OpenRoutes, CommandError> {
    let sites = settings.sites.iter().map(|site| site.routes.as_slice());
    OpenRoutes::new(sites, before).map_err(CommandError::failure)
}

fn same_routes(settings: &Settings, before: &Settings) -> bool {
    let routes = settings.sites.iter().map(|site| &site.routes);
    routes.eq(before.sites.iter().map(|site| &site.routes))
}

fn open_log(options: &LogOptions) -> Result<Option<Arc<LogWriter>>, CommandError> {
    let lines_max = options.lines_max.map_or(LOG_LINES_MAX, NonZeroUsize::get);
    let path = options.access.as_deref();
    path.map(|path| LogWriter::open(path, lines_max))
        .transpose()
        .map_err(CommandError::failure)
}

fn as_access_log(log: Option<&Arc<LogWriter>>) -> Option<Arc<dyn AccessLog>> {
    log.map(|log| Arc::clone(log) as Arc<dyn AccessLog>)
}

fn load_key(listen: &Listen) -> Result<Option<CertifiedKey>, CommandError> {
    match (&listen.tls_cert, &listen.tls_key) {
        (Some(cert), Some(key)) => shortline_tls::load(cert, key)
            .map(Some)
            .map_err(CommandError::failure),
        _ => Ok(None),
    }
}
