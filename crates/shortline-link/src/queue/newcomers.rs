//! Newcomers: connections that were given something and have acknowledged nothing yet. Of one client there are few
//! at a time.
//!
//! What a newcomer gets is a wager. A client that opens a thousand connections at once has a first window of data on each
//! of them in some queue before any of them has slowed down. To one that never acknowledges our kernel sends
//! that again and again, ahead of everybody: no order reaches what was granted. So further connections of the client
//! wait until one of its newcomers has acknowledged something, has gone, or has been one for [`NEW_NS_MIN`]: a client some of
//! whose users have vanished is slowed down, not stopped. Where all of them vanish, those that follow are newcomers
//! for twice as long, up to [`NEW_NS_MAX`], until one acknowledges.
//!
//! While nothing is known of the uplink (mode `auto`, starting), a connection is new until it has acknowledged
//! *all* that it was given. Else a thousand downloads of one client fill the kernel in a second: each has
//! acknowledged something, and each has its congestion window in the uplink's queue and 32 KiB more in its socket. No order
//! reaches these megabytes when the rate is found.
//!
//! Whether a connection has acknowledged is asked only where it matters, when there is no room, and of so many at a time
//! that a crowd of such clients costs the others nothing: each of them waits longer then. A connection is
//! new for its handshake of TLS, and once more for its first response.

use std::collections::{BTreeMap, HashMap, VecDeque};

use shortline_sched::JobId;
use shortline_sched::units::Rate;

use crate::connections::{ConnectionId, Connections, Sockets};

/// Newcomers of one client, at least.
const OF_A_CLIENT_MIN: usize = 32;
/// So long their first windows of data may take on a link whose rate is known. At 10 Gbit/s these are 342 connections: 32, looked at
/// every 250 us, would be 128,000 connections a second, and the link 40 % idle.
const FIRST_WINDOWS_NS: u64 = 4_000_000;
/// The first window of data: ten packets (RFC 6928).
const FIRST_WINDOW_BYTES: u64 = 14_600;
/// A connection is one for so long.
const NEW_NS_MIN: u64 = 3_000_000_000;
/// After others of its client that acknowledged nothing, for so long at most.
const NEW_NS_MAX: u64 = 16 * NEW_NS_MIN;
/// They are looked at so often at most, and as often while somebody waits.
pub(super) const LOOK_NS: u64 = 250_000;
/// Connections that are asked at a look, or some more: a tenth of a millisecond.
const ASKED_MAX: usize = 256;
/// Newcomers in all from which on those that have gone are looked for, lest they are kept for ever.
const SWEEP_FROM: usize = 1024;

/// The newcomers, and the jobs that wait because there are too many; see the module's text.
pub(super) struct Newcomers {
    by_client: HashMap<u128, OfClient>,
    /// Newcomers of all.
    new: usize,
    /// So many make a sweep due.
    sweep_at: usize,
    /// Clients that have jobs held back, in turn; also some whose jobs have all gone.
    waiting: VecDeque<u128>,
    /// Jobs held back.
    held: usize,
    place_next: u64,
    looked_ns: Option<u64>,
    /// Of one client there are so many at most.
    of_a_client_max: usize,
    /// Whether a connection is new until it has acknowledged all, not only anything.
    until_all: bool,
}

struct OfClient {
    new: Vec<Newcomer>,
    /// The next is one for so long.
    new_ns: u64,
    /// In the order that they came.
    held: BTreeMap<u64, JobId>,
    /// Whether it is among those that wait.
    waits: bool,
}

struct Newcomer {
    connection: ConnectionId,
    since_ns: u64,
    new_ns: u64,
}

impl Newcomers {
    /// None yet, on a link of that rate, if it is known. `until_all`: see [`Self::acknowledge_all`].
    pub fn new(until_all: bool, rate: Option<Rate>) -> Self {
        Self {
            by_client: HashMap::new(),
            new: 0,
            sweep_at: 0,
            waiting: VecDeque::new(),
            held: 0,
            place_next: 0,
            looked_ns: None,
            of_a_client_max: of_a_client_max(rate),
            until_all,
        }
    }

    /// The link's rate is this from now on, or is not known.
    pub fn set_rate(&mut self, rate: Option<Rate>) {
        self.of_a_client_max = of_a_client_max(rate);
    }

    /// From now on a connection is new until it has acknowledged all that it was given, or (`false`) anything.
    pub fn acknowledge_all(&mut self, until_all: bool) {
        self.until_all = until_all;
    }

    /// Whether the client may be granted something on a connection that is new.
    pub fn has_room(
        &mut self,
        client: u128,
        connections: &Connections,
        sockets: &dyn Sockets,
        now_ns: u64,
    ) -> bool {
        let Some(of_client) = self.by_client.get_mut(&client) else {
            return true;
        };
        let is_full = of_client.new.len() >= self.of_a_client_max;
        // What becomes free while others wait is theirs.
        if is_full && of_client.held.is_empty() && is_due(self.looked_ns, now_ns) {
            self.looked_ns = Some(now_ns);
            self.new -= of_client.look(self.until_all, connections, sockets, now_ns);
        }
        of_client.new.len() < self.of_a_client_max
    }

