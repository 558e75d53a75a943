//! When a certificate is ordered, and when the authority is asked for advice. No I/O and no clock: times are seconds since
//! 1970, given as arguments.
//!
//! | | |
//! |---|---|
//! | a certificate that is not there | is ordered at once |
//! | one for which the authority names a window (ARI, RFC 9773, 4.2) | is renewed at a point in it that was drawn evenly; at once if that is past |
//! | another | is renewed after two thirds of its life, and up to a twentieth of it later |
//! | after the n-th failure in a row | it is tried again after 4^(n-1) minutes, six hours at most, and up to a quarter more |
//!
//! So an hour has at most four attempts; Let's Encrypt allows five failures a name and hour. Departures from RFC 9773: a window never
//! puts a renewal off beyond nine tenths of a certificate's life, and it does not renew what was ordered less than a day (or a third
//! of a life) ago. An authority whose windows are always past would have us order without end.
#![deny(clippy::disallowed_methods)]

use serde::{Deserialize, Serialize};

const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 60 * MINUTE_S;
const DAY_S: u64 = 24 * HOUR_S;
const RETRY_S_MAX: u64 = 6 * HOUR_S;
/// How often advice is asked for where the authority does not say (RFC 9773, 4.3.3).
const ASK_EVERY_S: u64 = 6 * HOUR_S;
/// Bounds on what the authority says.
const ASK_S: std::ops::RangeInclusive<u64> = 5 * MINUTE_S..=DAY_S;
/// So long before its end a certificate that should have been renewed is a matter for people: 20 days of 90.
const LATE_S_MAX: u64 = 20 * DAY_S;

/// From when until when a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Its first second.
    pub from_s: u64,
    /// Its last second.
    pub until_s: u64,
}

impl Validity {
    /// How long it still lasts, below 0 if it is over.
    pub fn left_s(self, now_s: u64) -> i64 {
        let until_s = i64::try_from(self.until_s).unwrap_or(i64::MAX);
        until_s.saturating_sub_unsigned(now_s)
    }

    /// Whether it ends soon: in less than two ninths of its life, 20 days at most.
    pub fn is_near_end(self, now_s: u64) -> bool {
        let soon_s = (self.until_s.saturating_sub(self.from_s) / 9 * 2).min(LATE_S_MAX);
        now_s.saturating_add(soon_s) >= self.until_s
    }
}

/// When the authority wants a certificate to be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its first second.
    pub from_s: u64,
    /// Its last second.
    pub until_s: u64,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// A certificate is to be ordered.
    Order,
    /// The authority is to be asked for its advice.
    Advice,
    /// Nothing before this time.
    At(u64),
}

/// Failures in a row, and when the next attempt is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    /// Since the last success.
    pub failures: u32,
    /// No attempt before this time.
    pub until_s: u64,
    /// The last failure.
    pub failed_s: u64,
    /// Whether the authority itself has named the time.
    pub is_told: bool,
}

impl Backoff {
    /// An attempt has failed. `told_s`: how long the authority wants us to wait. `draw` is random, from 0 to 1.
    pub fn failed(&mut self, now_s: u64, told_s: Option<u64>, draw: f64) {
        let doublings = 2 * self.failures.min(8);
        self.failures = self.failures.saturating_add(1);
        let wait_s = (MINUTE_S << doublings).min(RETRY_S_MAX);
        let wait_s = wait_s + (wait_s as f64 * draw / 4.0) as u64;
        let told_s = told_s.filter(|told_s| *told_s > wait_s);
        self.is_told = told_s.is_some();
        self.until_s = now_s.saturating_add(told_s.unwrap_or(wait_s));
        self.failed_s = now_s;
    }

    /// Somebody has changed something: the next attempt is due now, unless the authority has said otherwise or the last one was
    /// less than a minute ago.
    pub fn hurry(&mut self) {
        if !self.is_told {
            self.until_s = self.until_s.min(self.failed_s + MINUTE_S);
        }
    }
}

/// What is known of one certificate.
#[derive(Clone, Debug)]
pub struct Plan {
    held: Option<Validity>,
    window: Option<Window>,
    advice_s: u64,
    /// When it was ordered, if that was not before the start.
    ordered_s: u64,
    backoff: Backoff,
    /// Where in a window the renewal is, from 0 to 1.
    draw: f64,
}

impl Plan {
    /// A certificate that may be there already, and its past failures. `draw` is random, from 0 to 1.
    pub fn new(held: Option<Validity>, backoff: Backoff, draw: f64) -> Self {
        Self {
            held,
            window: None,
            advice_s: 0,
            ordered_s: 0,
            backoff,
            draw,
        }
    }

    /// What is to be done now.
    pub fn due(&self, now_s: u64) -> Due {
        let order_s = self.renewal_s().unwrap_or(0).max(self.backoff.until_s);
        if order_s <= now_s {
            return Due::Order;
        }
        if self.held.is_none() {
            return Due::At(order_s);
        }
        match self.advice_s <= now_s {
            true => Due::Advice,
            false => Due::At(order_s.min(self.advice_s)),
        }
    }

