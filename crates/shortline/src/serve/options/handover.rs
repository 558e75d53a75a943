//! `[handover]`: a new process takes the place of a running one.

use serde::Deserialize;
use shortline_daemon::keys::some_from_text;
use shortline_daemon::overlay;
use shortline_daemon::sockets::PrivatePath;
use shortline_sched::units::Span;

/// `[handover]`: a new process takes the place of a running one.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Handover")]
pub struct HandoverOptions {
    /// Take the listening sockets over from the server that runs and has the same path here; it ends when its
    /// connections have
    ///
    /// No connection is refused meanwhile. A client's next request comes to the new process, and a response under way
    /// ends in the old one. Only processes of the same user meet here.
    #[arg(id = "handover", long = "handover", value_name = "unix:PATH")]
    #[serde(deserialize_with = "some_from_text")]
    pub path: Option<PrivatePath>,
    /// Time that responses under way get to finish in a process whose sockets another has taken [default: 1h]
    #[arg(
        id = "handover_time_max",
        long = "handover-time-max",
        value_name = "TIME"
    )]
    pub time_max: Option<Span>,
}

overlay!(HandoverOptions { path, time_max });
