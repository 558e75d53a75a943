//! One client: how far it has come, by which of its requests are ranked.
//!
//! A client's *position* is the work it was given, per unit of weight, counted from where all others were
//! when its first request came. Behind V it lags: it was given less than its fair share so far. A request
//! that comes then may not use what others did not get before it was there; so it is ranked by a *line* of
//! its own, that begins at V. Work for a request counts on its line and on all older ones. A line that is
//! overtaken by an older one says nothing any more and is joined with it: mostly there is but one.
//!
//! A client that has got more than a *burst* without a pause stands back: where its next request begins
//! moves on by half as much again as it gets, until that is a burst, and what it has asked for, ahead of V. That is
//! for what it asks from then on; a request that it has already keeps its line. What it asks for beyond a
//! burst at once begins behind what it has asked for before.

use super::fluid::{Position, distance};
use crate::heap::{Heap, Positions};

/// Lines of a client at most; requests that would need one more move the newest ahead.
const LINES_MAX: usize = 4;

/// Remaining work, then the order of submission.
pub(super) type InnerKey = (u64, u64);

/// When a client is served next, by its rank, and then by the order of submission of what is served then;
/// and how much work it has in all.
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
    /// What remains of its requests, those left out that cannot be served now.
    pub(super) work: u64,
    /// What its requests ask for, none with more than counts as part of a burst.
    pub(super) asked: u64,
    /// Its requests.
    pub(super) held: u32,
    /// Those that can be served.
    ready: u32,
    /// Where V was when the last of them could no longer be served.
    blocked_since: Position,
    /// The oldest first; never empty. The first is the client's position.
    lines: Vec<Line>,
    line_next: u32,
    /// How far V went while the client had nothing to be done under fair sharing, though it had here.
    idle: Position,
    /// What it got per unit of weight since it came.
    got: Position,
    /// Where a request begins that comes now, if that is beyond its newest line.
    further: Position,
    /// The places that it has by its turn and by the end of its work, as they were told last.
    pub(super) ranked: Option<Turn>,
    pub(super) ends: Position,
}

#[derive(Clone, Debug)]
struct Line {
    /// The requests from this number on are on it, up to the next line's.
    number: u32,
    position: Position,
    /// Those of its requests that wait.
    waiting: Heap<InnerKey>,
    /// Its requests, waiting or not.
    held: u32,
}

impl Client {
    pub(super) fn new(name: Option<u128>, weight: u32, now: Position) -> Self {
        Self::on(vec![Line::new(0, now)], name, weight)
    }

    /// The same room for another client.
    pub(super) fn become_another(&mut self, name: Option<u128>, weight: u32, now: Position) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.truncate(1);
        lines[0].number = 0;
        lines[0].position = now;
        *self = Self::on(lines, name, weight);
    }

    /// A client without requests on its one line.
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

    /// A request comes, which is told in [`Self::asked`] already; returns the number of its line.
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
            // The first line says how far the client has come, which standing back does not change.
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
            // The others went on without it, which is no share that it was refused.
            let passed = now.saturating_sub(self.blocked_since);
            for line in &mut self.lines {
                line.position = line.position.max(now.min(line.position + passed));
            }
        }
        self.ready += 1;
    }

    /// What comes now comes after all that it had is done under fair sharing, if that is so.
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

    /// A request leaves for good, after [`Self::become_blocked`].
    pub(super) fn leave(&mut self, number: u32) {
        self.held -= 1;
        let index = self.line(number);
        self.lines[index].held -= 1;
        // The first is the position; the newest holds for requests to come.
        if self.lines[index].held == 0 && index > 0 && index + 1 < self.lines.len() {
            self.lines.remove(index);
        }
    }

    /// So much work was done for a request.
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

    /// So much work for it counts as part of a burst, V being at `now`: beyond it the client stands back.
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

    /// A request waits, or has another amount of work left than before.
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

    /// A request waits no longer.
    pub(super) fn stop_waiting(&mut self, positions: &mut Positions, item: u32, number: u32) {
        let index = self.line(number);
        self.lines[index].waiting.remove(positions, item);
    }

    /// Its turn: the smallest rank of its requests that wait. Then which of them is served in it, as an
    /// item: the shortest on that line and on newer ones.
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

    /// Whether it stands back with what it would be served next, V being at `now`.
    pub(super) fn stands_back(&self, now: Position) -> bool {
        let usual = now.max(self.lines[0].position);
        let line = self.due().map_or(0, |(_, index)| index);
        self.further > usual || self.lines[line].position > usual
    }

    /// So much work it is owed by fair sharing, in 2^-32 units.
    pub(super) fn owed(&self, now: Position) -> u128 {
        let behind = now.saturating_sub(self.lines[0].position);
        behind.saturating_mul(u128::from(self.weight))
    }

    /// Where it may claim more from: where it has come to, or without a request where its work ends.
    pub(super) fn claims_from(&self) -> Position {
        match self.held {
            0 => self.end(),
            _ => self.lines[0].position,
        }
    }

    /// Where its work ends under fair sharing.
    pub(super) fn end(&self) -> Position {
        self.lines[0].position + self.idle + distance(self.work, u64::from(self.weight))
    }

    /// Where V has to come to until a client without requests is as one that never asked: to where it
    /// stands, and as far again as it got, a burst at most.
    pub(super) fn forgotten(&self, burst: Position) -> Position {
        let stands = self.end().max(self.further);
        stands + burst.min(self.got)
    }

    /// It has no requests any more, and begins where the others are, or where it was if that is ahead.
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

    /// The index of the line of that number, or of the one that it was joined with.
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
