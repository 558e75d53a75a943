//! The order of `shares`: among clients that in which fair sharing among them would end, inside a client
//! shortest remaining first.
//!
//! Source: the fair sojourn protocol (Friedman and Henderson, SIGMETRICS 2003) over clients instead of
//! jobs; late jobs share instead of blocking (PSBS: Dell'Amico, Carra and Michiardi, 2016); what cannot be
//! served now is owed nothing.
//!
//! Every client has come to a position: the work that it was given per unit of its weight, counted from
//! where all others were when it came. A request's rank is the position that its client has come to when
//! it ends, were it served now:
//!
//! ```text
//! rank = position of its client + remaining / weight
//! V    = the position of all clients under fair sharing ([`fluid`])
//! ```
//!
//! The client with the request of the smallest rank has its turn: that request is served, or a shorter one of
//! its own that came later. A client with less to do may *go early*, before that turn; see below. What is served
//! keeps its rank, and the others of its client are moved back by what it gets. So who splits a download into
//! pieces moves each further piece back by the last one, and gains nothing; and whoever is below its share
//! goes first.
//!
//! **Theorem.** Let the server not idle while a request waits, let lengths be as told, and let a request that
//! comes during a quantum count as coming at its end. Then the request of a client that has no other ends
//! no later than under fair sharing among clients in proportion to their weights, and of a client that has
//! several all have ended when fair sharing has ended all: whatever the others do, how many requests they
//! have, split or join. (A client with several at once has them in the order of their ranks; a short one that
//! comes after a long one was served ahead of its share can end later than under fair sharing, and the long
//! one earlier.)
//!
//! *Proof.* A client is *due by* r if its turn is of rank r or less. Let w be its weight and p its position; if it
//! is due by r, p is that of its oldest line with a rank of r or less. Let
//!
//! ```text
//! S(r) = sum over the clients ahead, p > V, of w * (min(r, p) - V)
//!      - sum over those behind, p < V, that are due by r, of w * (V - p)
//! ```
//!
//! S(r) is the work that fair sharing does until V is r, less what those due by r still need by then, and less
//! what all others may yet ask for by then: a client ahead can ask for nothing until V has come to it, and one
//! that is behind and not due begins a new line at V. If S(r) >= 0 at each turn r until V comes to it, each
//! is in time: nobody is ahead before r then, so nobody due by r is behind, and who has come to its rank
//! is done. S(r) does stay at 0 or above. Work in the turn of rank k moves V by the work over the weight of all, so that
//! the terms of S(r) lose no more than the work; if k <= r, the served client's term gains as much. So S(r) falls
//! for no r from k on, and before the first turn there is none. A new request is ranked by a line that begins at
//! V or later, so that S at its turn is what it is at the turn before, or more. Ranks never fall, and a client that
//! leaves or is moved back is due by less. `tests/shares` holds all of it.
//!
//! **Going early.** Work in a later turn k takes at most itself from S(r) at each turn r before k. So a client can
//! have all its work done ahead of the first turn, and nobody is late for it, if S(r) is as much at each turn
//! before its own. Of the first [`TURNS_MAX`] turns the client with the least work goes early, if it has less than remains of
//! the request that is first. (S is taken for a bit less than it is: [`ahead`].) This is where fair sojourn
//! protocols lose most to SRPT: a long request that is nearly done waits for a shorter one that has more left.
//! A client goes early with all its work or not at all, so that a piece does not where the whole would not; and one that
//! stands back never does. Without a burst nobody stands back and nobody goes early: a whole gives way to more
//! than its pieces do, which only standing back makes up for.
//!
//! **Standing back.** Fair sharing gives a client that asks for piece after piece half the server beside
//! anybody who comes, for each piece is due soon; so does this order, where one that asked for the whole at
//! once would wait behind all smaller ones. So a client that got more than a *burst* without a pause, or asks for
//! more at once, stands back (a request counts as half a burst at most): what it asks for from then on is ranked later, by a burst
//! and what it has asked for at most. That takes nothing from the theorem for all others,
//! since it only moves ranks back. For the client itself the theorem holds for what it asks for in its first
//! burst; of what it asks for beyond each request ends when V is so much farther than the theorem says, at the latest,
//! and in a lasting overload it gets about two thirds of what V goes. A client is in one burst until V has
//! gone as far without it as it got (a burst at most).
//!
//! Each operation costs O(log n). Clients that hold no request are remembered until V has come to where they
//! stand, [`Shares::new`]'s `clients_max` of them at most: beyond, those nearest are forgotten.

mod ahead;
mod client;
mod fluid;

use std::collections::HashMap;

use crate::heap::{IndexedHeap, Positions};
use crate::job::Client as Asks;
use ahead::Ahead;
use client::{Client, Turn};
use fluid::{Fluid, Position};

/// So many turns are looked at, the first among them, for a request that goes early.
const TURNS_MAX: usize = 16;

/// Requests in order; see the module's text. A request is named by its slot.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    fluid: Fluid,
    clients: Vec<Client>,
    free: Vec<u32>,
    by_name: HashMap<u128, u32>,
    /// Clients that have requests waiting, by their turns.
    turns: IndexedHeap<Turn>,
    /// How much those can wait that are ahead of their share.
    ahead: Ahead,
    /// Clients without a request, by where V is when they are forgotten.
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
    /// What it asked for, as far as it counts as part of a burst.
    asked: u64,
    /// Work that was done for it, as far as that counts.
    counted: u64,
    sequence: u64,
    blocked: bool,
}

impl Shares {
    /// Nobody, and room to remember so many clients without a request. Those that get more than `burst`
    /// work in a row stand back; nobody does without one.
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

    /// A request comes, in service until it waits.
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

    /// A request waits, whether it was served before or could not be.
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

    /// A request is taken into service, if it waits.
    pub(crate) fn take(&mut self, slot: u32) {
        if !self.positions.contains(slot) {
            return;
        }
        let Request { client, line, .. } = self.requests[slot as usize];
        self.clients[client as usize].stop_waiting(&mut self.positions, slot, line);
        self.waiting -= 1;
        self.settle(client);
    }

    /// A request cannot be served until it waits again.
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

    /// So much work was done for a request, which has so much left by now; also what is left of it may
    /// be known better, without any work.
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
            // One that is large is no row of many.
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

    /// A request leaves.
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

    /// Nothing was held for so long that nobody is owed anything, and nobody stands back.
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

    /// The request that is next: of the first turn, or of a client that may go early.
    pub(crate) fn first(&self) -> Option<u32> {
        let (_, client) = self.turns.first()?;
        let (_, slot) = self.clients[client as usize].first()?;
        let Some(early) = self.early(self.requests[slot as usize].remaining) else {
            return Some(slot);
        };
        let (_, slot) = self.clients[early as usize].first()?;
        Some(slot)
    }

    /// The client of a later turn that goes before the first, whose request has so much remaining: that with the
    /// least work of those who have less, and could be done with all of it before anybody is late for it.
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

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    /// The client that asks, as it is known or new.
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

    /// A client without requests is no more.
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

    /// Puts a client in its places, as it has changed.
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

    /// Fair sharing has done as much work as the server.
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

    /// As from a network with IPv6 addresses without end, each ahead of its share.
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
