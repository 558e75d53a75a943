//! What a setup asks of the system around a native bed: the kernel's parameters, the clients' addresses, and what
//! this machine cannot do.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use super::hop;
use super::native::FAR_ADDRESS;
use super::netns::parameter_path;
use super::router::client_address;
use super::setup::{Bottleneck, Setup, SynTimeouts, System};
use crate::testbed::Testbed;
use crate::{TestbedError, janitor};

const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
/// The kernel's initial retransmission timeout (RFC 6298).
const INITIAL_RTO_MS: u128 = 1000;
/// The parameter for it, which the kernel that the lab builds has.
pub(super) const INITIAL_RTO: &str = "net.ipv4.tcp_timeout_init_ms";

/// Whether the timeout of a SYN can be set in this kernel.
pub fn sets_initial_rto() -> bool {
    has_parameter(INITIAL_RTO)
}

/// The parameter for how many timeouts of a SYN are as long as the first (Linux 6.5 and later).
pub(super) const SYN_LINEAR_TIMEOUTS: &str = "net.ipv4.tcp_syn_linear_timeouts";

/// Whether timeouts of a SYN can be linear in this kernel.
pub(super) fn sets_syn_timeouts() -> bool {
    has_parameter(SYN_LINEAR_TIMEOUTS)
}

/// Whether this kernel has the parameter.
pub(super) fn has_parameter(name: &str) -> bool {
    Path::new(&parameter_path(name)).exists()
}

/// How timeouts of a SYN grow in this kernel, in words. `linear` is the parameter's value in the clients' namespace.
///
/// # Errors
/// The error of reading it.
pub fn syn_backoff(
    linear: impl FnOnce(&str) -> Result<String, TestbedError>,
) -> Result<String, TestbedError> {
    if !sets_syn_timeouts() {
        return Ok("each timeout doubled".into());
    }
    Ok(match linear(SYN_LINEAR_TIMEOUTS)?.trim() {
        "0" => "each timeout doubled".into(),
        number => format!("{number} linear timeouts, then doubled"),
    })
}

pub(super) fn initial_rto_ms(setup: &Setup) -> u128 {
    setup.system.initial_rto.duration().as_millis()
}

/// The lengths of the kernel's queues before the server, as the setup wants them.
///
/// Without cookies Linux keeps the last quarter of `tcp_max_syn_backlog` for peers it knows. So the
/// parameter is a third longer than the queue should be. Linux also takes no more SYNs than the accept
/// queue is long.
///
/// Behind emulated networks the kernel must not keep what a connection learnt of its path
/// (`tcp_metrics`), because the clients of a group share an address and are still different visitors.
pub(super) fn server_parameters(setup: &Setup) -> Vec<(&'static str, String)> {
    let System {
        accept_queue,
        syn_queue,
        syn_cookies,
        ..
    } = setup.system;
    let mut parameters = vec![
        ("net.core.somaxconn", accept_queue.to_string()),
        (
            "net.ipv4.tcp_max_syn_backlog",
            (syn_queue * 4).div_ceil(3).to_string(),
        ),
        ("net.ipv4.tcp_syncookies", u8::from(syn_cookies).to_string()),
    ];
    if setup.has_wan() {
        parameters.push(("net.ipv4.tcp_no_metrics_save", "1".into()));
    }
    parameters
}

pub(super) fn clients_of(setup: &Setup) -> Vec<(Ipv4Addr, f64)> {
    if !setup.has_wan() {
        let only = match setup.bottleneck {
            Bottleneck::Server => FAR_ADDRESS,
            Bottleneck::Hop { .. } => hop::BEYOND_ADDRESS,
        };
        return vec![(only, 1.0)];
    }
    let sum: f64 = setup.groups.iter().map(|group| group.share).sum();
    let groups = setup.groups.iter().enumerate();
    groups
        .map(|(number, group)| (client_address(number), group.share / sum))
        .collect()
}

