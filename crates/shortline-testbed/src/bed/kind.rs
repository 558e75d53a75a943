//! Which kernel an experiment's bed is made in.

use std::fmt;
use std::str::FromStr;

use super::parameters;
use crate::TestbedError;
use crate::guest::Time;
use crate::guest::kernel::Kernel;

/// Where the namespaces and the uplink of an experiment are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BedKind {
    /// In this kernel; needs root.
    #[default]
    Native,
    /// In a kernel that runs as a process; needs no root, has all qdiscs.
    Uml,
    /// The same in virtual time: however busy the machine is.
    Virtual,
}

impl BedKind {
    /// Whether how long a SYN waits for its answer can be set there.
    ///
    /// # Errors
    /// If it has no kernel.
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
