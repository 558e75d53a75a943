//! A running gate: start, signals, end.
//!
//! SIGHUP and RELOAD read the whole configuration again. They replace the rules for requests, the tenants, the
//! certificate, the capacity, the limits of the queue, the pool's size and its users. On an error everything stays
//! as it was, and the error is reported. Any other change needs a restart. A reload refuses it rather than ignore it
//! silently.

mod handing_over;

use sd_notify::NotifyState;
use shortline_gate::classify::Classifier;
use shortline_gate::{Gate, locks};
use shortline_sched::admission::Capacity;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinHandle, JoinSet};

use super::console::command::End;
use super::console::{Console, Request};
use super::handover::{self, Handover, Inherited};
use super::options::GateOptions;
use super::relays::{self, Front, Starting};
use super::settings::{self, Settings};
use super::status::View;
use super::{Args, calibrating, dry_run, monitors};
use shortline_command::CommandError;
use shortline_daemon::estimates::Keeper;
use shortline_daemon::keys::Overlay;
use shortline_daemon::process::{self, Instruction, Signals, notify, tell_reload};

/// Relays until a signal ends the gate.
///
/// # Errors
/// [`CommandError`]: a certificate, an address or a kind of gate cannot be used.
pub async fn run(args: Args, settings: Settings) -> Result<(), CommandError> {
    let mut signals = Signals::new()?;
    let inherited = handover::inherit(&settings).await?;
    let is_heir = inherited.is_some();
    let (mut running, mut asked) = Running::start(args, settings, inherited)?;
    if is_heir {
        notify(&[NotifyState::MainPid(std::process::id()), NotifyState::Ready]);
    } else {
        notify(&[NotifyState::Ready]);
    }
    let end = loop {
        tokio::select! {
            told = signals.next() => match told {
                Instruction::Reload => tell_reload(running.reload()),
                Instruction::End => break End::WhenServersRest,
            },
            Some(asked) = asked.recv() => match asked {
                Request::Reload(tell) => {
                    let reloaded = running.reload();
                    // The receiver may be gone.
                    let _ = tell.send(reloaded.as_ref().map_err(ToString::to_string).copied());
                    tell_reload(reloaded);
                }
                Request::End(end) => break end,
            },
            ended = running.relays.join_next() => return Err(why(ended)),
            heir = handing_over::knock(running.handover.as_ref()) => {
                if let Some(end) = running.hand_over(heir, &mut signals, &mut asked).await {
                    break end;
                }
            }
        }
    };
    if !running.has_heir {
        notify(&[NotifyState::Stopping]);
    }
    if end == End::WhenClientsLeft {
        running.until_all_left(&mut signals, &mut asked).await;
    }
    // Later commands get the answer that the gate ends.
    drop(asked);
    running.drain(&mut signals, end == End::Now).await
}

/// The reason why a relay ended. A relay ends by itself only if something is wrong.
fn why(ended: Option<Result<Result<(), CommandError>, JoinError>>) -> CommandError {
    match ended {
        Some(Ok(Err(error))) => error,
        Some(Err(panic)) => CommandError::failure(format!("relay: {panic}")),
        Some(Ok(Ok(()))) | None => CommandError::failure("the relay ended by itself"),
    }
}

/// The gate, with everything that a reload replaces.
struct Running {
    args: Args,
    settings: Settings,
    classifier: Classifier,
    view: View,
    front: Front,
    keeper: Option<Keeper>,
    /// One relay per address.
    relays: JoinSet<Result<(), CommandError>>,
    /// Ends the relays when it becomes true.
    ending: watch::Sender<bool>,
    console: Console,
    /// Accepts the admin's clients.
    admin: Option<JoinHandle<()>>,
    /// Where the next gate comes.
    handover: Option<Handover>,
    /// Takes clients over from the gate before.
    taking: Option<JoinHandle<()>>,
    /// Another gate has taken over.
    has_heir: bool,
}

impl Running {
    fn start(
        args: Args,
        settings: Settings,
        inherited: Option<Inherited>,
    ) -> Result<(Self, mpsc::Receiver<Request>), CommandError> {
        let classifier = Classifier::new(&settings.classifier).map_err(CommandError::usage)?;
        let gate = Gate::new(settings.gate.clone());
        let keeper = settings.estimates.as_deref();
        let keeper = keeper.map(|path| Keeper::open(path, settings.kind.name(), &gate));
        // Fixed estimates are not written, so that the file stays as it is.
        let learns = !settings.gate.admission.estimates_fixed;
        let keeper = keeper.transpose()?.filter(|_| learns);
        let front = Front::new(&settings, &classifier, &gate)?;
        let view = View::new(
            gate.clone(),
            front.connections(),
            front.clients(),
            &settings,
        );
        let (console, asked) = Console::new(view.clone());
        let mut running = Self {
            view,
            front,
            args,
            classifier,
            keeper,
            relays: JoinSet::new(),
            ending: watch::Sender::new(false),
            settings,
            console,
            admin: None,
            handover: None,
            taking: None,
            has_heir: false,
        };
        running.listen(&gate, inherited)?;
        tracing::info!("{}", running.settings.start_line());
        if let Some(keeper) = &running.keeper {
            keeper.start();
        }
        for monitor in monitors::monitors(&running.settings)? {
            tokio::spawn(locks::watch(gate.clone(), monitor));
        }
        let admission = &running.settings.gate.admission;
        if admission.capacity == Capacity::Calibrate {
            tokio::spawn(calibrating::follow(gate.clone(), running.keeper.clone()));
        }
        if admission.dry_run {
            tokio::spawn(dry_run::follow(gate));
        }
        process::warn_of_few_files(running.settings.limits.connections_max);
        relays::warn_of_plain_backend(&running.settings);
        Ok((running, asked))
    }

