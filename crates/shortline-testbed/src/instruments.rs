//! What happens inside the server's machine over time: connections and the queues they wait in, what
//! the kernel drops, the uplink's queue, processor time and memory of server and generator. Paper 000
//! (2.5) patched its kernel for this; Linux reports all of it today.
//!
//! A thread of the lab enters the server's network namespace and takes a sample every 100 ms. After a
//! sample that took `c` of processor time it pauses for at least 20 `c`, so sampling never takes more
//! than 5 % of one processor. The results say what it took.
//!
//! | part | reads |
//! |---|---|
//! | `shortline_base::netlink` | backlog and drops of the uplink's qdisc |
//! | [`sockets`] | TCP sockets by state and the listener's queue (`sock_diag`) |
//! | [`counters`] | drops and retransmissions (`/proc/net/netstat`, `/proc/net/snmp`) |
//! | [`status`] | the rate and state of the uplink as our own server found them |
//! | [`usage`] | processor time and memory (`/proc/PID`), once a second |
//! | [`sample`] | one sample, as a line of CSV, and the file read back |

pub mod counters;
pub mod sample;
pub mod sockets;
pub mod status;
pub mod usage;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use shortline_base::netlink::RootQdisc;

use crate::TestbedError;
use sample::Sample;
use sockets::Sockets;
use status::Discovered;
use usage::Watched;

/// The time between samples.
pub const INTERVAL: Duration = Duration::from_millis(100);
/// The pause after a sample, in multiples of its processor time.
const PAUSE_OVER_COST: u32 = 20;
/// The most samples: a day of them.
const SAMPLES_MAX: usize = 1_000_000;

/// What to watch.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The server's network namespace.
    pub namespace: String,
    /// The namespace where the uplink is narrow: the server's, or a hop's.
    pub queue_namespace: String,
    /// The uplink's device there.
    pub device: String,
    /// Its rate at the moment, in bits per second.
    pub rate_bps: Arc<AtomicU64>,
    /// The server.
    pub server_pid: i32,
    /// The generator's processes, wherever they are.
    pub generator_pids: Vec<i32>,
    /// The server's admin port, if the server finds out its uplink's rate.
    pub admin_port: Option<u16>,
}

/// The samples, and their cost.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    /// In order of time.
    pub samples: Vec<Sample>,
    /// The cost of sampling.
    pub cost: Cost,
}

/// How much of the machine sampling took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The number of samples.
    pub samples: u64,
    /// Processor time of all of them, in seconds.
    pub cpu_s: f64,
    /// From the first to the last, in seconds.
    pub elapsed_s: f64,
    /// The longest time between two samples, in seconds.
    pub gap_s_max: f64,
}

/// A thread that takes samples.
#[derive(Debug)]
pub struct Instruments {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Observations>>>,
}

impl Instruments {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the namespace is not there.
    pub fn start(subject: Subject) -> Result<Self, TestbedError> {
        let open = |name: &str| {
            let path = Path::new("/run/netns").join(name);
            File::open(&path).map_err(TestbedError::file(&path))
        };
        let namespace = open(&subject.namespace)?;
        let queue_namespace = open(&subject.queue_namespace)?;
        let ended = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            // Only this thread enters the namespace, and it ends there.
            let network = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(queue_namespace.as_fd(), network)?;
            // The socket stays in this namespace, wherever the thread goes.
            let queue = queue_of(&subject.device)?;
            move_into_link_name_space(namespace.as_fd(), network)?;
            look_until(&told, &subject, queue)
        });
        Ok(Self {
            ended,
            thread: Some(thread),
        })
    }

    /// Ends the thread and returns its samples.
    ///
    /// # Errors
    /// If a sample failed.
    pub fn stop(mut self) -> Result<Observations, TestbedError> {
        let seen = self.join().unwrap_or_else(|| Ok(Observations::default()));
        seen.map_err(|error| TestbedError::Command {
            command: "the instruments".into(),
            problem: error.to_string(),
        })
    }

    fn join(&mut self) -> Option<io::Result<Observations>> {
        self.ended.store(true, Ordering::Relaxed);
        let thread = self.thread.take()?;
        let panicked = || Err(io::Error::other("they panicked"));
        Some(thread.join().unwrap_or_else(|_| panicked()))
    }
}

