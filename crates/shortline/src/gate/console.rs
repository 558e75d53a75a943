//! The operator's console of a running gate: the admin database, and `POST /command` at the admin endpoint. Both
//! take the same commands and show the same tables.

pub mod command;
mod lists;
mod show;

use std::time::Duration;

use shortline_gate::pool::Shown;
use shortline_gate::postgres::{Answer, Answering, Rights, Table};
use shortline_gate::relay::Order;
use tokio::sync::{mpsc, oneshot};

use super::status::View;
use command::{Command, End};

/// How often a waiting command checks its condition.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The most requests to the process that wait.
const ASKED_MAX: usize = 16;

/// A request to the process itself.
#[derive(Debug)]
pub enum Request {
    /// Reads the configuration again, and sends the result.
    Reload(oneshot::Sender<Result<(), String>>),
    /// Ends the gate.
    End(End),
}

/// Executes commands. A handle: clones are for the same gate.
#[derive(Clone)]
pub struct Console {
    view: View,
    asks: mpsc::Sender<Request>,
}

impl Console {
    /// A console for this gate. The receiver gets the requests to the process.
    pub fn new(view: View) -> (Self, mpsc::Receiver<Request>) {
        let (asks, asked) = mpsc::channel(ASKED_MAX);
        (Self { view, asks }, asked)
    }

    /// Executes the command in `text`. The answer is ready when the command is done.
    pub fn answer(&self, text: String, rights: Rights) -> Answering {
        let console = self.clone();
        Box::pin(async move {
            let command = Command::parse(&text).map_err(|error| error.to_string())?;
            let tag = command.name();
            let table = match command {
                Command::Show(what) => Some(show::table(&what, &console.view)?),
                _ if rights == Rights::Look => {
                    return Err(format!("{tag}: only users of --admin-users may say so"));
                }
                command => {
                    tracing::info!("the operator says {}", text.trim());
                    console.obey(command).await?
                }
            };
            Ok(Answer { tag, table })
        })
    }

    async fn obey(&self, command: Command) -> Result<Option<Table>, String> {
        match command {
            Command::Show(_) => {}
            Command::Pause(database) => self.pause(database.as_deref()).await?,
            Command::Resume(database) => {
                let resumed = self.view.gate().resume(database.as_deref());
                resumed.map_err(|error| error.to_string())?;
            }
            Command::Kill(database) => self.kill(database.as_deref())?,
            Command::KillClient(id) => {
                if !self.clients()?.give(id, Order::Close) {
                    return Err(format!("no client has the id {id}"));
                }
            }
            Command::Reconnect(database) => self.pool()?.reconnect(database.as_deref()),
            Command::WaitClose(database) => {
                let pool = self.pool()?;
                while pool.is_reconnecting(database.as_deref()) {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            }
            Command::Disable(database) => self.set_enabled(&database, false)?,
            Command::Enable(database) => self.set_enabled(&database, true)?,
            Command::Reload => self.reload().await?,
            Command::Shutdown(how) => self.ask(Request::End(how)).await?,
        }
        Ok(None)
    }

    /// Admits no request, and waits until running ones have ended. Also closes the pool's connections.
    async fn pause(&self, database: Option<&str>) -> Result<(), String> {
        let gate = self.view.gate();
        if database.is_some() {
            self.clients()?;
        }
        gate.hold(database).map_err(|error| error.to_string())?;
        // Checks twice: a request admitted just before the pause may not show at once.
        let mut quiet_looks = 0;
        while quiet_looks < 2 {
            tokio::time::sleep(LOOK_EVERY).await;
            let closed = gate.closed();
            if !closed.all && database.is_none_or(|name| !closed.databases.contains(name)) {
                return Err("resumed before all that ran had ended".to_owned());
            }
            if let Some(pool) = self.view.pool() {
                pool.reconnect(database);
            }
            quiet_looks = if self.is_quiet(database) {
                quiet_looks + 1
            } else {
                0
            };
        }
        Ok(())
    }

    fn is_quiet(&self, database: Option<&str>) -> bool {
        match database {
            None => self.view.gate().running_in_all() == 0,
            Some(_) => self
                .view
                .clients()
                .is_none_or(|clients| !clients.any_active(database)),
        }
    }

    fn kill(&self, database: Option<&str>) -> Result<(), String> {
        let clients = self.clients()?;
        // It may be paused already.
        let _ = self.view.gate().hold(database);
        clients.give_to_clients(database, Order::Close);
        if let Some(pool) = self.view.pool() {
            pool.reconnect(database);
        }
        Ok(())
    }

    fn set_enabled(&self, database: &str, is_enabled: bool) -> Result<(), String> {
        if self.view.kind() != "postgres" {
            return Err(
                "only clients of PostgreSQL say early enough which database they want".to_owned(),
            );
        }
        let set = self.view.gate().set_enabled(database, is_enabled);
        set.map_err(|error| error.to_string())
    }

    async fn reload(&self) -> Result<(), String> {
        let (tell, told) = oneshot::channel();
        self.ask(Request::Reload(tell)).await?;
        told.await.map_err(|_| "the gate ends".to_owned())?
    }

    async fn ask(&self, asked: Request) -> Result<(), String> {
        let sent = self.asks.send(asked).await;
        sent.map_err(|_| "the gate ends".to_owned())
    }

    fn clients(&self) -> Result<&shortline_gate::relay::Registry, String> {
        let clients = self.view.clients();
        clients.ok_or_else(|| "gate http knows neither databases nor clients by name".to_owned())
    }

    fn pool(&self) -> Result<&dyn Shown, String> {
        let pool = self.view.pool();
        pool.ok_or_else(|| {
            "there is no pool: each client has a connection to the backend of its own".to_owned()
        })
    }
}
