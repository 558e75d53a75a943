//! A trial: two limits in turns, and the work done per second at each.
//!
//! ```text
//! low high, high low, low high, high low ...
//! ```
//!
//! A pair is two windows next to each other, whose order changes from pair to pair. So a steady drift takes
//! part in both alike. The work is measured as in `auto` ([`super::super::dwell`]), after requests of the
//! last window have ended. With a fixed capacity the estimates settle first, too, because they depend on the
//! load (002 3.1): at the low limit those of the high one would let too few in. Of a window at the low limit
//! only the time counts in which requests wait. Otherwise the work done is the work requested.
//!
//! Work is counted by types. A request counts what its type was expected to take when one of it first ended
//! in the trial. Later estimates do not count, because they grow with the number inside: a database that
//! thrashes would seem to do more.
//!
//! The answer goes by the differences of the logarithms of a pair. Four pairs at least, eight at most.
//! It is *more* if each is above 0 and their mean less four times its error is above five per cent. The error is
//! from the spread of the differences and of the service times, and at least two per cent a window. So a
//! gain below a tenth is not seen. It ends early if the high limit does clearly less.

use super::super::Ended;
use super::super::dwell::{Dwell, Measured};
use super::super::flush::Flush;

/// The fewest and the most pairs.
const PAIRS_MIN: usize = 4;
const PAIRS_MAX: usize = 8;
/// The gain that counts, as a logarithm of the work.
const GAIN: f64 = 0.05;
/// A difference of this many standard deviations is clear.
const CLEAR: f64 = 4.0;
/// The least relative error assumed of a window.
const ERROR_MIN: f64 = 0.02;
/// Estimates have settled after so many requests: as many as one goes by. Or after this long, in nanoseconds.
const REQUESTS_SETTLED: usize = crate::estimate::WINDOW;
const SETTLING_NS_MAX: u64 = 5_000_000_000;
/// A window that has not ended after this long, in nanoseconds, ends the trial.
const WINDOW_NS_MAX: u64 = 20_000_000_000;

/// What a trial asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Whether a higher limit does clearly more.
    Raise,
    /// Whether a limit that was raised still does more.
    Recheck,
}

/// The result of a trial, with the difference of the logarithms of the work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Answer {
    /// The high limit does more.
    More(f64),
    /// Not so, or not clearly.
    NoMore(f64),
    /// Not enough waited, or ended, to tell.
    NotFilled,
}

/// A trial in progress.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) low_ns: u64,
    pub(super) high_ns: u64,
    question: Question,
    /// Whether estimates depend on the limit.
    settles: bool,
    /// The logarithm of the work per second in each window that is over, and its variance.
    windows: Vec<(f64, f64)>,
    /// When the present window began.
    since_ns: u64,
    last_ns: u64,
    active: usize,
    waits: bool,
    stage: Stage,
    dwell_last: f64,
    /// What a request of each type counts, in nanoseconds; 0 if none has ended.
    work_ns: Vec<u64>,
}

#[derive(Debug)]
enum Stage {
    Flushing(Flush),
    /// So many requests must still end.
    Settling {
        since_ns: u64,
        left: usize,
    },
    Measuring(Dwell),
}

impl Trial {
    pub(super) fn new(
        question: Question,
        (low_ns, high_ns): (u64, u64),
        settles: bool,
        now_ns: u64,
        active: usize,
    ) -> Self {
        Self {
            low_ns,
            high_ns,
            question,
            settles,
            windows: Vec::with_capacity(2 * PAIRS_MAX),
            since_ns: now_ns,
            last_ns: now_ns,
            active,
            waits: false,
            stage: Stage::Flushing(Flush::begin(now_ns, active)),
            dwell_last: 0.0,
            work_ns: Vec::new(),
        }
    }

    /// The limit of the present window, in nanoseconds.
    pub(super) fn limit_ns(&self) -> u64 {
        if is_high(self.windows.len()) {
            self.high_ns
        } else {
            self.low_ns
        }
    }

    pub(super) fn pass(
        &mut self,
        now_ns: u64,
        active: usize,
        load_ns: u64,
        waits: bool,
    ) -> Option<Answer> {
        let span_ns = now_ns.saturating_sub(std::mem::replace(&mut self.last_ns, now_ns));
        (self.active, self.waits) = (active, waits);
        let limit_ns = self.limit_ns();
        let counts = self.counts();
        match &mut self.stage {
            Stage::Flushing(flush) => {
                if flush.is_over(now_ns, active, load_ns, limit_ns as f64) {
                    self.stage = Stage::Settling {
                        since_ns: now_ns,
                        left: if self.settles { REQUESTS_SETTLED } else { 0 },
                    };
                }
            }
            Stage::Settling { since_ns, left } => {
                if *left == 0 || now_ns.saturating_sub(*since_ns) > SETTLING_NS_MAX {
                    self.stage = Stage::Measuring(Dwell::default());
                }
            }
            Stage::Measuring(dwell) if counts => dwell.pass(span_ns as f64, active, load_ns, waits),
            Stage::Measuring(_) => {}
        }
        let is_late = now_ns.saturating_sub(self.since_ns) > WINDOW_NS_MAX;
        is_late.then_some(Answer::NotFilled)
    }

    pub(super) fn completed(&mut self, now_ns: u64, kind: usize, ended: Ended) -> Option<Answer> {
        let work_ns = self.count(kind, ended);
        let counts = self.counts();
        match &mut self.stage {
            Stage::Flushing(flush) => {
                flush.completed(now_ns, ended);
                None
            }
            Stage::Settling { left, .. } => {
                *left = left.saturating_sub(1);
                None
            }
            Stage::Measuring(dwell) if counts => {
                dwell.completed(Ended { work_ns, ..ended });
                let measured = dwell.measured(self.dwell_last)?;
                self.next_window(now_ns, measured)
            }
            Stage::Measuring(_) => None,
        }
    }

