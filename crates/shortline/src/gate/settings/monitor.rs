//! The database that the monitor asks for waits for locks.

use shortline_gate::locks::MonitorUrl;

use crate::gate::Kind;
use crate::gate::options::GateOptions;
use shortline_daemon::given::Given;

/// The database to ask, if one is configured. It must be of the same kind as the backend.
///
/// # Errors
/// Names the place of values that do not fit together.
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
    let is_of_kind = matches!(
        (kind, &url),
        (Kind::Postgres, MonitorUrl::Postgres(_)) | (Kind::Mysql, MonitorUrl::Mysql(_))
    );
    if !is_of_kind {
        return Err(format!(
            "{}: {url} is not what is behind gate {}",
            given.at(flags.monitor.is_some(), "monitor"),
            kind.name()
        ));
    }
    Ok(Some(url))
}
