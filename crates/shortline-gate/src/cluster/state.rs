//! What the servers of a cluster said, and what follows from it. Time is an argument.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::choice::{self, FAILURES_MAX, Member, Role};
use super::positions::Positions;
use crate::relay::Upstream;

/// What a server says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It takes writes.
    Primary {
        /// How often a primary was promoted before it, where servers count that.
        timeline: u32,
        /// Where its log ends, where replicas say how far they are by that.
        position: Option<u64>,
    },
    /// It follows another.
    Replica(Behind),
}

/// How a replica says how far behind it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// It has replayed the log up to there.
    Replayed(u64),
    /// By so much, as it says itself, or it does not know.
    Time(Option<Duration>),
}

/// All of a cluster.
#[derive(Debug)]
pub(super) struct State {
    members: Box<[Member]>,
    problems: Box<[Option<Arc<str>>]>,
    positions: Positions,
    primary: Option<usize>,
    /// Since when no primary is known, or was last.
    lost: Instant,
}

/// What is worth a line in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A server is something else than before.
    Role {
        at: usize,
        was: &'static str,
        is: &'static str,
    },
    /// A server does not answer.
    Silent { at: usize, problem: Arc<str> },
    /// It does again.
    Answers { at: usize },
    /// Writes go there from now on.
    Primary(Option<usize>),
    /// A server takes writes, and is not the one that they go to.
    Second { at: usize },
}

impl State {
    pub(super) fn new(servers: usize, primary: Option<usize>, now: Instant) -> Self {
        Self {
            members: vec![Member::default(); servers].into(),
            problems: vec![None; servers].into(),
            positions: Positions::default(),
            primary,
            lost: now,
        }
    }

    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    pub(super) fn primary(&self) -> Option<usize> {
        self.primary
    }

    pub(super) fn lost(&self) -> Instant {
        self.lost
    }

    pub(super) fn problem(&self, at: usize) -> Option<Arc<str>> {
        self.problems[at].clone()
    }

    /// One could not be reached: reads go elsewhere until it has answered.
    pub(super) fn doubt(&mut self, at: usize) {
        let member = &mut self.members[at];
        member.failures = member.failures.max(1);
    }

    /// One said what it is, or why it does not.
    pub(super) fn note(
        &mut self,
        at: usize,
        said: Result<Said, String>,
        now: Instant,
    ) -> Vec<Event> {
        let mut events = Vec::new();
        let was = self.members[at];
        match said {
            Ok(said) => {
                self.members[at] = Member {
                    role: Some(self.role_of(at, said, now)),
                    failures: 0,
                };
                if self.problems[at].take().is_some() {
                    events.push(Event::Answers { at });
                }
            }
            Err(problem) => self.note_silence(at, problem.into(), &mut events),
        }
        let is = self.members[at];
        let (was_name, is_name) = (role_name(was.role), role_name(is.role));
        if was_name != is_name {
            let (was, is) = (was_name, is_name);
            events.push(Event::Role { at, was, is });
        }
        self.choose(now, &mut events);
        if is.is_primary() && !was.is_primary() && self.primary != Some(at) {
            events.push(Event::Second { at });
        }
        events
    }

    fn note_silence(&mut self, at: usize, problem: Arc<str>, events: &mut Vec<Event>) {
        let member = &mut self.members[at];
        member.failures = member.failures.saturating_add(1);
        if member.failures >= FAILURES_MAX {
            member.role = None;
        }
        if self.problems[at].replace(Arc::clone(&problem)).is_none() {
            events.push(Event::Silent { at, problem });
        }
    }

    fn role_of(&mut self, at: usize, said: Said, now: Instant) -> Role {
        match said {
            Said::Primary { timeline, position } => {
                if let Some(position) = position.filter(|_| self.primary == Some(at)) {
                    self.positions.note(position, now);
                }
                Role::Primary { timeline }
            }
            Said::Replica(Behind::Time(lag)) => Role::Replica { lag },
            Said::Replica(Behind::Replayed(position)) => Role::Replica {
                lag: self.positions.lag_of(position),
            },
        }
    }

    fn choose(&mut self, now: Instant, events: &mut Vec<Event>) {
        let primary = choice::primary(&self.members, self.primary);
        if primary == self.primary {
            return;
        }
        if primary.is_none() {
            self.lost = now;
        } else {
            // How far replicas are behind the new one is known only once it has been asked as such.
            self.positions.clear();
            for member in &mut self.members {
                if let Some(Role::Replica { lag }) = &mut member.role {
                    *lag = None;
                }
            }
        }
        self.primary = primary;
        events.push(Event::Primary(primary));
    }
}

