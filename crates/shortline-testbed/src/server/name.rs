//! The names of servers on the command line and in results: ours in its modes, and others.

use std::fmt;
use std::str::FromStr;

use shortline_sched::{Aging, Policy};

use crate::TestbedError;
use crate::bed::FairQueue;

/// The prefix of a server that leaves the order to the kernel.
const KERNEL: &str = "kernel-";
/// The prefix if, in addition, control packets have no band of their own.
const KERNEL_MIXED: &str = "kernel-mixed-";
/// The prefix of nginx behind another queue.
const NGINX: &str = "nginx-";
/// The prefix of Shortline when it finds out the rate.
const AUTO: &str = "auto-";
/// The prefix of Shortline with the writers of paper 001.
const WRITERS: &str = "writers-";

/// A server to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Server {
    /// Shortline.
    Ours(OursMode),
    /// nginx from Debian.
    Nginx,
    /// nginx with an uplink queue that gives every flow its turn: FAIR at its best.
    NginxBehind(FairQueue),
    /// Apache httpd from Debian, event MPM.
    Apache,
    /// H2O.
    H2o,
    /// Caddy.
    Caddy,
    /// HAProxy, which has no files.
    Haproxy,
    /// Envoy, which has no files.
    Envoy,
}

/// How Shortline shares the uplink.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OursMode {
    /// Paced at the uplink's rate.
    Paced(Policy),
    /// The same with aging.
    PacedAging(Policy, Aging),
    /// A few responses at most have bytes in the kernel; no rate is given.
    Slots(Policy),
    /// Paced at a rate that it finds out.
    Auto(Policy),
    /// With the writers of paper 001.
    Writers(Policy),
    /// Ordered by the kernel in the priority bands of a qdisc.
    Kernel(Policy),
    /// The same, without a band for SYN-ACKs and handshakes.
    KernelMixed(Policy),
    /// Without scheduling.
    Off,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(OursMode::Paced(policy)) => policy.fmt(f),
            Self::Ours(OursMode::PacedAging(policy, aging)) => write!(f, "{policy}-aging-{aging}"),
            Self::Ours(OursMode::Slots(Policy::Srpt)) => f.write_str("slots"),
            Self::Ours(OursMode::Slots(policy)) => write!(f, "slots-{policy}"),
            Self::Ours(OursMode::Auto(Policy::Srpt)) => f.write_str("auto"),
            Self::Ours(OursMode::Auto(policy)) => write!(f, "{AUTO}{policy}"),
            Self::Ours(OursMode::Writers(policy)) => write!(f, "writers-{policy}"),
            Self::Ours(OursMode::Kernel(policy)) => write!(f, "{KERNEL}{policy}"),
            Self::Ours(OursMode::KernelMixed(policy)) => write!(f, "{KERNEL_MIXED}{policy}"),
            Self::Ours(OursMode::Off) => f.write_str("off"),
            Self::Nginx => f.write_str("nginx"),
            Self::NginxBehind(queue) => write!(f, "{NGINX}{queue}"),
            Self::Apache => f.write_str("apache"),
            Self::H2o => f.write_str("h2o"),
            Self::Caddy => f.write_str("caddy"),
            Self::Haproxy => f.write_str("haproxy"),
            Self::Envoy => f.write_str("envoy"),
        }
    }
}

impl FromStr for Server {
    type Err = TestbedError;

    fn from_str(name: &str) -> Result<Self, TestbedError> {
        let policy = |policy: &str| {
            policy.parse::<Policy>().map_err(|_| {
                let policies = Policy::ALL.iter().map(ToString::to_string);
                let policies: Vec<String> = policies.collect();
                TestbedError::UnknownServer(name.into(), policies.join(", "))
            })
        };
        Ok(match name {
            "nginx" => Self::Nginx,
            "apache" => Self::Apache,
            "h2o" => Self::H2o,
            "caddy" => Self::Caddy,
            "haproxy" => Self::Haproxy,
            "envoy" => Self::Envoy,
            "off" => Self::Ours(OursMode::Off),
            "slots" => Self::Ours(OursMode::Slots(Policy::Srpt)),
            "auto" => Self::Ours(OursMode::Auto(Policy::Srpt)),
            _ if name.starts_with(AUTO) => Self::Ours(OursMode::Auto(policy(&name[AUTO.len()..])?)),
            _ if name.starts_with(NGINX) => {
                let unknown = |()| TestbedError::UnknownQueue(name.into());
                Self::NginxBehind(name[NGINX.len()..].parse().map_err(unknown)?)
            }
            _ if name.starts_with(WRITERS) => {
                Self::Ours(OursMode::Writers(policy(&name[WRITERS.len()..])?))
            }
            _ if name.starts_with(KERNEL_MIXED) => {
                Self::Ours(OursMode::KernelMixed(policy(&name[KERNEL_MIXED.len()..])?))
            }
            _ if name.starts_with(KERNEL) => {
                Self::Ours(OursMode::Kernel(policy(&name[KERNEL.len()..])?))
            }
            _ => Self::Ours(
                match (name.strip_prefix("slots-"), name.split_once("-aging-")) {
                    (Some(name), _) => OursMode::Slots(policy(name)?),
                    (None, Some((name, aging))) => {
                        let aging = aging.parse().map_err(TestbedError::aging(aging))?;
                        OursMode::PacedAging(policy(name)?, aging)
                    }
                    (None, None) => OursMode::Paced(policy(name)?),
                },
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in [
            "srpt",
            "fair",
            "slots",
            "slots-fair",
            "off",
            "nginx",
            "apache",
            "h2o",
            "caddy",
            "haproxy",
            "envoy",
            "srpt-aging-2.5",
            "kernel-quickfix",
            "kernel-mixed-bands",
            "nginx-fq_codel",
            "nginx-fq",
            "nginx-cake",
            "nginx-cake-hosts",
            "writers-fair",
        ] {
            assert_eq!(name.parse::<Server>().unwrap().to_string(), name);
        }
        let error = "slots-quick".parse::<Server>().unwrap_err().to_string();
        assert!(
            error.contains("`slots-quick`") && error.contains("nginx"),
            "{error}"
        );
        let error = "srpt-aging-0".parse::<Server>().unwrap_err().to_string();
        assert!(error.starts_with("server aging `0`"), "{error}");
    }
}
