//! The relays of a gate, one an address: what each kind is told, and where it listens.

use std::fmt::Display;
use std::future::Future;
use std::net::TcpListener;
use std::sync::Arc;

use shortline_gate::Gate;
use shortline_gate::classify::{Classifier, Client};
use shortline_gate::http::{self, HttpConfig};
use shortline_gate::mysql::{self, MysqlConfig};
use shortline_gate::postgres::{self, AdminDatabase, Classify, PostgresConfig};
use shortline_gate::relay::tls::{ClientTls, TlsError, UpstreamTls};
use shortline_gate::relay::{Registry, Upstream};
use shortline_link::LinkConfig;
use shortline_web::Limits;
use shortline_web::proxy::UpstreamAddress;
use shortline_web::proxy::upstream::UpstreamOptions;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::options::UpstreamTlsMode;
use super::settings::Settings;
use super::status::View;
use super::{Kind, show};
use crate::error::CommandError;
use crate::serve::tls::{self, Certificate};
use crate::sockets::{bind, handed_over};

/// Relays, each ending with why it did.
pub type Relays = JoinSet<Result<(), CommandError>>;

/// A gate whose relays are to start.
pub struct Starting<'a> {
    pub settings: &'a Settings,
    pub classifier: &'a Classifier,
    pub gate: &'a Gate,
    pub view: &'a View,
    pub registry: &'a Arc<Registry>,
    /// Tells the relays to end.
    pub ending: &'a watch::Sender<bool>,
}

