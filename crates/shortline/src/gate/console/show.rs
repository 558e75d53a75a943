//! The tables of SHOW, modelled on PgBouncer's console.
//!
//! A column with the same meaning as one of PgBouncer's has the same name. Times in such columns are
//! in microseconds (names without a unit). Our own columns name their unit.

use shortline_gate::postgres::Table;
use shortline_sched::admission::{CapacityState, OpeningStage, TypeView};

use shortline_gate::GateConfig;

use super::super::servers;
use super::super::status::{AdmissionSettings, PoolStatus, Status, View};
use super::lists::Lists;

/// The tables, and what each has.
const SHOWN: [(&str, &str); 18] = [
    ("HELP", "these commands"),
    ("STATS", "transactions and waits since the start"),
    ("POOLS", "clients and connections, by database and user"),
    ("CLIENTS", "each client's connection"),
    ("SERVERS", "each connection to the backend"),
    ("ACTIVE_SOCKETS", "clients and connections at work"),
    (
        "CLUSTER",
        "each of several servers: role, lag, what it is given to read",
    ),
    ("DATABASES", "databases in use, paused or disabled"),
    ("USERS", "users in use"),
    ("LISTS", "how many there are of each"),
    ("STATE", "whether the gate is paused"),
    (
        "GATE",
        "the backend: what runs and waits, load and capacity",
    ),
    ("QUEUE", "what waits, by type"),
    ("TYPES", "every type: estimate, counts, waits"),
    (
        "TENANTS",
        "every tenant: weight, work done for it, what runs and waits",
    ),
    ("CONFIG", "the settings in force"),
    ("MEM", "what the process has of memory"),
    ("VERSION", "the program's version"),
];

/// The commands besides SHOW.
const SAID: [(&str, &str); 10] = [
    (
        "PAUSE [db]",
        "admits nobody and waits until what runs has ended",
    ),
    ("RESUME [db]", "admits again"),
    (
        "RECONNECT [db]",
        "closes connections to the backend once they are given back",
    ),
    ("WAIT_CLOSE [db]", "waits until these have closed"),
    ("KILL [db]", "closes clients' connections and admits nobody"),
    ("KILL_CLIENT id", "closes a client's connection"),
    ("DISABLE db", "lets no new client into a database"),
    ("ENABLE db", "lets them in again"),
    ("RELOAD", "reads the configuration again"),
    (
        "SHUTDOWN [WAIT_FOR_SERVERS|WAIT_FOR_CLIENTS]",
        "ends: at once, when what runs has ended, when all have left",
    ),
];

/// The table of this name. The name is in capitals.
///
/// # Errors
/// There is no such table. The text is one line.
pub fn table(what: &str, view: &View) -> Result<Table, String> {
    let lists = || Lists::of(view);
    let status = || view.status();
    Ok(match what {
        "HELP" => help(),
        "STATS" => stats(&status()),
        "POOLS" => lists().pools(),
        "CLIENTS" => lists().clients(),
        "SERVERS" => lists().servers(),
        "ACTIVE_SOCKETS" => lists().active_sockets(),
        "CLUSTER" => servers::table(&status().servers),
        "DATABASES" => lists().databases(),
        "USERS" => lists().users(),
        "LISTS" => lists().counts(),
        "STATE" => lists().state(),
        "GATE" => gate(&status()),
        "QUEUE" => queue(&status()),
        "TYPES" => types(&status()),
        "TENANTS" => tenants(&status()),
        "CONFIG" => config(&status(), view.connections_max()),
        "MEM" => memory(),
        "VERSION" => one_row([("version", format!("shortline {}", status().version))]),
        _ => {
            let names: Vec<&str> = SHOWN.iter().map(|(name, _)| *name).collect();
            return Err(format!("no such table; try SHOW {}", names.join(", ")));
        }
    })
}

fn help() -> Table {
    let shown = SHOWN
        .iter()
        .map(|(name, what)| (format!("SHOW {name}"), *what));
    let said = SAID.iter().map(|(name, what)| ((*name).to_owned(), *what));
    Table {
        columns: vec!["command", "does"],
        rows: shown
            .chain(said)
            .map(|(name, what)| vec![name, what.to_owned()])
            .collect(),
    }
}

/// The process's resident memory, now and at its peak, in KiB. Source: `/proc/self/status`.
fn memory() -> Table {
    let told = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = |name: &str| {
        let line = told.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default()
            .trim()
            .trim_end_matches(" kB")
            .to_owned()
    };
    one_row([
        ("resident_kib", value("VmRSS:")),
        ("peak_kib", value("VmHWM:")),
    ])
}

fn stats(status: &Status) -> Table {
    let totals = &status.admission.totals;
    one_row([
        ("database", "*".to_owned()),
        (
            "total_server_assignment_count",
            status.pool.map_or(0, |pool| pool.lent).to_string(),
        ),
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

fn gate(status: &Status) -> Table {
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
        (
            "opening",
            opening(admission.opening.map(|opening| opening.stage)),
        ),
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

/// Whether the limit is above the capacity.
fn opening(stage: Option<OpeningStage>) -> String {
    let text = match stage {
        None => "off",
        Some(OpeningStage::Closed) => "closed",
        Some(OpeningStage::Trying) => "trying",
        Some(OpeningStage::Open) => "open",
    };
    text.to_owned()
}

/// The text for a missing capacity. In a dry run of `auto` it is not known.
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

/// The settings, with PgBouncer's columns. `changeable` tells whether a reload can change a setting.
fn config(status: &Status, connections_max: usize) -> Table {
    let settings = &status.settings;
    let default = AdmissionSettings::new(&GateConfig::default());
    let none = || "none".to_owned();
    let rows = [
        ("kind", settings.kind.to_owned(), String::new()),
        ("listen", settings.listen.join(", "), String::new()),
        ("upstream", settings.upstream.clone(), String::new()),
        (
            "max_client_conn",
            connections_max.to_string(),
            "10000".to_owned(),
        ),
        (
            "policy",
            settings.admission.policy.to_owned(),
            default.policy.to_owned(),
        ),
        (
            "aging",
            settings.admission.aging.clone().unwrap_or_else(none),
            none(),
        ),
        (
            "oldest-share",
            settings.admission.oldest_share.clone().unwrap_or_else(none),
            default.oldest_share.unwrap_or_else(none),
        ),
        (
            "capacity",
            settings.admission.capacity.clone(),
            "auto".to_owned(),
        ),
        (
            "dry-run",
            settings.admission.dry_run.to_string(),
            "false".to_owned(),
        ),
        (
            "queue-max",
            settings.admission.queue_max.to_string(),
            default.queue_max.to_string(),
        ),
        (
            "wait-max",
            format!("{}s", settings.admission.wait_max_seconds),
            format!("{}s", default.wait_max_seconds),
        ),
    ];
    let rows = rows.into_iter().map(|(key, value, default)| {
        let changes = ["capacity", "queue-max", "wait-max"].contains(&key);
        let changeable = if changes { "yes" } else { "no" };
        vec![key.to_owned(), value, default, changeable.to_owned()]
    });
    Table {
        columns: vec!["key", "value", "default", "changeable"],
        rows: rows.collect(),
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
