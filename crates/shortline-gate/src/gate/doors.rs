//! What the operator keeps out: all requests or those of a database (`PAUSE`), and new clients of a database
//! (`DISABLE`).
//!
//! A pause of everything is [`Admission::set_paused`](shortline_sched::admission::Admission::set_paused). Waiting
//! requests keep their places. A pause of one database works differently. Its requests leave the queue, so that they
//! do not hold up others, and new ones wait before the queue. After the pause all of them arrive anew. The limit on
//! waiting does not count the time of a pause.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Gate;

/// The most databases that are paused, or disabled, at once.
const NAMES_MAX: usize = 1000;

/// What is kept out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// Whether all requests are kept out.
    pub all: bool,
    /// Requests of these databases are kept out.
    pub databases: BTreeSet<Box<str>>,
    /// These databases take no new clients.
    pub disabled: BTreeSet<Box<str>>,
}

/// Why a command of the operator fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DoorError {
    /// It is paused already.
    #[error("{0} is paused already")]
    IsPaused(String),
    /// It is not paused.
    #[error("{0} is not paused")]
    IsNotPaused(String),
    /// More than 1000 databases.
    #[error("{NAMES_MAX} databases are paused or disabled, and no more can be")]
    TooMany,
}

#[derive(Debug, Default)]
pub(super) struct Doors {
    closed: watch::Sender<Closed>,
    /// Whether any database is paused. The fast path checks only this.
    any_database: AtomicBool,
    pauses: Mutex<Pauses>,
}

/// How long everything was paused.
#[derive(Debug, Default)]
struct Pauses {
    over: Duration,
    since: Option<Instant>,
}

impl Closed {
    /// Whether requests of this database are kept out.
    pub fn is_closed(&self, database: Option<&str>) -> bool {
        self.all || database.is_some_and(|name| self.databases.contains(name))
    }
}

impl Doors {
    /// Whether requests of this database wait before the queue.
    pub(super) fn keeps_out(&self, database: Option<&str>) -> bool {
        self.any_database.load(Ordering::Acquire)
            && database.is_some_and(|name| self.closed.borrow().databases.contains(name))
    }

    /// Waits until the database is not paused.
    pub(super) async fn until_let_in(&self, database: Option<&str>) {
        let mut closed = self.closed.subscribe();
        let is_in = |name: &str, closed: &Closed| closed.databases.contains(name);
        let lets_in = |closed: &Closed| !database.is_some_and(|name| is_in(name, closed));
        // The sender is here: this never fails.
        let _ = closed.wait_for(lets_in).await;
    }

    /// How long everything was paused so far, in total.
    pub(super) fn paused_time(&self) -> Duration {
        let pauses = self.pauses.lock();
        pauses.over + pauses.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn set_all(&self, all: bool) {
        let mut pauses = self.pauses.lock();
        match all {
            true => pauses.since = Some(Instant::now()),
            false => {
                let since = pauses.since.take();
                pauses.over += since.map_or(Duration::ZERO, |since| since.elapsed());
            }
        }
        self.closed.send_modify(|closed| closed.all = all);
    }

    fn change(&self, change: impl FnOnce(&mut Closed)) {
        self.closed.send_modify(|closed| {
            change(closed);
            let any = !closed.databases.is_empty();
            self.any_database.store(any, Ordering::Release);
        });
    }
}

impl Gate {
    /// Admits no request from now on, or none of a database. Running requests go on.
    ///
    /// # Errors
    /// [`DoorError`]
    pub fn hold(&self, database: Option<&str>) -> Result<(), DoorError> {
        let closed = self.closed();
        let Some(name) = database else {
            if closed.all {
                return Err(DoorError::IsPaused("the gate".to_owned()));
            }
            self.0.doors.set_all(true);
            self.for_each(|gate| {
                gate.after(|admission, now_ns| admission.set_paused(now_ns, true));
            });
            return Ok(());
        };
        if closed.databases.contains(name) {
            return Err(DoorError::IsPaused(format!("database {name}")));
        }
        has_room(&closed.databases)?;
        self.0.doors.change(|closed| {
            closed.databases.insert(name.into());
        });
        self.for_each(|gate| gate.keep_out(name));
        Ok(())
    }

    /// Ends a pause of everything, or of a database.
    ///
    /// # Errors
    /// [`DoorError`]
    pub fn resume(&self, database: Option<&str>) -> Result<(), DoorError> {
        let closed = self.closed();
        let Some(name) = database else {
            if !closed.all {
                return Err(DoorError::IsNotPaused("the gate".to_owned()));
            }
            self.0.doors.set_all(false);
            self.for_each(|gate| {
                gate.after(|admission, now_ns| admission.set_paused(now_ns, false));
            });
            return Ok(());
        };
        if !closed.databases.contains(name) {
            return Err(DoorError::IsNotPaused(format!("database {name}")));
        }
        self.0.doors.change(|closed| {
            closed.databases.remove(name);
        });
        Ok(())
    }

    /// Sets whether a database takes new clients.
    ///
    /// # Errors
    /// [`DoorError::TooMany`]
    pub fn set_enabled(&self, database: &str, is_enabled: bool) -> Result<(), DoorError> {
        if !is_enabled {
            has_room(&self.closed().disabled)?;
        }
        self.0.doors.change(|closed| {
            match is_enabled {
                true => closed.disabled.remove(database),
                false => closed.disabled.insert(database.into()),
            };
        });
        Ok(())
    }

    /// What is kept out now.
    pub fn closed(&self) -> Closed {
        self.0.doors.closed.borrow().clone()
    }

    /// Whether a database takes no new clients.
    pub fn is_disabled(&self, database: &str) -> bool {
        self.0.doors.closed.borrow().disabled.contains(database)
    }

    /// Waits until requests of this database are not kept out.
    pub async fn opened(&self, database: Option<&str>) {
        let mut closed = self.0.doors.closed.subscribe();
        // The sender is here: this never fails.
        let _ = closed.wait_for(|closed| !closed.is_closed(database)).await;
    }
}

fn has_room(names: &BTreeSet<Box<str>>) -> Result<(), DoorError> {
    if names.len() < NAMES_MAX {
        Ok(())
    } else {
        Err(DoorError::TooMany)
    }
}
