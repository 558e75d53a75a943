//! The options of qdiscs and classes as bytes, in the machine's own order: the structures of
//! linux/pkt_sched.h, as `tc` (iproute2 6.1) sends them.
//!
//! Departure: without `tc`'s tables of transmission times (`TCA_HTB_RTAB` and the like), which the
//! kernel has computed itself since 3.8 when the link layer is said to be Ethernet.

use netlink_packet_core::{DefaultNla, Emitable, NlasIterator};
use shortline_sched::units::Rate;

/// `TCA_OPTIONS` of linux/rtnetlink.h.
pub const TCA_OPTIONS: u16 = 2;
/// Priorities that a map gives bands to.
pub const PRIORITIES: usize = 16;
/// Bands of `fq`.
const BANDS_FEW: usize = 3;

const HTB_PARMS: u16 = 1;
const HTB_INIT: u16 = 2;
const HTB_RATE64: u16 = 6;
const HTB_CEIL64: u16 = 7;
const HTB_VERSION: u32 = 3;
/// Bits per second to the quantum, where no quantum is given: `tc`'s default.
const HTB_RATE_TO_QUANTUM: u32 = 10;
/// A full packet, so that classes of one priority take turns packet by packet.
const HTB_QUANTUM_BYTES: u32 = 1514;

const TBF_PARMS: u16 = 1;
const TBF_RATE64: u16 = 4;
const TBF_BURST: u16 = 6;
/// What a `tbf` itself may hold: the bands inside it have limits of their own.
const TBF_LIMIT_BYTES: u32 = 64 << 20;

/// `struct tc_ratespec`, and where it has the rate.
const RATE_SPEC_BYTES: usize = 12;
const RATE_AT: usize = 8;

const CAKE_BASE_RATE64: u16 = 2;

const FQ_PRIOMAP: u16 = 16;
const FQ_WEIGHTS: u16 = 17;
/// As steep as may be: from 256 MiB in turn, far below where 32 bits end, to the least that the
/// kernel takes (`FQ_MIN_WEIGHT`).
const FQ_WEIGHTS_STEEP: [i32; BANDS_FEW] = [1 << 28, 1 << 21, 16_384];

/// A tick of the kernel's packet scheduler in nanoseconds (`PSCHED_SHIFT` 6).
const TICK_NS: f64 = 64.0;
const RATE_CELL_LOG: u8 = 3;
const LINKLAYER_ETHERNET: u8 = 1;
/// How far a shaper may run ahead: one packet, or what 1.28 ms carry; less left 2 to 3 % of 100
/// Mbit/s unused.
const BURST_BYTES_MIN: u64 = 1600;

/// `struct tc_prio_qopt`: which band each priority of a socket means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityMap {
    /// How many bands there are.
    pub bands: usize,
    /// The band of each priority.
    pub band_of: [u8; PRIORITIES],
}

impl PriorityMap {
    /// Priority n means band n, and what is too large the last.
    pub fn identity(bands: usize) -> Self {
        let last = bands.saturating_sub(1);
        Self {
            bands,
            band_of: std::array::from_fn(|priority| priority.min(last) as u8),
        }
    }

    /// The map in `bytes`.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bands = usize::try_from(u32_at(bytes, 0)?).ok()?;
        let band_of = bytes.get(4..4 + PRIORITIES)?.try_into().ok()?;
        (2..=PRIORITIES)
            .contains(&bands)
            .then_some(Self { bands, band_of })
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = (self.bands as u32).to_ne_bytes().to_vec();
        bytes.extend(self.band_of);
        bytes
    }

    /// The smallest priority that means `band`.
    pub fn priority_of(&self, band: usize) -> Option<u32> {
        let place = self
            .band_of
            .iter()
            .position(|&at| usize::from(at) == band)?;
        Some(place as u32)
    }
}

/// Options of `prio`. `tc` ends them with an empty nested attribute.
pub fn prio(map: &PriorityMap) -> Vec<u8> {
    let mut bytes = map.bytes();
    bytes.extend(attributes(&[(TCA_OPTIONS, Vec::new())]));
    bytes
}

