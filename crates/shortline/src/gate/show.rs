//! SHOW commands of the admin database, modelled on PgBouncer's console.
//!
//! A column that means the same as PgBouncer's has its name. Times in such columns are in
//! microseconds (names without a unit). Our own columns name their unit.

use shortline_gate::postgres::Table;
use shortline_sched::admission::{CapacityState, TypeView};

use super::status::{PoolStatus, Status};

/// The commands, and what each one shows.
const COMMANDS: [(&str, &str); 9] = [
    ("HELP", "these commands"),
    ("STATS", "transactions and waits since the start"),
    (
        "POOLS",
        "the backend: what runs and waits, load and capacity",
    ),
    ("QUEUE", "what waits, by type"),
    ("TYPES", "every type: estimate, counts, waits"),
    (
        "TENANTS",
        "every tenant: weight, work done for it, what runs and waits",
    ),
    ("CLIENTS", "connections of clients"),
    ("CONFIG", "the settings in force"),
    ("VERSION", "the program's version"),
];

/// Answers a command.
///
/// # Errors
/// What is wrong with it, in one line.
pub fn answer(command: &str, status: &Status) -> Result<Table, String> {
    let mut words = command.split_whitespace();
    let (verb, what) = (words.next(), words.next());
    let is_show = verb.is_some_and(|verb| verb.eq_ignore_ascii_case("show"));
    let what = what.filter(|_| is_show && words.next().is_none());
    let what = what.map(str::to_ascii_uppercase).unwrap_or_default();
    match what.as_str() {
        "HELP" => Ok(help()),
        "STATS" => Ok(stats(status)),
        "POOLS" => Ok(pools(status)),
        "QUEUE" => Ok(queue(status)),
        "TYPES" => Ok(types(status)),
        "TENANTS" => Ok(tenants(status)),
        "CLIENTS" => Ok(clients(status)),
        "CONFIG" => Ok(config(status)),
        "VERSION" => Ok(one_row([(
            "version",
            format!("shortline {}", status.version),
        )])),
        _ => {
            let names: Vec<&str> = COMMANDS.iter().map(|(name, _)| *name).collect();
            Err(format!("no such command; try SHOW {}", names.join(", ")))
        }
    }
}

fn help() -> Table {
    Table {
        columns: vec!["command", "shows"],
        rows: COMMANDS
            .iter()
            .map(|(name, what)| vec![format!("SHOW {name}"), (*what).to_owned()])
            .collect(),
    }
}

fn stats(status: &Status) -> Table {
    let totals = &status.admission.totals;
    one_row([
        ("database", "*".to_owned()),
        ("total_xact_count", totals.completed.to_string()),
        ("total_wait_time", microseconds(totals.waited_ns_sum)),
        (
            "avg_wait_time",
            microseconds(
                totals
                    .waited_ns_sum
                    .checked_div(totals.admitted)
                    .unwrap_or(0),
            ),
        ),
        ("total_admitted", totals.admitted.to_string()),
        ("total_failed", totals.failed.to_string()),
        ("total_refused_full", totals.refused_full.to_string()),
        ("total_refused_shed", totals.refused_shed.to_string()),
        ("total_withdrawn", totals.withdrawn.to_string()),
        ("total_escaped", totals.escaped.to_string()),
        ("total_would_wait", totals.would_wait.to_string()),
        ("uptime_seconds", format!("{:.0}", status.uptime_seconds)),
    ])
}

