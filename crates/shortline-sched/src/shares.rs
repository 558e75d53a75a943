//! The order of `shares`. Clients go in the order in which fair sharing among them would end their work.
//! Inside a client the shortest remaining request goes first.
//!
//! Source: the fair sojourn protocol (Friedman and Henderson, SIGMETRICS 2003), over clients instead of
//! jobs. Late jobs share instead of blocking (PSBS: Dell'Amico, Carra and Michiardi, 2016). A client is owed
//! nothing for requests that cannot be served now.
//!
//! Every client has a *position*: the work done for it per unit of its weight, counted from the position of
//! all others when it came. A request's rank is the position of its client at the request's end, if it were
//! served now:
//!
//! ```text
//! rank = position of its client + remaining / weight
//! V    = the position of all clients under fair sharing ([`fluid`])
//! ```
//!
//! The client with the smallest rank has its turn. That request is served, or a shorter one of the client
//! that came later. A client with less to do may *go early*, before that turn (see below). The served request
//! keeps its rank, and the others of its client move back by the work done. So a client that splits a
//! download into pieces moves each further piece back by the last one, and gains nothing. A client below its
//! share goes first.
//!
//! **Theorem.** Let the server not idle while a request waits, let lengths be as stated, and let a request
//! that comes during a quantum count as coming at its end. Then the request of a client that has no other ends
//! no later than under fair sharing among clients in proportion to their weights. If a client has several, all
//! have ended when fair sharing has ended all. This holds whatever the others do, and however many requests
//! they have, split or join. (Several requests of a client end in the order of their ranks. A short one may
//! come after a long one was served ahead of its share. Then it can end later than under fair sharing, and the
//! long one earlier.)
//!
//! *Proof.* A client is *due by* r if its turn has a rank of r or less. Let w be its weight and p its position.
//! If it is due by r, p is that of its oldest line with a rank of r or less. Let
//!
//! ```text
//! S(r) = sum over the clients ahead, p > V, of w * (min(r, p) - V)
//!      - sum over those behind, p < V, that are due by r, of w * (V - p)
//! ```
//!
//! S(r) is the work that fair sharing does until V is r, less what those due by r still need by then, and less
//! what all others may yet ask for by then. A client ahead can ask for nothing until V has come to it. One that
//! is behind and not due begins a new line at V. If S(r) >= 0 at each turn r until V comes to it, each is in
//! time. No client is then ahead before r, so no client due by r is behind, and a client that has come to its
//! rank is done.
//!
//! S(r) does stay at 0 or above. Work in the turn of rank k moves V by the work over the weight of all, so the
//! terms of S(r) lose no more than the work. If k <= r, the served client's term gains as much. So S(r) falls
//! for no r from k on, and there is no turn before the first. A new request is ranked by a line that begins at
//! V or later, so S at its turn is at least S at the turn before. Ranks never fall, and a client that leaves or
//! is moved back is due by less. `tests/shares` checks all of it.
//!
//! **Going early.** Work in a later turn k takes at most its own amount from S(r) at each turn r before k. So a
//! client can have all its work done before the first turn without making any other late, if S(r) is at least
//! this work at each turn before its own. Of the first [`TURNS_MAX`] turns, the client with the least work goes
//! early, if it has less work than remains of the first request. (S is taken as a little less than it is:
//! [`ahead`].) Here fair sojourn protocols lose most to SRPT: a long request that is nearly done waits for a
//! shorter one with more left. A client goes early with all its work or not at all, so a piece gains nothing
//! over the whole. A client that stands back never goes early. Without a burst, no client stands back or goes
//! early: a whole gives way to more clients than its pieces do, and only standing back makes up for that.
//!
//! **Standing back.** Under fair sharing, a client that asks for piece after piece gets half the server beside
//! any other client, because each piece is due soon. The same would hold here, while a client that asks for the
//! whole at once waits behind all smaller ones. So a client stands back if it got more than a *burst* without a
//! pause, or asks for more at once. (A request counts as at most half a burst.) Its further requests are ranked
//! later, by at most a burst and what it has asked for. The theorem still holds for all others, because this
//! only moves ranks back. For the client itself the theorem holds for its first burst. Each request beyond ends
//! at the latest when V is that much farther than the theorem says. In a lasting overload the client gets about
//! two thirds of what V advances. A burst lasts until V has advanced without the client by as much as the client
//! got (at most a burst).
//!
//! Each operation costs O(log n). A client without requests is remembered until V has come to its position. At
//! most `clients_max` of them ([`Shares::new`]) are remembered. Beyond that, the one nearest to V is forgotten.

