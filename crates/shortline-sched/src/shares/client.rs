//! One client: its position, and the lines by which its requests are ranked.
//!
//! A client's *position* is the work done for it per unit of weight, counted from the position of all others
//! when its first request came. A client behind V has had less than its fair share so far. A request that
//! comes then must not claim service from before its arrival. So it is ranked by a *line* of its own, which
//! begins at V. Work for a request counts on its line and on all older ones. When an older line overtakes a
//! newer one, the two are joined. Usually there is only one line.
//!
//! A client that has got more than a *burst* without a pause stands back. The line for its next request moves
//! on by one and a half times what it gets. It goes ahead of V (or of the client's position, if that is ahead)
//! by at most a burst plus what the client has asked for. This applies to later requests; a request keeps its
//! line. A request that exceeds a burst together with the client's other requests begins that much later.

use super::fluid::{Position, distance};
use crate::heap::{Heap, Positions};

/// The most lines of a client. A request that would need one more moves the newest ahead.
const LINES_MAX: usize = 4;

/// Remaining work, then the order of submission.
pub(super) type InnerKey = (u64, u64);

/// A client's turn: the rank at which it is served next, the order of submission of the request served then,
/// and the client's work in all. It orders by these in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    pub(super) rank: Position,
    pub(super) sequence: u64,
    pub(super) work: u64,
}

/// A client with requests, or ahead of its share.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) name: Option<u128>,
    pub(super) weight: u32,
    /// What remains of its requests, without the blocked ones.
    pub(super) work: u64,
    /// The work that its requests ask for, each as far as it counts as part of a burst.
    pub(super) asked: u64,
    /// The number of its requests.
    pub(super) held: u32,
    /// The number of its requests that are not blocked.
    ready: u32,
    /// The value of V when its last ready request was blocked.
    blocked_since: Position,
    /// The oldest first; never empty. The first line's position is the client's.
    lines: Vec<Line>,
    line_next: u32,
    /// How far V advanced while the client had work here but none under fair sharing.
    idle: Position,
    /// The work counted towards bursts since it came, per unit of weight.
    got: Position,
    /// Where a new request begins, if that is beyond its newest line.
    further: Position,
    /// Its turn, as last entered in the order of turns.
    pub(super) ranked: Option<Turn>,
    /// The end of its work, as last entered in the fluid.
    pub(super) ends: Position,
}

#[derive(Clone, Debug)]
struct Line {
    /// Its requests have this line number or a larger one, below that of the next line.
    number: u32,
    position: Position,
    /// Its waiting requests.
    waiting: Heap<InnerKey>,
    /// The number of its requests, waiting or not.
    held: u32,
}

impl Client {
    pub(super) fn new(name: Option<u128>, weight: u32, now: Position) -> Self {
        Self::on(vec![Line::new(0, now)], name, weight)
    }

