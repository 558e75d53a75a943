//! `las`: least attained service first, exactly.
//!
//! The jobs that have had least service share the servers (foreground-background). When they have
//! caught up with the jobs that had next to least, they share with them. A level is a group of jobs
//! of one class of clients and of equal service a, which therefore move together:
//!
//! - its first job ends when a reaches that job's work;
//! - it catches up with the level before it when their a are equal. If both are of the same class
//!   they become one level; else they share from then on, as long as neither is held back by its
//!   clients' cap.
//!
//! Capacity is given out from the least service upwards, by water level among equals (see
//! `sharing.rs`). So only as many levels move as there are servers and classes. An event costs
//! O(servers + classes + log n), plus joining the smaller level to the larger.

use std::collections::BTreeMap;

use super::{Capacity, NOTHING, ROUNDING_NS, Work, put};

pub(crate) struct Levels {
    servers: f64,
    caps: Vec<f64>,
    now_ns: f64,
    /// By descending service: the last has had least.
    levels: Vec<Level>,
    submitted: u64,
    /// When the job of each slot came: it is served from then on.
    started_ns: Vec<f64>,
    /// The key of each slot's job, for jobs that leave early.
    keys: Vec<Key>,
}

/// A job's work as the bits of a float above 0, whose order is that of the float; then the
/// order of submission.
type Key = (u64, u64);

struct Level {
    class: usize,
    attained_ns: f64,
    speed: f64,
    jobs: BTreeMap<Key, u32>,
}

enum Event {
    None,
    /// The first job of the level at this index ends.
    End(usize),
    /// The level at this index catches up with the one below it in the list.
    CatchUp(usize),
}

impl Levels {
    pub(super) fn new(capacity: &Capacity) -> Self {
        Self {
            servers: capacity.servers,
            caps: capacity.classes.iter().map(|class| class.cap).collect(),
            now_ns: 0.0,
            levels: Vec::new(),
            submitted: 0,
            started_ns: Vec::new(),
            keys: Vec::new(),
        }
    }

    pub(super) fn now_ns(&self) -> f64 {
        self.now_ns
    }

    /// When the job of a slot was first served.
    pub(super) fn started_ns(&self, slot: u32) -> f64 {
        self.started_ns[slot as usize]
    }

    pub(super) fn submit(&mut self, job: &Work) {
        put(&mut self.started_ns, job.slot as usize, self.now_ns);
        let key = (job.work_ns.to_bits(), self.submitted);
        self.submitted += 1;
        put(&mut self.keys, job.slot as usize, key);
        self.levels.push(Level {
            class: job.class,
            attained_ns: 0.0,
            speed: 0.0,
            jobs: BTreeMap::from([(key, job.slot)]),
        });
        self.rearrange();
    }

    pub(super) fn cancel(&mut self, slot: u32) {
        let key = self.keys[slot as usize];
        for level in &mut self.levels {
            if level.jobs.get(&key) == Some(&slot) {
                level.jobs.remove(&key);
                break;
            }
        }
        self.rearrange();
    }

    pub(super) fn run_until(&mut self, until_ns: f64) -> Option<u32> {
        loop {
            let (event_ns, event) = self.event_next();
            if event_ns > until_ns + ROUNDING_NS {
                self.serve(until_ns);
                return None;
            }
            self.serve(event_ns.min(until_ns));
            match event {
                Event::None => return None,
                Event::End(place) => {
                    let ended = self.levels[place].jobs.pop_first();
                    self.rearrange();
                    return ended.map(|(_, slot)| slot);
                }
                Event::CatchUp(place) => {
                    // Equal, apart from rounding.
                    self.levels[place].attained_ns = self.levels[place - 1].attained_ns;
                    self.rearrange();
                }
            }
        }
    }

