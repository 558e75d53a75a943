//! The relays of a gate, one per address: their settings and their sockets.

use std::fmt::Display;
use std::future::Future;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::sign::CertifiedKey;
use shortline_gate::Gate;
use shortline_gate::classify::{Classifier, Classify, Client, TermsOf};
use shortline_gate::mysql;
use shortline_gate::pool::{PoolLimits, Shown};
use shortline_gate::postgres::pool::Users;
use shortline_gate::postgres::{self, AdminDatabase, Pool, PoolConfig, PostgresConfig};
use shortline_gate::relay::tls::{ClientTls, UpstreamTls};
use shortline_gate::relay::{Listener, Registry, RelayConfig, Upstream};
use shortline_tls::TlsError;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Kind;
use super::console::Console;
use super::http::HttpFront;
use super::options::UpstreamTlsMode;
use super::settings::{PoolSettings, Settings};
use super::status::{Connections, View};
use shortline_command::CommandError;
use shortline_daemon::sockets::{Address, bind, bind_shared, bind_unix, handed_over, is_at};

/// The tasks of the relays. Each returns why it ended.
pub type Relays = JoinSet<Result<(), CommandError>>;

/// Accepts clients' connections, by protocol.
pub enum Front {
    /// A relay of PostgreSQL per address.
    Postgres(Relayed),
    /// A relay of MySQL per address.
    Mysql(Relayed),
    /// One web server at all addresses.
    Http(HttpFront),
}

/// The state that the relays of a database share.
pub struct Relayed {
    /// Their connections.
    registry: Arc<Registry>,
    /// TLS towards clients.
    tls: Option<ClientTls>,
}

impl Front {
    /// A front that does not listen yet. Must be called inside a runtime.
    ///
    /// # Errors
    /// [`CommandError`]: a certificate cannot be used, or an error of [`HttpFront::new`].
    pub fn new(
        settings: &Settings,
        classifier: &Classifier,
        gate: &Gate,
    ) -> Result<Self, CommandError> {
        Ok(match settings.kind {
            Kind::Postgres => Self::Postgres(Relayed::new(settings, &[postgres::ALPN])?),
            Kind::Mysql => Self::Mysql(Relayed::new(settings, &[])?),
            Kind::Http => {
                let certificate = read_certificate(settings)?;
                Self::Http(HttpFront::new(settings, classifier, gate, certificate)?)
            }
        })
    }

    /// Returns a function that counts the connections.
    pub fn connections(&self) -> Box<dyn Fn() -> Connections + Send + Sync> {
        match self {
            Self::Postgres(relayed) | Self::Mysql(relayed) => {
                let registry = Arc::clone(&relayed.registry);
                Box::new(move || registry.counts().into())
            }
            Self::Http(front) => Box::new(front.connections()),
        }
    }

    /// The clients of a database. `None` for HTTP.
    pub fn clients(&self) -> Option<Arc<Registry>> {
        match self {
            Self::Postgres(relayed) | Self::Mysql(relayed) => Some(Arc::clone(&relayed.registry)),
            Self::Http(_) => None,
        }
    }

    /// Uses this certificate for new handshakes.
    pub fn exchange(&self, certificate: CertifiedKey) {
        match self {
            Self::Http(front) => front.exchange(certificate),
            Self::Postgres(relayed) | Self::Mysql(relayed) => {
                if let Some(tls) = &relayed.tls {
                    tls.replace(certificate);
                }
            }
        }
    }
}

/// Reads the certificate for clients, if one is configured.
///
/// # Errors
/// [`CommandError`]: what is wrong with it.
pub fn read_certificate(settings: &Settings) -> Result<Option<CertifiedKey>, CommandError> {
    let files = settings.client_tls.as_ref();
    let read = files.map(|files| shortline_tls::load(&files.cert, &files.key));
    read.transpose().map_err(CommandError::failure)
}

impl Relayed {
    fn new(settings: &Settings, alpn: &[&[u8]]) -> Result<Self, CommandError> {
        let tls = read_certificate(settings)?
            .map(|certificate| ClientTls::new(certificate, alpn, settings.is_tls_required));
        Ok(Self {
            registry: Arc::default(),
            tls: tls.transpose().map_err(CommandError::failure)?,
        })
    }
}