    /// Opens the sockets, or takes those of the gate before, and relays from now on.
    fn listen(&mut self, gate: &Gate, inherited: Option<Inherited>) -> Result<(), CommandError> {
        let takes_over = inherited.as_ref().is_some_and(Inherited::has_pool);
        let (sockets, admin, before) = inherited.map_or_else(Default::default, Inherited::split);
        let sockets = relays::open_sockets(&self.settings, sockets)?;
        let admin = match self.settings.admin.clone() {
            Some(wanted) => Some(self.open_admin(&wanted, admin)?),
            None => None,
        };
        let (taker, door) = before.unzip();
        if let Some(path) = &self.settings.handover {
            let copies = sockets.iter().map(relays::Bound::try_clone);
            let copies = copies.collect::<Result<_, _>>();
            let copies = copies.map_err(CommandError::failure)?;
            self.handover = Some(Handover::open(path, door.flatten(), copies, admin)?);
        }
        let starting = Starting {
            settings: &self.settings,
            classifier: &self.classifier,
            gate,
            view: &self.view,
            console: &self.console,
            front: &self.front,
            takes_over,
            ending: &self.ending,
        };
        starting.relay(sockets, &mut self.relays)?;
        if let Some(taker) = taker {
            self.take_over(taker);
        }
        Ok(())
    }

    /// Reads the configuration again. First does everything that can fail, then everything that cannot.
    fn reload(&mut self) -> Result<(), CommandError> {
        self.refuse_in_handover()?;
        let settings = settings::read(&self.args)?;
        refuse_fixed(&self.settings, &settings)?;
        let certificate = relays::read_certificate(&settings)?;
        let view = self.view.clone();
        let reload_pool = match (view.pool(), &settings.pool) {
            (Some(pool), Some(of)) => {
                let read = pool.reload(of.size, settings.gate.wait_max, &of.users);
                Some(read.map_err(CommandError::failure)?)
            }
            _ => None,
        };
        self.classifier
            .replace(&settings.classifier)
            .map_err(CommandError::usage)?;
        if let Some(certificate) = certificate {
            self.front.exchange(certificate);
        }
        self.view.gate().reconfigure(&settings.gate);
        if let Some(reload) = reload_pool {
            reload();
        }
        self.view.tell(&settings);
        self.settings = settings;
        Ok(())
    }

    /// Stops accepting, and waits until all clients have left or a second order to end comes.
    async fn until_all_left(&self, signals: &mut Signals, asked: &mut mpsc::Receiver<Request>) {
        let Some(clients) = self.front.clients() else {
            return;
        };
        self.view.end();
        tracing::info!(
            "no new connections; the end comes when {} clients have left",
            clients.open()
        );
        let asked = async { while !matches!(asked.recv().await, Some(Request::End(_)) | None) {} };
        tokio::select! {
            () = clients.empty() => {}
            () = signals.end() => {}
            () = asked => {}
        }
    }

    /// Lets transactions finish, until the deadline or the next signal. Or ends at once.
    async fn drain(mut self, signals: &mut Signals, is_at_once: bool) -> Result<(), CommandError> {
        self.view.end();
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
            biased;
            () = std::future::ready(()), if is_at_once => Ok(()),
            result = drained => result,
            () = signals.end() => Ok(()),
        };
        if let Some(keeper) = &self.keeper {
            keeper.save();
        }
        if self.settings.gate.admission.dry_run {
            tracing::info!("{}", dry_run::render(&self.view.status().admission));
        }
        result
    }
}

/// Refuses what a reload cannot change.
fn refuse_fixed(old: &Settings, new: &Settings) -> Result<(), CommandError> {
    let fixed = |settings: &Settings| GateOptions {
        policy: None,
        aging: None,
        oldest_share: None,
        runaway: None,
        rule: None,
        types_from: None,
        tags_from: None,
        capacity: None,
        open_up: None,
        queue_max: None,
        wait_max: None,
        shed: None,
        stall_max: None,
        pool_size: None,
        tenant_by: None,
        tenant: None,
        ..settings.options.clone()
    };
    match fixed(old).difference(&fixed(new)) {
        None => Ok(()),
        Some(field) => Err(CommandError::usage(format!(
            "gate.{}: changes only at a restart",
            field.replace('_', "-")
        ))),
    }
}
