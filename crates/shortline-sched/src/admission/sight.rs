//! Who waits for longest now.
//!
//! Waits that are counted when they end say nothing of those that do not end: what starves is seen by
//! its oldest waiter. Looks at all requests inside, and is asked only where somebody looks.

use super::requests::{Requests, Stage};
use super::view::OldestWaiter;

/// The oldest waiters.
#[derive(Debug, Default)]
pub(super) struct Oldest {
    /// How long the oldest waiter of each type has waited, by the type's place; 0 without one.
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
        // By arrival, which tells two of one instant apart.
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
