//! What is asked of the kernel once, when the link is made: which bands there are, and whether we may choose them.

use std::net::{Ipv4Addr, UdpSocket};

use socket2::SockRef;

use super::BandMap;
use super::qdisc::DeviceBands;
use crate::config::{LinkConfig, LinkError, LinkMode};

/// The most urgent that a socket may have without a privilege, and one of the first band's in `prio`,
/// `pfifo_fast` and `fq` as the kernel sets them up (`TC_PRIO_INTERACTIVE`).
const INTERACTIVE: u32 = 6;

/// What a listener, and so its SYN-ACKs, has for its priority: that of the control band in mode `bands`;
/// else what lets them pass responses in a qdisc that has bands, whoever set it up, for they are small and
/// a visitor waits for them before all else (003 3.3.2). A plain server sets none.
pub(crate) fn control_priority(mode: LinkMode, bands: Option<&BandMap>) -> u32 {
    match (bands, mode) {
        (Some(bands), _) => bands.control,
        (None, LinkMode::Off | LinkMode::Writers) => 0,
        (None, _) => first_band_of(DeviceBands::find().ok().as_ref()),
    }
}

/// The first band's priority if everybody may ask for it: a qdisc may have another map than the kernel's own.
fn first_band_of(device: Option<&DeviceBands>) -> u32 {
    let first = device.and_then(|device| device.bands.first());
    first.map_or(INTERACTIVE, |band| band.priority.min(INTERACTIVE))
}

impl BandMap {
    /// The bands of the configured device, or of the only one that has some, for the policy.
    pub fn open(config: &LinkConfig) -> Result<Self, LinkError> {
        let device = match &config.device {
            Some(device) => DeviceBands::read(device)?,
            None => DeviceBands::find()?,
        };
        let map = Self::of(&device, config)?;
        map.check_privilege()?;
        Ok(map)
    }

    /// Linux lets everybody have 0 to 6; better to hear of the others now than at each response.
    fn check_privilege(&self) -> Result<(), LinkError> {
        let all = self.responses.iter().chain([&self.control]);
        let highest = all.copied().max().unwrap_or(0);
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(LinkError::Priority)?;
        let set = SockRef::from(&socket).set_priority(highest);
        set.map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM) => LinkError::PriorityNotPermitted {
                device: self.device.clone(),
                priority: highest,
            },
            _ => LinkError::Priority(error),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::bands::testing::{config, device};

    #[test]
    fn syn_acks_have_the_first_band_in_every_mode_that_orders() {
        let map = BandMap::of(&device(6), &config("bands")).unwrap();
        assert_eq!(control_priority(LinkMode::Bands, Some(&map)), 100);
        assert_eq!(control_priority(LinkMode::Off, None), 0);
        assert!(control_priority(LinkMode::Paced, None) <= INTERACTIVE);
        assert_eq!(first_band_of(None), INTERACTIVE);
        let mut own_map = device(16);
        let of_classes = first_band_of(Some(&own_map));
        assert_eq!(of_classes, INTERACTIVE, "100 would need a privilege");
        own_map.bands[0].priority = 2;
        assert_eq!(first_band_of(Some(&own_map)), 2);
    }
}
