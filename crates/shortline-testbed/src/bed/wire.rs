//! The wire behind the uplink's shaper: a packet is there only when its last bit is.
//!
//! HTB and TBF send a packet as soon as they have tokens, all of it at once. After a pause the first
//! is there without the 1.2 ms that it takes on 10 Mbit/s, and a response of one packet beats every
//! link of that rate. So what comes out of the shaper passes netem's rate, which keeps each packet
//! for its length over the rate, one after the other (tc-netem(8)):
//!
//! ```text
//! server  HTB or bands at the rate  ==>  far end, ingress  ->  ifb, netem at the rate  ->  far end
//! ```
//! The shaper never runs ahead by more than its burst, so no more than that waits here, and the order
//! stays the shaper's. netem counts what HTB counts, IP bytes and 14 a packet.

use std::fs;

use shortline_sched::units::Rate;

use super::netns::Namespace;
use crate::TestbedError;
use crate::guest::kernel::TIME_TRAVEL;

/// Far more packets than any burst has.
const LIMIT: &str = "1000";

/// netem before the far end of the uplink.
#[derive(Debug)]
pub struct Wire {
    /// Where packets wait. It is in the namespace of the far end.
    device: String,
}

impl Wire {
    /// Puts the wire before what `far_device` of `far` receives. The device `device` is made for it.
    ///
    /// # Errors
    /// If the kernel lacks `ifb`, netem, the ingress queue or the redirection.
    pub fn join(
        far: &Namespace,
        far_device: &str,
        device: String,
        rate: Rate,
    ) -> Result<Self, TestbedError> {
        far.ip(&["link", "add", "name", &device, "type", "ifb"])?;
        let made = Self::lead_through(far, far_device, &device, rate);
        if made.is_err() {
            far.ip(&["link", "delete", "dev", &device])?;
        }
        made.map(|()| Self { device })
    }

    fn lead_through(
        far: &Namespace,
        far_device: &str,
        device: &str,
        rate: Rate,
    ) -> Result<(), TestbedError> {
        far.ip(&["link", "set", "dev", device, "up"])?;
        far.tc(&netem("add", device, rate).each_ref().map(String::as_str))?;
        far.tc(&[
            "qdisc", "add", "dev", far_device, "handle", "ffff:", "ingress",
        ])?;
        let all = ["u32", "match", "u32", "0", "0"];
        let redirect = ["action", "mirred", "egress", "redirect", "dev", device];
        let filter = [
            "filter", "add", "dev", far_device, "parent", "ffff:", "protocol", "all",
        ];
        far.tc(&[&filter[..], &all, &redirect].concat()).map(drop)
    }

    /// Changes its rate, for packets that have not come yet.
    ///
    /// # Errors
    /// If `tc` fails.
    pub fn set_rate(&self, far: &Namespace, rate: Rate) -> Result<(), TestbedError> {
        let change = netem("change", &self.device, rate);
        far.tc(&change.each_ref().map(String::as_str)).map(drop)
    }
}

fn netem(verb: &str, device: &str, rate: Rate) -> [String; 10] {
    let rate = format!("{}bit", rate.bps());
    [
        "qdisc", verb, "dev", device, "root", "netem", "limit", LIMIT, "rate", &rate,
    ]
    .map(str::to_owned)
}

/// How far HTB may run ahead: one packet where the clock stands still while something computes, so
/// that no more than one is on the wire before another that has overtaken it. Elsewhere one packet or
/// the bytes of 1.28 ms (the same at 10 Mbit/s). A real line loses nothing to a late timer. With 0.2 ms at
/// 100 Mbit/s, HTB left 2 to 3 % of the rate unused although packets waited, on a machine whose
/// processors were busy.
pub(super) fn burst_bytes(rate: Rate, clock: Clock) -> u64 {
    const PACKET_BYTES: u64 = 1600;
    match clock {
        Clock::Virtual => PACKET_BYTES,
        Clock::Real => PACKET_BYTES.max(rate.bps() / 8 * 128 / 100_000),
    }
}

/// Whether timers can be late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// They can.
    Real,
    /// The guest's clock stands still while something computes (`guest`).
    Virtual,
}

impl Clock {
    /// That of this kernel, by its command line.
    pub(super) fn of_kernel() -> Self {
        let words = fs::read_to_string("/proc/cmdline").unwrap_or_default();
        Self::of(&words)
    }

    fn of(command_line: &str) -> Self {
        let mut words = command_line.split_whitespace();
        match words.any(|word| word == TIME_TRAVEL) {
            true => Self::Virtual,
            false => Self::Real,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_burst_is_a_packet_at_least() {
        let burst = |mbit: u64, clock| burst_bytes(Rate::from_bps(mbit * 1_000_000), clock);
        assert_eq!(burst(10, Clock::Real), 1600);
        assert_eq!(burst(100, Clock::Real), 16_000);
        assert_eq!(burst(100, Clock::Virtual), 1600);
    }

    #[test]
    fn the_virtual_kernel_is_known_by_its_command_line() {
        assert_eq!(
            Clock::of("mem=2G time-travel=inf-cpu quiet"),
            Clock::Virtual
        );
        assert_eq!(Clock::of("mem=2G root=/dev/root"), Clock::Real);
    }
}
