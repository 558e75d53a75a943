//! Puts a qdisc with bands at the root of a device, and takes it away again.
//!
//! - `prio`, `pfifo_fast` and `fq` have no rate of their own: with one they sit inside a `tbf`.
//! - `htb` is one class at the link's rate and below it one a band, with a rate of 8 kbit/s, the
//!   link's as its ceiling, and the band as its `prio`: classes that borrow are served strictly in
//!   that order. The default class is the first band's, so that what nobody marked (SYN-ACKs)
//!   waits for nobody. Each band keeps those 8 kbit/s, whatever the bands above it do.
//!
//! Everything is made or nothing: what fails half-way is removed. A qdisc that someone configured
//! stays unless told otherwise, and what was there is remembered ([`super::remembered`]) and put
//! back at the end. A default of the kernel's own is put back by the kernel.

use std::io;

use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcMessage};
use serde::{Deserialize, Serialize};
use shortline_base::netlink::{Channel, Want};
use shortline_sched::units::Rate;

use super::bands::{DeviceBands, index_of, read_tree};
use super::options::{self, PriorityMap, TCA_OPTIONS};
use super::remembered::{Before, Remembered};
use super::tree::{ROOT, Tree};
use super::{Kind, QdiscError};

/// The root's handle, `1:`.
const ROOT_HANDLE: u32 = 0x1_0000;
/// What is inside a `tbf`, `2:`.
const INNER_HANDLE: u32 = 0x2_0000;
/// The class of an `htb` that has the rate, `1:1`.
const PARENT_CLASS: u32 = 0x1_0001;
/// The class of the first band, `1:11`.
const FIRST_CLASS: u32 = 0x1_0011;
/// What a class has to itself: the least that is worth the name.
const CLASS_RATE_BPS: u64 = 8000;

/// What to install.
#[derive(Clone, Debug, PartialEq)]
pub struct Installation {
    /// The interface.
    pub device: String,
    /// Which qdisc; `None`: the best that the kernel has.
    pub kind: Option<Kind>,
    /// The link's rate; `None` where the interface itself is the bottleneck.
    pub rate: Option<Rate>,
    /// How many bands; `None`: as many as the qdisc can have.
    pub bands: Option<usize>,
    /// Take the place of a qdisc that someone configured.
    pub replace: bool,
}

/// What was installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The bands.
    pub bands: DeviceBands,
    /// The qdisc that was there before.
    pub before: String,
}

/// A qdisc or class to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub class: bool,
    pub handle: u32,
    pub parent: u32,
    pub kind: String,
    pub options: Vec<u8>,
}

/// Installs bands.
///
/// # Errors
/// [`QdiscError`]: what stands in the way, and what to do about it.
pub fn install(asked: &Installation) -> Result<Installed, QdiscError> {
    let kinds: Vec<Kind> = match asked.kind {
        Some(kind) => vec![kind],
        None => Kind::ALL.to_vec(),
    };
    if let (Some(kind), Some(bands)) = (asked.kind, asked.bands) {
        check_bands(kind, bands)?;
    }
    let index = index_of(&asked.device)?;
    let tree = read_tree(&asked.device)?;
    let before = may_replace(asked, index, &tree)?;
    let mut channel = open(&asked.device)?;
    let mut without_rate = false;
    for kind in kinds {
        let (least, most) = kind.bands_range();
        let bands = asked.bands.unwrap_or(most);
        if kind == Kind::Htb && asked.rate.is_none() {
            without_rate = true;
        } else if (least..=most).contains(&bands) {
            let steps = plan(kind, asked.rate, bands);
            if let Some(bands) = replace(&mut channel, asked, index, &before, &steps)? {
                return Ok(Installed {
                    bands,
                    before: before.kind,
                });
            }
        }
    }
    Err(nothing_fits(asked, without_rate))
}

/// Puts what the steps make in the place of `before`, or leaves that there. `None` if the kernel has
/// no such qdisc.
fn replace(
    channel: &mut Channel,
    asked: &Installation,
    index: u32,
    before: &Before,
    steps: &[Step],
) -> Result<Option<DeviceBands>, QdiscError> {
    // Written first: a crash between the two leaves a note too many, not one too few.
    let remembered = Remembered::write(&asked.device, index, before)?;
    // The kernel would change a root of the same kind and handle, and keep its classes.
    let made = clear(channel, &asked.device, index)
        .and_then(|()| make_and_read(channel, asked, index, steps));
    if matches!(made, Ok(Some(_))) {
        return made;
    }
    let restored = restore(channel, &asked.device, index, before);
    remembered.forget();
    made?;
    restored.map(|()| None)
}

