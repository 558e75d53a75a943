//! Which of several backends gets a request: a function of what is known of them, without a clock or
//! I/O.
//!
//! 1. Backends that work go before those that are doubtful, and among these the others before those for
//!    need only (`backup`), and these by their ranks (priorities of SRV). A backend that was tried, whose health
//!    check fails or whose weight is 0 is not asked.
//! 2. A request that names its backend ([`Wish::backend`]) gets it if that one works.
//! 3. A request with a key gets the backend with the highest score for it (weighted rendezvous hashing:
//!    Thaler and Ravishankar 1998, Schindelhauer and Schomaker 2005). If a backend goes, only its keys move.
//!    One with more than [`LOAD_PERCENT_MAX`] of its share of the requests under way is passed over
//!    (bounded loads: Mirrokni, Thorup and Zadimoghaddam 2018), but only with more than [`LOAD_LEAST`]: one
//!    client's requests at a time are few, and belong together.
//! 4. Others get the backend with the fewest requests under way for its weight. Backends with equally few
//!    take turns by weight: the next is the one whose turn ends first among those whose turn has begun, in
//!    virtual time (WF2Q: Bennett and Zhang 1996). So none is a whole turn ahead of its share or behind it.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;

/// How much of its fair share of the requests under way a backend may have before keys pass it over.
const LOAD_PERCENT_MAX: u128 = 125;
/// So many requests under way a backend may have in any case.
const LOAD_LEAST: u128 = 32;
/// A weight of one. Weights that grow are parts of it.
pub const ONE: u64 = 1000;
/// Virtual time that a turn of weight [`ONE`] takes.
const TURN: u128 = 1 << 40;
/// More than what thousands of turns lose by rounding.
const SLACK: u128 = 1 << 16;

/// How likely a backend is to answer, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Works as far as is known.
    Up,
    /// Its last requests failed. It is asked only if no other backend is left.
    Doubtful,
    /// Its health check fails. It is not asked.
    Down,
}

/// What is known of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What names it among others, whatever their order.
    pub name: u64,
    /// Whether it was tried for this request.
    pub tried: bool,
    /// How likely it is to answer.
    pub standing: Standing,
    /// Whether it is asked only if no other works.
    pub backup: bool,
    /// Among equals in that, it is asked only if none of a smaller rank works.
    pub rank: u16,
    /// Its weight now, in parts of [`ONE`]. With 0 it gets only requests that name it.
    pub weight: u64,
    /// Requests under way at it.
    pub outstanding: usize,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// The name of its backend.
    pub backend: Option<u64>,
    /// The key whose backend it should get.
    pub key: Option<u64>,
}

/// The turns of backends, by their places.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    now: u128,
    /// When the next turn of each begins.
    begins: Vec<u128>,
}