mod ahead;
mod client;
mod fluid;

use std::collections::HashMap;

use crate::heap::{IndexedHeap, Positions};
use crate::job::Client as Asks;
use ahead::Ahead;
use client::{Client, Turn};
use fluid::{Fluid, Position};

/// The number of turns examined for a client that goes early, the first turn included.
const TURNS_MAX: usize = 16;

/// Requests in order; see the module's text. A request is named by its slot.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    fluid: Fluid,
    clients: Vec<Client>,
    free: Vec<u32>,
    by_name: HashMap<u128, u32>,
    /// Clients with waiting requests, by their turns.
    turns: IndexedHeap<Turn>,
    /// How much the clients ahead of their share can wait.
    ahead: Ahead,
    /// Clients without requests, by the value of V at which they are forgotten.
    away: IndexedHeap<(Position, u32)>,
    clients_max: usize,
    burst: u64,
    positions: Positions,
    /// By slot.
    requests: Vec<Request>,
    held: usize,
    waiting: usize,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    client: u32,
    line: u32,
    remaining: u64,
    /// The work that it asked for, as far as it counts as part of a burst.
    asked: u64,
    /// The work done for it, as far as it counts as part of a burst.
    counted: u64,
    sequence: u64,
    blocked: bool,
}

impl Shares {
    /// An empty order that remembers up to `clients_max` clients without requests. A client that gets more
    /// than `burst` work in a row stands back. With 0 none does.
    pub(crate) fn new(clients_max: usize, burst: u64) -> Self {
        Self {
            fluid: Fluid::default(),
            clients: Vec::new(),
            free: Vec::new(),
            by_name: HashMap::new(),
            turns: IndexedHeap::new(),
            ahead: Ahead::default(),
            away: IndexedHeap::new(),
            clients_max,
            burst,
            positions: Positions::default(),
            requests: Vec::new(),
            held: 0,
            waiting: 0,
        }
    }

    /// Adds a request. It counts as in service until it waits.
    pub(crate) fn submit(&mut self, slot: u32, asks: Option<Asks>, remaining: u64, sequence: u64) {
        let now = self.fluid.now();
        let index = self.enter(asks);
        let asked = remaining.min(self.burst / 2);
        let burst = fluid::distance(self.burst, 1);
        let client = &mut self.clients[index as usize];
        client.asked += asked;
        let request = Request {
            client: index,
            line: client.arrive(burst, now),
            remaining,
            asked,
            counted: 0,
            sequence,
            blocked: false,
        };
        client.work = client.work.saturating_add(remaining);
        if self.requests.len() <= slot as usize {
            self.requests.resize(slot as usize + 1, request);
        }
        self.requests[slot as usize] = request;
        self.held += 1;
        self.away.remove(index);
        self.settle(index);
    }

    /// A request waits, after it was in service or blocked.
    pub(crate) fn wait(&mut self, slot: u32) {
        if self.positions.contains(slot) {
            return;
        }
        self.waiting += 1;
        let now = self.fluid.now();
        let request = &mut self.requests[slot as usize];
        let client = &mut self.clients[request.client as usize];
        if std::mem::take(&mut request.blocked) {
            client.become_ready(now);
            client.come_to(now);
            client.work = client.work.saturating_add(request.remaining);
        }
        let key = (request.remaining, request.sequence);
        client.wait(&mut self.positions, slot, request.line, key);
        let index = request.client;
        self.settle(index);
    }

    /// Takes a request into service, if it waits.
    pub(crate) fn take(&mut self, slot: u32) {
        if !self.positions.contains(slot) {
            return;
        }
        let Request { client, line, .. } = self.requests[slot as usize];
        self.clients[client as usize].stop_waiting(&mut self.positions, slot, line);
        self.waiting -= 1;
        self.settle(client);
    }