/// A role in a word.
pub(super) fn role_name(role: Option<Role>) -> &'static str {
    match role {
        None => "unknown",
        Some(Role::Primary { .. }) => "primary",
        Some(Role::Replica { .. }) => "replica",
    }
}

impl Event {
    pub(super) fn log(&self, servers: &[Upstream]) {
        let name = |at: usize| servers[at].to_string();
        match self {
            Self::Role { at, was, is } => {
                tracing::info!(server = name(*at), was, "the server is {is} now");
            }
            Self::Silent { at, problem } => {
                tracing::warn!(server = name(*at), "the server does not answer: {problem}");
            }
            Self::Answers { at } => tracing::info!(server = name(*at), "the server answers again"),
            Self::Primary(Some(at)) => {
                tracing::info!(server = name(*at), "writes go to this server now");
            }
            Self::Primary(None) => {
                tracing::warn!("no server is known as the primary: transactions wait");
            }
            Self::Second { at } => tracing::warn!(
                server = name(*at),
                "the server takes writes and is not the primary: nothing is sent there"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn primary(timeline: u32, position: u64) -> Result<Said, String> {
        Ok(Said::Primary {
            timeline,
            position: Some(position),
        })
    }

    fn replica(replayed: u64) -> Result<Said, String> {
        Ok(Said::Replica(Behind::Replayed(replayed)))
    }

    fn silent() -> Result<Said, String> {
        Err("no answer".to_owned())
    }

    #[test]
    fn a_failover_from_first_to_last() {
        let start = Instant::now();
        let mut state = State::new(2, None, start);
        state.note(0, primary(1, 10), start);
        assert_eq!(state.primary(), Some(0));
        state.note(0, primary(1, 10), start + SECOND);
        state.note(1, replica(10), start + SECOND);
        assert!(state.members()[1].may_read(Duration::ZERO));
        // It is believed for two looks, and given up at the third.
        for look in 0..2 {
            state.note(0, silent(), start + SECOND * (2 + look));
            assert_eq!(state.primary(), Some(0));
        }
        let events = state.note(0, silent(), start + SECOND * 4);
        assert_eq!(events.last(), Some(&Event::Primary(None)));
        assert_eq!(state.lost(), start + SECOND * 4);
        // Meanwhile the replica is as fresh as ever.
        state.note(1, replica(10), start + SECOND * 5);
        assert!(state.members()[1].may_read(Duration::ZERO));
        state.note(1, primary(2, 11), start + SECOND * 6);
        assert_eq!(state.primary(), Some(1));
        // The old one comes back as what it was, and then as a replica.
        let events = state.note(0, primary(1, 90), start + SECOND * 7);
        assert!(events.contains(&Event::Second { at: 0 }));
        assert_eq!(state.primary(), Some(1));
        state.note(0, replica(5), start + SECOND * 8);
        assert_eq!(state.members()[0].role, Some(Role::Replica { lag: None }));
        state.note(1, primary(2, 11), start + SECOND * 9);
        state.note(0, replica(11), start + SECOND * 9);
        assert!(state.members()[0].may_read(Duration::ZERO));
    }

    #[test]
    fn what_is_logged_is_logged_once() {
        let start = Instant::now();
        let mut state = State::new(1, None, start);
        assert_eq!(state.note(0, primary(1, 1), start).len(), 2);
        assert_eq!(state.note(0, primary(1, 2), start), []);
        assert_eq!(state.note(0, silent(), start).len(), 1);
        assert_eq!(state.note(0, silent(), start), []);
        assert_eq!(
            state.note(0, primary(1, 3), start),
            [Event::Answers { at: 0 }]
        );
    }

    #[test]
    fn a_replica_in_doubt_gets_nothing_until_it_answers() {
        let start = Instant::now();
        let mut state = State::new(2, None, start);
        let said = Ok(Said::Replica(Behind::Time(Some(Duration::ZERO))));
        state.note(1, said.clone(), start);
        state.doubt(1);
        assert!(!state.members()[1].may_read(SECOND));
        state.note(1, said, start);
        assert!(state.members()[1].may_read(SECOND));
    }
}
