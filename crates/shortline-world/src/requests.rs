//! What clients ask for, and what becomes of it as they see it.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::scenario::Ask;
use crate::verdict::Outcome;
use crate::world::World;

/// One request, as its client sees it.
pub struct RequestState {
    /// Whose it is.
    pub client: usize,
    /// What it is for.
    pub ask: Ask,
    /// How it ended; `None` while it is under way.
    pub outcome: Option<Outcome>,
}

/// All requests, by their numbers.
pub struct Requests {
    /// Time.
    pub world: Arc<World>,
    asked: Mutex<HashMap<u64, RequestState>>,
}

impl Requests {
    /// None yet.
    pub fn new(world: &Arc<World>) -> Self {
        Self {
            world: Arc::clone(world),
            asked: Mutex::default(),
        }
    }

    /// All that were asked.
    pub fn lock(&self) -> MutexGuard<'_, HashMap<u64, RequestState>> {
        self.asked.lock()
    }

    /// A client asks.
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

    /// A client has a response's head.
    pub fn headed(&self, ask: &Ask, status: u16) {
        self.world
            .note(format_args!("request {} gets {status}", ask.number));
    }

    /// A request's end, for its client.
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
