//! The bands of a device: what a socket's `SO_PRIORITY` must be so that its packets wait in each.
//!
//! | qdisc | a band's priority |
//! |---|---|
//! | `prio`, `pfifo_fast`, `fq` | the smallest number that its priority map gives the band |
//! | `prio` with a map that leaves a band out | the class id, major number above minor |
//! | `htb` | the id of the leaf class; the smallest `prio` is the first band |
//!
//! Numbers above 6 need `CAP_NET_ADMIN` (socket(7)). The qdisc may be inside a `tbf` at the root,
//! which gives it a rate. A new connection's socket has priority 0 whatever its listener has, and
//! its SYN-ACK goes by the listener's.

use std::io;

use nix::ifaddrs::getifaddrs;

use super::options::{self, PriorityMap};
use super::tree::{Node, Tree};
use super::{Kind, QdiscError};

/// What went through a band, or a whole qdisc; `None` where the kernel does not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes sent, 14 a packet of Ethernet included.
    pub bytes: Option<u64>,
    /// Packets sent.
    pub packets: Option<u64>,
    /// Packets dropped because the band was full.
    pub drops: Option<u64>,
    /// Bytes that wait.
    pub backlog_bytes: Option<u64>,
    /// Packets that wait.
    pub backlog_packets: Option<u64>,
}

/// A band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Band {
    /// The class, or the band's number where there are no classes.
    pub name: String,
    /// What `SO_PRIORITY` must be.
    pub priority: u32,
    /// What went through it.
    pub traffic: Traffic,
}

/// The bands of a device, the first served first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceBands {
    /// The interface.
    pub device: String,
    /// The qdisc that has them.
    pub kind: Kind,
    /// The bands.
    pub bands: Vec<Band>,
    /// The band that sockets have whose priority is 0.
    pub unset: Option<usize>,
    /// What went through the device.
    pub traffic: Traffic,
}

impl DeviceBands {
    /// Reads the bands of a device: needs no privilege.
    ///
    /// # Errors
    /// [`QdiscError::NoDevice`], [`QdiscError::NoBands`], or the kernel's own.
    pub fn read(device: &str) -> Result<Self, QdiscError> {
        let tree = read_tree(device)?;
        Self::of(device, &tree).ok_or_else(|| QdiscError::NoBands {
            device: device.to_owned(),
            kind: tree
                .ordering()
                .map_or("none", |qdisc| &qdisc.kind)
                .to_owned(),
        })
    }

