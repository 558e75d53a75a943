//! A running server: start, signals, end.
//!
//! SIGHUP reads the whole configuration again. It exchanges everything at once, or keeps everything
//! as it is and says why. It reopens the access log either way. Connections and responses under way
//! keep the settings they were accepted under, also at an address that is given up.

mod admin;
mod handing_over;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sd_notify::NotifyState;
use shortline_link::Link;
use shortline_tls::{Certificate, NamedCertificates};
use shortline_web::server::{Server, Socket};
use shortline_web::{AccessLogs, Settings as WebSettings};
use tokio::task::JoinHandle;

use admin::Admin;

use super::Args;
use super::certificates::{self, Certificates};
use super::handover;
use super::logs::{self, Logs};
use super::ports::{self, Port};
use super::routes::OpenRoutes;
use super::settings::{self, Settings};
use super::sites::keys::SiteLogKeys;
use super::sites::open::{self, Around, OpenSites};
use super::sockets::{self, Bound};
use super::start_line;
use crate::handover::Door;
use shortline_command::CommandError;
use shortline_daemon::admin::AdminSocket;
use shortline_daemon::process::{Instruction, Signals, notify, tell_reload};

/// How often to check whether the last response of a replaced uplink is gone.
const RETIRE_EVERY: Duration = Duration::from_secs(1);

