//! A running gate: started, told by signals, ended.
//!
//! SIGHUP reads the whole configuration again, makes everything that can fail, and then exchanges
//! it, or keeps everything as it is and says why. What cannot change without losing connections or
//! what was learnt (addresses, the backend, limits) changes at a restart.

use std::future::Future;
use std::net::TcpListener;
use std::sync::Arc;

use sd_notify::NotifyState;
use shortline_gate::Gate;
use shortline_gate::classify::{Classifier, Client};
use shortline_gate::postgres::{self, AdminDatabase, Classify, PostgresConfig};
use shortline_gate::relay::tls::{ClientTls, TlsError, UpstreamTls};
use shortline_gate::relay::{Registry, Upstream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::estimates::Keeper;
use super::options::UpstreamTlsMode;
use super::settings::{self, Settings};
use super::status::View;
use super::{Args, Kind, show};
use crate::admin;
use crate::daemon::{Signals, Told, notify};
use crate::error::CommandError;
use crate::sockets::{bind, handed_over};

/// Relays until a signal ends it.
///
/// # Errors
/// [`CommandError`]: a certificate, an address or a kind of gate that cannot be had.
pub async fn run(args: Args, settings: Settings) -> Result<(), CommandError> {
    let mut signals = Signals::new()?;
    let mut running = Running::start(args, settings)?;
    notify(&[NotifyState::Ready]);
    loop {
        tokio::select! {
            told = signals.next() => match told {
                Told::Reload => running.reload(),
                Told::End => break,
            },
            ended = running.relays.join_next() => return Err(why(ended)),
        }
    }
    notify(&[NotifyState::Stopping]);
    running.drain(&mut signals).await
}

/// A relay never ends by itself unless something is wrong.
fn why(ended: Option<Result<std::io::Result<()>, tokio::task::JoinError>>) -> CommandError {
    match ended {
        Some(Ok(Err(error))) => CommandError::failure(format!("relay: {error}")),
        Some(Err(panic)) => CommandError::failure(format!("relay: {panic}")),
        Some(Ok(Ok(()))) | None => CommandError::failure("the relay ended by itself"),
    }
}

/// The gate with all that a reload exchanges.
struct Running {
    args: Args,
    settings: Settings,
    classifier: Classifier,
    registry: Arc<Registry>,
    view: View,
    keeper: Option<Keeper>,
    /// One relay an address.
    relays: JoinSet<std::io::Result<()>>,
    /// Tells the relays to end.
    ending: watch::Sender<bool>,
}

impl Running {
    fn start(args: Args, settings: Settings) -> Result<Self, CommandError> {
        let classifier = Classifier::new(&settings.classifier).map_err(CommandError::usage)?;
        let gate = Gate::new(settings.gate.clone());
        let keeper = settings.estimates.as_deref();
        let keeper = keeper.map(|path| Keeper::open(path, settings.kind.name(), &gate));
        let keeper = keeper.transpose()?;
        let registry: Arc<Registry> = Arc::default();
        let counted = Arc::clone(&registry);
        let mut running = Self {
            view: View::new(gate.clone(), move || counted.counts().into(), &settings),
            args,
            classifier,
            registry,
            keeper,
            relays: JoinSet::new(),
            ending: watch::Sender::new(false),
            settings,
        };
        let sockets = open_sockets(&running.settings)?;
        if let Some(address) = running.settings.admin {
            let connections_max = running.settings.admin_connections_max;
            admin::start(bind(address)?, connections_max, running.view.clone())
                .map_err(CommandError::failure)?;
        }
        match running.settings.kind {
            Kind::Postgres => running.relay_postgres(sockets, &gate)?,
            kind @ (Kind::Http | Kind::Mysql) => {
                let name = kind.name();
                return Err(CommandError::failure(format!(
                    "`gate {name}` comes in a later release; this one has gate postgres"
                )));
            }
        }
        if let Some(keeper) = &running.keeper {
            keeper.start();
        }
        Ok(running)
    }

    fn relay_postgres(
        &mut self,
        sockets: Vec<TcpListener>,
        gate: &Gate,
    ) -> Result<(), CommandError> {
        let settings = &self.settings;
        let config = PostgresConfig {
            upstream: upstream(settings)?,
            upstream_tls: upstream_tls(settings).map_err(CommandError::failure)?,
            client_tls: client_tls(settings, &[postgres::ALPN]).map_err(CommandError::failure)?,
            limits: settings.limits.clone(),
            classify: classify(&self.classifier, gate),
            notice_after: settings.gate.slow_wait,
            admin: self.admin_database(),
            registry: Arc::clone(&self.registry),
        };
        for socket in sockets {
            socket
                .set_nonblocking(true)
                .map_err(CommandError::failure)?;
            let address = socket.local_addr().map_err(CommandError::failure)?;
            let listener =
                tokio::net::TcpListener::from_std(socket).map_err(CommandError::failure)?;
            eprintln!("shortline: listening on {address} (postgres)");
            let ending = self.until_ending();
            self.relays.spawn(postgres::run(
                listener,
                config.clone(),
                gate.clone(),
                ending,
            ));
        }
        Ok(())
    }

    fn admin_database(&self) -> Option<AdminDatabase> {
        let (name, view) = (self.settings.admin_database.clone(), self.view.clone());
        (!name.is_empty()).then(|| AdminDatabase {
            name,
            answer: Arc::new(move |command| show::answer(command, &view.status())),
        })
    }

    fn until_ending(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut ending = self.ending.subscribe();
        async move {
            // Gone is ended, too.
            let _ = ending.wait_for(|is_ending| *is_ending).await;
        }
    }

    fn reload(&mut self) {
        match self.try_reload() {
            Ok(()) => tracing::info!("reloaded"),
            Err(error) => tracing::error!("not reloaded, all stays as it was: {error}"),
        }
    }

    /// First everything that can fail, then everything that cannot.
    fn try_reload(&mut self) -> Result<(), CommandError> {
        let settings = settings::read(&self.args)?;
        refuse_fixed(&self.settings, &settings)?;
        self.classifier
            .replace(&settings.classifier)
            .map_err(CommandError::usage)?;
        self.view.settings_changed(&settings);
        self.settings = settings;
        Ok(())
    }

    /// Lets transactions finish up to the deadline or the next signal.
    async fn drain(mut self, signals: &mut Signals) -> Result<(), CommandError> {
        self.ending.send_replace(true);
        let drained = async {
            let mut result = Ok(());
            while let Some(ended) = self.relays.join_next().await {
                if !matches!(ended, Ok(Ok(()))) {
                    result = Err(why(Some(ended)));
                }
            }
            result
        };
        let result = tokio::select! {
            result = drained => result,
            () = signals.end() => Ok(()),
        };
        if let Some(keeper) = &self.keeper {
            keeper.save();
        }
        result
    }
}

/// The sockets that systemd hands over, else those of the settings.
fn open_sockets(settings: &Settings) -> Result<Vec<TcpListener>, CommandError> {
    let handed_over: Vec<TcpListener> = handed_over()?
        .into_iter()
        .map(|(socket, _)| socket)
        .collect();
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

fn classify(classifier: &Classifier, gate: &Gate) -> Classify {
    let (classifier, gate) = (classifier.clone(), gate.clone());
    Arc::new(move |statement: &[u8], client: &Client<'_>| {
        gate.type_of(&classifier.statement(statement, client))
    })
}

fn upstream(settings: &Settings) -> Result<Upstream, CommandError> {
    let upstream = settings.upstream.parse();
    upstream.map_err(|error| CommandError::Usage(format!("upstream: {error}")))
}

fn upstream_tls(settings: &Settings) -> Result<UpstreamTls, TlsError> {
    match (settings.upstream_tls, &settings.upstream_ca) {
        (UpstreamTlsMode::Disable, _) => Ok(UpstreamTls::Disable),
        (UpstreamTlsMode::Prefer, _) => UpstreamTls::prefer(),
        (UpstreamTlsMode::Require, _) => UpstreamTls::require(),
        (UpstreamTlsMode::VerifyFull, authorities) => {
            let authorities = authorities.as_deref();
            UpstreamTls::verify_full(
                authorities
                    .expect("invariant: the settings refuse verify-full without authorities"),
            )
        }
    }
}

fn client_tls(settings: &Settings, alpn: &[&[u8]]) -> Result<Option<ClientTls>, TlsError> {
    let Some(files) = &settings.client_tls else {
        return Ok(None);
    };
    ClientTls::load(&files.cert, &files.key, alpn, settings.is_tls_required).map(Some)
}

/// What a reload cannot change.
fn refuse_fixed(old: &Settings, new: &Settings) -> Result<(), CommandError> {
    let changed = [
        ("listen", old.listen != new.listen),
        ("upstream", old.upstream != new.upstream),
        ("estimates", old.estimates != new.estimates),
        ("admin", old.admin != new.admin),
        (
            "admin-connections-max",
            old.admin_connections_max != new.admin_connections_max,
        ),
    ];
    match changed.iter().find(|(_, is_changed)| *is_changed) {
        None => Ok(()),
        Some((key, _)) => Err(CommandError::usage(format!(
            "gate.{key}: changes at a restart only"
        ))),
    }
}
