//! Which server a transaction goes to: a choice by what is known of all of them, without I/O or a clock.
//!
//! The primary is the server that takes writes. Where two say so, the one on the newer timeline is it
//! (PostgreSQL counts a timeline more at each promotion); else the one that answers; else the one that was it
//! before; else the first of the list. So a primary that comes back after another was promoted in its place is
//! not written to.
//!
//! A replica is given work only while it answers and lags by no more than the limit; of several the one with
//! the least work left, by the estimates of what runs and waits there. Equal ones take turns.

use std::cmp::Reverse;
use std::time::Duration;

/// A server that failed to answer so often in a row is not there.
pub const FAILURES_MAX: u32 = 3;

/// What a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It takes writes.
    Primary {
        /// Of two primaries the one of the larger number was promoted later.
        timeline: u32,
    },
    /// It follows the primary.
    Replica {
        /// By how much; `None` if nobody knows.
        lag: Option<Duration>,
    },
}

/// What is known of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// What it said it was when it was asked last; `None` before that, and once it is not there.
    pub role: Option<Role>,
    /// How often in a row it has not answered.
    pub failures: u32,
}

/// What is left to do on a replica; the smaller is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Left {
    /// The estimates of what runs and waits there, in nanoseconds.
    pub work_ns: u64,
    /// How many transactions it was given, so that equal ones take turns.
    pub given: u64,
}

impl Member {
    /// Whether it takes writes, as far as is known.
    pub fn is_primary(&self) -> bool {
        matches!(self.role, Some(Role::Primary { .. }))
    }

    /// Whether reads may go to it.
    pub fn may_read(&self, lag_max: Duration) -> bool {
        match self.role {
            Some(Role::Replica { lag: Some(lag) }) => self.failures == 0 && lag <= lag_max,
            _ => false,
        }
    }
}

/// The server that takes writes; `current` is the one that did so far.
pub fn primary(members: &[Member], current: Option<usize>) -> Option<usize> {
    let candidates = members.iter().enumerate().filter_map(|(at, member)| {
        let Some(Role::Primary { timeline }) = member.role else {
            return None;
        };
        Some((at, (timeline, member.failures == 0, current == Some(at))))
    });
    candidates
        .max_by_key(|(at, rank)| (*rank, Reverse(*at)))
        .map(|(at, _)| at)
}

/// The replica that a read goes to; `None` if there is none to trust.
pub fn replica(
    members: &[Member],
    lag_max: Duration,
    left: impl Fn(usize) -> Left,
) -> Option<usize> {
    let able = members.iter().enumerate();
    let able = able.filter(|(_, member)| member.may_read(lag_max));
    able.map(|(at, _)| at).min_by_key(|at| left(*at))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    const LAG_MAX: Duration = Duration::from_secs(10);

    fn role() -> impl Strategy<Value = Option<Role>> {
        let lag = prop::option::of((0..20_u64).prop_map(Duration::from_secs));
        prop_oneof![
            Just(None),
            (0..3_u32).prop_map(|timeline| Some(Role::Primary { timeline })),
            lag.prop_map(|lag| Some(Role::Replica { lag })),
        ]
    }

    fn members() -> impl Strategy<Value = Vec<Member>> {
        let member = (role(), 0..3_u32).prop_map(|(role, failures)| Member { role, failures });
        prop::collection::vec(member, 0..6)
    }

    fn primary_of(timeline: u32) -> Member {
        Member {
            role: Some(Role::Primary { timeline }),
            failures: 0,
        }
    }

    #[test]
    fn a_primary_that_comes_back_is_none() {
        let (old, new) = (primary_of(1), primary_of(2));
        assert_eq!(primary(&[old, new], Some(0)), Some(1));
        assert_eq!(primary(&[new, old], Some(1)), Some(0));
        // Without timelines the one that was it stays it, unless it does not answer.
        assert_eq!(primary(&[old, old], Some(1)), Some(1));
        assert_eq!(primary(&[old, old], None), Some(0));
        let silent = Member { failures: 1, ..old };
        assert_eq!(primary(&[old, silent], Some(1)), Some(0));
        assert_eq!(primary(&[silent], Some(0)), Some(0));
    }

    proptest! {
        /// No write ever goes to a replica.
        #[test]
        fn writes_go_to_a_server_that_takes_them(members in members(), current in prop::option::of(0..6_usize)) {
            match primary(&members, current) {
                Some(at) => {
                    prop_assert!(members[at].is_primary());
                    let newest = members.iter().filter_map(|member| match member.role {
                        Some(Role::Primary { timeline }) => Some(timeline),
                        _ => None,
                    });
                    prop_assert_eq!(members[at].role, newest.max().map(|timeline| Role::Primary { timeline }));
                }
                None => prop_assert!(!members.iter().any(Member::is_primary)),
            }
        }

        /// One that is the primary stays it as long as it answers and none is of a newer timeline.
        #[test]
        fn the_primary_changes_only_for_a_reason(members in members()) {
            if let Some(at) = primary(&members, None).filter(|at| members[*at].failures == 0) {
                prop_assert_eq!(primary(&members, Some(at)), Some(at));
            }
        }

        /// No read goes to a server that lags or does not answer, and it goes where the least work is left.
        #[test]
        fn reads_go_to_the_fresh_with_the_least_work(members in members(), work in prop::collection::vec(0..5_u64, 6)) {
            let left = |at: usize| Left { work_ns: work[at], given: 0 };
            let able = |at: &usize| members[*at].may_read(LAG_MAX);
            match replica(&members, LAG_MAX, left) {
                Some(at) => {
                    let Some(Role::Replica { lag: Some(lag) }) = members[at].role else {
                        return Err(TestCaseError::fail("not a replica"));
                    };
                    prop_assert!(lag <= LAG_MAX && members[at].failures == 0);
                    let least = (0..members.len()).filter(able).map(|at| work[at]).min();
                    prop_assert_eq!(Some(work[at]), least);
                }
                None => prop_assert!(!(0..members.len()).any(|at| able(&at))),
            }
        }
    }

    #[test]
    fn equal_replicas_take_turns() {
        let replica_at = |lag_s| Member {
            role: Some(Role::Replica {
                lag: Some(Duration::from_secs(lag_s)),
            }),
            failures: 0,
        };
        let members = [primary_of(1), replica_at(0), replica_at(1)];
        let mut given = [0_u64; 3];
        for _ in 0..10 {
            let at = replica(&members, LAG_MAX, |at| Left {
                work_ns: 0,
                given: given[at],
            });
            given[at.unwrap()] += 1;
        }
        assert_eq!(given, [0, 5, 5]);
    }
}