impl Drop for Instruments {
    fn drop(&mut self) {
        // Dropped after another error, which is reported instead.
        self.join();
    }
}

/// The uplink's queue: the root qdisc of `device` in this thread's namespace.
fn queue_of(device: &str) -> io::Result<RootQdisc> {
    RootQdisc::open(nix::net::if_::if_nametoindex(device)?)
}

fn look_until(
    ended: &AtomicBool,
    subject: &Subject,
    mut queue: RootQdisc,
) -> io::Result<Observations> {
    let mut sockets = Sockets::open()?;
    let mut server = Watched::new(subject.server_pid);
    let generators = subject.generator_pids.iter().copied();
    let mut generators: Vec<Watched> = generators.map(Watched::new).collect();
    let (begin, cpu_begin) = (Instant::now(), thread_cpu());
    let mut seen = Observations::default();
    let mut last_at = Duration::ZERO;
    while !ended.load(Ordering::Relaxed) && seen.samples.len() < SAMPLES_MAX {
        let (at, cpu_before) = (begin.elapsed(), thread_cpu());
        seen.samples.push(Sample {
            at_s: at.as_secs_f64(),
            sockets: sockets.count()?,
            counters: counters::read()?,
            // A device without a qdisc has no queue.
            queue: queue.read()?.unwrap_or_default(),
            rate_bps: subject.rate_bps.load(Ordering::Relaxed),
            discovered: Discovered::read(subject.admin_port),
            server: server.usage(at),
            generator: generators
                .iter_mut()
                .map(|generator| generator.usage(at))
                .sum(),
        });
        let cost = &mut seen.cost;
        cost.gap_s_max = cost.gap_s_max.max((at - last_at).as_secs_f64());
        last_at = at;
        let pause = (thread_cpu() - cpu_before) * PAUSE_OVER_COST;
        let next_at = (at + INTERVAL).max(begin.elapsed() + pause);
        wait_until(ended, begin, next_at);
    }
    seen.cost.samples = seen.samples.len() as u64;
    seen.cost.cpu_s = (thread_cpu() - cpu_begin).as_secs_f64();
    seen.cost.elapsed_s = begin.elapsed().as_secs_f64();
    Ok(seen)
}

/// Sleeps in short pieces, so that the end of a run need not wait.
fn wait_until(ended: &AtomicBool, begin: Instant, next_at: Duration) {
    while !ended.load(Ordering::Relaxed) {
        let left = next_at.saturating_sub(begin.elapsed());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(INTERVAL));
    }
}

fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_namespace_that_is_not_there_is_named() {
        let subject = Subject {
            namespace: "no-such-namespace".into(),
            queue_namespace: "no-such-namespace".into(),
            device: "lo".into(),
            rate_bps: Arc::default(),
            admin_port: None,
            server_pid: 1,
            generator_pids: vec![1],
        };
        let error = Instruments::start(subject).unwrap_err().to_string();
        assert!(
            error.starts_with("/run/netns/no-such-namespace: "),
            "{error}"
        );
    }

    #[test]
    fn looking_at_this_namespace_gives_samples_in_order_and_their_cost() {
        let ended = AtomicBool::new(false);
        let own = i32::try_from(std::process::id()).unwrap();
        let subject = Subject {
            namespace: String::new(),
            queue_namespace: String::new(),
            device: "lo".into(),
            rate_bps: Arc::default(),
            admin_port: None,
            server_pid: own,
            generator_pids: vec![own],
        };
        let seen = std::thread::scope(|scope| {
            let looking = scope.spawn(|| look_until(&ended, &subject, queue_of("lo")?));
            std::thread::sleep(3 * INTERVAL);
            ended.store(true, Ordering::Relaxed);
            looking.join().unwrap().unwrap()
        });
        assert!(!seen.samples.is_empty());
        assert!(
            seen.samples
                .is_sorted_by_key(|sample| (sample.at_s * 1e6) as u64)
        );
        assert_eq!(seen.cost.samples, seen.samples.len() as u64);
        assert!(seen.cost.cpu_s > 0.0 && seen.cost.cpu_s < seen.cost.elapsed_s);
        assert!(seen.samples[0].server.resident_bytes > 100_000);
    }
}
