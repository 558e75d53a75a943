//! Clients as `/clients` and `/status` show them.

use serde::Serialize;
use shortline_gate::Gate;
use shortline_gate::relay::{ClientState, ClientView, Registry};

/// The most clients in `/status`. The page fetches it every second.
const BUSY_MAX: usize = 20;

/// A client's connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientStatus {
    /// Its number, as `KILL_CLIENT` takes it.
    pub id: u64,
    /// `idle`, `waiting` or `active`.
    pub state: &'static str,
    /// How long it has been in this state, in seconds.
    pub state_seconds: f64,
    /// Its user.
    pub user: String,
    /// Its database.
    pub database: String,
    /// The application name that it gave.
    pub application_name: String,
    /// The address it connects from. Empty for a Unix socket.
    pub address: String,
    /// How long it has been open, in seconds.
    pub open_seconds: f64,
}

/// What the operator has paused or disabled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Paused {
    /// Whether everything is paused.
    pub all: bool,
    /// The databases that are paused.
    pub databases: Vec<String>,
    /// The databases that take no new clients.
    pub disabled: Vec<String>,
}

impl Paused {
    /// The state at this moment.
    pub fn of(gate: &Gate) -> Self {
        let closed = gate.closed();
        let names = |names: &std::collections::BTreeSet<Box<str>>| {
            names.iter().map(|name| name.to_string()).collect()
        };
        Self {
            all: closed.all,
            databases: names(&closed.databases),
            disabled: names(&closed.disabled),
        }
    }
}

/// All clients, in the order of their ids. A gate for HTTP has no registry.
pub fn all(registry: Option<&Registry>) -> Vec<ClientStatus> {
    let mut clients = registry.map(Registry::clients).unwrap_or_default();
    clients.sort_by_key(|client| client.id);
    clients.iter().map(status).collect()
}

/// The clients whose requests wait or run. The longest in that state come first.
pub fn busy(registry: Option<&Registry>) -> Vec<ClientStatus> {
    let mut clients = registry.map(Registry::clients).unwrap_or_default();
    clients.retain(|client| client.state != ClientState::Idle);
    clients.sort_by_key(|client| std::cmp::Reverse(client.in_state));
    clients.iter().take(BUSY_MAX).map(status).collect()
}

fn status(client: &ClientView) -> ClientStatus {
    let names = &client.about.names;
    let text = |name: &Option<Box<str>>| name.as_deref().unwrap_or_default().to_owned();
    let address = client.about.peer.map(|peer| peer.to_string());
    ClientStatus {
        id: client.id,
        state: match client.state {
            ClientState::Idle => "idle",
            ClientState::Waiting => "waiting",
            ClientState::Active => "active",
        },
        state_seconds: client.in_state.as_secs_f64(),
        user: text(&names.user),
        database: text(&names.database),
        application_name: text(&names.application_name),
        address: address.unwrap_or_default(),
        open_seconds: client.open.as_secs_f64(),
    }
}