/// Options of `fq`: bands by priority, the first weighing as much more than the next as it can.
pub fn fq(map: &PriorityMap) -> Vec<u8> {
    let weights = FQ_WEIGHTS_STEEP
        .iter()
        .flat_map(|weight| weight.to_ne_bytes());
    attributes(&[(FQ_PRIOMAP, map.bytes()), (FQ_WEIGHTS, weights.collect())])
}

/// The bands of an `fq`: none before Linux 6.7.
pub fn fq_map(options: &[u8]) -> Option<PriorityMap> {
    PriorityMap::parse(&attribute(options, FQ_PRIOMAP)?)
}

/// Options of an `htb` qdisc whose unclassified packets go to class `default_minor`.
pub fn htb(default_minor: u32) -> Vec<u8> {
    let words = [HTB_VERSION, HTB_RATE_TO_QUANTUM, default_minor, 0, 0];
    attributes(&[(HTB_INIT, words_bytes(&words))])
}

/// What the kernel told of an `htb` qdisc, as it wants to be asked for the same: it tells the version
/// with the revision (3.17, in two halves of a word) and takes the version alone.
pub fn htb_as_asked(told: &[u8]) -> Vec<u8> {
    let mut options = told.to_vec();
    // It tells HTB_INIT first: four bytes of length and type, then the version.
    let is_first = options.get(2..4) == Some(&HTB_INIT.to_ne_bytes()[..]);
    if let (true, Some(version)) = (is_first, options.get_mut(4..8)) {
        version.copy_from_slice(&HTB_VERSION.to_ne_bytes());
    }
    options
}

/// The class that unclassified packets of an `htb` go to.
pub fn htb_default(options: &[u8]) -> Option<u32> {
    u32_at(&attribute(options, HTB_INIT)?, 8)
}

/// Options of an `htb` class that has `rate` to itself and may have `ceil`.
pub fn htb_class(rate: Rate, ceil: Rate, priority: u32) -> Vec<u8> {
    let mut parms = rate_spec(rate);
    parms.extend(rate_spec(ceil));
    let burst_bytes = burst_bytes(ceil);
    let words = [
        ticks(burst_bytes, rate),
        ticks(burst_bytes, ceil),
        HTB_QUANTUM_BYTES,
        0,
        priority,
    ];
    parms.extend(words_bytes(&words));
    let mut given = vec![(HTB_PARMS, parms)];
    given.extend(rate_64(HTB_RATE64, rate));
    given.extend(rate_64(HTB_CEIL64, ceil));
    attributes(&given)
}

/// Level and priority of an `htb` class; those of level 0 hold packets.
pub fn htb_class_level_and_priority(options: &[u8]) -> Option<(u32, u32)> {
    let parms = attribute(options, HTB_PARMS)?;
    Some((u32_at(&parms, 36)?, u32_at(&parms, 40)?))
}

/// Options of a `tbf` that lets `rate` through.
pub fn tbf(rate: Rate) -> Vec<u8> {
    let burst_bytes = burst_bytes(rate);
    let mut parms = rate_spec(rate);
    parms.extend([0; 12]);
    parms.extend(words_bytes(&[TBF_LIMIT_BYTES, ticks(burst_bytes, rate), 0]));
    let burst = u32::try_from(burst_bytes).unwrap_or(u32::MAX);
    let mut given = vec![(TBF_PARMS, parms), (TBF_BURST, words_bytes(&[burst]))];
    given.extend(rate_64(TBF_RATE64, rate));
    attributes(&given)
}

/// `struct tc_ratespec`, for Ethernet.
fn rate_spec(rate: Rate) -> Vec<u8> {
    let mut bytes = vec![RATE_CELL_LOG, LINKLAYER_ETHERNET, 0, 0, 0xff, 0xff, 0, 0];
    let bytes_per_s = u32::try_from(rate.bps() / 8).unwrap_or(u32::MAX);
    bytes.extend(bytes_per_s.to_ne_bytes());
    bytes
}

