//! The page of claims, made from the folders of two small passes.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::report;
use crate::run::folder::report_tests::keep;
use crate::study::point::{Arrivals, Point};

/// Results of Fig. 8 of 000 and, at two loads, of Figs. 3 to 6 of 003, in which SRPT is twice as fast as
/// FAIR. One folder has no finished run.
fn pass() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let inside = |name: &str| {
        let inside = folder.path().join(name);
        fs::create_dir(&inside).unwrap();
        inside
    };
    let w1 = Point::new("w1", Arrivals::table_one("w1"), 30);
    keep(&inside("w1 seed"), "w1", vec![w1]);
    let load = |load: f64| Point {
        x: Some(load),
        ..Point::new(format!("load-{load:.2}"), Arrivals::steady(load), 20)
    };
    let loads = inside("003-load");
    keep(&loads, "003-load", vec![load(0.5), load(0.8)]);
    fs::write(loads.join("bed.txt"), "virtual\n").unwrap();
    fs::write(inside("000-rtt").join("experiment.txt"), "000-rtt").unwrap();
    fs::write(inside("notes").join("notes.txt"), "no results").unwrap();
    folder
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

fn lines_of<'a>(text: &'a str, begin: &str) -> Vec<&'a str> {
    let lines = text.lines();
    lines.filter(|line| line.starts_with(begin)).collect()
}

#[test]
fn a_pass_whose_runs_are_elsewhere_tells_what_it_kept() {
    let measured = pass();
    report(measured.path()).unwrap();
    let kept = tempfile::tempdir().unwrap();
    let claims = read(measured.path(), "claims.json");
    fs::write(kept.path().join("claims.json"), &claims).unwrap();
    report(kept.path()).unwrap();
    assert_eq!(read(kept.path(), "claims.json"), claims);
    let unlinked = read(measured.path(), "claims.md")
        .replace("[w1 seed](w1%20seed/)", "w1 seed")
        .replace("[003-load](003-load/)", "003-load");
    assert_eq!(read(kept.path(), "claims.md"), unlinked);
    assert!(!read(kept.path(), "claims.html").contains("href"));
}

#[test]
fn the_projects_page_of_claims_is_what_it_keeps() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/papers");
    let folder = tempfile::tempdir().unwrap();
    for file in ["claims.json", "why.md"] {
        fs::copy(project.join(file), folder.path().join(file)).unwrap();
    }
    report(folder.path()).unwrap();
    for file in ["claims.json", "claims.md"] {
        let stale = "stale: run `shortline lab report docs/results/papers`";
        assert!(
            read(folder.path(), file) == read(&project, file),
            "{file} is {stale}"
        );
    }
}

#[test]
fn a_pass_says_of_each_claim_whether_it_holds() {
    let folder = pass();
    let text = report(folder.path()).unwrap();
    assert!(
        text.contains(
            "000: of 29 figures and tables 0 hold, 0 exceed, 1 holds partly, 0 do not hold, 28 not measured"
        ),
        "{text}"
    );
    assert!(
        text.contains(
            "003: of 10 figures and tables 0 hold, 0 exceed, 2 hold partly, 2 do not hold, 6 not measured"
        ),
        "{text}"
    );
    let markdown = read(folder.path(), "claims.md");
    let figures: Vec<&str> = lines_of(&markdown, "| **")
        .iter()
        .map(|line| line.split(" | ").next().unwrap())
        .collect();
    let wanted = [
        "000 Fig. 8",
        "003 Fig. 3",
        "003 Fig. 4",
        "003 Fig. 5",
        "003 Fig. 6",
    ];
    assert_eq!(figures, wanted.map(|name| format!("| **{name}**")));
    for said in [
        "| **holds partly** | **not measured** |  |  |  | [w1 seed](w1%20seed/) |",
        "|  | *the largest 1 % take 2.8 s instead of 2.9 s* | exceeds | not measured |  |  |  |  |",
        "|  | mean response time of finished requests, times shorter, srpt against nginx | does not hold |  | 8 | 8 ± 30 % | 2.00 |  |",
        "- 000 Fig. 9, Table II B (000-rtt)",
        "| [003-load](003-load/) | 003-load | virtual | Linux 6.18, cubic | each timeout doubled | 0123abc | 20 | 1 | ",
        "| [w1 seed](w1%20seed/) | w1 | native | Linux 6.18, cubic | each timeout doubled | 0123abc | 30 | 1 | ",
    ] {
        assert!(markdown.contains(said), "{said}\n{markdown}");
    }
    // What `zstdcat | sha256sum` says of the records one after the other.
    let seed = folder.path().join("w1 seed/w1/seed-1");
    let records = ["nginx.csv.zst", "srpt.csv.zst"].map(|name| {
        let packed = fs::read(seed.join(name)).unwrap();
        zstd::stream::decode_all(&packed[..]).unwrap()
    });
    let digest = ring::digest::digest(&ring::digest::SHA256, &records.concat());
    let digest: String = digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert!(
        markdown.contains(&format!("0123abc | 30 | 1 | {digest} |")),
        "{markdown}"
    );
    let page = read(folder.path(), "claims.html");
    for said in wanted {
        assert!(page.contains(&format!("<strong>{said}</strong>")), "{said}");
    }
    for inside in ["w1 seed", "003-load"] {
        let refreshed = folder.path().join(inside).join("report.html");
        assert!(refreshed.exists(), "{inside}");
    }
}

