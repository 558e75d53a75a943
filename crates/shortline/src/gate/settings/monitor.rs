//! Where to ask the database who waits for a lock, if it can be asked.

use shortline_gate::locks::MonitorUrl;

use crate::gate::Kind;
use crate::gate::options::{GateOptions, UpstreamTlsMode};
use shortline_daemon::given::Given;

/// The database to ask, of the same kind as the backend.
///
/// # Errors
/// Names the place of what does not fit together.
pub fn monitor(kind: Kind, given: &Given<'_, GateOptions>) -> Result<Option<MonitorUrl>, String> {
    let (flags, merged) = (given.flags, given.merged);
    let Some(url) = merged.monitor.clone() else {
        return match merged.monitor_password_file {
            None => Ok(None),
            Some(_) => Err(format!(
                "{}: whose password? Add --monitor URL, or leave it out",
                given.at(
                    flags.monitor_password_file.is_some(),
                    "monitor-password-file"
                )
            )),
        };
    };
    let at = || given.at(flags.monitor.is_some(), "monitor");
    match (kind, &url) {
        (Kind::Postgres, MonitorUrl::Postgres(_)) => {}
        (Kind::Mysql, MonitorUrl::Mysql(_)) => {
            let is_plain = merged.upstream_tls == Some(UpstreamTlsMode::Disable);
            if !is_plain && !url.is_local() {
                return Err(format!(
                    "{}: {url} would be asked without TLS: give a database of this machine, or \
                     --upstream-tls disable if the network is trusted",
                    at()
                ));
            }
        }
        _ => {
            return Err(format!(
                "{}: {url} is not what is behind gate {}",
                at(),
                kind.name()
            ));
        }
    }
    Ok(Some(url))
}
