//! A page made from kept results: every plot and figure is there, nothing is fetched.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use shortline_load::record::{Failure, RequestRecord, read_records, write_records};
use shortline_load::trace::{Request, write_csv};
use tempfile::TempDir;

use crate::LabError;
use crate::run::pass::report;
use crate::study::KeptError;
use crate::study::kept::{Carried, records_file, samples_file, seed_folder, whole_file};
use crate::study::plan::{Plan, read_json, write_json};
use crate::study::point::{Arrivals, Point};
use shortline_testbed::bed::Counters;
use shortline_testbed::instruments::Cost;
use shortline_testbed::instruments::sample::{Sample, write_csv as write_samples};

/// Results of an experiment with two servers, of which the first is twice as fast.
fn kept(experiment: &str, points: Vec<Point>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    keep(folder.path(), experiment, points);
    folder
}

/// The same in `folder`.
pub fn keep(folder: &Path, experiment: &str, points: Vec<Point>) {
    let plan = Plan {
        experiment: experiment.into(),
        points,
        servers: vec!["srpt".into(), "nginx".into()],
        seeds: vec![1],
    };
    plan.add_to(folder).unwrap();
    std::fs::write(folder.join("experiment.txt"), experiment).unwrap();
    for point in &plan.points {
        let folder = seed_folder(folder, point, 1);
        std::fs::create_dir_all(&folder).unwrap();
        for (server, pace) in [("srpt", 0.5), ("nginx", 1.0)] {
            keep_run(&folder, server, pace);
        }
    }
}

/// The kept result of a run of `server`, and its path.
fn kept_run(folder: &Path, point: &Point, server: &str) -> (Carried, std::path::PathBuf) {
    let path = whole_file(&seed_folder(folder, point, 1), server);
    (read_json(&path).unwrap(), path)
}

fn keep_run(folder: &Path, server: &str, pace: f64) {
    let size = |i: u32| u64::from(100 + i * i);
    let request = |i: u32| Request {
        at_ns: u64::from(i) * 10_000_000,
        path: format!("/{i}"),
        bytes: size(i),
    };
    let requests: Vec<Request> = (0..300).map(request).collect();
    write_csv(&folder.join("trace.csv"), &requests).unwrap();
    let record = |request: &Request| RequestRecord {
        first_byte_s: Some(0.001),
        ..RequestRecord::finished(
            request.at_ns as f64 / 1e9,
            &request.path,
            request.bytes,
            pace * (0.01 + request.bytes as f64 / 1e6),
        )
    };
    let mut records: Vec<RequestRecord> = requests.iter().map(record).collect();
    records[7].failure = Some(Failure::Reset);
    write_records(&records_file(folder, server), &records).unwrap();
    let carried = Carried {
        version: "a <version> & more".into(),
        kernel: "6.18".into(),
        congestion_control: "cubic".into(),
        syn_backoff: Some("each timeout doubled".into()),
        commit: Some("0123abc".into()),
        total: Counters {
            bytes: 12_000_000,
            ..Counters::default()
        },
        samples: vec![(0.0, 0), (4.0, 12_000_000)],
        wan: None,
        notes: vec!["initial RTO: as it is".into()],
        sampling: Some(Cost::default()),
    };
    let sample = |at_s| Sample {
        at_s,
        ..Sample::default()
    };
    write_samples(&samples_file(folder, server), &[sample(0.0), sample(1.0)]).unwrap();
    write_json(&whole_file(folder, server), &carried).unwrap();
}

fn page_of(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("report.html")).unwrap()
}

