//! Whom the gate asks who waits for a lock: the one server, or each of several.

use shortline_command::CommandError;
use shortline_gate::locks::MonitorConfig;

use super::relays::upstream_tls;
use super::settings::Settings;

/// One for each server. None if no monitor is configured.
///
/// # Errors
/// [`CommandError`]: a file with a password or certificates cannot be used.
pub fn monitors(settings: &Settings) -> Result<Vec<MonitorConfig>, CommandError> {
    let Some(url) = settings.monitor.clone() else {
        return Ok(Vec::new());
    };
    let url = match &settings.monitor_password_file {
        None => url,
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| CommandError::failure(format!("{}: {error}", path.display())))?;
            url.with_password(text.lines().next().unwrap_or_default())
        }
    };
    let tls = upstream_tls(settings).map_err(CommandError::failure)?;
    let of = |server, url| MonitorConfig {
        url,
        server,
        tls: tls.clone(),
    };
    Ok(match &settings.cluster {
        None => vec![of(0, url)],
        Some(cluster) => {
            let servers = cluster.servers.iter().enumerate();
            servers
                .map(|(at, server)| of(at, url.clone().at(server)))
                .collect()
        }
    })
}
