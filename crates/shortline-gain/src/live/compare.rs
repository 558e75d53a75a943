//! What theory expects of the replay beside what it gave, by size.

use shortline_load::record::{Failure, RequestRecord};
use shortline_sched::units::Rate;
use shortline_sim::wire::WireModel;
use shortline_sim::{Arrival, FluidLink, SimError};

use super::window::Window;
use super::{Live, LiveClass, LiveError, MEANS_MIN, PERCENTILES_MIN, Replayed};
use crate::gain::{CLASSES, class_of};
use crate::waits::{Collected, SERVERS, Server, Waits};
use crate::words::thousands;

/// Both times of a response, in seconds.
#[derive(Clone, Copy)]
struct Pair {
    predicted_s: f64,
    replayed_s: f64,
}

pub(super) fn compare(window: &Window, rate: Rate, all: &[Replayed]) -> Result<Live, LiveError> {
    let pairs: Vec<Vec<Pair>> = SERVERS
        .iter()
        .zip(all)
        .map(|(server, replayed)| pairs(window, rate, *server, replayed))
        .collect::<Result<_, _>>()
        .map_err(|error| LiveError::Server(error.to_string()))?;
    let mut notes = Vec::new();
    let fates: Vec<Fate> = (0..window.asked.len())
        .map(|index| fate(window, index, all, &pairs))
        .collect();
    note(&mut notes, &fates, Fate::Late, || {
        format!(
            "had not ended after {} s under one of the orders, and are left out",
            window.deadline().as_secs()
        )
    });
    note(&mut notes, &fates, Fate::Failed, || {
        "failed under one of the orders, and are left out".to_owned()
    });
    if window.is_cut() {
        notes.push(format!(
            "Only the first {} of its {} requests were replayed.",
            thousands(window.asked.len() as u64),
            thousands(window.requests)
        ));
    }
    let doubt = |(server, replayed): (&Server, &Replayed)| {
        let why = replayed.void.as_ref()?;
        Some(format!("Under {server}, {why}."))
    };
    let counted = |index: &usize| fates[*index] == Fate::Counted;
    let indexes: Vec<usize> = (0..window.asked.len()).filter(counted).collect();
    let class = |class: usize| {
        let of_class = indexes
            .iter()
            .filter(|i| class_of(window.asked[**i].1) == class);
        let waits = |server: usize, time: fn(Pair) -> f64| -> Waits {
            let mut collected = Collected::default();
            of_class
                .clone()
                .for_each(|i| collected.add(time(pairs[server][*i])));
            collected.waits()
        };
        LiveClass {
            name: CLASSES[class].0,
            responses: of_class.clone().count() as u64,
            predicted: [0, 1, 2].map(|server| waits(server, |pair| pair.predicted_s)),
            replayed: [0, 1, 2].map(|server| waits(server, |pair| pair.replayed_s)),
        }
    };
    Ok(Live {
        from_unix_s: window.from_unix_s,
        length_s: window.replayed().as_secs_f64(),
        responses: indexes.len() as u64,
        bytes: indexes.iter().map(|index| window.asked[*index].1).sum(),
        classes: (0..CLASSES.len())
            .map(class)
            .filter(|class| class.responses > 0)
            .collect(),
        notes,
        doubts: SERVERS.iter().zip(all).filter_map(doubt).collect(),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Counted,
    Late,
    Failed,
}

/// What becomes of a request in the comparison: the same for all orders, so that these stay comparable.
fn fate(window: &Window, index: usize, all: &[Replayed], pairs: &[Vec<Pair>]) -> Fate {
    let at_s = window.asked[index].0 as f64 / 1e9;
    let deadline_s = window.deadline().as_secs_f64();
    let mut fate = Fate::Counted;
    for (replayed, pairs) in all.iter().zip(pairs) {
        let failure = match replayed.records.get(index) {
            Some(record) => record.failure,
            None => Some(Failure::Unfinished),
        };
        match failure {
            None if at_s + pairs[index].predicted_s <= deadline_s => {}
            None | Some(Failure::Unfinished) => fate = Fate::Late,
            Some(_) => return Fate::Failed,
        }
    }
    fate
}

fn note(notes: &mut Vec<String>, fates: &[Fate], kind: Fate, told: impl FnOnce() -> String) {
    let count = fates.iter().filter(|fate| **fate == kind).count();
    if count > 0 {
        notes.push(format!(
            "{} of its requests {}.",
            thousands(count as u64),
            told()
        ));
    }
}

/// Both times of each request under one order.
fn pairs(
    window: &Window,
    rate: Rate,
    server: Server,
    replayed: &Replayed,
) -> Result<Vec<Pair>, SimError> {
    let mut predicted_ns = vec![0u64; window.asked.len()];
    let jobs_max = window.asked.len();
    let mut link = match server {
        Server::Fair => {
            let turn_bytes = replayed.wire.segment_bytes.get() + replayed.wire.per_packet_bytes;
            FluidLink::round_robin(rate.bps(), turn_bytes, jobs_max)?
        }
        Server::Fifo | Server::Shortline => {
            FluidLink::new(rate.bps(), server.policy(), server.burst_bytes(), jobs_max)?
        }
    };
    let mut ended = |index: usize, sojourn_ns| predicted_ns[index] = sojourn_ns;
    for (index, (at_ns, bytes)) in window.asked.iter().enumerate() {
        let arrival = Arrival {
            at_ns: *at_ns,
            bytes: replayed.wire.wire_bytes(*bytes),
        };
        link.arrive(arrival, index, &mut ended)?;
    }
    link.drain(&mut ended);
    let pair = |(index, predicted_ns): (usize, &u64)| Pair {
        predicted_s: *predicted_ns as f64 / 1e9 + replayed.idle_s,
        replayed_s: replayed.records.get(index).map_or(0.0, |record| {
            measured_s(record, window.asked[index].1, replayed.wire, rate)
        }),
    };
    Ok(predicted_ns.iter().enumerate().map(pair).collect())
}

/// The measured time, and the last piece's time on a link.
fn measured_s(record: &RequestRecord, bytes: u64, wire: WireModel, rate: Rate) -> f64 {
    let segment = wire.segment_bytes.get();
    let last = match bytes % segment {
        0 => bytes.min(segment),
        rest => rest,
    };
    let head = if bytes <= segment {
        wire.per_request_bytes
    } else {
        0
    };
    let last_bytes = last + wire.per_packet_bytes * u64::from(last > 0) + head;
    record.response_time_s + last_bytes as f64 * 8.0 / rate.bps() as f64
}

impl Live {
    /// How far the replay was from the prediction at most in the means of sizes with at least [`MEANS_MIN`] responses. `None` if
    /// there is none.
    pub fn means_apart(&self) -> Option<f64> {
        self.apart(MEANS_MIN, |waits| waits.mean_s)
    }

    /// The same for 99th percentiles, of [`PERCENTILES_MIN`].
    pub fn percentiles_apart(&self) -> Option<f64> {
        self.apart(PERCENTILES_MIN, |waits| waits.p99_s)
    }

    fn apart(&self, responses_min: u64, time: fn(&Waits) -> f64) -> Option<f64> {
        let counted = self
            .classes
            .iter()
            .filter(|class| class.responses >= responses_min);
        let pairs = counted.flat_map(|class| class.predicted.iter().zip(&class.replayed));
        let apart = pairs.map(|(predicted, replayed)| off(time(predicted), time(replayed)).abs());
        apart.reduce(f64::max)
    }
}

/// How much larger the replay's figure is than the predicted one, as a share of that.
pub(crate) fn off(predicted_s: f64, replayed_s: f64) -> f64 {
    replayed_s / predicted_s.max(1e-9) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(responses: u64) -> Live {
        let waits = |mean_s, p99_s| [Waits { mean_s, p99_s }; 3];
        Live {
            from_unix_s: 0,
            length_s: 1.0,
            responses,
            bytes: 0,
            classes: vec![LiveClass {
                name: "to 10 KB",
                responses,
                predicted: waits(1.0, 2.0),
                replayed: waits(1.1, 1.5),
            }],
            notes: Vec::new(),
            doubts: Vec::new(),
        }
    }

    #[test]
    fn few_responses_do_not_count() {
        let near = |one: Option<f64>, other| one.is_some_and(|one| (one - other) < 1e-9_f64);
        assert!(near(live(500).means_apart(), 0.1) && near(live(500).percentiles_apart(), 0.25));
        assert!(near(live(499).means_apart(), 0.1) && live(499).percentiles_apart().is_none());
        assert_eq!(live(19).means_apart(), None);
    }
}