/// Serves until a signal ends the server.
///
/// # Errors
/// [`CommandError::Failure`]: a file, certificate or address cannot be used.
pub async fn run(args: Args, settings: Settings) -> Result<(), CommandError> {
    let mut signals = Signals::new()?;
    let before = handover::inherit(&settings).await?;
    let opened = sockets::open_all(&args, &settings, before.sockets)?;
    let given_up = opened.given_up;
    let mut running = Running::start(args, settings, opened.bound, before.admin, before.door)?;
    let server = Arc::clone(&running.server);
    let accepting = tokio::spawn(async move { server.run().await });
    match before.taker {
        None => notify(&[NotifyState::Ready]),
        Some(mut taker) => {
            notify(&[NotifyState::MainPid(std::process::id()), NotifyState::Ready]);
            taker.ready().await.map_err(CommandError::failure)?;
            sockets::give_up(&given_up);
            tokio::spawn(async {
                taker.left().await;
                tracing::info!("the process before has ended");
            });
        }
    }
    let has_heir = running.obey(&mut signals).await;
    if !has_heir {
        notify(&[NotifyState::Stopping]);
    }
    let closed = running.drain(&mut signals, has_heir).await;
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
    let https_port = https_port(secure.filter_map(|listen| listen.address.tcp()));
    open_sites(settings, &routes, https_port, &HashMap::new())?;
    certificates::check(settings)?;
    for listen in &settings.listen {
        ports::load_key(listen)?;
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
type LogInForce = Arc<Mutex<Logs>>;
/// Where the server listens. The admin endpoint shows it.
type ListensInForce = Arc<Mutex<Vec<String>>>;
/// The current routes. The admin endpoint shows their gates.
type RoutesInForce = Arc<Mutex<OpenRoutes>>;

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
    /// Those of them that an authority issues.
    kept: Certificates,
    admin: Option<Admin>,
    /// Where the next process comes.
    door: Option<Door>,
    started: Instant,
    listens: ListensInForce,
}

impl Running {
    fn start(
        args: Args,
        settings: Settings,
        sockets: Vec<Bound>,
        admin: Option<AdminSocket>,
        door: Option<UnixListener>,
    ) -> Result<Self, CommandError> {
        let log = Logs::open(&settings.log, &settings.sites)?;
        let kept = Certificates::default();
        let named = Arc::new(NamedCertificates::with(kept.beside()));
        let ports = sockets.into_iter().map(|bound| Port::open(bound, &named));
        let ports = ports.collect::<Result<Vec<_>, _>>()?;
        // Before the addresses are announced: a client that connects then must find the sockets
        // ready.
        let link = start_link(&settings, &ports)?;
        let routes = open_routes(&settings, &OpenRoutes::default())?;
        let next = kept.prepare(&settings)?;
        let https_port = https_port(secure(&ports));
        let mut opened = open_sites(&settings, &routes, https_port, next.certificates())?;
        opened.files.extend(ports.iter().filter_map(Port::served));
        named.replace(opened.certificates);
        let web = WebSettings {
            sites: kept.around(opened.sites),
            limits: settings.limits.clone(),
            clients: settings.clients.clone(),
            link: Arc::clone(&link.link),
            tells_request_id: tells_request_id(&settings),
            sampling: logs::sampling(&settings.log),
        };
        let path = settings.handover_path.as_deref();
        let door = path.map(|path| Door::open(path, door)).transpose()?;
        let mut running = Self {
            server: Server::new(web, log.access_logs()),
            args,
            settings,
            link,
            routes: Arc::new(Mutex::new(routes)),
            log: Arc::new(Mutex::new(log)),
            ports,
            named,
            kept,
            admin: None,
            door,
            started: Instant::now(),
            listens: Arc::default(),
        };
        let admin = running.bind_admin(&running.settings.admin, admin)?;
        running.answer_admin(admin)?;
        running.listen();
        running.ports.iter().for_each(Port::announce);
        tracing::info!("{}", start_line::render(&running.settings));
        running.kept.exchange(next);
        running
            .kept
            .attend(opened.files, &running.settings.acme.state);
        running.routes.lock().start_caches(&OpenRoutes::default());
        Ok(running)
    }

    fn listen(&self) {
        *self.listens.lock() = self.ports.iter().map(Port::told).collect();
        self.server
            .listen(self.ports.iter().map(Port::listener).collect());
    }

    /// Does what signals and later processes want, until one of them wants the end. Returns whether another process
    /// has taken this one's place.
    async fn obey(&mut self, signals: &mut Signals) -> bool {
        loop {
            let heir = tokio::select! {
                told = signals.next() => match told {
                    Instruction::Reload => {
                        tell_reload(self.reload());
                        continue;
                    }
                    Instruction::End => return false,
                },
                heir = handover::knock(self.door.as_ref()) => heir,
            };
            match self.give(heir).await {
                Ok(giver) => {
                    if self.retire(giver, signals).await {
                        return true;
                    }
                }
                Err(error) => tracing::error!("nothing was handed over: {error}"),
            }
        }
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
        refuse_new_path(&self.settings, &settings)?;
        let mut changed = ports::changed(&self.ports, &settings, &self.named)?;
        let admin = (settings.admin != self.settings.admin)
            .then(|| self.bind_admin(&settings.admin, self.admin_socket()?))
            .transpose()?;
        let log = (!same_logs(&settings, &self.settings))
            .then(|| Logs::open(&settings.log, &settings.sites))
            .transpose()?;
        let link = match settings.uplink == self.settings.uplink {
            true => prepare(&self.link.link, &changed.ports).map(|()| None)?,
            false => Some(start_link(&settings, &changed.ports)?),
        };
        let routes = match same_routes(&settings, &self.settings) {
            true => self.routes.lock().clone(),
            false => open_routes(&settings, &self.routes.lock())?,
        };
        let next = self.kept.prepare(&settings)?;
        let https_port = https_port(secure(&changed.ports));
        let mut opened = open_sites(&settings, &routes, https_port, next.certificates())?;

        self.kept.exchange(next);
        for (certificate, key) in changed.keys.drain(..) {
            certificate.replace(key);
        }
        let of_ports = changed.ports.iter().filter_map(Port::served);
        opened.files.extend(of_ports);
        self.kept.attend(opened.files, &settings.acme.state);
        self.named.replace(opened.certificates);
        self.exchange_log(log);
        if let Some(link) = link {
            std::mem::replace(&mut self.link, link).retire();
        }
        routes.start_caches(&self.routes.lock());
        *self.routes.lock() = routes;
        self.server.replace(WebSettings {
            sites: self.kept.around(opened.sites),
            limits: settings.limits.clone(),
            clients: settings.clients.clone(),
            link: Arc::clone(&self.link.link),
            tells_request_id: tells_request_id(&settings),
            sampling: logs::sampling(&settings.log),
        });
        self.settings = settings;
        changed.announce(&self.ports);
        self.ports = changed.ports;
        self.listen();
        match admin {
            Some(socket) => self.answer_admin(socket),
            None => Ok(()),
        }
    }

    /// Switches to a new log. Without one, reopens the old log's file.
    fn exchange_log(&self, new: Option<Logs>) {
        match new {
            Some(log) => {
                self.server.set_access_logs(log.access_logs());
                *self.log.lock() = log;
            }
            None => self.log.lock().reopen(),
        }
    }

    /// Lets responses finish until the deadline or the next signal. Returns how many connections
    /// had to be closed.
    async fn drain(self, signals: &mut Signals, has_heir: bool) -> usize {
        if !has_heir {
            self.ports.iter().for_each(Port::remove_file);
            self.admin.iter().for_each(Admin::remove_file);
        }
        // Otherwise connections would go on to wait in these.
        drop(self.ports);
        let closed = tokio::select! {
            closed = self.server.drain(self.settings.drain_time_max) => closed,
            () = signals.end() => self.server.drain(Duration::ZERO).await,
        };
        // The last holder of the log writes what is left of it.
        self.server.set_access_logs(AccessLogs::default());
        *self.log.lock() = Logs::default();
        closed
    }
}

/// Starts a link, with the listening sockets set up for it.
fn start_link(settings: &Settings, ports: &[Port]) -> Result<RunningLink, CommandError> {
    let new = RunningLink::start(settings)?;
    prepare(&new.link, ports)?;
    Ok(new)
}

fn prepare(link: &Link, ports: &[Port]) -> Result<(), CommandError> {
    let mut sockets = ports.iter().map(Port::socket);
    let prepared = sockets.try_for_each(|socket| match socket {
        Socket::Tcp(socket) => link.prepare_listener(socket),
        // It has no packets.
        Socket::Unix(_) => Ok(()),
    });
    prepared.map_err(CommandError::failure)
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

fn refuse_new_path(old: &Settings, new: &Settings) -> Result<(), CommandError> {
    match old.handover_path == new.handover_path {
        true => Ok(()),
        false => Err(CommandError::usage(
            "handover: the path changes at a restart only",
        )),
    }
}

fn open_sites(
    settings: &Settings,
    routes: &OpenRoutes,
    https_port: Option<u16>,
    kept: &HashMap<String, Arc<Certificate>>,
) -> Result<OpenSites, CommandError> {
    let around = Around {
        cache: &settings.cache,
        routes: &routes.routes,
        https_port,
        kept,
    };
    open::open(&settings.sites, &around).map_err(CommandError::failure)
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
    secure.filter_map(Port::address)
}

fn open_routes(settings: &Settings, before: &OpenRoutes) -> Result<OpenRoutes, CommandError> {
    let sites = settings.sites.iter().map(|site| site.routes.as_slice());
    OpenRoutes::new(sites, before).map_err(CommandError::failure)
}

fn same_routes(settings: &Settings, before: &Settings) -> bool {
    let routes = settings.sites.iter().map(|site| &site.routes);
    routes.eq(before.sites.iter().map(|site| &site.routes))
}

fn same_logs(settings: &Settings, before: &Settings) -> bool {
    fn of_sites(settings: &Settings) -> impl Iterator<Item = (String, &SiteLogKeys)> {
        let sites = settings.sites.iter();
        sites.filter_map(|site| Some((site.label(), site.log.as_ref()?)))
    }
    settings.log == before.log && of_sites(settings).eq(of_sites(before))
}

fn tells_request_id(settings: &Settings) -> bool {
    settings.log.send_request_id.unwrap_or(false)
}
