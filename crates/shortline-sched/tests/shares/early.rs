//! Clients that go early: nobody is late because of them, and the mean is nearer to SRPT's.

use super::*;

/// A burst that nobody here goes beyond.
const BURST: u64 = 1 << 40;
const QUANTUM: u64 = 700;

/// One request a client, long and short ones, most of them while others wait.
fn crowd() -> impl Strategy<Value = (Vec<Arrival>, Vec<u32>)> {
    let work = prop_oneof![3 => 500..5_000u64, 2 => 5_000..50_000u64, 1 => 50_000..400_000u64];
    let each = (0..400_000u64, work, 1..4u32);
    prop::collection::vec(each, 2..40).prop_map(|mut drawn| {
        drawn.sort_by_key(|(at, ..)| *at);
        let arrive =
            |(client, &(at, work, _)): (usize, &(u64, u64, u32))| Arrival { at, client, work };
        let arrivals = drawn.iter().enumerate().map(arrive).collect();
        (arrivals, drawn.iter().map(|(.., weight)| *weight).collect())
    })
}

fn config(burst: u64) -> SchedulerConfig {
    SchedulerConfig {
        burst,
        ..SchedulerConfig::new(Policy::Shares, 100_000)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn nobody_is_late_for_who_goes_early((mut arrivals, weights) in crowd()) {
        let ours = scheduled_as(config(BURST), &mut arrivals, &weights, QUANTUM);
        let fair = fair_sharing(&arrivals, &weights);
        for (ours, fair) in ours.iter().zip(&fair) {
            prop_assert!(*ours as f64 <= fair + ROUNDING, "{ours} after {fair}");
        }
    }
}

#[test]
fn what_is_nearly_done_goes_before_what_is_longer_than_its_rest() {
    let mut arrivals = [(0, 0, 100_000), (0, 1, 300_000), (90_000, 2, 40_000)]
        .map(|(at, client, work)| Arrival { at, client, work });
    let ends =
        |burst, arrivals: &mut [Arrival]| scheduled_as(config(burst), arrivals, &[1; 3], 500);
    // Fair sharing has half of the first done when the third comes, which ends there first.
    assert_eq!(ends(0, &mut arrivals), [140_000, 440_000, 130_000]);
    assert_eq!(ends(BURST, &mut arrivals), [100_000, 440_000, 140_000]);
}

/// A load of 0.95 with heavy-tailed lengths, one client per request.
#[test]
fn most_of_what_fair_sojourn_loses_to_srpt_is_won_back() {
    let (mut early, mut in_turn, mut srpt) = (0, 0, 0);
    for seed in 1..=5 {
        let mut now = 0;
        let mut arrivals: Vec<Arrival> = Vec::new();
        for (client, (work, gap)) in standing_back::requests(0.95, 3_000, seed)
            .into_iter()
            .enumerate()
        {
            now += gap;
            arrivals.push(Arrival {
                at: now,
                client,
                work,
            });
        }
        let weights = vec![1; arrivals.len()];
        let mut sum = |config| {
            let ends = scheduled_as(config, &mut arrivals, &weights, QUANTUM);
            ends.iter()
                .zip(&arrivals)
                .map(|(end, each)| end - each.at)
                .sum::<u64>()
        };
        early += sum(config(BURST));
        in_turn += sum(config(0));
        srpt += sum(SchedulerConfig::new(Policy::Srpt, 100_000));
    }
    assert!(
        srpt <= early && (early - srpt) * 2 < in_turn - srpt,
        "{srpt} {early} {in_turn}"
    );
}
