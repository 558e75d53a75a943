//! What the commands that run until they are told to end have in common: signals, systemd, the
//! log of the process, the limit of open files, the runtime.

use std::future::Future;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sd_notify::NotifyState;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::warnings::Stderr;
use shortline_command::{CommandError, log};

pub use shortline_command::log::LogFormat;

/// Runs `main` on a runtime of one thread beside the current one, with the log on standard error
/// and as many open files as the hard limit allows.
///
/// # Errors
/// Those of `main`, or [`CommandError::Failure`] without a runtime.
pub fn run(
    log_format: LogFormat,
    main: impl Future<Output = Result<(), CommandError>>,
) -> Result<(), CommandError> {
    log::start(log_format, Stderr);
    raise_open_files();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| CommandError::failure(format!("no runtime: {error}")))?
        .block_on(main)
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// SIGHUP: read the configuration again.
    Reload,
    /// SIGTERM or SIGINT.
    End,
}

/// The signals that a server obeys.
#[derive(Debug)]
pub struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on these signals no longer end the process by themselves.
    ///
    /// # Errors
    /// [`CommandError::Failure`] if the kernel refuses.
    pub fn new() -> Result<Self, CommandError> {
        let signals = || {
            Ok(Self {
                hangup: signal(SignalKind::hangup())?,
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
            })
        };
        signals().map_err(|error: std::io::Error| CommandError::failure(error))
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> Instruction {
        tokio::select! {
            _ = self.hangup.recv() => Instruction::Reload,
            _ = self.terminate.recv() => Instruction::End,
            _ = self.interrupt.recv() => Instruction::End,
        }
    }

    /// Waits for one that asks for the end.
    pub async fn end(&mut self) {
        while self.next().await != Instruction::End {}
    }
}

/// Tells systemd, if it started us.
pub fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("systemd is not told: {error}");
    }
}

/// Says in the log what has come of [`Instruction::Reload`].
pub fn tell_reload(result: Result<(), CommandError>) {
    match result {
        Ok(()) => tracing::info!("reloaded"),
        Err(error) => tracing::error!("not reloaded, all stays as it was: {error}"),
    }
}

/// Descriptors beside those of clients: listeners, logs, files that are read, the admin's clients.
const FILES_BESIDE: u64 = 128;
/// Descriptors of a client: its connection, and one to a backend or a file.
const FILES_A_CLIENT: u64 = 2;

/// Warns if fewer files may be open than `connections_max` clients need.
pub fn warn_of_few_files(connections_max: usize) {
    // None: as many as wanted.
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if let Some(warning) = too_few_files(limit, connections_max) {
        tracing::warn!("{warning}");
    }
}

fn too_few_files(limit: u64, connections_max: usize) -> Option<String> {
    let connections_max = u64::try_from(connections_max).unwrap_or(u64::MAX);
    let needed = connections_max
        .saturating_mul(FILES_A_CLIENT)
        .saturating_add(FILES_BESIDE);
    let enough_for = limit.saturating_sub(FILES_BESIDE) / FILES_A_CLIENT;
    (limit < needed).then(|| {
        format!(
            "{limit} files may be open, enough for {enough_for} clients: --connections-max \
             {connections_max} needs {needed} (ulimit -n, systemd's LimitNOFILE=)"
        )
    })
}

/// Every connection and open file takes a descriptor; the hard limit is what we may have.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!("limit of open files stays as it is: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_files_are_told_with_the_number_needed() {
        assert_eq!(too_few_files(20_128, 10_000), None);
        assert_eq!(too_few_files(u64::MAX, usize::MAX), None);
        assert_eq!(
            too_few_files(1024, 10_000).as_deref(),
            Some(
                "1024 files may be open, enough for 448 clients: --connections-max 10000 needs \
                 20128 (ulimit -n, systemd's LimitNOFILE=)"
            )
        );
    }
}
