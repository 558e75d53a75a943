//! The rate that the kernel states for a device: where the uplink's queue forms on this very machine,
//! nothing has to be found out.
//!
//! | root qdisc | its rate |
//! |---|---|
//! | `tbf` | its rate |
//! | `cake` | its bandwidth, unless unlimited |
//! | `htb` | the least `ceil` from the class of unclassified packets up to the root |
//! | others | none: what the interface's line does, where it tells a speed |
//!
//! Structures: linux/pkt_sched.h; the speed: `/sys/class/net/DEVICE/speed` of a device that is
//! hardware. A virtual one tells a number that means nothing (10 Gbit/s for veth).

use std::fs;

use shortline_sched::units::Rate;

use super::bands::read_tree;
use super::options;
use super::tree::{Node, Tree};

/// What limits a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shaper {
    /// Its rate, IP bytes and 14 per packet.
    pub rate: Rate,
    /// The qdisc's kind, or "line".
    pub kind: String,
}

/// What limits `device`, as far as the kernel says; `None` also where the device cannot be read.
pub fn shaper_of(device: &str) -> Option<Shaper> {
    let shaped = read_tree(device).ok().and_then(|tree| shaper(&tree));
    shaped.or_else(|| line(device))
}

fn shaper(tree: &Tree) -> Option<Shaper> {
    let root = tree.root()?;
    let bytes_per_s = match root.kind.as_str() {
        "tbf" => options::tbf_bytes_per_s(&root.options),
        "cake" => options::cake_bytes_per_s(&root.options),
        "htb" => htb_bytes_per_s(tree, root),
        _ => None,
    }?;
    Some(Shaper {
        rate: Rate::from_bps(bytes_per_s.checked_mul(8)?),
        kind: root.kind.clone(),
    })
}

/// Unclassified packets of an `htb` without a class for them are not limited at all.
fn htb_bytes_per_s(tree: &Tree, root: &Node) -> Option<u64> {
    let mut id = root.handle | options::htb_default(&root.options)?;
    let mut least = None::<u64>;
    // No class is above itself, so that there are at most as many steps as classes.
    for _ in 0..tree.classes.len() {
        let Some(class) = tree.classes.iter().find(|class| class.handle == id) else {
            break;
        };
        let ceil = options::htb_class_ceil_bytes_per_s(&class.options)?;
        least = Some(least.map_or(ceil, |least| least.min(ceil)));
        id = class.parent;
    }
    least
}

fn line(device: &str) -> Option<Shaper> {
    let folder = format!("/sys/class/net/{device}");
    fs::metadata(format!("{folder}/device")).ok()?;
    let text = fs::read_to_string(format!("{folder}/speed")).ok()?;
    let mbit_per_s: u64 = text.trim().parse().ok().filter(|&speed| speed > 0)?;
    Some(Shaper {
        rate: Rate::from_bps(mbit_per_s.checked_mul(1_000_000)?),
        kind: "line".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::ROOT;
    use super::*;

    fn node(kind: &str, handle: u32, parent: u32, options: Vec<u8>) -> Node {
        Node {
            kind: kind.to_owned(),
            handle,
            parent,
            options,
            ..Node::default()
        }
    }

    fn mbit(rate: u64) -> Rate {
        Rate::from_bps(rate * 1_000_000)
    }

    fn tree(qdisc: Node, classes: Vec<Node>) -> Tree {
        Tree {
            qdiscs: vec![qdisc],
            classes,
            filters: 0,
        }
    }

    #[test]
    fn a_tbf_states_its_rate_however_large() {
        for rate in [mbit(10), mbit(100_000)] {
            let root = node("tbf", 0x10000, ROOT, options::tbf(rate));
            let found = shaper(&tree(root, Vec::new()));
            assert_eq!(found.map(|shaper| shaper.rate), Some(rate));
        }
    }

    #[test]
    fn an_htb_is_as_fast_as_its_narrowest_class_on_the_way_up() {
        let root = node("htb", 0x10000, ROOT, options::htb(0x11));
        let classes = vec![
            node(
                "htb",
                0x10001,
                ROOT,
                options::htb_class(mbit(7), mbit(7), 0),
            ),
            node(
                "htb",
                0x10011,
                0x10001,
                options::htb_class(mbit(1), mbit(9), 0),
            ),
            node(
                "htb",
                0x10012,
                0x10001,
                options::htb_class(mbit(1), mbit(2), 0),
            ),
        ];
        let found = shaper(&tree(root, classes)).map(|shaper| (shaper.rate, shaper.kind));
        assert_eq!(found, Some((mbit(7), "htb".to_owned())));
    }

    #[test]
    fn what_lets_packets_through_unlimited_states_nothing() {
        let unclassified = node("htb", 0x10000, ROOT, options::htb(0));
        let classes = vec![node(
            "htb",
            0x10001,
            ROOT,
            options::htb_class(mbit(7), mbit(7), 0),
        )];
        assert_eq!(shaper(&tree(unclassified, classes)), None);
        let fifo = node("pfifo_fast", 0, ROOT, Vec::new());
        assert_eq!(shaper(&tree(fifo, Vec::new())), None);
        let cut_short = node("tbf", 0x10000, ROOT, vec![40, 0, 1]);
        assert_eq!(shaper(&tree(cut_short, Vec::new())), None);
    }

    #[test]
    fn a_cake_states_its_bandwidth_unless_it_has_none() {
        // tc -s qdisc add dev d0 root cake bandwidth 10mbit: TCA_CAKE_BASE_RATE64
        let cake = |bytes_per_s: u64| {
            let mut options = vec![12, 0, 2, 0];
            options.extend(bytes_per_s.to_ne_bytes());
            shaper(&tree(node("cake", 0x10000, ROOT, options), Vec::new()))
        };
        assert_eq!(cake(1_250_000).map(|shaper| shaper.rate), Some(mbit(10)));
        assert_eq!(cake(0), None);
    }
}
