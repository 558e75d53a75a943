//! Several servers behind a gate as an operator sees them: in `/status`, SHOW CLUSTER and `/metrics`.

use serde::Serialize;
use shortline_daemon::admin::prometheus::Text;
use shortline_gate::pool::{NodeView, Shown};
use shortline_gate::postgres::Table;

/// A server now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerStatus {
    /// Where it listens.
    pub address: String,
    /// `primary`, `replica` or `unknown`.
    pub role: &'static str,
    /// Writes go to it.
    pub is_written: bool,
    /// Reads may go to it as a replica.
    pub is_read: bool,
    /// How far it is behind; `None` if it is no replica, or nobody knows.
    pub lag_ns: Option<u64>,
    /// Why it does not answer, if it does not.
    pub problem: Option<String>,
    /// Connections to it, or being opened.
    pub open: usize,
    /// Of these, lent to no session.
    pub idle: usize,
    /// Transactions that run there as on a replica.
    pub running: usize,
    /// Those that wait to.
    pub waiting: usize,
    /// The estimates of both.
    pub left_ns: u64,
    /// Transactions that it was given as a replica, since the start.
    pub given: u64,
}

/// All of them, if there are several.
pub fn all(pool: Option<&dyn Shown>) -> Vec<ServerStatus> {
    let nodes = pool.map(|pool| pool.nodes());
    nodes.into_iter().flatten().map(ServerStatus::of).collect()
}

impl ServerStatus {
    fn of(node: NodeView) -> Self {
        let lag = node.state.lag();
        Self {
            role: node.state.role_name(),
            is_written: node.state.is_written,
            is_read: node.state.is_read,
            lag_ns: lag.map(|lag| u64::try_from(lag.as_nanos()).unwrap_or(u64::MAX)),
            problem: node.state.problem.map(|problem| problem.to_string()),
            address: node.state.address,
            open: node.counts.total,
            idle: node.counts.idle,
            running: node.running,
            waiting: node.waiting,
            left_ns: node.left_ns,
            given: node.given,
        }
    }
}

/// SHOW CLUSTER.
pub fn table(servers: &[ServerStatus]) -> Table {
    let is = |is: bool| u8::from(is).to_string();
    let milliseconds = |ns: u64| format!("{:.3}", ns as f64 / 1e6);
    let row = |server: &ServerStatus| {
        vec![
            server.address.clone(),
            server.role.to_owned(),
            is(server.is_written),
            is(server.is_read),
            server.lag_ns.map_or_else(String::new, milliseconds),
            (server.open - server.idle).to_string(),
            server.idle.to_string(),
            server.running.to_string(),
            server.waiting.to_string(),
            milliseconds(server.left_ns),
            server.given.to_string(),
            server.problem.clone().unwrap_or_default(),
        ]
    };
    Table {
        columns: vec![
            "server",
            "role",
            "written",
            "read",
            "lag_ms",
            "sv_active",
            "sv_idle",
            "reads_active",
            "reads_waiting",
            "reads_left_ms",
            "reads_given",
            "problem",
        ],
        rows: servers.iter().map(row).collect(),
    }
}

/// A metric of a server: its kind, name and help, and its value.
type Metric = (
    &'static str,
    &'static str,
    &'static str,
    fn(&ServerStatus) -> f64,
);

const METRICS: [Metric; 8] = [
    (
        "gauge",
        "server_up",
        "Whether the server answers.",
        |server| flag(server.problem.is_none() && server.role != "unknown"),
    ),
    (
        "gauge",
        "server_written",
        "Whether writes go to the server.",
        |server| flag(server.is_written),
    ),
    (
        "gauge",
        "server_read",
        "Whether reads may go to the server as a replica.",
        |server| flag(server.is_read),
    ),
    (
        "gauge",
        "server_connections",
        "Connections to the server.",
        |server| server.open as f64,
    ),
    (
        "gauge",
        "server_reads_running",
        "Transactions that run there as on a replica.",
        |server| server.running as f64,
    ),
    (
        "gauge",
        "server_reads_waiting",
        "Transactions that wait for it as for a replica.",
        |server| server.waiting as f64,
    ),
    (
        "gauge",
        "server_reads_left_seconds",
        "The estimates of what runs and waits there as on a replica.",
        |server| server.left_ns as f64 / 1e9,
    ),
    (
        "counter",
        "server_reads_total",
        "Transactions that it was given as a replica.",
        |server| server.given as f64,
    ),
];

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

/// The metrics of several servers, by their address.
pub fn metrics(text: &mut Text, servers: &[ServerStatus]) {
    if servers.is_empty() {
        return;
    }
    for (kind, name, help, value) in METRICS {
        text.head(kind, name, help);
        for server in servers {
            text.sample(name, &[("server", server.address.as_str())], value(server));
        }
    }
    let name = "server_lag_seconds";
    text.head(
        "gauge",
        name,
        "How far a replica is behind, if it is known.",
    );
    for server in servers {
        if let Some(lag_ns) = server.lag_ns {
            let labels = [("server", server.address.as_str())];
            text.sample(name, &labels, lag_ns as f64 / 1e9);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_shown_everywhere() {
        let server = ServerStatus {
            address: "db1:5432".to_owned(),
            role: "replica",
            is_written: false,
            is_read: true,
            lag_ns: Some(1_500_000_000),
            problem: None,
            open: 3,
            idle: 1,
            running: 2,
            waiting: 4,
            left_ns: 5_000_000,
            given: 6,
        };
        let shown = table(std::slice::from_ref(&server));
        assert_eq!(shown.columns.len(), shown.rows[0].len());
        assert_eq!(shown.rows[0][4], "1500.000");
        let mut text = Text::default();
        metrics(&mut text, &[server]);
        let text = text.finish();
        for line in [
            "shortline_server_read{server=\"db1:5432\"} 1",
            "shortline_server_lag_seconds{server=\"db1:5432\"} 1.5",
            "shortline_server_reads_total{server=\"db1:5432\"} 6",
        ] {
            assert!(text.lines().any(|is| is == line), "{line} in {text}");
        }
    }
}
