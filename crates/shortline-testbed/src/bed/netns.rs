//! A network namespace of the lab's own. Dropping it removes it.

use std::sync::Arc;

use crate::janitor::{self, Janitor};
use crate::place::Place;
use crate::{TestbedError, command};

/// A named network namespace with its loopback up.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes the namespace `name`.
    ///
    /// # Errors
    /// If `ip` fails, or the run is over.
    pub fn make(janitor: &Arc<Janitor>, name: String) -> Result<Self, TestbedError> {
        janitor.watch_namespace(&name)?;
        command::run("ip", &["netns", "add", &name])?;
        let namespace = Self { name };
        // Neighbour and multicast messages of IPv6 would be counted as the servers' bytes.
        namespace.set("net.ipv6.conf.all.disable_ipv6", "1")?;
        namespace.set("net.ipv6.conf.default.disable_ipv6", "1")?;
        namespace.ip(&["link", "set", "dev", "lo", "up"])?;
        Ok(namespace)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A place for processes that should run in it.
    pub fn place(&self) -> Place {
        Place::Namespace(self.name.clone())
    }

    /// Runs `ip` on its devices.
    ///
    /// # Errors
    /// If `ip` fails.
    pub fn ip(&self, arguments: &[&str]) -> Result<String, TestbedError> {
        command::run("ip", &[&["-n", &self.name], arguments].concat())
    }

    /// Runs `tc` on its devices.
    ///
    /// # Errors
    /// If `tc` fails.
    pub fn tc(&self, arguments: &[&str]) -> Result<String, TestbedError> {
        command::run("tc", &[&["-n", &self.name], arguments].concat())
    }

    /// Packets that its device `device` dropped instead of sending.
    ///
    /// # Errors
    /// If `ip` fails.
    pub fn send_drops(&self, device: &str) -> Result<u64, TestbedError> {
        let arguments = ["-s", "-j", "link", "show", "dev", device];
        let text = self.ip(&arguments)?;
        parse_send_drops(&text).ok_or_else(|| TestbedError::Command {
            command: format!("ip {}", arguments.join(" ")),
            problem: "printed no counters".into(),
        })
    }

    /// The value of one of its kernel parameters.
    ///
    /// # Errors
    /// If the kernel has no such parameter.
    pub fn parameter(&self, parameter: &str) -> Result<String, TestbedError> {
        let path = parameter_path(parameter);
        let text = command::run("ip", &["netns", "exec", &self.name, "cat", &path])?;
        Ok(text.trim().to_owned())
    }

    /// Sets one of its kernel parameters.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn set(&self, parameter: &str, value: &str) -> Result<(), TestbedError> {
        let path = parameter_path(parameter);
        let script = r#"echo "$1" > "$2""#;
        let exec = [
            "netns", "exec", &self.name, "sh", "-c", script, "sh", value, &path,
        ];
        command::run("ip", &exec).map(drop)
    }
}

/// Where a parameter of the kernel is. Older kernels do not have each.
pub(super) fn parameter_path(parameter: &str) -> String {
    format!("/proc/sys/{}", parameter.replace('.', "/"))
}

fn parse_send_drops(text: &str) -> Option<u64> {
    let devices: serde_json::Value = serde_json::from_str(text).ok()?;
    devices[0]["stats64"]["tx"]["dropped"].as_u64()
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = janitor::remove_namespace(&self.name) {
            tracing::warn!(
                "lab: namespace {} is left to the janitor: {error}",
                self.name
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_found_among_the_counters() {
        let text = r#"[{"ifname":"x","stats64":{"rx":{"dropped":1},"tx":{"dropped":5}}}]"#;
        assert_eq!(parse_send_drops(text), Some(5));
        assert_eq!(parse_send_drops("[]"), None);
    }
}