/// A gate whose relays are about to start.
pub struct Starting<'a> {
    pub settings: &'a Settings,
    pub classifier: &'a Classifier,
    pub gate: &'a Gate,
    pub view: &'a View,
    pub console: &'a Console,
    pub front: &'a Front,
    /// A gate that runs has the pool's connections, and hands them over one by one.
    pub takes_over: bool,
    /// Ends the relays when it becomes true.
    pub ending: &'a watch::Sender<bool>,
}

impl Starting<'_> {
    /// Starts the relays of the connections to `sockets`.
    ///
    /// # Errors
    /// [`CommandError`]: a backend's address or a certificate cannot be used.
    pub fn relay(&self, sockets: Vec<Bound>, relays: &mut Relays) -> Result<(), CommandError> {
        let gate = || self.gate.clone();
        match self.front {
            Front::Http(front) => {
                let of_tcp = |socket| match socket {
                    Listener::Tcp(socket) => Some(socket),
                    Listener::Unix(_) => None,
                };
                let sockets = self.listen(sockets)?;
                let sockets = sockets.into_iter().filter_map(of_tcp).collect();
                self.spawn(relays, front.run(sockets, self.until_ending()));
                Ok(())
            }
            Front::Postgres(relayed) => {
                let config = self.postgres(relayed)?;
                self.spawn_each(sockets, relays, |listener, ending| {
                    postgres::run(listener, config.clone(), gate(), ending)
                })
            }
            Front::Mysql(relayed) => {
                let config = self.relay_config(relayed)?;
                let pool = self.mysql_pool(&config)?;
                self.spawn_each(sockets, relays, |listener, ending| {
                    mysql::run(listener, config.clone(), pool.clone(), gate(), ending)
                })
            }
        }
    }

    /// Starts a relay for each socket.
    fn spawn_each<R, E>(
        &self,
        sockets: Vec<Bound>,
        relays: &mut Relays,
        mut relay: impl FnMut(Listener, Ending) -> R,
    ) -> Result<(), CommandError>
    where
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Display,
    {
        for listener in self.listen(sockets)? {
            self.spawn(relays, relay(listener, self.until_ending()));
        }
        Ok(())
    }

    fn spawn<E: Display>(
        &self,
        relays: &mut Relays,
        relay: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        relays.spawn(async move {
            let ended = relay.await;
            ended.map_err(|error| CommandError::failure(format!("relay: {error}")))
        });
    }

    /// Announces the addresses, now that nothing else can fail, and hands the sockets to the runtime.
    fn listen(&self, sockets: Vec<Bound>) -> Result<Vec<Listener>, CommandError> {
        self.announce(&sockets)?;
        listening(sockets)
    }

    /// Announces the addresses. Their sockets already accept connections.
    fn announce(&self, sockets: &[Bound]) -> Result<(), CommandError> {
        for socket in sockets {
            let address = match socket {
                Bound::Tcp(socket) => {
                    let address = socket.local_addr().map_err(CommandError::failure)?;
                    address.to_string()
                }
                Bound::Unix(_, path) => format!("unix:{}", path.display()),
            };
            let kind = self.settings.kind.name();
            tracing::info!("listening on {address} ({kind})");
        }
        Ok(())
    }

    fn until_ending(&self) -> Ending {
        let mut ending = self.ending.subscribe();
        Box::pin(async move {
            // If the sender is gone, the gate has ended, too.
            let _ = ending.wait_for(|is_ending| *is_ending).await;
        })
    }

    fn postgres(&self, relayed: &Relayed) -> Result<PostgresConfig, CommandError> {
        let settings = self.settings;
        let mut config = PostgresConfig {
            relay: self.relay_config(relayed)?,
            notice_after: settings.gate.slow_wait,
            tells_address: settings.tells_address,
            admin: self.admin_database(),
            pool: None,
            waits: Arc::default(),
        };
        if let Some(pool) = &settings.pool {
            let users = Users::read(&pool.users).map_err(CommandError::failure)?;
            let pool = PoolConfig {
                limits: self.pool_limits(pool),
                users: Arc::new(users),
                lookup: pool.lookup.clone(),
                cluster: settings.cluster.clone(),
            };
            let pool = Pool::new(pool, &config, self.gate);
            self.show_pool(pool.clone());
            tokio::spawn(Arc::clone(&pool).watch());
            config.pool = Some(pool);
        }
        Ok(config)
    }

    fn mysql_pool(&self, config: &RelayConfig) -> Result<Option<Arc<mysql::Pool>>, CommandError> {
        let Some(pool) = &self.settings.pool else {
            return Ok(None);
        };
        let users = mysql::pool::Users::read(&pool.users).map_err(CommandError::failure)?;
        let pool = mysql::PoolConfig {
            limits: self.pool_limits(pool),
            users: Arc::new(users),
            cluster: self.settings.cluster.clone(),
        };
        let pool = mysql::Pool::new(pool, config, self.gate);
        self.show_pool(pool.clone());
        tokio::spawn(Arc::clone(&pool).watch());
        Ok(Some(pool))
    }

    fn show_pool(&self, pool: Arc<dyn Shown>) {
        if self.takes_over {
            pool.share(0);
        }
        self.view.show_pool(pool);
    }

    fn pool_limits(&self, pool: &PoolSettings) -> PoolLimits {
        PoolLimits {
            mode: pool.mode,
            size: pool.size,
            idle_time_max: pool.idle_time_max,
            wait_max: self.settings.gate.wait_max,
            statements_max: pool.statements_max.get(),
        }
    }

    fn relay_config(&self, relayed: &Relayed) -> Result<RelayConfig, CommandError> {
        let settings = self.settings;
        Ok(RelayConfig {
            upstream: upstreams(settings)?.swap_remove(0),
            upstream_tls: upstream_tls(settings).map_err(CommandError::failure)?,
            client_tls: relayed.tls.clone(),
            limits: settings.limits.clone(),
            classify: self.classify(),
            proxies: Arc::from(settings.proxies.as_slice()),
            announces_clients: settings.announces_clients,
            terms_of: self.terms_of(),
            registry: Arc::clone(&relayed.registry),
        })
    }

    fn classify(&self) -> Classify {
        let classifier = self.classifier.clone();
        Arc::new(move |statement: &[u8], client: &Client<'_>| {
            classifier.statement(statement, client)
        })
    }

    fn terms_of(&self) -> TermsOf {
        let classifier = self.classifier.clone();
        Arc::new(move |client: &Client<'_>| classifier.terms(client))
    }

    fn admin_database(&self) -> Option<AdminDatabase> {
        let settings = self.settings;
        let (name, console) = (settings.admin_database.clone(), self.console.clone());
        (!name.is_empty()).then(|| AdminDatabase {
            name,
            uids: settings.admin_uids.clone(),
            users: settings.admin_users.clone(),
            stats_users: settings.stats_users.clone(),
            answer: Arc::new(move |command, rights| console.answer(command, rights)),
        })
    }
}

