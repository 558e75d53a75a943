//! Simulated seeds, each a server or a gate with its clients and its network.
//! `SHORTLINE_SIMULATE_SEEDS` sets their number; the default is 1,500.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use shortline_world::{Run, simulate, simulate_gate, simulate_many};

fn seeds() -> usize {
    std::env::var("SHORTLINE_SIMULATE_SEEDS").map_or(1_500, |number| {
        number
            .parse()
            .expect("SHORTLINE_SIMULATE_SEEDS is a number")
    })
}

/// Runs this many seeds. Reports the first that fails.
fn everything_holds(simulate: fn(u64, bool) -> Run, seeds: usize) {
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let (mut left, mut failed) = (seeds, None::<Run>);
    simulate_many(simulate, 0, threads, |run| {
        left -= 1;
        if run.fault.is_some() {
            failed = Some(run);
            return ControlFlow::Break(());
        }
        match left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    if let Some(run) = failed {
        panic!("{run}");
    }
}

#[test]
fn everything_holds_of_the_server_after_every_event() {
    everything_holds(simulate, seeds());
}

#[test]
fn everything_holds_of_the_gate_after_every_event() {
    everything_holds(simulate_gate, seeds());
}

/// As long as worlds are drawn as they were then, these go the way that showed a fault.
#[test]
fn worlds_that_showed_a_fault_hold_now() {
    let goodbye_that_was_left_half_written_held_all_responses_back = 19_487;
    let each_byte_acknowledged_let_one_byte_be_written = 1_795_997_641_850;
    let responses_that_nobody_took_held_their_backend = 1_795_999_462_646;
    let a_next_head_limited_the_time_of_the_response_before_it = 1_796_000_943_607;
    let a_client_waited_for_ever_for_a_goodbye_that_was_lost = 1_796_003_749_002;
    let a_full_queue_closed_without_a_word_what_had_a_body = 1_796_005_367_270;
    let a_backend_closed_before_its_last_answer_was_written = 1_796_004_714_000;
    for seed in [
        a_backend_closed_before_its_last_answer_was_written,
        a_full_queue_closed_without_a_word_what_had_a_body,
        a_client_waited_for_ever_for_a_goodbye_that_was_lost,
        a_next_head_limited_the_time_of_the_response_before_it,
        goodbye_that_was_left_half_written_held_all_responses_back,
        each_byte_acknowledged_let_one_byte_be_written,
        responses_that_nobody_took_held_their_backend,
    ] {
        let run = simulate(seed, false);
        assert!(run.fault.is_none(), "{run}");
    }
}

#[test]
fn a_seed_goes_the_same_way_each_time() {
    for simulate in [simulate, simulate_gate] {
        for seed in 0..20 {
            let (one, other) = (simulate(seed, false), simulate(seed, true));
            assert_eq!(one.digest, other.digest, "{one}");
            assert_eq!(one.events, other.events);
        }
    }
}

#[test]
fn most_responses_are_whole_so_that_there_is_something_to_look_at() {
    for simulate in [simulate, simulate_gate] {
        let runs: Vec<_> = (0..50).map(|seed| simulate(seed, false)).collect();
        let (whole, asked) = runs.iter().fold((0, 0), |(whole, asked), run| {
            (whole + run.responses_whole, asked + run.requests)
        });
        assert!(asked > 400 && whole > asked / 2, "{whole} of {asked}");
    }
}
