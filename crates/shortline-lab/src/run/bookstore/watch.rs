//! Samples the gate's `/status` during a run, twice a second.
//!
//! It yields the waits of each type in the gate, the capacity over time, and the time at which a type's
//! estimate came within a tenth of its value in the last quarter of the run (002, 3.1: "converge to within
//! 90 percent of their steady state values").

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde::Deserialize;

use crate::LabError;
use crate::study::shop::gate_seen::{GateSeen, Wait};

/// The time between samples.
pub const EVERY: Duration = Duration::from_millis(500);
/// How long the gate may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// The longest answer.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// An estimate has converged when it is within this share of its final value.
const CONVERGED: f64 = 0.1;
/// The last part of a run, as a share, in which estimates are taken as steady.
const STEADY: f64 = 0.25;
/// The prefix of a type that is a route.
const ROUTE: &str = "route /";
/// Types with fewer requests in a run are too rare to judge.
const REQUESTS_MIN: u64 = 3;

/// The gate at one moment.
#[derive(Clone, Debug)]
pub struct Look {
    /// Seconds after the run's beginning.
    pub at_s: f64,
    status: Status,
}

/// The part of `/status` that is used.
#[derive(Clone, Debug, Deserialize)]
struct Status {
    admission: Admission,
}

#[derive(Clone, Debug, Deserialize)]
struct Admission {
    capacity_ns: Option<u64>,
    types: Vec<Type>,
}

#[derive(Clone, Debug, Deserialize)]
struct Type {
    /// The gate's name for it: `route /home`, from the tag of the application's statements.
    name: String,
    estimate_ns: u64,
    admitted: u64,
    waited_ns_sum: u64,
}

impl Look {
    /// Asks the gate's admin endpoint.
    ///
    /// # Errors
    /// If it does not answer, or answers with something else.
    pub fn take(admin: SocketAddr, at_s: f64) -> Result<Self, LabError> {
        let answer = ask(admin).map_err(|error| LabError::failed("the gate's status", &error))?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let mut status: Status = serde_json::from_str(body)
            .map_err(|error| LabError::failed("the gate's status", &error))?;
        for each in &mut status.admission.types {
            if let Some(route) = each.name.strip_prefix(ROUTE) {
                each.name = route.to_owned();
            }
        }
        Ok(Self { at_s, status })
    }

    fn of(&self, name: &str) -> Option<&Type> {
        let types = &self.status.admission.types;
        types.iter().find(|each| each.name == name)
    }
}

/// One request over a connection of its own (RFC 9112), which ends with the answer.
fn ask(admin: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&admin, ANSWER_MAX)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    write!(
        stream,
        "GET /status HTTP/1.1\r\nhost: {admin}\r\nconnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
    Ok(answer)
}

/// The figures of the gate from samples in order. Waits before `warm_up_s` do not count.
pub fn gate_seen(looks: &[Look], warm_up_s: f64) -> GateSeen {
    let Some(last) = looks.last() else {
        return GateSeen::default();
    };
    let first = looks.iter().find(|look| look.at_s >= warm_up_s);
    let mut seen = GateSeen {
        capacity: looks.iter().filter_map(capacity).collect(),
        ..GateSeen::default()
    };
    for each in &last.status.admission.types {
        if each.admitted < REQUESTS_MIN {
            continue;
        }
        let name = each.name.clone();
        let before = first.and_then(|look| look.of(&name));
        let before = before.map_or((0, 0), |then| (then.admitted, then.waited_ns_sum));
        let admitted = each.admitted.saturating_sub(before.0);
        if admitted > 0 {
            let waited_ns = each.waited_ns_sum.saturating_sub(before.1);
            let mean_s = waited_ns as f64 / 1e9 / admitted as f64;
            seen.waits.insert(name.clone(), Wait { admitted, mean_s });
        }
        seen.converged_s
            .insert(name.clone(), converged_s(looks, &name));
        seen.estimates_s.insert(name, each.estimate_ns as f64 / 1e9);
    }
    seen
}

fn capacity(look: &Look) -> Option<(f64, f64)> {
    let capacity_ns = look.status.admission.capacity_ns?;
    Some((look.at_s, capacity_ns as f64 / 1e9))
}

/// When the estimate of a type had converged.
fn converged_s(looks: &[Look], name: &str) -> Option<f64> {
    let estimates: Vec<(f64, f64)> = looks
        .iter()
        .filter_map(|look| {
            let each = look.of(name).filter(|each| each.admitted > 0)?;
            Some((look.at_s, each.estimate_ns as f64))
        })
        .collect();
    let end_s = looks.last()?.at_s;
    let steady = estimates
        .iter()
        .filter(|(at_s, _)| *at_s >= (1.0 - STEADY) * end_s);
    let (sum, count) = steady.fold((0.0, 0.0), |(sum, count), (_, estimate)| {
        (sum + estimate, count + 1.0)
    });
    let steady = sum / count;
    let near = |estimate: f64| (estimate / steady - 1.0).abs() <= CONVERGED;
    let found = estimates.iter().find(|(_, estimate)| near(*estimate))?;
    Some(found.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at_s: f64, estimate_ns: u64, admitted: u64) -> Look {
        let home = Type {
            name: "home".into(),
            estimate_ns,
            admitted,
            waited_ns_sum: admitted * 1_000_000_000,
        };
        Look {
            at_s,
            status: Status {
                admission: Admission {
                    capacity_ns: Some(2_000_000_000),
                    types: vec![home],
                },
            },
        }
    }

    #[test]
    fn waits_count_after_the_warm_up_and_estimates_converge_once() {
        let looks = [
            look(0.0, 50, 1),
            look(1.0, 80, 2),
            look(2.0, 95, 4),
            look(3.0, 105, 8),
            look(4.0, 95, 16),
        ];
        let seen = gate_seen(&looks, 2.0);
        assert_eq!(seen.waits["home"].admitted, 12);
        assert_eq!(seen.waits["home"].mean_s, 1.0);
        assert_eq!(seen.converged_s["home"], Some(2.0));
        assert_eq!(seen.capacity.len(), 5);
        assert!(gate_seen(&[], 1.0).waits.is_empty());
    }
}