/// The rate of a `tbf`.
pub fn tbf_bytes_per_s(options: &[u8]) -> Option<u64> {
    let parms = attribute(options, TBF_PARMS)?;
    told_bytes_per_s(options, TBF_RATE64, u32_at(&parms, RATE_AT)?)
}

/// What an `htb` class may have at most.
pub fn htb_class_ceil_bytes_per_s(options: &[u8]) -> Option<u64> {
    let parms = attribute(options, HTB_PARMS)?;
    told_bytes_per_s(
        options,
        HTB_CEIL64,
        u32_at(&parms, RATE_SPEC_BYTES + RATE_AT)?,
    )
}

/// The bandwidth of a `cake`, unless it is unlimited.
pub fn cake_bytes_per_s(options: &[u8]) -> Option<u64> {
    let bytes = attribute(options, CAKE_BASE_RATE64)?;
    let bytes_per_s = u64::from_ne_bytes(bytes.try_into().ok()?);
    (bytes_per_s > 0).then_some(bytes_per_s)
}

/// A rate told in the older field, and in the attribute `kind_64` where it does not fit there.
fn told_bytes_per_s(options: &[u8], kind_64: u16, bytes_per_s: u32) -> Option<u64> {
    let Some(bytes) = attribute(options, kind_64) else {
        return Some(u64::from(bytes_per_s));
    };
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

/// The rate again, where it does not fit the older field.
fn rate_64(kind: u16, rate: Rate) -> Option<(u16, Vec<u8>)> {
    let bytes_per_s = rate.bps() / 8;
    (bytes_per_s > u64::from(u32::MAX)).then(|| (kind, bytes_per_s.to_ne_bytes().to_vec()))
}

fn burst_bytes(rate: Rate) -> u64 {
    BURST_BYTES_MIN.max(rate.bps() / 8 * 128 / 100_000)
}

/// The time that so many bytes take, in the packet scheduler's ticks.
fn ticks(bytes: u64, rate: Rate) -> u32 {
    (bytes as f64 * 8e9 / rate.bps() as f64 / TICK_NS) as u32
}

fn attributes(given: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let given = given
        .iter()
        .map(|(kind, value)| DefaultNla::new(*kind, value.clone()));
    let given: Vec<DefaultNla> = given.collect();
    let mut bytes = vec![0; given.as_slice().buffer_len()];
    given.as_slice().emit(&mut bytes);
    bytes
}

fn attribute(options: &[u8], kind: u16) -> Option<Vec<u8>> {
    let mut given = NlasIterator::new(options).map_while(Result::ok);
    let found = given.find(|attribute| attribute.kind() == kind)?;
    Some(found.value().to_vec())
}

fn words_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let word = bytes.get(offset..offset + 4)?;
    Some(u32::from_ne_bytes(word.try_into().ok()?))
}

