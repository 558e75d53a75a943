//! The requests of clients, and how each ended in its client's view.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::backend::Knowledge;
use crate::scenario::Ask;
use crate::verdict::Outcome;
use crate::world::World;

/// One request, as its client sees it.
pub struct RequestState {
    /// Its client.
    pub client: usize,
    /// What is asked for.
    pub ask: Ask,
    /// How it ended. `None` while it is under way.
    pub outcome: Option<Outcome>,
}

/// All requests, by number.
pub struct Requests {
    /// Time.
    pub world: Arc<World>,
    knows: Knowledge,
    asked: Mutex<HashMap<u64, RequestState>>,
}

impl Requests {
    /// Starts without requests.
    pub fn new(world: &Arc<World>, knows: Knowledge) -> Self {
        Self {
            world: Arc::clone(world),
            knows,
            asked: Mutex::default(),
        }
    }

    /// The version of what may be kept, now.
    pub fn version(&self) -> u64 {
        self.knows.version(self.world.now_ns())
    }

    /// All requests made so far.
    pub fn lock(&self) -> MutexGuard<'_, HashMap<u64, RequestState>> {
        self.asked.lock()
    }

    /// Notes that a client makes a request.
    pub fn asks(&self, client: usize, ask: &Ask) {
        self.world
            .note(format_args!("client {client} asks {:?}", ask.what));
        let asked = RequestState {
            client,
            ask: ask.clone(),
            outcome: None,
        };
        self.lock().insert(ask.number, asked);
    }

    /// Notes that a client has the head of a response.
    pub fn headed(&self, ask: &Ask, status: u16) {
        self.world
            .note(format_args!("request {} gets {status}", ask.number));
    }

    /// Notes how a request ended for its client.
    pub fn ended(&self, client: usize, ask: &Ask, outcome: Outcome) {
        self.world.note(format_args!(
            "request {} of client {client} ends: {outcome:?}",
            ask.number
        ));
        if let Some(asked) = self.lock().get_mut(&ask.number) {
            asked.outcome = Some(outcome);
        }
    }
}
