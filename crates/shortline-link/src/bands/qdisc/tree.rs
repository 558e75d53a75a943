//! The qdiscs and classes of a device, as the kernel tells them: names, options as bytes, counters.

use std::io;

use netlink_packet_core::{DefaultNla, Emitable, Nla};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcMessage, TcOption, TcStats2, TcXstats};
use netlink_sys::protocols::NETLINK_ROUTE;
use shortline_base::netlink::{Channel, Want};

use super::bands::Traffic;
use super::options::TCA_OPTIONS;

/// The parent of what is at the root.
pub const ROOT: u32 = u32::MAX;
/// The part of a handle that names the qdisc.
pub const MAJOR: u32 = 0xffff_0000;

/// A connection to the kernel's traffic control.
pub fn channel() -> io::Result<Channel> {
    Channel::open(NETLINK_ROUTE)
}

/// A qdisc or class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its handle or class id; 0 for a qdisc that nobody configured.
    pub handle: u32,
    /// The class or qdisc it is below, or [`ROOT`].
    pub parent: u32,
    /// The kernel's name of its kind.
    pub kind: String,
    /// `TCA_OPTIONS` without its header.
    pub options: Vec<u8>,
    /// `TCA_XSTATS` as the qdisc defines them, if it does.
    pub own_counters: Vec<u8>,
    /// What went through it.
    pub traffic: Traffic,
}

/// What a device has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Its qdiscs.
    pub qdiscs: Vec<Node>,
    /// Their classes.
    pub classes: Vec<Node>,
    /// How many filters choose classes at the root.
    pub filters: usize,
}

/// Everything of a kind. What the library cannot read, options of a qdisc that it does not know, is
/// left out.
fn dump(channel: &mut Channel, question: RouteNetlinkMessage) -> io::Result<Vec<TcMessage>> {
    let mut told = Vec::new();
    channel.ask(question, Want::All, |message| {
        if let Ok(
            RouteNetlinkMessage::NewQueueDiscipline(message)
            | RouteNetlinkMessage::NewTrafficClass(message)
            | RouteNetlinkMessage::NewTrafficFilter(message),
        ) = message
        {
            told.push(message);
        }
        Ok(())
    })?;
    Ok(told)
}

impl Tree {
    /// Reads the tree of the interface with `index`.
    pub fn read(channel: &mut Channel, index: u32) -> io::Result<Self> {
        // An interface's index is a positive int to the kernel.
        let index = index as i32;
        let of_device = || TcMessage::with_index(index);
        let qdiscs = dump(
            channel,
            RouteNetlinkMessage::GetQueueDiscipline(of_device()),
        )?;
        let classes = dump(channel, RouteNetlinkMessage::GetTrafficClass(of_device()))?;
        let filters = dump(channel, RouteNetlinkMessage::GetTrafficFilter(of_device()))?;
        let nodes = |messages: Vec<TcMessage>| {
            let ours = messages
                .into_iter()
                .filter(|told| told.header.index == index);
            ours.map(Node::from).collect()
        };
        Ok(Self {
            qdiscs: nodes(qdiscs),
            classes: nodes(classes),
            filters: filters.len(),
        })
    }

    /// The qdisc at the root, unless the device has none.
    pub fn root(&self) -> Option<&Node> {
        self.qdiscs.iter().find(|qdisc| qdisc.parent == ROOT)
    }

    /// The qdisc that decides the order: the root's, or the one inside a `tbf` there.
    pub fn ordering(&self) -> Option<&Node> {
        let root = self.root()?;
        if root.kind != "tbf" {
            return Some(root);
        }
        let inside = |qdisc: &&Node| qdisc.parent != ROOT && qdisc.parent & MAJOR == root.handle;
        self.qdiscs.iter().find(inside).or(Some(root))
    }

    /// The classes of a qdisc.
    pub fn classes_of(&self, qdisc: &Node) -> impl Iterator<Item = &Node> {
        let major = qdisc.handle;
        let classes = self.classes.iter();
        classes.filter(move |class| class.handle & MAJOR == major)
    }
}

impl From<TcMessage> for Node {
    fn from(message: TcMessage) -> Self {
        let mut node = Self {
            handle: message.header.handle.into(),
            parent: message.header.parent.into(),
            ..Self::default()
        };
        for attribute in message.attributes {
            match attribute {
                TcAttribute::Kind(kind) => node.kind = kind,
                TcAttribute::Options(options) => node.options = option_bytes(&options),
                TcAttribute::Xstats(TcXstats::Other(bytes)) => node.own_counters = bytes,
                TcAttribute::Stats2(stats) => node.traffic = traffic(&stats),
                _ => {}
            }
        }
        node
    }
}

/// The library keeps options that it does not know as one attribute, header and all.
fn option_bytes(options: &[TcOption]) -> Vec<u8> {
    if let [TcOption::Other(whole)] = options
        && whole.kind() == TCA_OPTIONS
    {
        return value(whole);
    }
    let mut bytes = vec![0; options.buffer_len()];
    options.emit(&mut bytes);
    bytes
}

fn value(attribute: &DefaultNla) -> Vec<u8> {
    let mut bytes = vec![0; attribute.value_len()];
    attribute.emit_value(&mut bytes);
    bytes
}

fn traffic(stats: &[TcStats2]) -> Traffic {
    let mut traffic = Traffic::default();
    for stat in stats {
        match stat {
            TcStats2::Basic(basic) => {
                traffic.bytes = Some(basic.bytes);
                traffic.packets = Some(u64::from(basic.packets));
            }
            TcStats2::Queue(queue) => {
                traffic.drops = Some(u64::from(queue.drops));
                traffic.backlog_bytes = Some(u64::from(queue.backlog));
                traffic.backlog_packets = Some(u64::from(queue.qlen));
            }
            _ => {}
        }
    }
    traffic
}
