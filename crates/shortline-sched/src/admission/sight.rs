//! The requests that have waited longest and still wait.
//!
//! Waits are counted when they end, so a starving request is in no counter. Its type's oldest waiter shows
//! it. This visits all requests inside, and runs only for a view.

use serde::Serialize;

use super::requests::{Requests, Stage};

/// The request that has waited longest and still waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OldestWaiter {
    /// The name of its type.
    pub name: String,
    /// How long it has waited so far, in nanoseconds.
    pub waited_ns: u64,
}

/// The oldest waiters.
#[derive(Debug, Default)]
pub(super) struct Oldest {
    /// The wait so far of each type's oldest waiter, by the type's place; 0 without one.
    pub(super) waits_ns: Vec<u64>,
    /// The type of the oldest of all, and how long it has waited.
    first: Option<(usize, u64)>,
}

/// The oldest waiters of `types` types.
pub(super) fn oldest(requests: &Requests, types: usize, now_ns: u64) -> Oldest {
    let mut oldest = Oldest {
        waits_ns: vec![0; types],
        first: None,
    };
    let mut earliest = u64::MAX;
    for request in requests.iter() {
        if !matches!(request.stage, Stage::Waiting(_)) {
            continue;
        }
        let waited_ns = now_ns.saturating_sub(request.arrival_ns);
        let of_type = &mut oldest.waits_ns[request.kind];
        *of_type = waited_ns.max(*of_type);
        // By sequence, because two requests can arrive at the same time.
        if request.sequence < earliest {
            earliest = request.sequence;
            oldest.first = Some((request.kind, waited_ns));
        }
    }
    oldest
}

impl Oldest {
    /// The oldest of all, its type named by `name`.
    pub(super) fn waiter(&self, name: impl FnOnce(usize) -> String) -> Option<OldestWaiter> {
        let (kind, waited_ns) = self.first?;
        Some(OldestWaiter {
            name: name(kind),
            waited_ns,
        })
    }
}
