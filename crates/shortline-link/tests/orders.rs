//! The marks that threads share without a lock, in all orders that there are (loom).

mod sync {
    pub use loom::sync::atomic::{AtomicU8, Ordering};
}

#[path = "../src/transport/readiness.rs"]
mod readiness;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

use readiness::Readiness;

/// The link's lock, and how often the job was told.
struct Link {
    readiness: Readiness,
    parked: Mutex<bool>,
    told: AtomicUsize,
}

impl Link {
    /// As `Queue::transport_drained`, under the lock.
    fn tell(&self) {
        let mut parked = self.parked.lock().expect("nobody panics");
        self.readiness.told();
        if std::mem::take(&mut *parked) {
            self.told.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_job_that_is_passed_over_while_its_connection_drains_is_told() {
    loom::model(|| {
        let link = Arc::new(Link {
            readiness: Readiness::new(),
            parked: Mutex::new(false),
            told: AtomicUsize::new(0),
        });
        link.readiness.begin();
        let draining = Arc::clone(&link);
        let connection = thread::spawn(move || {
            // As `Transport::drained`.
            if draining.readiness.end() == Some(true) {
                draining.tell();
            }
        });
        // As `Queue::park`.
        if !link.readiness.can_send() {
            *link.parked.lock().expect("nobody panics") = true;
            if link.readiness.wait() {
                link.tell();
            }
        }
        connection.join().expect("it does not panic");
        let waits = *link.parked.lock().expect("nobody panics");
        assert!(!waits, "nobody comes back for it");
    });
}

#[test]
fn of_two_threads_that_end_the_same_bytes_one_alone_does() {
    loom::model(|| {
        let readiness = Arc::new(Readiness::new());
        readiness.begin();
        assert!(readiness.wait() || readiness.is_awaited());
        let other = Arc::clone(&readiness);
        let ended = thread::spawn(move || other.end());
        let (one, two) = (readiness.end(), ended.join().expect("it does not panic"));
        assert!(one.is_some() != two.is_some(), "{one:?}, {two:?}");
    });
}