    /// When the certificate that is there is to be renewed.
    pub fn renewal_s(&self) -> Option<u64> {
        let held = self.held?;
        let life_s = held.until_s.saturating_sub(held.from_s);
        let after = |share: f64| held.from_s + (life_s as f64 * share) as u64;
        let at = match self.window {
            Some(window) => {
                let width_s = window.until_s.saturating_sub(window.from_s);
                let drawn_s = window
                    .from_s
                    .saturating_add((width_s as f64 * self.draw) as u64);
                drawn_s.max(self.ordered_s + DAY_S.min(life_s / 3))
            }
            None => after(2.0 / 3.0 + self.draw / 20.0),
        };
        Some(at.min(after(0.9)))
    }

    /// There is a new certificate.
    pub fn got(&mut self, now_s: u64, held: Validity, draw: f64) {
        *self = Self {
            ordered_s: now_s,
            ..Self::new(Some(held), Backoff::default(), draw)
        };
    }

    /// An order has failed.
    pub fn failed(&mut self, now_s: u64, told_s: Option<u64>, draw: f64) {
        self.backoff.failed(now_s, told_s, draw);
    }

    /// Somebody has changed something: see [`Backoff::hurry`]. The authority is asked for its advice, too.
    pub fn hurry(&mut self) {
        self.backoff.hurry();
        self.advice_s = 0;
    }

    /// The authority has answered with a window, or with none, and says when to ask again.
    pub fn advised(&mut self, now_s: u64, window: Option<Window>, again_s: Option<u64>) {
        // What was advised before stays, if it cannot be asked for now.
        self.window = window.or(self.window);
        let again_s = again_s.unwrap_or(ASK_EVERY_S);
        self.advice_s = now_s.saturating_add(again_s.clamp(*ASK_S.start(), *ASK_S.end()));
    }

    /// The failures since the last certificate.
    pub fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    /// How long the certificate is still valid, below 0 if it no longer is.
    pub fn left_s(&self, now_s: u64) -> Option<i64> {
        self.held.map(|held| held.left_s(now_s))
    }

    /// Whether the certificate should have been renewed and [ends soon](Validity::is_near_end).
    pub fn is_late(&self, now_s: u64) -> bool {
        let is_near_end = self.held.is_some_and(|held| held.is_near_end(now_s));
        is_near_end && self.backoff.failures > 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BEGAN_S: u64 = 1_700_000_000;
    const QUARTER: Validity = Validity {
        from_s: BEGAN_S,
        until_s: BEGAN_S + 90 * DAY_S,
    };

    fn plan(held: Option<Validity>) -> Plan {
        Plan::new(held, Backoff::default(), 0.0)
    }

    /// Lets virtual time run to the end. `order` and `advise` say what becomes of each attempt. Returns when it ordered.
    fn run(
        mut plan: Plan,
        (mut now_s, until_s): (u64, u64),
        mut order: impl FnMut(u64) -> Result<Validity, Option<u64>>,
        advice: Option<Window>,
    ) -> (Plan, Vec<u64>) {
        let mut orders = Vec::new();
        while now_s < until_s {
            match plan.due(now_s) {
                Due::At(at_s) => {
                    assert!(at_s > now_s, "time stands still");
                    now_s = at_s;
                }
                Due::Advice => plan.advised(now_s, advice, None),
                Due::Order => {
                    orders.push(now_s);
                    match order(now_s) {
                        Ok(held) => plan.got(now_s, held, 0.5),
                        Err(told_s) => plan.failed(now_s, told_s, 0.5),
                    }
                }
            }
        }
        (plan, orders)
    }

    #[test]
    fn a_year_of_quarters_takes_six_renewals_of_which_none_is_late() {
        let order = |now_s| {
            Ok(Validity {
                from_s: now_s,
                until_s: now_s + 90 * DAY_S,
            })
        };
        let (plan, orders) = run(plan(None), (BEGAN_S, BEGAN_S + 365 * DAY_S), order, None);
        assert_eq!(orders[0], BEGAN_S);
        // A life of 90 days is over after 60, and at the draw of 0.5 a fortieth of it later.
        let gaps: Vec<u64> = orders.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(
            gaps.iter().all(|gap| *gap / HOUR_S == 62 * 24 + 6),
            "{gaps:?}"
        );
        assert_eq!(orders.len(), 6);
        assert_eq!(plan.backoff().failures, 0);
    }

    #[test]
    fn failures_are_tried_again_more_and_more_seldom() {
        let (plan, orders) = run(plan(None), (BEGAN_S, BEGAN_S + DAY_S), |_| Err(None), None);
        let first_hour = orders.iter().filter(|at_s| **at_s < BEGAN_S + HOUR_S);
        assert_eq!(first_hour.count(), 4);
        let gaps: Vec<u64> = orders.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.windows(2).all(|pair| pair[0] <= pair[1]), "{gaps:?}");
        assert_eq!(
            *gaps.last().expect("several"),
            RETRY_S_MAX + RETRY_S_MAX / 8
        );
        assert_eq!(plan.backoff().failures as usize, orders.len());
    }

