//! The places at one backend: who has them, and who gets the next.
//!
//! A client gets another place while it has no more than are free (the dynamic threshold of
//! Choudhury and Hahne 1998, with a factor of one). So a single client gets half of the places, two
//! get a third each, and one is always left for a newcomer. No client can take them all by asking
//! for many large responses at once. A request waits only behind requests of its own client.
//! Waiting clients get the free places in turns.
//!
//! A connection without a request has no place. Any client that gets a place may use it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The places; see the module's text.
pub struct Places {
    state: Mutex<State>,
    places_max: usize,
}

/// A client's place, as long as this is held.
pub struct Place {
    places: Arc<Places>,
    client: u128,
}

#[derive(Default)]
struct State {
    taken: usize,
    /// How many places each client has.
    taken_by: HashMap<u128, usize>,
    /// The clients that wait.
    waiting: HashMap<u128, Waiting>,
    /// The waiting clients in the order of their turns.
    turns: BTreeMap<u64, u128>,
    /// The number of turns and tickets given out.
    numbers: u64,
}

/// The waiting requests of one client.
struct Waiting {
    turn: u64,
    /// The requests in the order they came.
    tickets: BTreeMap<u64, oneshot::Sender<Place>>,
}

impl Places {
    /// Makes this many places.
    pub fn new(places_max: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            places_max,
        })
    }

    /// Waits for a place for `client`. Dropping the future gives up its place in the queue.
    pub async fn take(self: &Arc<Self>, client: u128) -> Place {
        let (ticket, receiver) = {
            let mut state = self.state.lock();
            if state.may_have_another(client, self.places_max) {
                state.give(client);
                return self.place(client);
            }
            let (sender, receiver) = oneshot::channel();
            (state.wait(client, sender), receiver)
        };
        let _queued = Queued {
            places: self,
            client,
            ticket,
        };
        receiver
            .await
            .expect("invariant: a ticket is answered unless its own future is dropped")
    }

    /// Places in use.
    pub fn taken(&self) -> usize {
        self.state.lock().taken
    }

    fn place(self: &Arc<Self>, client: u128) -> Place {
        Place {
            places: Arc::clone(self),
            client,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let given = {
            let mut state = self.places.state.lock();
            state.take_back(self.client);
            state.answer(self.places.places_max)
        };
        // Unlocked, because a place whose request has given up comes back here.
        for (client, sender) in given {
            let _ = sender.send(self.places.place(client));
        }
    }
}

/// A request that waits.
struct Queued<'a> {
    places: &'a Places,
    client: u128,
    ticket: u64,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.places.state.lock().leave(self.client, self.ticket);
    }
}

impl State {
    fn may_have_another(&self, client: u128, places_max: usize) -> bool {
        let free = places_max.saturating_sub(self.taken);
        let held = self.taken_by.get(&client).copied().unwrap_or(0);
        free > 0 && held <= free
    }

    fn give(&mut self, client: u128) {
        self.taken += 1;
        *self.taken_by.entry(client).or_default() += 1;
    }

