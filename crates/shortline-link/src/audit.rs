//! What must hold of the link whenever no task is at work on it. The simulation asks after each
//! event; nobody else does.

use std::fmt;
use std::sync::atomic::Ordering;

use shortline_base::clock::now_ns;
use shortline_sched::{JobId, Policy};

use crate::driver::link::Link;
use crate::queue::{LinkJob, Queue, Watched};

/// An alarm goes off no later than this after its time.
const ALARM_LATE_NS_MAX: u64 = 1_000_000;

/// What does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A job could be granted something, and nothing will make anybody look in time.
    NobodyComes {
        /// The job's number.
        job: usize,
        /// In how long somebody will, in nanoseconds, if at all.
        alarm_ns: Option<u64>,
    },
    /// A job wants a grant and is nowhere: neither in the order, nor parked, nor held back.
    Lost {
        /// The job's number.
        job: usize,
    },
    /// A job was passed over as its connection could not send; now it can, and was not told.
    Forgotten {
        /// The job's number.
        job: usize,
    },
    /// A connection has other jobs than it counts.
    Miscounted {
        /// What it counts.
        counted: u32,
        /// What there are.
        there: u32,
    },
    /// Under `srpt` a job went before a smaller one that could go.
    OutOfOrder {
        /// What the job that went had left, in bytes.
        granted_bytes: u64,
        /// What one that waited had left, in bytes.
        waiting_bytes: u64,
    },
    /// No job is left, and something of one is still held.
    Held {
        /// What.
        what: &'static str,
        /// How much.
        amount: u64,
    },
    /// A job's charge is unwritten, and its connection knows of less.
    Overdrawn {
        /// Wire bytes of the job.
        job_bytes: u32,
        /// Wire bytes of the connection, those given back for now included.
        connection_bytes: u32,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NobodyComes {
                job,
                alarm_ns: None,
            } => {
                write!(formatter, "job {job} could go, and no alarm is set")
            }
            Self::NobodyComes {
                job,
                alarm_ns: Some(alarm_ns),
            } => write!(
                formatter,
                "job {job} could go, and the alarm is {alarm_ns} ns away"
            ),
            Self::Lost { job } => {
                write!(formatter, "job {job} wants a grant and waits nowhere")
            }
            Self::Forgotten { job } => write!(
                formatter,
                "job {job} is parked on a connection that can send"
            ),
            Self::Miscounted { counted, there } => {
                write!(
                    formatter,
                    "a connection counts {counted} jobs and has {there}"
                )
            }
            Self::OutOfOrder {
                granted_bytes,
                waiting_bytes,
            } => write!(
                formatter,
                "a job with {granted_bytes} bytes left went before one with {waiting_bytes}"
            ),
            Self::Held { what, amount } => {
                write!(formatter, "no job is left, and {amount} {what} are held")
            }
            Self::Overdrawn {
                job_bytes,
                connection_bytes,
            } => write!(
                formatter,
                "{job_bytes} wire bytes of a job are unwritten, and {connection_bytes} of its \
                 connection"
            ),
        }
    }
}

impl Link {
    /// Looks at every grant from now on, whether it is in order: under `srpt` alone.
    pub fn watch_grants(&self) {
        let watches = self.policy() == Policy::Srpt;
        self.state.lock().queue.watched = watches.then(Vec::new);
    }

    /// Looks whether everything holds. Call when all tasks are at rest.
    ///
    /// # Errors
    /// The first [`Fault`] found.
    pub fn audit(&self) -> Result<(), Fault> {
        let now_ns = now_ns();
        let queue = &mut self.state.lock().queue;
        queue.audit(self.armed_ns.load(Ordering::Acquire), now_ns)
    }

    /// Looks whether nothing is held for anybody. Call when all connections are gone.
    ///
    /// # Errors
    /// What is.
    pub fn audit_empty(&self) -> Result<(), Fault> {
        let queue = &self.state.lock().queue;
        let held = [
            ("jobs", queue.scheduler.len() as u64),
            ("jobs of new connections", queue.held() as u64),
            ("unwritten bytes", queue.regulator.unwritten_bytes()),
        ];
        match held.into_iter().find(|(_, amount)| *amount > 0) {
            Some((what, amount)) => Err(Fault::Held { what, amount }),
            None => Ok(()),
        }
    }
}