    /// Something is granted on a connection for the first time.
    pub fn note(
        &mut self,
        client: u128,
        connection: ConnectionId,
        connections: &Connections,
        now_ns: u64,
    ) {
        let of_client = self.by_client.entry(client).or_default();
        of_client.new.push(Newcomer {
            connection,
            since_ns: now_ns,
            new_ns: of_client.new_ns,
        });
        self.new += 1;
        if self.new >= self.sweep_at.max(SWEEP_FROM) {
            self.sweep(connections, now_ns);
            self.sweep_at = 2 * self.new;
        }
    }

    /// The connection is no newcomer of the client any more, if it was one.
    pub fn leave(&mut self, client: u128, connection: ConnectionId) {
        if let Some(of_client) = self.by_client.get_mut(&client) {
            let before = of_client.new.len();
            of_client
                .new
                .retain(|newcomer| newcomer.connection != connection);
            self.new -= before - of_client.new.len();
        }
    }

    /// The job waits until there is room for it. Returns its place.
    pub fn hold(&mut self, client: u128, id: JobId) -> u64 {
        let place = self.place_next;
        self.place_next += 1;
        let of_client = self.by_client.entry(client).or_default();
        of_client.held.insert(place, id);
        if !std::mem::replace(&mut of_client.waits, true) {
            self.waiting.push_back(client);
        }
        self.held += 1;
        place
    }

    /// The job that waits at that place waits no longer.
    pub fn forget(&mut self, client: u128, place: u64) {
        if let Some(of_client) = self.by_client.get_mut(&client)
            && of_client.held.remove(&place).is_some()
        {
            self.held -= 1;
        }
    }

    /// How many jobs wait.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Whether any job waits.
    pub fn hold_any(&self) -> bool {
        self.held > 0
    }

    /// Jobs for which there is room by now, if it is time to look.
    pub fn take_ready(
        &mut self,
        connections: &Connections,
        sockets: &dyn Sockets,
        now_ns: u64,
    ) -> Vec<JobId> {
        if self.held == 0 || !is_due(self.looked_ns, now_ns) {
            return Vec::new();
        }
        self.looked_ns = Some(now_ns);
        let (mut ready, mut asked) = (Vec::new(), 0);
        for _ in 0..self.waiting.len() {
            if asked >= ASKED_MAX {
                break;
            }
            let Some(client) = self.waiting.pop_front() else {
                break;
            };
            let Some(of_client) = self.by_client.get_mut(&client) else {
                continue;
            };
            asked += of_client.new.len();
            self.new -= of_client.look(self.until_all, connections, sockets, now_ns);
            let room = self.of_a_client_max.saturating_sub(of_client.new.len());
            let first = (0..room).map_while(|_| of_client.held.pop_first());
            ready.extend(first.map(|(_, id)| id));
            of_client.waits = !of_client.held.is_empty();
            if of_client.waits {
                self.waiting.push_back(client);
            }
        }
        self.held -= ready.len();
        ready
    }

    /// Forgets those that have gone, or were new for long enough. Nobody is asked.
    fn sweep(&mut self, connections: &Connections, now_ns: u64) {
        self.by_client.retain(|_, of_client| {
            of_client
                .new
                .retain(|newcomer| newcomer.is_young(now_ns) && newcomer.is_there(connections));
            !of_client.new.is_empty() || of_client.waits
        });
        self.new = self.by_client.values().map(|each| each.new.len()).sum();
    }
}

impl Default for OfClient {
    fn default() -> Self {
        Self {
            new: Vec::new(),
            new_ns: NEW_NS_MIN,
            held: BTreeMap::new(),
            waits: false,
        }
    }
}

impl OfClient {
    /// Lets those go that are newcomers no more. How many.
    fn look(
        &mut self,
        until_all: bool,
        connections: &Connections,
        sockets: &dyn Sockets,
        now_ns: u64,
    ) -> usize {
        let before = self.new.len();
        let mut new_ns = self.new_ns;
        let mut any_acknowledged = false;
        self.new.retain(|newcomer| {
            // So has one that has gone.
            let acknowledged =
                !newcomer.is_there(connections) || sockets.has_acknowledged(newcomer.connection);
            let is_owing = until_all
                && newcomer.is_there(connections)
                && sockets.unacknowledged_bytes(newcomer.connection) > 0;
            let is_new = (!acknowledged || is_owing) && newcomer.is_young(now_ns);
            any_acknowledged |= acknowledged;
            if !is_new && !acknowledged {
                new_ns = new_ns.max(NEW_NS_MAX.min(2 * newcomer.new_ns));
            }
            is_new
        });
        self.new_ns = match any_acknowledged {
            true => NEW_NS_MIN,
            false => new_ns,
        };
        before - self.new.len()
    }
}

impl Newcomer {
    fn is_young(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.since_ns) < self.new_ns
    }

    fn is_there(&self, connections: &Connections) -> bool {
        connections.get(self.connection).is_some()
    }
}

/// How many newcomers a client may have on a link of that rate.
fn of_a_client_max(rate: Option<Rate>) -> usize {
    let bytes = |rate: Rate| u128::from(rate.bps()) * u128::from(FIRST_WINDOWS_NS) / 8_000_000_000;
    let windows = rate.map_or(0, |rate| bytes(rate) / u128::from(FIRST_WINDOW_BYTES));
    usize::try_from(windows).map_or(usize::MAX, |windows| windows.max(OF_A_CLIENT_MIN))
}

fn is_due(looked_ns: Option<u64>, now_ns: u64) -> bool {
    looked_ns.is_none_or(|looked_ns| now_ns.saturating_sub(looked_ns) >= LOOK_NS)
}
