//! The same paths for the kernel's emulator (tc-netem(8)), where it has one: it needs no process
//! and no copy of each packet.
//!
//! On each of the router's two devices an HTB, whose rate never limits, sorts packets by the clients'
//! addresses into a class for each group. A netem behind each class does what the [`Way`] says. netem
//! departs from the user-space emulator in two things. Jitter changes the order inside a connection,
//! and one limit counts both the FIFO before a path's link and the packets that travel behind it.

use super::emulator::{LaneCounts, PACKETS_MAX};
use super::loss::Loss;
use super::packet::Network;
use super::path::Way;

/// Far above any uplink of the lab.
const UNLIMITED: &str = "10gbit";
/// A full packet, to estimate what is under way on a link.
const PACKET_BITS: u64 = 1514 * 8;

/// Which address of a packet is the client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// The destination, towards the clients.
    Destination,
    /// The source, towards the server.
    Source,
}

/// The arguments of each `tc` that makes `device` emulate these ways.
pub fn commands(device: &str, client: Client, ways: &[(Network, &Way)]) -> Vec<Vec<String>> {
    let words = |line: String| line.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let side = match client {
        Client::Destination => "dst",
        Client::Source => "src",
    };
    let mut commands = vec![words(format!(
        "qdisc add dev {device} root handle 1: htb default 0"
    ))];
    for (number, (network, way)) in ways.iter().enumerate() {
        let (class, handle) = (class(number), handle(number));
        let Network { first, prefix_bits } = network;
        commands.extend(
            [
                format!(
                    "class add dev {device} parent 1: classid {class} htb rate {UNLIMITED} \
                     quantum 1514"
                ),
                format!(
                    "filter add dev {device} parent 1: protocol ip prio 1 u32 match ip {side} \
                     {first}/{prefix_bits} flowid {class}"
                ),
                format!(
                    "qdisc add dev {device} parent {class} handle {handle} netem {}",
                    parameters(way)
                ),
            ]
            .map(words),
        );
    }
    commands
}

/// The counters of each way, from the output of `tc -s -j qdisc show dev DEVICE`. netem does not
/// distinguish lost from dropped packets; both count as `lost`. The 14 bytes a packet are subtracted.
pub fn counts(text: &str, ways: usize) -> Option<Vec<LaneCounts>> {
    let qdiscs: serde_json::Value = serde_json::from_str(text).ok()?;
    let qdiscs = qdiscs.as_array()?;
    let of = |number: usize| {
        let handle = handle(number);
        let qdisc = qdiscs
            .iter()
            .find(|qdisc| qdisc["kind"] == "netem" && qdisc["handle"] == handle.as_str())?;
        let (packets, lost) = (qdisc["packets"].as_u64()?, qdisc["drops"].as_u64()?);
        Some(LaneCounts {
            offered: packets + lost,
            lost,
            dropped: 0,
            bytes: qdisc["bytes"].as_u64()?.saturating_sub(14 * packets),
        })
    };
    (0..ways).map(of).collect()
}

fn class(number: usize) -> String {
    format!("1:{:x}", number + 1)
}

fn handle(number: usize) -> String {
    format!("{:x}:", number + 0x10)
}

fn parameters(way: &Way) -> String {
    let mut text = format!("limit {}", limit(way));
    let us = |span: shortline_sched::units::Span| span.duration().as_micros();
    if !way.delay.duration().is_zero() {
        text += &format!(" delay {}us", us(way.delay));
    }
    if !way.jitter.duration().is_zero() {
        text += &format!(" {}us", us(way.jitter));
    }
    let percent = |probability: f64| probability * 100.0;
    match way.loss {
        Loss::None => {}
        Loss::Uniform { probability } => {
            text += &format!(" loss random {:.4}%", percent(probability));
        }
        Loss::GilbertElliott {
            to_bad,
            to_good,
            loss_good,
            loss_bad,
        } => {
            let [to_bad, to_good] = [to_bad, to_good].map(percent);
            let [loss_bad, loss_good] = [loss_bad, loss_good].map(percent);
            text +=
                &format!(" loss gemodel {to_bad:.4}% {to_good:.4}% {loss_bad:.4}% {loss_good:.4}%");
        }
    }
    if let Some(rate) = way.rate {
        text += &format!(" rate {}bit", rate.bps());
    }
    text
}

/// The limit for all packets that wait or travel.
fn limit(way: &Way) -> u64 {
    let Some(rate) = way.rate else {
        return PACKETS_MAX as u64;
    };
    let travelling_bits = rate.bps() as f64 * way.delay.duration().as_secs_f64();
    u64::from(way.queue_packets) + travelling_bits as u64 / PACKET_BITS
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use shortline_sched::units::{Rate, Span};

    use super::*;

    fn ms(milliseconds: u64) -> Span {
        Span::from_duration(Duration::from_millis(milliseconds))
    }

    #[test]
    fn a_group_gets_a_class_a_filter_and_a_netem() {
        let way = Way {
            jitter: ms(10),
            ..Way::of(ms(50), Loss::Uniform { probability: 0.005 })
        };
        let network = Network {
            first: Ipv4Addr::new(10, 92, 0, 0),
            prefix_bits: 24,
        };
        let lines: Vec<String> = commands("slw", Client::Destination, &[(network, &way)])
            .iter()
            .map(|words| words.join(" "))
            .collect();
        assert_eq!(
            lines,
            [
                "qdisc add dev slw root handle 1: htb default 0",
                "class add dev slw parent 1: classid 1:1 htb rate 10gbit quantum 1514",
                "filter add dev slw parent 1: protocol ip prio 1 u32 match ip dst 10.92.0.0/24 \
                 flowid 1:1",
                "qdisc add dev slw parent 1:1 handle 10: netem limit 100000 delay 50000us 10000us \
                 loss random 0.5000%",
            ]
        );
    }

    #[test]
    fn bursts_and_rates_are_said_as_netem_wants_them() {
        let way = Way {
            rate: Some(Rate::from_bps(1_000_000)),
            ..Way::of(ms(100), Loss::bursts(0.05, 10.0))
        };
        assert_eq!(
            parameters(&way),
            "limit 108 delay 100000us loss gemodel 0.5263% 10.0000% 100.0000% 0.0000% \
             rate 1000000bit"
        );
        assert_eq!(parameters(&Way::direct()), "limit 100000");
    }

    #[test]
    fn counts_are_found_by_handle() {
        let text = r#"[{"kind":"htb","handle":"1:","packets":9,"drops":1,"bytes":900},
            {"kind":"netem","handle":"10:","packets":7,"drops":2,"bytes":798}]"#;
        let counts_of_one = LaneCounts {
            offered: 9,
            lost: 2,
            dropped: 0,
            bytes: 700,
        };
        assert_eq!(counts(text, 1), Some(vec![counts_of_one]));
        assert_eq!(counts(text, 2), None);
    }
}
