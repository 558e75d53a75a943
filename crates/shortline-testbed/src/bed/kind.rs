//! The kernels that an experiment's bed can be made in.

use std::fmt;
use std::str::FromStr;

use super::parameters;
use crate::TestbedError;
use crate::guest::Time;
use crate::guest::kernel::Kernel;

/// The kernel that has the namespaces and the uplink of an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BedKind {
    /// This kernel. Needs root.
    #[default]
    Native,
    /// A kernel that runs as a process. Needs no root and has all qdiscs.
    Uml,
    /// The same in virtual time, which does not depend on how busy the machine is.
    Virtual,
}

impl BedKind {
    /// Whether the timeout of a SYN can be set in it.
    ///
    /// # Errors
    /// If the bed has no kernel.
    pub fn sets_initial_rto(self) -> Result<bool, TestbedError> {
        match self.guest_time() {
            None => Ok(parameters::sets_initial_rto()),
            Some(time) => Ok(Kernel::find(time)?.sets_initial_rto()),
        }
    }

    /// The clock of its guest kernel, if it has one.
    pub fn guest_time(self) -> Option<Time> {
        match self {
            Self::Native => None,
            Self::Uml => Some(Time::Real),
            Self::Virtual => Some(Time::Virtual),
        }
    }
}

impl fmt::Display for BedKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Native => "native",
            Self::Uml => "uml",
            Self::Virtual => "virtual",
        })
    }
}

impl FromStr for BedKind {
    type Err = TestbedError;

    fn from_str(text: &str) -> Result<Self, TestbedError> {
        match text {
            "native" => Ok(Self::Native),
            "uml" => Ok(Self::Uml),
            "virtual" => Ok(Self::Virtual),
            other => Err(TestbedError::UnknownBed(other.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in ["native", "uml", "virtual"] {
            assert_eq!(name.parse::<BedKind>().unwrap().to_string(), name);
        }
        let error = "qemu".parse::<BedKind>().unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("`qemu`"));
    }
}