/// The bands that the steps make; `None` if the kernel has no such qdisc, or only without bands.
fn make_and_read(
    channel: &mut Channel,
    asked: &Installation,
    index: u32,
    steps: &[Step],
) -> Result<Option<DeviceBands>, QdiscError> {
    match make(channel, index, steps) {
        Ok(()) => match DeviceBands::read(&asked.device) {
            Ok(bands) => Ok(Some(bands)),
            Err(QdiscError::NoBands { .. }) => Ok(None),
            Err(error) => Err(error),
        },
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => {
            let kind = steps.last().map_or("", |step| &step.kind);
            let doing = format!("{kind} on device '{}'", asked.device);
            Err(QdiscError::kernel(doing, error))
        }
    }
}

/// Takes away what [`install`] made, and puts back what was there. Returns its kind.
///
/// # Errors
/// [`QdiscError`]: nothing of ours is there, or not any more, or the kernel's own.
pub fn remove(device: &str) -> Result<String, QdiscError> {
    let index = index_of(device)?;
    let remembered = Remembered::read(device, index)?
        .ok_or_else(|| QdiscError::NotInstalled(device.to_owned()))?;
    let tree = read_tree(device)?;
    if !is_ours(&tree) {
        let kind = tree.root().map_or("noqueue", |root| &root.kind).to_owned();
        remembered.forget();
        return Err(QdiscError::Foreign {
            device: device.to_owned(),
            kind,
        });
    }
    let mut channel = open(device)?;
    restore(&mut channel, device, index, remembered.before())?;
    let kind = remembered.before().kind.clone();
    remembered.forget();
    Ok(kind)
}

fn open(device: &str) -> Result<Channel, QdiscError> {
    super::tree::channel()
        .map_err(|source| QdiscError::kernel(format!("device '{device}'"), source))
}

fn check_bands(kind: Kind, asked: usize) -> Result<(), QdiscError> {
    let (least, most) = kind.bands_range();
    if (least..=most).contains(&asked) {
        return Ok(());
    }
    Err(QdiscError::BandsOutOfRange {
        kind,
        least,
        most,
        asked,
    })
}

fn nothing_fits(asked: &Installation, without_rate: bool) -> QdiscError {
    match asked.kind {
        Some(Kind::Htb) if without_rate => QdiscError::NoRate,
        Some(kind) => QdiscError::NoKind(kind.name().to_owned()),
        None if without_rate && asked.bands != Some(3) => QdiscError::NoRate,
        None => QdiscError::NoKind("prio".to_owned()),
    }
}

/// What is there now, if it may be replaced.
fn may_replace(asked: &Installation, index: u32, tree: &Tree) -> Result<Before, QdiscError> {
    if Remembered::read(&asked.device, index)?.is_some() && is_ours(tree) {
        return Err(QdiscError::InstalledBefore(asked.device.clone()));
    }
    let before = Before::of(tree);
    if before.is_default() {
        return Ok(before);
    }
    if !asked.replace {
        return Err(QdiscError::Configured {
            device: asked.device.clone(),
            kind: before.kind,
        });
    }
    if !before.is_restorable(tree) {
        return Err(QdiscError::NotRestorable(asked.device.clone()));
    }
    Ok(before)
}

/// Whether the root looks like something that [`plan`] makes.
fn is_ours(tree: &Tree) -> bool {
    tree.root().is_some_and(|root| {
        let inside = tree.ordering().map_or("", |qdisc| &qdisc.kind);
        let known = |kind: &Kind| kind.name() == inside;
        root.handle == ROOT_HANDLE && Kind::ALL.iter().any(known)
    })
}

/// The steps that make `bands` bands of a kind.
pub(crate) fn plan(kind: Kind, rate: Option<Rate>, bands: usize) -> Vec<Step> {
    if let (Kind::Htb, Some(rate)) = (kind, rate) {
        return htb_plan(rate, bands);
    }
    let qdisc = |handle, parent, kind: &str, options| Step {
        class: false,
        handle,
        parent,
        kind: kind.to_owned(),
        options,
    };
    let options = match kind {
        Kind::Prio => options::prio(&PriorityMap::identity(bands)),
        Kind::Fq => options::fq(&PriorityMap::identity(bands)),
        Kind::PfifoFast | Kind::Htb => Vec::new(),
    };
    match rate {
        None => vec![qdisc(ROOT_HANDLE, ROOT, kind.name(), options)],
        Some(rate) => vec![
            qdisc(ROOT_HANDLE, ROOT, "tbf", options::tbf(rate)),
            qdisc(INNER_HANDLE, ROOT_HANDLE | 1, kind.name(), options),
        ],
    }
}

fn htb_plan(rate: Rate, bands: usize) -> Vec<Step> {
    let step = |class, handle, parent, options| Step {
        class,
        handle,
        parent,
        kind: Kind::Htb.name().to_owned(),
        options,
    };
    let mut steps = vec![
        step(false, ROOT_HANDLE, ROOT, options::htb(FIRST_CLASS & 0xffff)),
        step(
            true,
            PARENT_CLASS,
            ROOT_HANDLE,
            options::htb_class(rate, rate, 0),
        ),
    ];
    let own_rate = Rate::from_bps(CLASS_RATE_BPS.min(rate.bps()));
    steps.extend((0..bands as u32).map(|band| {
        let options = options::htb_class(own_rate, rate, band);
        step(true, FIRST_CLASS + band, PARENT_CLASS, options)
    }));
    steps
}