/// What names something, the same in every process of this program.
pub fn name_of(text: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The place of the backend for a request, if one may be asked.
pub fn choose(candidates: &[Candidate], wish: Wish, turns: &mut Turns) -> Option<usize> {
    if let Some(named) = wish.backend
        && let Some(at) = candidates.iter().position(|one| one.name == named)
        && !candidates[at].tried
        && candidates[at].standing == Standing::Up
    {
        return Some(at);
    }
    let rank = |one: &Candidate| (one.standing, one.backup, one.rank);
    let may_be_asked =
        |one: &&Candidate| !one.tried && one.weight > 0 && one.standing < Standing::Down;
    let best = candidates.iter().filter(may_be_asked).map(rank).min()?;
    let of_best = candidates.iter().enumerate();
    let of_best = of_best.filter(|(_, one)| may_be_asked(one) && rank(one) == best);
    if let Some(key) = wish.key {
        return by_key(of_best, key);
    }
    let load = |one: &Candidate| (one.outstanding as u128 * TURN) / u128::from(one.weight);
    let least = of_best.clone().map(|(_, one)| load(one)).min()?;
    turns.next(of_best.filter(|(_, one)| load(one) == least))
}

/// The place of the backend with the highest score that has no more than its share.
fn by_key<'a>(
    backends: impl Iterator<Item = (usize, &'a Candidate)> + Clone,
    key: u64,
) -> Option<usize> {
    let all = backends.clone();
    let (weights, requests) = all.fold((0, 1), |(weights, requests), (_, one)| {
        (
            weights + u128::from(one.weight),
            requests + one.outstanding as u128,
        )
    });
    let has_room = |one: &Candidate| {
        let most = (requests * u128::from(one.weight) * LOAD_PERCENT_MAX).div_ceil(weights * 100);
        (one.outstanding as u128) < most.max(LOAD_LEAST)
    };
    let best = backends
        .filter(|(_, one)| has_room(one))
        .max_by(|(_, one), (_, other)| score(one, key).total_cmp(&score(other, key)));
    best.map(|(at, _)| at)
}

fn score(backend: &Candidate, key: u64) -> f64 {
    let drawn = name_of((backend.name, key));
    // Between 0 and 1, without either.
    let drawn = ((drawn >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    backend.weight as f64 / -drawn.ln()
}

impl Turns {
    /// The place whose turn it is among these, of which there must be one at least.
    fn next<'a>(
        &mut self,
        backends: impl Iterator<Item = (usize, &'a Candidate)> + Clone,
    ) -> Option<usize> {
        let weights: u128 = backends
            .clone()
            .map(|(_, one)| u128::from(one.weight))
            .sum();
        let lasts = |one: &Candidate| TURN * u128::from(ONE) / u128::from(one.weight);
        let step = TURN * u128::from(ONE) / weights;
        for (at, one) in backends.clone() {
            if self.begins.len() <= at {
                self.begins.resize(at + 1, 0);
            }
            // Who was not asked for a while has missed its turns.
            let begins = &mut self.begins[at];
            *begins = (*begins).max(self.now.saturating_sub(lasts(one) + step));
        }
        let first = backends.clone().map(|(at, _)| self.begins[at]).min()?;
        self.now = self.now.max(first);
        let now = self.now + SLACK;
        let begun = backends.filter(|(at, _)| self.begins[*at] <= now);
        let (at, one) = begun.min_by_key(|(at, one)| self.begins[*at] + lasts(one))?;
        self.begins[at] += lasts(one);
        self.now += step;
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn candidate(at: usize, weight: u64) -> Candidate {
        Candidate {
            name: name_of(at),
            tried: false,
            standing: Standing::Up,
            backup: false,
            rank: 0,
            weight: weight * ONE,
            outstanding: 0,
        }
    }

    fn candidates(weights: &[u64]) -> Vec<Candidate> {
        let numbered = weights.iter().enumerate();
        numbered
            .map(|(at, weight)| candidate(at, *weight))
            .collect()
    }

    fn keyed(candidates: &[Candidate], key: u64) -> usize {
        let wish = Wish {
            backend: None,
            key: Some(key),
        };
        choose(candidates, wish, &mut Turns::default()).unwrap()
    }

    #[test]
    fn equals_take_turns_and_the_fewest_go_first() {
        let mut three = candidates(&[1, 1, 1]);
        let mut turns = Turns::default();
        let mut next = |three: &[Candidate]| choose(three, Wish::default(), &mut turns).unwrap();
        assert_eq!([next(&three), next(&three), next(&three)], [0, 1, 2]);
        three[0].outstanding = 1;
        three[1].outstanding = 1;
        assert_eq!([next(&three), next(&three)], [2, 2]);
        three[2].outstanding = 3;
        three[1].weight = 2 * ONE;
        assert_eq!([next(&three), next(&three)], [1, 1]);
    }

    #[test]
    fn the_standing_goes_before_the_load_and_a_backup_is_for_need() {
        let mut three = candidates(&[1, 1, 1]);
        three[2].backup = true;
        let next = |three: &[Candidate], backend| {
            choose(three, Wish { backend, key: None }, &mut Turns::default())
        };
        three[0].outstanding = 9;
        three[1].standing = Standing::Doubtful;
        assert_eq!(next(&three, None), Some(0));
        three[0].tried = true;
        assert_eq!(next(&three, None), Some(2));
        three[2].standing = Standing::Down;
        assert_eq!(next(&three, None), Some(1));
        three[1].weight = 0;
        assert_eq!(next(&three, None), None);
        // What names its backend gets it as long as it works.
        three[1].standing = Standing::Up;
        assert_eq!(next(&three, Some(three[1].name)), Some(1));
        assert_eq!(next(&three, Some(three[2].name)), None);
        assert_eq!(next(&three, Some(7)), None);
    }

    fn standing() -> impl Strategy<Value = Standing> {
        prop_oneof![
            Just(Standing::Up),
            Just(Standing::Doubtful),
            Just(Standing::Down)
        ]
    }

    prop_compose! {
        fn any_candidate()(
            tried in any::<bool>(),
            standing in standing(),
            backup in any::<bool>(),
            weight in 0_u64..5,
            outstanding in 0_usize..20,
        ) -> Candidate {
            Candidate { tried, standing, backup, outstanding, ..candidate(0, weight) }
        }
    }

    proptest! {
        #[test]
        fn shares_follow_weights_within_one(
            weights in prop::collection::vec(1_u64..30, 1..9),
            requests in 1_usize..500,
        ) {
            let all = candidates(&weights);
            let mut turns = Turns::default();
            let mut given = vec![0_u64; all.len()];
            let sum: u64 = weights.iter().sum();
            for asked in 1..=requests as u64 {
                given[choose(&all, Wish::default(), &mut turns).unwrap()] += 1;
                for (given, weight) in given.iter().zip(&weights) {
                    let ahead = (given * sum).abs_diff(asked * weight);
                    prop_assert!(ahead <= sum, "{given} of {asked} for {weight} of {sum}");
                }
            }
        }

        #[test]
        fn a_backend_that_comes_back_has_no_turns_to_catch_up(
            weights in prop::collection::vec(1_u64..5, 2..6),
            away in 1_usize..200,
        ) {
            let mut all = candidates(&weights);
            let mut turns = Turns::default();
            all[0].standing = Standing::Down;
            for _ in 0..away {
                choose(&all, Wish::default(), &mut turns).unwrap();
            }
            all[0].standing = Standing::Up;
            let sum: u64 = weights.iter().sum();
            let first = (0..sum).filter(|_| choose(&all, Wish::default(), &mut turns) == Some(0));
            prop_assert!(first.count() as u64 <= weights[0] + 2);
        }

        #[test]
        fn none_is_asked_that_may_not_be_and_one_is_if_one_may(
            mut all in prop::collection::vec(any_candidate(), 0..7),
            key in any::<Option<u64>>(),
            named in any::<Option<u8>>(),
        ) {
            for (at, one) in all.iter_mut().enumerate() {
                one.name = at as u64;
            }
            let wish = Wish { backend: named.map(u64::from), key };
            let chosen = choose(&all, wish, &mut Turns::default());
            let is_named = |at: usize| wish.backend == Some(at as u64);
            let fit = |one: &Candidate| !one.tried && one.standing < Standing::Down;
            match chosen {
                None => prop_assert!(all.iter().all(|one| !fit(one) || one.weight == 0)),
                Some(at) => {
                    let one = &all[at];
                    prop_assert!(fit(one) && (one.weight > 0 || is_named(at)));
                    let better = |other: &Candidate| fit(other)
                        && other.weight > 0
                        && (other.standing, other.backup) < (one.standing, one.backup);
                    prop_assert!(is_named(at) || !all.iter().any(better));
                }
            }
        }

        #[test]
        fn only_the_keys_of_a_backend_that_goes_move(
            weights in prop::collection::vec(1_u64..5, 2..8),
            gone in any::<prop::sample::Index>(),
        ) {
            let all = candidates(&weights);
            let gone = gone.index(all.len());
            let mut left = all.clone();
            left[gone].standing = Standing::Down;
            for key in 0..500 {
                let before = keyed(&all, key);
                if before != gone {
                    prop_assert_eq!(keyed(&left, key), before);
                }
            }
        }

        #[test]
        fn no_key_overloads_a_backend(
            weights in prop::collection::vec(1_u64..5, 1..8),
            requests in 1_usize..300,
        ) {
            let mut all = candidates(&weights);
            for _ in 0..requests {
                let at = keyed(&all, 7);
                all[at].outstanding += 1;
            }
            let sum: u64 = weights.iter().sum();
            for (one, weight) in all.iter().zip(&weights) {
                let share = requests as f64 * *weight as f64 / sum as f64;
                prop_assert!(one.outstanding as f64 <= (share * 1.25 + 1.0).max(32.0));
            }
        }
    }

    #[test]
    fn keys_spread_by_weight() {
        let all = candidates(&[1, 1, 2]);
        let mut given = [0; 3];
        for key in 0..40_000 {
            given[keyed(&all, key)] += 1;
        }
        // Four standard deviations of a binomial of 40,000 are 350 to 400.
        for (given, expected) in given.iter().zip([10_000_i32, 10_000, 20_000]) {
            assert!((given - expected).abs() < 600, "{given} of {expected}");
        }
    }
}