/// A socket that clients connect to.
pub enum Bound {
    /// By TCP.
    Tcp(TcpListener),
    /// By a Unix socket at this path.
    Unix(UnixListener, PathBuf),
}

impl Bound {
    /// Whether it is what `address` asks for. Port 0 asks for any.
    pub fn is_at(&self, address: &Address) -> bool {
        match (self, address) {
            (Self::Tcp(socket), Address::Tcp(wanted)) => {
                socket.local_addr().is_ok_and(|is| is_at(is, *wanted))
            }
            (Self::Unix(_, path), Address::Unix(wanted)) => path == wanted,
            _ => false,
        }
    }

    /// The same socket once more.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn try_clone(&self) -> std::io::Result<Self> {
        Ok(match self {
            Self::Tcp(socket) => Self::Tcp(socket.try_clone()?),
            Self::Unix(socket, path) => Self::Unix(socket.try_clone()?, path.clone()),
        })
    }
}

fn listening(sockets: Vec<Bound>) -> Result<Vec<Listener>, CommandError> {
    let sockets = sockets.into_iter().map(|socket| {
        Ok(match socket {
            Bound::Tcp(socket) => {
                socket.set_nonblocking(true)?;
                Listener::Tcp(tokio::net::TcpListener::from_std(socket)?)
            }
            Bound::Unix(socket, _) => {
                socket.set_nonblocking(true)?;
                Listener::Unix(tokio::net::UnixListener::from_std(socket)?)
            }
        })
    });
    sockets
        .collect::<std::io::Result<_>>()
        .map_err(CommandError::failure)
}

