//! The relay's limits.

use shortline_gate::relay::Limits;
use shortline_sched::units::Span;

use crate::gate::GateOptions;
use shortline_daemon::given::{Given, count};

/// The limits.
///
/// # Errors
/// Names the place of a limit that is out of range.
pub fn limits(given: &Given<'_, GateOptions>) -> Result<Limits, String> {
    let merged = given.merged;
    let defaults = Limits::default();
    Ok(Limits {
        connections_max: count(merged.connections_max, defaults.connections_max),
        authentication_time_max: given.time(
            "authentication-time-max",
            |options| options.authentication_time_max,
            defaults.authentication_time_max,
        )?,
        connect_time_max: given.time(
            "connect-time-max",
            |options| options.connect_time_max,
            defaults.connect_time_max,
        )?,
        drain_time_max: merged.drain.map_or(defaults.drain_time_max, Span::duration),
        idle_transaction_time_max: merged
            .idle_transaction_max
            .map(Span::duration)
            .filter(|time| !time.is_zero()),
        message_bytes_max: given.size(
            "message-size-max",
            |options| options.message_size_max,
            64 << 10..=defaults.message_bytes_max,
            defaults.message_bytes_max,
        )?,
        held_bytes_max: given.size(
            "held-size-max",
            |options| options.held_size_max,
            1 << 10..=1 << 20,
            defaults.held_bytes_max,
        )?,
        pipelined_max: count(merged.pipelined_max, defaults.pipelined_max),
        statements_max: count(merged.statements_max, defaults.statements_max),
        workers: count(merged.threads, defaults.workers),
    })
}
