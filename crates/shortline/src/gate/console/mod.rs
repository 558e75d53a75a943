//! What an operator may say to a running gate: at the admin database, and by `POST /command` at the admin
//! endpoint. Both take the same commands and show the same tables.

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

/// How often it is looked whether what a command waits for has come.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Commands to the process that wait.
const ASKED_MAX: usize = 16;

/// What the process itself is asked for.
#[derive(Debug)]
pub enum Request {
    /// To read its configuration again, and to say what came of it.
    Reload(oneshot::Sender<Result<(), String>>),
    /// To end.
    End(End),
}

/// Obeys commands. A handle: clones obey for the same gate.
#[derive(Clone)]
pub struct Console {
    view: View,
    asks: mpsc::Sender<Request>,
}

impl Console {
    /// A console for this gate. The receiver hears what the process is asked for.
    pub fn new(view: View) -> (Self, mpsc::Receiver<Request>) {
        let (asks, asked) = mpsc::channel(ASKED_MAX);
        (Self { view, asks }, asked)
    }

    /// Does what a text says. The answer comes when that is done; it goes on if nobody waits for it.
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

    /// Admits nobody, and waits until what runs has ended and no idle connection is left.
    async fn pause(&self, database: Option<&str>) -> Result<(), String> {
        let gate = self.view.gate();
        if database.is_some() {
            self.clients()?;
        }
        gate.hold(database).map_err(|error| error.to_string())?;
        // Twice: what was admitted a moment before the pause may not be seen at once.
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
            None => self.view.gate().running() == 0,
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
