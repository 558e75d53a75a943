//! One sample of everything, as a line of CSV, and the file read back by the names of its columns.
//! Counters are totals since the bed was made. `_s` are seconds, `_bytes` bytes, the others numbers.

use std::fs;
use std::io::Write;
use std::path::Path;

use shortline_base::netlink::QdiscCounters;

use super::counters::TcpCounters;
use super::sockets::SocketCounts;
use super::status::Discovered;
use super::usage::Usage;
use crate::TestbedError;

/// One sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Seconds after the first sample.
    pub at_s: f64,
    /// TCP sockets of the server's namespace.
    pub sockets: SocketCounts,
    /// Its TCP counters.
    pub counters: TcpCounters,
    /// The uplink's queue.
    pub queue: QdiscCounters,
    /// The rate of the uplink's link, in bits per second.
    pub rate_bps: u64,
    /// The uplink as our own server found it.
    pub discovered: Discovered,
    /// The server's processes.
    pub server: Usage,
    /// The generator's.
    pub generator: Usage,
}

const COLUMNS: usize = 29;

impl Sample {
    /// The names and values of the columns, in order.
    fn columns(&self) -> [(&'static str, f64); COLUMNS] {
        let Self {
            at_s,
            sockets,
            counters,
            queue,
            rate_bps,
            discovered,
            server,
            generator,
        } = self;
        [
            ("at_s", *at_s),
            ("connections", sockets.connections() as f64),
            ("syn_queue", sockets.syn_recv as f64),
            ("accept_queue", sockets.accept_queue as f64),
            ("accept_queue_max", sockets.accept_queue_max as f64),
            ("established", sockets.established as f64),
            ("fin_wait1", sockets.fin_wait1 as f64),
            ("fin_wait2", sockets.fin_wait2 as f64),
            ("close_wait", sockets.close_wait as f64),
            ("last_ack", sockets.last_ack as f64),
            ("closing", sockets.closing as f64),
            ("time_wait", sockets.time_wait as f64),
            ("listen_drops", counters.listen_drops as f64),
            ("accept_drops", counters.accept_drops as f64),
            ("syn_queue_full", counters.syn_queue_full as f64),
            ("syn_cookies", counters.syn_cookies as f64),
            ("retransmitted", counters.retransmitted as f64),
            ("timeouts", counters.timeouts as f64),
            ("queue_packets", queue.backlog_packets as f64),
            ("queue_bytes", queue.backlog_bytes as f64),
            ("queue_drops", queue.drops as f64),
            ("queue_sent_bytes", queue.sent_bytes as f64),
            ("link_rate_bps", *rate_bps as f64),
            ("estimate_bps", discovered.estimate_bps as f64),
            ("uplink_state", discovered.state as f64),
            ("server_cpu_s", server.cpu_s),
            ("server_resident_bytes", server.resident_bytes as f64),
            ("generator_cpu_s", generator.cpu_s),
            ("generator_resident_bytes", generator.resident_bytes as f64),
        ]
    }
}

/// Writes the samples to `path`.
///
/// # Errors
/// If it cannot be written.
pub fn write_csv(path: &Path, samples: &[Sample]) -> Result<(), TestbedError> {
    let joined = |texts: [String; COLUMNS]| texts.join(",");
    let names = Sample::default().columns().map(|(name, _)| name.to_owned());
    let mut text = joined(names) + "\n";
    for sample in samples {
        // Whole numbers print without a fraction, seconds to the millisecond.
        let values = sample.columns().map(|(name, value)| match name {
            "at_s" => format!("{value:.3}"),
            _ => format!("{}", (value * 100.0).round() / 100.0),
        });
        text += &(joined(values) + "\n");
    }
    let mut file = fs::File::create(path).map_err(TestbedError::file(path))?;
    file.write_all(text.as_bytes())
        .map_err(TestbedError::file(path))
}

/// A file of samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    names: Vec<String>,
    rows: Vec<Vec<f64>>,
}

impl Samples {
    /// Reads a file that [`write_csv`] wrote, in this version or another: there may be more or fewer
    /// columns.
    ///
    /// # Errors
    /// If there is no such file, or it is not a table of numbers.
    pub fn read(path: &Path) -> Result<Self, TestbedError> {
        let text = fs::read_to_string(path).map_err(TestbedError::file(path))?;
        let mut lines = text.lines();
        let names = lines.next().unwrap_or_default().split(',');
        let names: Vec<String> = names.map(str::to_owned).collect();
        let mut rows = Vec::new();
        for (line, number) in lines.zip(2..) {
            let values = line
                .split(',')
                .map(str::parse)
                .collect::<Result<Vec<f64>, _>>();
            match values {
                Ok(values) if values.len() == names.len() => rows.push(values),
                _ => {
                    let problem = format!("line {number} is not {} numbers", names.len());
                    return Err(TestbedError::content(path)(problem));
                }
            }
        }
        Ok(Self { names, rows })
    }

    /// A column over time. `None` if there is none of that name.
    pub fn column(&self, name: &str) -> Option<impl Iterator<Item = f64> + '_> {
        let at = self.names.iter().position(|candidate| candidate == name)?;
        Some(self.rows.iter().map(move |row| row[at]))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_written_is_read_by_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.csv");
        let second = Sample {
            at_s: 0.1234,
            sockets: SocketCounts {
                established: 7,
                accept_queue: 2,
                ..SocketCounts::default()
            },
            server: Usage {
                cpu_s: 1.25,
                resident_bytes: 5_000_000_000,
            },
            ..Sample::default()
        };
        write_csv(&path, &[Sample::default(), second]).unwrap();
        let samples = Samples::read(&path).unwrap();
        let column = |name: &str| samples.column(name).unwrap().collect::<Vec<f64>>();
        assert_eq!(column("at_s"), [0.0, 0.123]);
        assert_eq!(column("connections"), [0.0, 5.0]);
        assert_eq!(column("server_cpu_s"), [0.0, 1.25]);
        assert_eq!(column("server_resident_bytes"), [0.0, 5e9]);
        assert!(samples.column("no such").is_none());
    }

    #[test]
    fn a_line_that_is_cut_short_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.csv");
        fs::write(&path, "at_s,connections\n0,1\n0.1\n").unwrap();
        let error = Samples::read(&path).unwrap_err().to_string();
        assert!(error.contains("line 3 is not 2 numbers"), "{error}");
    }
}
