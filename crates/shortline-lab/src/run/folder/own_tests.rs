//! Reports on a study of a user's own trace, on a load that was not reached, and where no bound is.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use super::report_tests::keep;
use super::write_name;
use crate::run::pass::report;
use crate::study::design::Kind;
use crate::study::file::{self, Traces};
use crate::study::kept::{Carried, seed_folder, whole_file};
use crate::study::offered::Offered;
use crate::study::plan::{read_json, write_json};
use crate::study::point::{Arrivals, Point};
use shortline_testbed::bed::setup::Abort;
use shortline_testbed::wan::loss::Loss;

/// A study of a trace, with the plots and the claims of the catalogue's `w1`.
const OWN: &str = r#"
servers = ["srpt", "nginx"]

[setup]
trace = "access.log"
rate = "20mbit"
time = "30s"

[[figure]]
claim = "srpt is twice as fast"
shows = ["over-time", "by-size", "complementary", "stretch"]
check = [
  { measure = "mean-gain", at-least = 1.9 },
  { measure = "over-optimum", of = "srpt", at-most = 100 },
]
"#;

fn w1() -> Point {
    Point::new("w1", Arrivals::table_one("w1"), 30)
}

/// Results of the catalogue's `w1` at this point, changed by `change`, and the report on them.
fn reported(point: &Point, change: impl FnOnce(&Path)) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    keep(folder.path(), "w1", vec![point.clone()]);
    change(&seed_folder(folder.path(), point, 1));
    let text = report(folder.path()).unwrap();
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    (text, page)
}

#[test]
fn a_study_of_a_users_trace_has_the_same_report() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    std::fs::write(
        &log,
        "h - - [26/Nov/2026:10:00:00 +0000] \"GET /a HTTP/1.1\" 200 1000\n",
    )
    .unwrap();
    let name = folder.path().join("mine.toml");
    let study = file::parse(&name, "mine", OWN, Traces::Beside(folder.path())).unwrap();
    let Kind::Uplink(design) = study.kind else {
        panic!("is of another kind");
    };
    let [point] = &design.points[..] else {
        panic!("has several points");
    };
    let path = log.canonicalize().unwrap();
    assert_eq!(point.arrivals, Arrivals::Trace(path));
    assert_eq!((point.rate.bps(), point.seconds), (20_000_000, 30));

    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    write_name(&out, "mine", Some(OWN)).unwrap();
    keep(&out, "mine", vec![point.clone()]);
    let text = report(&out).unwrap();
    assert!(
        text.contains("holds: mean response time of all requests"),
        "{text}"
    );
    assert!(
        text.contains("the requests of") && text.contains("fluid SRPT"),
        "{text}"
    );
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    for plot in ["over-time", "by-size", "complementary", "stretch"] {
        assert!(
            page.contains(&format!("<figure id=\"mine-{plot}\">")),
            "{plot}"
        );
    }
    assert!(page.contains("optimum (fluid SRPT)") && page.contains("srpt is twice as fast"));
}

#[test]
fn a_load_that_was_not_reached_is_told_and_not_judged() {
    let offered = Offered {
        users: Some(60),
        requests: 2_000,
        wire_bytes: 30_000_000,
        link_bytes: 75_000_000,
        wanted_load: Some(1.0),
    };
    let (text, page) = reported(&w1(), |folder| offered.write(folder).unwrap());
    let told = "60 users ask for 30.0 MB at most of the 75.0 MB that the link carries meanwhile, a \
                load of 0.40: load not reached, want 1.00";
    assert!(text.contains(told) && page.contains(told), "{text}");
    assert!(
        text.contains("not measured: bytes carried, ratio"),
        "{text}"
    );
    assert!(
        !text.contains("holds: ") && !text.contains("does not hold: "),
        "{text}"
    );

    let reached = Offered {
        wire_bytes: 74_000_000,
        ..offered
    };
    let (text, _) = reported(&w1(), |folder| reached.write(folder).unwrap());
    assert!(text.contains("holds: bytes carried, ratio"), "{text}");
    assert!(text.contains("a load of 0.99\n"), "{text}");
}

#[test]
fn there_is_no_bound_where_packets_are_sent_again() {
    let drops = |servers: &'static [&'static str]| {
        move |folder: &Path| {
            for server in servers {
                let path = whole_file(folder, server);
                let mut carried: Carried = read_json(&path).unwrap();
                carried.total.drops = 3;
                write_json(&path, &carried).unwrap();
            }
        }
    };
    let lossy = w1().with(|setup| {
        setup.environment.groups[0].down.loss = Loss::Uniform { probability: 0.05 };
    });
    let impatient = w1().with(|setup| {
        setup.environment.abort = Some(Abort {
            after: "7s".parse().unwrap(),
            retries: 6,
        });
    });
    let (text, _) = reported(&w1(), drops(&["nginx"]));
    assert!(
        text.contains("fluid SRPT") && !text.contains("no bound"),
        "{text}"
    );
    for (point, servers, reason) in [
        (
            w1(),
            &["srpt", "nginx"][..],
            "every server had packets dropped",
        ),
        (lossy, &[], "the networks lose packets"),
        (impatient, &[], "users give up"),
    ] {
        let (text, page) = reported(&point, drops(servers));
        assert!(text.contains(&format!("no bound here: {reason}")), "{text}");
        assert!(
            page.contains(&format!("No bound here: {reason}")),
            "{reason}"
        );
        assert!(!text.contains("fluid SRPT"), "{text}");
    }
}