    fn take_back(&mut self, client: u128) {
        self.taken -= 1;
        if let Some(held) = self.taken_by.get_mut(&client) {
            *held -= 1;
            if *held == 0 {
                self.taken_by.remove(&client);
            }
        }
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Queues a request; returns its ticket.
    fn wait(&mut self, client: u128, sender: oneshot::Sender<Place>) -> u64 {
        let ticket = self.number();
        let turns = &mut self.turns;
        let waiting = self.waiting.entry(client).or_insert_with(|| {
            turns.insert(ticket, client);
            Waiting {
                turn: ticket,
                tickets: BTreeMap::new(),
            }
        });
        waiting.tickets.insert(ticket, sender);
        ticket
    }

    /// Takes a request out of the queue: it was answered, or has given up.
    fn leave(&mut self, client: u128, ticket: u64) {
        if let Some(waiting) = self.waiting.get_mut(&client) {
            waiting.tickets.remove(&ticket);
            self.forget_if_empty(client);
        }
    }

    /// Gives the free places to the clients whose turn it is and that may have one.
    fn answer(&mut self, places_max: usize) -> Vec<(u128, oneshot::Sender<Place>)> {
        let mut given = Vec::new();
        while let Some(client) = self.next(places_max) {
            let Some(sender) = self.take_turn(client) else {
                break;
            };
            self.give(client);
            given.push((client, sender));
        }
        given
    }

    fn next(&self, places_max: usize) -> Option<u128> {
        let mut clients = self.turns.values().copied();
        clients.find(|client| self.may_have_another(*client, places_max))
    }

    /// Takes the first request of a client. The client's next turn is behind all others.
    fn take_turn(&mut self, client: u128) -> Option<oneshot::Sender<Place>> {
        let turn = self.number();
        let waiting = self.waiting.get_mut(&client)?;
        let (_, sender) = waiting.tickets.pop_first()?;
        self.turns.remove(&waiting.turn);
        waiting.turn = turn;
        self.turns.insert(turn, client);
        self.forget_if_empty(client);
        Some(sender)
    }

    fn forget_if_empty(&mut self, client: u128) {
        if let Some(waiting) = self.waiting.get(&client)
            && waiting.tickets.is_empty()
        {
            self.turns.remove(&waiting.turn);
            self.waiting.remove(&client);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use proptest::prelude::*;

    use super::*;

    type Taking = Pin<Box<dyn Future<Output = Place>>>;

    fn taking(places: &Arc<Places>, client: u128) -> Taking {
        let places = Arc::clone(places);
        Box::pin(async move { places.take(client).await })
    }

    fn polled(taking: &mut Taking) -> Option<Place> {
        match taking
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(place) => Some(place),
            Poll::Pending => None,
        }
    }

    fn taken_at_once(places: &Arc<Places>, client: u128, tries: usize) -> Vec<Place> {
        let mut tries: Vec<_> = (0..tries).map(|_| taking(places, client)).collect();
        tries.iter_mut().filter_map(polled).collect()
    }

    #[test]
    fn one_client_gets_half_and_a_newcomer_always_one() {
        let places = Places::new(256);
        let many = taken_at_once(&places, 1, 1000);
        assert_eq!(many.len(), 129);
        let others: Vec<_> = (2..129)
            .map(|client| taken_at_once(&places, client, 1))
            .collect();
        assert!(others.iter().all(|taken| taken.len() == 1));
        drop((many, others));
        assert_eq!(places.taken(), 0);
    }

    #[test]
    fn few_places_serve_everybody_in_turns() {
        for places_max in 1..4 {
            let places = Places::new(places_max);
            let mut held = taken_at_once(&places, 1, 10);
            let mut waits: Vec<_> = [1, 1, 2, 2, 3]
                .map(|client| (client, taking(&places, client)))
                .into();
            let mut served = Vec::new();
            for _ in 0..20 {
                waits.retain_mut(|(client, wait)| match polled(wait) {
                    None => true,
                    Some(place) => {
                        served.push(*client);
                        held.push(place);
                        false
                    }
                });
                if !held.is_empty() {
                    held.remove(0);
                }
            }
            assert_eq!(served.len(), 5, "{places_max} places: {served:?}");
            let first_of = |client| served.iter().position(|&by| by == client);
            assert!(first_of(3) < Some(4), "{places_max} places: {served:?}");
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Ask(u128),
        GiveUp(usize),
        GiveBack(usize),
        Look(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..6_u128).prop_map(Step::Ask),
            any::<usize>().prop_map(Step::GiveUp),
            any::<usize>().prop_map(Step::GiveBack),
            any::<usize>().prop_map(Step::Look),
        ]
    }

    proptest! {
        #[test]
        fn no_place_is_lost_or_given_twice_and_none_is_kept_from_who_may_have_it(
            places_max in 1_usize..12,
            steps in prop::collection::vec(step(), 1..200),
        ) {
            let places = Places::new(places_max);
            let mut waits: Vec<(u128, Taking)> = Vec::new();
            let mut held: Vec<Place> = Vec::new();
            for step in steps {
                match step {
                    Step::Ask(client) => waits.push((client, taking(&places, client))),
                    Step::GiveUp(which) if !waits.is_empty() => {
                        let which = which % waits.len();
                        drop(waits.swap_remove(which));
                    }
                    Step::GiveBack(which) if !held.is_empty() => {
                        let which = which % held.len();
                        drop(held.swap_remove(which));
                    }
                    Step::Look(which) if !waits.is_empty() => {
                        let which = which % waits.len();
                        if let Some(place) = polled(&mut waits[which].1) {
                            held.push(place);
                            drop(waits.swap_remove(which));
                        }
                    }
                    _ => {}
                }
                let state = places.state.lock();
                prop_assert!(state.taken <= places_max && state.taken >= held.len());
                prop_assert_eq!(state.taken, state.taken_by.values().sum::<usize>());
                prop_assert_eq!(state.turns.len(), state.waiting.len());
                prop_assert!(state.waiting.values().all(|waiting| !waiting.tickets.is_empty()));
                prop_assert_eq!(state.next(places_max), None);
            }
            waits.clear();
            held.clear();
            let state = places.state.lock();
            prop_assert_eq!(state.taken, 0);
            prop_assert!(state.waiting.is_empty() && state.taken_by.is_empty());
        }
    }
}
