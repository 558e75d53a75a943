//! A device with bands that is none, for tests.
#![allow(clippy::unwrap_used)]

use super::qdisc::{Band, DeviceBands, Kind, Traffic};
use crate::config::LinkConfig;

/// A device whose bands have the priorities 100, 101 and so on.
pub fn device(bands: u32) -> DeviceBands {
    let bands = (0..bands).map(|band| Band {
        name: band.to_string(),
        priority: 100 + band,
        traffic: Traffic::default(),
    });
    DeviceBands {
        device: "d0".to_owned(),
        kind: Kind::Prio,
        bands: bands.collect(),
        unset: Some(0),
        traffic: Traffic::default(),
    }
}

/// A link of this policy.
pub fn config(policy: &str) -> LinkConfig {
    LinkConfig {
        policy: policy.parse().unwrap(),
        ..LinkConfig::default()
    }
}