    /// Reuses the place for another client.
    pub(super) fn become_another(&mut self, name: Option<u128>, weight: u32, now: Position) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.truncate(1);
        lines[0].number = 0;
        lines[0].position = now;
        *self = Self::on(lines, name, weight);
    }

    /// A client without requests, on one line.
    fn on(lines: Vec<Line>, name: Option<u128>, weight: u32) -> Self {
        Self {
            name,
            weight: weight.max(1),
            work: 0,
            asked: 0,
            held: 0,
            ready: 0,
            blocked_since: 0,
            lines,
            line_next: 1,
            idle: 0,
            got: 0,
            further: 0,
            ranked: None,
            ends: 0,
        }
    }

    /// Adds a request that is in [`Self::asked`] already. Returns the number of its line.
    pub(super) fn arrive(&mut self, burst: Position, now: Position) -> u32 {
        self.become_ready(now);
        if self.held == 0 {
            self.begin(now);
        }
        self.come_to(now);
        let asked = distance(self.asked, u64::from(self.weight));
        let beyond_a_burst = now.max(self.lines[0].position) + asked.saturating_sub(burst);
        let begins = now.max(self.further).max(beyond_a_burst);
        let lines = self.lines.len();
        let newest = self.newest();
        if newest.position < begins {
            // The first line is the client's position, which standing back does not change.
            let is_needed = newest.held > 0 || (lines == 1 && begins > now);
            if is_needed && lines < LINES_MAX {
                self.begin_line(begins);
            } else {
                newest.position = begins;
            }
        }
        self.held += 1;
        let newest = self.newest();
        newest.held += 1;
        newest.number
    }

    /// A request can be served.
    pub(super) fn become_ready(&mut self, now: Position) {
        if self.ready == 0 && self.held > 0 {
            // The others advanced while it was blocked. It is owed nothing for that.
            let passed = now.saturating_sub(self.blocked_since);
            for line in &mut self.lines {
                line.position = line.position.max(now.min(line.position + passed));
            }
        }
        self.ready += 1;
    }

    /// Counts the time since its work ended under fair sharing as idle, if it has ended.
    pub(super) fn come_to(&mut self, now: Position) {
        self.idle += now.saturating_sub(self.end());
    }

    /// A request can no longer be served.
    pub(super) fn become_blocked(&mut self, now: Position) {
        self.ready -= 1;
        if self.ready == 0 {
            self.blocked_since = now;
        }
    }

    /// Removes a request, after [`Self::become_blocked`].
    pub(super) fn leave(&mut self, number: u32) {
        self.held -= 1;
        let index = self.line(number);
        self.lines[index].held -= 1;
        // The first line is the position, and the newest is for further requests.
        if self.lines[index].held == 0 && index > 0 && index + 1 < self.lines.len() {
            self.lines.remove(index);
        }
    }

    /// Records `work` done for a request of a line.
    pub(super) fn serve(&mut self, positions: &mut Positions, number: u32, work: u64) {
        let step = distance(work, u64::from(self.weight));
        let index = self.line(number);
        for line in &mut self.lines[..=index] {
            line.position += step;
        }
        while self.is_overtaken(index + 1) {
            self.join(positions, index + 1);
        }
    }

    /// Counts `work` as part of a burst. Beyond a burst the client stands back. `now` is V.
    pub(super) fn count(&mut self, work: u64, burst: Position, now: Position) {
        let step = distance(work, u64::from(self.weight));
        self.got = self.got.saturating_add(step);
        if self.got > burst {
            let begun = self.further.max(self.newest().position);
            let asked = distance(self.asked, u64::from(self.weight));
            let farthest = now.max(self.lines[0].position) + asked + burst;
            self.further = farthest.min(begun + step + step / 2);
        }
    }

    /// A request waits, or its remaining work has changed.
    pub(super) fn wait(
        &mut self,
        positions: &mut Positions,
        item: u32,
        number: u32,
        key: InnerKey,
    ) {
        let index = self.line(number);
        self.lines[index].waiting.insert(positions, item, key);
    }

    /// A request no longer waits.
    pub(super) fn stop_waiting(&mut self, positions: &mut Positions, item: u32, number: u32) {
        let index = self.line(number);
        self.lines[index].waiting.remove(positions, item);
    }

    /// Its turn, and the item served in it. The turn has the smallest rank of its waiting requests. The item
    /// is the shortest of that line and of newer ones.
    pub(super) fn first(&self) -> Option<(Turn, u32)> {
        let (rank, index) = self.due()?;
        let shortest = |line: &Line| line.waiting.first();
        let ((_, sequence), item) = self.lines[index..].iter().filter_map(shortest).min()?;
        let turn = Turn {
            rank,
            sequence,
            work: self.work,
        };
        Some((turn, item))
    }

    /// The smallest rank, and the index of its line.
    fn due(&self) -> Option<(Position, usize)> {
        let ranked = |(index, line): (usize, &Line)| {
            let ((remaining, _), _) = line.waiting.first()?;
            let rank = line.position + distance(remaining, u64::from(self.weight));
            Some((rank, index))
        };
        self.lines.iter().enumerate().filter_map(ranked).min()
    }

    /// Whether it stands back with its next turn. `now` is V.
    pub(super) fn stands_back(&self, now: Position) -> bool {
        let usual = now.max(self.lines[0].position);
        let line = self.due().map_or(0, |(_, index)| index);
        self.further > usual || self.lines[line].position > usual
    }

    /// The work that fair sharing owes it, in 2^-32 units.
    pub(super) fn owed(&self, now: Position) -> u128 {
        let behind = now.saturating_sub(self.lines[0].position);
        behind.saturating_mul(u128::from(self.weight))
    }

    /// The position from which it may claim more: its own, or without a request the end of its work.
    pub(super) fn claims_from(&self) -> Position {
        match self.held {
            0 => self.end(),
            _ => self.lines[0].position,
        }
    }

    /// The position at which its work ends under fair sharing.
    pub(super) fn end(&self) -> Position {
        self.lines[0].position + self.idle + distance(self.work, u64::from(self.weight))
    }

    /// The value of V at which a client without requests can be forgotten: its own position, and beyond that as
    /// far as it got, at most a burst.
    pub(super) fn forgotten(&self, burst: Position) -> Position {
        let stands = self.end().max(self.further);
        stands + burst.min(self.got)
    }

    /// Begins again after a time without requests: at V, or at its own position if that is ahead.
    fn begin(&mut self, now: Position) {
        let newest = self.newest().position;
        self.lines.truncate(1);
        self.lines[0].position = (self.lines[0].position + self.idle).max(now);
        self.idle = 0;
        if newest > self.lines[0].position {
            self.begin_line(newest);
        }
    }

    fn begin_line(&mut self, position: Position) {
        self.lines.push(Line::new(self.line_next, position));
        self.line_next += 1;
    }

    /// The index of the line with this number, or of the line with which it was joined.
    fn line(&self, number: u32) -> usize {
        let after = self.lines.iter().rposition(|line| line.number <= number);
        after.unwrap_or(0)
    }

    fn newest(&mut self) -> &mut Line {
        let last = self.lines.len() - 1;
        &mut self.lines[last]
    }

    fn is_overtaken(&self, index: usize) -> bool {
        let older = &self.lines[index - 1];
        self.lines
            .get(index)
            .is_some_and(|line| line.position <= older.position)
    }

    /// Joins a line with the older one.
    fn join(&mut self, positions: &mut Positions, index: usize) {
        let mut line = self.lines.remove(index);
        let older = &mut self.lines[index - 1];
        older.held += line.held;
        older.waiting.append(positions, &mut line.waiting);
    }
}

impl Line {
    fn new(number: u32, position: Position) -> Self {
        Self {
            number,
            position,
            waiting: Heap::new(),
            held: 0,
        }
    }
}