type Ending = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// The sockets that a running gate has, or that systemd hands over, or else those of the settings.
///
/// # Errors
/// [`CommandError`]: an address cannot be used, or there is none at all.
pub fn open_sockets(
    settings: &Settings,
    inherited: Vec<Bound>,
) -> Result<Vec<Bound>, CommandError> {
    if settings.listen.is_empty() && !inherited.is_empty() {
        return Ok(inherited);
    }
    let handed_over = handed_over()?
        .into_iter()
        .map(|(socket, _)| Bound::Tcp(socket));
    let handed_over: Vec<Bound> = handed_over.collect();
    if !handed_over.is_empty() {
        return Ok(handed_over);
    }
    if settings.listen.is_empty() {
        return Err(CommandError::Usage(format!(
            "gate {}: where do clients connect? Add --listen ADDR, or the key gate.listen to the \
             file",
            settings.kind.name()
        )));
    }
    let mut inherited = inherited;
    let mut take = |address: &Address| {
        let at = inherited.iter().position(|socket| socket.is_at(address))?;
        Some(inherited.swap_remove(at))
    };
    settings
        .listen
        .iter()
        .map(|address| take(address).map_or_else(|| open_socket(settings, address), Ok))
        .collect()
}

fn open_socket(settings: &Settings, address: &Address) -> Result<Bound, CommandError> {
    match address {
        Address::Tcp(address) if settings.reuse_port => bind_shared(*address).map(Bound::Tcp),
        Address::Tcp(address) => bind(*address).map(Bound::Tcp),
        Address::Unix(path) => bind_unix(path).map(|socket| Bound::Unix(socket, path.clone())),
    }
}

/// The servers of a database, one at least.
fn upstreams(settings: &Settings) -> Result<Vec<Upstream>, CommandError> {
    if let Some(cluster) = &settings.cluster {
        return Ok(cluster.servers.clone());
    }
    let upstream = settings.upstream.parse();
    let upstream = upstream.map_err(|error| CommandError::Usage(format!("upstream: {error}")));
    upstream.map(|upstream| vec![upstream])
}

/// Warns about a remote backend without TLS. By default the backend gets TLS for clients that use
/// it, and no client can use TLS to a gate without a certificate.
pub fn warn_of_plain_backend(settings: &Settings) {
    let is_asked = settings.kind == Kind::Http || settings.options.upstream_tls.is_some();
    if is_asked || settings.client_tls.is_some() {
        return;
    }
    let mut upstreams = upstreams(settings).into_iter().flatten();
    if upstreams.any(|upstream| !upstream.is_here()) {
        tracing::warn!(
            "clients have no TLS here (no --tls-cert), so what goes to {} has none either: add \
             --upstream-tls require if it is to have, or follow if this is meant",
            settings.upstream
        );
    }
}

/// TLS towards the backend.
///
/// # Errors
/// [`TlsError`]: the authorities cannot be used.
pub fn upstream_tls(settings: &Settings) -> Result<UpstreamTls, TlsError> {
    if upstreams(settings).is_ok_and(|all| all.iter().all(Upstream::is_path)) {
        return Ok(UpstreamTls::Disable);
    }
    match (settings.upstream_tls, &settings.upstream_ca) {
        (UpstreamTlsMode::Follow, _) => UpstreamTls::follow(),
        (UpstreamTlsMode::Disable, _) => Ok(UpstreamTls::Disable),
        (UpstreamTlsMode::Prefer, _) => UpstreamTls::prefer(),
        (UpstreamTlsMode::Require, _) => UpstreamTls::require(),
        (UpstreamTlsMode::VerifyFull, authorities) => UpstreamTls::verify_full(
            authorities
                .as_deref()
                .expect("invariant: the settings refuse verify-full without authorities"),
        ),
    }
}