fn make(channel: &mut Channel, index: u32, steps: &[Step]) -> io::Result<()> {
    for step in steps {
        channel.ask(
            step.message(index),
            Want::Change(NLM_F_CREATE | NLM_F_EXCL),
            |_| Ok(()),
        )?;
    }
    Ok(())
}

/// Puts `before` at the root.
fn restore(
    channel: &mut Channel,
    device: &str,
    index: u32,
    before: &Before,
) -> Result<(), QdiscError> {
    clear(channel, device, index)?;
    make(channel, index, before.steps()).map_err(|error| {
        let doing = format!("putting {} back on device '{device}'", before.kind);
        QdiscError::kernel(doing, error)
    })
}

/// Leaves the root to the kernel's default.
fn clear(channel: &mut Channel, device: &str, index: u32) -> Result<(), QdiscError> {
    let mut root = TcMessage::with_index(index as i32);
    root.header.parent = ROOT.into();
    let message = RouteNetlinkMessage::DelQueueDiscipline(root);
    match channel.ask(message, Want::Change(0), |_| Ok(())) {
        Ok(()) => Ok(()),
        // A default cannot be removed, and need not be.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINVAL)) => Ok(()),
        Err(error) => Err(QdiscError::kernel(
            format!("removing the qdisc of device '{device}'"),
            error,
        )),
    }
}

impl Step {
    fn message(&self, index: u32) -> RouteNetlinkMessage {
        let mut message = TcMessage::with_index(index as i32);
        message.header.handle = self.handle.into();
        message.header.parent = self.parent.into();
        message
            .attributes
            .push(TcAttribute::Kind(self.kind.clone()));
        if !self.options.is_empty() {
            let options = DefaultNla::new(TCA_OPTIONS, self.options.clone());
            message.attributes.push(TcAttribute::Other(options));
        }
        if self.class {
            RouteNetlinkMessage::NewTrafficClass(message)
        } else {
            RouteNetlinkMessage::NewQueueDiscipline(message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::Node;
    use super::*;

    const RATE: Rate = Rate::from_bps(10_000_000);

    /// The tree that steps make, as the kernel tells it.
    fn tree(steps: &[Step]) -> Tree {
        let mut tree = Tree::default();
        for step in steps {
            let nodes = if step.class {
                &mut tree.classes
            } else {
                &mut tree.qdiscs
            };
            nodes.push(Node {
                handle: step.handle,
                parent: step.parent,
                kind: step.kind.clone(),
                options: step.options.clone(),
                ..Node::default()
            });
        }
        // Only it knows that a class with others below holds no packets.
        tree.classes.retain(|class| class.handle != PARENT_CLASS);
        tree
    }

    #[test]
    fn what_is_planned_is_read_back_as_bands() {
        for (kind, rate, bands, first) in [
            (Kind::Prio, None, 16, 0),
            (Kind::Prio, Some(RATE), 6, 0),
            (Kind::Htb, Some(RATE), 8, 0x1_0011),
            (Kind::Htb, Some(RATE), 2, 0x1_0011),
            (Kind::Fq, Some(RATE), 3, 0),
        ] {
            let tree = tree(&plan(kind, rate, bands));
            let read = DeviceBands::of("d0", &tree).expect("invariant: planned with bands");
            assert_eq!((read.kind, read.bands.len()), (kind, bands));
            assert_eq!(read.bands[0].priority, first);
            assert_eq!(read.unset, Some(0), "SYN-ACKs and the like go first");
            assert!(is_ours(&tree));
        }
    }

    #[test]
    fn numbers_of_bands_that_a_kind_cannot_have_are_refused() {
        for (kind, asked) in [(Kind::Htb, 9), (Kind::Prio, 1), (Kind::PfifoFast, 4)] {
            let error = check_bands(kind, asked).map_err(|error| error.to_string());
            let expected = format!("{kind} has from ");
            assert!(error.is_err_and(|text| text.starts_with(&expected)));
        }
    }

    #[test]
    fn a_kind_that_needs_a_rate_says_so() {
        let asked = Installation {
            device: "d0".to_owned(),
            kind: Some(Kind::Htb),
            rate: None,
            bands: None,
            replace: false,
        };
        assert!(nothing_fits(&asked, true).to_string().contains("--rate"));
        let modules = Installation {
            kind: Some(Kind::Prio),
            ..asked
        };
        let error = nothing_fits(&modules, false).to_string();
        assert!(error.contains("modprobe sch_prio"), "{error}");
    }
}