    #[test]
    fn the_authority_may_say_how_long_to_wait_and_a_reload_respects_it() {
        let mut backoff = Backoff::default();
        backoff.failed(BEGAN_S, Some(7 * HOUR_S), 0.0);
        backoff.hurry();
        assert_eq!(backoff.until_s, BEGAN_S + 7 * HOUR_S);
        // Less than our own wait is no reason to hurry.
        backoff.failed(BEGAN_S, Some(1), 0.0);
        assert_eq!(backoff.until_s, BEGAN_S + 4 * MINUTE_S);
        backoff.hurry();
        assert_eq!(backoff.until_s, BEGAN_S + MINUTE_S);
    }

    #[test]
    fn the_authoritys_window_counts_and_one_that_is_past_is_now() {
        let mut plan = plan(Some(QUARTER));
        let now_s = BEGAN_S + DAY_S;
        assert_eq!(plan.due(now_s), Due::Advice);
        let window = |from_s, until_s| Some(Window { from_s, until_s });
        plan.advised(now_s, window(now_s + 100, now_s + 200), Some(HOUR_S));
        assert_eq!(plan.due(now_s), Due::At(now_s + 100));
        plan.advised(now_s, window(BEGAN_S - 9, BEGAN_S - 8), Some(HOUR_S));
        assert_eq!(plan.due(now_s), Due::Order);
        // A window in ten years would let it end, and one that cannot be asked for changes nothing.
        plan.advised(now_s, window(u64::MAX - 1, u64::MAX), Some(u64::MAX));
        plan.advised(now_s, None, Some(0));
        assert_eq!(plan.renewal_s(), Some(BEGAN_S + 81 * DAY_S));
        assert_eq!(plan.due(now_s), Due::At(now_s + 5 * MINUTE_S));
    }

    #[test]
    fn an_authority_whose_windows_are_past_gets_an_order_a_day() {
        let order = |now_s| {
            Ok(Validity {
                from_s: now_s,
                until_s: now_s + 90 * DAY_S,
            })
        };
        let past = Window {
            from_s: 1,
            until_s: 2,
        };
        let (_, orders) = run(
            plan(None),
            (BEGAN_S, BEGAN_S + 10 * DAY_S),
            order,
            Some(past),
        );
        assert_eq!(orders.len(), 10);
    }

    #[test]
    fn twenty_days_before_its_end_a_failing_renewal_is_late() {
        let mut plan = plan(Some(QUARTER));
        let at = |left_days: u64| QUARTER.until_s - left_days * DAY_S;
        assert!(!plan.is_late(at(1)));
        plan.failed(at(28), None, 0.0);
        assert!(!plan.is_late(at(21)) && plan.is_late(at(20)) && plan.is_late(at(0) + 9));
        assert_eq!(plan.left_s(at(20)), Some(20 * DAY_S as i64));
        assert_eq!(plan.left_s(QUARTER.until_s + 9), Some(-9));
        let short = Validity {
            from_s: BEGAN_S,
            until_s: BEGAN_S + 6 * DAY_S,
        };
        plan.got(BEGAN_S, short, 0.0);
        plan.failed(BEGAN_S + 4 * DAY_S, None, 0.0);
        assert!(!plan.is_late(BEGAN_S + 4 * DAY_S) && plan.is_late(BEGAN_S + 5 * DAY_S));
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_order_too_often_or_too_late(
            life_s in 2 * HOUR_S..400 * DAY_S, draw in 0.0..1.0f64,
            window in proptest::option::of((any::<u64>(), any::<u64>())),
            told in proptest::option::of(any::<u64>()), fails in 0usize..4,
        ) {
            let window = window.map(|(from_s, until_s)| Window { from_s, until_s });
            let held = Validity { from_s: BEGAN_S, until_s: BEGAN_S + life_s };
            let mut left = fails;
            let told = told.map(|told_s| told_s % DAY_S);
            let order = |now_s| {
                if left > 0 {
                    left -= 1;
                    return Err(told);
                }
                Ok(Validity { from_s: now_s, until_s: now_s + 1000 * DAY_S })
            };
            let start = (BEGAN_S, BEGAN_S + life_s);
            let (_, orders) = run(Plan::new(Some(held), Backoff::default(), draw), start, order, window);
            prop_assert!(orders.first().is_none_or(|first| *first <= BEGAN_S + life_s / 10 * 9 + 10));
            prop_assert!(fails == 0 || orders.windows(2).take(fails).all(|pair| pair[1] >= pair[0] + MINUTE_S));
        }
    }
}