impl Queue {
    /// Notes a grant that is about to be made, if grants are watched.
    pub(super) fn watch(&mut self, id: JobId) {
        if self.watched.is_none() {
            return;
        }
        let granted_bytes = self.scheduler.job(id).map_or(0, |job| job.remaining());
        let waiting = self.scheduler.jobs();
        let waiting = waiting.filter(|(other, _)| self.scheduler.is_waiting(*other));
        let can_go = waiting.filter(|(other, _)| {
            // A new connection may have to wait for its client's others.
            let job = self.link_job(*other);
            let connection = job.map(|job| self.connections.of(job.connection));
            connection.is_some_and(|connection| connection.can_send() && connection.is_known)
        });
        let least_waiting_bytes = can_go.map(|(_, job)| job.remaining()).min();
        if let Some(watched) = &mut self.watched {
            watched.push(Watched {
                granted_bytes,
                least_waiting_bytes,
            });
        }
    }

    /// Looks whether everything holds, where the alarm is set to `armed_ns`.
    pub(crate) fn audit(&mut self, armed_ns: u64, now_ns: u64) -> Result<(), Fault> {
        self.check_order()?;
        self.check_places()?;
        self.check_somebody_comes(armed_ns, now_ns)
    }

    fn check_order(&mut self) -> Result<(), Fault> {
        let Some(watched) = &mut self.watched else {
            return Ok(());
        };
        for grant in watched.drain(..) {
            if let Some(waiting_bytes) = grant.least_waiting_bytes
                && waiting_bytes < grant.granted_bytes
            {
                return Err(Fault::OutOfOrder {
                    granted_bytes: grant.granted_bytes,
                    waiting_bytes,
                });
            }
        }
        Ok(())
    }

    fn check_places(&self) -> Result<(), Fault> {
        for (id, _) in self.scheduler.jobs() {
            let Some(job) = self.link_job(id) else {
                return Err(Fault::Lost { job: id.index() });
            };
            self.check_place(id, job)?;
            let connection = self.connections.of(job.connection);
            let job_bytes = job.charge.unwritten(connection);
            let connection_bytes = connection.unwritten() + connection.refunded();
            if job_bytes > connection_bytes {
                return Err(Fault::Overdrawn {
                    job_bytes,
                    connection_bytes,
                });
            }
            let there = self
                .scheduler
                .jobs()
                .filter_map(|(id, _)| self.link_job(id));
            let same = |other: &LinkJob| other.connection == job.connection;
            let there = there.filter(|other| same(other)).count() as u32;
            if connection.jobs != there {
                return Err(Fault::Miscounted {
                    counted: connection.jobs,
                    there,
                });
            }
        }
        Ok(())
    }

    fn check_place(&self, id: JobId, job: &LinkJob) -> Result<(), Fault> {
        let waits = self.scheduler.is_waiting(id);
        if !job.wanting || waits || job.is_held() {
            return Ok(());
        }
        let connection = self.connections.of(job.connection);
        if !connection.parked.contains(&id) {
            return Err(Fault::Lost { job: id.index() });
        }
        if connection.can_send() {
            return Err(Fault::Forgotten { job: id.index() });
        }
        Ok(())
    }

    fn check_somebody_comes(&mut self, armed_ns: u64, now_ns: u64) -> Result<(), Fault> {
        let can_go = self.scheduler.jobs().find(|(id, _)| {
            let job = self.link_job(*id);
            let can_send = |job: &LinkJob| self.connections.of(job.connection).can_send();
            self.scheduler.is_waiting(*id) && job.is_some_and(can_send)
        });
        let Some((id, _)) = can_go else {
            return Ok(());
        };
        let due_ns = now_ns + self.regulator.look_again_ns(now_ns);
        let is_set = armed_ns > 0 && armed_ns + ALARM_LATE_NS_MAX >= now_ns;
        if is_set && armed_ns <= due_ns + ALARM_LATE_NS_MAX {
            return Ok(());
        }
        Err(Fault::NobodyComes {
            job: id.index(),
            alarm_ns: is_set.then(|| armed_ns - now_ns),
        })
    }
}
