//! Who asks: wrk over HTTP/1.1, h2load over HTTP/2 and, at a given rate, over both.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::LabError;
use crate::study::versus::Row;
use shortline_testbed::process::Process;
use shortline_testbed::{Place, Testbed, command};

/// Connections of wrk.
const CONNECTIONS: u32 = 64;
/// Connections of h2load, and streams of each.
const CONNECTIONS_HTTP2: u32 = 16;
const STREAMS: u32 = 32;
/// How much longer than its load a generator may take.
const SPARE: Duration = Duration::from_secs(30);

/// The programs, and where they run.
pub struct Generators<'a> {
    testbed: &'a Testbed,
    place: Place,
    wrk: PathBuf,
    h2load: PathBuf,
}

/// Of bodies as long as this what was read of them counts, not how many ended: when a second is over, those of 64 clients may all
/// be under way.
const LONG_BYTES_MIN: usize = 1_000_000;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Requests that were answered; of long bodies, as many as the bytes that came are.
    pub requests: u64,
    /// The time it took, in seconds.
    pub wall_s: f64,
}

impl<'a> Generators<'a> {
    /// Finds the programs.
    ///
    /// # Errors
    /// One is not installed.
    pub fn new(testbed: &'a Testbed, place: Place) -> Result<Self, LabError> {
        Ok(Self {
            testbed,
            place,
            wrk: command::find("wrk", "wrk")?,
            h2load: command::find("h2load", "nghttp2-client")?,
        })
    }

    /// As many requests as are answered in `length`.
    ///
    /// # Errors
    /// A generator fails, or a response does.
    pub fn load(&self, row: &Row, port: u16, length: Duration) -> Result<Work, LabError> {
        let url = url(row, port);
        let seconds = length.as_secs().max(1);
        let said = if row.speech.http2 {
            let mut arguments = streams();
            arguments.extend(["-D".into(), seconds.to_string(), url.clone()]);
            self.run("h2load", &self.h2load, &arguments, seconds)?
        } else {
            let mut arguments = vec![
                "-t1".to_owned(),
                format!("-c{CONNECTIONS}"),
                format!("-d{seconds}s"),
            ];
            if row.connects {
                arguments.extend(["-H".into(), "Connection: close".into()]);
            }
            arguments.push(url.clone());
            self.run("wrk", &self.wrk, &arguments, seconds)?
        };
        let parsed = if row.speech.http2 {
            parse_h2load(&said)
        } else {
            parse_wrk(&said).and_then(|work| match row.body_bytes >= LONG_BYTES_MIN {
                true => Some(Work {
                    requests: (bytes_read(&said)? / row.body_bytes as f64).round() as u64,
                    ..work
                }),
                false => Some(work),
            })
        };
        parsed.ok_or_else(|| wrong(&url, &said))
    }

    /// The median and the 99th percentile of response times at `per_s` requests a second, in seconds.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn latency(
        &self,
        row: &Row,
        port: u16,
        per_s: f64,
        seconds: u64,
    ) -> Result<(f64, f64), LabError> {
        let url = url(row, port);
        let log = self.testbed.scratch().join(format!("latency-{port}.log"));
        let mut arguments = if row.speech.http2 {
            streams()
        } else {
            vec![format!("-c{CONNECTIONS}"), "--h1".into()]
        };
        let clients = if row.speech.http2 {
            CONNECTIONS_HTTP2
        } else {
            CONNECTIONS
        };
        arguments.extend([
            format!("--rps={:.3}", per_s / f64::from(clients)),
            format!("--log-file={}", log.display()),
            "-D".into(),
            seconds.to_string(),
            url.clone(),
        ]);
        let said = self.run("h2load", &self.h2load, &arguments, seconds)?;
        let text = fs::read_to_string(&log).map_err(LabError::file(&log))?;
        let _ = fs::remove_file(&log);
        percentiles(&text).ok_or_else(|| wrong(&url, &said))
    }

    /// Runs a program to its end, and returns what it said.
    fn run(
        &self,
        name: &str,
        program: &std::path::Path,
        arguments: &[String],
        seconds: u64,
    ) -> Result<String, LabError> {
        let log = self.testbed.log(name);
        let process = Process::start(self.testbed, &self.place, program, arguments, &log)?;
        process.finish(name, Duration::from_secs(seconds) + SPARE)?;
        fs::read_to_string(log.path()).map_err(LabError::file(log.path()))
    }
}

fn url(row: &Row, port: u16) -> String {
    let scheme = if row.speech.tls { "https" } else { "http" };
    format!("{scheme}://127.0.0.1:{port}/{}.bin", row.body_bytes)
}

fn streams() -> Vec<String> {
    vec![format!("-c{CONNECTIONS_HTTP2}"), format!("-m{STREAMS}")]
}

fn wrong(url: &str, said: &str) -> LabError {
    let problem = format!("no count, or errors: {}", said.replace('\n', " "));
    LabError::failed(format!("load on {url}"), &problem)
}