    /// Blocks a request: it cannot be served until it waits again.
    pub(crate) fn block(&mut self, slot: u32) {
        self.take(slot);
        let now = self.fluid.now();
        let request = &mut self.requests[slot as usize];
        if !std::mem::replace(&mut request.blocked, true) {
            let client = &mut self.clients[request.client as usize];
            client.become_blocked(now);
            client.work = client.work.saturating_sub(request.remaining);
            let index = request.client;
            self.settle(index);
        }
    }

    /// Records `work` done for a request, and what remains of it now. The rest may also change without any
    /// work, when the driver learns it better.
    pub(crate) fn serve(&mut self, slot: u32, work: u64, remaining: u64) {
        let request = &mut self.requests[slot as usize];
        let client = &mut self.clients[request.client as usize];
        if !request.blocked {
            client.work = client
                .work
                .saturating_sub(request.remaining)
                .saturating_add(remaining);
        }
        request.remaining = remaining;
        if work > 0 {
            // A single large request is not a burst of many.
            let counted = work.min((self.burst / 2).saturating_sub(request.counted));
            request.counted += counted;
            let burst = fluid::distance(self.burst, 1);
            client.count(counted, burst, self.fluid.now());
            client.serve(&mut self.positions, request.line, work);
        }
        if self.positions.contains(slot) {
            let key = (remaining, request.sequence);
            client.wait(&mut self.positions, slot, request.line, key);
        }
        let index = request.client;
        self.settle(index);
        self.advance(work);
    }

    /// Removes a request.
    pub(crate) fn remove(&mut self, slot: u32) {
        self.block(slot);
        let Request {
            client,
            line,
            asked,
            ..
        } = self.requests[slot as usize];
        self.clients[client as usize].leave(line);
        self.clients[client as usize].asked -= asked;
        self.held -= 1;
        if self.clients[client as usize].held == 0 {
            self.leave(client);
        }
        if self.held == 0 {
            self.fluid.finish();
            self.forget_who_is_reached();
        }
    }

    /// Forgets all clients, after a long time without requests. Does nothing while a request is held.
    pub(crate) fn rest(&mut self) {
        if self.held > 0 {
            return;
        }
        while let Some((_, index)) = self.away.first() {
            self.forget(index);
        }
        self.fluid = Fluid::default();
        self.ahead = Ahead::default();
    }

    /// The next request: that of the first turn, or of a client that may go early.
    pub(crate) fn first(&self) -> Option<u32> {
        let (_, client) = self.turns.first()?;
        let (_, slot) = self.clients[client as usize].first()?;
        let Some(early) = self.early(self.requests[slot as usize].remaining) else {
            return Some(slot);
        };
        let (_, slot) = self.clients[early as usize].first()?;
        Some(slot)
    }

    /// The client of a later turn that goes before the first one, if any. `remaining` is that of the first
    /// turn's request. It is the client with the least work of those that have less than that, and whose work
    /// can all be done without making any other late.
    fn early(&self, remaining: u64) -> Option<u32> {
        if self.burst == 0 {
            return None;
        }
        let possible = self.turns.some_of_the_first().map(|turn| turn.work).min()?;
        if possible >= remaining {
            return None;
        }
        let now = self.fluid.now();
        let mut early = None;
        let mut least = remaining;
        let mut owed: u128 = 0;
        let mut spare = u128::MAX;
        for (turn, index) in self.turns.ascending(TURNS_MAX) {
            let client = &self.clients[index as usize];
            let fits = fluid::distance(turn.work, 1) <= spare;
            if turn.work < least && fits && !client.stands_back(now) {
                early = Some(index);
                least = turn.work;
            }
            owed = owed.saturating_add(client.owed(now));
            spare = spare.min(self.ahead.until(turn.rank, now).saturating_sub(owed));
            if least <= possible || spare < fluid::distance(possible, 1) {
                break;
            }
        }
        early
    }