#[test]
fn the_page_links_nothing_but_the_results_beside_it() {
    let folder = pass();
    report(folder.path()).unwrap();
    let page = read(folder.path(), "claims.html");
    for outside in ["http", "//", "src=", "url(", "@import", "<script"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let mut links: Vec<&str> = page.split("href=\"").skip(1).collect();
    links.retain(|rest| {
        !rest.starts_with("w1%20seed/report.html\"") && !rest.starts_with("003-load/report.html\"")
    });
    assert!(links.is_empty(), "{links:?}");
}

#[test]
fn two_runs_of_an_experiment_make_one_verdict() {
    let folder = pass();
    let again = folder.path().join("again");
    fs::create_dir(&again).unwrap();
    keep(
        &again,
        "w1",
        vec![Point::new("w1", Arrivals::table_one("w1"), 30)],
    );
    report(folder.path()).unwrap();
    let markdown = read(folder.path(), "claims.md");
    let row = lines_of(&markdown, "| **000 Fig. 8**");
    assert_eq!(row.len(), 1);
    assert!(
        row[0].ends_with("| [again](again/) [w1 seed](w1%20seed/) |"),
        "{row:?}"
    );
    assert!(
        markdown.contains("srpt against nginx (again) |"),
        "{markdown}"
    );
}

#[test]
fn why_is_said_below_its_figure_and_escaped() {
    let folder = pass();
    let why = folder.path().join("why.md");
    fs::write(
        &why,
        "# Why\n\n## 003 Fig. 3\nThe <b>\nqueue | is short.\n\nSo.\n",
    )
    .unwrap();
    report(folder.path()).unwrap();
    let page = read(folder.path(), "claims.html");
    let said =
        "<p class=\"why\">The &lt;b&gt; queue | is short.</p><p class=\"why\">So.</p></article>";
    assert!(page.contains(said), "{page}");
    let markdown = read(folder.path(), "claims.md");
    let said =
        "|  | *Why:* The <b> queue \\| is short.<br>So. |  |  |  |  |  |  |\n| **003 Fig. 4**";
    assert!(markdown.contains(said), "{markdown}");
    fs::write(&why, "## 003 Fig. 33\n").unwrap();
    let error = report(folder.path()).unwrap_err();
    let line = error.to_string();
    assert!(
        !error.is_usage() && line.contains("why.md:1: no paper has a figure `003 Fig. 33`"),
        "{line}"
    );
}

#[test]
fn a_folder_without_results_is_an_error_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    for problem in [
        report(folder.path()).unwrap_err(),
        report(&folder.path().join("none")).unwrap_err(),
    ] {
        let line = problem.to_string();
        assert!(!problem.is_usage() && line.lines().count() == 1, "{line}");
    }
    fs::create_dir(folder.path().join("w1")).unwrap();
    fs::write(folder.path().join("w1/experiment.txt"), "w1").unwrap();
    let line = report(folder.path()).unwrap_err().to_string();
    assert!(
        line.contains("neither it nor a folder in it holds results"),
        "{line}"
    );
}