fn pools(status: &Status) -> Table {
    let admission = &status.admission;
    let oldest = admission.oldest.as_ref();
    let oldest_ns = oldest.map_or(0, |oldest| oldest.waited_ns);
    // Without a pool, there is nothing to count.
    let of_pool = |count: fn(PoolStatus) -> usize| {
        status
            .pool
            .map_or_else(String::new, |pool| count(pool).to_string())
    };
    one_row([
        ("database", "*".to_owned()),
        ("upstream", status.settings.upstream.clone()),
        ("cl_active", admission.running.to_string()),
        ("cl_waiting", admission.waiting.to_string()),
        (
            "cl_paused",
            (admission.running - admission.active).to_string(),
        ),
        // As in PgBouncer: whole seconds, and the microseconds beyond them.
        ("maxwait", (oldest_ns / 1_000_000_000).to_string()),
        ("maxwait_us", microseconds(oldest_ns % 1_000_000_000)),
        (
            "maxwait_type",
            oldest.map_or_else(String::new, |oldest| oldest.name.clone()),
        ),
        ("load_ms", milliseconds(admission.load_ns)),
        (
            "capacity_ms",
            admission
                .capacity_ns
                .map_or_else(|| no_capacity(status), milliseconds),
        ),
        ("capacity", status.settings.admission.capacity.clone()),
        ("slowdown", format!("{:.3}", admission.slowdown)),
        ("sv_active", of_pool(|pool| pool.open - pool.idle)),
        ("sv_idle", of_pool(|pool| pool.idle)),
        ("sv_pinned", of_pool(|pool| pool.pinned)),
        ("sv_waited_for", of_pool(|pool| pool.waiting)),
        ("pool_size", of_pool(|pool| pool.size)),
        (
            "pool_mode",
            status.pool.map_or("off", |pool| pool.mode).to_owned(),
        ),
    ])
}

/// Why there is no capacity. A dry run of `auto` does not know it.
fn no_capacity(status: &Status) -> String {
    match status.admission.capacity_state {
        CapacityState::Auto(_) => "not known".to_owned(),
        _ => "none".to_owned(),
    }
}

fn queue(status: &Status) -> Table {
    let mut waiting: Vec<&TypeView> = status.admission.types.iter().collect();
    waiting.retain(|each| each.waiting > 0);
    waiting.sort_by_key(|each| each.estimate_ns);
    let rows = waiting.into_iter().map(|each| {
        vec![
            each.name.clone(),
            each.waiting.to_string(),
            milliseconds(each.estimate_ns),
            milliseconds(each.estimate_ns.saturating_mul(each.waiting as u64)),
            milliseconds(each.oldest_wait_ns),
        ]
    });
    Table {
        columns: vec![
            "type",
            "cl_waiting",
            "estimate_ms",
            "work_ms",
            "oldest_wait_ms",
        ],
        rows: rows.collect(),
    }
}

fn types(status: &Status) -> Table {
    let rows = status.admission.types.iter().map(|each| {
        vec![
            each.name.clone(),
            milliseconds(each.estimate_ns),
            each.requests_known.to_string(),
            each.running.to_string(),
            each.waiting.to_string(),
            each.admitted.to_string(),
            each.completed.to_string(),
            each.failed.to_string(),
            each.refused.to_string(),
            each.withdrawn.to_string(),
            milliseconds(each.waited_ns_sum.checked_div(each.admitted).unwrap_or(0)),
            milliseconds(each.waited_ns_max),
            milliseconds(each.oldest_wait_ns),
        ]
    });
    Table {
        columns: vec![
            "type",
            "estimate_ms",
            "requests_known",
            "cl_active",
            "cl_waiting",
            "admitted",
            "completed",
            "failed",
            "refused",
            "withdrawn",
            "avg_wait_ms",
            "max_wait_ms",
            "oldest_wait_ms",
        ],
        rows: rows.collect(),
    }
}