    /// Whether a request waits.
    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.positions.contains(slot)
    }

    /// The number of waiting requests.
    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    /// The client that asks, known or new.
    fn enter(&mut self, asks: Option<Asks>) -> u32 {
        let name = asks.map(|asks| asks.name);
        let weight = asks.map_or(1, |asks| asks.weight.get());
        if let Some(&known) = name.and_then(|name| self.by_name.get(&name)) {
            return known;
        }
        let now = self.fluid.now();
        let index = match self.free.pop() {
            Some(index) => {
                self.clients[index as usize].become_another(name, weight, now);
                index
            }
            None => {
                self.clients.push(Client::new(name, weight, now));
                self.clients.len() as u32 - 1
            }
        };
        if let Some(name) = name {
            self.by_name.insert(name, index);
        }
        index
    }

    /// A client's last request has left.
    fn leave(&mut self, index: u32) {
        let client = &self.clients[index as usize];
        let forgotten = match client.name {
            Some(_) => client.forgotten(fluid::distance(self.burst, 1)),
            None => client.end(),
        };
        self.away.insert(index, (forgotten, index));
        self.settle(index);
        self.forget_who_is_reached();
        if self.away.len() > self.clients_max
            && let Some((_, nearest)) = self.away.first()
        {
            self.forget(nearest);
        }
    }

    /// Forgets a client without requests.
    fn forget(&mut self, index: u32) {
        self.away.remove(index);
        let Client { name, weight, .. } = self.clients[index as usize];
        self.fluid.set_end(index, weight, 0);
        self.ahead.remove(index);
        if let Some(name) = name {
            self.by_name.remove(&name);
        }
        self.free.push(index);
    }

    /// Updates a client's places after it has changed.
    fn settle(&mut self, index: u32) {
        let client = &mut self.clients[index as usize];
        let ranked = client.first().map(|(turn, _)| turn);
        if ranked != client.ranked {
            client.ranked = ranked;
            match ranked {
                Some(turn) => self.turns.insert(index, turn),
                None => {
                    self.turns.remove(index);
                }
            }
        }
        let now = self.fluid.now();
        self.ahead
            .set(index, client.weight, client.claims_from(), now);
        let ends = client.end();
        if ends != client.ends {
            client.ends = ends;
            self.fluid.set_end(index, client.weight, ends);
        }
    }

    /// Lets fair sharing do as much work as the server did.
    fn advance(&mut self, work: u64) {
        let mut left = fluid::distance(work, 1);
        while left > 0
            && let Some(ended) = self.fluid.advance(&mut left)
        {
            let weight = self.clients[ended as usize].weight;
            self.fluid.set_end(ended, weight, 0);
        }
        self.forget_who_is_reached();
    }

    fn forget_who_is_reached(&mut self) {
        while let Some(((forgotten, _), index)) = self.away.first()
            && forgotten <= self.fluid.now()
        {
            self.forget(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    const REMEMBERED_MAX: usize = 10;

    fn ask(shares: &mut Shares, slot: u32, name: u128, work: u64) {
        let weight = NonZeroU32::MIN;
        let sequence = u64::from(slot);
        shares.submit(slot, Some(Asks { name, weight }), work, sequence);
        shares.wait(slot);
    }

    /// Like a network with endless IPv6 addresses, each ahead of its share.
    #[test]
    fn ever_new_clients_are_forgotten_and_the_table_stays_small() {
        let mut shares = Shares::new(REMEMBERED_MAX, 0);
        ask(&mut shares, 0, 0, u64::MAX / 2);
        for name in 1..100_000 {
            ask(&mut shares, 1, name, 100);
            shares.take(1);
            shares.serve(1, 100, 0);
            shares.remove(1);
            assert!(shares.by_name.len() <= REMEMBERED_MAX + 2);
        }
        assert!(shares.clients.len() <= REMEMBERED_MAX + 2);
        assert_eq!((shares.first(), shares.len()), (Some(0), 1));
    }

    #[test]
    fn when_nothing_is_held_nobody_is_ahead() {
        let mut shares = Shares::new(REMEMBERED_MAX, 0);
        ask(&mut shares, 0, 0, 5000);
        ask(&mut shares, 1, 1, 100);
        shares.serve(1, 100, 0);
        shares.remove(1);
        assert_eq!(shares.by_name.len(), 2, "it is ahead");
        shares.remove(0);
        assert!(shares.by_name.is_empty());
        ask(&mut shares, 0, 1, 300);
        ask(&mut shares, 1, 0, 400);
        assert_eq!(shares.first(), Some(0));
    }
}