impl Starting<'_> {
    /// Relays what comes to `sockets`.
    ///
    /// # Errors
    /// [`CommandError`]: a backend's address, certificate or kind of gate that cannot be had.
    pub fn relay(
        &self,
        sockets: Vec<TcpListener>,
        relays: &mut Relays,
    ) -> Result<(), CommandError> {
        let gate = || self.gate.clone();
        match self.settings.kind {
            Kind::Postgres => {
                let config = self.postgres()?;
                self.spawn(sockets, relays, |listener, ending| {
                    postgres::run(listener, config.clone(), gate(), ending)
                })
            }
            Kind::Http => {
                let upstream = self.http_upstream()?;
                let certificate = self.http_certificate()?;
                self.spawn(sockets, relays, |listener, ending| {
                    let config = self.http(upstream.clone(), certificate.clone());
                    http::run(listener, config, gate(), ending)
                })
            }
            Kind::Mysql => {
                let config = self.mysql()?;
                self.spawn(sockets, relays, |listener, ending| {
                    mysql::run(listener, config.clone(), gate(), ending)
                })
            }
        }
    }

    fn spawn<R, E>(
        &self,
        sockets: Vec<TcpListener>,
        relays: &mut Relays,
        mut relay: impl FnMut(tokio::net::TcpListener, Ending) -> R,
    ) -> Result<(), CommandError>
    where
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Display,
    {
        for socket in sockets {
            socket
                .set_nonblocking(true)
                .map_err(CommandError::failure)?;
            let address = socket.local_addr().map_err(CommandError::failure)?;
            let listener =
                tokio::net::TcpListener::from_std(socket).map_err(CommandError::failure)?;
            let running = relay(listener, self.until_ending());
            relays.spawn(async move {
                let ended = running.await;
                ended.map_err(|error| CommandError::failure(format!("relay: {error}")))
            });
            eprintln!(
                "shortline: listening on {address} ({})",
                self.settings.kind.name()
            );
        }
        Ok(())
    }

    fn until_ending(&self) -> Ending {
        let mut ending = self.ending.subscribe();
        Box::pin(async move {
            // Gone is ended, too.
            let _ = ending.wait_for(|is_ending| *is_ending).await;
        })
    }

    fn postgres(&self) -> Result<PostgresConfig, CommandError> {
        let settings = self.settings;
        Ok(PostgresConfig {
            upstream: one_upstream(settings)?,
            upstream_tls: upstream_tls(settings).map_err(CommandError::failure)?,
            client_tls: client_tls(settings, &[postgres::ALPN]).map_err(CommandError::failure)?,
            limits: settings.limits.clone(),
            classify: self.classify(),
            notice_after: settings.gate.slow_wait,
            admin: self.admin_database(),
            registry: Arc::clone(self.registry),
        })
    }

    fn mysql(&self) -> Result<MysqlConfig, CommandError> {
        let settings = self.settings;
        Ok(MysqlConfig {
            upstream: one_upstream(settings)?,
            upstream_tls: upstream_tls(settings).map_err(CommandError::failure)?,
            client_tls: client_tls(settings, &[]).map_err(CommandError::failure)?,
            limits: settings.limits.clone(),
            classify: self.classify(),
            registry: Arc::clone(self.registry),
        })
    }

    fn classify(&self) -> Classify {
        let classifier = self.classifier.clone();
        Arc::new(move |statement: &[u8], client: &Client<'_>| {
            classifier.statement(statement, client)
        })
    }

    fn admin_database(&self) -> Option<AdminDatabase> {
        let (name, view) = (self.settings.admin_database.clone(), self.view.clone());
        (!name.is_empty()).then(|| AdminDatabase {
            name,
            answer: Arc::new(move |command| show::answer(command, &view.status())),
        })
    }

    fn http(
        &self,
        upstream: UpstreamOptions,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> HttpConfig {
        let limits = &self.settings.limits;
        HttpConfig {
            upstream,
            classifier: self.classifier.clone(),
            limits: Limits {
                connections_max: limits.connections_max,
                ..Limits::default()
            },
            link: LinkConfig::default(),
            tls,
            access_log: None,
            drain_time_max: limits.drain_time_max,
        }
    }

    /// One backend or several, apart by commas.
    fn http_upstream(&self) -> Result<UpstreamOptions, CommandError> {
        let addresses = self.settings.upstream.split(',').map(str::trim);
        let backends = addresses.map(str::parse::<UpstreamAddress>);
        Ok(UpstreamOptions {
            backends: backends
                .collect::<Result<_, _>>()
                .map_err(CommandError::usage)?,
            connect_time_max: self.settings.limits.connect_time_max,
            ..UpstreamOptions::default()
        })
    }

    fn http_certificate(&self) -> Result<Option<Arc<rustls::ServerConfig>>, CommandError> {
        let files = self.settings.client_tls.as_ref();
        let config = files.map(|files| {
            let key = tls::load(&files.cert, &files.key)?;
            Certificate::new(key).server_config()
        });
        config.transpose().map_err(CommandError::failure)
    }
}

type Ending = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// The sockets that systemd hands over, else those of the settings.
///
/// # Errors
/// [`CommandError`]: an address that cannot be had, or none at all.
pub fn open_sockets(settings: &Settings) -> Result<Vec<TcpListener>, CommandError> {
    let handed_over = handed_over()?.into_iter().map(|(socket, _)| socket);
    let handed_over: Vec<TcpListener> = handed_over.collect();
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
    settings
        .listen
        .iter()
        .map(|address| bind(*address))
        .collect()
}

fn one_upstream(settings: &Settings) -> Result<Upstream, CommandError> {
    let upstream = settings.upstream.parse();
    upstream.map_err(|error| CommandError::Usage(format!("upstream: {error}")))
}

fn upstream_tls(settings: &Settings) -> Result<UpstreamTls, TlsError> {
    match (settings.upstream_tls, &settings.upstream_ca) {
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

fn client_tls(settings: &Settings, alpn: &[&[u8]]) -> Result<Option<ClientTls>, TlsError> {
    let files = settings.client_tls.as_ref();
    files
        .map(|files| ClientTls::load(&files.cert, &files.key, alpn, settings.is_tls_required))
        .transpose()
}