fn tenants(status: &Status) -> Table {
    let rows = status.admission.tenants.iter().map(|each| {
        vec![
            each.name.clone(),
            each.weight.to_string(),
            each.connections.to_string(),
            each.active.to_string(),
            (each.running - each.active).to_string(),
            each.waiting.to_string(),
            milliseconds(each.load_ns),
            milliseconds(each.served_ns),
            each.admitted.to_string(),
            each.unqueued.to_string(),
            each.refused.to_string(),
            each.connections_refused.to_string(),
            milliseconds(each.waited_ns_sum.checked_div(each.admitted).unwrap_or(0)),
        ]
    });
    Table {
        columns: vec![
            "tenant",
            "weight",
            "connections",
            "cl_active",
            "cl_paused",
            "cl_waiting",
            "load_ms",
            "served_ms",
            "admitted",
            "unqueued",
            "refused",
            "connections_refused",
            "avg_wait_ms",
        ],
        rows: rows.collect(),
    }
}

fn clients(status: &Status) -> Table {
    let counts = status.connections;
    one_row([
        ("open", counts.open.to_string()),
        ("total", counts.total.to_string()),
        ("refused_total", counts.refused_total.to_string()),
        ("failed_total", counts.failed_total.to_string()),
    ])
}

fn config(status: &Status) -> Table {
    let settings = &status.settings;
    let none = || "none".to_owned();
    let pairs = [
        ("kind", settings.kind.to_owned()),
        ("listen", settings.listen.join(", ")),
        ("upstream", settings.upstream.clone()),
        ("policy", settings.admission.policy.to_owned()),
        (
            "aging",
            settings.admission.aging.clone().unwrap_or_else(none),
        ),
        (
            "oldest-share",
            settings.admission.oldest_share.clone().unwrap_or_else(none),
        ),
        ("capacity", settings.admission.capacity.clone()),
        ("dry-run", settings.admission.dry_run.to_string()),
        ("queue-max", settings.admission.queue_max.to_string()),
        (
            "wait-max",
            format!("{}s", settings.admission.wait_max_seconds),
        ),
    ];
    Table {
        columns: vec!["key", "value"],
        rows: pairs
            .into_iter()
            .map(|(key, value)| vec![key.to_owned(), value])
            .collect(),
    }
}

fn one_row<const COLUMNS: usize>(values: [(&'static str, String); COLUMNS]) -> Table {
    let (columns, row) = values.into_iter().unzip();
    Table {
        columns,
        rows: vec![row],
    }
}

fn milliseconds(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

fn microseconds(ns: u64) -> String {
    (ns / 1_000).to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use shortline_gate::{Gate, GateConfig};

    use std::sync::Arc;

    use super::super::series::Series;
    use super::super::status::{AdmissionSettings, Connections, SettingsView};
    use super::*;

    fn status() -> Status {
        let gate = Gate::new(GateConfig::default());
        gate.type_of("select ?");
        Status {
            version: "1.2.3",
            uptime_seconds: 5.0,
            note: None,
            settings: SettingsView {
                kind: "postgres",
                listen: vec!["127.0.0.1:6432".to_owned()],
                upstream: "db:5432".to_owned(),
                admission: AdmissionSettings::new(&GateConfig::default()),
            },
            admission: gate.snapshot(),
            pool: None,
            connections: Connections::default(),
            series: Arc::new(Series::new(1)),
        }
    }

    #[test]
    fn every_command_that_help_names_has_an_answer() {
        let status = status();
        let help = answer("show help", &status).unwrap();
        assert_eq!(help.rows.len(), COMMANDS.len());
        for row in &help.rows {
            let table = answer(&row[0], &status).unwrap();
            let fits = |row: &Vec<String>| row.len() == table.columns.len();
            assert!(table.rows.iter().all(fits), "{}", row[0]);
        }
        let types = answer("SHOW TYPES", &status).unwrap();
        assert!(types.rows.iter().any(|row| row[0] == "select ?"));
    }

    #[test]
    fn what_is_no_command_is_told_with_those_that_are() {
        for command in ["SHOW", "SHOW LISTS", "SELECT 1", "SHOW TYPES NOW", ""] {
            let error = answer(command, &status()).unwrap_err();
            assert!(error.contains("SHOW HELP, STATS"), "{command}: {error}");
        }
    }
}
