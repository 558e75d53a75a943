//! The flags of `shortline load`: their meaning, and which are refused.

#![allow(clippy::unwrap_used)]
use super::*;
use clap::Parser;
use shortline_load::workload::{LoadSchedule, arrivals_at, critical_rate};
use shortline_sched::Policy;
use shortline_sim::{Arrival, SimError, fluid};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

fn parsed(line: &str) -> Result<Args, clap::Error> {
    let words = std::iter::once("load").chain(line.split_whitespace());
    Command::try_parse_from(words).map(|command| command.args)
}

fn work(line: &str) -> Result<Work, String> {
    let args = parsed(line).unwrap();
    args.source.work().map_err(|error| error.to_string())
}

fn target(text: &str) -> Target {
    text.parse().unwrap()
}

#[test]
fn seconds_read_as_a_number_or_a_time() {
    assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
    assert_eq!(seconds("500ms"), Ok(Duration::from_millis(500)));
    for wrong in ["", "0", "-1", "NaN", "inf", "5 parsecs"] {
        assert!(seconds(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn flags_become_options() {
    let line = "--target https://[::1]:8443 --trace t --http2 --connections 3 --speed 2 \
                --requests-per-connection 5 --abort-after 7 --retries 3 --tls-insecure \
                --source ::1=3,::2";
    let args = parsed(line).unwrap();
    let work = Work::Open(Vec::new());
    let options = options(&args, target("https://[::1]:8443"), work);
    assert_eq!(options.protocol, Protocol::Http2);
    assert_eq!(options.connections.get(), 3);
    assert_eq!(options.requests_per_connection.unwrap().get(), 5);
    assert_eq!(options.abort_after, Some(Duration::from_secs(7)));
    assert_eq!((options.retries, options.speed), (3, 2.0));
    assert_eq!(options.trust, Some(Trust::Anyone));
    assert_eq!((options.sources[0].share, options.sources.len()), (3.0, 2));
    assert_eq!(options.drain, Duration::from_secs(60));
    assert_eq!(options.length, None);
}

#[test]
fn what_contradicts_itself_is_refused() {
    for line in [
        "--target http://h --twin nasa --critical-rate --users 3",
        "--target http://h --critical-rate --trace t",
        "--trace t",
        "--target ftp://x --trace t",
        "--target http://x --trace t --retries 2",
        "--target http://x --trace t --connections 2",
        "--target http://x --trace t --requests-per-connection 0",
        "--target http://x --trace t --tls-insecure --tls-ca f",
        "--target http://x --trace t --surge",
        "--target http://x --surge --twin nasa",
        "--target http://x --surge surge-002",
        "--target http://x --twin nasal",
        "--target http://x --trace t --users 5",
        "--target http://x --surge --users 0",
        "--target http://x --surge --users 5 --open",
        "--target http://x --surge --users 5 --schedule w1 --uplink 1mbit",
        "--target http://x --surge --schedule w1",
        "--target http://x --surge --schedule w11 --uplink 1mbit",
        "--target http://x --surge --schedule w1 --uplink 1mbit --speed 2",
        "--target http://x --surge --write-site d",
    ] {
        assert!(parsed(line).is_err(), "{line}");
    }
}

#[test]
fn trust_without_tls_is_refused() {
    let args = parsed("--target http://x --trace t --tls-insecure").unwrap();
    assert_eq!(
        check_trust(&args, &target("http://x"))
            .unwrap_err()
            .to_string(),
        "--tls-insecure with --target http://x: want an https target or no such flag"
    );
    assert!(check_trust(&args, &target("https://x")).is_ok());
}

#[test]
fn a_workload_needs_files_and_a_load() {
    assert_eq!(
        work("--target http://x").unwrap_err(),
        "no workload: want --trace FILE, --surge or --twin NAME"
    );
    assert_eq!(
        work("--target http://x --surge").unwrap_err(),
        "surge-003 without a load: want --users N (closed loop), or --schedule S and --uplink \
         RATE (open loop)"
    );
    let idle = work("--target http://x --twin nasa --schedule 0.0001 --uplink 1bit").unwrap_err();
    assert!(
        idle.starts_with("--schedule 0.0001: no request in 100 s"),
        "{idle}"
    );
}

#[test]
fn an_open_workload_has_the_load_of_its_schedule() {
    for (site, mean_bytes) in [("--twin world-cup", 5_000.0), ("--twin nasa", 19_000.0)] {
        let line = format!("--target http://x {site} --schedule 0.5 --uplink 10mbit");
        let Ok(Work::Open(requests)) = work(&line) else {
            panic!("{line}: not open");
        };
        // 0.5 of the link for 100 s is 62.5 MB, about the body bytes of the requests; their
        // number is Poisson.
        let most = 62.5e6 / mean_bytes;
        let count = requests.len() as f64;
        assert!((0.7 * most..most).contains(&count), "{site}: {count}");
        assert!(
            requests
                .iter()
                .all(|request| request.at_ns < 100_000_000_000)
        );
    }
}

#[test]
fn users_go_on_for_the_seconds_given() {
    let line = "--target http://x --surge surge-003 --users 7 --seconds 5";
    let args = parsed(line).unwrap();
    assert_eq!(args.source.length(), Some(Duration::from_secs(5)));
    let Ok(Work::Users(users)) = work(line) else {
        panic!("not users");
    };
    assert_eq!(users.users(), 7);
}

/// The simulator's link serves in any order. So the critical rate measured on it is that of its
/// bytes (003, 4.2.3: both ways of finding a load must agree).
#[test]
fn the_critical_rate_measured_on_the_simulated_link_is_the_analytical_one() {
    const RATE: Rate = Rate::from_bps(10_000_000);
    const SECONDS: u64 = 300;
    let site = "world-cup".parse::<SiteName>().unwrap().site();
    let analytical = RATE.bps() as f64 / 8.0 / site.mean_wire_bytes(wire_bytes);
    let always = "1".parse::<LoadSchedule>().unwrap();
    let served = |rate_per_s: f64, policy: Policy| {
        let length = Duration::from_secs(SECONDS);
        let requests = arrivals_at(&always, rate_per_s, length, 1, &site);
        let arrivals: Vec<Arrival> = requests
            .map(|(at_ns, file)| Arrival {
                at_ns,
                bytes: wire_bytes(file.bytes),
            })
            .collect();
        let sojourns_ns = fluid(&arrivals, RATE.bps(), policy)?;
        let asked: u64 = arrivals.iter().map(|arrival| arrival.bytes).sum();
        let in_time = |(arrival, sojourn_ns): &(&Arrival, u64)| {
            arrival.at_ns + sojourn_ns <= SECONDS * 1_000_000_000
        };
        let carried = arrivals.iter().zip(sojourns_ns).filter(in_time);
        let carried: u64 = carried.map(|(arrival, _)| arrival.bytes).sum();
        Ok::<_, SimError>(carried as f64 >= 0.97 * asked as f64)
    };
    for policy in [Policy::Fair, Policy::Srpt] {
        let measured = critical_rate(10.0, 0.01, |rate| served(rate, policy)).unwrap();
        let ratio = measured / analytical;
        assert!((0.95..1.07).contains(&ratio), "{policy}: {ratio}");
    }
}
