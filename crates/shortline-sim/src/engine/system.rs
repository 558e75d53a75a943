//! Users in front of the servers. They wait until their request can be served, lose patience and
//! ask again. The system also keeps what is to be known of them at any time.
//!
//! A job is in the system from its arrival until it ends. Its service can begin a start delay after
//! it (the handshake's round trips). A user who has waited for `after` gives up, which loses the
//! work done, and asks for the whole again at once, up to so many times (paper 000, environment J).
//! The time in the system counts from the first arrival.

use std::collections::BTreeSet;

use super::{Servers, Work, put};
use crate::results::{Recovery, TimeLine};

/// Users' patience.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Patience {
    /// How long a user waits for one attempt, in nanoseconds.
    pub after_ns: f64,
    /// How often a user asks again before giving up for good.
    pub retries: u32,
}

/// How users behave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemConfig {
    /// From an arrival or retry until service can begin, in nanoseconds.
    pub start_delay_ns: f64,
    pub patience: Option<Patience>,
}

/// A job that is no longer in the system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct End {
    pub slot: u32,
    /// When, in nanoseconds.
    pub at_ns: f64,
    /// When it was first served, in its last attempt; not a number if it never was.
    pub started_ns: f64,
    /// Whether the user gave up.
    pub failed: bool,
}

/// One policy's servers and their users.
pub(crate) struct System {
    config: SystemConfig,
    servers: Servers,
    /// The next actions of users and their times: the time's bits (a float not below 0) and the
    /// slot.
    timers: BTreeSet<(u64, u32)>,
    /// By slot; used only where there are timers.
    users: Vec<User>,
    /// What a client that never has enough asks for, by slot from 0. These are not jobs of the
    /// system.
    greedy: Vec<Work>,
    jobs: u64,
    /// Attempts that were given up.
    pub aborts: u64,
    /// The number in the system over time.
    pub number: TimeLine,
    pub recovery: Recovery,
}

#[derive(Clone, Copy)]
struct User {
    work: Work,
    attempts: u32,
    /// Whether the attempt's service could begin.
    begun: bool,
    /// When the attempt began, in nanoseconds.
    asked_ns: f64,
    /// The bits of the time of the timer.
    timer: Option<u64>,
}

impl System {
    pub(crate) fn new(
        config: SystemConfig,
        servers: Servers,
        number: TimeLine,
        recovery: Recovery,
    ) -> Self {
        Self {
            config,
            servers,
            timers: BTreeSet::new(),
            users: Vec::new(),
            greedy: Vec::new(),
            jobs: 0,
            aborts: 0,
            number,
            recovery,
        }
    }

    /// How many are in the system.
    pub(crate) fn jobs(&self) -> u64 {
        self.jobs
    }

    /// A job arrives at the present time.
    pub(crate) fn arrive(&mut self, work: &Work) {
        self.count_change(1);
        if !self.has_timers() {
            self.servers.submit(work);
            return;
        }
        let user = User {
            work: *work,
            attempts: 0,
            begun: false,
            asked_ns: 0.0,
            timer: None,
        };
        put(&mut self.users, work.slot as usize, user);
        self.ask(work.slot);
    }

    /// A client asks for this, and again as soon as it has it. These jobs have the first slots.
    pub(crate) fn ask_for_ever(&mut self, work: &Work) {
        self.greedy.push(*work);
        self.servers.submit(work);
    }

    /// Drops the greedy client and its unfinished jobs.
    pub(crate) fn stop_greedy(&mut self) {
        for work in std::mem::take(&mut self.greedy) {
            self.servers.cancel(work.slot);
        }
    }

    /// Advances until a job is gone, which is returned, or to `until_ns` if that is earlier.
    pub(crate) fn run_until(&mut self, until_ns: f64) -> Option<End> {
        loop {
            let timer_ns = self
                .timers
                .first()
                .map_or(f64::INFINITY, |&(bits, _)| f64::from_bits(bits));
            if let Some(slot) = self.servers.run_until(until_ns.min(timer_ns)) {
                if let Some(again) = self.greedy.get(slot as usize) {
                    self.servers.submit(again);
                    continue;
                }
                self.stop_timer(slot);
                let started_ns = self.servers.started_ns(slot);
                return Some(self.gone(slot, started_ns, false));
            }
            if timer_ns > until_ns {
                return None;
            }
            if let Some(end) = self.next_timer() {
                return Some(end);
            }
        }
    }

    fn has_timers(&self) -> bool {
        self.config.start_delay_ns > 0.0 || self.config.patience.is_some()
    }

    /// A user asks, for the first time or again.
    fn ask(&mut self, slot: u32) {
        let now_ns = self.servers.now_ns();
        let user = &mut self.users[slot as usize];
        user.attempts += 1;
        user.asked_ns = now_ns;
        user.begun = false;
        if self.config.start_delay_ns == 0.0 {
            self.begin(slot);
        } else {
            self.set_timer(slot);
        }
    }

    /// Sets a user's timer to its next action: the start of service or the end of patience.
    fn set_timer(&mut self, slot: u32) {
        let user = &mut self.users[slot as usize];
        let begin_ns = user.asked_ns + self.config.start_delay_ns;
        let give_up_ns = self
            .config
            .patience
            .map_or(f64::INFINITY, |patience| user.asked_ns + patience.after_ns);
        let next_ns = if user.begun {
            give_up_ns
        } else {
            begin_ns.min(give_up_ns)
        };
        user.timer = next_ns.is_finite().then(|| next_ns.to_bits());
        if let Some(bits) = user.timer {
            self.timers.insert((bits, slot));
        }
    }

    fn stop_timer(&mut self, slot: u32) {
        if let Some(user) = self.users.get_mut(slot as usize)
            && let Some(bits) = user.timer.take()
        {
            self.timers.remove(&(bits, slot));
        }
    }

    /// Does what the first timer is set for; returns the end, if that is one.
    fn next_timer(&mut self) -> Option<End> {
        let (bits, slot) = self.timers.pop_first()?;
        let user = &mut self.users[slot as usize];
        user.timer = None;
        let gives_up = self
            .config
            .patience
            .filter(|patience| f64::from_bits(bits) >= user.asked_ns + patience.after_ns);
        match gives_up {
            Some(patience) => self.give_up(slot, patience.retries),
            None => {
                self.begin(slot);
                None
            }
        }
    }

    /// The service of a user's attempt can begin.
    fn begin(&mut self, slot: u32) {
        let user = &mut self.users[slot as usize];
        user.begun = true;
        let work = user.work;
        self.servers.submit(&work);
        self.set_timer(slot);
    }

    /// A user gives an attempt up, and asks again if allowed; else that is the end, which is
    /// returned.
    fn give_up(&mut self, slot: u32, retries: u32) -> Option<End> {
        self.aborts += 1;
        let User {
            begun, attempts, ..
        } = self.users[slot as usize];
        let mut started_ns = f64::NAN;
        if begun {
            started_ns = self.servers.started_ns(slot);
            self.servers.cancel(slot);
        }
        if attempts > retries {
            return Some(self.gone(slot, started_ns, true));
        }
        self.ask(slot);
        None
    }

    fn gone(&mut self, slot: u32, started_ns: f64, failed: bool) -> End {
        self.count_change(-1);
        End {
            slot,
            at_ns: self.servers.now_ns(),
            started_ns,
            failed,
        }
    }

    fn count_change(&mut self, by: i64) {
        let now_ns = self.servers.now_ns();
        self.number.hold_until(now_ns, self.jobs as f64);
        self.jobs = self.jobs.wrapping_add_signed(by);
        self.recovery.see(now_ns, self.jobs);
    }
}
