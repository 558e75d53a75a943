//! What fair sharing among clients would have given: the response times of the same responses, by size, beside ours.
//!
//! Workers say when a response enters the link and when it has ended. Each pushes these events into a ring of its own, which
//! is bounded and is never waited for. A thread empties the rings many times a second, puts the events in order, and
//! plays them to a [`Twin`] at the uplink's rate of that moment. A response is counted once it has ended in both: so the two
//! histograms are of the very same responses. Ours that broke off leave the twin when they end, and are not counted.
//!
//! Where events were lost, because a ring was full, the twin begins anew: it forgets the responses under way. It also does
//! so while no rate is known, since then nobody shares anything.
//!
//! Both times are from the complete request on; what came before the link (a backend, a gate) is the same in both. The twin
//! knows the uplink alone: a client that is slower than its share of it ends later than there, in any order. What a response
//! takes on the wire is its bytes and `HEADER_BYTES` for each packet of `PAYLOAD_BYTES`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use shortline_base::clock::now_ns;
use shortline_link::SIZE_CLASSES;
use shortline_sched::{Client, FairEnd, Twin};

use crate::ledger::ResponseTimes;

/// Events that wait in a worker's ring.
const EVENTS_MAX: usize = 8192;
/// Responses that the twin has at a time.
const JOBS_MAX: usize = 65_536;
/// How often the rings are emptied.
const EVERY: Duration = Duration::from_millis(50);
/// Payload and headers of a full packet of TCP over IPv4 with timestamps, and Ethernet's header.
const PAYLOAD_BYTES: u64 = 1448;
const HEADER_BYTES: u64 = 66;

/// The rings, and what has come of it; see the module's text.
pub struct Comparison {
    rings: Box<[Ring]>,
    lost: AtomicU64,
    figures: Mutex<Figures>,
}

/// A worker's ring.
struct Ring {
    events: SyncSender<Event>,
    /// How many responses it has named.
    named: AtomicU64,
}

/// The comparison at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// By the size of the response, in the order of [`SIZE_CLASSES`].
    pub by_size: Vec<BothTimes>,
    /// Responses that were not compared, because there were too many at once.
    pub left_out_total: u64,
    /// Times that the twin began anew, because events were lost.
    pub restarts_total: u64,
}

/// The same responses in both orders.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BothTimes {
    /// Their size.
    pub size: &'static str,
    /// As they were.
    pub ours: ResponseTimes,
    /// As fair sharing would have had them.
    pub fair: ResponseTimes,
}

/// Names a response to the twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    worker: usize,
    job: u64,
}

/// What happens to a response.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// It enters the link.
    Enters {
        at_ns: u64,
        job: u64,
        client: Client,
        bytes: Option<u64>,
        /// When its request was complete.
        begun_ns: u64,
    },
    /// It has ended, whole or not.
    Ends { at_ns: u64, job: u64, whole: bool },
}

impl Event {
    fn at_ns(&self) -> u64 {
        match self {
            Self::Enters { at_ns, .. } | Self::Ends { at_ns, .. } => *at_ns,
        }
    }
}

