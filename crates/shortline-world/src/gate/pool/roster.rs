//! What clients know of each other: the numbers that they were given, and who has been told to end.

use parking_lot::Mutex;

/// All clients, by their indexes.
pub struct Roster(Mutex<Vec<Entry>>);

/// One client.
#[derive(Clone, Default)]
struct Entry {
    /// Its user and its number, once it is let in.
    known: Option<(String, u32)>,
    /// It waits for an answer.
    waits: bool,
    /// Requests to end its statement or session that have begun.
    begun: usize,
    /// Of these, those that are over.
    over: usize,
    /// Requests to end its session that have begun.
    closing: usize,
}

impl Roster {
    /// So many clients, of whom nothing is known.
    pub fn of(clients: usize) -> Self {
        Self(Mutex::new(vec![Entry::default(); clients]))
    }

    /// A client was let in, and told this number.
    pub fn is_let_in(&self, client: usize, user: &str, number: u32) {
        self.0.lock()[client].known = Some((user.to_owned(), number));
    }

    /// Whether a client waits for an answer.
    pub fn waits(&self, client: usize, waits: bool) {
        self.0.lock()[client].waits = waits;
    }

    /// Another client than this, its user and its number: one that waits, if there is any.
    pub fn other(&self, client: usize, which: usize) -> Option<(usize, String, u32)> {
        let entries = self.0.lock();
        let known = |at: usize| Some((at, entries[at].known.clone()?));
        let mut others: Vec<_> = (0..entries.len())
            .filter(|at| *at != client)
            .filter_map(known)
            .collect();
        if others.iter().any(|(at, _)| entries[*at].waits) {
            others.retain(|(at, _)| entries[*at].waits);
        }
        let (at, (user, number)) = others.get(which % others.len().max(1))?;
        Some((*at, user.clone(), *number))
    }

    /// Somebody begins to end the statement of a client, or its session.
    pub fn begins_to_end(&self, client: usize, is_session: bool) {
        let entry = &mut self.0.lock()[client];
        entry.begun += 1;
        entry.closing += usize::from(is_session);
    }

    /// That is over.
    pub fn has_ended(&self, client: usize) {
        self.0.lock()[client].over += 1;
    }

    /// How many requests to end something of this client's are over.
    pub fn over(&self, client: usize) -> usize {
        self.0.lock()[client].over
    }

    /// Whether one has been under way since so many were over.
    pub fn was_to_end(&self, client: usize, over: usize) -> bool {
        self.0.lock()[client].begun > over
    }

    /// Whether its session may have been ended.
    pub fn may_be_closed(&self, client: usize) -> bool {
        self.0.lock()[client].closing > 0
    }
}
