//! The counters of 002's Table 2 while visitors come, from `/proc` (proc(5)) instead of sysstat.
//!
//! Processes are counted with their threads: MariaDB has a thread for each connection, as 002's MySQL
//! had on its Linux. The database's memory is what its processes have for themselves, and what they
//! share, counted once. Counters that belong to no process are the whole machine's.

use std::fs;
use std::time::Instant;

use shortline_testbed::proc_fs;

use crate::study::shop::counters::Counters;

/// The counters at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    at: Instant,
    database: Time,
    /// The database, and all other descendants of this process.
    all: Time,
    transfers: u64,
    network_bytes: u64,
    context_switches: u64,
    interrupts: u64,
}

/// Processor time, in seconds.
#[derive(Clone, Copy, Debug)]
struct Time {
    user_s: f64,
    system_s: f64,
}

impl Reading {
    /// The counters now. `server_pid` is the database's, a descendant of this process.
    pub fn take(database: i32) -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let counter = |name| number_after(&stat, name).unwrap_or(0);
        let own = i32::try_from(std::process::id()).unwrap_or(-1);
        Self {
            at: Instant::now(),
            database: Time::of(database),
            all: Time::of(own),
            transfers: transfers(&fs::read_to_string("/proc/diskstats").unwrap_or_default()),
            network_bytes: proc_fs::device_sent(own, "lo").map_or(0, |(bytes, _)| bytes),
            context_switches: counter("ctxt "),
            interrupts: counter("intr "),
        }
    }

    /// The usage since `earlier`, and the present amounts.
    pub fn since(&self, earlier: &Self, database: i32) -> Counters {
        let seconds = (self.at - earlier.at).as_secs_f64().max(1e-3);
        let per_s = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        let share = |now: f64, then: f64| (now - then) / seconds;
        let user = share(self.database.user_s, earlier.database.user_s);
        let system = share(self.database.system_s, earlier.database.system_s);
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let free_kib = number_after(&meminfo, "MemAvailable:").unwrap_or(0);
        let tree = proc_fs::tree(database);
        Counters {
            database_user_share: user,
            database_system_share: system,
            others_share: share(self.all.sum(), earlier.all.sum()) - user - system,
            database_memory_mb: memory_kib(&tree) as f64 / 1024.0,
            free_memory_mb: free_kib as f64 / 1024.0,
            transfers_per_s: per_s(self.transfers, earlier.transfers),
            network_mbit_per_s: 8e-6 * per_s(self.network_bytes, earlier.network_bytes),
            database_processes: threads(&tree),
            processes: threads(&proc_fs::all().into_keys().collect::<Vec<_>>()),
            context_switches_per_s: per_s(self.context_switches, earlier.context_switches),
            interrupts_per_s: per_s(self.interrupts, earlier.interrupts),
        }
    }
}

impl Time {
    fn of(root: i32) -> Self {
        let (user_s, system_s) = proc_fs::cpu_parts_s(root);
        Self { user_s, system_s }
    }

    fn sum(self) -> f64 {
        self.user_s + self.system_s
    }
}

/// The number after `name` at the beginning of a line.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Completed reads and writes of whole disks (Documentation/admin-guide/iostats).
fn transfers(diskstats: &str) -> u64 {
    let of_disk = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let name = fields.get(2)?;
        let whole = std::path::Path::new("/sys/block").join(name).exists();
        let number = |field: usize| fields.get(field)?.parse::<u64>().ok();
        whole.then_some(number(3)? + number(7)?)
    };
    diskstats.lines().filter_map(of_disk).sum()
}

fn memory_kib(processes: &[i32]) -> u64 {
    let (mut own, mut shared, mut files) = (0, 0, 0);
    for status in processes.iter().filter_map(|pid| status_of(*pid)) {
        own += number_after(&status, "RssAnon:").unwrap_or(0);
        shared = number_after(&status, "RssShmem:").unwrap_or(0).max(shared);
        files = number_after(&status, "RssFile:").unwrap_or(0).max(files);
    }
    own + shared + files
}

fn threads(processes: &[i32]) -> u64 {
    let statuses = processes.iter().filter_map(|pid| status_of(*pid));
    statuses
        .filter_map(|status| number_after(&status, "Threads:"))
        .sum()
}

fn status_of(pid: i32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/status")).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_number_follows_its_name() {
        let text = "cpu  1 2\nintr 345 0 0\nctxt 67\n";
        assert_eq!(number_after(text, "intr "), Some(345));
        assert_eq!(number_after(text, "ctxt "), Some(67));
        assert_eq!(number_after(text, "none "), None);
    }

    #[test]
    fn this_process_uses_something() {
        let own = i32::try_from(std::process::id()).unwrap();
        let earlier = Reading::take(own);
        let counters = Reading::take(own).since(&earlier, own);
        assert!(counters.database_memory_mb > 0.1 && counters.free_memory_mb > 0.1);
        assert!(counters.database_processes >= 1);
        assert!(counters.processes >= counters.database_processes);
    }
}