impl Comparison {
    /// Compares the responses of so many workers from now on. `rate` says the uplink's rate, in bits per second, if one is
    /// known. The thread ends soon after the comparison is dropped.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        workers: usize,
        rate: impl Fn() -> Option<u64> + Send + 'static,
    ) -> std::io::Result<Arc<Self>> {
        let (comparison, receivers) = Self::new(workers);
        let weak = Arc::downgrade(&comparison);
        std::thread::Builder::new()
            .name("fair-twin".to_owned())
            .spawn(move || {
                let mut played = Played::new();
                loop {
                    std::thread::sleep(EVERY);
                    let Some(comparison) = weak.upgrade() else {
                        return;
                    };
                    comparison.play(&mut played, &receivers, now_ns(), rate());
                }
            })?;
        Ok(comparison)
    }

    fn new(workers: usize) -> (Arc<Self>, Vec<Receiver<Event>>) {
        let (rings, receivers) = (0..workers)
            .map(|_| {
                let (events, receiver) = sync_channel(EVENTS_MAX);
                let named = AtomicU64::new(0);
                (Ring { events, named }, receiver)
            })
            .unzip::<_, _, Vec<_>, Vec<_>>();
        let by_size = SIZE_CLASSES.map(|(_, size)| BothTimes {
            size,
            ..BothTimes::default()
        });
        let comparison = Arc::new(Self {
            rings: rings.into(),
            lost: AtomicU64::new(0),
            figures: Mutex::new(Figures {
                by_size: by_size.into(),
                ..Figures::default()
            }),
        });
        (comparison, receivers)
    }

    /// A response of a worker's enters the link now; its request was complete at `begun_ns`.
    pub fn enters(
        &self,
        worker: usize,
        client: Client,
        bytes: Option<u64>,
        begun_ns: u64,
        at_ns: u64,
    ) -> Compared {
        let ring = &self.rings[worker];
        // The numbers of the workers are apart.
        let number = ring.named.fetch_add(1, Ordering::Relaxed);
        let job = number * self.rings.len() as u64 + worker as u64;
        self.push(
            worker,
            Event::Enters {
                at_ns,
                job,
                client,
                bytes,
                begun_ns,
            },
        );
        Compared { worker, job }
    }

    /// It has ended.
    pub fn ends(&self, compared: Compared, at_ns: u64, whole: bool) {
        let job = compared.job;
        self.push(compared.worker, Event::Ends { at_ns, job, whole });
    }

    /// The comparison now.
    pub fn figures(&self) -> Figures {
        self.figures.lock().clone()
    }

    fn push(&self, worker: usize, event: Event) {
        if self.rings[worker].events.try_send(event).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Plays what has come to the twin, up to `now_ns`.
    fn play(
        &self,
        played: &mut Played,
        receivers: &[Receiver<Event>],
        now_ns: u64,
        rate_bps: Option<u64>,
    ) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let mut events: Vec<Event> = receivers.iter().flat_map(Receiver::try_iter).collect();
        // Of one time, they stay in the order of their worker.
        events.sort_by_key(Event::at_ns);
        let mut figures = self.figures.lock();
        figures.restarts_total += u64::from(lost > 0);
        let Some(rate_bps) = rate_bps.filter(|_| lost == 0) else {
            return played.forget();
        };
        let rate = rate_bps as f64 / 8.0;
        for event in events {
            played.come_to(event.at_ns(), rate, &mut figures);
            played.take(event, &mut figures);
        }
        played.come_to(now_ns, rate, &mut figures);
    }
}

/// The twin, and the responses that have not ended in both.
struct Played {
    twin: Twin,
    open: HashMap<u64, Open>,
}

/// A response that has not ended in both.
#[derive(Clone, Copy, Debug)]
struct Open {
    begun_ns: u64,
    size: usize,
    ours_ns: Option<u64>,
    fair_ns: Option<u64>,
}

impl Played {
    fn new() -> Self {
        Self {
            twin: Twin::new(JOBS_MAX),
            open: HashMap::new(),
        }
    }

    fn forget(&mut self) {
        self.twin.clear();
        self.open.clear();
    }

    fn come_to(&mut self, at_ns: u64, rate: f64, figures: &mut Figures) {
        while let Some(FairEnd { job, at_ns }) = self.twin.end_until(at_ns, rate) {
            if let Some(open) = self.open.get_mut(&job) {
                open.fair_ns = Some(at_ns);
                self.settle(job, figures);
            }
        }
    }

    fn take(&mut self, event: Event, figures: &mut Figures) {
        match event {
            Event::Enters {
                job,
                client,
                bytes,
                begun_ns,
                ..
            } => {
                let is_in = self.open.len() < JOBS_MAX
                    && self.twin.arrive(job, client, bytes.map(on_the_wire));
                figures.left_out_total += u64::from(!is_in);
                if let (true, Some(bytes)) = (is_in, bytes) {
                    let open = Open {
                        begun_ns,
                        size: size_class(bytes),
                        ours_ns: None,
                        fair_ns: None,
                    };
                    self.open.insert(job, open);
                }
            }
            Event::Ends { at_ns, job, whole } => {
                let Some(open) = self.open.get_mut(&job) else {
                    // Of unknown size: it took its share, but when it would have ended is not known.
                    self.twin.leave(job);
                    return;
                };
                open.ours_ns = Some(at_ns);
                if whole {
                    self.settle(job, figures);
                } else {
                    self.twin.leave(job);
                    self.open.remove(&job);
                }
            }
        }
    }