    /// The bands of the one device that has some.
    ///
    /// # Errors
    /// [`QdiscError::NoDeviceHasBands`], [`QdiscError::Ambiguous`], or the kernel's own.
    pub fn find() -> Result<Self, QdiscError> {
        let mut found = Vec::new();
        for device in devices().map_err(|source| QdiscError::kernel("interfaces", source))? {
            match Self::read(&device) {
                Ok(bands) => found.push(bands),
                Err(QdiscError::NoBands { .. } | QdiscError::NoDevice(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let names: Vec<&str> = found.iter().map(|bands| bands.device.as_str()).collect();
        match names.len() {
            0 => Err(QdiscError::NoDeviceHasBands),
            1 => Ok(found.remove(0)),
            _ => Err(QdiscError::Ambiguous(names.join(", "))),
        }
    }

    /// The bands of a tree, if it has any.
    pub(crate) fn of(device: &str, tree: &Tree) -> Option<Self> {
        let qdisc = tree.ordering()?;
        let (kind, bands, unset) = match qdisc.kind.as_str() {
            "prio" => {
                let map = PriorityMap::parse(&qdisc.options)?;
                let bands = prio_bands(tree, qdisc, &map);
                (Kind::Prio, bands, Some(usize::from(map.band_of[0])))
            }
            "pfifo_fast" => {
                let map = PriorityMap::parse(&qdisc.options)?;
                let bands = mapped_bands(&map, |_| Traffic::default())?;
                (Kind::PfifoFast, bands, Some(usize::from(map.band_of[0])))
            }
            "fq" => {
                let map = options::fq_map(&qdisc.options)?;
                let bands = mapped_bands(&map, |band| fq_traffic(qdisc, band))?;
                (Kind::Fq, bands, Some(usize::from(map.band_of[0])))
            }
            "htb" => {
                let bands = htb_bands(tree, qdisc)?;
                let default = options::htb_default(&qdisc.options).unwrap_or(0) | qdisc.handle;
                let unset = bands.iter().position(|band| band.priority == default);
                (Kind::Htb, bands, unset)
            }
            _ => return None,
        };
        Some(Self {
            device: device.to_owned(),
            kind,
            bands,
            unset,
            traffic: tree.root().map_or(qdisc.traffic, |root| root.traffic),
        })
    }
}

/// The tree of the interface called `device`.
pub(crate) fn read_tree(device: &str) -> Result<Tree, QdiscError> {
    let index = index_of(device)?;
    let read = || Tree::read(&mut super::tree::channel()?, index);
    read().map_err(|source| QdiscError::kernel(format!("device '{device}'"), source))
}

pub(crate) fn index_of(device: &str) -> Result<u32, QdiscError> {
    nix::net::if_::if_nametoindex(device).map_err(|_| QdiscError::NoDevice(device.to_owned()))
}

fn devices() -> io::Result<Vec<String>> {
    let mut names: Vec<String> = getifaddrs()?
        .map(|interface| interface.interface_name)
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

fn prio_bands(tree: &Tree, qdisc: &Node, map: &PriorityMap) -> Vec<Band> {
    let traffic = |band: usize| {
        let id = class_id(qdisc, band);
        let class = tree.classes_of(qdisc).find(|class| class.handle == id);
        class.map_or_else(Traffic::default, |class| class.traffic)
    };
    mapped_bands(map, traffic).unwrap_or_else(|| {
        let by_class = (0..map.bands).map(|band| Band {
            name: name_of(class_id(qdisc, band)),
            priority: class_id(qdisc, band),
            traffic: traffic(band),
        });
        by_class.collect()
    })
}

/// The class of a `prio` band: they count from 1.
fn class_id(qdisc: &Node, band: usize) -> u32 {
    qdisc.handle | (band as u32 + 1)
}

/// The bands of a priority map, if it has a priority for each.
fn mapped_bands(map: &PriorityMap, traffic: impl Fn(usize) -> Traffic) -> Option<Vec<Band>> {
    let bands = (0..map.bands).map(|band| {
        Some(Band {
            name: band.to_string(),
            priority: map.priority_of(band)?,
            traffic: traffic(band),
        })
    });
    bands.collect()
}

fn fq_traffic(qdisc: &Node, band: usize) -> Traffic {
    let counted = options::fq_band_counters(&qdisc.own_counters, band);
    Traffic {
        drops: counted.map(|(drops, _)| drops),
        backlog_packets: counted.map(|(_, waiting)| waiting),
        ..Traffic::default()
    }
}

/// The leaf classes by their priority; of several that have the same, the first.
fn htb_bands(tree: &Tree, qdisc: &Node) -> Option<Vec<Band>> {
    let classes = tree.classes_of(qdisc).filter_map(|class| {
        let (level, priority) = options::htb_class_level_and_priority(&class.options)?;
        (level == 0).then_some((priority, class.handle, class))
    });
    let mut leaves: Vec<_> = classes.collect();
    leaves.sort_by_key(|&(priority, handle, _)| (priority, handle));
    leaves.dedup_by_key(|&mut (priority, _, _)| priority);
    let bands = leaves.into_iter().map(|(_, handle, class)| Band {
        name: name_of(handle),
        priority: handle,
        traffic: class.traffic,
    });
    let bands: Vec<Band> = bands.collect();
    (bands.len() >= 2).then_some(bands)
}

/// A class id as `tc` writes it, in hexadecimal.
fn name_of(id: u32) -> String {
    format!("{:x}:{:x}", id >> 16, id & 0xffff)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use shortline_sched::units::Rate;

    use super::super::tree::ROOT;
    use super::*;

    fn root(kind: &str, options: Vec<u8>) -> Tree {
        let qdisc = Node {
            handle: 0x1_0000,
            parent: ROOT,
            kind: kind.to_owned(),
            options,
            ..Node::default()
        };
        Tree {
            qdiscs: vec![qdisc],
            ..Tree::default()
        }
    }

    fn priorities(tree: &Tree) -> Vec<u32> {
        let bands = DeviceBands::of("d0", tree).unwrap().bands;
        bands.iter().map(|band| band.priority).collect()
    }

    #[test]
    fn sixteen_bands_of_prio_are_sixteen_priorities() {
        let tree = root("prio", options::prio(&PriorityMap::identity(16)));
        assert_eq!(priorities(&tree), (0..16).collect::<Vec<u32>>());
        assert_eq!(DeviceBands::of("d0", &tree).unwrap().unset, Some(0));
    }

    #[test]
    fn a_map_that_leaves_a_band_out_is_passed_by_with_class_ids() {
        let map = PriorityMap {
            bands: 4,
            ..PriorityMap::identity(3)
        };
        let tree = root("prio", options::prio(&map));
        assert_eq!(priorities(&tree), [0x1_0001, 0x1_0002, 0x1_0003, 0x1_0004]);
    }

    #[test]
    fn classes_of_htb_are_bands_by_their_priority() {
        let mut tree = root("htb", options::htb(0x13));
        let rate = Rate::from_bps(8000);
        for (minor, priority) in [(0x11, 7), (0x12, 2), (0x13, 0), (0x14, 2)] {
            tree.classes.push(Node {
                handle: 0x1_0000 | minor,
                options: options::htb_class(rate, rate, priority),
                ..Node::default()
            });
        }
        assert_eq!(priorities(&tree), [0x1_0013, 0x1_0012, 0x1_0011]);
        let bands = DeviceBands::of("d0", &tree).unwrap();
        assert_eq!(bands.unset, Some(0));
        assert_eq!(bands.bands[1].name, "1:12");
        tree.classes.truncate(1);
        assert_eq!(DeviceBands::of("d0", &tree), None, "one class is no order");
    }

    #[test]
    fn bands_are_found_inside_a_tbf() {
        let mut tree = root("tbf", options::tbf(Rate::from_bps(1_000_000)));
        assert_eq!(DeviceBands::of("d0", &tree), None);
        tree.qdiscs.push(Node {
            handle: 0x2_0000,
            parent: 0x1_0001,
            kind: "fq".to_owned(),
            options: options::fq(&PriorityMap::identity(3)),
            ..Node::default()
        });
        assert_eq!(priorities(&tree), [0, 1, 2]);
    }

    #[test]
    fn queues_without_bands_are_told() {
        for kind in ["mq", "fq_codel", "pfifo", "fq"] {
            assert_eq!(DeviceBands::of("d0", &root(kind, Vec::new())), None);
        }
        let error = DeviceBands::read("no-such-dev").unwrap_err().to_string();
        assert!(error.contains("no-such-dev"), "{error}");
        let error = DeviceBands::read("lo").unwrap_err().to_string();
        assert!(
            error.contains("shortline uplink install --dev lo"),
            "{error}"
        );
    }
}