/// The requests and seconds of a line such as `  83420 requests in 5.00s, 93.2MB read`; `None` also if any failed.
pub fn parse_wrk(said: &str) -> Option<Work> {
    if said.contains("Non-2xx") || said.contains("Socket errors") {
        return None;
    }
    let line = said.lines().find(|line| line.contains(" requests in "))?;
    let (requests, rest) = line.trim().split_once(" requests in ")?;
    let wall_s = seconds(rest.split(',').next()?)?;
    Some(Work {
        requests: requests.parse().ok()?,
        wall_s,
    })
}

/// The bytes of the same line. Its units are of 1024.
fn bytes_read(said: &str) -> Option<f64> {
    let text = said.lines().find_map(|line| line.strip_suffix(" read"))?;
    let of = |power| 1024f64.powi(power);
    let units = [("KB", of(1)), ("MB", of(2)), ("GB", of(3)), ("B", 1.0)];
    scaled(text.rsplit(' ').next()?, &units)
}

/// The same of h2load: `finished in 2.00s, ...` and `requests: 9 total, 9 started, 9 done, 9 succeeded, 0 failed, ...`.
fn parse_h2load(said: &str) -> Option<Work> {
    let after = |words: &str| {
        let line = said
            .lines()
            .find_map(|line| line.trim().strip_prefix(words));
        line.map(str::trim)
    };
    let wall_s = seconds(after("finished in ")?.split(',').next()?)?;
    let counts = after("requests:")?;
    let count = |word: &str| {
        let part = counts.split(',').find(|part| part.trim().ends_with(word))?;
        part.trim().split(' ').next()?.parse::<u64>().ok()
    };
    let statuses = after("status codes:")?;
    let is_sound = count("failed")? == 0
        && count("errored")? == 0
        && ["0 3xx", "0 4xx", "0 5xx"]
            .iter()
            .all(|none| statuses.contains(none));
    let requests = count("succeeded").filter(|count| is_sound && *count > 0)?;
    Some(Work { requests, wall_s })
}

/// A time such as `2.00s`, `1.50m` or `800.00ms`.
fn seconds(text: &str) -> Option<f64> {
    scaled(text, &[("ms", 1e-3), ("us", 1e-6), ("m", 60.0), ("s", 1.0)])
}

/// A number with the first of these units that it ends with.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    units.iter().find_map(|(unit, factor)| {
        let number: f64 = text.trim().strip_suffix(unit)?.parse().ok()?;
        Some(number * factor)
    })
}

/// The median and the 99th percentile of a log of h2load: start, status and microseconds a line. `None` if one failed.
fn percentiles(log: &str) -> Option<(f64, f64)> {
    let mut times_us = Vec::new();
    for line in log.lines() {
        let mut fields = line.split('\t').skip(1);
        if fields.next()? != "200" {
            return None;
        }
        times_us.push(fields.next()?.trim().parse::<u64>().ok()?);
    }
    times_us.sort_unstable();
    let at = |share: f64| {
        let place = (share * (times_us.len().checked_sub(1)? as f64)).round();
        times_us.get(place as usize).map(|us| *us as f64 / 1e6)
    };
    Some((at(0.5)?, at(0.99)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn wrk_is_understood() {
        let said = "Running 5s test @ http://127.0.0.1/\n  83420 requests in 5.01s, 93.2MB read\nRequests/sec: 1\n";
        let work = parse_wrk(said).unwrap();
        assert_eq!((work.requests, work.wall_s), (83_420, 5.01));
        assert_eq!(
            parse_wrk("  12 requests in 1.50m, 1MB read")
                .unwrap()
                .wall_s,
            90.0
        );
        assert_eq!(bytes_read(said), Some(93.2 * 1024.0 * 1024.0));
        assert_eq!(
            bytes_read("  1 requests in 1.00s, 1.50GB read"),
            Some(1.5 * 1024.0 * 1024.0 * 1024.0)
        );
        assert_eq!(
            bytes_read("  1 requests in 1.00s, 812.00B read"),
            Some(812.0)
        );
        assert_eq!(parse_wrk("unable to connect"), None);
        assert_eq!(
            parse_wrk(&format!("{said}  Non-2xx or 3xx responses: 3")),
            None
        );
    }

    #[test]
    fn h2load_is_understood() {
        let said = |failed: u64, status: &str| {
            format!(
                "progress\n\nfinished in 2.00s, 48000 req/s, 46MB/s\nrequests: 96000 total, 96512 started, 96000 done, \
                 96000 succeeded, {failed} failed, 0 errored, 0 timeout\nstatus codes: 96000 2xx, {status}\n"
            )
        };
        let sound = "0 3xx, 0 4xx, 0 5xx";
        let work = parse_h2load(&said(0, sound)).unwrap();
        assert_eq!((work.requests, work.wall_s), (96_000, 2.0));
        assert_eq!(parse_h2load(&said(1, sound)), None);
        assert_eq!(parse_h2load(&said(0, "0 3xx, 7 4xx, 0 5xx")), None);
    }

    #[test]
    fn percentiles_are_those_of_the_log() {
        let line = |us: u64| format!("1700000000000000\t200\t{us}\n");
        let log: String = (1..=101).map(line).collect();
        assert_eq!(percentiles(&log), Some((51e-6, 100e-6)));
        assert_eq!(percentiles("1\t503\t5\n"), None);
        assert_eq!(percentiles(""), None);
    }
}
