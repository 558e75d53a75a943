//! The loops: visitors come, click, think and leave.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shortline_load::{Failure, RequestRecord};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::client::{Client, Progress};
use super::session::{Click, Session};
use super::{Arrival, Arrivals, Crowd, Mix, Options, Phase, Results};

/// The most records of a run. With more, the run ends.
const RECORDS_MAX: usize = 20_000_000;
/// The stream of random numbers for arrivals. Visitors have the other streams.
const ARRIVALS_STREAM: u64 = u64::MAX;

/// Lets visitors come as the options say. Returns when the last has left or the run's time is over.
/// What is under way then counts as unfinished, with its time so far.
pub async fn run(options: Options) -> Results {
    let shared = Arc::new(Shared {
        begin: Instant::now(),
        end: end_of(&options),
        records: Mutex::new(Vec::new()),
        sessions: AtomicU64::new(0),
        present: AtomicUsize::new(0),
        thinking: Mutex::new(VecDeque::new()),
        options,
    });
    let turned_away = match &shared.options.arrivals {
        Arrivals::Closed { browsers } => {
            closed(&shared, *browsers).await;
            0
        }
        Arrivals::Open {
            crowd,
            each,
            phases,
            sessions_max,
            ..
        } => open(&shared, *crowd, *each, phases, *sessions_max).await,
    };
    let took = shared.begin.elapsed();
    Results {
        records: std::mem::take(&mut shared.records.lock()),
        sessions: shared.sessions.load(Ordering::Relaxed),
        turned_away,
        took,
    }
}

struct Shared {
    begin: Instant,
    /// The end of the run. What is under way then is unfinished.
    end: Instant,
    records: Mutex<Vec<RequestRecord>>,
    sessions: AtomicU64,
    present: AtomicUsize,
    /// Visitors of the open loop by click who have their page, the one who has had it longest
    /// first.
    thinking: Mutex<VecDeque<Visitor>>,
    options: Options,
}

/// A visitor who clicks when told to.
struct Visitor {
    client: Client,
    session: Session,
}

impl Shared {
    fn keep(&self, record: RequestRecord) {
        let mut records = self.records.lock();
        if records.len() < RECORDS_MAX {
            records.push(record);
        }
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.end || self.records.lock().len() >= RECORDS_MAX
    }

    fn mix(&self, now: Instant) -> Mix {
        let options = &self.options;
        let later = options.mix_later.filter(|(at, _)| now >= self.begin + *at);
        later.map_or(options.mix, |(_, mix)| mix)
    }

    fn begin_session(&self) -> Session {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        let options = &self.options;
        Session::new(options.seed, number, options.mix, options.scale)
    }

    fn client(&self) -> Client {
        Client::new(self.options.shop, self.options.pictures)
    }
}

fn end_of(options: &Options) -> Instant {
    let drain = match &options.arrivals {
        Arrivals::Closed { .. } => Duration::ZERO,
        Arrivals::Open { drain_max, .. } => *drain_max,
    };
    Instant::now() + options.lasts + drain
}

async fn closed(shared: &Arc<Shared>, browsers: usize) {
    let mut all = JoinSet::new();
    for _ in 0..browsers {
        all.spawn(browser(Arc::clone(shared)));
    }
    while all.join_next().await.is_some() {}
}

/// One visitor after another. The first begins somewhere in a first thinking time, so that visitors
/// do not all come at once.
async fn browser(shared: Arc<Shared>) {
    let times = shared.options.times;
    let mut session = shared.begin_session();
    let mut at = shared.begin + times.think.draw(session.rng());
    loop {
        let leaves = at + times.session.draw(session.rng());
        let mut client = shared.client();
        while at < leaves {
            if !click(&shared, &mut client, &mut session, at).await {
                return;
            }
            at = Instant::now() + times.think.draw(session.rng());
        }
        session = shared.begin_session();
    }
}

/// Lets visitors come until the time for arrivals is over, then waits for the last. Returns how
/// many could not come.
async fn open(
    shared: &Arc<Shared>,
    crowd: Crowd,
    each: Arrival,
    phases: &[Phase],
    sessions_max: usize,
) -> u64 {
    let mut rng = ChaCha8Rng::seed_from_u64(shared.options.seed);
    rng.set_stream(ARRIVALS_STREAM);
    let mut all = JoinSet::new();
    let gone = shared.begin + crowd.lasts;
    for _ in 0..crowd.browsers {
        all.spawn(restless(Arc::clone(shared), gone));
    }
    let mut turned_away = 0;
    let lasts = shared.options.lasts.saturating_sub(crowd.lasts);
    for at in arrivals(phases, lasts, &mut rng) {
        let at = gone + at;
        sleep_until(at).await;
        while all.try_join_next().is_some() {}
        let waits = match each {
            Arrival::Session => None,
            Arrival::Click => shared.thinking.lock().pop_front(),
        };
        let visitor = match waits {
            Some(visitor) => visitor,
            None => {
                // A visitor who is turned away uses up a number too, so that the others stay the
                // same.
                let mut session = shared.begin_session();
                if each == Arrival::Click {
                    session.settle();
                }
                if shared.present.load(Ordering::Relaxed) >= sessions_max {
                    turned_away += 1;
                    continue;
                }
                shared.present.fetch_add(1, Ordering::Relaxed);
                let client = shared.client();
                Visitor { client, session }
            }
        };
        match each {
            Arrival::Session => all.spawn(guest(Arc::clone(shared), visitor, at)),
            Arrival::Click => all.spawn(one_click(Arc::clone(shared), visitor, at)),
        };
    }
    while all.join_next().await.is_some() {}
    turned_away
}