    /// The next event and its time. Of events at the same time an end goes before a catching up,
    /// and the level of least service before the others.
    fn event_next(&self) -> (f64, Event) {
        let mut next = (f64::INFINITY, Event::None);
        for place in (0..self.levels.len()).rev() {
            let level = &self.levels[place];
            if level.speed > 0.0
                && let Some((&(work_bits, _), _)) = level.jobs.first_key_value()
            {
                let left_ns = (f64::from_bits(work_bits) - level.attained_ns).max(0.0);
                let at_ns = self.now_ns + left_ns / level.speed;
                if at_ns < next.0 {
                    next = (at_ns, Event::End(place));
                }
            }
            if let Some(ahead) = place.checked_sub(1).map(|before| &self.levels[before])
                && level.speed > ahead.speed
            {
                let gap_ns = ahead.attained_ns - level.attained_ns;
                let at_ns = self.now_ns + gap_ns / (level.speed - ahead.speed);
                if at_ns < next.0 {
                    next = (at_ns, Event::CatchUp(place));
                }
            }
            if level.speed == 0.0 {
                break;
            }
        }
        next
    }

    fn serve(&mut self, until_ns: f64) {
        let elapsed_ns = until_ns - self.now_ns;
        for level in self.levels.iter_mut().rev() {
            if level.speed == 0.0 {
                break;
            }
            level.attained_ns += level.speed * elapsed_ns;
        }
        self.now_ns = until_ns;
    }

    /// Joins equal levels and gives out the capacity anew.
    fn rearrange(&mut self) {
        let mut left = self.servers;
        // Levels above `end` keep their speed; those that moved before the change have lost it.
        let mut end = self.levels.len();
        while end > 0 {
            let was_moving = self.levels[end - 1].speed > 0.0;
            if left <= NOTHING && !was_moving {
                break;
            }
            let begin = self.run_of_equals(end);
            let end_after = self.join_equals(begin, end);
            left = self.share(begin, end_after, left);
            end = begin;
        }
    }

    /// The start of the run of equal service that ends at `end`.
    fn run_of_equals(&self, end: usize) -> usize {
        let attained_ns = self.levels[end - 1].attained_ns;
        let mut begin = end - 1;
        while begin > 0 && self.levels[begin - 1].attained_ns == attained_ns {
            begin -= 1;
        }
        begin
    }

    /// Joins the levels of a run into one for each class that has jobs, fastest clients first.
    /// Returns the run's new end.
    fn join_equals(&mut self, begin: usize, end: usize) -> usize {
        if end - begin == 1 && !self.levels[begin].jobs.is_empty() {
            return end;
        }
        let mut joined: Vec<Level> = Vec::new();
        for level in self.levels.splice(begin..end, []).collect::<Vec<_>>() {
            match joined.iter_mut().find(|other| other.class == level.class) {
                Some(other) => other.join(level),
                None => joined.push(level),
            }
        }
        joined.retain(|level| !level.jobs.is_empty());
        // The slower class falls behind, so it must come later in the list.
        joined.sort_by(|a, b| self.caps[b.class].total_cmp(&self.caps[a.class]));
        let end_after = begin + joined.len();
        self.levels.splice(begin..begin, joined);
        end_after
    }

    /// Gives a run of equals its speeds out of what is left, and returns the rest.
    fn share(&mut self, begin: usize, end: usize, mut left: f64) -> f64 {
        let run = &mut self.levels[begin..end];
        let mut jobs_left: f64 = run.iter().map(|level| level.jobs.len() as f64).sum();
        // No class gets less than one of slower clients, or more once that is an equal part.
        // Otherwise rounding would make them catch up with each other for ever.
        let (mut slower, mut equal_part) = (0.0, None);
        for level in run.iter_mut().rev() {
            let jobs = level.jobs.len() as f64;
            let cap = self.caps[level.class];
            let part = cap.min(left / jobs_left.max(1.0)).max(slower);
            level.speed = equal_part.unwrap_or(part);
            slower = level.speed;
            if level.speed < cap {
                equal_part = Some(level.speed);
            }
            left -= level.speed * jobs;
            jobs_left -= jobs;
        }
        if left > NOTHING { left } else { 0.0 }
    }
}

impl Level {
    /// Takes in the jobs of another level, moving the fewer jobs.
    fn join(&mut self, mut other: Self) {
        if other.jobs.len() > self.jobs.len() {
            std::mem::swap(&mut self.jobs, &mut other.jobs);
        }
        self.jobs.extend(other.jobs);
    }
}
