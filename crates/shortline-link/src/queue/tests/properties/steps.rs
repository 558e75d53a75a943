//! What may happen to the queue.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use shortline_sched::units::Rate;

use super::MS;
use crate::regulator::Pacing;

/// A connection's number, or a job's, among those that there are; a length in bytes, a time in nanoseconds.
#[derive(Clone, Debug)]
pub enum Step {
    Submit(Index, u64),
    HandOver(Index),
    Decline(Index),
    Ask(Index),
    Abort(Index),
    Drain(Index),
    Block(Index),
    Acknowledge(Index),
    End(Index),
    Wait(u64),
    Pace(Pacing),
}

/// Any, the likelier ones more often.
pub fn step() -> impl Strategy<Value = Step> {
    let which = any::<Index>;
    let pacing = select(vec![
        Pacing::Rate(Rate::from_bps(8_000_000)),
        Pacing::Rate(Rate::from_bps(1_000_000)),
        Pacing::Slots,
        Pacing::Few,
        Pacing::Free,
        Pacing::Unknown,
    ]);
    let length = prop_oneof![1..2_000u64, 1..30_000u64];
    prop_oneof![
        4 => (which(), length).prop_map(|(at, length)| Step::Submit(at, length)),
        6 => which().prop_map(Step::HandOver),
        1 => which().prop_map(Step::Decline),
        2 => which().prop_map(Step::Ask),
        1 => which().prop_map(Step::Abort),
        5 => which().prop_map(Step::Drain),
        2 => which().prop_map(Step::Block),
        4 => which().prop_map(Step::Acknowledge),
        1 => which().prop_map(Step::End),
        4 => (0..20 * MS).prop_map(Step::Wait),
        1 => pacing.prop_map(Step::Pace),
    ]
}