/// A visitor of the crowd before the open loop.
async fn restless(shared: Arc<Shared>, until: Instant) {
    let mut session = shared.begin_session();
    session.settle();
    let mut client = shared.client();
    let mut now = Instant::now();
    while now < until && click(&shared, &mut client, &mut session, now).await {
        now = Instant::now();
    }
}

/// One session of the open loop.
async fn guest(shared: Arc<Shared>, mut visitor: Visitor, mut at: Instant) {
    let times = shared.options.times;
    let mut left = times.session.draw(visitor.session.rng());
    while click(&shared, &mut visitor.client, &mut visitor.session, at).await {
        let think = times.think.draw(visitor.session.rng());
        if think >= left {
            break;
        }
        left -= think;
        at = Instant::now() + think;
    }
    shared.present.fetch_sub(1, Ordering::Relaxed);
}

/// One click of the open loop. After it the visitor thinks or leaves.
async fn one_click(shared: Arc<Shared>, mut visitor: Visitor, at: Instant) {
    let stays = click(&shared, &mut visitor.client, &mut visitor.session, at).await;
    let goes = 1.0 / shared.options.times.clicks_mean();
    if stays && !visitor.session.rng().random_bool(goes) {
        shared.thinking.lock().push_back(visitor);
    } else {
        shared.present.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The arrival times before `lasts` of a Poisson process whose rate follows `phases` in a cycle:
/// the gaps of a process of rate 1, stretched by the rate of the phase they fall into.
fn arrivals(
    phases: &[Phase],
    lasts: Duration,
    rng: &mut ChaCha8Rng,
) -> impl Iterator<Item = Duration> {
    let expected: f64 = phases
        .iter()
        .map(|phase| phase.per_s * phase.lasts.as_secs_f64())
        .sum();
    let mut times = Vec::new();
    let mut now = 0.0;
    let mut gap = exponential(rng);
    // If a round has no arrivals, there will never be one.
    let rounds = phases.iter().cycle().take_while(|_| expected > 0.0);
    for phase in rounds {
        let end = now + phase.lasts.as_secs_f64();
        while gap <= (end - now) * phase.per_s {
            now += gap / phase.per_s;
            gap = exponential(rng);
            times.push(Duration::from_secs_f64(now));
        }
        gap -= (end - now) * phase.per_s;
        now = end;
        if now >= lasts.as_secs_f64() {
            break;
        }
    }
    times.retain(|at| *at < lasts);
    times.into_iter()
}

fn exponential(rng: &mut ChaCha8Rng) -> f64 {
    -(1.0 - rng.random::<f64>()).ln()
}

/// One interaction, clicked at `at`. Returns false once the run is over.
async fn click(shared: &Shared, client: &mut Client, session: &mut Session, at: Instant) -> bool {
    if timeout_at(shared.end, sleep_until(at)).await.is_err() || shared.is_over() {
        return false;
    }
    let started = Instant::now();
    session.follow(shared.mix(started));
    let click = session.click();
    let patience = (started + shared.options.patience).min(shared.end);
    let mut progress = Progress::default();
    let fetched = timeout_at(patience, client.fetch(&click, &mut progress)).await;
    let failure = match fetched {
        Ok(Ok(reading)) => {
            session.saw(reading);
            None
        }
        Ok(Err(failure)) => Some(failure),
        Err(_) if patience == shared.end => Some(Failure::Unfinished),
        Err(_) => Some(Failure::Timeout),
    };
    if let Some(failure) = failure {
        session.failed();
        // After a status the connection is still good.
        if !matches!(failure, Failure::Status(_)) {
            client.forget_connection();
        }
    }
    shared.keep(record(shared.begin, at, started, &click, progress, failure));
    failure != Some(Failure::Unfinished)
}

fn record(
    begin: Instant,
    at: Instant,
    started: Instant,
    click: &Click,
    progress: Progress,
    failure: Option<Failure>,
) -> RequestRecord {
    let since = |instant: Instant| instant.saturating_duration_since(at).as_secs_f64();
    let at_s = at.saturating_duration_since(begin).as_secs_f64();
    let path = format!("/{}", click.interaction);
    RequestRecord {
        lag_s: since(started),
        connect_s: progress.connected.map(since),
        first_byte_s: progress.first_byte.map(since),
        failure,
        ..RequestRecord::finished(at_s, &path, progress.received, since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(seconds: u64, per_s: f64) -> Phase {
        Phase {
            lasts: Duration::from_secs(seconds),
            per_s,
        }
    }

    fn times(phases: &[Phase], seconds: u64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        arrivals(phases, Duration::from_secs(seconds), &mut rng)
            .map(|at| at.as_secs_f64())
            .collect()
    }

    #[test]
    fn arrivals_follow_the_rate_of_their_phase() {
        let times = times(&[phase(100, 30.0), phase(100, 10.0)], 400);
        assert!(times.is_sorted());
        let within = |from: f64, to: f64| {
            let within = times.iter().filter(|at| (from..to).contains(*at));
            within.count() as f64
        };
        for (from, expected) in [
            (0.0, 3000.0),
            (100.0, 1000.0),
            (200.0, 3000.0),
            (300.0, 1000.0),
        ] {
            let count = within(from, from + 100.0);
            assert!(
                (count - expected).abs() < 4.0 * f64::sqrt(expected),
                "{from}: {count}"
            );
        }
        assert_eq!(within(0.0, 400.0) as usize, times.len());
    }

    #[test]
    fn a_phase_without_arrivals_has_none_and_nothing_but_such_ends() {
        assert!(times(&[phase(10, 0.0)], 100).is_empty());
        assert!(times(&[], 100).is_empty());
        let some = times(&[phase(10, 0.0), phase(10, 5.0)], 20);
        assert!(!some.is_empty());
        assert!(some.iter().all(|at| *at >= 10.0));
    }
}