    /// Whether the present time counts.
    fn counts(&self) -> bool {
        self.waits || is_high(self.windows.len())
    }

    /// What the request counts, in nanoseconds.
    fn count(&mut self, kind: usize, ended: Ended) -> u64 {
        if self.work_ns.len() <= kind {
            self.work_ns.resize(kind + 1, 0);
        }
        let work_ns = &mut self.work_ns[kind];
        if *work_ns == 0 {
            *work_ns = ended.work_ns.max(1);
        }
        *work_ns
    }

    fn next_window(&mut self, now_ns: u64, measured: Measured) -> Option<Answer> {
        self.dwell_last = measured.span;
        self.windows
            .push((measured.work_rate.ln(), measured.variance));
        self.since_ns = now_ns;
        self.stage = Stage::Flushing(Flush::begin(now_ns, self.active));
        judge(self.question, &self.windows)
    }
}

/// Whether this window, counted from 0, is at the high limit.
fn is_high(window: usize) -> bool {
    matches!(window % 4, 1 | 2)
}

/// The answer, once the windows suffice for one.
fn judge(question: Question, windows: &[(f64, f64)]) -> Option<Answer> {
    let (pairs, rest) = windows.as_chunks::<2>();
    if pairs.is_empty() || !rest.is_empty() {
        return None;
    }
    let differences: Vec<f64> = pairs
        .iter()
        .enumerate()
        .map(|(pair, [first, second])| {
            let later_less_earlier = second.0 - first.0;
            if is_high(2 * pair) {
                -later_less_earlier
            } else {
                later_less_earlier
            }
        })
        .collect();
    let count = pairs.len() as f64;
    let mean = differences.iter().sum::<f64>() / count;
    let error = error(&differences, windows, mean);
    let suffice = pairs.len() >= PAIRS_MIN;
    let is_more = match question {
        Question::Raise => {
            differences.iter().all(|&difference| difference > 0.0) && mean - CLEAR * error > GAIN
        }
        Question::Recheck => mean > GAIN,
    };
    match () {
        () if suffice && is_more => Some(Answer::More(mean)),
        () if mean + CLEAR * error < 0.0 => Some(Answer::NoMore(mean)),
        () if suffice && mean < GAIN || pairs.len() >= PAIRS_MAX => Some(Answer::NoMore(mean)),
        () => None,
    }
}

/// The standard deviation of the mean of the differences.
fn error(differences: &[f64], windows: &[(f64, f64)], mean: f64) -> f64 {
    let count = differences.len() as f64;
    let squares: f64 = differences
        .iter()
        .map(|difference| (difference - mean).powi(2))
        .sum();
    let spread = squares / (count - 1.0).max(1.0);
    let known: f64 = windows.iter().map(|(_, variance)| variance).sum();
    let variance = spread.max(known / count).max(2.0 * ERROR_MIN * ERROR_MIN);
    (variance / count).sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is answered if the high limit does `gain` more (a logarithm), each window is off by its `noise`,
    /// and the backend drifts by `drift` from window to window. Also the number of windows.
    fn ask(question: Question, gain: f64, noise: &[f64], drift: f64) -> (Answer, usize) {
        let mut windows = Vec::new();
        for (window, noise) in noise.iter().enumerate() {
            let gain = if is_high(window) { gain } else { 0.0 };
            windows.push((3.0 + gain + noise + drift * window as f64, 1e-4));
            if let Some(answer) = judge(question, &windows) {
                return (answer, windows.len());
            }
        }
        panic!("no answer after {} windows", windows.len());
    }

    fn noise(most: f64) -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(-most..most, 2 * PAIRS_MAX)
    }

    proptest! {
        #[test]
        fn a_limit_that_halves_the_work_is_seen_within_sixteen_windows(
            noise in noise(0.1), drift in -0.05..0.05f64,
        ) {
            let (answer, windows) = ask(Question::Raise, 2f64.ln(), &noise, drift);
            prop_assert!(matches!(answer, Answer::More(_)), "{answer:?}");
            prop_assert!(windows <= 2 * PAIRS_MAX);
        }

        #[test]
        fn what_does_no_more_is_never_taken_for_more(
            gain in -2.0..0.0f64, noise in noise(0.02), drift in -0.05..0.05f64,
        ) {
            let (answer, _) = ask(Question::Raise, gain, &noise, drift);
            prop_assert!(!matches!(answer, Answer::More(_)), "{answer:?}");
        }

        #[test]
        fn what_does_far_less_is_tried_for_one_window(less in 0.5..3.0f64, noise in noise(0.1)) {
            let (answer, windows) = ask(Question::Raise, -less, &noise, 0.0);
            prop_assert!(matches!(answer, Answer::NoMore(_)));
            prop_assert_eq!(windows, 2);
        }

        #[test]
        fn a_raised_limit_stays_as_long_as_it_does_more(noise in noise(0.02), drift in -0.05..0.05f64) {
            let stays = |gain| matches!(ask(Question::Recheck, gain, &noise, drift).0, Answer::More(_));
            prop_assert!(stays(0.15));
            prop_assert!(!stays(0.0));
        }
    }

    #[test]
    fn without_noise_it_takes_four_pairs() {
        let still = [0.0; 2 * PAIRS_MAX];
        assert_eq!(ask(Question::Raise, 0.7, &still, 0.0).1, 2 * PAIRS_MIN);
        assert_eq!(ask(Question::Raise, 0.0, &still, 0.0).1, 2 * PAIRS_MIN);
    }
}
