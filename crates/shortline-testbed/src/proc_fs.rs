//! Processes as `/proc` shows them (proc(5)): their descendants, their processor time, their resident
//! memory, the counters of their network namespace.

use std::collections::{BTreeMap, HashSet};
use std::fs;

/// Ticks a second of the times in `/proc/PID/stat`: `USER_HZ`, 100 on every Linux
/// architecture that user space sees.
const TICKS_PER_S: f64 = 100.0;

/// The fields of `/proc/PID/stat` that the lab needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// The parent's id.
    pub parent: i32,
    /// The process group's id.
    pub group: i32,
    /// Processor time of all its threads, user and system, in ticks. Includes children that were
    /// waited for.
    pub cpu_ticks: u64,
    /// The part of it that was spent in the kernel.
    pub system_ticks: u64,
    /// When it started, in ticks after boot. Id and start together are unique.
    pub start_ticks: u64,
    /// Whether it has ended and its parent has not waited for it yet.
    pub zombie: bool,
}

/// The state of process `pid`. `None` if there is no such process.
pub fn stat(pid: i32) -> Option<ProcessStat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(text: &str) -> Option<ProcessStat> {
    // The name is in parentheses and may itself contain parentheses and spaces.
    let (_, after_name) = text.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    // `fields[0]` is field 3 of proc(5).
    let number = |field: usize| fields.get(field - 3)?.parse::<i64>().ok();
    let ticks = |field: usize| u64::try_from(number(field)?).ok();
    Some(ProcessStat {
        zombie: matches!(fields.first(), Some(&"Z" | &"X")),
        parent: i32::try_from(number(4)?).ok()?,
        group: i32::try_from(number(5)?).ok()?,
        cpu_ticks: ticks(14)? + ticks(15)? + ticks(16)? + ticks(17)?,
        system_ticks: ticks(15)? + ticks(17)?,
        start_ticks: ticks(22)?,
    })
}

/// All processes of this machine.
pub fn all() -> BTreeMap<i32, ProcessStat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| Some((pid, stat(pid)?)))
        .collect()
}

/// `root` and all its living descendants.
pub fn tree(root: i32) -> Vec<i32> {
    let all = all();
    let mut found = HashSet::from([root]);
    // A child may have a smaller id than its parent, so this repeats until nothing is added.
    loop {
        let before = found.len();
        let children = all.iter().filter(|(_, stat)| found.contains(&stat.parent));
        let children: Vec<i32> = children.map(|(pid, _)| *pid).collect();
        found.extend(children);
        if found.len() == before {
            break;
        }
    }
    let mut tree: Vec<i32> = found
        .into_iter()
        .filter(|pid| all.contains_key(pid))
        .collect();
    tree.sort_unstable();
    tree
}

/// Processor time of `root` and its descendants, user and system, in seconds, to 10 ms.
pub fn cpu_s(root: i32) -> f64 {
    let ticks = tree(root)
        .into_iter()
        .filter_map(stat)
        .map(|stat| stat.cpu_ticks);
    ticks.sum::<u64>() as f64 / TICKS_PER_S
}

/// The same in two parts: in their own code, and in the kernel.
pub fn cpu_parts_s(root: i32) -> (f64, f64) {
    let stats: Vec<ProcessStat> = tree(root).into_iter().filter_map(stat).collect();
    let sum_s =
        |ticks: fn(&ProcessStat) -> u64| stats.iter().map(ticks).sum::<u64>() as f64 / TICKS_PER_S;
    let (all_s, system_s) = (
        sum_s(|stat| stat.cpu_ticks),
        sum_s(|stat| stat.system_ticks),
    );
    (all_s - system_s, system_s)
}

/// Resident memory of `root` and its descendants, in bytes (`VmRSS`). Pages that two of them share
/// count twice.
pub fn resident_bytes(root: i32) -> u64 {
    tree(root).into_iter().filter_map(resident_of).sum()
}

/// [`cpu_s`] and [`resident_bytes`] of `root` and its descendants, from one reading of all processes.
pub fn usage(root: i32) -> (f64, u64) {
    let tree = tree(root);
    let stats = tree.iter().filter_map(|pid| stat(*pid));
    let cpu_ticks: u64 = stats.map(|stat| stat.cpu_ticks).sum();
    let resident_bytes = tree.into_iter().filter_map(resident_of).sum();
    (cpu_ticks as f64 / TICKS_PER_S, resident_bytes)
}

fn resident_of(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}

/// Bytes and packets that network device `device` has sent, in the namespace of `pid`.
/// A veth counts IP bytes and 14 of Ethernet a packet, after its queue.
pub fn device_sent(pid: i32, device: &str) -> Option<(u64, u64)> {
    parse_device_sent(
        &fs::read_to_string(format!("/proc/{pid}/net/dev")).ok()?,
        device,
    )
}

/// The same in the text of `/proc/net/dev`.
pub fn parse_device_sent(text: &str, device: &str) -> Option<(u64, u64)> {
    let counters = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'))?;
    // Eight columns of received traffic come first.
    let mut sent = counters.split_whitespace().skip(8);
    Some((sent.next()?.parse().ok()?, sent.next()?.parse().ok()?))
}

/// Whether a TCP socket listens on `port` in the namespace of `pid`.
pub fn is_listening(pid: i32, port: u16) -> bool {
    ["tcp", "tcp6"].iter().any(|table| {
        let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        has_listener(&text, port)
    })
}

fn has_listener(table: &str, port: u16) -> bool {
    const LISTEN: &str = "0A";
    let port = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().is_some_and(|local| local.ends_with(&port));
        local && fields.nth(1) == Some(LISTEN)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_fields_are_found_behind_a_name_with_parentheses() {
        let text = "42 (a) b (c)) S 7 40 1 0 -1 0 0 0 0 0 11 22 3 4 20 0 1 0 987 1 2 3";
        let want = ProcessStat {
            parent: 7,
            group: 40,
            cpu_ticks: 11 + 22 + 3 + 4,
            system_ticks: 22 + 4,
            start_ticks: 987,
            zombie: false,
        };
        assert_eq!(parse_stat(text), Some(want));
        assert_eq!(parse_stat("42 (a) S 7"), None);
    }

    #[test]
    fn a_device_is_not_mistaken_for_one_whose_name_begins_the_same() {
        let text = "Inter-| Receive | Transmit\n face |bytes ...\n\
             veth01: 1 2 0 0 0 0 0 0 30 4 0 0 0 0 0 0\n veth0: 5 6 0 0 0 0 0 0 70 8 0 0 0 0 0 0\n";
        assert_eq!(parse_device_sent(text, "veth0"), Some((70, 8)));
        assert_eq!(parse_device_sent(text, "veth"), None);
    }

    #[test]
    fn only_a_listening_socket_of_that_port_counts() {
        let table = "  sl  local_address rem_address   st\n\
             0: 0100007F:1F90 00000000:0000 0A 0:0\n   1: 0100007F:0050 0200007F:0001 01 0:0\n";
        assert!(has_listener(table, 8080));
        assert!(!has_listener(table, 80));
    }

    #[test]
    fn this_process_is_in_its_own_tree_and_has_memory() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(tree(own).contains(&own));
        assert!(resident_bytes(own) > 100_000);
        assert!(stat(own).unwrap().start_ticks > 0);
    }
}
