//! The marks that threads share without a lock, in all orders that there are (loom).

// The queue alone uses some of them.
#![allow(dead_code)]

mod sync {
    pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

#[path = "../src/connections/marks.rs"]
mod marks;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

use marks::{Marks, Report};

/// The link's lock, and how often the job was told.
struct Link {
    marks: Marks,
    parked: Mutex<bool>,
    told: AtomicUsize,
}

impl Link {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            marks: Marks::new(),
            parked: Mutex::new(false),
            told: AtomicUsize::new(0),
        })
    }

    /// As `Queue::drained`, under the lock.
    fn drained(&self) {
        let mut parked = self.parked.lock().expect("nobody panics");
        self.marks.told();
        if std::mem::take(&mut *parked) {
            self.told.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// As `Transport::drained`.
    fn drain(&self, report: Report) {
        if self.marks.drain(report) == Some(true) {
            self.drained();
        }
    }
}

#[test]
fn a_job_that_is_passed_over_while_its_connection_drains_is_told() {
    for report in [Report::IfAwaited, Report::IfCharged, Report::Always] {
        loom::model(move || {
            let link = Link::new();
            link.marks.begin();
            let draining = Arc::clone(&link);
            let connection = thread::spawn(move || draining.drain(report));
            // As `Queue::park`.
            if !link.marks.can_send() {
                *link.parked.lock().expect("nobody panics") = true;
                if link.marks.wait() {
                    link.drained();
                }
            }
            connection.join().expect("it does not panic");
            let waits = *link.parked.lock().expect("nobody panics");
            assert!(!waits, "nobody comes back for it");
        });
    }
}

#[test]
fn of_two_threads_that_end_the_same_bytes_one_alone_does() {
    loom::model(|| {
        let marks = Arc::new(Marks::new());
        marks.begin();
        assert!(marks.wait() || marks.is_awaited());
        let other = Arc::clone(&marks);
        let ended = thread::spawn(move || other.drain(Report::IfAwaited));
        let one = marks.drain(Report::IfAwaited);
        let two = ended.join().expect("it does not panic");
        assert!(one.is_some() != two.is_some(), "{one:?}, {two:?}");
    });
}

/// A grant that is made as soon as a connection can send is not taken for written by the drain that made it possible.
#[test]
fn what_is_charged_as_soon_as_a_connection_has_drained_is_unwritten() {
    loom::model(|| {
        let marks = Arc::new(Marks::new());
        let drains = marks.charge();
        marks.begin();
        let draining = Arc::clone(&marks);
        let connection = thread::spawn(move || draining.drain(Report::IfAwaited));
        // As `Queue::grant_due`.
        let granted = marks.can_send().then(|| marks.charge());
        connection.join().expect("it does not panic");
        assert_eq!(marks.has_unwritten(), granted.is_some());
        assert_eq!(marks.drains(), drains + 1);
        if let Some(at) = granted {
            assert_eq!(at, drains + 1, "only what was charged before is written");
        }
    });
}

/// Charges that do not wait until the connection can send, as other streams have them: whatever the order, a charge is
/// unwritten exactly if its connection has not drained since.
#[test]
fn a_charge_is_written_if_the_connection_has_drained_since() {
    loom::model(|| {
        let marks = Arc::new(Marks::new());
        marks.begin();
        let draining = Arc::clone(&marks);
        let connection = thread::spawn(move || draining.drain(Report::IfAwaited));
        let at = marks.charge();
        connection.join().expect("it does not panic");
        assert_eq!(marks.has_unwritten(), marks.drains() == at);
    });
}

/// Responses that were granted whole end without the lock.
#[test]
fn of_whole_responses_that_end_at_once_none_is_left() {
    loom::model(|| {
        let marks = Arc::new(Marks::new());
        marks.whole_began();
        marks.whole_began();
        let other = Arc::clone(&marks);
        let ended = thread::spawn(move || other.whole_ended());
        marks.whole_ended();
        ended.join().expect("it does not panic");
        assert_eq!(marks.wholes(), 0);
    });
}