    /// Counts a response if it has ended in both.
    fn settle(&mut self, job: u64, figures: &mut Figures) {
        let Some(Open {
            begun_ns,
            size,
            ours_ns: Some(ours_ns),
            fair_ns: Some(fair_ns),
        }) = self.open.get(&job).copied()
        else {
            return;
        };
        self.open.remove(&job);
        let both = &mut figures.by_size[size];
        both.ours.count(ours_ns.saturating_sub(begun_ns));
        both.fair.count(fair_ns.saturating_sub(begun_ns));
    }
}

/// The class of a response of so many bytes.
pub fn size_class(bytes: u64) -> usize {
    let class = SIZE_CLASSES.iter().position(|(most, _)| bytes <= *most);
    class.unwrap_or(SIZE_CLASSES.len() - 1)
}

fn on_the_wire(bytes: u64) -> u64 {
    bytes.saturating_add(bytes.div_ceil(PAYLOAD_BYTES).saturating_mul(HEADER_BYTES))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::num::NonZeroU32;

    use super::*;

    /// Eight bits each nanosecond: a byte.
    const RATE_BPS: Option<u64> = Some(8_000_000_000);

    fn client(name: u128) -> Client {
        Client {
            name,
            weight: NonZeroU32::MIN,
        }
    }

    fn both(comparison: &Comparison, size: usize) -> [(u64, f64); 2] {
        let figures = comparison.figures();
        let both = &figures.by_size[size];
        [&both.ours, &both.fair].map(|times| (times.count, (times.seconds * 1e9).round()))
    }

    #[test]
    fn a_response_is_counted_once_it_has_ended_in_both() {
        let (comparison, receivers) = Comparison::new(2);
        let mut played = Played::new();
        let large = comparison.enters(0, client(1), Some(14_480), 0, 100);
        let small = comparison.enters(1, client(2), Some(934), 0, 100);
        comparison.ends(small, 1100, true);
        // Alone it takes 1000 ns; with the large one beside it twice that.
        comparison.play(&mut played, &receivers, 1200, RATE_BPS);
        assert_eq!(both(&comparison, 0), [(0, 0.0), (0, 0.0)]);
        comparison.play(&mut played, &receivers, 2100, RATE_BPS);
        assert_eq!(both(&comparison, 0), [(1, 1100.0), (1, 2100.0)]);
        // The large one ends in the twin first, at 16140 ns of work on the wire and the small one's 1000.
        comparison.play(&mut played, &receivers, 20_000, RATE_BPS);
        comparison.ends(large, 20_100, true);
        comparison.play(&mut played, &receivers, 20_200, RATE_BPS);
        assert_eq!(both(&comparison, 2), [(1, 20_100.0), (1, 16_240.0)]);
        assert!(played.open.is_empty() && played.twin.is_empty());
    }

    #[test]
    fn what_breaks_off_or_has_no_size_is_not_counted_and_leaves() {
        let (comparison, receivers) = Comparison::new(1);
        let mut played = Played::new();
        let cut = comparison.enters(0, client(1), Some(1_000_000), 0, 0);
        let endless = comparison.enters(0, client(2), None, 0, 0);
        comparison.ends(cut, 10, false);
        comparison.ends(endless, 20, true);
        comparison.play(&mut played, &receivers, 100, RATE_BPS);
        assert!(played.open.is_empty() && played.twin.is_empty());
        let figures = comparison.figures();
        assert!(figures.by_size.iter().all(|both| both.ours.count == 0));
        assert_eq!((figures.left_out_total, figures.restarts_total), (0, 0));
    }

    #[test]
    fn a_full_ring_and_an_unknown_rate_begin_anew() {
        let (comparison, receivers) = Comparison::new(1);
        let mut played = Played::new();
        for _ in 0..=EVENTS_MAX {
            comparison.enters(0, client(1), Some(1), 0, 0);
        }
        comparison.play(&mut played, &receivers, 100, RATE_BPS);
        assert_eq!(comparison.figures().restarts_total, 1);
        assert!(played.twin.is_empty());
        comparison.enters(0, client(1), Some(1), 0, 0);
        comparison.play(&mut played, &receivers, 200, None);
        assert!(played.twin.is_empty());
        assert_eq!(comparison.figures().restarts_total, 1);
    }

    #[test]
    fn the_last_class_has_no_bound() {
        assert_eq!(size_class(1_000), 0);
        assert_eq!(size_class(1_001), 1);
        assert_eq!(size_class(u64::MAX), SIZE_CLASSES.len() - 1);
    }
}
