//! The relay's limits as they were asked for.

use shortline_gate::relay::Limits;
use shortline_sched::units::{Size, Span};

use super::given::{Given, count};

/// The limits.
///
/// # Errors
/// Names the place of one that is out of range.
pub fn limits(given: &Given<'_>) -> Result<Limits, String> {
    let (flags, merged) = (given.flags, given.merged);
    let defaults = Limits::default();
    Ok(Limits {
        connections_max: count(merged.connections_max, defaults.connections_max),
        authentication_time_max: given.time(
            flags.authentication_time_max.is_some(),
            "authentication-time-max",
            merged.authentication_time_max,
            defaults.authentication_time_max,
        )?,
        connect_time_max: given.time(
            flags.connect_time_max.is_some(),
            "connect-time-max",
            merged.connect_time_max,
            defaults.connect_time_max,
        )?,
        drain_time_max: merged.drain.map_or(defaults.drain_time_max, Span::duration),
        message_bytes_max: message_bytes_max(given, defaults.message_bytes_max)?,
        held_bytes_max: merged
            .held_size_max
            .map_or(Ok(defaults.held_bytes_max), |size| {
                held_bytes_max(given, size)
            })?,
        pipelined_max: count(merged.pipelined_max, defaults.pipelined_max),
        statements_max: count(merged.statements_max, defaults.statements_max),
        workers: count(merged.threads, defaults.workers),
    })
}

fn message_bytes_max(given: &Given<'_>, most: u32) -> Result<u32, String> {
    const LEAST: u32 = 64 << 10;
    let Some(size) = given.merged.message_size_max else {
        return Ok(most);
    };
    let bytes = u32::try_from(size.bytes()).ok();
    bytes
        .filter(|bytes| (LEAST..=most).contains(bytes))
        .ok_or_else(|| {
            given.out_of_range(
                given.flags.message_size_max.is_some(),
                "message-size-max",
                size,
                u64::from(LEAST),
                u64::from(most),
            )
        })
}

fn held_bytes_max(given: &Given<'_>, size: Size) -> Result<usize, String> {
    const LEAST: usize = 1 << 10;
    const MOST: usize = 1 << 20;
    let bytes = usize::try_from(size.bytes()).ok();
    bytes
        .filter(|bytes| (LEAST..=MOST).contains(bytes))
        .ok_or_else(|| {
            given.out_of_range(
                given.flags.held_size_max.is_some(),
                "held-size-max",
                size,
                LEAST as u64,
                MOST as u64,
            )
        })
}