/// What the setup asks for in vain, of a kernel that has some parameters and not others.
pub(super) fn notes_on(setup: &Setup, has_parameter: impl Fn(&str) -> bool) -> Vec<String> {
    let mut notes = Vec::new();
    if !has_parameter(INITIAL_RTO) && initial_rto_ms(setup) != INITIAL_RTO_MS {
        let rto = setup.system.initial_rto;
        notes.push(format!(
            "initial RTO: {rto} asked for, 1s had (the kernel has no setting for it; --bed virtual has)"
        ));
    }
    if !has_parameter(SYN_LINEAR_TIMEOUTS) && setup.system.syn_timeouts == SynTimeouts::Linear {
        notes.push(
            "timeouts of a SYN: linear asked for, doubled had (Linux has the setting from 6.5 on)"
                .into(),
        );
    }
    notes
}

/// Does `work` while namespaces may be given this congestion control.
///
/// The list of those that are allowed is the whole machine's, and it is read only as a namespace's parameter is
/// written. So it is changed for that long alone, and by one lab at a time: a lab that put it back as another
/// was about to write would make that one fail.
pub(super) fn with_congestion_control<T>(
    testbed: &Testbed,
    name: &str,
    work: impl FnOnce() -> Result<T, TestbedError>,
) -> Result<T, TestbedError> {
    let path = Path::new(ALLOWED);
    let _turn = janitor::lock_setting(path)?;
    let allowed = fs::read_to_string(path).map_err(TestbedError::file(path))?;
    let allowed = allowed.trim();
    if allowed.split_whitespace().any(|known| known == name) {
        return work();
    }
    testbed.janitor().watch_setting(path, allowed)?;
    fs::write(path, format!("{name} {allowed}")).map_err(TestbedError::file(path))?;
    let done = work();
    fs::write(path, allowed).map_err(TestbedError::file(path))?;
    testbed.janitor().forget_setting(path)?;
    done
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::setup::ClientGroup;
    use super::*;

    #[test]
    fn queues_are_as_long_as_asked_for_strangers_too() {
        let mut setup = Setup::today();
        setup.system.syn_queue = 512;
        setup.system.accept_queue = 512;
        setup.system.syn_cookies = false;
        let parameters = server_parameters(&setup);
        let value = |name| parameters.iter().find(|(parameter, _)| *parameter == name);
        let backlog = "net.ipv4.tcp_max_syn_backlog";
        assert_eq!(value(backlog).unwrap().1, "683");
        assert_eq!(value("net.core.somaxconn").unwrap().1, "512");
        assert_eq!(value("net.ipv4.tcp_syncookies").unwrap().1, "0");
    }

    #[test]
    fn a_timeout_that_the_kernel_cannot_set_is_noted() {
        let mut setup = Setup::today();
        setup.system.initial_rto = "3s".parse().unwrap();
        assert_eq!(initial_rto_ms(&setup), 3000);
        let notes = notes_on(&setup, |name| name != INITIAL_RTO);
        assert!(
            notes[0].starts_with("initial RTO: 3s asked for, 1s had"),
            "{notes:?}"
        );
        assert_eq!(notes_on(&setup, |_| true), Vec::<String>::new());
        assert_eq!(notes_on(&Setup::today(), |_| false), Vec::<String>::new());
        setup.system.syn_timeouts = SynTimeouts::Linear;
        let notes = notes_on(&setup, |name| name != SYN_LINEAR_TIMEOUTS);
        assert!(
            notes[0].starts_with("timeouts of a SYN: linear asked for, doubled had"),
            "{notes:?}"
        );
    }

    #[test]
    fn each_group_has_an_address_and_its_share() {
        let mut setup = Setup::today();
        setup.groups = vec![ClientGroup::symmetric("far", "150ms".parse().unwrap(), 0.0); 5];
        setup.groups[0].share = 4.0;
        let clients = clients_of(&setup);
        assert_eq!(clients[0], (Ipv4Addr::new(10, 92, 0, 1), 0.5));
        assert_eq!(clients[4], (Ipv4Addr::new(10, 92, 4, 1), 0.125));
        assert_eq!(clients_of(&Setup::today()), [(FAR_ADDRESS, 1.0)]);
    }
}