/// Whatever a browser would fetch or follow has `//` in it or begins with a scheme. The names of XML's
/// namespaces are not fetched.
fn assert_nothing_outside(page: &str) {
    let page = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for outside in ["http", "//", "src=", "href=", "url(", "@import", "<script"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn one_point_has_every_plot_of_a_run() {
    let folder = kept("w1", vec![Point::new("w1", Arrivals::table_one("w1"), 30)]);
    let text = report(folder.path()).unwrap();
    assert!(
        text.contains("holds: bytes carried, ratio, srpt against nginx"),
        "{text}"
    );
    assert!(
        text.contains("does not hold: mean response time of all requests, times shorter"),
        "{text}"
    );
    let page = page_of(folder.path());
    assert_nothing_outside(&page);
    let plots = [
        "over-time",
        "first-byte",
        "complementary",
        "by-size",
        "by-percentile",
        "variance",
        "stretch",
        "connections",
        "queue",
        "drops",
    ];
    for plot in plots {
        assert!(
            page.contains(&format!("<figure id=\"w1-{plot}\">")),
            "{plot}"
        );
        let data = folder.path().join(format!("report/w1-{plot}.csv"));
        let data = std::fs::read_to_string(data).unwrap();
        assert!(
            data.starts_with("series,x,y\n") && data.contains("\nsrpt,"),
            "{plot}"
        );
    }
    assert_eq!(page.matches("<figure id=").count(), plots.len());
    // Who waits is drawn below the result, and by itself.
    assert_eq!(page.matches("<figure class=\"first\">").count(), 1);
    assert!(page.contains("Visitors waiting at a time, at most:"));
    for said in [
        "000 Fig. 8",
        "1.1 s to 138 ms",
        "optimum (fluid SRPT)",
        "1 reset",
        "a &lt;version&gt; &amp; more",
        "0.0 %",
        "0.50",
    ] {
        assert!(page.contains(said), "{said}");
    }
    let figures = std::fs::read_to_string(folder.path().join("report/figures.csv")).unwrap();
    let columns: Vec<usize> = figures
        .lines()
        .map(|line| line.split(',').count())
        .collect();
    assert_eq!(columns, [29; 3]);
    for drawn in ["plot.svg", "waiting.svg", "waiting.csv"] {
        assert!(folder.path().join(drawn).exists(), "{drawn}");
    }
}

#[test]
fn the_result_is_in_the_first_line_of_text_and_page() {
    let point = Point::new("w1", Arrivals::table_one("w1"), 30);
    let folder = kept("w1", vec![point.clone()]);
    let text = report(folder.path()).unwrap();
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("Shortline answered in ")
            && first.contains(" on the mean, ")
            && first.contains(" times the best possible; nginx in "),
        "{first}"
    );
    let page = page_of(folder.path());
    let (_, main) = page.split_once("<main>").unwrap();
    let headline = format!("<p class=\"headline\">{first}</p>");
    assert!(main.starts_with(&headline), "{}", &main[..200]);

    // A void run says so there, too.
    let file = records_file(&seed_folder(folder.path(), &point, 1), "srpt");
    let mut records = read_records(&file).unwrap();
    for record in &mut records {
        record.lag_s = 1.0;
    }
    write_records(&file, &records).unwrap();
    let text = report(folder.path()).unwrap();
    let first = text.lines().next().unwrap();
    assert!(first.contains("VOID"), "{first}");
    // And it is not judged.
    let open =
        "not measured: mean response time of all requests, times shorter, srpt against nginx";
    assert!(text.contains(open), "{text}");
}

#[test]
fn the_page_says_the_congestion_control_that_was_used() {
    let point = Point::new("demo", Arrivals::table_one("w1"), 30).with(|setup| {
        setup.loopback = true;
    });
    let folder = kept("demo", vec![point.clone()]);
    for server in ["srpt", "nginx"] {
        let (carried, path) = kept_run(folder.path(), &point, server);
        let carried = Carried {
            congestion_control: "bbr".into(),
            ..carried
        };
        write_json(&path, &carried).unwrap();
    }
    let text = report(folder.path()).unwrap();
    for said in [text, page_of(folder.path())] {
        assert!(said.contains(", bbr, setup "), "{said}");
        assert!(!said.contains("cubic"), "{said}");
    }
    let (carried, path) = kept_run(folder.path(), &point, "nginx");
    let carried = Carried {
        congestion_control: "cubic".into(),
        ..carried
    };
    write_json(&path, &carried).unwrap();
    let text = report(folder.path()).unwrap();
    assert!(text.contains(", bbr and cubic, setup "), "{text}");
}

#[test]
fn several_points_have_lines_across_them() {
    let point = |load: f64| Point {
        x: Some(load),
        ..Point::new(format!("load-{load:.2}"), Arrivals::steady(load), 30)
    };
    let folder = kept("003-load", vec![point(0.8), point(0.9)]);
    let text = report(folder.path()).unwrap();
    assert!(
        text.contains("load-0.80 2.00, load-0.90 2.00") || text.contains("ours 2.00"),
        "{text}"
    );
    let page = page_of(folder.path());
    assert_nothing_outside(&page);
    let shown = [
        "mean",
        "slowdown",
        "load-0.80-by-size",
        "load-0.90-by-percentile",
        "load-0.80-variance",
        "load-0.90-stretch",
    ];
    for plot in shown {
        assert!(page.contains(&format!("<figure id=\"{plot}\">")), "{plot}");
    }
    let mean = std::fs::read_to_string(folder.path().join("report/mean.csv")).unwrap();
    let lines: Vec<&str> = mean
        .lines()
        .filter(|line| line.starts_with("nginx,0."))
        .collect();
    assert_eq!(lines.len(), 2, "{mean}");
}

#[test]
fn what_was_cut_short_says_so_and_nothing_at_all_is_an_error() {
    let point = Point::new("w1", Arrivals::table_one("w1"), 30);
    let folder = kept("w1", vec![point.clone()]);
    let seed = seed_folder(folder.path(), &point, 1);
    std::fs::remove_file(whole_file(&seed, "nginx")).unwrap();
    let text = report(folder.path()).unwrap();
    assert!(
        text.starts_with("CUT SHORT: 1 of 2 runs are kept"),
        "{text}"
    );
    assert!(
        text.contains("not measured: mean response time of all requests, times shorter"),
        "{text}"
    );
    assert!(page_of(folder.path()).contains("CUT SHORT: 1 of 2"));
    std::fs::remove_file(whole_file(&seed, "srpt")).unwrap();
    let nothing = report(folder.path()).unwrap_err();
    assert!(
        matches!(nothing, LabError::Kept(KeptError::Content { .. })),
        "{nothing}"
    );
}