/// A number of `own_counters`, as `fq` lays them out (`struct tc_fq_qd_stats`): drops and packets
/// waiting of each band.
pub fn fq_band_counters(own_counters: &[u8], band: usize) -> Option<(u64, u64)> {
    const DROPS_AT: usize = 112;
    const WAITING_AT: usize = 136;
    let drops_at = DROPS_AT + 8 * band;
    let drops = own_counters.get(drops_at..drops_at + 8)?;
    let waiting = u32_at(own_counters, WAITING_AT + 4 * band)?;
    Some((
        u64::from_ne_bytes(drops.try_into().ok()?),
        u64::from(waiting),
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Bytes as `strace -e write=all tc ...` shows them, on a little-endian machine.
    fn hex(text: &str) -> Vec<u8> {
        let pairs = text.split_whitespace();
        pairs
            .map(|pair| u8::from_str_radix(pair, 16).unwrap())
            .collect()
    }

    #[test]
    fn prio_is_what_tc_sends() {
        // tc qdisc add dev d0 root handle 1: prio bands 16 priomap 0 1 2 ... 15
        let sent = hex("10 00 00 00 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 04 00 02 00");
        assert_eq!(prio(&PriorityMap::identity(16)), sent);
        assert_eq!(PriorityMap::parse(&sent), Some(PriorityMap::identity(16)));
    }

    #[test]
    fn htb_is_what_tc_sends() {
        // tc qdisc add dev d0 root handle 1: htb default 11
        let sent = hex("18 00 02 00 03 00 00 00 0a 00 00 00 11 00 00 00 00 00 00 00 00 00 00 00");
        assert_eq!(htb(0x11), sent);
        assert_eq!(htb_default(&sent), Some(0x11));
    }

    #[test]
    fn an_htb_class_is_what_tc_sends_but_for_its_tables() {
        // tc class add dev d0 parent 1:1 classid 1:11 htb rate 8kbit ceil 10mbit burst 1600b
        //   cburst 1600b quantum 1514 prio 0
        let sent = hex(
            "30 00 01 00 03 01 00 00 ff ff 00 00 e8 03 00 00 03 01 00 00 ff ff 00 00 \
             d0 12 13 00 40 78 7d 01 20 4e 00 00 ea 05 00 00 00 00 00 00 00 00 00 00",
        );
        let class = htb_class(Rate::from_bps(8000), Rate::from_bps(10_000_000), 0);
        assert_eq!(class, sent);
        let class = htb_class(Rate::from_bps(8000), Rate::from_bps(10_000_000), 5);
        assert_eq!(htb_class_level_and_priority(&class), Some((0, 5)));
    }

    #[test]
    fn a_tbf_is_what_tc_sends_but_for_its_table_and_limit() {
        // tc qdisc replace dev d0 root handle 1: tbf rate 10mbit burst 1600b limit 1mb
        let sent = hex(
            "28 00 01 00 03 01 00 00 ff ff 00 00 d0 12 13 00 00 00 00 00 00 00 00 00 \
             00 00 00 00 00 00 10 00 20 4e 00 00 00 00 00 00 08 00 06 00 40 06 00 00",
        );
        let mut ours = tbf(Rate::from_bps(10_000_000));
        ours[28..32].copy_from_slice(&(1u32 << 20).to_ne_bytes());
        assert_eq!(ours, sent);
    }

    #[test]
    fn a_rate_beyond_the_older_field_is_sent_again() {
        let options = htb_class(Rate::from_bps(8000), Rate::from_bps(40_000_000_000), 1);
        let ceil = attribute(&options, HTB_CEIL64).unwrap();
        assert_eq!(ceil, 5_000_000_000u64.to_ne_bytes());
        assert_eq!(attribute(&options, HTB_RATE64), None);
    }

    #[test]
    fn fq_has_the_map_and_weights_of_linux_6_7() {
        let options = fq(&PriorityMap::identity(3));
        assert_eq!(fq_map(&options), Some(PriorityMap::identity(3)));
        assert_eq!(attribute(&options, FQ_PRIOMAP).unwrap().len(), 20);
        let weights = attribute(&options, FQ_WEIGHTS).unwrap();
        assert_eq!(weights.len(), 12);
        let least = i32::from_ne_bytes(weights[8..].try_into().unwrap());
        assert!(least >= 16_384, "FQ_MIN_WEIGHT");
        assert_eq!(fq_map(&[]), None);
    }

    #[test]
    fn a_priority_is_found_for_each_band_of_pfifo_fast() {
        // What the kernel tells of it (`tc qdisc show`).
        let map = PriorityMap::parse(&hex(
            "03 00 00 00 01 02 02 02 01 02 00 00 01 01 01 01 01 01 01 01",
        ))
        .unwrap();
        let priorities = [0, 1, 2].map(|band| map.priority_of(band));
        assert_eq!(priorities, [Some(6), Some(0), Some(1)]);
        assert_eq!(map.priority_of(3), None);
    }

    #[test]
    fn what_is_cut_short_is_not_understood() {
        assert_eq!(PriorityMap::parse(&[3, 0, 0, 0, 1]), None);
        assert_eq!(htb_default(&[24, 0, 2, 0, 3]), None);
        assert_eq!(
            htb_class_level_and_priority(&[8, 0, 1, 0, 1, 2, 3, 4]),
            None
        );
        assert_eq!(fq_band_counters(&[0; 120], 1), None);
    }
}
